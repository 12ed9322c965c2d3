"""Jobs, states, times, ids and slots in the notation of all tools of Slurm."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, TypeVar

from ingest.formats.hostlists import expand
from ingest.parsed import Count, Parsed, counted
from ingest.reading.source import SourceFile
from registry.errors import InputError, InvalidValue
from registry.model import Job, as_utc
from registry.model.placement import shared

_T = TypeVar("_T")
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
STATE_CELL = re.compile(r"[A-Z_]+(?: by \d+|\+)?", re.A)
"""A state as in a table, such as ``CANCELLED by 0``."""
COUNT_CELL = re.compile(r"\d*", re.A)
TIME_CELL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*|Unknown|None|N/A|", re.A | re.I)
"""A time, or a word for a missing one."""
ID_CELL = re.compile(r"\d[\d_+]*(?:\[[\d,%:-]*\.{0,3}\]?)?(?:\.\w+)?", re.A)
"""Number of a job, of elements of an array, of a component or of a step."""
_LISTED = 3
"""Most records left out that a warning describes."""
_IN_TWO_TEXTS = 16
"""Most surplus ``|`` of a row that are looked for in two columns at once."""
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
    """Jobs of one file by id, within limits: a few letters can name many thousand hosts."""

    path: str
    """Path of the file, for errors."""
    requeued: bool = False
    """True if the file may contain several runs of a job; the last one is kept."""
    runs: int = 0
    """Number of ignored earlier runs of requeued jobs."""
    diagnostics: int = 0
    """Number of ignored lines that the tool printed on standard error."""
    left_out: list[InputError] = field(default_factory=list)
    """Why records could not be read."""
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

    def attempt(self, read: Callable[[], _T]) -> _T | None:
        """Return what `read` returns; None if it raises `InputError`: its record is left out."""
        try:
            return read()
        except InputError as error:
            self.left_out.append(error)
            return None

    def add(self, job: Job, where: Where) -> None:
        """Add a job.

        Raises:
            InputError: There are too many jobs or hosts, or the job is repeated.
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
        """Return the jobs with warnings; raise `InputError` if there are none that can be read."""
        if not self._jobs:
            raise next(iter(self.left_out), InputError("no jobs found", path=self.path))
        runs = (self.runs, "earlier run of requeued jobs is", "earlier runs of requeued jobs are", "ignored")
        said = "the tool's own diagnostics: jobs may be missing"
        diagnostics = (self.diagnostics, "line is", "lines are", said)
        first = (InputError(one.reason, line=one.line, text=one.text) for one in self.left_out[:_LISTED])
        why = "left out: " + "; ".join(map(str, first)) + "; ..." * (len(self.left_out) > _LISTED)
        unread = (len(self.left_out), "record is", "records are", why)
        warnings = counted(unread, *notes, runs, diagnostics)
        return Parsed(jobs=tuple(self._jobs.values()), warnings=tuple(warnings))


class RowsBetweenBars:
    """Rows with ``|`` between columns, with ``|`` and line ends where users have written them.

    Args:
        columns: Names of the columns.
        free_text: Columns in which users may write ``|``, the most likely first.
        texts: Those in which users may write line ends, except the name.
        name: Name of the column of a job's name.
        signs: What all cells of a column look like; the first two are those of a job's number and its state.
    """

    def __init__(
        self,
        columns: Sequence[str],
        free_text: Sequence[str],
        texts: Container[str],
        *,
        name: str,
        signs: Mapping[str, re.Pattern[str]],
    ) -> None:
        at = {column: index for index, column in enumerate(columns)}
        self._columns = columns
        self._last = len(columns) - 1
        self._text = min((index for column, index in at.items() if column in texts), default=len(columns))
        self._name = at.get(name, len(columns))
        self._open_ended = self._name == self._last or columns[-1] in texts
        self._free = [at[column] for column in free_text if column in at]
        self._signs = {at[column]: sign for column, sign in signs.items() if column in at}
        heads = [at[column] for column in signs if column in at][:2]
        self._heads = {index: self._signs[index] for index in heads if index < self._text}
        if heads[0] not in self._heads:
            self._heads = {}

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

    def cells(self, line: str, where: Where) -> dict[str, str]:
        """Return the cells of a row by column.

        Surplus ones belong to the column of free text, or to the two, that make most of the others look like
        cells of their columns.
        """
        cells = line.split("|")
        surplus = len(cells) - len(self._columns)
        if surplus < 0 or (surplus and not self._free):
            raise where.error(f"the row has {len(cells)} cells, not {len(self._columns)}: is it truncated?")
        best = max(self._joined(cells, surplus), key=self._fitting) if surplus else cells
        return dict(zip(self._columns, best, strict=True))

    def _joined(self, cells: Sequence[str], surplus: int) -> Iterator[list[str]]:
        """Yield the cells with the surplus ones in one column of free text, then in two of them."""
        for free in self._free:
            yield _join(cells, free, surplus)
        for one, other in combinations(sorted(self._free), 2) if surplus <= _IN_TWO_TEXTS else ():
            for count in range(1, surplus):
                yield _join(_join(cells, one, count), other, surplus - count)

    def _fitting(self, cells: Sequence[str]) -> int:
        """Return how many cells look like cells of their columns."""
        return sum(sign.fullmatch(cells[at].strip()) is not None for at, sign in self._signs.items())

    def _begins(self, line: str, bars: int) -> bool:
        """Return True if a line begins a row; `bars` is the number of ``|`` in the row before.

        A row that is cut off begins like any other, so that it is not taken for text of the one before.
        """
        cells = line.split("|")
        if bars < min(self._text, self._name):  # no text yet: the row before was cut off
            return True
        if bars >= self._last and (len(cells) == self._last + 1 or not self._heads):
            return True
        whole = len(cells) - (len(cells) <= self._last)  # the last cell may be cut off
        if not self._heads or whole <= (min(self._heads) if bars >= self._last else self._last):
            return False
        first = min(self._free, default=self._last)
        return any(
            all(
                sign.fullmatch(cells[at + shift * (at > first)].strip()) is not None
                for at, sign in self._heads.items()
                if at + shift * (at > first) < whole
            )
            for shift in range(max(1, min(len(cells) - self._last, _IN_TWO_TEXTS)))
        )

    def _whole(self, row: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield a row; lines without ``|`` behind its last column are rows of their own, which are wrong."""
        end = len(row)
        while not self._open_ended and end > 1 and "|" not in row[end - 1][1]:
            end -= 1
        if row:
            yield row[0][0], "\n".join(line for _, line in row[:end])
        yield from ((number, line) for number, line in row[end:] if line.strip())


def _join(cells: Sequence[str], at: int, surplus: int) -> list[str]:
    """Return the cells with one and the surplus ones behind it as one."""
    return [*cells[:at], "|".join(cells[at : at + surplus + 1]), *cells[at + surplus + 1 :]]


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

    Args:
        where: Location of the job, for errors.
        times: Times of submission, start and end; None if unknown.
        hosts: Hosts in the scheduler's order.
        slots: Number of slots of each host.
        ranks: Number of ranks; 0 if unknown.
        guessed: True if the slots are an even share already.
        **about: Other fields of `Job`.
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
