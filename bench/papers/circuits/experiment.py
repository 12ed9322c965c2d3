"""Run experiments: trials until the throughput is known to 5%, or time is over.

A trial is an application on which the paper's loop and our search run (sections 4.3 and 5.1 of the paper).
"""

from __future__ import annotations

import math
import multiprocessing
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from scipy.stats import t

from bench.support import paths
from bench.support.papers import Cell, load
from ingest.generate.streams import EDGE_SPREAD, VERTEX_SPREAD, LogNormal, stream_graph
from mapping.circuits.bounds import FLOWS, loose_bound, throughput_bound
from mapping.circuits.local_search import TRIALS, TrialOptions, search_from_seeds
from mapping.circuits.paper import PATIENCE, SKIP, LoopOptions, co_optimise
from mapping.circuits.paper_partition import HIGHEST, LOWEST, Refinement
from mapping.circuits.paper_seeds import CONDENSED
from mapping.circuits.problem import Application, Machine
from mapping.circuits.search import load_search_kernels
from mapping.circuits.solution import SearchResult
from mapping.cluster import Cluster
from registry.model import Floats
from registry.progress import silent

RESULTS = paths.RESULTS / "reconfigure"
CALIBRATION = "calibration"
"""Name of the part whose record holds the parameters of the others."""
RINGS = tuple(f"chordal-ring-{chord}" for chord in range(2, 8))
FORKS = (CONDENSED, *RINGS, "torus")
"""Seed topologies of section 5.1; the first is the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters that the paper does not publish."""

    vertex_spread: float = VERTEX_SPREAD
    edge_spread: float = EDGE_SPREAD
    edge_weight: float = 1.0
    patience: int = PATIENCE
    skip: float = SKIP
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An experiment: all that its trials have in common."""

    machine: Machine
    vertices: int
    parameters: Parameters = field(default_factory=Parameters)
    flows: int = FLOWS
    expansion: str = LOWEST


class Outcome(NamedTuple):
    """Result of one run of the loop."""

    throughput: float
    improvement: float
    best_iteration: int
    solves: int
    compute_bound: bool
    of_loose_bound: float
    seconds: float


class Pair(NamedTuple):
    """Results of the paper's loop and of our best search on one application."""

    paper: float
    highest: float
    ours: float
    """first, of `mapping.circuits.local_search.search_from_seeds`"""
    bound: float
    loose: float
    bound_name: str
    paper_seconds: float
    ours_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Limits of a run."""

    seconds: float = 180.0
    calibration_seconds: float = 1500.0
    fewest: int = 36
    most: int = 2400
    batch: int = 12
    """paper's numbers of trials are multiples of 12"""
    pairs: int = 16
    workers: int = 2
    small: bool = False


@cache
def _tables() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(Path(__file__).with_name("tables.toml").read_text())


def table(number: int) -> list[dict[str, Any]]:
    """Return the rows of the paper's Table 1, 2 or 3, with the column names of ``tables.toml``."""
    return _tables()[f"table-{number}"]


def calibrated(folder: Path) -> Parameters | None:
    """Return the parameters chosen by a folder's calibration, or None if it has not run."""
    records = load(folder, (CALIBRATION,))
    return Parameters(**records[0]["data"]["chosen"]) if records else None


def prepare() -> None:
    """Load the kernels in each process, so that no trial's time includes it."""
    load_search_kernels(silent)


def machine_of(row: dict[str, float]) -> Machine:
    """Return the machine of a row of the paper's tables."""
    return Machine(
        nodes=int(row["nodes"]),
        max_degree=int(row["max_degree"]),
        max_edges=int(row["max_edges"]),
        compute_speed=float(row["compute_speed"]),
        link_speed=float(row["link_speed"]),
    )


def draw(setting: Setting, number: int) -> Application:
    """Draw the application of a trial, a different one for each number."""
    given = setting.parameters
    graph = stream_graph(
        setting.vertices,
        vertex=LogNormal(1.0, given.vertex_spread),
        edge=LogNormal(given.edge_weight, given.edge_spread),
        seed=number,
    )
    return Application.from_edges(
        graph.source, graph.target, graph.edge_weight, vertex_weight=graph.vertex_weight
    )


def loop(setting: Setting, number: int) -> Outcome:
    """Run the paper's loop from the condensed graph."""
    return _loop(setting, draw(setting, number), number, CONDENSED)


def forks(setting: Setting, number: int) -> tuple[Outcome, ...]:
    """Run the paper's loop from each of `FORKS`, on the same application."""
    application = draw(setting, number)
    return tuple(_loop(setting, application, number, seed) for seed in FORKS)


def pair(setting: Setting, number: int) -> Pair:
    """Run the paper's loop, our best search and the bound on the same application."""
    application = draw(setting, number)
    paper = _loop(setting, application, number, CONDENSED)
    highest = run_loop(replace(setting, expansion=HIGHEST), application, number, CONDENSED)
    begin = time.process_time()
    ours = search_from_seeds(application, setting.machine, TrialOptions(trials=TRIALS, seed=number))
    seconds = time.process_time() - begin
    bound = throughput_bound(application, setting.machine, flows=setting.flows)
    return Pair(
        paper=paper.throughput,
        highest=highest.throughput,
        ours=ours.throughput,
        bound=bound.throughput,
        loose=loose_bound(application, setting.machine),
        bound_name=bound.name,
        paper_seconds=paper.seconds,
        ours_seconds=seconds,
    )


def _loop(setting: Setting, application: Application, number: int, seed_topology: str) -> Outcome:
    begin = time.process_time()
    found = run_loop(setting, application, number, seed_topology)
    seconds = time.process_time() - begin
    solution = found.solution
    return Outcome(
        throughput=found.throughput,
        improvement=found.improvement,
        best_iteration=found.best_iteration,
        solves=len(found.trail),
        compute_bound=solution.compute_throughput <= solution.communication_throughput,
        of_loose_bound=found.throughput / loose_bound(application, setting.machine),
        seconds=seconds,
    )


def run_loop(setting: Setting, application: Application, seed: int, seed_topology: str) -> SearchResult:
    """Run the paper's loop with the parameters of an experiment."""
    given = setting.parameters
    return co_optimise(
        application,
        setting.machine,
        LoopOptions(
            seed_topology=seed_topology,
            patience=given.patience,
            skip=given.skip,
            seed=seed,
            expansion=setting.expansion,
            refinement=Refinement(steps=given.steps),
        ),
    )


T = TypeVar("T")
IMPRECISION = 0.05
"""Half of the 95% interval over the mean at which an experiment is complete."""


class Trials(NamedTuple, Generic[T]):
    """The trials of an experiment."""

    found: list[T]
    imprecision: float
    complete: bool


class WorkerPool:
    """A pool of processes that run trials; with one worker, trials run in this process."""

    def __init__(self, workers: int, cluster: Cluster | None = None) -> None:
        self._workers = workers
        self._cluster = cluster
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self._cluster is not None:
            return self
        if self._workers > 1:
            fresh = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, mp_context=fresh, initializer=prepare)
        else:
            prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, function: Callable[[Setting, int], T], setting: Setting, numbers: Iterable[int]) -> list[T]:
        """Run the trials with these numbers."""
        if self._cluster is not None:
            tasks = [(function, setting, number) for number in numbers]
            found = {number: result.result() for number, result in self._cluster.run(_trial, tasks, "trials")}
            return [found[number] for number in sorted(found)]
        one = partial(function, setting)
        return list(map(one, numbers) if self._pool is None else self._pool.map(one, numbers))


def _trial(function: Callable[[Setting, int], T], setting: Setting, number: int) -> T:
    """Run a trial on a worker of a cluster, after its kernels were loaded."""
    prepare()
    return function(setting, number)


def experiment(
    pool: WorkerPool,
    function: Callable[[Setting, int], T],
    setting: Setting,
    effort: Effort,
    throughputs: Callable[[T], Sequence[float]],
) -> Trials[T]:
    """Run trials in batches until all throughputs are known to 5%, or until time is over."""
    found: list[T] = []
    since = time.perf_counter()
    while True:
        found += pool.run(function, setting, range(len(found), len(found) + effort.batch))
        values = np.array([throughputs(one) for one in found])
        worst = max(imprecision(column) for column in values.T)
        enough = worst <= IMPRECISION and len(found) >= effort.fewest
        late = time.perf_counter() - since >= effort.seconds or len(found) >= effort.most
        if enough or late:
            return Trials(found, worst, worst <= IMPRECISION)


def half_width(values: Sequence[float] | Floats) -> float:
    """Return half of the 95% interval of the mean, by Student's t (infinite for one value)."""
    count = len(values)
    if count < 2:
        return math.inf
    return float(t.ppf(0.975, count - 1) * np.std(values, ddof=1) / math.sqrt(count))


def imprecision(values: Sequence[float] | Floats) -> float:
    """Return pi: half of the 95% interval divided by the mean (section 4.3)."""
    return half_width(values) / float(np.mean(values))


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return math.exp(float(np.mean(np.log(np.fromiter(values, np.float64)))))


def pair_cells(pairs: Sequence[Pair]) -> dict[str, Cell]:
    """Return the cells that compare our best search with the loop and with the bound, at unequal time."""
    return {
        "best of ours / paper's loop": geometric_mean(pair.ours / pair.paper for pair in pairs),
        "paper's loop / bound": geometric_mean(pair.paper / pair.bound for pair in pairs),
        "best of ours / bound": geometric_mean(pair.ours / pair.bound for pair in pairs),
        "bound / paper's loose bound": geometric_mean(pair.bound / pair.loose for pair in pairs),
        "seconds, paper's loop": float(np.mean([pair.paper_seconds for pair in pairs])),
        "seconds, best of ours": float(np.mean([pair.ours_seconds for pair in pairs])),
    }
