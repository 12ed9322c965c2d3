"""Where the workers of a portfolio run: in threads, in processes, or in an executor of the caller.

`Executor.submit` returns an object with ``result()``, as `concurrent.futures.Executor` and the dask
``Client`` do. What is submitted can be pickled. Threads are the default: kernels release the interpreter
lock, and nothing is copied. Processes import the main module of the program, as multiprocessing's spawn does.
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
from pathlib import Path
from typing import Any, Protocol

from registry.errors import InvalidValue, UnknownName

THREADS, PROCESSES = "threads", "processes"
KINDS = (THREADS, PROCESSES)


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
    stopped : callable
        Called by each worker; it ends if True is returned.
    stop : callable
        Stops all workers.
    shares_memory : bool
        True if workers can report progress by calling a function of the caller.
    """

    executor: Executor
    stopped: Callable[[], bool]
    stop: Callable[[], None]
    shares_memory: bool


@contextmanager
def worker_pool(kind: str | Executor, workers: int) -> Iterator[WorkerPool]:
    """Open a pool of threads or processes, or wrap an executor of the caller, which stays open.

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
            yield WorkerPool(executor=threads, stopped=stop.is_set, stop=stop.set, shares_memory=True)
        finally:
            stop.set()
            threads.shutdown(wait=False, cancel_futures=True)
        return
    with tempfile.TemporaryDirectory(prefix="almanac-") as folder:
        file = StopFile(str(Path(folder, "stop")))
        if not isinstance(kind, str):
            yield WorkerPool(executor=kind, stopped=file, stop=file.set, shares_memory=False)
            return
        fresh = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
        processes = ProcessPoolExecutor(workers, mp_context=fresh)
        try:
            yield WorkerPool(executor=processes, stopped=file, stop=file.set, shares_memory=False)
        finally:
            file.set()
            processes.shutdown(wait=True, cancel_futures=True)
