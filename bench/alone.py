"""A step of a benchmark in a process of its own, so that its peak memory is its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.machine import peak_memory_gb


def alone(step: Callable[[Path, Path], float], files: Path, home: Path) -> dict[str, float]:
    """Seconds and peak memory of a step in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(measured, step, files, home).result()


def measured(step: Callable[[Path, Path], float], files: Path, home: Path) -> dict[str, float]:
    """Seconds and peak memory of this process, which runs nothing else; Linux only."""
    seconds = step(files, home)
    return {"seconds": round(seconds, 3), "peak_memory_gb": peak_memory_gb()}
