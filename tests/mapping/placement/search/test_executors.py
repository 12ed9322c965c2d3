"""Workers in threads, processes and foreign executors: the same results, nothing lost at an interrupt."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from concurrent.futures import Future
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mapping
from mapping.deadline import Deadline
from mapping.placement.catalog import Chain
from mapping.placement.problem.objective import better, parse_objective, score
from mapping.placement.problem.problem import Problem
from mapping.placement.search import portfolio
from mapping.placement.search.executors import PROCESSES, THREADS, worker_pool
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.portfolio import Portfolio
from mapping.placement.search.workers import Member, SearchResult
from registry.errors import UnknownName
from registry.progress import Progress, silent
from tests.support.search_problems import problem_on, ring

CHAINS = ("random+pair-exchange", "in-order+congestion-descent", "greedy+pair-exchange", "random")


class OneByOne:
    """An executor that is neither of threads nor of processes: pickles what it gets, and runs it at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        call, given = pickle.loads(pickle.dumps((fn, args)))
        done.set_result(call(*given))
        return done


def circle() -> Problem:
    fabric, profile, allocation = ring(12, 12)
    return problem_on(fabric, profile, allocation, "shortest-paths")


@pytest.fixture(autouse=True)
def plain_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages under test put a module of their own in place of __main__, which spawned processes import."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def run(
    problem: Problem,
    *,
    workers: int,
    executor: Any = THREADS,
    progress: Progress = silent,
    steps: int | None = 2000,
    seconds: float = 0.0,
) -> SearchResult:
    members = tuple(Member(chain=Chain.parse(text)) for text in CHAINS)
    deadline = Deadline(seconds=seconds, steps=steps, workers=workers)
    baselines = {"in-order": problem.slot_host[: problem.ranks]}
    objective = parse_objective("hop-bytes")
    run = Portfolio(problem, objective, baselines, deadline, progress, executor)
    return run.run(members, 5, guards=baselines)


def results(result: SearchResult) -> list[tuple[int, str, bytes]]:
    return sorted((one.number, one.chain, one.host_of_rank.tobytes()) for one in result.members)


@pytest.mark.parametrize(
    ("workers", "executor"), [(2, THREADS), (3, THREADS), (4, THREADS), (2, PROCESSES), (3, OneByOne())]
)
def test_results_do_not_depend_on_where_members_run(workers: int, executor: Any) -> None:
    problem = circle()
    alone = run(problem, workers=1)
    found = run(problem, workers=workers, executor=executor)
    assert results(found) == results(alone)
    assert found.host_of_rank.tobytes() == alone.host_of_rank.tobytes()
    assert (found.chain, found.steps, found.complete) == (alone.chain, alone.steps, True)


def test_place_gives_the_same_bytes_in_threads_and_processes() -> None:
    fabric, profile, allocation = ring(9, 9)
    one, two = (
        mapping.place(fabric, profile, allocation, SearchOptions(steps=3000, workers=2, executor=kind))
        for kind in (THREADS, PROCESSES)
    )
    assert one.host_of_rank.tobytes() == two.host_of_rank.tobytes()
    assert one.strategy == two.strategy


def test_an_interrupt_stops_all_threads_and_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "TICK", 0.01)
    seen: list[float] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        seen.append(np.inf if best is None else best)
        if len(seen) == 40:
            raise KeyboardInterrupt

    problem = circle()
    found = run(problem, workers=2, progress=progress, steps=None, seconds=250.0)
    assert not found.complete
    kept = score(problem, found.host_of_rank)
    assert kept.hop_bytes <= min(seen)
    assert not better("hop-bytes", score(problem, problem.slot_host), kept)


def test_a_task_can_be_sent_elsewhere() -> None:
    problem = pickle.loads(pickle.dumps(circle()))
    assert run(problem, workers=1).host_of_rank.tobytes() == run(circle(), workers=1).host_of_rank.tobytes()


def test_an_error_in_a_thread_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("mapping.placement.strategies.baselines.place_at_random", broken)
    with pytest.raises(ZeroDivisionError):
        run(circle(), workers=2)


def test_an_unknown_executor_is_reported_with_the_closest() -> None:
    with pytest.raises(UnknownName) as error, worker_pool("thread", 2):
        pass
    assert error.value.close[0] == "threads"
