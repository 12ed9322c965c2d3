"""The commands that are disturbed, the data they start from, and how they are run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.support.paths import ROOT
from registry.database.embedded_server import stop

ALMANAC = (sys.executable, "-c", "from almanac.cli import main; main()")
LIMIT_SECONDS = 300.0
"""A command that takes longer hangs."""


@dataclass(frozen=True, slots=True)
class Case:
    """A command."""

    name: str
    arguments: tuple[str, ...]
    """trial"""
    whole: bool = True
    writes: str = ""

    def words(self, files: Path, work: Path) -> list[str]:
        """Return the arguments with folders filled in."""
        return [word.format(files=files, work=work) for word in self.arguments]


CASES = (
    Case(
        "ingest", ("ingest", "--cluster", "big", "--observed-at", "2026-01-01T00:00:00Z", "{files}/big.csv")
    ),
    Case("map", ("map", "demo-hpcg-64", "--job", "4712", "--steps", "2000", "--seed", "1")),
    Case("prune", ("db", "prune", "--yes"), whole=False),
    Case("delete", ("cluster", "delete", "demo-ndr", "--yes")),
    Case("backup", ("db", "backup", "{work}/backup"), writes="backup"),
)
"""What is disturbed."""
KEPT = {"ALMANAC_KEEP_OBSERVATIONS": "newest 1", "ALMANAC_KEEP_RUNS": "newest 2"}
"""Settings of ``db prune``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command that ended: exit code (negative: the signal), its standard error, wall time."""

    code: int
    said: str
    seconds: float

    @property
    def crashed(self) -> bool:
        """True if it ended with a traceback."""
        return "Traceback (most recent call last)" in self.said

    @property
    def unsaved(self) -> bool:
        """True if it reports that its result, which it prints, is not saved."""
        return "not saved: " in self.said


def start(words: list[str], variables: Mapping[str, str], work: Path) -> subprocess.Popen[str]:
    """Start a command in its own session; its standard error is collected."""
    return subprocess.Popen(
        [*ALMANAC, *words],
        cwd=work,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: this checkout, no configuration file, and these variables."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "ALMANAC_CONFIG": os.devnull, **KEPT, **variables}


def finish(process: subprocess.Popen[str], began: float) -> Outcome:
    """Wait for a command.

    Raises:
        subprocess.TimeoutExpired: It hangs.
    """
    _, said = process.communicate(timeout=LIMIT_SECONDS)
    return Outcome(process.returncode, said, time.monotonic() - began)


def run(words: list[str], variables: Mapping[str, str], work: Path) -> Outcome:
    """Run a command undisturbed."""
    began = time.monotonic()
    return finish(start(words, variables, work), began)


def at_home(home: Path) -> dict[str, str]:
    """Return the environment of commands on the embedded server of a data folder."""
    return {"ALMANAC_HOME": str(home), "ALMANAC_DB": ""}


def prepare(folder: Path, *, small: bool) -> Path:
    """Fill ``home`` and ``files`` in a folder with what the commands start from; return ``home``, stopped."""
    home, files = folder / "home", folder / "files"
    files.mkdir(parents=True)
    torus = ["generate", "fabric", "torus", "--sides", "6,6" if small else "16,16,4", "--capacity"]
    ingest = ["ingest", "--cluster", "pruned", "--observed-at"]
    for words in (
        ["demo"],
        [*torus, "1e9", "-o", str(files / "big.csv"), "--format", "csv"],
        [*torus, "2e9", "-o", str(files / "faster.csv"), "--format", "csv"],
        [*ingest, "2026-01-01", str(files / "big.csv")],
        [*ingest, "2026-01-02", str(files / "faster.csv")],
    ):
        outcome = run(words, at_home(home), files)
        if outcome.code:
            raise RuntimeError(outcome.said)
    stop(home)
    return home


def fresh_copy(home: Path, folder: Path) -> Path:
    """Copy a stopped data folder for a trial."""
    copy = folder / "home"
    if copy.exists():
        stop(copy)
        shutil.rmtree(copy)
    shutil.copytree(home, copy)
    return copy
