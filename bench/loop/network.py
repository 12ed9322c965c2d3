"""Build a planned fabric, count what crosses its cables, and remove it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence

from bench.loop.plan import SWITCHES, Plan

PROGRAMS = ("ip", "tc", "unshare", "mpirun.openmpi", "mpicc.openmpi")


class Refused(Exception):
    """This machine cannot build the fabric; the text says why."""


@contextlib.contextmanager
def built(plan: Plan) -> Iterator[None]:
    """Build a fabric, and remove it at the end, also after an error or a signal.

    Raises
    ------
    Refused
        A program is missing, the user is not root, or the kernel refuses.
    """
    for program in PROGRAMS:
        if shutil.which(program) is None:
            raise Refused(f"{program} is not installed")
    if os.geteuid() != 0:
        raise Refused("network namespaces need root")
    if left := existing(plan):
        raise Refused(f"{left[0]} exists: another run, or a killed one (remove it with --remove)")
    try:
        for command in plan.commands():
            _run(command)
        yield
    finally:
        remove(plan)


def existing(plan: Plan) -> list[str]:
    """Return the namespaces of a plan's prefix that exist."""
    names = [line.split()[0] for line in _run(["ip", "netns", "list"]).splitlines() if line.strip()]
    return [name for name in names if name.startswith(plan.prefix)]


def remove(plan: Plan) -> None:
    """End what runs in the namespaces of a plan's prefix, and remove them."""
    for name in existing(plan):
        with contextlib.suppress(Refused):
            for process in _run(["ip", "netns", "pids", name]).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
        with contextlib.suppress(Refused):
            _run(["ip", "netns", "delete", name])


def counted(plan: Plan) -> tuple[dict[tuple[str, str], int], int]:
    """Return the bytes sent by each port of a switch, by the ends of its cable, and the dropped packets."""
    text = _run(["tc", "-n", plan.prefix + SWITCHES, "-statistics", "-json", "qdisc", "show"])
    found = {one["dev"]: one for one in json.loads(text) if one["kind"] == "tbf"}
    sent = {
        (one.source, one.target): int(found[one.device]["bytes"])
        for one in plan.cables()
        if one.namespace == SWITCHES
    }
    return sent, sum(int(one["drops"]) for one in found.values())


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
