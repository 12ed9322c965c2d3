"""Describe the machine for the records of benchmarks, and measure memory."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


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


def save(results: Path | None, sizes: dict[str, int], steps: dict[str, Any]) -> None:
    """Print a record of steps and write it; with None (a trial) it is only printed."""
    text = json.dumps({"date": now(), "machine": machine(), "sizes": sizes, "steps": steps}, indent=2)
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
