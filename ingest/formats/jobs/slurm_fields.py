"""Jobs, states, times, ids and slots in the notation of all tools of Slurm."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ingest.formats.jobs.hostlists import expand
from ingest.parsed import Count, Parsed, counted
from ingest.reading.source import SourceFile
from registry.errors import InputError, InvalidValue
from registry.model import Job, as_utc
from registry.model.rank_order import shared

NOTHING = frozenset({"", "(null)", "null", "none", "n/a", "unknown", "none assigned"})
"""Texts for a missing value in Slurm's output, in lower case."""
_OTHER_STEPS = frozenset({"batch", "extern", "interactive"})
LAUNCHERS = frozenset({"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy"})
"""Names of steps that run an MPI launcher's daemons, one per host, instead of the application's ranks."""
MAX_JOBS = 1 << 20
"""Largest number of jobs in one file; each takes about a kilobyte of memory."""
MAX_JOB_HOSTS = 1 << 24
"""Largest number of hosts in the jobs of one file, counting repetitions; each takes sixteen bytes."""
_BEFORE_START = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"}
)
_BEFORE_END = _BEFORE_START.union(
    ("RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED")
)
_STATE = re.compile(r"[A-Z_]+")
_ID = re.compile(r"\d[\d_+]*(?:\[[\d,%:-]*\.{0,3}\]?)?(?:\.\w+)?$", re.A)
_TASKS = re.compile(r"(\d{1,9})(?:\(x(\d{1,9})\))?", re.A)
_DISTRIBUTIONS = ("block", "cyclic", "plane", "arbitrary")
DIAGNOSTIC = re.compile(r"(?:squeue|sacct|scontrol|slurm\w*)(?:: (?:error|warning|info|debug)| error): .*")
"""Line that these tools print on standard error, which ``2>&1`` mixes with their output."""
_TWO_LEVELS = re.compile(r"[bc](block|cyclic|full)")
"""Distributions over hosts and within them, as written by older versions."""
_OVER_HOSTS = {"b": "block", "c": "cyclic"}


@dataclass(frozen=True, slots=True)
class Where:
    """A location in a file, for errors."""

    path: str
    line: int | None = None
    text: str | None = None

    def error(self, reason: str) -> InputError:
        """Return an error at this location."""
        return InputError(reason, path=self.path, line=self.line, text=self.text)


@dataclass(slots=True)
class JobList:
    """Jobs of one file by id, within limits: a few letters can name many thousand hosts.

    Attributes
    ----------
    path : str
        Path of the file, for errors.
    requeued : bool
        True if the file may contain several runs of a job; the last one is kept.
    runs : int
        Number of ignored earlier runs of requeued jobs.
    diagnostics : int
        Number of ignored lines that the tool printed on standard error.
    """

    path: str
    requeued: bool = False
    runs: int = 0
    diagnostics: int = 0
    _jobs: dict[str, Job] = field(default_factory=dict)
    jobs_left: int = MAX_JOBS
    hosts_left: int = MAX_JOB_HOSTS

    def lines(self, file: SourceFile) -> Iterator[tuple[int, str]]:
        """Yield the lines of the file with their numbers, without the tool's diagnostics."""
        for number, line in enumerate(file.lines(), start=1):
            if DIAGNOSTIC.fullmatch(line):
                self.diagnostics += 1
            else:
                yield number, line

    def add(self, job: Job, where: Where) -> None:
        """Add a job.

        Raises
        ------
        InputError
            There are too many jobs or hosts, or the job is repeated.
        """
        self.jobs_left -= 1
        self.hosts_left -= len(job.hosts)
        if self.jobs_left < 0 or self.hosts_left < 0:
            reason = f"more than {MAX_JOBS} jobs or {MAX_JOB_HOSTS} hosts of jobs: split the file by time"
            raise InputError(reason, path=self.path)
        if job.id in self._jobs:
            if not self.requeued:
                raise where.error(f"job {job.id} is repeated")
            self.runs += 1
        self._jobs[job.id] = job

    def parsed(self, *notes: Count) -> Parsed:
        """Return the jobs with warnings; raise `InputError` if there are no jobs."""
        if not self._jobs:
            raise InputError("no jobs found", path=self.path)
        runs = (self.runs, "earlier run of requeued jobs is", "earlier runs of requeued jobs are", "ignored")
        said = "the tool's own diagnostics: jobs may be missing"
        diagnostics = (self.diagnostics, "line is", "lines are", said)
        return Parsed(jobs=tuple(self._jobs.values()), warnings=tuple(counted(*notes, runs, diagnostics)))


def cells_between_bars(
    line: str, columns: Sequence[str], free_text: Sequence[str], where: Where
) -> dict[str, str]:
    """Return the cells of a row by column; surplus ones are joined again.

    Parameters
    ----------
    line : str
        Cells separated by ``|``.
    columns : sequence of str
        Names of the columns.
    free_text : sequence of str
        Columns in which users may write ``|``, the most likely first: surplus cells are from there.
    where : Where
        Location of the row, for errors.
    """
    cells = line.split("|")
    surplus = len(cells) - len(columns)
    free = next((columns.index(name) for name in free_text if name in columns), None)
    if surplus < 0 or (surplus and free is None):
        raise where.error(f"the row has {len(cells)} cells, not {len(columns)}: is it truncated?")
    if surplus and free is not None:
        cells[free : free + surplus + 1] = ["|".join(cells[free : free + surplus + 1])]
    return dict(zip(columns, cells, strict=True))


class RowsBetweenBars:
    """Rows with ``|`` between columns, of several lines where users have written line ends.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    texts : container of str
        Columns in which users may write line ends, except the name.
    job, state, name : str
        Names of the columns of a job's number, its state and its name.
    """

    def __init__(
        self, columns: Sequence[str], texts: Container[str], *, job: str, state: str, name: str
    ) -> None:
        at = {column: index for index, column in enumerate(columns)}
        self._last = len(columns) - 1
        self._text = min((index for column, index in at.items() if column in texts), default=len(columns))
        self._name = at.get(name, len(columns))
        self._open_ended = self._name == self._last or columns[-1] in texts
        signs = ((at.get(job), _ID), (at.get(state), _STATE))
        self._signs = [(index, sign) for index, sign in signs if index is not None and index < self._text]

    def split(self, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield the number and text of each row; empty lines between rows are skipped."""
        row: list[tuple[int, str]] = []
        bars = 0
        for number, line in lines:
            if row and self._begins(line, bars):
                yield from self._whole(row)
                row, bars = [], 0
            if row or line.strip():
                row.append((number, line))
                bars += line.count("|")
        yield from self._whole(row)

    def _begins(self, line: str, bars: int) -> bool:
        """Return True if a line begins a row; `bars` is the number of ``|`` in the row before."""
        cells = line.split("|")
        if bars < min(self._text, self._name):  # no text yet: the row before was cut off
            return True
        if bars >= self._last and (len(cells) == self._last + 1 or not self._signs):
            return True
        if not self._signs:
            return False
        if len(cells) > (self._text if bars >= self._last else self._last):
            return all(sign.match(cells[index].strip()) for index, sign in self._signs)
        return bars >= self._last and len(cells) == self._name + 1 and _ID.match(cells[0]) is not None

    def _whole(self, row: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield a row; lines without ``|`` behind its last column are rows of their own, which are wrong."""
        end = len(row)
        while not self._open_ended and end > 1 and "|" not in row[end - 1][1]:
            end -= 1
        if row:
            yield row[0][0], "\n".join(line for _, line in row[:end])
        yield from ((number, line) for number, line in row[end:] if line.strip())


def present(text: str) -> str:
    """Return the text; empty if Slurm prints it for a missing value."""
    return "" if text.lower() in NOTHING else text


def is_application(step: str, name: str) -> bool:
    """Return True if a step, such as ``4711.0``, runs the application's ranks; `name` is that of the step."""
    return step.rpartition(".")[2] not in _OTHER_STEPS and name not in LAUNCHERS


def parse_count(text: str, column: str, where: Where) -> int:
    """Return the whole number of a cell; 0 if it is empty."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise where.error(f"{column} is not a number: {text!r}")
    return int(text or 0)


def parse_hosts(text: str, where: Where) -> tuple[str, ...]:
    """Return the hosts of a job in the scheduler's order."""
    if text.strip().lower() in NOTHING:
        return ()
    return expand(text, path=where.path, line=where.line)


def parse_state(text: str, where: Where) -> str:
    """Return the first word of a state such as ``CANCELLED by 0`` or ``IDLE+DRAIN``."""
    found = _STATE.match(text.strip().upper())
    if found is None:
        raise where.error("not a job state")
    return found.group()


def parse_time(text: str, where: Where) -> datetime | None:
    """Return a time in Slurm's notation; a time without a zone is taken as UTC."""
    if text.strip().lower() in NOTHING:
        return None
    try:
        return as_utc(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError) as error:
        raise where.error(f"not a time such as 2026-01-31T12:00:00: {text.strip()!r}") from error


def parse_epoch(seconds: int | None, where: Where) -> datetime | None:
    """Return a time given in seconds since 1970; None for 0."""
    if not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise where.error(f"not a time: {seconds} seconds since 1970") from error


def parse_distribution(text: str) -> str:
    """Return a distribution over hosts, such as ``cyclic`` for ``Cyclic,Block``."""
    word = re.split(r"[,:=\s]", text.strip().lower(), maxsplit=1)[0]
    if _TWO_LEVELS.fullmatch(word):
        return _OVER_HOSTS[word[0]]
    return word if word in _DISTRIBUTIONS else ""


def array_id(job: str, task: str) -> str:
    """Return the id of an array's element (``3_1``) or of waiting elements (``3_[4-6%2]``)."""
    return f"{job}_{task}" if task.isdigit() else f"{job}_[{task}]"


def het_id(job: str, offset: str) -> str:
    """Return the id of a component of a heterogeneous job, such as ``7+1``."""
    return f"{job}+{offset}"


def even_slots(ranks: int, hosts: int) -> tuple[int, ...]:
    """Return the same number of slots for each host, just enough for the ranks; at least one."""
    return (max(1, -(-ranks // hosts)),) * hosts if hosts else ()


def ranks_by_host(ranks: int, room: Sequence[int]) -> tuple[int, ...]:
    """Return the ranks on each host by Slurm's rule (`shared`), at least one; 0 ranks fill the CPUs."""
    if not ranks:
        return tuple(max(1, slots) for slots in room)
    return tuple(max(1, count) for count in shared(ranks, room))


def parse_tasks_per_node(text: str, hosts: int, where: Where) -> tuple[int, ...]:
    """Return the slots of each host from ``4(x16)`` or ``3,2(x4)``; a single number applies to every host."""
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
    times: Sequence[datetime | None],
    hosts: Sequence[str],
    slots: Sequence[int],
    ranks: int,
    guessed: bool = False,
    **about: Any,
) -> Job:
    """Return a job with consistent fields.

    Expected values are dropped: the start of a waiting job, the end of a running one. If the slots are fewer
    than the ranks, they are replaced by an even share.

    Parameters
    ----------
    where : Where
        Location of the job, for errors.
    times : sequence of datetime or None
        Times of submission, start and end; None if unknown.
    hosts : sequence of str
        Hosts in the scheduler's order.
    slots : sequence of int
        Number of slots of each host.
    ranks : int
        Number of ranks; 0 if unknown.
    guessed : bool
        True if the slots are an even share already.
    **about
        Other fields of `Job`.
    """
    submitted, started, ended = times
    if not all(slots) or sum(slots) < ranks:
        slots, guessed = even_slots(ranks, len(hosts)), True
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
