"""What a placement costs: published values, pair by pair, beside other placements; and its report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapping
from almanac.output.placements import compared_metrics_to_json, placement_to_json, show_placement
from ingest.generate.direct import torus
from mapping.cost import report
from mapping.cost.metrics import case_bounds, differences, evaluate, evaluate_on
from mapping.cost.report import RANDOM_SEEDS, PlacementReport, report_placement
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import DistanceTable, distances
from mapping.placement.case import PlacementCase
from mapping.placement.methods.baselines import in_order, random_placement
from mapping.placement.problem import Problem
from mapping.placement.search import SearchOptions
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from mapping.selfcheck.oracles import cost, shortest_path_route
from registry import errors
from registry.errors import InvalidPlacement, InvalidValue, UnknownName
from registry.model import Allocation, Evaluation, Fabric, HostOrder, Ints, Metrics, Placement, Profile
from tests.support import small_fabrics
from tests.support.search_problems import placed_problems, ring, torus8
from tests.support.small_fabrics import any_fabrics, cabled, given_placement, placements, profiles
from tests.support.sure import sure


def placed(allocation: Allocation, slots: list[int]) -> Placement:
    """The placement of rank r on slot ``slots[r]``."""
    return given_placement(allocation, allocation.host_of_slot[slots])


@pytest.mark.parametrize("routing", ["shortest-paths", "tables"])
@given(data=st.data(), profile=profiles(), rails=st.sampled_from(["all-connected", "same-rail"]))
def test_metrics_are_those_of_loops(routing: str, rails: str, profile: Profile, data: st.DataObject) -> None:
    if routing == "tables":
        fabric = data.draw(small_fabrics.table_fabrics(broken=data.draw(st.booleans())))
    else:
        fabric = data.draw(any_fabrics())
    placement, costs = data.draw(placements(fabric, profile)), CostModel(routing=routing, rails=rails)
    try:
        expected = cost(fabric, profile, placement, routing=routing, rails=rails)
    except LookupError:
        with pytest.raises((errors.DisconnectedAllocation, errors.UnreachablePair)):
            evaluate(fabric, profile, placement, costs=costs)
        return
    found = evaluate(fabric, profile, placement, costs=costs)
    np.testing.assert_allclose(found.link_bytes, expected.link_bytes, atol=1e-12)
    assert found.congestion_seconds == pytest.approx(expected.congestion)
    assert found.network_congestion_seconds == pytest.approx(expected.network_congestion)
    assert found.hop_bytes == pytest.approx(expected.hop_bytes)
    assert found.max_dilation == pytest.approx(expected.max_dilation)
    assert found.total_bytes == profile.bytes.sum()
    assert (found.routing, found.rails) == (routing, rails)


def test_an_independent_evaluator_agrees_on_a_torus() -> None:
    """Values of tests/data/bench/README.md."""
    fabric, profile, allocation = torus8()
    found = evaluate(fabric, profile, in_order(512, allocation))
    assert found.routing == "shortest-paths"
    assert [round(found.congestion_seconds, 3), round(found.network_congestion_seconds, 3)] == [1977.793] * 2
    assert found.hop_bytes == pytest.approx(1759434.0)


def pair_of_hosts() -> Fabric:
    return Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], [2.0, 4.0])


def test_bounds_are_computed_only_with_the_option() -> None:
    fabric = pair_of_hosts()
    profile = Profile.from_edges([0, 1], [1, 0], [6.0, 3.0])
    placement = placed(Allocation.of(fabric, ["b", "a"]), [0, 1])
    assert not evaluate(fabric, profile, placement).bounds
    bounds = evaluate(fabric, profile, placement, bounds=True).bounds
    assert bounds["congestion_seconds"].value == pytest.approx(1.5)
    assert bounds["hop_bytes"].value == pytest.approx(9.0)


def test_another_number_of_ranks_another_fabric_and_an_unknown_routing_are_refused() -> None:
    fabric, large = pair_of_hosts(), Fabric.from_arcs(list("abc"), [0, 1, 2], [1, 2, 0], 1.0)
    two, three = Profile.from_edges([0], [1], [6.0]), Profile.from_edges([0, 1], [1, 2], [6.0, 3.0])
    placement = placed(Allocation.of(fabric, ["a", "b"]), [0, 1])
    with pytest.raises(InvalidPlacement, match="2 ranks are placed, the profile has 3"):
        evaluate(fabric, three, placement)
    with pytest.raises(InvalidPlacement, match="vertex 2"):
        evaluate(fabric, two, placed(Allocation.of(large, [0, 2]), [0, 1]))
    with pytest.raises(UnknownName, match="shortest-paths"):
        evaluate(fabric, two, placement, costs=CostModel(routing="shortest"))


DISTANCES = ("links", "switches", "equivalent", "equivalent+2")


@st.composite
def talking(draw: st.DrawFn) -> Profile:
    """Ranks with bytes and messages, some of either without the other."""
    ranks = draw(st.integers(1, 4))
    ends, size = st.integers(0, ranks - 1), st.integers(0, 20)
    edges = draw(st.lists(st.tuples(ends, ends, size, st.integers(0, 5)), max_size=12))
    columns = [[edge[k] for edge in edges] for k in range(4)]
    return Profile.from_edges(*columns[:3], ranks=ranks, messages=columns[3])


@settings(max_examples=200)
@given(data=st.data(), name=st.sampled_from(DISTANCES), packet_bytes=st.sampled_from([None, 8.0]))
def test_dilation_congestion_and_the_mapping_coefficient_are_those_of_a_slow_count(
    data: st.DataObject, name: str, packet_bytes: float | None
) -> None:
    fabric, profile = data.draw(any_fabrics()), data.draw(talking())
    placement = data.draw(placements(fabric, profile))
    ends = placement.host_of_rank[profile.sender], placement.host_of_rank[profile.partner]
    pairs = [(int(a), int(b)) for a, b in zip(*ends, strict=True)]
    routes = [[] if a == b else shortest_path_route(fabric, a, b) for a, b in pairs]
    hops = [sum(part for _, part in route) for route in routes if route is not None]
    if len(hops) < len(routes):
        return
    found = evaluate(fabric, profile, placement, costs=CostModel(distance=name, packet_bytes=packet_bytes))
    assert found.total_dilation == pytest.approx(sum(hops))
    known = all(m > 0 or b == 0 for m, b in zip(profile.messages, profile.bytes, strict=True))
    if known and profile.messages.sum() > 0:
        wanted = sum(m * h for m, h in zip(profile.messages, hops, strict=True)) / profile.messages.sum()
        assert found.message_dilation == pytest.approx(wanted)
    else:
        assert found.message_dilation is None
    seconds = found.link_bytes / fabric.links.capacity
    loaded = [value for value in seconds.tolist() if value > 0]
    assert found.mean_congestion_seconds == pytest.approx(sum(loaded) / len(loaded) if loaded else 0.0)

    used = np.unique(placement.host_of_rank)
    far = distances(name, shortest_paths.build(fabric, used)).matrix()
    place, total = {int(vertex): at for at, vertex in enumerate(used)}, 0.0
    for (a, b), size, messages in zip(pairs, profile.bytes, profile.messages, strict=True):
        weight = size if packet_bytes is None else max(math.ceil(size / packet_bytes), messages)
        total += weight * (far[place[a], place[b]] if weight else 0.0)
    assert found.mapping_coefficient == pytest.approx(total)
    assert found.distance == name
    assert found.counted == ("bytes" if packet_bytes is None else "packets of 8 bytes")


def star() -> tuple[Fabric, Profile, Placement]:
    fabric = cabled("0-3 1-3 2-3", 3, 2.0)
    profile = Profile.from_edges([0, 1], [1, 2], [8.0, 20.0], messages=[4, 1])
    return fabric, profile, given_placement(Allocation.of(fabric, [0, 1, 2]), [0, 1, 2])


def test_a_table_of_distances_counts_as_given() -> None:
    table = DistanceTable(names=("v2", "v1", "v0"), values=np.array([[0, 7, 1], [5, 0, 1], [1, 3, 0]]))
    one_way = CostModel(distance="table", table=table, one_way=True)
    assert evaluate(*star(), costs=one_way).mapping_coefficient == 8 * 3 + 20 * 5
    with pytest.raises(errors.InvalidValue, match="other direction"):
        evaluate(*star(), costs=CostModel(distance="table", table=table))


FABRIC = torus((4,))
PAIRS = Profile.from_edges([0, 1, 2, 3], [2, 3, 0, 1], [8.0] * 4)


@pytest.mark.parametrize("hosts", [[0, 2, 1, 3], (0, 2, 1, 3), np.array([0, 2, 1, 3])])
def test_a_list_of_indices_or_names_is_evaluated_as_the_placement(hosts: Any) -> None:
    names = [FABRIC.names[vertex] for vertex in [0, 2, 1, 3]]
    wanted = mapping.evaluate(FABRIC, PAIRS, HostOrder(hosts=tuple(names)).on(FABRIC), bounds=True)
    for form in (hosts, names):
        found = mapping.evaluate(FABRIC, PAIRS, form, bounds=True)
        assert (found.hop_bytes, found.congestion_seconds) == (32.0, wanted.congestion_seconds)
        assert found.bounds.keys() == wanted.bounds.keys()


def test_wrong_hosts_are_named() -> None:
    with pytest.raises(InvalidPlacement, match="3 ranks"):
        mapping.evaluate(FABRIC, PAIRS, [0, 1, 2])
    with pytest.raises(UnknownName, match="'nobody'"):
        mapping.evaluate(FABRIC, PAIRS, ["nobody"] * 4)
    with pytest.raises(InvalidValue, match=r"placement: outside 0 \.\. 3"):
        mapping.evaluate(FABRIC, PAIRS, [0, 1, 2, 4])


def test_numbers_that_may_be_names_are_refused_also_in_pins() -> None:
    ring = Fabric.from_arcs([1, 2, 3, 4], [0, 1, 2, 3], [1, 2, 3, 0], 1.0)  # type: ignore[list-item]
    with pytest.raises(InvalidValue, match="placement: 1 may be the vertex '1' or the one with index 1, '2'"):
        mapping.evaluate(ring, PAIRS, [1, 2, 3, 1])
    with pytest.raises(InvalidValue, match="pins: 1 may be the vertex '1'"):
        mapping.evaluate(ring, PAIRS, ["1", "2", "3", "4"], pins={0: 1})
    assert mapping.evaluate(ring, PAIRS, ["1", "2", "3", "4"], pins={0: "1"}).total_bytes == 32.0


def same(one: Evaluation, other: Evaluation) -> None:
    for field in dataclasses.fields(Evaluation):
        if field.name in ("wall_seconds", "link_bytes", "bounds"):
            continue
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert a == (pytest.approx(b) if isinstance(b, float) else b), field.name
    np.testing.assert_allclose(one.link_bytes, other.link_bytes)
    assert {name: bound.value for name, bound in one.bounds.items()} == {
        name: pytest.approx(bound.value) for name, bound in other.bounds.items()
    }


def case_of(problem: Problem, hosts: Ints) -> tuple[PlacementCase, Placement]:
    allocation, costs = problem.allocation, CostModel(routing=problem.routes.name)
    fabric, profile = problem.routes.fabric, problem.profile
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, costs=costs)
    return case, given_placement(allocation, allocation.hosts[hosts])


@given(problem=placed_problems())
def test_a_case_evaluates_a_placement_as_evaluate_does(problem: tuple[Problem, Ints]) -> None:
    case, placement = case_of(*problem)
    known = mapping.evaluate(case.fabric, case.profile, placement, costs=case.costs, bounds=True)
    same(evaluate_on(case, placement, case_bounds(case)), known)


def test_a_search_and_all_that_it_reports_share_one_set_of_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, profile, allocation = ring(6, 6)
    built = MagicMock(side_effect=build_routes)
    monkeypatch.setattr("mapping.distances.cost_model.build_routes", built)
    options = SearchOptions(steps=100)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, options=options)
    found = report_placement(case)
    assert built.call_count == 1
    placed = mapping.place(fabric, profile, allocation, options)
    assert found.placement.host_of_rank.tolist() == placed.host_of_rank.tolist()
    same(sure(found.in_order), mapping.evaluate(fabric, profile, in_order(6, allocation)))
    same(found.evaluation, mapping.evaluate(fabric, profile, found.placement, bounds=True))
    several = [random_placement(6, allocation, seed) for seed in RANDOM_SEEDS]
    known = Metrics.mean([Metrics.of(mapping.evaluate(fabric, profile, one)) for one in several])
    assert dataclasses.asdict(sure(found.random)) == pytest.approx(dataclasses.asdict(known))


def two_pairs(**options: Any) -> PlacementCase:
    """Two hosts on each of two switches; ranks 0 and 1, and 2 and 3, send each other 10 bytes."""
    fabric = cabled("0-4 1-4 2-5 3-5 4-5", 4)
    return PlacementCase(
        fabric=fabric,
        profile=Profile.from_edges([0, 1, 2, 3], [1, 0, 3, 2], [10.0] * 4, ranks=4, name="pairs"),
        allocation=Allocation.of(fabric, range(4)),
        options=SearchOptions(**options),
    )


ABOVE = {"congestion": 1.0, "network-congestion": math.inf, "hop-bytes": 0.5}


@pytest.mark.parametrize(
    ("objective", "above"),
    [
        ("congestion", ABOVE),
        ("hop-bytes", {"hop-bytes": 0.5, "congestion": 1.0, "network-congestion": math.inf}),
        ("max-dilation", {"max-dilation": 0.5} | ABOVE),
    ],
)
def test_a_named_strategy_that_ends_worse_than_ranks_in_order_is_reported(
    objective: str, above: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    """In order no byte crosses between switches: 4 x 10 bytes over 2 links, 10 on each.

    One rank a switch in turn, all cross: 4 x 10 bytes over 3 links, 20 on each of the two between switches.
    """
    case = two_pairs(objective=objective, strategies=["round-robin:over=switches"], steps=1)
    found = report_placement(case)
    assert found.evaluation.hop_bytes == 120.0
    assert found.above_in_order == above
    assert list(found.above_in_order) == list(above)
    known = {metric: None if share == math.inf else share for metric, share in above.items()}
    assert placement_to_json(found)["above_in_order"] == known
    show_placement(found)
    printed = capsys.readouterr().out
    assert "worst link 100% above" in printed
    assert "worst network link above zero" in printed
    assert "hop-bytes 50% above" in printed
    assert printed.index("found by round-robin") < printed.index("worse than ranks in order: ")


def test_a_sentence_names_a_distance_other_than_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """4 x 10 bytes over one switch in order, over two otherwise."""
    case = two_pairs(objective="hop-bytes", strategies=["round-robin:over=switches"], steps=1)
    found = report_placement(dataclasses.replace(case, costs=CostModel(distance="switches")))
    assert found.above_in_order["hop-bytes"] == 1.0
    show_placement(found)
    assert "hop-bytes (switches) 100% above" in capsys.readouterr().out


def test_a_result_that_is_no_worse_than_in_order_is_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    for strategies in (["in-order"], None):
        found = report_placement(two_pairs(strategies=strategies, steps=10))
        assert found.above_in_order == {}
        show_placement(found)
    assert "worse" not in capsys.readouterr().out


def test_a_host_that_is_not_of_the_allocation_is_named() -> None:
    fabric, profile, _ = ring(6, 3)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=Allocation.of(fabric, [0, 1, 2]))
    with pytest.raises(InvalidPlacement, match="n05"):
        evaluate_on(case, in_order(3, Allocation.of(fabric, [0, 1, 5])))


@given(problem=placed_problems())
def test_links_are_ordered_by_the_difference_of_their_times(problem: tuple[Problem, Ints]) -> None:
    case, given_one = case_of(*problem)
    fabric, straight = case.fabric, in_order(case.profile.ranks, case.allocation)
    three = [evaluate_on(case, one) for one in (given_one, straight, given_one)]
    found = differences(fabric, three)
    seconds = [one.link_bytes / fabric.links.capacity for one in three]
    wanted = np.max(seconds, axis=0) - np.min(seconds, axis=0)
    rows = [difference.row for difference in found]
    assert sorted(rows) == np.flatnonzero(wanted).tolist()
    assert [difference.seconds for difference in found] == sorted(wanted[rows], reverse=True)
    for difference in found:
        assert [load.bytes for load in difference.loads] == [one.link_bytes[difference.row] for one in three]
    assert differences(fabric, three, most=1) == found[:1]


def test_one_placement_has_nothing_to_be_compared_with() -> None:
    fabric, profile, allocation = ring(5, 5)
    one = mapping.evaluate(fabric, profile, in_order(5, allocation))
    with pytest.raises(InvalidValue):
        differences(fabric, [one])
    other = mapping.evaluate(*ring(6, 5)[:2], in_order(5, ring(6, 5)[2]))
    with pytest.raises(InvalidValue, match="another number of links"):
        differences(fabric, [one, other])
    assert compared_metrics_to_json(one)["loaded_links"] == int((one.link_bytes > 0).sum())


def around(order: Sequence[int], hosts: Sequence[int], **more: Any) -> PlacementCase:
    """Ranks that send to the next one around a ring of eight hosts, in an order of numbers."""
    fabric = ring(8, 8)[0]
    profile = Profile.from_edges(order, np.roll(order, 1), np.ones(8))
    return PlacementCase(fabric=fabric, profile=profile, allocation=Allocation.of(fabric, hosts), **more)


MIXED = np.random.default_rng(1).permutation(8).tolist(), np.random.default_rng(7).permutation(8).tolist()


def check_optimum(objective: str, workers: int = 1) -> PlacementReport:
    options = SearchOptions(objective=objective, seconds=200.0, workers=workers)
    report = report_placement(around(*MIXED, options=options))
    assert report.is_optimal
    assert report.placement.complete
    assert report.placement.steps < 1_000_000  # of the many millions in 200 s
    assert report.evaluation.congestion_seconds == 1.0
    return report


@pytest.mark.parametrize("objective", ["hop-bytes", "congestion", "congestion,hop-bytes"])
def test_a_search_ends_when_bounds_are_met(objective: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = check_optimum(objective)
    if "hop-bytes" in objective:
        assert report.evaluation.hop_bytes == 8.0  # every byte crosses one link
    show_placement(report)
    assert "optimal: it meets the certified bounds" in capsys.readouterr().out
    assert placement_to_json(report, [])["optimal"] is True


@pytest.mark.usefixtures("processes")
def test_all_workers_end_when_one_has_met_the_bounds() -> None:
    check_optimum("hop-bytes", workers=2)


def test_optimal_ranks_in_order_are_not_searched_and_other_distances_have_no_bound() -> None:
    options = SearchOptions(objective="hop-bytes", seconds=200.0)
    report = report_placement(around(range(8), range(8), options=options))
    assert (report.placement.steps, report.placement.strategy, report.is_optimal) == (0, "in-order", True)
    options = SearchOptions(objective="hop-bytes", steps=1000)
    case = around(*MIXED, costs=CostModel(distance="switches"), options=options)
    assert not report_placement(case).is_optimal


RING = torus((16,))


def case_with(profile: Profile, fabric: Fabric = RING, slots: int = 1, **options: object) -> PlacementCase:
    return PlacementCase(
        fabric=fabric,
        profile=profile,
        allocation=Allocation.of(fabric, fabric.hosts, slots),
        options=SearchOptions(**options),  # type: ignore[arg-type]
    )


def far_pairs(count: int) -> Profile:
    """Return pairs of ranks half the ranks apart, so that ranks in order are far worse than at random."""
    half = count // 2
    return Profile.from_edges(range(half), range(half, count), [1.0] * half, ranks=count)


@pytest.mark.parametrize(
    ("objective", "metrics"),
    [
        ("congestion", ["congestion_seconds"]),
        ("hop-bytes", ["hop_bytes"]),
        ("congestion+hop-bytes", ["congestion_seconds", "hop_bytes"]),
        ("max-dilation", ["max_dilation"]),
    ],
)
def test_a_search_that_finds_nothing_returns_the_best_row(
    objective: str, metrics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(case: PlacementCase, *_: object) -> Placement:
        return replace(in_order(case.profile.ranks, case.allocation), objective=objective)

    monkeypatch.setattr(report, "find_placement", nothing)
    case = case_with(far_pairs(16), objective=objective)
    found = report_placement(case)
    straight = found.in_order
    assert straight is not None
    rows = [evaluate_on(case, random_placement(16, case.allocation, seed)) for seed in RANDOM_SEEDS]

    def value(one: Evaluation) -> float:
        return sum(float(getattr(one, metric) / getattr(straight, metric)) for metric in metrics)

    assert value(found.evaluation) == min(value(one) for one in (straight, *rows)) < len(metrics)
    assert (found.placement.strategy, found.placement.objective) == ("random", objective)
    assert found.placement.seed in RANDOM_SEEDS
    assert not found.above_in_order


def test_a_named_strategy_is_shown_as_it_is() -> None:
    found = report_placement(case_with(far_pairs(16), strategies=["in-order"], steps=1))
    assert found.placement.strategy == "in-order"


def test_rows_beside_pinned_ranks_have_them_pinned() -> None:
    case = case_with(far_pairs(16), steps=1)
    case = PlacementCase(
        fabric=case.fabric,
        profile=case.profile,
        allocation=case.allocation,
        options=case.options,
        pins={0: RING.names[8], 8: RING.names[0]},
    )
    found = report_placement(case)
    assert found.placement.host_of_rank[[0, 8]].tolist() == [8, 0]
    assert found.in_order is not None
    assert found.evaluation.congestion_seconds <= found.in_order.congestion_seconds


def test_bounds_of_consecutive_ranks_are_those_of_orders_of_hosts() -> None:
    """A ring of 16 groups of 2 ranks whose groups exchange with the next: in order is best possible.

    Placements that may split groups could keep both partners on one host, so that their bound is zero.
    """
    ranks = np.arange(32)
    profile = Profile.from_edges(ranks, (ranks + 2) % 32, np.ones(32))
    case = case_with(profile, slots=2, consecutive=True, seconds=600.0)  # ends as soon as it is proved best
    found = report_placement(case)
    assert found.evaluation.congestion_seconds == 2.0  # both ranks of a group send over one link
    assert found.bounds["congestion_seconds"].value == pytest.approx(2.0)
    assert found.bounds["hop_bytes"].value == pytest.approx(32.0)
    assert "consecutive ranks" in found.bounds["congestion_seconds"].proof
    assert found.is_optimal
    split = report_placement(case_with(profile, slots=2, steps=50))
    assert split.bounds["congestion_seconds"].value < 2.0
    assert found.random is not None
    assert found.random.hop_bytes == pytest.approx(
        np.mean([_random_order(case, seed) for seed in RANDOM_SEEDS])
    )


def _random_order(case: PlacementCase, seed: int) -> float:
    """Return the hop-bytes of whole hosts in a random order."""
    order = np.random.default_rng(seed).permutation(16)
    hosts = np.repeat(case.allocation.hosts[order], 2)
    return evaluate_on(
        case, Placement(host_of_rank=hosts, allocation=case.allocation, strategy="given")
    ).hop_bytes
