"""Objectives as texts: levels in order, sums relative to a reference, ties decided in the end."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.distances.background import Background
from mapping.distances.cost_model import CostModel
from mapping.placement.case import PlacementCase
from mapping.placement.problem.objective import METRICS, Score, better, parse_objective, score
from registry.errors import InvalidValue, UnknownName
from tests.support.search_problems import Placed, placed_problems, ring
from tests.support.small_fabrics import given_placement

values = st.floats(0, 10).map(lambda value: round(value, 1))
scores = st.builds(Score, values, values, values, values, values)


def test_a_text_is_levels_of_weighted_sums() -> None:
    objective = parse_objective("2*congestion+hop-bytes,max-dilation")
    levels = [[(term.metric, term.weight) for term in level] for level in objective.asked]
    assert levels == [[("congestion", 2.0), ("hop-bytes", 1.0)], [("max-dilation", 1.0)]]
    assert (str(objective), objective.leading) == ("2*congestion+hop-bytes,max-dilation", "congestion")
    assert parse_objective("hop-bytes+1e1*network-congestion").leading == "network-congestion"


def test_the_levels_of_congestion_decide_after_the_given_ones() -> None:
    names = {
        "congestion": ["congestion", "network-congestion", "hop-bytes"],
        "hop-bytes": ["hop-bytes", "congestion", "network-congestion"],
        "dilation": ["dilation", "congestion", "network-congestion"],
        "max-dilation": ["max-dilation", "congestion", "network-congestion", "hop-bytes"],
        "network-congestion,hop-bytes": ["network-congestion", "hop-bytes", "congestion"],
    }
    for text, levels in names.items():
        assert [level[0].metric for level in parse_objective(text).levels] == levels


@given(one=scores, other=scores, text=st.sampled_from(sorted(METRICS)))
def test_the_first_level_that_differs_decides(one: Score, other: Score, text: str) -> None:
    order = [term.field for level in parse_objective(text).levels for term in level]
    wanted = [getattr(one, name) for name in order] < [getattr(other, name) for name in order]
    assert better(text, one, other) == wanted
    assert not (better(text, one, other) and better(text, other, one))


@given(one=scores, other=scores)
def test_a_sum_counts_each_metric_relative_to_the_reference(one: Score, other: Score) -> None:
    reference = Score(4.0, 2.0, 8.0)
    objective = parse_objective("3*congestion+hop-bytes").relative_to(reference)

    def value(found: Score) -> float:
        return 3 * found.congestion_seconds / 4 + found.hop_bytes / 8

    assert objective.value(one) == pytest.approx(value(one))
    if not math.isclose(value(one), value(other), rel_tol=1e-6):
        assert better(objective, one, other) == (value(one) < value(other))


def test_a_sum_needs_a_reference_and_what_that_has_none_of_is_worse_or_as_good() -> None:
    with pytest.raises(InvalidValue, match="different units"):
        better("congestion+hop-bytes", Score(1, 1, 1), Score(2, 2, 2))
    objective = parse_objective("congestion+network-congestion").relative_to(Score(1.0, 0.0, 1.0))
    assert objective.value(Score(1.0, 0.0, 1.0)) == 2.0
    assert objective.value(Score(0.5, 0.1, 1.0)) == math.inf


def test_rounding_decides_nothing() -> None:
    one = Score(1.0, 9.0, 50.0)
    assert not better("congestion", one, Score(1.0 + 1e-12, 9.0, 50.0))
    assert better("congestion", Score(1.0 - 1e-12, 8.0, 60.0), one)
    assert better("congestion", Score(1.0 + 1e-12, 8.0, 60.0), one)


@pytest.mark.parametrize(
    ("texts", "error", "says"),
    [
        (["", "congestion,", "+hop-bytes", "congestoin", "2*", "hop_bytes"], UnknownName, "objective"),
        ([f"{weight}*congestion" for weight in ("0", "-1", "x", "nan", "")], InvalidValue, "weight"),
    ],
)
def test_unknown_metrics_and_weights_are_refused(texts: list[str], error: type[Exception], says: str) -> None:
    for text in texts:
        with pytest.raises(error, match=says):
            parse_objective(text)


@given(case=placed_problems(), others=st.sampled_from(["none", "added", "reduced"]))
def test_scores_are_those_of_evaluate(case: Placed, others: str) -> None:
    (problem, hosts), background = case, None
    fabric, profile, allocation = problem.routes.fabric, problem.profile, problem.allocation
    if others != "none":
        background = Background(kind=others, load=np.linspace(0.0, 0.9, len(fabric.links)))
    costs = CostModel(routing=problem.routes.name, background=background)
    problem = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, costs=costs).problem()
    placement = given_placement(allocation, allocation.hosts[hosts])
    known, found = mapping.evaluate(fabric, profile, placement, costs=costs), score(problem, hosts)
    for name in ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "mean_congestion_seconds"):
        assert getattr(found, name) == pytest.approx(getattr(known, name))
    assert found.max_dilation <= known.max_dilation + 1e-9  # pairs that send no bytes are none of a problem's


def test_a_convention_of_distance_is_what_hop_bytes_count() -> None:
    fabric, profile, allocation = ring(6, 6)
    for name in ("links", "switches", "equivalent", "equivalent+2"):
        costs = CostModel(distance=name)
        problem = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, costs=costs).problem()
        source, target, size = problem.host_traffic(problem.slot_host)
        assert problem.distances.name == name
        expected = float(size @ problem.distances.of(source, target))
        assert score(problem, problem.slot_host).hop_bytes == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "values", "optimal"),
    [
        ("congestion", (4.0, 2.0, 99.0), True),
        ("congestion", (4.0, 3.0, 9.0), False),  # only a host's own cable is at its bound
        ("network-congestion", (5.0, 2.0, 99.0), True),
        ("hop-bytes", (5.0, 3.0, 9.0 * (1 + 5e-9)), True),
        ("hop-bytes", (4.0, 2.0, 9.0 * (1 + 2e-8)), False),
        ("congestion,hop-bytes", (4.0, 3.0, 9.0), True),
        ("congestion+hop-bytes", (4.0, 3.0, 9.1), False),
        ("congestion+hop-bytes", (4.0, 3.0, 9.0), True),
        ("max-dilation", (4.0, 2.0, 9.0), False),  # has no bound
    ],
)
def test_scores_at_bounds_are_optimal(text: str, values: tuple[float, float, float], optimal: bool) -> None:
    objective = parse_objective(text)
    bounds = {"congestion_seconds": 4.0, "network_congestion_seconds": 2.0, "hop_bytes": 9.0}
    assert objective.bounded_by(bounds).is_optimal(Score(*values)) is optimal
    assert not objective.is_optimal(Score(*values))  # without bounds nothing is known
