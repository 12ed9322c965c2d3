"""Members of a portfolio that one worker (thread, process or machine) runs one after another.

Each member has its own random generator and, under a limit in steps, its own share of the steps, so that
its result depends neither on the worker that runs it nor on the number or speed of the workers.

Where the workers of a portfolio run: in threads, in processes, on a cluster, or in the caller's executor.

`Executor.submit` returns an object with ``result()``, as `concurrent.futures.Executor` does. What is
submitted can be pickled. Threads are the default: kernels release the interpreter lock, and nothing is
copied. Processes import the main module of the program, as multiprocessing's spawn does. Several machines:
`mapping.cluster`.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from mapping import cluster
from mapping.cluster import Cluster, RemoteReport
from mapping.deadline import Deadline
from mapping.placement.candidate import Candidate
from mapping.placement.catalog import Chain, Link
from mapping.placement.methods import congestion_descent
from mapping.placement.methods.link_loads import routes_and_grid
from mapping.placement.objective import Objective, Score, better, score
from mapping.placement.problem import Problem
from mapping.routing.catalog import DEFAULTS, build_routes, choose_routing
from registry.errors import InvalidValue, UnknownName
from registry.model import HOST, SWITCH, Adapters, Allocation, Fabric, ForwardingTables, Ints, Links, Profile

THREADS, PROCESSES = "threads", "processes"
KINDS = (THREADS, PROCESSES)
PATIENCE = 2.0
"""Seconds that workers of this machine have after an interrupt to return what they found."""

Report = Callable[[str, int, Candidate | None], None]
"""Called with a phase, the number of proposals since the last call, and the best candidate."""


class Future(Protocol):
    """Result of a worker that may still be running."""

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result; `TimeoutError` after `timeout` seconds."""

    def done(self) -> bool:
        """Return True if the result is available."""


class Executor(Protocol):
    """Object that runs functions elsewhere."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future:
        """Run a function with these arguments."""


@dataclass(frozen=True, slots=True)
class StopFile:
    """Stop signal for other processes of this machine: a file that exists once set."""

    path: str

    def __call__(self) -> bool:
        return os.path.exists(self.path)

    def set(self) -> None:
        """Signal all workers to stop."""
        Path(self.path).touch()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPool:
    """An executor with the means to end its work early."""

    executor: Executor
    stopped: Callable[[], bool] | None
    """Called by each worker; it ends if True is returned. None: workers get a KeyboardInterrupt."""
    stop: Callable[[], None]
    """Stops all workers."""
    share: Callable[[Any], None] = lambda _: None
    """Called with a large argument that all workers need, before the first is started."""
    report: Callable[[Report], Report | None] = lambda _: None
    """Returns what workers call so that a function of the caller gets their reports; None: they cannot."""
    patience: float = PATIENCE
    """Seconds that workers have after a stop."""
    is_remote: bool = False
    """True if workers are on other machines: their kernels are compiled there, and their clocks start then.
    """


@contextmanager
def worker_pool(kind: str | Executor, workers: int) -> Iterator[WorkerPool]:
    """Open a pool of threads or processes, or wrap a cluster or an executor of the caller, which stays open.

    Raises:
        UnknownName: A text that is not one of `KINDS`.
        InvalidValue: No executor.
    """
    if isinstance(kind, str) and kind not in KINDS:
        raise UnknownName("executor", kind, KINDS)
    if not isinstance(kind, str) and not hasattr(kind, "submit"):
        raise InvalidValue("executor", f"must be a name or have a method submit, not {kind!r}")
    if kind == THREADS:
        stop = threading.Event()
        threads = ThreadPoolExecutor(workers, thread_name_prefix="worker")
        try:
            yield WorkerPool(
                executor=threads, stopped=stop.is_set, stop=stop.set, report=lambda receive: receive
            )
        finally:
            stop.set()
            threads.shutdown(wait=False, cancel_futures=True)
        return
    if isinstance(kind, Cluster):
        yield WorkerPool(
            executor=kind,
            stopped=None,
            stop=kind.stop,
            share=kind.share,
            report=partial(_report_from, kind),
            patience=cluster.PATIENCE,
            is_remote=True,
        )
        return
    with tempfile.TemporaryDirectory(prefix="almanac-") as folder:
        file = StopFile(str(Path(folder, "stop")))
        if not isinstance(kind, str):
            yield WorkerPool(executor=kind, stopped=file, stop=file.set)
            return
        fresh = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
        processes = ProcessPoolExecutor(workers, mp_context=fresh)
        try:
            yield WorkerPool(executor=processes, stopped=file, stop=file.set)
        finally:
            file.set()
            processes.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _ReportWithoutHosts:
    """Report of a task on another machine: the value of the best candidate without its placement."""

    send: RemoteReport

    def __call__(self, phase: str, taken: int, candidate: Candidate | None) -> None:
        metric, value = (None, None) if candidate is None else (candidate.metric, float(candidate.value))
        self.send(phase, taken, metric, value)


def _report_from(kind: Cluster, receive: Report) -> Report:
    """Return what tasks of a cluster call so that a function here gets their reports."""

    def arrive(phase: str, taken: int, metric: str | None, value: float | None) -> None:
        nowhere = np.zeros(0, np.int32)
        receive(phase, taken, Candidate(nowhere, metric, value or 0.0) if metric is not None else None)

    return _ReportWithoutHosts(kind.listen(arrive))


ON_LINKS = "congestion-descent"
"""Refiner whose kernels depend on whether all routes fit in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A chain of strategies in a portfolio."""

    chain: Chain
    weight: float = 1.0
    """Share of the limit, relative to the other members'."""
    number: int = 0
    """Position in the portfolio."""
    seed: np.random.SeedSequence | None = None
    """Of the member's random generator; set by the portfolio."""
    steps: tuple[int, ...] | None = None
    """Proposals of each refiner; None if the limit is in seconds."""

    @property
    def weights(self) -> tuple[float, ...]:
        """Share of each refiner."""
        total = sum(entry.weight for entry in self.chain.refiners)
        return tuple(self.weight * entry.weight / total for entry in self.chain.refiners)


class MemberResult(NamedTuple):
    """A placement with which a member ended."""

    number: int
    """Position of the member in its portfolio; -1 for a baseline."""
    host_of_rank: Ints
    """int32[ranks]: Host indices."""
    chain: str
    score: Score | None
    """None if an interrupt came before it was computed."""


class SearchResult(NamedTuple):
    """Result of a portfolio, or of the members that one worker ran."""

    members: tuple[MemberResult, ...]
    """Best placement of each baseline and member."""
    steps: int
    """Proposals made."""
    complete: bool
    """False after an interrupt."""
    best: int = 0
    """Index in `members` of the best placement."""
    is_optimal: bool = False
    """True if a placement meets the objective's certified bounds."""

    @property
    def host_of_rank(self) -> Ints:
        """int32[ranks]: host indices of the best placement."""
        return self.members[self.best].host_of_rank

    @property
    def chain(self) -> str:
        """Name of the chain that found the best placement."""
        return self.members[self.best].chain


def run_members(
    problem: Problem,
    objective: Objective,
    members: tuple[Member, ...],
    start: MemberResult,
    deadline: Deadline,
    scoring_seconds: float,
    report: Report | None = None,
    is_remote: bool = False,
) -> SearchResult:
    """Run members one after another and return what was found, also after an interrupt.

    The search ends as soon as a placement meets the objective's certified bounds.

    All arguments can be pickled, except `report` of threads.

    Args:
        start: Placement from which chains without a strategy start.
        deadline: Its workers are the threads of each refiner.
        scoring_seconds: Time to compute one exact score.
        is_remote: True on another machine than the caller's: compile the kernels here, and start the clock
            afterwards.

    Raises:
        DisconnectedAllocation, UnreachablePair
    """
    if is_remote:
        chains = tuple(Member(chain=member.chain) for member in members)
        load_kernels(problem, chains, deadline.workers)
        deadline.begin = time.perf_counter()
    weights = [weight for member in members for weight in member.weights]
    worker = _Worker(problem, objective, start, deadline, scoring_seconds, report or _report_nothing, weights)
    with deadline.interruptible():
        for member in members:
            if deadline.stopped or worker.is_optimal:
                break
            worker.run(member)
    complete = worker.is_optimal or not deadline.stopped
    return SearchResult(worker.results(), worker.taken, complete, is_optimal=worker.is_optimal)


@dataclass(slots=True)
class _Worker:
    """State of one worker: what it searches, and the results so far."""

    problem: Problem
    objective: Objective
    start: MemberResult
    deadline: Deadline
    scoring_seconds: float
    report: Report
    weights: list[float]
    """Shares of the refiners that have not run yet."""
    best: MemberResult | None = None
    unscored: MemberResult | None = None
    """Best placement of the present member, and the one that has no score yet."""
    finished: list[MemberResult] = field(default_factory=list)
    """Best placement of each member that came to its end."""
    taken: int = 0
    """Proposals made."""
    is_optimal: bool = False
    """True if a placement meets the objective's certified bounds."""

    def results(self) -> tuple[MemberResult, ...]:
        """Return the best placement of each member so far, and the one that has no score yet."""
        return (*self.finished, *(one for one in (self.best, self.unscored) if one is not None))

    def run(self, member: Member) -> None:
        """Run the strategy of a member, then its refiners; what one leaves of its limit goes to the next."""
        generator = np.random.default_rng(member.seed)
        hosts, name = self._run_strategy(member.chain, generator)
        self._score(member.number, hosts, name)
        unused = 0
        for index, link in enumerate(member.chain.refiners):
            if self.is_optimal:
                break
            deadline = self._refiner_deadline(None if member.steps is None else member.steps[index] + unused)
            self.weights = self.weights[1:]
            if deadline.over:
                continue
            name = f"{name}+{link}"
            hosts = self._refine(link, MemberResult(member.number, hosts, name, None), deadline, generator)
            unused = 0 if deadline.steps is None else deadline.steps - deadline.taken
            self._score(member.number, hosts, name)
        if self.best is not None:
            self.finished.append(self.best)
        self.best = None

    def _run_strategy(self, chain: Chain, generator: np.random.Generator) -> tuple[Ints, str]:
        if chain.strategy is None:
            return self.start.host_of_rank, self.start.chain
        self.report(str(chain.strategy), 0, None)
        hosts = chain.strategy.strategy()(self.problem, generator)
        hosts = self.problem.checked(hosts, str(chain.strategy))
        return self.problem.apply_pins(hosts), str(chain.strategy)

    def _refiner_deadline(self, steps: int | None) -> Deadline:
        """Return the deadline of the next refiner, whose weight is the first of the remaining ones."""
        whole = self.deadline
        if steps is not None:
            return Deadline(steps=steps, workers=whole.workers, stop=whole.stop)
        left = whole.left - self.scoring_seconds * len(self.weights)
        part = self.weights[0] / sum(self.weights)
        return Deadline(seconds=left * part, workers=whole.workers, stop=whole.stop)

    def _refine(
        self, link: Link, start: MemberResult, deadline: Deadline, generator: np.random.Generator
    ) -> Ints:
        """Run a refiner from a placement and report its progress; return its last placement."""
        found, reported, before = start, 0, self.taken
        for candidate in link.refiner()(self.problem, start.host_of_rank, deadline, generator):
            self.unscored = found = start._replace(host_of_rank=candidate.host_of_rank)
            self.taken = before + deadline.taken
            self.report(start.chain, deadline.taken - reported, candidate)
            reported = deadline.taken
            if self.objective.is_optimal(_known(candidate)):
                break
        self.taken = before + deadline.taken
        self.report(start.chain, deadline.taken - reported, None)
        return self.problem.checked(found.host_of_rank, str(link))

    def _score(self, number: int, hosts: Ints, name: str) -> None:
        """Compute the exact score of a placement and keep it if it is the member's best."""
        best = self.best
        if best is None or not np.array_equal(hosts, best.host_of_rank):
            self.unscored = MemberResult(number, hosts, name, None)
            begin = time.perf_counter()
            found = score(self.problem, hosts)
            self.scoring_seconds = time.perf_counter() - begin
            if best is None or best.score is None or better(self.objective, found, best.score):
                self.best = MemberResult(number, hosts, name, found)
            self.is_optimal = self.is_optimal or self.objective.is_optimal(found)
        self.unscored = None


def _known(candidate: Candidate) -> Score:
    """Return what a refiner knows of a candidate; other metrics are infinite."""
    known = dict.fromkeys(Score._fields, math.inf)
    known["network_congestion_seconds"] = candidate.network_congestion_seconds
    return Score(**{**known, candidate.metric: candidate.value})


def _report_nothing(phase: str, taken: int, candidate: Candidate | None) -> None:
    return


def load_kernels(problem: Problem, members: tuple[Member, ...], workers: int) -> None:
    """Compile the kernels of a search, or read them from disk, before its clock starts."""
    names = {link.name for member in members for link in member.chain.refiners}
    has_all_routes = ON_LINKS not in names or congestion_descent.has_all_routes(problem)
    warm_up(problem.routes.name, members, workers, has_all_routes)


@cache
def warm_up(routing: str, members: tuple[Member, ...], workers: int, has_all_routes: bool = True) -> None:
    """Compile the kernels of a kind of search, or read them from disk; once per process.

    The members run for a few proposals with three ranks on two hosts, one with two slots and two rails: so
    few that it takes no time, and enough that ranks are cut into parts.

    Args:
        routing: Routing; one with options or a file counts as all shortest paths, which have the same
            kernels.
        workers: Number of threads of a refiner.
        has_all_routes: False if searches on congestion compute routes on first use, for which they have other
            kernels.
    """
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 1.0])
    fabric = _two_hosts()
    allocation = Allocation.of(fabric, [0, 1], slots=[2, 1])
    choose_routing(fabric)
    known = routing if routing in DEFAULTS else DEFAULTS[-1]
    routes = build_routes(known, fabric, allocation.hosts)
    routes.require_connected()
    problem = Problem(profile=profile, allocation=allocation, routes=routes)
    if not has_all_routes:
        routes_and_grid(problem, most=-1)
    chains = [member.chain for member in members]
    strategies = (chain.strategy for chain in chains if chain.strategy is not None)
    for first in dict.fromkeys(one for one in strategies if one.entry.function is None):
        first.strategy()(problem, np.random.default_rng(0))
    for link in dict.fromkeys(link for chain in chains for link in chain.refiners):
        deadline = Deadline(steps=2, workers=workers)
        list(link.refiner()(problem, problem.slot_host.copy(), deadline, np.random.default_rng(0)))
    score(problem, problem.slot_host)


def _two_hosts() -> Fabric:
    """Return two hosts on one switch, with forwarding tables; the first has two slots and two adapters."""
    adapters = Adapters(
        names=("a1", "a2", "b"),
        guid=np.array([1, 2, 3], np.uint64),
        system_guid=np.array([1, 1, 3], np.uint64),
        host=np.array([0, 0, 1]),
        port_adapter=np.array([0, 1, 2]),
        port_number=np.array([1, 1, 1]),
        port_guid=np.array([1, 2, 3], np.uint64),
        port_lid=np.array([1, 2, 3]),
        port_lmc=np.array([0, 0, 0]),
    )
    links = Links.of(
        [0, 0, 1, 2, 2, 2], [2, 2, 2, 0, 0, 1], 1.0,
        source_port=[1, 1, 1, 1, 2, 3], target_port=[1, 2, 3, 1, 1, 1],
        source_adapter=[0, 1, 2, -1, -1, -1], target_adapter=[-1, -1, -1, 0, 1, 2],
    )  # fmt: skip
    tables = ForwardingTables(
        switch_guid=np.array([4], np.uint64),
        ports=np.array([[255, 1, 2, 3]]),
        lid_guid=np.array([0, 1, 2, 3], np.uint64),
    )
    return Fabric(
        names=("a", "b", "s"),
        kind=np.array([HOST, HOST, SWITCH]),
        slots=np.array([2, 1, 0]),
        forwards=np.array([False, False, True]),
        guid=np.array([0, 0, 4], np.uint64),
        lid=np.zeros(3, np.int32),
        links=links,
        adapters=adapters,
        tables=tables,
    )
