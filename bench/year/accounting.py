"""Jobs of a cluster hour by hour, as a scheduler reports them: when they start and when they end."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from bench.dashboard.jobs import ACCOUNTS, USERS
from bench.dashboard.machine import SLOTS
from registry.model import Floats, Job

HOSTS = 2 ** np.arange(9)
SHARES = np.array([0.08, 0.07, 0.10, 0.15, 0.25, 0.15, 0.10, 0.07, 0.03])
"""Part of the jobs with so many hosts; the median is 16."""
USE = 0.8
"""Part of the cluster's hours that jobs use."""
SPREAD = 0.8
"""Standard deviation of the logarithm of the jobs' hours."""


@dataclass(slots=True)
class Accounting:
    """The jobs of a cluster.

    Attributes
    ----------
    hosts : in the order in which the scheduler hands them out
    per_day : jobs submitted per day, at random times
    """

    hosts: Sequence[str]
    per_day: int
    draw: np.random.Generator
    submitted: int = 0
    _events: list[tuple[datetime, str, Job]] = field(default_factory=list)
    _free_at: Floats = field(init=False)

    def __post_init__(self) -> None:
        self._free_at = np.zeros(len(self.hosts))

    def between(self, start: datetime, end: datetime) -> tuple[Job, ...]:
        """Submit the jobs of a period; return those that started or ended in it, as they are at its end."""
        share = (end - start) / timedelta(days=1)
        count = int(self.draw.poisson(self.per_day * share))
        for part in np.sort(self.draw.random(count)).tolist():
            self._submit(start + (end - start) * part)
        found: dict[str, Job] = {}
        while self._events and self._events[0][0] <= end:
            _, identity, job = heapq.heappop(self._events)
            found[identity] = job
        return tuple(found.values())

    def _submit(self, at: datetime) -> None:
        """Give a job the first hosts of the earliest time when enough are free."""
        counts = np.minimum(HOSTS, len(self.hosts) // 4)
        size = int(self.draw.choice(counts, p=SHARES))
        earliest = float(np.partition(self._free_at, size - 1)[size - 1])
        begun = datetime.fromtimestamp(int(np.ceil(max(at.timestamp(), earliest))), UTC)
        chosen = np.flatnonzero(self._free_at <= begun.timestamp())[:size]
        mean = USE * 24 * len(self.hosts) / (self.per_day * float(counts @ SHARES))
        hours = float(self.draw.lognormal(np.log(mean) - SPREAD**2 / 2, SPREAD))
        ended = (begun + timedelta(hours=hours)).replace(microsecond=0)
        self._free_at[chosen] = ended.timestamp()
        self.submitted += 1
        user = int(self.draw.integers(len(USERS)))
        job = Job(
            id=str(1_000_000 + self.submitted),
            name=f"run-{user}-{size}",
            user=USERS[user],
            account=ACCOUNTS[user % len(ACCOUNTS)],
            partition="batch",
            state="RUNNING",
            submitted_at=at.replace(microsecond=0),
            started_at=begun,
            hosts=tuple(self.hosts[host] for host in chosen.tolist()),
            slots=(SLOTS,) * size,
            ranks=SLOTS * size,
            distribution="block",
            source="slurm-sacct",
        )
        state = "FAILED" if self.draw.random() < 0.1 else "COMPLETED"
        heapq.heappush(self._events, (begun, job.id, job))
        heapq.heappush(self._events, (ended, job.id, replace(job, state=state, ended_at=ended)))
