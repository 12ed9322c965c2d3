"""Measure how long `almanac run` takes until the launcher starts, with a placement that is stored already.

Run ``python -m bench.speed.known_placement`` in the project's folder (Linux, Open MPI); the machine should
do nothing else meanwhile. Else run it by ``chrt --rr 1``, as root: other work then waits. Load average and
policy are recorded. The job has 64 ranks on 16 hosts of the included fabric; the embedded server runs
already. A script takes the launcher's place: it asks Open MPI for its version, and else prints the time. With
``--beside FOLDER`` each run is followed by one of another checkout, and the median ratio of the pairs is
recorded. Writes ``bench/results/known_placement.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.faults.commands import ALMANAC, at_home
from bench.support.machine import save
from bench.support.paths import RESULTS, ROOT
from registry.database.embedded_server import stop

RECORD = RESULTS / "known_placement.json"
DATA = ROOT / "almanac" / "demo_data"
FABRIC = ("ndr-dgx.ibnetdiscover", "opensm-lfts.dump.gz")
HOSTS = (
    *("a06-p1-dgx-02-c03", "a06-p1-dgx-02-c11", "a06-p1-dgx-02-c16", "a07-p1-dgx-03-c02"),
    *("a07-p1-dgx-03-c09", "a08-p1-dgx-04-c05", "a08-p1-dgx-04-c14", "b05-p1-dgx-05-c01"),
    *("b05-p1-dgx-05-c10", "b05-p1-dgx-05-c18", "b06-p1-dgx-06-c07", "b06-p1-dgx-06-c12"),
    *("b07-p1-dgx-07-c03", "b07-p1-dgx-07-c17", "b08-p1-dgx-08-c06", "b08-p1-dgx-08-c13"),
)
RANKS = 64
SLOTS = RANKS // len(HOSTS)
RUN = (
    *("run", "--no-measure", "--profile", "hpcg", "mpirun"),
    *("--host", ",".join(f"{host}:{SLOTS}" for host in HOSTS), "-n", str(RANKS), "program"),
)
LAUNCHER = '#!/bin/sh\nif [ "$1" = --version ]; then exec {real} --version; fi\ndate +%s.%N\n'
KNOWN = "of the same profile and hosts"
"""What `almanac run` says of a placement that is stored."""
SUBREAPER = 36
"""Number of the setting of Linux's ``prctl`` that makes processes without a parent children of this one."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the runs, in turn with those of another checkout if one is given, and record medians."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.known_placement")
    parser.add_argument("--repeats", type=int, default=20, help="number of runs [default: %(default)s]")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout to compare with")
    parser.add_argument("--trial", action="store_true", help="print, and record nothing")
    given = parser.parse_args(arguments)
    checkouts = [ROOT, *([given.beside] if given.beside else [])]
    load = os.getloadavg()[0]
    real_time = os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder)) as environment:
        runs = [[timed(folder, environment, one) for one in checkouts] for _ in range(given.repeats)]
    steps = {"known placement": summary([one[0] for one in runs])}
    if given.beside:
        steps["other checkout"] = summary([one[1] for one in runs])
        steps["ratio of pairs"] = {
            key: round(median(one[key] / other[key] for one, other in runs), 3) for key in runs[0][0]
        }
    sizes = {"ranks": RANKS, "hosts": len(HOSTS), "repeats": given.repeats}
    conditions = {"load_average_before": round(load, 2), "real_time": real_time}
    save(None if given.trial else RECORD, sizes, {**conditions, **steps})


def summary(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each time, and the least."""
    return {
        **{key: round(median(one[key] for one in runs), 3) for key in runs[0]},
        **{f"least_{key}": round(min(one[key] for one in runs), 3) for key in runs[0]},
    }


@contextlib.contextmanager
def prepared(folder: Path) -> Iterator[dict[str, str]]:
    """Fill a registry in a folder, and place the ranks once; yield the environment of its commands."""
    real = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if real is None:
        raise SystemExit("Open MPI is needed: its mpirun is not on the search path")
    launcher = folder / "programs" / "mpirun"
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER.format(real=real))
    launcher.chmod(0o755)
    environment = {
        **os.environ,
        "ALMANAC_CONFIG": os.devnull,
        **at_home(folder / "home"),
        "PATH": f"{launcher.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }

    def call(*words: str) -> str:
        done = subprocess.run(
            [*ALMANAC, *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
        )
        return done.stderr

    try:
        call("ingest", "--cluster", "ndr", *(str(DATA / name) for name in FABRIC))
        call("ingest", "--name", "hpcg", str(DATA / "hpcg_16_64.tar.gz"))
        for _ in range(3):  # stored runs, which are compared before each
            call("run", "--in-order", *RUN[2:])
        hosts = ("--cluster", "ndr", "--hosts", ",".join(HOSTS), "--slots", str(SLOTS))
        call("map", "hpcg", *hosts, "--seconds", "1")  # compiles kernels before its second begins
        found = call(*RUN[:1], "--seconds", "60", "--explain", *RUN[1:])
        if KNOWN not in found:
            raise SystemExit(f"the placement is not known: {found}")
        yield environment
    finally:
        stop(folder / "home")


def timed(folder: str, environment: Mapping[str, str], checkout: Path) -> dict[str, float]:
    """Return the time from the start of the command to that of the launcher, and all processor time.

    The embedded server is not counted, the child process that asks it is. All children of this process are
    waited for, so it must have no others.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        done = subprocess.run(
            [*ALMANAC, *RUN],
            cwd=folder,
            env={**environment, "PYTHONPATH": str(checkout)},
            stdout=subprocess.PIPE,
            check=True,
        )
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
    finally:
        prctl(SUBREAPER, 0, 0, 0, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_seconds": float(done.stdout) - begin, "processor_seconds": used}


if __name__ == "__main__":
    main()
