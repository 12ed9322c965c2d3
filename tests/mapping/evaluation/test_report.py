"""Several placements on one set of routes, and what differs between them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given

import mapping
from almanac.output.json.placements import compared_metrics_to_json, placement_to_json
from almanac.output.placements import show_placement
from mapping.distances.cost_model import CostModel
from mapping.evaluation.loaded_links import differences
from mapping.evaluation.metrics import case_bounds, evaluate_on
from mapping.evaluation.report import RANDOM_SEEDS, PlacementReport, report_placement
from mapping.placement.case import PlacementCase
from mapping.placement.problem.problem import Problem
from mapping.placement.search.options import SearchOptions
from mapping.placement.strategies.baselines import in_order, random_placement
from mapping.routing.catalog import build_routes
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Evaluation, Ints, Metrics, Placement, Profile
from tests.support.search_problems import placed_problems, ring
from tests.support.small_fabrics import cabled, given_placement
from tests.support.sure import sure


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


def test_optimal_ranks_in_order_are_not_searched() -> None:
    options = SearchOptions(objective="hop-bytes", seconds=200.0)
    report = report_placement(around(range(8), range(8), options=options))
    assert (report.placement.steps, report.placement.strategy, report.is_optimal) == (0, "in-order", True)


def test_hop_bytes_by_other_distances_have_no_bound() -> None:
    options = SearchOptions(objective="hop-bytes", steps=1000)
    case = around(*MIXED, costs=CostModel(distance="switches"), options=options)
    assert not report_placement(case).is_optimal
