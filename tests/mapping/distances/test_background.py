"""Other jobs' load: bytes that are on the links already, or capacity that is gone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.background import Background
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from registry.errors import InvalidValue
from registry.model import Allocation, Evaluation, Fabric, Placement, Profile
from tests.support.search_problems import placed_problems


def line() -> tuple[Fabric, Placement, Placement]:
    """Hosts a - b - c in a line of cables of 2 bytes/s; a placement on a and b, one on a and c."""
    fabric = Fabric.from_arcs(list("abc"), [0, 1, 1, 2], [1, 0, 2, 1], 2.0)
    near, far = (Allocation.of(fabric, hosts) for hosts in (["a", "b"], ["a", "c"]))
    first, second = (Placement(host_of_rank=on.hosts, allocation=on, strategy="given") for on in (near, far))
    return fabric, first, second


OURS = Profile.from_edges([0], [1], [6.0])
THEIRS = Profile.from_edges([0, 1], [1, 0], [1.0, 9.0])


def others() -> tuple[Fabric, Placement, Evaluation]:
    fabric, near, far = line()
    return fabric, near, evaluate(fabric, THEIRS, far)


def test_bytes_of_others_are_added_where_we_load_a_link_as_often_as_they_repeat() -> None:
    fabric, ours, theirs = others()
    found = evaluate(fabric, OURS, ours, costs=CostModel(background=Background.added([theirs])))
    assert found.congestion_seconds == (6 + 1) / 2
    assert found.mean_congestion_seconds == (6 + 1) / 2
    assert found.hop_bytes == 6.0
    assert found.link_bytes.tolist() == [6.0, 0.0, 0.0, 0.0]
    assert found.background == "added: 20 bytes of 1 other job on all links"
    both = Background.added([theirs, theirs], times=[1.0, 3.0])
    assert evaluate(fabric, OURS, ours, costs=CostModel(background=both)).congestion_seconds == (6 + 4) / 2


def test_capacity_is_reduced_by_the_rates_of_others_but_not_below_the_floor() -> None:
    fabric, ours, theirs = others()
    found = evaluate(fabric, OURS, ours, costs=CostModel(background=Background.reduced([theirs], 2.0)))
    assert found.congestion_seconds == 6 / (2 - 0.5)
    assert found.background == (
        "reduced: the capacity that 1 other job leaves, at least 0.01 of each link (2 links at that)"
    )
    full = Background.reduced([theirs], 0.25, floor=0.1)
    np.testing.assert_allclose(full.capacity(fabric), [0.2, 0.2, 0.2, 0.2])
    assert full.floored(fabric) == 4
    found = evaluate(fabric, OURS, ours, costs=CostModel(background=full))
    assert found.congestion_seconds == pytest.approx(30.0)


def test_a_link_with_exactly_the_floor_left_is_not_counted_as_floored() -> None:
    """Of 2 bytes/s the floor keeps 0.5: 1.5 in use leave just that, only more is cut off by the floor."""
    fabric, _, _ = line()
    load = np.array([1.5, np.nextafter(1.5, 2.0), 1.0, 2.0])
    background = Background(kind="reduced", load=load, floor=0.25)
    assert background.floored(fabric) == 2
    assert background.capacity(fabric).tolist() == [0.5, 0.5, 1.0, 0.5]
    assert background.description(fabric).endswith("(2 links at that)")


@given(case=placed_problems(), data=st.data())
def test_no_other_load_changes_nothing_and_more_never_helps(case: tuple, data: st.DataObject) -> None:  # type: ignore[type-arg]
    problem, hosts = case
    fabric, allocation, m = problem.routes.fabric, problem.allocation, len(problem.routes.fabric.links)
    placement = Placement(host_of_rank=allocation.hosts[hosts], allocation=allocation, strategy="given")
    load = np.array(data.draw(st.lists(st.integers(0, 9), min_size=m, max_size=m)), np.float64)

    def beside(background: Background | None) -> Evaluation:
        costs = CostModel(routing=problem.routes.name, background=background)
        return evaluate(fabric, problem.profile, placement, costs=costs)

    alone, capacity = beside(None), fabric.links.capacity
    for kind, slow in (
        ("added", (alone.link_bytes + load) / capacity),
        ("reduced", alone.link_bytes / np.maximum(capacity - load, 0.01 * capacity)),
    ):
        same, worse = (beside(Background(kind=kind, load=one)) for one in (np.zeros(m), load))
        assert same.congestion_seconds == alone.congestion_seconds
        assert worse.congestion_seconds >= alone.congestion_seconds
        assert worse.congestion_seconds == pytest.approx(slow[alone.link_bytes > 0].max(initial=0.0))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "more"}, "must be 'added' or 'reduced'"),
        ({"load": np.array([0.0, -1.0])}, "-1 on link 1"),
        ({"load": np.array([np.nan])}, "nan on link 0"),
        ({"load": np.zeros((1, 1))}, "2 dimensions"),
        ({"floor": 0.0}, "must be above 0"),
        ({"floor": 1.5}, "at most 1"),
    ],
)
def test_what_is_no_load_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Background(**{"kind": "added", "load": np.zeros(4)} | changed)  # type: ignore[arg-type]


def test_a_background_of_another_fabric_or_of_nobody_is_refused() -> None:
    fabric, ours, theirs = others()
    with pytest.raises(InvalidValue, match="3 entries for 4 links"):
        evaluate(fabric, OURS, ours, costs=CostModel(background=Background(kind="added", load=np.zeros(3))))
    with pytest.raises(InvalidValue, match="at least one other job"):
        Background.added([])
    with pytest.raises(InvalidValue, match="period"):
        Background.reduced([theirs], 0.0)
