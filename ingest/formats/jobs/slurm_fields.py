"""What the three ways in which Slurm prints a job have in common: states, times, ids, slots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ingest.formats.jobs.hostlists import expand
from registry.errors import InputError, InvalidValue
from registry.model import Job, as_utc
from registry.model.rank_order import shared

NOTHING = frozenset({"", "(null)", "null", "none", "n/a", "unknown", "none assigned"})
"""What Slurm prints where there is no value, in lower case."""
LAUNCHERS = frozenset({"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy"})
"""Names of steps that hold an MPI launcher's daemons, one a host, and not the application's ranks."""
MAX_JOBS = 1 << 20
"""Most jobs of one file: a bound on memory, about a kilobyte each."""
MAX_JOB_HOSTS = 1 << 24
"""Most hosts of the jobs of one file, each time that one is named; sixteen bytes each."""
_BEFORE_START = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"}
)
_BEFORE_END = _BEFORE_START | {
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "RESIZING",
    "SIGNALING",
    "STAGE_OUT",
    "STOPPED",
}
_STATE = re.compile(r"[A-Z_]+")
_TASKS = re.compile(r"(\d{1,9})(?:\(x(\d{1,9})\))?", re.A)
_DISTRIBUTIONS = ("block", "cyclic", "plane", "arbitrary")
_TWO_LEVELS = re.compile(r"[bc](block|cyclic|full)")
"""How older versions write a distribution over hosts and one within them."""
_OVER_HOSTS = {"b": "block", "c": "cyclic"}


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file, for errors."""

    path: str
    line: int | None = None
    text: str | None = None

    def error(self, reason: str) -> InputError:
        """An error at this place."""
        return InputError(reason, path=self.path, line=self.line, text=self.text)


@dataclass(slots=True)
class Room:
    """What the jobs of one file may still take; a few letters can name many thousand hosts."""

    path: str
    jobs: int = MAX_JOBS
    hosts: int = MAX_JOB_HOSTS

    def take(self, job: Job) -> None:
        """Count a job.

        Raises
        ------
        InputError
            There are too many, or on too many hosts.
        """
        self.jobs -= 1
        self.hosts -= len(job.hosts)
        if self.jobs < 0 or self.hosts < 0:
            reason = (
                f"holds more than {MAX_JOBS} jobs, or hosts of jobs {MAX_JOB_HOSTS} times: split it by time"
            )
            raise InputError(reason, path=self.path)


def parse_hosts(text: str, where: Where) -> tuple[str, ...]:
    """The hosts of a job in the scheduler's order; none where it has none."""
    if text.strip().lower() in NOTHING:
        return ()
    return expand(text, path=where.path, line=where.line)


def parse_state(text: str, where: Where) -> str:
    """The base word of ``CANCELLED by 0`` or ``IDLE+DRAIN``."""
    found = _STATE.match(text.strip().upper())
    if found is None:
        raise where.error("not a job state")
    return found.group()


def parse_time(text: str, where: Where) -> datetime | None:
    """A time as Slurm prints it; a time without a zone is taken to be UTC."""
    if text.strip().lower() in NOTHING:
        return None
    try:
        return as_utc(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError) as error:
        raise where.error(f"not a time such as 2026-01-31T12:00:00: {text.strip()!r}") from error


def parse_epoch(seconds: int | None, where: Where) -> datetime | None:
    """A time given in seconds since 1970; 0 is none."""
    if not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise where.error(f"not a time: {seconds} seconds since 1970") from error


def parse_distribution(text: str) -> str:
    """``block``, ``cyclic``, ``plane`` or ``arbitrary`` of ``Block``, ``CBlock`` or ``Cyclic,Block``."""
    word = re.split(r"[,:=\s]", text.strip().lower(), maxsplit=1)[0]
    if _TWO_LEVELS.fullmatch(word):
        return _OVER_HOSTS[word[0]]
    return word if word in _DISTRIBUTIONS else ""


def array_id(job: str, task: str) -> str:
    """``3_1`` of an array's element, ``3_[4-6%2]`` of elements that wait together, as squeue prints it."""
    return f"{job}_{task}" if task.isdigit() else f"{job}_[{task}]"


def het_id(job: str, offset: str) -> str:
    """``7+1``: a component of a heterogeneous job."""
    return f"{job}+{offset}"


def even(ranks: int, hosts: int) -> tuple[int, ...]:
    """The same number of slots on each host, just enough for the ranks; at least one."""
    return (max(1, -(-ranks // hosts)),) * hosts if hosts else ()


def lay_out(ranks: int, room: Sequence[int]) -> tuple[int, ...]:
    """Ranks on each host as Slurm counts them (`shared`), at least one; unknown ranks (0) fill the room."""
    if not ranks:
        return tuple(max(1, slots) for slots in room)
    return tuple(max(1, count) for count in shared(ranks, room))


def parse_tasks_per_node(text: str, hosts: int, where: Where) -> tuple[int, ...]:
    """Slots of each host of ``4(x16)`` or ``3,2(x4)``; a single number is that of every host."""
    counts: list[int] = []
    for part in text.split(","):
        found = _TASKS.fullmatch(part.strip())
        repeats = int(found.group(2) or 1) if found else 0
        if found is None or len(counts) + repeats > max(hosts, 1):
            raise where.error(f"not the tasks of {hosts} hosts: {text!r}")
        counts.extend([int(found.group(1))] * repeats)
    return tuple(counts) * hosts if len(counts) == 1 else tuple(counts)


def make_job(
    where: Where,
    *,
    state: str,
    times: tuple[datetime | None, datetime | None, datetime | None],
    hosts: Sequence[str],
    slots: Sequence[int],
    ranks: int,
    guessed: bool = False,
    **about: Any,
) -> Job:
    """A job whose fields fit together.

    What the scheduler only expects is left out: the start of a job that waits, the end of one that
    runs. Slots that are fewer than the ranks become an even share.

    Parameters
    ----------
    where : Where
    state : str
    times : (submitted, started, ended)
    hosts : sequence of str
    slots : sequence of int
        One number a host.
    ranks : int
        0 unknown.
    guessed : bool
        Whether the slots are an even share already.
    **about
        The other fields of `Job`.
    """
    submitted, started, ended = times
    if not all(slots) or sum(slots) < ranks:
        slots, guessed = even(ranks, len(hosts)), True
    try:
        return Job(
            state=state,
            submitted_at=submitted,
            started_at=None if state in _BEFORE_START else started,
            ended_at=None if state in _BEFORE_END else ended,
            hosts=tuple(hosts),
            slots=tuple(slots),
            guessed=guessed and bool(hosts),
            ranks=ranks,
            **about,
        )
    except InvalidValue as error:
        raise where.error(error.reason) from error
