"""Where the workers of a portfolio run: in threads, in processes, on a cluster, or in the caller's executor.

`Executor.submit` returns an object with ``result()``, as `concurrent.futures.Executor` does. What is
submitted can be pickled. Threads are the default: kernels release the interpreter lock, and nothing is
copied. Processes import the main module of the program, as multiprocessing's spawn does. Several machines:
`mapping.cluster`.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mapping import cluster
from mapping.cluster import Cluster, RemoteReport
from mapping.placement.refine import Candidate
from registry.errors import InvalidValue, UnknownName

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
    """An executor with the means to end its work early.

    Attributes
    ----------
    executor : Executor
    stopped : callable or None
        Called by each worker; it ends if True is returned. None: workers get a KeyboardInterrupt.
    stop : callable
        Stops all workers.
    share : callable
        Called with a large argument that all workers need, before the first is started.
    report : callable
        Returns what workers call so that a function of the caller gets their reports; None: they cannot.
    patience : float
        Seconds that workers have after a stop.
    is_remote : bool
        True if workers are on other machines: their kernels are compiled there, and their clocks start then.
    """

    executor: Executor
    stopped: Callable[[], bool] | None
    stop: Callable[[], None]
    share: Callable[[Any], None] = lambda _: None
    report: Callable[[Report], Report | None] = lambda _: None
    patience: float = PATIENCE
    is_remote: bool = False


@contextmanager
def worker_pool(kind: str | Executor, workers: int) -> Iterator[WorkerPool]:
    """Open a pool of threads or processes, or wrap a cluster or an executor of the caller, which stays open.

    Raises
    ------
    UnknownName
        A text that is not one of `KINDS`.
    InvalidValue
        No executor.
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
