"""Jobs of ``scontrol show jobs -d`` (one record per job) and ``scontrol -o`` (one line per job).

A record has ``Key=value`` fields. Names, reasons and commands may contain blanks and text that looks like
fields, so a job's name ends before ``UserId=``, and if a key occurs twice the first one is used: text of
users follows that of Slurm. With ``-d`` each record has the CPUs of each host (``Nodes=node[1-2]
CPU_IDs=0-15``).

Tested with Slurm 22.05. Times are printed in the cluster's local time without a zone and taken as UTC. Lines
that begin with ``#`` before the first record are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from ingest.formats.jobs.hostlists import expand
from ingest.formats.jobs.slurm_fields import (
    NOTHING,
    Room,
    Where,
    array_id,
    even,
    het_id,
    lay_out,
    make_job,
    parse_hosts,
    parse_state,
    parse_time,
)
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Job

FORMAT = "slurm-scontrol"
_RECORD = re.compile(r"JobId=(\d{1,18})(?=\s|$)", re.A)
_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z/:]*)=")
_AFTER_NAME = ("HetJobIdSet", "UserId")
_CPUS = re.compile(r"(?:^|\s)Nodes=(\S+) CPU_IDs=(\S*)")
_CPU_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.A)
_COUNT = re.compile(r"(\d{1,9})(?:-\d{1,9})?", re.A)
_WITHOUT_DETAILS = (
    "{} jobs have no CPUs per host, as printed by `scontrol show jobs -d`: their ranks are assumed to be "
    "even over the hosts, and a completing job may run on more hosts than it still lists"
)
_NEEDED = ("JobState", "NodeList", "NumNodes", "NumCPUs")

Lines = list[tuple[int, str]]
Fields = dict[str, tuple[int, str]]


def recognise(head: str, path: str) -> bool:
    """Return True if the first line except comments begins with a job's number."""
    for line in head.splitlines():
        if line.strip() and not line.startswith("#"):
            return _RECORD.match(line) is not None
    return False


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the jobs of one file.

    Raises
    ------
    InputError
        A line outside records, a truncated record, an unreadable field, or a repeated job.
    """
    (file,) = files
    jobs: dict[str, Job] = {}
    room = Room(file.path)
    guessed = 0
    for record in _records(file):
        fields = _fields(record)
        job = _job(record, fields, file.path)
        if job.id in jobs:
            raise InputError(f"job {job.id} is repeated", path=file.path, line=record[0][0])
        room.take(job)
        jobs[job.id] = job
        exact = _count(fields, "NtasksPerN:B:S:C", file.path) or any(_CPUS.search(line) for _, line in record)
        guessed += bool(job.hosts) and not exact
    if not jobs:
        raise InputError("no jobs found", path=file.path)
    return Parsed(jobs=tuple(jobs.values()), warnings=(_WITHOUT_DETAILS.format(guessed),) if guessed else ())


def _records(file: SourceFile) -> Iterator[Lines]:
    """Yield the numbered lines of each record; records are separated by empty lines."""
    record: Lines = []
    started = False
    for number, line in enumerate(file.lines(), start=1):
        if _RECORD.match(line) or not line.strip():
            if record:
                yield record
            record = [(number, line)] if line.strip() else []
            started = started or bool(record)
        elif record:
            record.append((number, line))
        elif started or not line.startswith("#"):
            raise InputError("a line outside of any job's record", path=file.path, line=number, text=line)
    if record:
        yield record


def _job(record: Lines, fields: Fields, path: str) -> Job:
    """Return the job of a record."""
    start = Where(path, *record[0])
    for key in _NEEDED:
        if key not in fields:
            raise start.error(f"the record has no {key}=: it is truncated")
    names, slots = _hosts_and_slots(record, fields, path)
    return make_job(
        start,
        id=_id(fields),
        name=fields.get("JobName", (0, ""))[1],
        user=_text(fields, "UserId").split("(")[0],
        account=_text(fields, "Account"),
        partition=_text(fields, "Partition"),
        state=parse_state(*_at(fields, "JobState", path)),
        times=(
            _time(fields, "SubmitTime", path),
            _time(fields, "StartTime", path),
            _time(fields, "EndTime", path),
        ),
        hosts=names,
        slots=slots,
        guessed=not _tells_slots(record, fields, path),
        ranks=_count(fields, "NumTasks", path),
        source=FORMAT,
    )


def _tells_slots(record: Lines, fields: Fields, path: str) -> bool:
    """Return True if a record has tasks per node, or the CPUs of each host."""
    return bool(_count(fields, "NtasksPerN:B:S:C", path) or _cpus_by_host(record, path))


def _fields(record: Lines) -> Fields:
    """Return the first line number and value of each key."""
    fields: Fields = {}
    for number, line in record:
        keys = list(_KEY.finditer(line))[::-1]
        while keys:
            key = keys.pop()
            while key.group(1) == "JobName" and keys and keys[-1].group(1) not in _AFTER_NAME:
                keys.pop()
            value = line[key.end() : keys[-1].start() if keys else None].strip()
            fields.setdefault(key.group(1), (number, value))
    return fields


def _id(fields: Fields) -> str:
    if "HetJobId" in fields and "HetJobOffset" in fields:
        return het_id(fields["HetJobId"][1], fields["HetJobOffset"][1])
    if "ArrayJobId" in fields and "ArrayTaskId" in fields:
        return array_id(fields["ArrayJobId"][1], fields["ArrayTaskId"][1])
    return fields["JobId"][1]


def _hosts_and_slots(record: Lines, fields: Fields, path: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the hosts of a job and the number of ranks on each.

    While a job is completing, its NodeList shrinks to the hosts still being cleaned; the lines of ``-d``
    still list all of them.
    """
    text, where = _at(fields, "NodeList", path)
    names = parse_hosts(text, where)
    cpus = _cpus_by_host(record, path)
    if "COMPLETING" in fields["JobState"][1] and set(names) < set(cpus):
        names = tuple(cpus)
    elif names and len(names) != _count(fields, "NumNodes", path):
        raise where.error(f"names {len(names)} hosts, but NumNodes={_text(fields, 'NumNodes')}")
    elif cpus and set(cpus) != set(names):
        raise where.error("the record's CPU_IDs lines lack hosts of its NodeList")
    ranks = _count(fields, "NumTasks", path)
    per_host = _count(fields, "NtasksPerN:B:S:C", path)
    if per_host:
        return names, (per_host,) * len(names)
    if cpus:
        width = max(1, _count(fields, "CPUs/Task", path))
        return names, lay_out(ranks, [cpus[name] // width for name in names])
    return names, even(ranks, len(names))


def _cpus_by_host(record: Lines, path: str) -> dict[str, int]:
    """Return the allocated CPUs of each host, printed with ``-d``."""
    cpus: dict[str, int] = {}
    for number, line in record:
        for found in _CPUS.finditer(line):
            where = Where(path, number, line)
            count = _cpu_count(found.group(2), where)
            for name in expand(found.group(1), path=path, line=number):
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


def _text(fields: Fields, key: str) -> str:
    value = fields[key][1] if key in fields else ""
    return "" if value.lower() in NOTHING else value


def _at(fields: Fields, key: str, path: str) -> tuple[str, Where]:
    """Return the value of a field, and its location."""
    number, value = fields[key]
    return value, Where(path, number, f"{key}={value}")


def _time(fields: Fields, key: str, path: str) -> datetime | None:
    return parse_time(*_at(fields, key, path)) if key in fields else None


def _count(fields: Fields, key: str, path: str) -> int:
    """Return the first number of ``64``, ``2-2`` or ``4:0:*:*``; 0 if there is none."""
    value, where = _at(fields, key, path) if key in fields else ("", Where(path))
    first = value.split(":")[0]
    if first == "*" or first.lower() in NOTHING:
        return 0
    found = _COUNT.fullmatch(first)
    if found is None:
        raise where.error("not a number")
    return int(found.group(1))
