"""Type of a job, as reported by a scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from registry.errors import InvalidValue
from registry.model.arguments import first_repeat
from registry.model.views import one_line
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
    """A job as reported by a scheduler.

    Attributes
    ----------
    id : str
        The scheduler's id, such as ``4711`` or ``3_1``.
    name, user, account, partition, state : str
        State is the base word in capitals, such as ``RUNNING``.
    submitted_at, started_at, ended_at : datetime or None
        UTC.
    hosts : tuple of str
        Hosts in the scheduler's order; empty if the job never got any.
    slots : tuple of int
        Number of ranks on each host.
    guessed : bool
        True if the source has neither ranks nor CPUs of each host: then the slots are an even share.
    ranks : int
        Number of tasks; 0 if unknown.
    distribution : str
        ``block``, ``cyclic``, ``plane``, ``arbitrary`` or empty.
    source : str
        Format of the source.
    """

    id: str
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    state: str = ""
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    hosts: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    guessed: bool = False
    ranks: int = 0
    distribution: str = ""
    source: str = ""

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

    Raises
    ------
    InvalidValue
        A text that is no time.
    """
    if isinstance(moment, str):
        try:
            return moment_of(moment, datetime.now(UTC))
        except ValueError as error:
            raise InvalidValue(label, f"{moment!r} is no time such as {MOMENTS}") from error
    if not isinstance(moment, datetime):
        raise InvalidValue(label, f"must be a datetime or text, not {moment!r}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
