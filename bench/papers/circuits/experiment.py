"""Run experiments: trials until the throughput is known precisely enough (section 4.3 of the paper)."""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np
from scipy.stats import t

from bench.papers.circuits.record import Effort
from bench.papers.circuits.trial import Setting, prepare
from mapping.cluster import Cluster
from registry.model import Floats

T = TypeVar("T")

IMPRECISION = 0.05
"""Half of the 95% interval over the mean at which an experiment is complete."""


class Trials(NamedTuple, Generic[T]):
    """The trials of an experiment.

    Attributes
    ----------
    found : list
        By number, from 0.
    imprecision : float
        Of the throughput; of several seed topologies the largest.
    complete : bool
        Whether that is at most `IMPRECISION`; otherwise time was over.
    """

    found: list[T]
    imprecision: float
    complete: bool


class WorkerPool:
    """A pool of processes that run trials; with one worker, trials run in this process.

    Parameters
    ----------
    workers : int
    cluster : Cluster, optional
        Trials run there instead; its workers find this package in the same folder.
    """

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
    """Run trials in batches until all throughputs are known to 5%, or until time is over.

    Parameters
    ----------
    throughputs : function of a trial's result
        The throughputs whose imprecision counts.
    """
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
