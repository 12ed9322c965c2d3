"""Run several chains of strategies on one budget and keep the best placement, judged exactly.

Figure 4 of Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel
architectures", 2011: each process runs a strategy or refines one, and the best of all wins. Here members
are dealt to lanes, one a worker; a lane's members share its time. The best so far is kept at all times:
an interrupt loses nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from queue import SimpleQueue

import numpy as np

from mapping.placement.problem.objective import Objective, better, score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Found
from mapping.placement.search.executors import THREADS, Crew, Executor, Future, crew
from mapping.placement.search.lanes import Member, Outcome, Task, Tried, Turn, run_lane
from registry.model import Ints
from registry.progress import Progress

__all__ = ["Limits", "Member", "Portfolio", "Result"]

TICK = 0.1
"""Seconds between two looks at lanes that run elsewhere."""
PATIENCE = 2.0
"""Seconds that lanes have, after an interrupt, to hand over what they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a portfolio stops, and on what it runs.

    Attributes
    ----------
    begin : float
        Moment of ``time.perf_counter()``.
    seconds : float
        From then.
    steps : int or None
        Proposals in all; then `seconds` is not looked at.
    workers : int
        Lanes at a time; where there are fewer members, their refiners get the threads that are left.
    """

    begin: float
    seconds: float
    steps: int | None = None
    workers: int = 1

    def later(self, seconds: float) -> Limits:
        """The same, begun so many seconds later."""
        return replace(self, begin=self.begin + seconds)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """The best placement of a portfolio.

    Attributes
    ----------
    host_of_rank : int32[ranks]
        Host indices.
    chain : str
        Who found it.
    steps : int
        Proposals made by all members.
    complete : bool
        False after an interrupt.
    tried : tuple of Tried
        Best placement of each baseline and member that was judged.
    """

    host_of_rank: Ints
    chain: str
    steps: int
    complete: bool
    tried: tuple[Tried, ...] = ()


class Portfolio:
    """One run over a problem.

    Parameters
    ----------
    problem : Problem
    objective : Objective
    baselines : mapping of str to int32[ranks]
        Placements (host indices) by name, pins honoured. The first is where chains without a strategy
        start, what sums of metrics are relative to, and what an interrupt before anything was judged
        returns.
    limits : Limits
    progress : Progress
        Called in the caller's thread.
    executor : str or Executor
        See `mapping.placement.search.executors`.
    """

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        baselines: Mapping[str, Ints],
        limits: Limits,
        progress: Progress,
        executor: str | Executor = THREADS,
    ) -> None:
        self._problem = problem
        self._objective = objective
        self._baselines = baselines
        self._limits = limits
        self._progress = progress
        self._executor = executor
        self._origin, self._start = next(iter(baselines.items()))
        self._tried: list[Tried] = []
        self._lowest: float | None = None
        self._judging = 0.0
        self._steps = 0
        self._taken = 0

    def run(self, members: Sequence[Member], seed: int, *, guards: Collection[str]) -> Result:
        """Run the members and return the best placement of all.

        Parameters
        ----------
        guards : collection of str
            Baselines, of those there are, that the result is never worse than.

        Raises
        ------
        DisconnectedAllocation, UnreachablePair
        """
        complete = True
        try:
            for name, hosts in self._baselines.items():
                self._judge_baseline(name, hosts, guards)
            complete = self._run(self._lanes(members, seed))
        except KeyboardInterrupt:
            complete = False
        best = self._best()
        hosts, name = (self._start, self._origin) if best is None else (best.host_of_rank, best.chain)
        return Result(
            host_of_rank=hosts, chain=name, steps=self._steps, complete=complete, tried=tuple(self._tried)
        )

    def _judge_baseline(self, name: str, hosts: Ints, guards: Collection[str]) -> None:
        wanted = any(len(level) > 1 for level in self._objective.asked) and self._objective.reference is None
        if name not in guards and not wanted:
            return
        begin = time.perf_counter()
        found = score(self._problem, hosts)
        self._judging = time.perf_counter() - begin
        if wanted:
            self._objective = self._objective.relative_to(found)
        if name in guards:
            self._keep(Outcome((Tried(-1, hosts, name, found),), 0, True))

    def _lanes(self, members: Sequence[Member], seed: int) -> list[tuple[Turn, ...]]:
        """The members, dealt heaviest first to the lane that has least; in their own order within a lane."""
        seeds = np.random.SeedSequence(seed).spawn(len(members))
        steps = _steps(members, self._limits.steps)
        turns = [Turn(*of) for of in zip(range(len(members)), members, seeds, steps, strict=True)]
        lanes: list[list[Turn]] = [[] for _ in range(min(self._limits.workers, len(members)))]
        for turn in sorted(turns, key=lambda turn: -turn.member.weight):
            min(lanes, key=lambda lane: sum(other.member.weight for other in lane)).append(turn)
        return [tuple(sorted(lane, key=lambda turn: turn.place)) for lane in lanes]

    def _run(self, lanes: Sequence[tuple[Turn, ...]]) -> bool:
        if len(lanes) == 1 and isinstance(self._executor, str) and self._executor == THREADS:
            outcome = run_lane(self._task(lanes[0], self._limits.workers, _never), self._tell)
            self._keep(outcome)
            return outcome.complete
        with crew(self._executor, len(lanes)) as elsewhere:
            return self._run_elsewhere(lanes, elsewhere)

    def _run_elsewhere(self, lanes: Sequence[tuple[Turn, ...]], elsewhere: Crew) -> bool:
        threads = max(self._limits.workers // len(lanes), 1)
        tasks = [self._task(lane, threads, elsewhere.stop) for lane in lanes]
        told: SimpleQueue[tuple[str, int, Found | None]] = SimpleQueue()
        if elsewhere.shares_memory:
            more = [(task, lambda *of: told.put(of)) for task in tasks]
            futures = [elsewhere.executor.submit(run_lane, *of) for of in more]
        else:
            futures = [elsewhere.executor.submit(run_lane, task) for task in tasks]
        try:
            while not all(future.done() for future in futures):
                _wait(futures)
                self._tell_all(told)
        except KeyboardInterrupt:
            elsewhere.stop.set()
            self._gather(futures, PATIENCE)
            return False
        self._tell_all(told)
        return self._gather(futures, None)

    def _gather(self, futures: Sequence[Future], patience: float | None) -> bool:
        """Keep what lanes return within so many seconds in all; whether they all came to their end."""
        complete, end = True, time.perf_counter() + (patience or 0.0)
        for future in futures:
            try:
                left = None if patience is None else max(end - time.perf_counter(), 0.0)
                outcome = future.result(left)
            except (NotYet, TimeoutError):
                complete = False
                continue
            self._keep(outcome)
            complete = complete and outcome.complete
        return complete

    def _task(self, lane: tuple[Turn, ...], threads: int, stop: Callable[[], bool]) -> Task:
        limits = self._limits
        return Task(
            problem=self._problem,
            objective=self._objective,
            turns=lane,
            start=self._start,
            origin=self._origin,
            deadline=time.time() + limits.begin + limits.seconds - time.perf_counter(),
            judging=self._judging,
            workers=threads,
            stop=stop,
        )

    def _keep(self, outcome: Outcome) -> None:
        """Take over what was found; what an interrupt left unjudged is judged now."""
        self._steps += outcome.steps
        for one in outcome.tried:
            judged = one if one.score else one._replace(score=score(self._problem, one.host_of_rank))
            self._tried.append(judged)
        self._tell(outcome.tried[-1].chain if outcome.tried else "", 0, None)

    def _best(self) -> Tried | None:
        """The best that was judged; of equals the first member's."""
        best = None
        for one in sorted(self._tried, key=lambda tried: tried.place):
            if best is None or (one.score and best.score and better(self._objective, one.score, best.score)):
                best = one
        return best

    def _tell_all(self, told: SimpleQueue[tuple[str, int, Found | None]]) -> None:
        while not told.empty():
            self._tell(*told.get())

    def _tell(self, phase: str, taken: int, found: Found | None) -> None:
        self._taken += taken
        values = [self._objective.value(one.score) for one in self._tried if one.score]
        term, *more = self._objective.asked[0]
        if found is not None and not more and found.metric == term.field:
            values.append(found.value)
        if values and (self._lowest is None or min(values) < self._lowest):
            self._lowest = min(values)
        limits = self._limits
        if limits.steps is not None:
            self._progress(phase, self._taken, limits.steps, self._lowest)
        else:
            self._progress(phase, time.perf_counter() - limits.begin, limits.seconds, self._lowest)


def _steps(members: Sequence[Member], steps: int | None) -> list[tuple[int, ...] | None]:
    """Proposals of each refiner of each member: by weight, all of them used."""
    if steps is None:
        return [None] * len(members)
    weights = np.array([weight for member in members for weight in member.weights])
    ends = np.rint(steps * np.cumsum(weights) / weights.sum()).astype(np.int64) if len(weights) else weights
    parts = iter(np.diff(ends, prepend=0).tolist())
    return [tuple(int(next(parts)) for _ in member.weights) for member in members]


def _wait(futures: Sequence[Future]) -> None:
    """Until the first that runs is done, or a tick has passed."""
    running = next((future for future in futures if not future.done()), None)
    if running is not None:
        with contextlib.suppress(NotYet, TimeoutError):
            running.result(TICK)


def _never() -> bool:
    return False
