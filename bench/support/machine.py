"""Describe the machine for the records of benchmarks, save them, and measure memory and processor time."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import psutil

from registry.database.embedded_files import ServerFiles


def machine() -> dict[str, str | int | float | None]:
    """Return processor, cores, memory, system and interpreter."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def now() -> str:
    """Return date and time in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def about() -> dict[str, Any]:
    """Return what every record begins with: the date, and the machine."""
    return {"date": now(), "machine": machine()}


def write_record(path: Path, record: Mapping[str, Any], page: str = "") -> None:
    """Write a record, and its page beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    if page:
        path.with_suffix(".md").write_text(page)


def save(results: Path | None, sizes: dict[str, int], steps: dict[str, Any]) -> None:
    """Print a record of steps and write it; with None (a trial) it is only printed."""
    text = json.dumps({**about(), "sizes": sizes, "steps": steps}, indent=2)
    if results is not None:
        results.parent.mkdir(exist_ok=True)
        results.write_text(text + "\n")
    print(text)


def peak_memory_gb(process: int | str = "self") -> float:
    """Return the peak resident size so far of this process, or of another by its id (Linux only)."""
    # Not ru_maxrss: Linux hands a parent's on to the processes that it starts.
    text = Path(f"/proc/{process}/status").read_text()
    status = dict(line.split(":", 1) for line in text.splitlines())
    return round(int(status["VmHWM"].split()[0]) * 1024 / 1e9, 3)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else ():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


CLOCK = SimpleNamespace(perf_counter=time.process_time, time=time.time)


@contextmanager
def processor_clock() -> Iterator[None]:
    """Count the seconds of all `mapping.deadline.Deadline` in processor time of this process, all threads."""
    with patch("mapping.deadline.time", CLOCK):
        yield


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
