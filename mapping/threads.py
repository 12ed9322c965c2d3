"""Independent pieces of work in threads on all cores; kernels release Python's lock and run in parallel.

Pieces do not depend on the machine, and results are returned in order, so that they do not depend on the
number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def each(task: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """Return the task's result for each piece, in order; an error of any piece is raised."""
    todo = list(pieces)
    workers = min(len(todo), cores())
    if workers < 2:
        return [task(piece) for piece in todo]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(task, todo))
