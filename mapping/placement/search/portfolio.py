"""Run several chains of strategies under one limit and keep the best placement, scored exactly.

Figure 4 of Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel
architectures", 2011: each process runs a strategy or refines a placement, and the best of all wins. Here
the members are divided over workers; the members of one worker share its time. The best placement so far
is always kept, so that an interrupt loses nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field, replace
from queue import SimpleQueue

import numpy as np

from mapping.cluster import TaskStopped
from mapping.deadline import Deadline
from mapping.placement.problem.objective import Objective, better, score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Candidate
from mapping.placement.search.executors import THREADS, Executor, Future, WorkerPool, worker_pool
from mapping.placement.search.workers import Member, MemberResult, SearchResult, run_members
from registry.model import Ints
from registry.progress import Progress

TICK = 0.1
"""Seconds between two checks of the workers."""


@dataclass(slots=True, eq=False)
class Portfolio:
    """One run of several members on a problem.

    Attributes
    ----------
    problem : Problem
    objective : Objective
    baselines : mapping of str to int32[ranks]
        Placements (host indices) by name, with pinned ranks on their hosts. Chains without a strategy
        start from the first; sums of metrics are relative to it; it is the result if an interrupt comes
        before anything was scored.
    deadline : Deadline
        Its workers are the members that run at a time; refiners of fewer members get the other threads.
    progress : Progress
        Called in the caller's thread.
    executor : str or Executor
        See `mapping.placement.search.executors`.
    """

    problem: Problem
    objective: Objective
    baselines: Mapping[str, Ints]
    deadline: Deadline
    progress: Progress
    executor: str | Executor = THREADS
    _results: list[MemberResult] = field(default_factory=list, init=False)
    _lowest: float | None = field(default=None, init=False)
    _scoring_seconds: float = field(default=0.0, init=False)
    _steps: int = field(default=0, init=False)
    _reported_steps: int = field(default=0, init=False)

    @property
    def _start(self) -> MemberResult:
        """The first baseline, not scored."""
        name, hosts = next(iter(self.baselines.items()))
        return MemberResult(-1, hosts, name, None)

    def run(self, members: Sequence[Member], seed: int, *, guards: Collection[str]) -> SearchResult:
        """Run the members and return the best placement of all.

        Parameters
        ----------
        guards : collection of str
            Names of baselines; the result is never worse than those of them that exist.

        Raises
        ------
        DisconnectedAllocation, UnreachablePair
        """
        complete = False
        with self.deadline.interruptible():
            for name, hosts in self.baselines.items():
                self._score_baseline(name, hosts, guards)
            scores = (one.score for one in self._results)
            complete = any(found is not None and self.objective.is_optimal(found) for found in scores)
            complete = complete or self._run(self._divide(members, seed))
        if not self._results:
            return SearchResult((self._start,), self._steps, complete)
        return SearchResult(tuple(self._results), self._steps, complete, self._best())

    def _score_baseline(self, name: str, hosts: Ints, guards: Collection[str]) -> None:
        """Score a baseline if it guards the result, or if a sum of metrics needs a reference."""
        levels = self.objective.asked
        is_reference = any(len(level) > 1 for level in levels) and self.objective.reference is None
        if name not in guards and not is_reference:
            return
        begin = time.perf_counter()
        found = score(self.problem, hosts)
        self._scoring_seconds = time.perf_counter() - begin
        if is_reference:
            self.objective = self.objective.relative_to(found)
        if name in guards:
            self._keep(SearchResult((MemberResult(-1, hosts, name, found),), 0, True))

    def _divide(self, members: Sequence[Member], seed: int) -> list[tuple[Member, ...]]:
        """Divide members over workers, the heaviest first to the worker with the least, and seed them."""
        seeds = np.random.SeedSequence(seed).spawn(len(members))
        steps = _steps(members, self.deadline.steps)
        seeded = [
            replace(member, number=number, seed=own_seed, steps=own_steps)
            for number, (member, own_seed, own_steps) in enumerate(zip(members, seeds, steps, strict=True))
        ]
        parts: list[list[Member]] = [[] for _ in range(min(self.deadline.workers, len(members)))]
        for member in sorted(seeded, key=lambda member: -member.weight):
            min(parts, key=lambda part: sum(other.weight for other in part)).append(member)
        return [tuple(sorted(part, key=lambda member: member.number)) for part in parts]

    def _run(self, parts: Sequence[tuple[Member, ...]]) -> bool:
        """Run each part of the members in a worker; return True if all came to their end."""
        deadline = self.deadline
        if len(parts) == 1 and isinstance(self.executor, str) and self.executor == THREADS:
            alone = deadline.for_workers(deadline.workers)
            result = run_members(
                self.problem,
                self.objective,
                parts[0],
                self._start,
                alone,
                self._scoring_seconds,
                self._report,
            )
            self._keep(result)
            return result.complete
        with worker_pool(self.executor, len(parts)) as pool:
            return self._run_in_pool(parts, pool)

    def _run_in_pool(self, parts: Sequence[tuple[Member, ...]], pool: WorkerPool) -> bool:
        """Run each part in a worker of the pool, and pass on what the workers report."""
        deadline = self.deadline.for_workers(max(self.deadline.workers // len(parts), 1), pool.stopped)
        reports: SimpleQueue[tuple[str, int, Candidate | None]] = SimpleQueue()
        report = pool.report(lambda *fields: reports.put(fields))
        common = (self._start, deadline, self._scoring_seconds, report, pool.is_remote)
        pool.share(self.problem)
        futures = [
            pool.executor.submit(run_members, self.problem, self.objective, part, *common) for part in parts
        ]
        try:
            while not all(future.done() for future in futures):
                _wait(futures)
                self._report_all(reports)
                if self._may_end(futures):
                    pool.stop()
                    self._gather(futures, pool.patience)
                    return True
        except KeyboardInterrupt:
            pool.stop()
            self._gather(futures, pool.patience)
            return False
        self._report_all(reports)
        return self._gather(futures, None)

    def _may_end(self, futures: Sequence[Future]) -> bool:
        """Return True if a worker has found an optimal placement; with a limit in steps all others go on.

        Which of several optimal placements is returned would otherwise depend on the speed of the workers.
        """
        if self.objective.bounds is None or self.deadline.steps is not None:
            return False
        return any(future.done() and future.result().is_optimal for future in futures)

    def _gather(self, futures: Sequence[Future], patience: float | None) -> bool:
        """Keep the results that workers return within some seconds; return True if all were complete."""
        complete, end = True, time.perf_counter() + (patience or 0.0)
        for future in futures:
            try:
                left = None if patience is None else max(end - time.perf_counter(), 0.0)
                result = future.result(left)
            except (NotYet, TimeoutError, TaskStopped):
                complete = False
                continue
            self._keep(result)
            complete = complete and result.complete
        return complete

    def _keep(self, result: SearchResult) -> None:
        """Add results of a worker; those that an interrupt left without a score are scored now."""
        self._steps += result.steps
        for one in result.members:
            scored = one if one.score else one._replace(score=score(self.problem, one.host_of_rank))
            self._results.append(scored)
        self._report(result.members[-1].chain if result.members else "", 0, None)

    def _best(self) -> int:
        """Return the index of the best result; of equal ones, the first member's."""
        best = None
        for index in sorted(range(len(self._results)), key=lambda index: self._results[index].number):
            found = self._results[index].score
            known = None if best is None else self._results[best].score
            if best is None or (found and known and better(self.objective, found, known)):
                best = index
        return best or 0

    def _report_all(self, reports: SimpleQueue[tuple[str, int, Candidate | None]]) -> None:
        while not reports.empty():
            self._report(*reports.get())

    def _report(self, phase: str, taken: int, candidate: Candidate | None) -> None:
        """Pass progress on to the caller, with the lowest value of the objective so far."""
        self._reported_steps += taken
        values = [self.objective.value(one.score) for one in self._results if one.score]
        term, *more = self.objective.asked[0]
        if candidate is not None and not more and candidate.metric == term.field:
            values.append(candidate.value)
        if values and (self._lowest is None or min(values) < self._lowest):
            self._lowest = min(values)
        limit = self.deadline
        if limit.steps is not None:
            self.progress(phase, self._reported_steps, limit.steps, self._lowest)
        else:
            self.progress(phase, limit.elapsed, limit.seconds, self._lowest)


def _steps(members: Sequence[Member], steps: int | None) -> list[tuple[int, ...] | None]:
    """Return the steps of each refiner of each member: divided by weight, all of them used."""
    if steps is None:
        return [None] * len(members)
    weights = np.array([weight for member in members for weight in member.weights])
    ends = np.rint(steps * np.cumsum(weights) / weights.sum()).astype(np.int64) if len(weights) else weights
    parts = iter(np.diff(ends, prepend=0).tolist())
    return [tuple(int(next(parts)) for _ in member.weights) for member in members]


def _wait(futures: Sequence[Future]) -> None:
    """Wait until the first running worker is done, or a tick has passed."""
    running = next((future for future in futures if not future.done()), None)
    if running is not None:
        with contextlib.suppress(NotYet, TimeoutError):
            running.result(TICK)
