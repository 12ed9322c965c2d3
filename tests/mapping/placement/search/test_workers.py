"""Members that one worker runs one after another, and the kernels that they load."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from mapping.deadline import Deadline
from mapping.placement.catalog import Chain
from mapping.placement.kernels import congestion_descent as kernels
from mapping.placement.partition import multicore
from mapping.placement.problem.objective import parse_objective
from mapping.placement.refine import congestion_descent
from mapping.placement.refine.link_loads import LoadSearch
from mapping.placement.search.executors import StopFile
from mapping.placement.search.workers import Member, MemberResult, load_kernels, run_members, warm_up
from tests.support.search_problems import problem_on, ring


def test_a_worker_ends_when_it_is_stopped_and_reports_it(tmp_path: Any) -> None:
    stop = StopFile(str(tmp_path / "stop"))
    fabric, profile, allocation = ring(12, 12)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    chain = Chain.parse("random+pair-exchange")
    members = tuple(
        Member(chain=chain, number=number, seed=np.random.SeedSequence(number)) for number in (0, 1)
    )
    deadline = pickle.loads(pickle.dumps(Deadline(seconds=60.0, stop=stop)))
    calls = 0

    def report(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            stop.set()

    start = MemberResult(-1, problem.slot_host, "in-order", None)
    outcome = run_members(problem, parse_objective("hop-bytes"), members, start, deadline, 0.0, report)
    assert not outcome.complete
    assert {one.number for one in outcome.members} == {0}  # the second never began
    assert outcome.steps > 0


def test_members_keep_their_best_placement_and_count_steps() -> None:
    fabric, profile, allocation = ring(6, 6)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = MemberResult(-1, problem.slot_host[::-1].copy(), "reversed", None)
    members = (
        Member(chain=Chain.parse("in-order")),
        Member(chain=Chain.parse("pair-exchange"), number=1, steps=(30,)),
    )
    found = run_members(problem, parse_objective("hop-bytes"), members, start, Deadline(steps=30), 0.0)
    assert found.complete
    assert [one.number for one in found.members] == [0, 1]
    assert found.members[0].chain == "in-order"
    assert found.members[1].chain in {"reversed", "reversed+pair-exchange"}
    assert found.members[0].host_of_rank.tolist() == list(range(6))
    assert found.steps == 30


def test_steps_that_a_refiner_leaves_are_the_next_ones() -> None:
    fabric, profile, allocation = ring(6, 6)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = MemberResult(-1, problem.slot_host, "in-order", None)
    chain = Chain.parse("digit-search+pair-exchange")
    alone = (Member(chain=Chain.parse("digit-search"), steps=(500,)),)
    hops = parse_objective("hop-bytes")
    assert run_members(problem, hops, alone, start, Deadline(steps=500), 0.0).steps < 500
    both = (Member(chain=chain, steps=(500, 100)),)
    assert run_members(problem, hops, both, start, Deadline(steps=600), 0.0).steps == 600


@pytest.mark.parametrize("deadline", [Deadline(seconds=0.0), Deadline(seconds=5.0, steps=0)])
def test_a_refiner_without_time_is_not_begun(deadline: Deadline, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, profile, allocation = ring(6, 6)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    monkeypatch.setattr(LoadSearch, "__init__", lambda *_: pytest.fail("it prepares loads"))
    member = Member(
        chain=Chain.parse("in-order+congestion-descent"), steps=None if deadline.steps is None else (0,)
    )
    start = MemberResult(-1, problem.slot_host[::-1].copy(), "reversed", None)
    found = run_members(problem, parse_objective("congestion"), (member,), start, deadline, 0.0)
    assert (found.chain, found.complete, found.steps) == ("in-order", True, 0)
    assert found.host_of_rank.tolist() == list(range(6))


def test_a_refiner_without_steps_costs_the_next_one_nothing() -> None:
    fabric, profile, allocation = ring(6, 6)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = MemberResult(-1, problem.slot_host, "in-order", None)
    member = Member(chain=Chain.parse("random+digit-search+pair-exchange"), steps=(0, 300))
    hops = parse_objective("hop-bytes")
    found = run_members(problem, hops, (member,), start, Deadline(steps=300), 0.0)
    assert (found.chain, found.steps) == ("random+pair-exchange", 300)


def test_kernels_are_loaded_once_for_the_same_members() -> None:
    members = (Member(chain=Chain.parse("random")),)
    warm_up("shortest-paths", members, 1)
    hits = warm_up.cache_info().hits
    warm_up("shortest-paths", members, 1)
    assert warm_up.cache_info().hits == hits + 1


def test_the_kernel_that_corrects_parts_is_loaded_before_the_clock_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[int] = []
    monkeypatch.setattr(multicore, "repair", lambda *_: called.append(1))
    warm_up.__wrapped__("shortest-paths", (Member(chain=Chain.parse("layout")),), 1)
    assert called


def test_kernels_for_routes_that_do_not_fit_are_loaded_before_the_clock_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    origins: list[object] = []
    monkeypatch.setattr(congestion_descent, "has_all_routes", lambda problem: False)
    monkeypatch.setattr(kernels, "exchange_on_congestion", lambda *given: origins.append(given[5]))
    fabric, profile, allocation = ring(6, 6)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    warm_up.cache_clear()
    for chain in ("in-order+pair-exchange", "in-order+congestion-descent"):
        load_kernels(problem, (Member(chain=Chain.parse(chain)),), 1)
    warm_up.cache_clear()
    assert len(origins) == 2
    assert None not in origins
