"""Run a tool in a process of its own under a limit of its processor time, and read its answer."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path

import numpy as np

from registry.model import Ints

WAITING = 20
"""A process is ended after this many times its limit of processor time, however little it used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of one tool.

    Attributes
    ----------
    seconds, cpu_seconds : wall and processor time of its process, start and reading of its input included
    slot_of_rank : int32[ranks]; slot of the allocation; None where it gave no result
    why : why there is none
    """

    tool: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    slot_of_rank: Ints | None = None
    why: str = ""


def run_child(folder: Path, limit: float, *arguments: str) -> tuple[Answer, Path]:
    """Run a tool that has a Python interface in its own interpreter; return also the file of its answer."""
    out = folder / "answer.npy"
    out.unlink(missing_ok=True)
    return run([sys.executable, "-m", "bench.quality.peers.child", str(folder), *arguments], limit), out


def run(arguments: list[str], limit: float) -> Answer:
    """Run a process with one thread of OpenMP; `why` is the reason if it failed.

    Parameters
    ----------
    limit : seconds of processor time, so that a busy machine does not change the results
    """
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            timeout=WAITING * limit,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (ceil(limit), ceil(limit) + 1)),
        )
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        why = "" if done.returncode == 0 else f"exit {done.returncode}: {lines[-1] if lines else ''}"
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            why = f"not done in {limit:g} s"
    except subprocess.TimeoutExpired:
        why = f"not done in {limit:g} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Answer(tool="", seconds=time.perf_counter() - begin, cpu_seconds=cpu, why=why)


def read_answer(name: str, ran: Answer, reader: Callable[[], Ints]) -> Answer:
    """Return the answer of a successful process; more than one rank on a slot is a failure."""
    slot: Ints | None = None
    why = ran.why
    if not why:
        try:
            slot = reader()
        except (OSError, ValueError, IndexError) as error:
            why = f"no readable answer: {error}"
    if slot is not None and len(np.unique(slot)) < len(slot):
        why = f"{len(slot) - len(np.unique(slot))} ranks on a slot that another has"
        slot = None
    return Answer(tool=name, seconds=ran.seconds, cpu_seconds=ran.cpu_seconds, slot_of_rank=slot, why=why)
