"""Whether a launcher starts each rank where an order has it: tried with a program that prints its host.

The launcher itself writes the rank before each line. If there is a compiler of MPI programs, the program asks
the MPI library for its rank as well, and both must agree with the order.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from almanac.running.call import Call
from almanac.running.launchers import Launcher
from registry.database.supervisor import die_with_parent
from registry.errors import Unverified
from registry.model.host_names import without_domain

PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

int main(int argc, char **argv) {
    int rank, ranks;
    struct utsname system;
    const char *node = getenv("SLURMD_NODENAME");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uname(&system);
    printf("almanac-rank %d %d %s\\n", rank, ranks, node ? node : system.nodename);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
"""
_SHELL = ("sh", "-c", 'echo "almanac-rank 0 0 ${SLURMD_NODENAME:-$(uname -n)}"')
_LINE = r"almanac-rank (\d+) (\d+) (\S+)\s*"
_COMPILE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Where a launcher started ranks."""

    misplaced: tuple[str, ...]
    """A sentence for each rank that ran on another host than asked for; empty if each ran where it should."""
    by: str
    """Who said so, as words: the launcher, or the launcher and the MPI library."""


def verify_order(
    call: Call,
    launcher: Launcher,
    hosts: Sequence[str],
    run: tuple[Sequence[str], Mapping[str, str]],
    folder: Path,
    seconds: float,
) -> Verification:
    """Start a program that prints its host in place of the user's, and compare each rank's with the order.

    Args:
        hosts: Host of each rank.
        run: Options with which the launcher takes the order, and the environment.
        folder: Folder for the compiled program; it must be there on all hosts, else only the launcher is
            asked.
        seconds: Longest time.

    Raises:
        Unverified: The launcher fails, takes too long or does not report each rank once.
    """
    added, environment = run
    deadline = time.monotonic() + seconds
    dropped = {*launcher.replaced, *launcher.redirecting}

    def places(program: Sequence[str], share: float) -> tuple[dict[int, str], dict[int, str]]:
        words = replace(call, program=tuple(program)).words((*added, *launcher.labelled), dropped)
        return _places(
            _output(words, environment, share * (deadline - time.monotonic())), launcher, len(hosts)
        )

    program = compiled(launcher, folder)
    if program is not None:
        try:
            said, counted = places([str(program)], 0.6)
            wrong = _misplaced(hosts, said) + _misplaced(hosts, counted)
            return Verification(
                misplaced=tuple(dict.fromkeys(wrong)),
                by="the launcher and the MPI library" if counted else "the launcher",
            )
        except Unverified:  # this compiler may be of another MPI library
            pass
    said, _ = places(_SHELL, 1.0)
    return Verification(misplaced=tuple(_misplaced(hosts, said)), by="the launcher")


def compiled(launcher: Launcher, folder: Path) -> Path | None:
    """Return the MPI program, compiled into a folder; None if there is no compiler, or it fails."""
    compiler = next(filter(None, map(shutil.which, launcher.compilers)), None)
    if compiler is None:
        return None
    source, program = folder / "where.c", folder / f"where-{Path(compiler).name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        source.write_text(PROGRAM, encoding="utf-8")
        words = [compiler, "-o", str(program), str(source)]
        done = subprocess.run(words, capture_output=True, timeout=_COMPILE_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return program if done.returncode == 0 else None


def _output(words: Sequence[str], environment: Mapping[str, str], seconds: float) -> str:
    """Return what a launcher prints; `Unverified` is raised if it fails or takes too long."""
    ends_with_us = die_with_parent() if sys.platform == "linux" else None
    try:
        child = subprocess.Popen(  # noqa: S603  # the launcher that the user starts
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=ends_with_us,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise Unverified(f"{words[0]}: {error.strerror}") from error
    with child:
        try:
            printed, complained = child.communicate(timeout=max(seconds, 0.0))
        except subprocess.TimeoutExpired as error:
            child.terminate()  # so that it ends what it started on other hosts
            try:
                child.wait(5.0)
            except subprocess.TimeoutExpired:
                child.kill()
            raise Unverified(f"{words[0]} took longer than {seconds:.0f} s") from error
    if child.returncode != 0:
        last = complained.strip().splitlines()[-1:] or ["no message"]
        raise Unverified(f"{words[0]} ended with {child.returncode}: {last[0]}")
    return printed


def _places(printed: str, launcher: Launcher, ranks: int) -> tuple[dict[int, str], dict[int, str]]:
    """Return each rank's host as the launcher reports it, and as the MPI library does, if it was asked."""
    said: dict[int, str] = {}
    counted: dict[int, str] = {}
    for line in printed.splitlines():
        found = re.fullmatch(launcher.label + _LINE, line)
        if found is None:
            continue
        label, rank, size, host = int(found[1]), int(found[2]), int(found[3]), found[4]
        if label in said:
            raise Unverified(f"rank {label} ran twice")
        said[label] = host
        if size == ranks:  # else this library was not started by this launcher
            counted[rank] = host
    if sorted(said) != list(range(ranks)):
        raise Unverified(f"{len(said)} of {ranks} ranks said where they ran")
    return said, counted if len(counted) == ranks else {}


def _misplaced(hosts: Sequence[str], found: Mapping[int, str]) -> list[str]:
    return [
        f"rank {rank} ran on {found[rank]}, not on {host}"
        for rank, host in enumerate(hosts)
        if rank in found and _short(found[rank]) != _short(host)
    ]


def _short(host: str) -> str:
    """Return a host's name without its domain: launchers print either."""
    return without_domain(host).lower()
