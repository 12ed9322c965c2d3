"""Run several chains of strategies under one limit and keep the best placement, scored exactly.

Figure 4 of Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel
architectures", 2011: each process runs a strategy or refines a placement, and the best of all wins. Here
the members are divided over workers; the members of one worker share its time. The best placement so far
is always kept, so that an interrupt loses nothing.

Default members of a portfolio, chosen by measured features of the problem.

Options of a search: what to minimise, with which strategies, how long, and on how many threads.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field, fields, replace
from queue import SimpleQueue
from typing import Any, Self

import numpy as np

from mapping.cluster import Cluster, TaskStopped
from mapping.deadline import Deadline, check_limit, cores
from mapping.distances.distances import EQUIVALENT_2, LINKS
from mapping.placement.candidate import Candidate
from mapping.placement.catalog import Chain, Strategy
from mapping.placement.methods.baselines import place_at_random, place_in_order
from mapping.placement.objective import Objective, better, parse_objective, score
from mapping.placement.problem import Problem
from mapping.placement.workers import (
    THREADS,
    Executor,
    Future,
    Member,
    MemberResult,
    SearchResult,
    WorkerPool,
    run_members,
    worker_pool,
)
from registry.errors import InvalidValue, UnknownName
from registry.model import Ints
from registry.model.views import content, whole_number
from registry.progress import Progress

TICK = 0.1
"""Seconds between two checks of the workers."""


@dataclass(slots=True, eq=False)
class Portfolio:
    """One run of several members on a problem."""

    problem: Problem
    objective: Objective
    baselines: Mapping[str, Ints]
    """mapping of str to int32[ranks]: Placements (host indices) by name, with pinned ranks on their hosts.
    Chains without a strategy start from the first; sums of metrics are relative to it; it is the result if an
    interrupt comes before anything was scored."""
    deadline: Deadline
    """Its workers are the members that run at a time; refiners of fewer members get the other threads."""
    progress: Progress
    """Called in the caller's thread."""
    executor: str | Executor = THREADS
    """See `mapping.placement.workers`."""
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

        Args:
            guards: Names of baselines; the result is never worse than those of them that exist.

        Raises:
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


CONGESTED = {"congestion", "network-congestion", "mean-congestion"}
"""Metrics that the congestion search lowers; the others are left to the one on hop-bytes."""
ORDERS = "digit-search"
"""Refiner that tries orders of digits of rank numbers."""
QUICK = "greedy+congestion-descent"
"""Chain that searches on congestion at once, beside one that computes a better start. One search on all
threads must stay colder: what its workers accept while warm adds up on links that they share. Worst link at
10 s, two searches over one: 0.91 to 0.97 on six instances of 336 to 1,024 ranks, 1.00 on three tori, 0.97 to
1.02 on three of 2,304 and 4,096 ranks; at 30 s 0.73 to 1.00 on these. If the second search starts from the
greedy placement instead of a second layout: 0.87 at 1 s and 1.00 at 10 s on eleven instances."""
SMALL = 256
"""Most ranks for which several searches run: each ends long before the limit, by chance."""
FEW = 640
"""Most ranks for which two searches on hop-bytes, one thread each, end better than one on both: on seven
instances of 336 to 576 ranks 0.964 to 1.001 of it at 6 million steps, on one of 1,024 ranks 1.004."""
WIDE = 2_048
"""Least number of hosts with which a search that starts with few hop-bytes does not find idle links."""
FEW_GROUPS = 128
"""Most switches of hosts with which the result of a search on congestion depends more on its start than on
its length: there are few links, and the rest is chance."""
STARTS = (
    "layout+digit-search:on=congestion+pair-exchange+congestion-descent",
    "spectral+congestion-descent",
    "layout+congestion-descent",
    "layout+digit-search:on=congestion+pair-exchange+congestion-descent",
)
"""Searches with few switches: from ragged parts, from straight blocks, and twice from few hop-bytes."""
MOST_SPECTRAL = 3_000
"""Most ranks whose eigenvectors are computed in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features of a problem by which members are chosen."""

    ranks: int
    hosts: int
    pairs: int
    """Ordered pairs of ranks that send bytes."""
    groups: int
    """Number of host groups with equal distances."""
    free_slots: int
    """Number of slots less ranks."""
    most_slots: int
    """Most slots of a host."""
    spread: float
    """Mean over median of the bytes of a rank: 1 for even guests, large if few ranks have most."""
    scattered: float = np.inf
    """Worst link with ranks on random hosts relative to ranks in order, if no two hosts share a switch and at
    least half of the slots are free; otherwise inf."""

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the features of a problem."""
        talks = np.bincount(np.r_[problem.source, problem.target], np.r_[problem.bytes, problem.bytes])
        talks = talks[talks > 0]
        return cls(
            ranks=problem.ranks,
            hosts=problem.hosts,
            pairs=len(problem.bytes),
            groups=problem.distances.groups,
            free_slots=len(problem.slot_host) - problem.ranks,
            most_slots=int(problem.allocation.slots.max()),
            spread=float(talks.mean() / np.median(talks)) if len(talks) else 1.0,
            scattered=_scattered(problem),
        )


def default_members(objective: Objective, features: Features) -> tuple[Member, ...]:
    """Return the members that run by default."""
    named = {term.metric for term in objective.asked[0]}
    chains: list[str] = []
    if named & CONGESTED:
        chains += _on_congestion(features)
    if named - CONGESTED:
        chains += _on_hop_bytes(features)
    return tuple(Member(chain=Chain.parse(text)) for text in chains)


def refining_members(objective: Objective, features: Features) -> tuple[Member, ...]:
    """Return the default members' refiners alone, which start from a given placement, each chain once.

    Orders of digits move all ranks and are left out.
    """
    chains = dict.fromkeys(
        Chain(None, tuple(link for link in member.chain.refiners if link.name != ORDERS))
        for member in default_members(objective, features)
    )
    return tuple(Member(chain=chain) for chain in chains if chain.refiners)


def near_members(objective: Objective) -> tuple[Member, ...]:
    """Return members that only improve the given placement, best exchanges first, and so stay near it."""
    congested = {term.metric for term in objective.asked[0]} & CONGESTED
    text = "threshold-accepting:first=0" if congested else "ohtma-exchange"
    return (Member(chain=Chain.parse(text)),)


def pareto_members(features: Features) -> tuple[Member, ...]:
    """Return members that lower congestion from few hop-bytes and end at different points.

    A short search ends with hardly more hop-bytes, a long one with the least congestion.
    """
    lengths = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
    return tuple(Member(chain=Chain.parse("congestion-descent"), weight=weight) for weight in lengths)


def _scattered(problem: Problem) -> float:
    if len(problem.slot_host) < 2 * problem.ranks or problem.distances.groups < problem.hosts:
        return np.inf
    anywhere, together = (
        score(problem, place(problem, np.random.default_rng(0))).congestion_seconds
        for place in (place_at_random, place_in_order)
    )
    return anywhere / together if together > 0 else np.inf


def _on_congestion(features: Features) -> list[str]:
    long, anywhere = STARTS[0], "random+congestion-descent"
    if features.scattered < 1.0 and features.hosts > WIDE:
        return [anywhere]
    if features.ranks <= SMALL:
        return [long, anywhere, QUICK, long]
    if features.scattered < 1.0:
        return [long, anywhere]
    if features.groups > min(FEW_GROUPS, features.hosts - 1):
        return [long, QUICK]
    return [text for text in STARTS if features.ranks <= MOST_SPECTRAL or "spectral" not in text]


def _on_hop_bytes(features: Features) -> list[str]:
    more = 0 if features.ranks > FEW else 1 if features.ranks > SMALL else 3
    return ["layout+digit-search+pair-exchange"] + ["greedy+pair-exchange"] * more


DEFAULT_STEP_WORKERS = 2
"""Default number of workers under a limit in steps: fixed, so that results depend on no machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What a search minimises and how long it runs.

    Raises:
        InvalidValue: Seconds, steps, seed, seeds, workers or moves out of range.
    """

    objective: str = "congestion"
    """``congestion`` (worst link, then worst network link, then hop-bytes), ``hop-bytes``, ``dilation``
    (average dilation: the same order as hop-bytes), ``mapping-coefficient``, or levels of weighted sums such
    as ``2*congestion+hop-bytes,max-dilation`` (`mapping.placement.objective`)."""
    strategies: Sequence[str | Strategy] | None = None
    """Names of strategies (``greedy``), chains of a strategy and refiners
    (``greedy:starts=8+pair-exchange``), or refiners alone (``congestion-descent``), which start from the
    present placement or else from ranks in order; the best result wins. A strategy always runs to its end. A
    function of a `Problem` and a random generator that returns the host index of each rank is a strategy too.
    Default: a portfolio whose result is never worse than ranks in order."""
    seconds: float = 10.0
    """Wall seconds, preparation included, but not the first compilation of kernels on a machine."""
    steps: int | None = None
    """Number of proposals instead of seconds: the same seed and workers then give the same placement."""
    seed: int = 0
    seeds: int | None = None
    """How often each chain runs, each time with other random numbers; default: once, and on a cluster, if the
    limit is in seconds, so often that each of its machines has a chain."""
    workers: int | None = None
    """Threads (or processes); default: one per processor of this process or thread of the cluster, or 2 if
    `steps` is given."""
    executor: str | Executor = THREADS
    """``threads``, ``processes``, a `mapping.cluster.Cluster`, or an executor of the caller
    (`mapping.placement.workers`)."""
    moves: int | None = None
    """Most ranks that may move from the present placement; only for searches that move few ranks."""
    consecutive: bool = False
    """True if consecutive ranks fill each host, as torchrun and DeepSpeed start them: only the order of the
    hosts is searched, which must have the same number of slots."""

    def __post_init__(self) -> None:
        check_limit(self.seconds, self.steps)
        for name, low in (("steps", 0), ("seed", 0), ("seeds", 1), ("workers", 1), ("moves", 0)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_number(value, name, low))

    @property
    def default_distance(self) -> str:
        """Convention of distances that the objective uses if the cost model names none."""
        leads = parse_objective(self.objective).leading == "mapping-coefficient"
        return EQUIVALENT_2 if leads else LINKS

    @property
    def limit(self) -> dict[str, float | int]:
        """The limit as a placement records it."""
        return {"limit_seconds": self.seconds} if self.steps is None else {"limit_steps": self.steps}

    def chains(self) -> tuple[Chain, ...]:
        """Return the chains of `strategies`; empty for the default portfolio.

        Raises:
            UnknownName: An unknown strategy, refiner or option, with the closest names.
            InvalidValue: An empty sequence, or a value that does not fit its option.
        """
        if self.strategies is None:
            return ()
        if isinstance(self.strategies, str) or not self.strategies:
            raise InvalidValue("strategies", "must be a sequence of at least one name")
        return tuple(Chain.parse(one) if isinstance(one, str) else Chain.of(one) for one in self.strategies)

    def start_clock(self) -> Deadline:
        """Return the deadline of a search that starts now."""
        threads = self.executor.threads if isinstance(self.executor, Cluster) else cores()
        default = threads if self.steps is None else DEFAULT_STEP_WORKERS
        return Deadline(seconds=self.seconds, steps=self.steps, workers=self.workers or default)

    def repeats(self, chains: int) -> int:
        """Return how often each of a number of chains runs."""
        if self.seeds is None and self.steps is None and isinstance(self.executor, Cluster):
            return max(math.ceil(self.executor.machines / max(chains, 1)), 1)
        return self.seeds or 1

    def for_task(self, cluster: Cluster, tasks: int) -> SearchOptions:
        """Return the options for one of several whole searches that run on a cluster at the same time.

        The threads of the cluster are divided evenly, unless the limit is in steps.
        """
        share = max(cluster.threads // max(tasks, 1), 1) if self.steps is None else None
        return replace(self, executor=THREADS, workers=self.workers or share)


def search_options(
    options: SearchOptions | None, changes: Mapping[str, Any], default: SearchOptions | None = None
) -> SearchOptions:
    """Return search options with some of them changed, as `mapping.place` takes them by keyword.

    Raises:
        UnknownName: An unknown option, with the closest names.
        InvalidValue
    """
    found = content(options or default or SearchOptions(), SearchOptions, "options")
    known = [field.name for field in fields(SearchOptions)]
    for name in changes:
        if name not in known:
            raise UnknownName("search option", name, known)
    return replace(found, **changes)
