"""Several placements on one set of routes, and what differs between them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import mapping
from almanac.output.json.placements import compared_metrics_to_json, placement_to_json
from almanac.output.placements import show_placement
from mapping.distances.cost_model import CostModel
from mapping.evaluation.loaded_links import differences
from mapping.evaluation.metrics import case_bounds, evaluate_on
from mapping.evaluation.report import RANDOM_SEEDS, report_placement
from mapping.placement.case import PlacementCase
from mapping.placement.problem.problem import Problem
from mapping.placement.search.options import SearchOptions
from mapping.placement.strategies.baselines import in_order, random_placement
from mapping.routing.catalog import build_routes
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Evaluation, Fabric, Ints, Metrics, Placement, Profile
from tests.support.search_problems import placed_problems, ring


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


@given(case=placed_problems())
def test_a_case_evaluates_a_placement_as_evaluate_does(case: tuple[Problem, Ints]) -> None:
    problem, hosts = case
    fabric, allocation, name = problem.routes.fabric, problem.allocation, problem.routes.name
    placement = Placement(host_of_rank=allocation.hosts[hosts], allocation=allocation, strategy="given")
    on_routes = PlacementCase(
        fabric=fabric, profile=problem.profile, allocation=allocation, costs=CostModel(routing=name)
    )
    known = mapping.evaluate(fabric, problem.profile, placement, costs=CostModel(routing=name), bounds=True)
    same(evaluate_on(on_routes, placement, case_bounds(on_routes)), known)


def test_seven_placements_need_one_set_of_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, profile, allocation = ring(6, 6)
    built = 0

    def counted(*of: Any, **more: Any) -> Any:
        nonlocal built
        built += 1
        return build_routes(*of, **more)

    monkeypatch.setattr("mapping.distances.cost_model.build_routes", counted)
    options = SearchOptions(strategies=["random"], steps=1)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, options=options)
    found = report_placement(case)
    assert built == 1
    assert found.in_order is not None
    assert found.random is not None
    straight = mapping.evaluate(fabric, profile, in_order(6, allocation))
    same(found.in_order, straight)
    same(found.evaluation, mapping.evaluate(fabric, profile, found.placement, bounds=True))
    several = [random_placement(6, allocation, seed) for seed in RANDOM_SEEDS]
    known = Metrics.mean([Metrics.of(mapping.evaluate(fabric, profile, one)) for one in several])
    assert dataclasses.asdict(found.random) == pytest.approx(dataclasses.asdict(known))


def two_pairs() -> PlacementCase:
    """Two hosts on each of two switches; ranks 0 and 1, and 2 and 3, send each other 10 bytes."""
    fabric = Fabric.from_arcs(
        ["a", "b", "c", "d", "left", "right"],
        [0, 1, 2, 3, 4, 4, 5, 5, 4, 5],
        [4, 4, 5, 5, 0, 1, 2, 3, 5, 4],
        1.0,
        slots=[1] * 4 + [0] * 2,
        forwards=[False] * 4 + [True] * 2,
    )
    return PlacementCase(
        fabric=fabric,
        profile=Profile.from_edges([0, 1, 2, 3], [1, 0, 3, 2], [10.0] * 4, ranks=4, name="pairs"),
        allocation=Allocation.of(fabric, range(4)),
    )


@pytest.mark.parametrize(
    ("objective", "above"),
    [
        ("congestion", {"congestion": 1.0, "network-congestion": math.inf, "hop-bytes": 0.5}),
        ("hop-bytes", {"hop-bytes": 0.5, "congestion": 1.0, "network-congestion": math.inf}),
        (
            "max-dilation",
            {"max-dilation": 0.5, "congestion": 1.0, "network-congestion": math.inf, "hop-bytes": 0.5},
        ),
    ],
)
def test_a_named_strategy_that_ends_worse_than_ranks_in_order_is_reported(
    objective: str, above: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    """In order no byte crosses between switches: 4 x 10 bytes over 2 links, 10 on each.

    One rank a switch in turn, all cross: 4 x 10 bytes over 3 links, 20 on each of the two between switches.
    """
    options = SearchOptions(objective=objective, strategies=["round-robin:over=switches"], steps=1)
    found = report_placement(dataclasses.replace(two_pairs(), options=options))
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


def test_a_sentence_names_the_distance_if_it_is_not_that_of_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """4 x 10 bytes over one switch in order, over two otherwise."""
    options = SearchOptions(objective="hop-bytes", strategies=["round-robin:over=switches"], steps=1)
    case = dataclasses.replace(two_pairs(), options=options, costs=CostModel(distance="switches"))
    found = report_placement(case)
    assert found.above_in_order["hop-bytes"] == 1.0
    show_placement(found)
    assert "hop-bytes (switches) 100% above" in capsys.readouterr().out


def test_a_result_that_is_not_worse_than_ranks_in_order_is_not_reported_as_such(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for strategies in (["in-order"], None):
        options = SearchOptions(strategies=strategies, steps=10)
        found = report_placement(dataclasses.replace(two_pairs(), options=options))
        assert found.above_in_order == {}
        show_placement(found)
    assert "worse" not in capsys.readouterr().out


def test_a_search_and_the_evaluation_of_its_result_share_their_routes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fabric, profile, allocation = ring(6, 6)
    built = []

    def counted(*of: Any, **more: Any) -> Any:
        built.append(build_routes(*of, **more))
        return built[-1]

    monkeypatch.setattr("mapping.distances.cost_model.build_routes", counted)
    options = SearchOptions(steps=100)
    case = PlacementCase(profile=profile, fabric=fabric, allocation=allocation, options=options)
    found = report_placement(case)
    assert len(built) == 1
    placed = mapping.place(fabric, profile, allocation, SearchOptions(steps=100))
    assert found.placement.host_of_rank.tolist() == placed.host_of_rank.tolist()


def test_a_host_that_is_not_of_the_allocation_is_named() -> None:
    fabric, profile, _ = ring(6, 3)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=Allocation.of(fabric, [0, 1, 2]))
    with pytest.raises(InvalidPlacement, match="n05"):
        evaluate_on(case, in_order(3, Allocation.of(fabric, [0, 1, 5])))


@given(case=placed_problems())
def test_links_are_ordered_by_the_difference_of_their_times(case: tuple[Problem, Ints]) -> None:
    problem, hosts = case
    fabric, profile, allocation = problem.routes.fabric, problem.profile, problem.allocation
    costs = CostModel(routing=problem.routes.name)
    on_routes = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, costs=costs)
    given_one = Placement(host_of_rank=allocation.hosts[hosts], allocation=allocation, strategy="given")
    straight = in_order(profile.ranks, allocation)
    three = [evaluate_on(on_routes, one) for one in (given_one, straight, given_one)]
    found = differences(fabric, three)
    seconds = [one.link_bytes / fabric.links.capacity for one in three]
    wanted = {
        row: max(one[row] for one in seconds) - min(one[row] for one in seconds)
        for row in range(len(fabric.links))
    }
    assert {difference.row for difference in found} == {row for row, value in wanted.items() if value > 0}
    assert [difference.seconds for difference in found] == sorted(
        (wanted[difference.row] for difference in found), reverse=True
    )
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


def shuffled_ring(ranks: int = 8) -> tuple[Fabric, Profile, Allocation]:
    """Return ranks that send to the next one around a ring of as many hosts, in a mixed order of numbers."""
    fabric, _, allocation = ring(ranks, ranks)
    order = np.random.default_rng(1).permutation(ranks)
    return fabric, Profile.from_edges(order, np.roll(order, 1), np.ones(ranks)), allocation


@pytest.mark.parametrize("objective", ["hop-bytes", "congestion", "congestion,hop-bytes"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_ends_when_a_placement_meets_its_certified_bounds(
    objective: str, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    fabric, profile, allocation = shuffled_ring()
    options = SearchOptions(objective=objective, seconds=200.0, workers=workers)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, options=options)
    report = report_placement(case)
    assert report.is_optimal
    assert report.placement.complete
    assert report.placement.seconds < 100.0
    assert report.evaluation.congestion_seconds == 1.0
    if "hop-bytes" in objective:
        assert report.evaluation.hop_bytes == 8.0  # every byte crosses one link
    show_placement(report)
    assert "optimal: it meets the certified bounds" in capsys.readouterr().out
    assert placement_to_json(report, [])["optimal"] is True


def test_optimal_ranks_in_order_are_not_searched() -> None:
    fabric, profile, _ = ring(8, 8)
    allocation = Allocation.of(fabric, list(range(8)))
    options = SearchOptions(objective="hop-bytes", seconds=200.0)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, options=options)
    report = report_placement(case)
    assert (report.placement.steps, report.placement.strategy, report.is_optimal) == (0, "in-order", True)


def test_hop_bytes_by_other_distances_have_no_bound() -> None:
    fabric, profile, allocation = shuffled_ring()
    case = PlacementCase(
        fabric=fabric,
        profile=profile,
        allocation=allocation,
        costs=CostModel(distance="switches"),
        options=SearchOptions(objective="hop-bytes", steps=1000),
    )
    assert not report_placement(case).is_optimal
