"""Measure commands as a user runs them: ``python -m bench.speed.commands NAME`` on a quiet machine (Linux).

- ``first-minute``: the first placement on a machine, which compiles kernels, the next one, and the
  demonstration; each starts with an empty cache of kernels and an empty data folder.
- ``known-placement`` (Open MPI): `almanac run` until the launcher starts, if a placement is stored already,
  of 64 ranks on 16 hosts; the embedded server runs. A script takes the launcher's place: it asks Open MPI for
  its version, and else prints the time. With ``--beside FOLDER`` each run is followed by one of another
  checkout, and the median ratio of the pairs is recorded. On a busy machine: ``chrt --rr 1``, as root.
- ``install`` (package index): space on disk, by the Makefile's own commands in new folders, and imports.
- ``suite`` (package index, half an hour): the Makefile's targets for tests in a fresh clone, the tests and
  seconds of all their steps by tier, and the slowest of these steps.

Each writes its record under ``bench/results``.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import re
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

FIRST_MINUTE = RESULTS / "first_minute.json"
DATA = ROOT / "almanac" / "demo_data"
FIRST = "a06-p1-dgx-02-c[03,11,16],a07-p1-dgx-03-c[02,09],a08-p1-dgx-04-c[05,14],b05-p1-dgx-05-c[01,10,18]"
MAP = (
    *("map", str(DATA / "hpcg_16_64.tar.gz"), "--hosts", FIRST, "--slots", "8", "--steps", "2000"),
    *("--fabric", str(DATA / "ndr-dgx.ibnetdiscover"), "--fabric", str(DATA / "opensm-lfts.dump.gz")),
)
"""64 ranks on 10 hosts of 542, with forwarding tables."""
REPEATS = 3


def first_minute() -> None:
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
    save(FIRST_MINUTE, {"ranks": 64, "repeats": REPEATS}, steps)


def seconds(folder: Path, *words: str) -> dict[str, float]:
    """Run a command in a folder with its kernels and data; return wall and processor time of its processes.

    The embedded server is not counted: it goes on running. It is stopped.
    """
    environment = _environment(folder, NUMBA_CACHE_DIR=str(folder / "kernels"))
    before, begin = _used(), time.perf_counter()
    subprocess.run([*ALMANAC, *words], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    used = _used() - before
    stop(folder / "home")
    return {"wall_seconds": wall, "processor_seconds": used}


def _environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "ALMANAC_CONFIG": os.devnull,
        "PYTHONPATH": str(ROOT),
        **at_home(folder / "home"),
        **more,
    }


def _used() -> float:
    """Return the processor time of the children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


KNOWN_PLACEMENT = RESULTS / "known_placement.json"
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


def known_placement(repeats: int, beside: Path | None) -> None:
    """Measure the runs, in turn with those of another checkout if there is one, and record medians."""
    checkouts = [ROOT, *([beside] if beside else [])]
    load = os.getloadavg()[0]
    real_time = os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder)) as environment:
        runs = [[timed(folder, environment, one) for one in checkouts] for _ in range(repeats)]
    steps = {"known placement": summary([one[0] for one in runs])}
    if beside:
        steps["other checkout"] = summary([one[1] for one in runs])
        steps["ratio of pairs"] = {
            key: round(median(one[key] / other[key] for one, other in runs), 3) for key in runs[0][0]
        }
    sizes = {"ranks": RANKS, "hosts": len(HOSTS), "repeats": repeats}
    conditions = {"load_average_before": round(load, 2), "real_time": real_time}
    save(KNOWN_PLACEMENT, sizes, {**conditions, **steps})


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
    environment = _environment(folder, PATH=f"{launcher.parent}{os.pathsep}{os.environ['PATH']}")

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
        before, begin = _used(), time.time()
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
    return {"wall_seconds": float(done.stdout) - begin, "processor_seconds": _used() - before}


INSTALL = RESULTS / "install.json"
PARTS = {"base": ".installed", "dashboard": ".installed-dashboard"}
"""What is measured, and the target of the Makefile that installs it."""
OF_THE_VENV = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}
"""Packages that every new virtual environment has."""
IMPORTS = {
    "import registry": "import registry",
    "import mapping": "import mapping",
    "import registry.registry": "import registry.registry",
    "from mapping import place": "from mapping import place",
    "almanac --help": "import almanac.cli; almanac.cli.main(['--help'])",
}
IMPORTED = 5


def install() -> None:
    """Install each part, and record its size on disk and the processor time of imports."""
    sizes, steps = dict[str, int](), {}
    for part, target in PARTS.items():
        with tempfile.TemporaryDirectory() as folder:
            venv = Path(folder) / "venv"
            run(["make", f"VENV={venv}", str(venv / target)])
            python = venv / "bin" / "python"
            steps[part] = {name: processor_seconds(python, code) for name, code in IMPORTS.items()}
            for name, value in disk_use(venv).items():
                sizes[f"{part}_{name}"] = value
    save(INSTALL, sizes, steps)


def run(command: list[str]) -> str:
    """Run a command in the project's folder without settings of Python; return its standard error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return done.stderr


def disk_use(venv: Path) -> dict[str, int]:
    """Return the space on disk of installed files, of bytecode among them, and of pip with its tools."""
    found = {"disk_bytes": 0, "bytecode_bytes": 0, "empty_venv_bytes": 0}
    for path in venv.rglob("*"):
        size = path.lstat().st_blocks * 512
        if OF_THE_VENV & set(path.relative_to(venv).parts):
            found["empty_venv_bytes"] += size
        else:
            found["disk_bytes"] += size
            found["bytecode_bytes"] += size * (path.suffix == ".pyc")
    return found


def processor_seconds(python: Path, code: str) -> float:
    """Return the processor time of a new process that runs a statement, start included; median of several."""
    at_exit = "atexit.register(lambda: print(time.process_time(), file=sys.stderr))"
    command = [str(python), "-c", f"import atexit, sys, time; {at_exit}; {code}"]
    return round(median(float(run(command)) for _ in range(IMPORTED)), 3)


SUITE = RESULTS / "suite.json"
TARGETS = (".venv/.installed-dev", "test-unit", "test", "test-system")
_TIER = re.compile(r"^(\w+): (\d+) tests, (\d+) s$", re.MULTILINE)
_SLOW = re.compile(r"^([\d.]+)s (setup|call|teardown) +(\S.*)$", re.MULTILINE)


def suite() -> None:
    """Clone, install, run every target, and record its time; a target that fails is named."""
    seconds, failed, printed = dict[str, float](), list[str](), ""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        for target in TARGETS:
            begun = time.monotonic()
            done = subprocess.run(["make", target], cwd=clone, capture_output=True, text=True, check=False)
            seconds[target] = round(time.monotonic() - begun, 1)
            failed += [target] * (done.returncode != 0)
            printed = printed + done.stdout if target == TARGETS[-1] else done.stdout
    record(seconds, failed, printed)


def record(seconds: dict[str, float], failed: list[str], printed: str) -> None:
    """Save the times of targets, and what the runs of the last two printed of tiers and slow steps."""
    found = [(name, int(tests), int(of)) for name, tests, of in _TIER.findall(printed)]
    tiers = {name: {"tests": tests, "seconds": of} for name, tests, of in found if tests}
    steps = sorted(((float(of), step, test) for of, step, test in _SLOW.findall(printed)), reverse=True)
    slow = [{"seconds": of, "step": step, "test": test} for of, step, test in steps[:20]]
    sizes = {"tests": sum(tier["tests"] for tier in tiers.values())}
    save(SUITE, sizes, {"seconds": seconds, "failed": failed, "tiers": tiers, "slowest": slow})


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is named."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.commands")
    parser.add_argument("name", choices=("first-minute", "known-placement", "install", "suite"))
    parser.add_argument("--repeats", type=int, default=20, help="number of runs [default: %(default)s]")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout to compare with")
    options = parser.parse_args(arguments)
    if options.name == "known-placement":
        known_placement(options.repeats, options.beside)
    else:
        {"first-minute": first_minute, "install": install, "suite": suite}[options.name]()


if __name__ == "__main__":
    main()
