"""What can be placed and what is refused; arguments of `mapping`; objectives as texts, and their levels."""

# mypy: disable-error-code="arg-type, dict-item"

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping import SearchOptions
from mapping.distances.cost_model import Background, CostModel
from mapping.launchers import write
from mapping.placement.case import GIVEN, IN_ORDER, PlacementCase
from mapping.placement.methods.baselines import in_order
from mapping.placement.objective import METRICS, Score, better, parse_objective, score
from mapping.placement.problem import Memo, Problem
from mapping.simulation.messages import from_profile
from mapping.simulation.simulate import simulate
from registry import errors
from registry.errors import InfeasibleAllocation, InvalidPlacement, InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Job, Profile
from registry.store.fabrics import Snapshot
from registry.store.jobs import StoredJob
from registry.store.placement_rows import StoredPlacement
from registry.store.profiles import StoredProfile
from tests.support.search_problems import Placed, placed_problems, problems, ring, ring_problem
from tests.support.small_fabrics import given_placement
from tests.support.sure import sure

OBJECTIVES = ["congestion", "hop-bytes", "mapping-coefficient", "2*congestion+hop-bytes", "max-dilation"]
PAIR = Profile.from_edges([0], [1], [1.0])


def test_hosts_that_no_path_joins_are_named() -> None:
    islands = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3], [1, 0, 3, 2], 1.0)
    only_sends = Fabric.from_arcs(list("abc"), [0, 1, 2], [1, 0, 1], 1.0)
    options: list[dict[str, Any]] = [{"objective": objective} for objective in OBJECTIVES]
    options += [{"strategies": strategy} for strategy in (["in-order"], ["random"], ["greedy"])]
    cases = [(islands, ["a", "c"], option) for option in options] + [(only_sends, ["a", "b", "c"], {})]
    for fabric, hosts, option in cases:
        with pytest.raises(errors.DisconnectedAllocation, match=r"'a'.*'c'") as error:
            mapping.place(fabric, PAIR, Allocation.of(fabric, hosts), steps=9, **option)
        assert (error.value.source, error.value.target) == ("a", "c")


def test_more_ranks_than_slots_are_counted() -> None:
    with pytest.raises(InfeasibleAllocation, match="6 ranks do not fit on 5 slots of 5 hosts: give") as error:
        mapping.place(*ring(5, 6))
    assert (error.value.ranks, error.value.slots) == (6, 5)


@pytest.mark.parametrize("taken", [0.0, -1.0, float("nan")])
def test_a_problem_whose_links_have_nothing_left_is_refused(taken: float) -> None:
    problem = ring_problem(5, 5)
    left = problem.link_capacity.copy()
    left[3] = taken
    with pytest.raises(InvalidValue, match=r"link n\d\d -> n\d\d"):
        replace(problem, link_capacity=left)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_can_be_placed_one_way_only_is_placed_so(objective: str) -> None:
    fabric, circle, allocation = ring(5, 4)
    for ends in ([], [0]):  # nobody sends, or no bytes
        for ranks in (1, 4) if not ends else (4,):
            silent = Profile.from_edges(ends, ends, [0.0] * len(ends), ranks=ranks)
            found = mapping.place(fabric, silent, allocation, objective=objective, steps=50)
            assert found.host_of_rank.tolist() == allocation.hosts[:ranks].tolist()
    found = mapping.place(fabric, circle, Allocation.of(fabric, [3], 4), objective=objective, steps=50)
    assert found.host_of_rank.tolist() == [3, 3, 3, 3]
    assert mapping.evaluate(fabric, circle, found).congestion_seconds == 0.0


@pytest.mark.parametrize(
    ("pins", "says"),
    [
        ({7: "n00"}, "rank 7"),
        ({-1: "n00"}, "rank -1"),
        ({0: "n04"}, "rank 0 cannot be pinned to n04"),
        ({0: "n01", 2: "n01"}, "ranks 0, 2 are pinned to host n01, which has 1 slots"),
    ],
)
def test_a_pin_that_does_not_fit_is_named(pins: dict[int, str], says: str) -> None:
    fabric, profile, _ = ring(5, 3)
    with pytest.raises(InvalidPlacement, match=says):
        mapping.place(fabric, profile, Allocation.of(fabric, [0, 1, 2]), steps=9, pins=pins)


def test_all_ranks_pinned_are_where_they_are_pinned() -> None:
    fabric, profile, allocation = ring(5, 5)
    pins = {rank: f"n{(2 * rank) % 5:02}" for rank in range(5)}
    found = mapping.place(fabric, profile, allocation, steps=500, pins=pins)
    assert [fabric.names[host] for host in found.host_of_rank] == list(pins.values())


@given(problem=problems())
def test_pairs_of_ranks_have_the_bytes_of_both_directions(problem: Problem) -> None:
    expected: dict[tuple[int, int], float] = {}
    profile = problem.profile
    for a, b, size in zip(profile.sender, profile.partner, profile.bytes, strict=True):
        if a != b and size > 0:
            pair = (min(a, b), max(a, b))
            expected[pair] = expected.get(pair, 0.0) + size
    low, high, total = problem.both_ways
    found = dict(zip(zip(low.tolist(), high.tolist(), strict=True), total.tolist(), strict=True))
    assert found == pytest.approx(expected)


def test_a_value_is_made_once_by_whoever_asks_first() -> None:
    kept, together, made = Memo(), Barrier(4), []

    def make() -> object:
        made.append(1)
        return object()

    def ask(_: int) -> object:
        together.wait(10)
        return kept.once("value", make)

    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(ask, range(4)))
    assert len(made) == len({id(value) for value in values}) == 1
    assert kept.once("other", lambda: 3) == 3


def test_an_error_is_not_kept_and_a_copy_begins_empty() -> None:
    kept = Memo()
    with pytest.raises(ZeroDivisionError):
        kept.once("value", lambda: 1 // 0)
    assert kept.once("value", lambda: 5) == 5
    assert kept.once("value", lambda: 7) == 5
    assert pickle.loads(pickle.dumps(kept)).once("value", lambda: 7) == 7


place = mapping.place
RING = Fabric.from_arcs([f"n{i}" for i in range(4)], [0, 1, 2, 3] * 2, [1, 2, 3, 0, 3, 0, 1, 2], 1.0)
PROFILE = Profile.from_edges([0, 1, 2, 3], [1, 2, 3, 0], [8.0] * 4)
ALL, BEYOND = Allocation.of(RING, [0, 1, 2, 3]), Allocation(hosts=[0, 9], slots=[2, 2])
FOUR = np.arange(4)
PLACED = in_order(4, ALL)
NOW = datetime(2026, 11, 23, tzinfo=UTC)
SNAPSHOT = Snapshot(cluster="toy", id="1", observed_at=NOW, routing=None, fabric=RING)
STORED = StoredProfile(id="1", profile=PROFILE, names=("ring",), recorded_at=NOW)
OF_RING = Job(id="1", hosts=RING.names, slots=(1, 1, 1, 1))
JOB = StoredJob(id="toy/1", cluster="toy", job=OF_RING, profile=None, as_of=NOW)


def stored(hosts: tuple[str, ...]) -> StoredPlacement:
    return StoredPlacement(cluster="toy", content="1", placement=PLACED, id="1", hosts=hosts, recorded_at=NOW)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: place(PROFILE, RING, ALL), "fabric: must be a Fabric, not a Profile"),
        (lambda: place(RING, ALL, PROFILE), "profile: must be a Profile, not an Allocation"),
        (lambda: place(RING, PROFILE, [0, 1, 2, 3]), "allocation: must be an Allocation, not a list"),
        (lambda: place(RING, PROFILE, ALL, CostModel()), "options: must be a SearchOptions, not a CostModel"),
        (lambda: place(RING, PROFILE, ALL, None, 5), "costs: must be a CostModel, not an int"),
        (lambda: place(RING, PROFILE, ALL, present=FOUR), "present: must be a Placement, not an array"),
        (lambda: place(RING, PROFILE, ALL, pins=[0]), "pins: must map ranks to hosts"),
        (lambda: place(RING, PROFILE, ALL, pins={0: 1.5}), "pins: must be a whole number, not 1.5"),
        (lambda: place(RING, PROFILE, ALL, pins={0.5: 1}), "pins: must be a whole number, not 0.5"),
        (lambda: place(RING, PROFILE, ALL, secnods=2), "is no search option 'secnods'; closest: seconds"),
        (lambda: place(RING, PROFILE, BEYOND), "allocation: vertex 9 is not in the fabric"),
        (lambda: mapping.evaluate(RING, PROFILE, ALL), "placement: must be a Placement, not an Allocation"),
        (lambda: mapping.remap_few(RING, PROFILE, ALL, present=None), "present placement is needed"),
        (lambda: place(RING, PROFILE, ALL, objective=5), "objective: must be a str, not an int"),
        (lambda: place(RING, PROFILE, ALL, executor=5, steps=9), "executor: must be a name or have"),
        (
            lambda: place(RING, PROFILE, ALL, executor="thread", steps=9),
            "executor 'thread'; closest: threads",
        ),
        (lambda: place(RING, PROFILE, ALL, pins={0: "n0x"}), "there is no host 'n0x'; closest: n0"),
        (lambda: place(RING, PROFILE, ALL, objective="hopbytes"), "objective 'hopbytes'; closest: hop-bytes"),
        (lambda: place(RING, PROFILE, ALL, costs=CostModel(distance="link")), "'link'; closest: links"),
        (lambda: CostModel(routing=5).build_routes(RING, [0]), "routing: must be a Routing, not an int"),
        (lambda: mapping.advise(PLACED), "curve: must be a Curve, not a Placement"),
        (lambda: write("csv", RING, PLACED), "fabric: must be a Fabric, not a Placement"),
        (lambda: write("csv", FOUR, RING), "placement: must be a Placement, not an array"),
        (lambda: simulate(PLACED, RING, from_profile(PROFILE)), "fabric: must be a Fabric, not a Placement"),
        (lambda: simulate(RING, PLACED, from_profile(PROFILE), seed=-1), "seed: must not be below zero"),
    ],
)
def test_an_error_names_the_argument(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.AlmanacError) as caught:
        call()
    assert message in str(caught.value)


def test_stored_objects_and_points_are_taken_as_their_content() -> None:
    plain = mapping.place(RING, PROFILE, ALL, SearchOptions(steps=100))
    found = mapping.place(SNAPSHOT, STORED, JOB, steps=100)
    assert found.host_of_rank.tolist() == plain.host_of_rank.tolist()
    one = mapping.evaluate(SNAPSHOT, STORED, stored(RING.names), bounds=True)
    assert one.hop_bytes == mapping.evaluate(RING, PROFILE, PLACED).hop_bytes == 32.0
    curve = mapping.remap_few(RING, PROFILE, ALL, present=PLACED, steps=50)
    assert mapping.evaluate(RING, PROFILE, curve.points[0]).hop_bytes == 32.0
    with pytest.raises(InvalidPlacement, match="another state of the fabric"):
        mapping.evaluate(SNAPSHOT, STORED, stored(("n0", "n1", "n3", "n2")))


def test_all_functions_take_the_same_arguments() -> None:
    same: dict[str, Any] = {"costs": CostModel(routing="shortest-paths"), "pins": {0: "n1"}, "steps": 200}
    found = place(RING, PROFILE, ALL, present=PLACED, **same)
    curve = mapping.remap_few(RING, PROFILE, ALL, present=PLACED, **same)
    several = mapping.pareto(RING, PROFILE, ALL, present=PLACED, **same)
    assert all(one.host_of_rank[0] == 1 for one in (found, curve.points[-1].placement, *several))
    assert mapping.evaluate(RING, PROFILE, found, **same).congestion_seconds == 8.0
    with pytest.raises(InvalidPlacement, match="rank 0 is not on the host that it is pinned to"):
        mapping.evaluate(RING, PROFILE, PLACED, **same)


def test_evaluate_measures_distances_as_the_search_did() -> None:
    found = mapping.evaluate(RING, PROFILE, PLACED, objective="mapping-coefficient")
    assert found.distance == "equivalent+2"
    assert mapping.evaluate(RING, PROFILE, PLACED).distance == "links"


def case_on_ring() -> PlacementCase:
    """Four ranks on a ring of four hosts, in the opposite order, with the first rank pinned to n01."""
    fabric, profile, _ = ring(4, 4)
    allocation = Allocation.of(fabric, [0, 1, 2, 3])
    present = replace(in_order(4, allocation), host_of_rank=allocation.hosts[::-1].copy())
    options = SearchOptions(objective="mapping-coefficient")
    return PlacementCase.of(fabric, profile, allocation, options, None, {0: "n01"}, present)


def test_baselines_are_the_present_placement_and_ranks_in_order_with_pins() -> None:
    case = case_on_ring()
    assert case.pinned_hosts().tolist() == [1, -1, -1, -1]
    found = {name: hosts.tolist() for name, hosts in case.baselines().items()}
    assert found == {GIVEN: [1, 2, 3, 0], IN_ORDER: [1, 0, 2, 3]}


def test_a_problem_has_the_hosts_pins_and_distances_of_the_case() -> None:
    case = case_on_ring()
    problem = case.problem()
    assert (problem.ranks, problem.hosts, problem.pins.tolist()) == (4, 4, [1, -1, -1, -1])
    assert case.distance == sure(problem.own_distances).name == "equivalent+2"
    assert case.problem("links").own_distances is None
    assert problem.routes is case.routes


def test_a_placement_records_rails_and_the_number_of_pins() -> None:
    assert case_on_ring().parameters == {"rails": "all-connected", "pins": 1}
    case = replace(case_on_ring(), pins={}, costs=CostModel(rails="same-rail", distance="links"))
    assert case.parameters == {"rails": "same-rail", "distance": "links"}
    assert case.routing_reason == "the fabric has no forwarding tables"


def test_what_does_not_fit_is_an_error() -> None:
    case = case_on_ring()
    three = Allocation.of(case.fabric, [0, 1, 2])
    with pytest.raises(InfeasibleAllocation):
        replace(case, allocation=three, pins={}).problem()
    with pytest.raises(InvalidPlacement, match="4 ranks are placed, the profile has 2: if the last ranks"):
        replace(case, profile=Profile.from_edges([0], [1], [1.0])).baselines()
    with pytest.raises(InvalidPlacement):
        replace(case, allocation=three).host_indices(sure(case.present))


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
