"""Run a step of a benchmark in its own process, so that its peak memory is measured alone."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil

from bench.support.machine import peak_memory_gb
from registry.database.embedded_files import ServerFiles


def measure_step(step: Callable[[Path, Path], float], files: Path, home: Path) -> dict[str, float]:
    """Seconds, processor time and peak memory of a step in a fresh process.

    If an embedded server runs on `home`, its processor time and peak memory are included. Linux only.
    """
    server = _server(home)
    if server is not None:
        with suppress(OSError):  # else its peak is that of its life so far
            Path(f"/proc/{server.pid}/clear_refs").write_text("5")
    before = 0.0 if server is None else _seconds(server)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        measured_step = pool.submit(measured, step, files, home).result()
    if server is not None:
        measured_step["server_cpu_seconds"] = round(_seconds(server) - before, 3)
        measured_step["server_peak_memory_gb"] = peak_memory_gb(server.pid)
    return measured_step


def measured(step: Callable[[Path, Path], float], files: Path, home: Path) -> dict[str, float]:
    """Return seconds, processor time and peak memory of this process, which runs nothing else (Linux)."""
    before = time.process_time()
    seconds = step(files, home)
    return {
        "seconds": round(seconds, 3),
        "cpu_seconds": round(time.process_time() - before, 3),
        "peak_memory_gb": peak_memory_gb(),
    }


def _server(home: Path) -> psutil.Process | None:
    state = ServerFiles(home.resolve()).read_state()
    return psutil.Process(state.java) if state is not None and state.java else None


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
