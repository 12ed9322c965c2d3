"""Output of Slurm's ``scontrol``: jobs and steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import NamedTuple

from ingest.formats import slurm_fields as slurm
from ingest.formats.hostlists import expand
from ingest.formats.slurm_fields import LAUNCHERS, Where, make_job, parse_distribution
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Job

_RECORD = re.compile(r"JobId=(\d{1,18})(?=\s|$)", re.A)
_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z/:]*)=")
_OF_LINES = frozenset({"Comment", "AdminComment", "SystemComment", "SubmitLine"})
"""Fields with text of users that may have several lines."""
_USERS = _OF_LINES | {"Command", "WorkDir"}
"""Fields with text of users; Slurm prints none that is read behind them."""
_LAST = re.compile(r"\s(?:StdErr|StdIn|StdOut)=")
"""Fields behind the text of users; a job without a script has none."""
_AFTER_NAME = ("HetJobIdSet", "UserId")
_CPUS = re.compile(r"(?:^|\s)Nodes=(\S+) CPU_IDs=(\S*)")
_CPU_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.A)
_COUNT = re.compile(r"(\d{1,9})(?:-\d{1,9})?", re.A)
_WITHOUT_DETAILS = (
    *("job has", "jobs have"),
    "no CPUs per host, as printed by `scontrol show jobs -d`: their ranks are assumed to be "
    "even over the hosts, and a completing job may run on more hosts than it still lists",
)
_PER_NODE = "NtasksPerN:B:S:C"
_NEEDED = ("JobState", "NodeList", "NumNodes", "NumCPUs")
_TIMES = ("SubmitTime", "StartTime", "EndTime")


@dataclass(slots=True)
class _Record:
    """A record: its numbered lines, and the first line number and value of each key."""

    path: str
    lines: list[tuple[int, str]]
    fields: dict[str, tuple[int, str]] = field(default_factory=dict)
    open: bool = False
    """True while text of users may follow in further lines."""

    def where(self, key: str) -> Where:
        """Return the location of a field."""
        number, value = self.fields[key]
        return Where(self.path, number, f"{key}={value}")

    def raw(self, key: str) -> str:
        """Return the value of a field; empty if it is missing."""
        return self.fields.get(key, (0, ""))[1]

    def text(self, key: str) -> str:
        """Return the value of a field; empty if it is missing or Slurm prints it for a missing value."""
        return slurm.present(self.raw(key))

    def time(self, key: str) -> datetime | None:
        """Return the time of a field; None if it is missing."""
        return slurm.parse_time(self.raw(key), self.where(key)) if key in self.fields else None

    def count(self, key: str) -> int:
        """Return the first number of ``64``, ``2-2`` or ``4:0:*:*``; 0 if it is missing."""
        first = self.text(key).split(":")[0]
        if first == "*" or not slurm.present(first):
            return 0
        found = _COUNT.fullmatch(first)
        if found is None:
            raise self.where(key).error("not a number")
        return int(found.group(1))

    def has_slots(self) -> bool:
        """Return True if the record has tasks per node, or the CPUs of each host."""
        return bool(self.count(_PER_NODE)) or any(_CPUS.search(line) for _, line in self.lines)


def _recognise_slurm_scontrol(head: str, path: str) -> bool:
    """Return True if the first line except comments begins with a job's number."""
    for line in head.splitlines():
        if line.strip() and not line.startswith("#") and not slurm.DIAGNOSTIC.fullmatch(line):
            return _RECORD.match(line) is not None
    return False


def _parse_slurm_scontrol(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the jobs of one file; a line before the first record, and a repeated job, are errors."""
    (file,) = files
    found = slurm.JobList(file.path)
    guessed = 0
    outside: list[int] = []
    for record in _records(file.path, found.lines(file), outside):
        if job := found.attempt(partial(_job, record)):
            found.add(job, Where(file.path, *record.lines[0]))
            guessed += bool(job.hosts) and not record.has_slots()
    rest = f"outside of any job's record: left out, line {outside[0]} first" if outside else ""
    return found.parsed((guessed, *_WITHOUT_DETAILS), (len(outside), "line is", "lines are", rest))


def _records(path: str, lines: Iterator[tuple[int, str]], outside: list[int]) -> Iterator[_Record]:
    """Yield the records; numbers of lines outside of them are added to `outside`."""
    record = _Record(path, [])
    closed = False  # behind an empty line, where no text of users is open
    for number, line in lines:
        if _begins(line, record):
            if record.lines:
                yield _with_fields(record)
            record, closed = _Record(path, [(number, line)]), False
        elif not line.strip():
            closed = not record.open
        elif closed and record.lines:
            outside.append(number)
        elif record.lines:
            record.lines.append((number, line))
        elif not line.startswith("#"):
            raise InputError("a line outside of any job's record", path=path, line=number, text=line)
        record.open = _is_open(line, record.open)
    if record.lines:
        yield _with_fields(record)


def _begins(line: str, record: _Record) -> bool:
    """Return True if a line begins a record; a user's text may have a line with a job's number."""
    return _RECORD.match(line) is not None and (not record.open or "JobName=" in line)


def _is_open(line: str, before: bool) -> bool:
    """Return True if a user's text may go on in the line after this one."""
    if _LAST.search(line):
        return False
    return before or any(key[1] in _OF_LINES for key in _KEY.finditer(line))


def _with_fields(record: _Record) -> _Record:
    """Read the fields from the lines of a record, and drop the text of users at its end."""
    for index, (number, line) in enumerate(record.lines):
        keys = list(_KEY.finditer(line))[::-1]
        while keys:
            key = keys.pop()
            while key.group(1) == "JobName" and keys and keys[-1].group(1) not in _AFTER_NAME:
                keys.pop()
            if key.group(1) in _USERS:
                record.lines[index:] = [(number, line[: key.start()])]
                return record
            value = line[key.end() : keys[-1].start() if keys else None].strip()
            record.fields.setdefault(key.group(1), (number, value))
    return record


def _job(record: _Record) -> Job:
    """Return the job of a record."""
    start = Where(record.path, *record.lines[0])
    for key in _NEEDED:
        if key not in record.fields:
            raise start.error(f"the record has no {key}=: it is truncated")
    names, slots = _hosts_and_slots(record)
    return slurm.make_job(
        start,
        id=_id(record),
        name=record.raw("JobName"),
        user=record.text("UserId").split("(")[0],
        account=record.text("Account"),
        partition=record.text("Partition"),
        state=slurm.parse_state(record.raw("JobState"), record.where("JobState")),
        times=[record.time(key) for key in _TIMES],
        hosts=names,
        slots=slots,
        guessed=not record.has_slots(),
        ranks=record.count("NumTasks"),
        source=SLURM_SCONTROL.name,
    )


def _id(record: _Record) -> str:
    if {"HetJobId", "HetJobOffset"} <= record.fields.keys():
        return slurm.het_id(record.raw("HetJobId"), record.raw("HetJobOffset"))
    if {"ArrayJobId", "ArrayTaskId"} <= record.fields.keys():
        return slurm.array_id(record.raw("ArrayJobId"), record.raw("ArrayTaskId"))
    return record.raw("JobId")


def _hosts_and_slots(record: _Record) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the hosts of a job and the number of ranks on each.

    While a job is completing, its NodeList shrinks to the hosts still being cleaned; the lines of ``-d``
    still list all of them.
    """
    where = record.where("NodeList")
    names = slurm.parse_hosts(record.raw("NodeList"), where)
    cpus = _cpus_by_host(record)
    if "COMPLETING" in record.raw("JobState") and set(names) < set(cpus):
        names = tuple(cpus)
    elif names and len(names) != record.count("NumNodes"):
        raise where.error(f"names {len(names)} hosts, but NumNodes={record.text('NumNodes')}")
    elif cpus and set(cpus) != set(names):
        raise where.error("the record's CPU_IDs lines lack hosts of its NodeList")
    per_host = record.count(_PER_NODE)
    if per_host:
        return names, (per_host,) * len(names)
    ranks = record.count("NumTasks")
    if cpus:
        width = max(1, record.count("CPUs/Task"))
        return names, slurm.ranks_by_host(ranks, [cpus[name] // width for name in names])
    return names, slurm.even_slots(ranks, len(names))


def _cpus_by_host(record: _Record) -> dict[str, int]:
    """Return the allocated CPUs of each host, printed with ``-d``."""
    cpus: dict[str, int] = {}
    for number, line in record.lines:
        for found in _CPUS.finditer(line):
            where = Where(record.path, number, line)
            count = _cpu_count(found.group(2), where)
            for name in expand(found.group(1), path=record.path, line=number):
                if name in cpus:
                    raise where.error(f"the CPUs of host {name} are repeated")
                cpus[name] = count
    return cpus


def _cpu_count(text: str, where: Where) -> int:
    count = 0
    for part in text.split(",") if text else ():
        found = _CPU_RANGE.fullmatch(part)
        if found is None:
            raise where.error(f"not a list of CPUs: {text!r}")
        first = int(found.group(1))
        count += max(0, int(found.group(2) or first) - first + 1)
    return count


SLURM_SCONTROL = Format(
    "slurm-scontrol",
    kind="jobs",
    evidence="real",
    about="jobs: output of `scontrol show jobs -d`",
    recognise=_recognise_slurm_scontrol,
    parse=_parse_slurm_scontrol,
)
"""Jobs of ``scontrol show jobs -d`` (one record per job) and ``scontrol -o`` (one line per job).

A record has ``Key=value`` fields. Names, reasons and commands may contain blanks and text that looks like
fields, so a job's name ends before ``UserId=``, and if a key occurs twice the first one is used: text of
users follows that of Slurm, and nothing is read from their command on. Their text may have several lines,
also empty ones (the script of ``sbatch --wrap``), so a record ends where the next one begins. With ``-d``
each record has the CPUs of each host (``Nodes=node[1-2] CPU_IDs=0-15``).

Tested with Slurm 22.05. Times are printed in the cluster's local time without a zone and taken as UTC. Lines
that begin with ``#`` before the first record are comments.
"""


_STEP = re.compile(r"StepId=(\d[\d_+]*)\.(\S+)(?=\s|$)", re.A)
_OTHERS = frozenset({"batch", "extern", "interactive", "TBD"})
"""Steps without ranks of an application: the script, monitoring, a shell, a waiting step."""
_TASKS = re.compile(r"\sTasks=(\d{1,9})(?=\s|$)", re.A)
_NAME = re.compile(r"\sName=")
_LAYOUT = re.compile(r"\sDist=(\S+)")
_SRUN = re.compile(r"\sSrunHost:Pid=(\S+)")
"""The srun that started the step; ``(null):0`` if there is none."""


class _Step(NamedTuple):
    job: str
    tasks: int
    distribution: str
    srun: str
    where: Where


def _recognise_slurm_steps(head: str, path: str) -> bool:
    """Return True if the first non-empty line begins a step."""
    first = next((line for line in head.split("\n") if line.strip()), "")
    return _STEP.match(first) is not None and "UserId=" in first


def _parse_slurm_steps(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the jobs of one file, without hosts.

    A step without its tasks, a repeated step, and no step of an application, are errors.
    """
    (file,) = files
    steps = list(_steps(file))
    plain = [step for step in steps if step is not None]
    jobs_of: dict[str, set[str]] = {}
    for step in plain:
        jobs_of.setdefault(step.srun, set()).add(step.job)
    single = [step for step in plain if step.srun.startswith("(null)") or len(jobs_of[step.srun]) == 1]
    largest: dict[str, _Step] = {}
    for step in single:
        if step.job not in largest or step.tasks > largest[step.job].tasks:
            largest[step.job] = step
    if not largest:
        raise InputError("no step of an application of a job with one component found", path=file.path)
    jobs = tuple(
        make_job(
            step.where,
            id=step.job,
            state="",
            times=(None, None, None),
            hosts=(),
            slots=(),
            ranks=step.tasks,
            distribution=step.distribution,
            source=SLURM_STEPS.name,
        )
        for step in largest.values()
    )
    warnings = counted(
        (
            len(jobs),
            "job gets",
            "jobs get",
            "their ranks and distribution: `scontrol show jobs -d` has hosts and the rest",
        ),
        (
            len(steps) - len(plain),
            "step of scripts and daemons is",
            "steps of scripts and daemons are",
            "ignored",
        ),
        (
            len(plain) - len(single),
            "step of heterogeneous jobs is",
            "steps of heterogeneous jobs are",
            "ignored: they have other job numbers",
        ),
    )
    return Parsed(jobs=jobs, warnings=tuple(warnings))


def _steps(file: SourceFile) -> Iterator[_Step | None]:
    """Yield the steps in order; None for steps that are not of an application.

    An empty line ends a step if its last field was read: names may contain empty lines.
    """
    record: list[str] = []
    start, seen, lines = 0, set[str](), file.lines()
    last = len(lines)
    for number, line in enumerate([*lines, ""], start=1):
        begins = line.startswith("StepId=")
        ends = not line.strip() and (number > last or any(_SRUN.search(part) for part in record))
        if record and (begins or ends):
            where = Where(file.path, start, record[0])
            match = _STEP.match(record[0])
            if match is None:
                raise where.error("not a step such as StepId=4711.0")
            if match.group() in seen:
                raise where.error("a step is repeated")
            seen.add(match.group())
            yield _step(match, "".join(f"{part} " for part in record), where)
            record = []
        if begins:
            start = number
        if begins or record:
            record.append(line)
        elif line.strip():
            raise Where(file.path, number, line).error("a line outside of any step")


def _step(match: re.Match[str], text: str, where: Where) -> _Step | None:
    tasks, srun = _TASKS.search(text), _SRUN.search(text)
    if tasks is None or srun is None:
        raise where.error("the step has no Tasks= or no SrunHost: it is truncated")
    if match[2] in _OTHERS or _name(text) in LAUNCHERS:
        return None
    layout = _LAYOUT.search(text)
    distribution = parse_distribution(layout[1]) if layout else ""
    return _Step(match[1], int(tasks[1]), distribution, srun[1], where)


def _name(text: str) -> str:
    """Return the name of a step, which may contain blanks: what is before the next field."""
    begin = _NAME.search(text)
    end = -1 if begin is None else text.find("Network=", begin.end())
    return "" if begin is None or end < 0 else text[begin.end() : end].strip()


SLURM_STEPS = Format(
    "slurm-steps",
    kind="jobs",
    evidence="real",
    about="ranks and distribution of running jobs: output of `scontrol show steps`",
    recognise=_recognise_slurm_steps,
    parse=_parse_slurm_steps,
)
"""Output of ``scontrol show steps``: ranks of running jobs, and their distribution.

A step is not its job: it may have fewer hosts, and starts later. Only the tasks and the distribution of each
job's largest step are read; ``scontrol show jobs -d`` has hosts, times and the rest. Batch, extern and
interactive steps and those of MPI launchers' daemons do not count. The components of a heterogeneous job
(``7+0``, ``7+1``) have their own numbers here (7, 8): if one srun started steps of several numbers, they are
ignored.

Tested with Slurm 22.05.
"""
