"""Where the lanes of a portfolio run: in the caller's thread, in threads, in processes, or elsewhere.

One interface serves all: `Executor.submit` returns something with a ``result()``, as
`concurrent.futures.Executor` does and a dask ``Client`` too. What is submitted can be pickled.
Threads are the default: kernels release the interpreter's lock, and nothing is copied. Processes import the
program's main module, as all that multiprocessing spawns do.
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

from registry.errors import UnknownName

THREADS, PROCESSES = "threads", "processes"
KINDS = (THREADS, PROCESSES)
DEFAULT_STEP_WORKERS = 2
"""Workers under a number of steps unless told: a fixed number, so that results depend on no machine."""


class Future(Protocol):
    """What a lane will return."""

    def result(self, timeout: float | None = None) -> Any:
        """Wait for it; `TimeoutError` where it takes longer."""

    def done(self) -> bool:
        """Whether it is there."""


class Executor(Protocol):
    """Runs functions elsewhere."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future:
        """Have a function run with these arguments."""


@dataclass(frozen=True, slots=True)
class StopFile:
    """A stop that other processes of this machine see: a file that is there or not."""

    path: str

    def __call__(self) -> bool:
        return os.path.exists(self.path)

    def set(self) -> None:
        """Tell all who ask to stop."""
        Path(self.path).touch()


@dataclass(frozen=True, slots=True)
class StopEvent:
    """A stop that threads of this process see."""

    event: threading.Event

    def __call__(self) -> bool:
        return self.event.is_set()

    def set(self) -> None:
        """Tell all who ask to stop."""
        self.event.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """An executor with what is needed to end its work early.

    Attributes
    ----------
    executor : Executor
    stop : StopFile or StopEvent
        Given to each lane; set after an interrupt.
    shares_memory : bool
        Whether lanes can tell progress by calling a function of the caller's.
    """

    executor: Executor
    stop: StopFile | StopEvent
    shares_memory: bool


def default_workers(steps: int | None) -> int:
    """Threads or processes to use unless told: the processors that this process may use."""
    if steps is not None:
        return DEFAULT_STEP_WORKERS
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


@contextmanager
def crew(kind: str | Executor, workers: int) -> Iterator[Crew]:
    """So many threads or processes, or an executor of the caller's, which stays open.

    Raises
    ------
    UnknownName
        A text that is none of `KINDS`.
    """
    if isinstance(kind, str) and kind not in KINDS:
        raise UnknownName("executor", kind, KINDS)
    if kind == THREADS:
        stop = StopEvent(threading.Event())
        threads = ThreadPoolExecutor(workers, thread_name_prefix="lane")
        try:
            yield Crew(executor=threads, stop=stop, shares_memory=True)
        finally:
            stop.set()
            threads.shutdown(wait=False, cancel_futures=True)
        return
    with tempfile.TemporaryDirectory(prefix="almanac-") as folder:
        file = StopFile(str(Path(folder, "stop")))
        if not isinstance(kind, str):
            yield Crew(executor=kind, stop=file, shares_memory=False)
            return
        fresh = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
        processes = ProcessPoolExecutor(workers, mp_context=fresh)
        try:
            yield Crew(executor=processes, stop=file, shares_memory=False)
        finally:
            file.set()
            processes.shutdown(wait=True, cancel_futures=True)
