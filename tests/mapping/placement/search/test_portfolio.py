"""Budgets, parts, the best of several chains, and interrupts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.deadline import Deadline
from mapping.placement.catalog import STRATEGIES, Chain
from mapping.placement.problem.objective import Score, better, parse_objective, score
from mapping.placement.problem.problem import Problem
from mapping.placement.search.executors import THREADS
from mapping.placement.search.members import FEW, SMALL, Features, default_members
from mapping.placement.search.portfolio import Portfolio
from mapping.placement.search.workers import Member, SearchResult
from registry.errors import UnknownName
from registry.model import Ints
from registry.progress import Progress, silent
from tests.support.search_problems import placed_problems, problem_on, problems, ring

OBJECTIVES = ("congestion", "hop-bytes", "dilation")


def members(*chains: str) -> tuple[Member, ...]:
    return tuple(Member(chain=Chain.parse(text)) for text in chains)


def run(
    problem: Problem,
    chains: tuple[Member, ...],
    *,
    objective: str = "congestion",
    steps: int = 400,
    seed: int = 0,
    start: Ints | None = None,
    guards: bool = True,
    progress: Progress = silent,
    workers: int = 1,
    executor: str = THREADS,
) -> SearchResult:
    baselines = {"in-order": problem.slot_host[: problem.ranks]}
    if start is not None:
        baselines = {"given": start, **baselines}
    deadline = Deadline(steps=steps, workers=workers)
    portfolio = Portfolio(problem, parse_objective(objective), baselines, deadline, progress, executor)
    return portfolio.run(chains, seed, guards=baselines if guards else ())


def circle() -> Problem:
    fabric, profile, allocation = ring(9, 9)
    return problem_on(fabric, profile, allocation, "shortest-paths")


@given(case=placed_problems(), objective=st.sampled_from(sorted(OBJECTIVES)), seed=st.integers(0, 9))
def test_never_worse_than_in_order_or_the_start(
    case: tuple[Problem, Ints], objective: str, seed: int
) -> None:
    problem, start = case
    chains = default_members(parse_objective(objective), Features.of(problem))
    found = run(problem, chains, objective=objective, seed=seed, start=start)
    kept = score(problem, found.host_of_rank)
    for baseline in (start, problem.slot_host[: problem.ranks]):
        assert not better(objective, score(problem, baseline), kept)
    assert found.complete
    assert found.steps <= 400


@given(problem=problems(), seed=st.integers(0, 9))
def test_the_best_member_wins(problem: Problem, seed: int) -> None:
    chains = [entry.name for entry in STRATEGIES if not entry.refines]
    found = run(problem, members(*chains), guards=False, seed=seed)
    kept = score(problem, found.host_of_rank)
    for generator_seed, chain in zip(np.random.SeedSequence(seed).spawn(len(chains)), chains, strict=True):
        entry = Chain.parse(chain).strategy
        assert entry is not None
        alone = entry.strategy()(problem, np.random.default_rng(generator_seed))
        assert not better("congestion", score(problem, alone), kept)


def test_steps_are_shared_by_weight_and_all_are_used() -> None:
    told: dict[str, list[float]] = {}

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        assert total == 1000
        told.setdefault(phase, []).append(done)

    chains = members("in-order+pair-exchange+congestion-descent", "random+pair-exchange")
    found = run(circle(), chains, steps=1000, progress=progress)
    last = {phase: max(done) for phase, done in told.items()}
    assert last["in-order+pair-exchange"] == 250  # 1 : 1 within the chain and between the two
    assert last["in-order+pair-exchange+congestion-descent"] == 500
    assert last["random+pair-exchange"] == 1000
    assert found.steps == 1000


def test_progress_reports_a_best_that_only_falls_and_is_the_result() -> None:
    told: list[float] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if best is not None:
            told.append(best)

    problem = circle()
    chains = members("random+pair-exchange", "in-order+pair-exchange")

    found = run(problem, chains, objective="hop-bytes", steps=2000, progress=progress)
    assert told == sorted(told, reverse=True)
    assert told[-1] == score(problem, found.host_of_rank).hop_bytes


@pytest.mark.parametrize("call", [1, 2, 3, 10, 60, 130, 190])
def test_an_interrupt_keeps_the_best_so_far(call: int) -> None:
    problem, calls, seen = circle(), 0, np.inf

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        nonlocal calls, seen
        calls += 1
        seen = min(seen, np.inf if best is None else best)
        if calls == call:
            raise KeyboardInterrupt

    chains = members("random+pair-exchange", "in-order+pair-exchange")
    found = run(problem, chains, objective="hop-bytes", steps=2000, progress=progress)
    assert not found.complete
    kept = score(problem, found.host_of_rank)
    assert kept.hop_bytes <= seen
    assert not better("hop-bytes", score(problem, problem.slot_host[:9]), kept)


def test_an_interrupt_before_all_else_gives_the_first_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Score:
        raise KeyboardInterrupt

    problem = circle()
    start = np.roll(problem.slot_host, 3)
    monkeypatch.setattr("mapping.placement.search.portfolio.score", interrupted)
    found = run(problem, members("greedy"), start=start)
    assert found.host_of_rank.tolist() == start.tolist()
    assert (found.chain, found.complete) == ("given", False)


def test_small_problems_get_several_searches() -> None:
    measured = Features.of(circle())
    for objective in map(parse_objective, OBJECTIVES):
        most = SMALL if "congestion" in str(objective) else FEW
        few, many = (default_members(objective, replace(measured, ranks=ranks)) for ranks in (most, most + 1))
        assert len(few) > len(many) >= 1


def test_objectives_decide_by_metrics_in_order() -> None:
    a, b = Score(1.0, 9.0, 50.0), Score(1.0, 8.0, 60.0)
    assert better("congestion", b, a)
    assert better("hop-bytes", a, b)
    assert better("dilation", a, b)
    assert not better("congestion", a, Score(1.0 + 1e-12, 9.0, 50.0))  # rounding
    assert not better("congestion", a, a)
    with pytest.raises(UnknownName) as error:
        parse_objective("congestoin")
    assert error.value.close[0] == "congestion"


def test_a_budget_of_steps_is_cut_into_a_hundred_rounds() -> None:
    deadline = Deadline(steps=1050)
    taken = []
    while proposals := deadline.claim(1000):
        taken.append(proposals)
    assert taken == [10] * 105
    assert deadline.fraction == 1.0
    assert Deadline(steps=0).claim(5) == 0
    assert Deadline(seconds=-1.0).claim(5) == 0
    assert [Deadline(steps=10**6).claim(300), Deadline(steps=7).claim(300)] == [300, 1]
