"""Measure the first placement on a machine, which compiles kernels, the next one, and the demonstration.

Run ``python -m bench.speed.first_minute`` in the project's folder; the machine should do nothing else
meanwhile. Each starts with an empty cache of kernels and an empty data folder. Writes
``bench/results/first_minute.json``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from bench.faults.commands import ALMANAC, at_home
from bench.support.machine import save
from bench.support.paths import RESULTS, ROOT
from registry.database.embedded_server import stop

RECORD = RESULTS / "first_minute.json"
DATA = ROOT / "almanac" / "demo_data"
HOSTS = "a06-p1-dgx-02-c[03,11,16],a07-p1-dgx-03-c[02,09],a08-p1-dgx-04-c[05,14],b05-p1-dgx-05-c[01,10,18]"
MAP = (
    *("map", str(DATA / "hpcg_16_64.tar.gz"), "--hosts", HOSTS, "--slots", "8", "--steps", "2000"),
    *("--fabric", str(DATA / "ndr-dgx.ibnetdiscover"), "--fabric", str(DATA / "opensm-lfts.dump.gz")),
)
"""64 ranks on 10 hosts of 542, with forwarding tables."""
REPEATS = 3


def main() -> None:
    """Measure each several times and record the least, which other processes disturb least."""
    runs: dict[str, list[dict[str, float]]] = {"map, first": [], "map, next": [], "demo": []}
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("map, first", "map, next"):
                runs[name].append(seconds(Path(folder), *MAP))
        with tempfile.TemporaryDirectory() as folder:
            runs["demo"].append(seconds(Path(folder), "demo"))
    steps = {
        name: {key: round(min(one[key] for one in several), 2) for key in several[0]}
        for name, several in runs.items()
    }
    save(RECORD, {"ranks": 64, "repeats": REPEATS}, steps)


def seconds(folder: Path, *words: str) -> dict[str, float]:
    """Run a command in a folder with its kernels and data; return wall and processor time of its processes.

    The embedded server is not counted: it goes on running. It is stopped.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NUMBA_CACHE_DIR": str(folder / "kernels"),
        "ALMANAC_CONFIG": os.devnull,
        **at_home(folder / "home"),
    }
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*ALMANAC, *words], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    stop(folder / "home")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_seconds": wall, "processor_seconds": used}


if __name__ == "__main__":
    main()
