"""Type of a job, as reported by a scheduler.

Types of what vanished from the scans of a cluster.

A run of a program by a launcher, with the times that were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from registry.errors import InvalidValue
from registry.model.views import first_repeat, one_line
from registry.units import MOMENTS, moment_of

Time = datetime | str
"""A time as functions accept it: UTC if it has no zone; a text is in the format of ISO 8601."""


FINAL_STATES = (
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "TIMEOUT"),
)
"""States of jobs that have ended, also if their source has no time of the end."""
NOT_ENDED = f"(j.ended_at IS NULL AND NOT coalesce(j.state, '') IN {list(FINAL_STATES)})"
"""Condition on a stored job ``j`` without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as reported by a scheduler."""

    id: str
    """The scheduler's id, such as ``4711`` or ``3_1``."""
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    state: str = ""
    """State is the base word in capitals, such as ``RUNNING``."""
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    """UTC."""
    hosts: tuple[str, ...] = ()
    """Hosts in the scheduler's order; empty if the job never got any."""
    slots: tuple[int, ...] = ()
    """Number of ranks on each host."""
    guessed: bool = False
    """True if the source has neither ranks nor CPUs of each host: then the slots are an even share."""
    ranks: int = 0
    """Number of tasks; 0 if unknown."""
    distribution: str = ""
    """``block``, ``cyclic``, ``plane``, ``arbitrary`` or empty."""
    source: str = ""
    """Format of the source."""

    __repr__ = one_line

    @property
    def has_ended(self) -> bool:
        """True if it has an end, or a state that only ended jobs have."""
        return self.ended_at is not None or self.state in FINAL_STATES

    def __post_init__(self) -> None:
        if not self.id or not isinstance(self.id, str):
            raise InvalidValue("Job.id", "must be a text that is not empty")
        if len(self.hosts) != len(self.slots):
            raise InvalidValue("Job.slots", "needs one number per host")
        if len(set(self.hosts)) != len(self.hosts):
            raise InvalidValue("Job.hosts", f"{first_repeat(self.hosts)!r} is listed twice")
        if isinstance(self.hosts, str):
            raise InvalidValue("Job.hosts", f"must be a sequence, not {self.hosts!r}")
        if any(count < 1 or count != int(count) for count in self.slots):
            raise InvalidValue("Job.slots", "must be whole numbers of at least 1")


class HasJob(Protocol):
    """An object with a job, such as a `StoredJob`; functions accept it in place of the job."""

    @property
    def job(self) -> Job:
        """Job of the object."""


def as_utc(moment: Time, label: str = "time") -> datetime:
    """Return a time in UTC; a time without a zone is taken as UTC, a text as by `registry.units.moment_of`.

    Raises:
        InvalidValue: A text that is no time.
    """
    if isinstance(moment, str):
        try:
            return moment_of(moment, datetime.now(UTC))
        except ValueError as error:
            raise InvalidValue(label, f"{moment!r} is no time such as {MOMENTS}") from error
    if not isinstance(moment, datetime):
        raise InvalidValue(label, f"must be a datetime or text, not {moment!r}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """A cable that a scan no longer saw after an earlier one had seen it.

    Attributes:
        source, target: Names of the devices at its ends.
        source_port, target_port: Ports; `registry.model.NO_PORT` if unknown.
    """

    source: str
    source_port: int
    target: str
    target_port: int
    times: int
    """Number of times that it vanished in the period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A host, switch or cable of an earlier scan that the fabric no longer has."""

    kind: str
    """``host``, ``switch`` or ``cable``."""
    devices: tuple[str, ...]
    """Name of the device; of a cable the devices at its ends."""
    ports: tuple[int, ...] = ()
    """Ports of a cable; `registry.model.NO_PORT` if unknown."""
    cables: int
    """Cables that vanished with a device; of a bundle the number that is missing."""
    since: datetime
    """Time of the first scan without it, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What the scans of a cluster no longer show."""

    cluster: str
    observation: str
    """Id of the latest scan."""
    vanished: tuple[Vanished, ...] = ()
    """What was there after the last ``almanac cluster accept`` and is missing now: switches, hosts, cables.
    """
    interruptions: tuple[Interruption, ...] = ()
    """Cables that vanished in the last period, back or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A run of a program, as `almanac run` measured it."""

    cluster: str
    application: str
    program: str
    """Hash of the program and its arguments: only runs of the same program are compared."""
    ranks: int
    hosts: tuple[str, ...]
    slots: tuple[int, ...]
    """Hosts in the order in which the launcher fills them, and the ranks that each can take."""
    launcher: str
    """Name and version."""
    profile: str | None = None
    placement: str | None = None
    """Ids of the profile and of the placement; without a placement the ranks ran in order."""
    job: str | None = None
    """The scheduler's id of the job."""
    started_at: datetime
    """UTC."""
    wall_seconds: float
    """Time from the start of the launcher to its end."""
    step_seconds: float | None = None
    """Time of a step of the program, if its output has it."""
    steps: int = 0
    """Number of steps from which that time was measured."""
    exit_code: int = 0
    """Exit code of the launcher; negative: the signal that ended it."""
    recorded: bool = False
    """True if the MPI library counted messages meanwhile, which takes time: such runs are not compared."""
    verified: bool | None = None
    """True if the launcher was seen, just before this run, to start each rank where the order has it; False
    if it did not; None if that was not tried."""

    def __post_init__(self) -> None:
        if not self.hosts or len(self.hosts) != len(self.slots):
            raise InvalidValue("MeasuredRun.slots", "needs a number for each of at least one host")
        for name in ("wall_seconds", "step_seconds"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value < math.inf:
                raise InvalidValue(f"MeasuredRun.{name}", f"is {value}, must be finite and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMeasuredRun(MeasuredRun):
    """A measured run as it was saved."""

    id: str
    recorded_at: datetime
    """UTC."""
    other_jobs: tuple[str, ...] = ()
    """The scheduler's ids of other jobs that ran on the cluster meanwhile, as far as the registry knew."""
    other_load: float | None = None
    """Largest share of the capacity of a link of the run that these jobs used, by estimates
    (`mapping.questions.live`); None if it is unknown."""
    rank_order: str = ""
    """Hash of the hosts of all ranks; empty if they ran in order."""
    congestion_seconds: float | None = None
    in_order_congestion_seconds: float | None = None
    """Estimated load of the worst link with the placement, and with the ranks in order."""
