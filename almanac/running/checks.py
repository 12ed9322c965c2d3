"""Whether each launcher of this machine starts ranks where an order has them, on the hosts of a job."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from almanac.job_environment import JobEnvironment
from almanac.running.call import parse_call
from almanac.running.launchers import LAUNCHERS, Launcher, launcher_of
from almanac.running.order import Order
from almanac.running.run import VERIFY_SECONDS, apply_order
from almanac.running.verification import Verification, verify_order
from registry.errors import AlmanacError, Unplaced, Unverified
from registry.model.job import MeasuredRun

APPLICATION = "almanac doctor"
"""Application of the measured runs that checks are stored as."""
_SUFFIXES = ("", ".openmpi", ".mpich")


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherCheck:
    """A launcher that was tried."""

    launcher: str
    """Name and version."""
    path: str
    found: Verification | str
    """What was seen, or the reason why nothing was."""
    started_at: datetime
    wall_seconds: float


def check_launchers(
    job: JobEnvironment, folder: Path, *, seed: int = 0, environment: Mapping[str, str] = os.environ
) -> Iterator[LauncherCheck]:
    """Start every known launcher of the search path once, with the ranks of a job in a random order.

    Args:
        folder: Folder for the launchers' files; best one that all hosts share.
    """
    known: set[str] = set()
    for path in _paths():
        begin, clock = datetime.now(UTC), time.monotonic()
        found: Verification | str
        name = Path(path).name
        try:
            launcher = launcher_of([path])
            name = launcher.name
            if name in known:
                continue
            known.add(name)
            found = _try(path, launcher, job, folder, (seed, environment))
        except (Unplaced, Unverified) as error:
            found = str(error)
        wall = time.monotonic() - clock
        yield LauncherCheck(launcher=name, path=path, found=found, started_at=begin, wall_seconds=wall)


def measured_check(check: LauncherCheck, job: JobEnvironment, cluster: str) -> MeasuredRun | None:
    """Return a check as the measured run that is stored; None if nothing was seen."""
    if isinstance(check.found, str):
        return None
    return MeasuredRun(
        cluster=cluster,
        application=APPLICATION,
        program="",
        ranks=sum(job.slots),
        hosts=job.hosts,
        slots=job.slots,
        launcher=check.launcher,
        job=job.job,
        started_at=check.started_at,
        wall_seconds=check.wall_seconds,
        verified=not check.found.misplaced,
    )


def _paths() -> Iterator[str]:
    """Return the launchers of the search path; the same file under two names counts once."""
    seen: set[str] = set()
    for name in dict.fromkeys(program for one in LAUNCHERS for program in one.programs):
        for path in filter(None, (shutil.which(name + suffix) for suffix in _SUFFIXES)):
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                yield path


def _try(
    path: str, launcher: Launcher, job: JobEnvironment, folder: Path, case: tuple[int, Mapping[str, str]]
) -> Verification:
    """Start a launcher with the ranks of a job in a random order; raises `Unplaced` or `Unverified`."""
    from mapping.launchers import write
    from mapping.placement.methods.baselines import in_order
    from registry.model import Allocation, Fabric

    if launcher.keeps_counts or not launcher.label:
        raise Unverified(
            "the first run with it shows whether it obeys" if launcher.label else "it labels no output"
        )
    seed, environment = case
    count = len(job.hosts)
    arcs = [*range(count)], [count] * count
    try:
        fabric = Fabric.from_arcs(
            [*job.hosts, "any switch"], arcs[0] + arcs[1], arcs[1] + arcs[0], 1.0, slots=[*job.slots, 0]
        )
        placement = in_order(sum(job.slots), Allocation.of(fabric, job.hosts, job.slots))
        hosts = np.random.default_rng(seed).permutation(placement.host_of_rank)
        text = write(launcher.format, replace(placement, host_of_rank=hosts), fabric)
    except AlmanacError as error:
        raise Unverified(str(error)) from error
    call = parse_call([path, "true"], launcher.values)
    order = Order(ranks=len(hosts), text=text, placement=f"doctor-{os.getpid()}", reasons=())
    run = apply_order(call, launcher, order, folder)
    added = run.words[1 : 1 + len(launcher.added)]
    names = [job.hosts[host] for host in hosts.tolist()]
    return verify_order(
        call, launcher, names, (added, {**environment, **run.environment}), folder, VERIFY_SECONDS
    )
