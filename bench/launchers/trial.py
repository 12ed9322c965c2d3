"""Try a case: apply its order, start the MPI program, and compare the hosts that its ranks print."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from almanac.running.call import parse_call
from almanac.running.hosts import hosts_of
from almanac.running.launchers import launcher_of
from almanac.running.run import apply_order
from almanac.running.verification import compiled
from bench.launchers.cases import Case
from bench.launchers.pretended import Job, Pretended
from registry.errors import Unplaced

SECONDS = 120.0
"""Longest time of a case."""
_LINE = re.compile(r"almanac-rank (\d+) (\d+) (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A case that was tried."""

    requested: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    error: str = ""

    @property
    def equal(self) -> bool:
        """Return True if each rank ran where it was requested."""
        return not self.error and bool(self.requested) and self.requested == self.printed


def program_for(pretended: Pretended, folder: Path) -> Path | None:
    """Return the MPI program for a launcher, compiled into a folder; None if it cannot be compiled."""
    launcher = replace(launcher_of(pretended.needs[:1]), compilers=(pretended.compiler,))
    return compiled(launcher, folder)


def try_case(case: Case, pretended: Pretended, job: Job, program: Path, folder: Path) -> Trial:
    """Start the program with the ranks of a case in their order, and read where they ran."""
    try:
        with job(case) as started:
            call = parse_call([*started.words, str(program)], launcher_of(started.words).values)
            launcher = launcher_of(call.launcher)
            order = case.order(hosts_of(call, launcher, started.environment), launcher)
            run = apply_order(call, launcher, order, folder)
            done = subprocess.run(
                [*pretended.before, *run.words],
                env={**os.environ, **started.environment, **run.environment},
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
    except (Unplaced, RuntimeError, subprocess.TimeoutExpired) as error:
        return Trial(error=str(error))
    if done.returncode:
        return Trial(requested=order.hosts, error=f"ended with {done.returncode}: {done.stderr[-500:]}")
    return Trial(requested=order.hosts, printed=printed(done.stdout, order.ranks))


def printed(text: str, ranks: int) -> tuple[str, ...]:
    """Return the host of each rank by the MPI library's numbers; one that did not print is ``?``.

    A rank that counts other ranks than were started did not get its number from the launcher.
    """
    found: dict[int, Sequence[str]] = {}
    for rank, size, host in _LINE.findall(text):
        found[int(rank)] = (*found.get(int(rank), ()), host if int(size) == ranks else f"{host} of {size}")
    return tuple(
        " and ".join(found.get(rank, "?")) for rank in range(max([ranks, *(one + 1 for one in found)]))
    )
