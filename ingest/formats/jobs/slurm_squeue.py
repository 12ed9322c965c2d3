"""Jobs of ``squeue``: its table, short or long (``-l``), or columns separated by ``|``.

The table truncates names and contains no CPUs; columns separated by ``|`` (``-o '%i|%j|%T|%N|%C'``) contain
what is requested. JOBID, ST or STATE, and NODELIST or NODELIST(REASON) are required; NAME, USER, ACCOUNT,
PARTITION, NODES, CPUS and the times are read, too. squeue does not print ranks; a host gets its share of
CPUS, or one. A completing job lists only the hosts still being cleaned: it is read without hosts, and
counted.

Tested with Slurm 22.05. Times are printed in the cluster's local time without a zone and taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

from ingest.formats.jobs.slurm_fields import (
    NOTHING,
    Room,
    Where,
    even,
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

FORMAT = "slurm-squeue"
STATES = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RD": "RESV_DEL_HOLD",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "SE": "SPECIAL_EXIT",
    "SI": "SIGNALING",
    "SO": "STAGE_OUT",
    "ST": "STOPPED",
    "TO": "TIMEOUT",
}
"""Compact states, squeue(1)."""
_STATE_WIDTH = 8
"""Letters of a state in the long table."""
_HOSTS = ("NODELIST", "NODELIST(REASON)")
_FREE_TEXT = ("COMMAND", "NAME", "COMMENT", "WORK_DIR")
"""Columns in which users may write ``|``, the most likely first."""
_ID = re.compile(r"\d[\d_+]*(?:\[[\d,%:-]*\.{0,3}\]?)?", re.A)
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}", re.A)
_WHY = re.compile(r"\(.*\)")


def recognise(head: str, path: str) -> bool:
    """Return True if the first line except comments and dates has squeue's columns."""
    for line in head.split("\n"):
        if line.strip() and not line.startswith("#") and not _DATE.fullmatch(line.strip()):
            return _is_title(line)
    return False


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the jobs of one file.

    Raises
    ------
    InputError
        Missing columns, a row that does not fit them, an unreadable cell, or a repeated job.
    """
    (file,) = files
    jobs: dict[str, Job] = {}
    room = Room(file.path)
    cleaning = without = 0
    for cells, where in _rows(file):
        job = _job(cells, where)
        if job.id in jobs:
            raise where.error(f"job {job.id} is repeated")
        room.take(job)
        jobs[job.id] = job
        cleaning += job.state == "COMPLETING" and _hosts_text(cells) != ""
        without += bool(job.hosts) and "CPUS" not in cells
    if not jobs:
        raise InputError("no jobs found", path=file.path)
    notes = (
        (without, "job(s) without CPUs: one rank per host is assumed; use `scontrol show jobs -d` instead"),
        (cleaning, "completing job(s) list only the hosts still being cleaned: read without hosts"),
    )
    warnings = tuple(f"{count} {what}" for count, what in notes if count)
    return Parsed(jobs=tuple(jobs.values()), warnings=warnings)


def _is_title(line: str) -> bool:
    words = line.replace("|", " ").split()
    return "JOBID" in words and ("ST" in words or "STATE" in words) and any(name in words for name in _HOSTS)


def _rows(file: SourceFile) -> Iterator[tuple[dict[str, str], Where]]:
    """Yield the cells of each job by column."""
    title = ""
    for number, line in enumerate(file.lines(), start=1):
        where = Where(file.path, number, line)
        if not line.strip() or (not title and (line.startswith("#") or _DATE.fullmatch(line.strip()))):
            continue
        if not title:
            if not _is_title(line):
                raise where.error("the columns JOBID, ST or STATE, and NODELIST are required")
            title = line
            if "|" not in title and not title.rstrip().endswith(_HOSTS):
                raise where.error("the last column of a table must be NODELIST; or use -o '%i|%T|%N'")
            continue
        yield (_between_bars(title, line, where) if "|" in title else _by_width(title, line, where)), where


def _between_bars(title: str, line: str, where: Where) -> dict[str, str]:
    columns, cells = [name.strip() for name in title.split("|")], line.split("|")
    surplus = len(cells) - len(columns)
    free = [columns.index(name) for name in _FREE_TEXT if name in columns]
    if len(set(columns)) != len(columns):
        raise where.error("a column is repeated")
    if surplus < 0 or (surplus and not free):
        raise where.error(f"the row has {len(cells)} cells, not {len(columns)}: is it truncated?")
    if surplus:
        cells[free[0] : free[0] + surplus + 1] = ["|".join(cells[free[0] : free[0] + surplus + 1])]
    return {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}


def _by_width(title: str, line: str, where: Where) -> dict[str, str]:
    """Return the cells of a row of the table: columns end where their names end."""
    names = list(re.finditer(r"\S+", title))
    edges = [0, *(name.end() for name in names[:-1]), max(len(line), names[-1].end())]
    cells = {}
    for name, (start, end) in zip(names, pairwise(edges), strict=True):
        if start and line[start : start + 1].strip():
            raise where.error(f"the row does not fit the column {name[0]}: use -o with '|' between columns")
        cells[name[0]] = line[start:end].strip()
    return cells


def _hosts_text(cells: Mapping[str, str]) -> str:
    text = next(cells[name] for name in _HOSTS if name in cells)
    return "" if text.lower() in NOTHING or _WHY.fullmatch(text) else text


def _job(cells: Mapping[str, str], where: Where) -> Job:
    """Return the job of a row."""
    if not _ID.fullmatch(cells["JOBID"]):
        raise where.error(f"not a job's number: {cells['JOBID']!r}")
    state = _state(cells, where)
    hosts = () if state == "COMPLETING" else parse_hosts(_hosts_text(cells), where)
    if hosts and cells.get("NODES") and len(hosts) != _count(cells, "NODES", where):
        raise where.error(f"names {len(hosts)} hosts, but NODES is {cells['NODES']}")
    return make_job(
        where,
        id=cells["JOBID"],
        name=cells.get("NAME", ""),
        user=cells.get("USER", ""),
        account=cells.get("ACCOUNT", ""),
        partition=cells.get("PARTITION", ""),
        state=state,
        times=(
            _time(cells, "SUBMIT_TIME", where),
            _time(cells, "START_TIME", where),
            _time(cells, "END_TIME", where),
        ),
        hosts=hosts,
        slots=even(_count(cells, "CPUS", where), len(hosts)),
        guessed=True,
        ranks=0,
        source=FORMAT,
    )


def _state(cells: Mapping[str, str], where: Where) -> str:
    """Return the state of a compact word, or of one that the long table has truncated."""
    short = cells.get("ST", "")
    word = STATES.get(short) or parse_state(cells.get("STATE", short), where)
    whole = [name for name in STATES.values() if len(word) == _STATE_WIDTH and name.startswith(word)]
    return whole[0] if len(whole) == 1 else word


def _time(cells: Mapping[str, str], name: str, where: Where) -> datetime | None:
    return parse_time(cells.get(name, ""), where)


def _count(cells: Mapping[str, str], name: str, where: Where) -> int:
    text = cells.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise where.error(f"{name} is not a number: {text!r}")
    return int(text or 0)
