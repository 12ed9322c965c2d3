"""A cluster of two leaf switches with one uplink, and jobs that run on it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from registry.model import Job, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.traffic_jobs import two_leaves

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
FABRIC = two_leaves(uplinks=1)
ACROSS = Profile.from_edges([0, 1, 2, 3], [1, 0, 3, 2], [8.0] * 4, name="across", application="halo")
ONE_WAY = Profile.from_edges([0], [1], [4.0], name="one-way", application="stream")


def job(number: str, hosts: tuple[str, ...], **more: Any) -> Job:
    """Return a job that runs from `T0` on, one rank per host."""
    fields: dict[str, Any] = {"user": "ann", "state": "RUNNING", "started_at": T0, "source": "test"} | more
    return Job(id=number, hosts=hosts, slots=(1,) * len(hosts), **fields)


def save_running_jobs(registry: Registry) -> None:
    """Save cluster c and its jobs.

    Job 1 sends 16 bytes each way over the one uplink in 64 seconds, job 2 sends 4 from A to B in 8 seconds;
    the load of job 3 and 5 is unknown, and 4 and 6 do not run now: 4 ended after an hour, 6 waits.
    """
    jobs = (
        job("1", ("a0", "b0", "a1", "b1")),
        job("2", ("a0", "b1"), user="bob"),
        job("3", ("a1",)),  # no profile
        job("4", ("a0", "b0"), ended_at=T0 + timedelta(hours=1)),
        job("5", ("a1", "b0"), distribution="arbitrary"),
        job("6", ("a1", "b0"), state="PENDING", started_at=None),
    )
    seen = Intake(cluster="c", fabric=FABRIC, observed_at=T0, jobs=jobs, profiles=(ACROSS, ONE_WAY))
    registry.save(replace(seen, source="test"))
    registry.jobs.attach("1", "across", iteration_seconds=64.0)
    for number in ("2", "4", "5", "6"):
        registry.jobs.attach(number, "one-way", iteration_seconds=8.0)
