"""Several placements on one set of routes, and what differs between them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import mapping
from mapping.evaluation.comparing import compared, differences
from mapping.evaluation.judging import Judge
from mapping.evaluation.report import RANDOM_SEEDS
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies.in_order import in_order
from mapping.placement.strategies.random import random_placement
from mapping.routing.catalog import build_routes
from mapping.service.answers.answering import solve
from mapping.service.answers.case import Case, Search
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Evaluation, Ints, Metrics, Placement
from tests.support.search_problems import ring, seated


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


@given(case=seated())
def test_a_placement_is_judged_as_by_evaluate(case: tuple[Problem, Ints]) -> None:
    problem, hosts = case
    fabric, allocation, name = problem.routes.fabric, problem.allocation, problem.routes.name
    placement = Placement(host_of_rank=allocation.hosts[hosts], allocation=allocation, strategy="given")
    judge = Judge(fabric, problem.profile, allocation, routing=name)
    known = mapping.evaluate(fabric, problem.profile, placement, routing=name, bounds=True)
    same(judge.evaluate(placement, bounds=True), known)


def test_seven_placements_need_one_set_of_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, profile, allocation = ring(6, 6)
    built = 0

    def counted(*of: Any, **more: Any) -> Any:
        nonlocal built
        built += 1
        return build_routes(*of, **more)

    monkeypatch.setattr("mapping.evaluation.judging.build_routes", counted)
    judge = Judge(fabric, profile, allocation, routing="shortest-paths")
    judge.evaluate(in_order(6, allocation), bounds=True)
    baseline, randomly = judge.in_order(), judge.at_random()
    assert built == 1
    same(baseline, mapping.evaluate(fabric, profile, in_order(6, allocation)))
    several = [random_placement(6, allocation, seed) for seed in RANDOM_SEEDS]
    known = Metrics.mean([Metrics.of(mapping.evaluate(fabric, profile, one)) for one in several])
    assert randomly.told() == pytest.approx(known.told())


def test_a_search_and_what_is_said_of_its_result_share_their_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, profile, allocation = ring(6, 6)
    built = []

    def counted(*of: Any, **more: Any) -> Any:
        built.append(build_routes(*of, **more))
        return built[-1]

    monkeypatch.setattr("mapping.evaluation.judging.build_routes", counted)
    monkeypatch.setattr("mapping.placement.search.posing.build_routes", counted)
    found = solve(Case(profile=profile, fabric=fabric, allocation=allocation), Search(steps=100))
    assert len(built) == 1
    placed = mapping.place(fabric, profile, allocation, steps=100)
    assert found.placement.host_of_rank.tolist() == placed.host_of_rank.tolist()


def test_a_host_that_is_not_of_the_allocation_is_named() -> None:
    fabric, profile, _ = ring(6, 3)
    judge = Judge(fabric, profile, Allocation.of(fabric, [0, 1, 2]), routing="shortest-paths")
    with pytest.raises(InvalidPlacement, match="n05"):
        judge.evaluate(in_order(3, Allocation.of(fabric, [0, 1, 5])))


@given(case=seated())
def test_links_are_told_by_the_difference_of_their_times(case: tuple[Problem, Ints]) -> None:
    problem, hosts = case
    fabric, profile, allocation = problem.routes.fabric, problem.profile, problem.allocation
    judge = Judge(fabric, profile, allocation, routing=problem.routes.name)
    given_one = Placement(host_of_rank=allocation.hosts[hosts], allocation=allocation, strategy="given")
    three = [judge.evaluate(one) for one in (given_one, in_order(profile.ranks, allocation), given_one)]
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
    assert compared(one)["loaded_links"] == int((one.link_bytes > 0).sum())
