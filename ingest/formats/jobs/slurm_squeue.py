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
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise

from ingest.formats.jobs import slurm_fields as slurm
from ingest.formats.jobs.slurm_fields import Where
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.model import Job

STATES = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING",
    "CG": "COMPLETING", "DL": "DEADLINE", "F": "FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING", "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD", "RQ": "REQUEUED", "RS": "RESIZING", "RV": "REVOKED", "S": "SUSPENDED",
    "SE": "SPECIAL_EXIT", "SI": "SIGNALING", "SO": "STAGE_OUT", "ST": "STOPPED", "TO": "TIMEOUT",
}  # fmt: skip
"""Compact states, squeue(1)."""
_STATE_WIDTH = 8
"""Letters of a state in the long table."""
_HOSTS = ("NODELIST", "NODELIST(REASON)")
_TIMES = ("SUBMIT_TIME", "START_TIME", "END_TIME")
_FREE_TEXT = ("COMMAND", "NAME", "COMMENT", "WORK_DIR")
"""Columns in which users may write ``|``, the most likely first."""
_LINES = frozenset({"COMMAND", "COMMENT"})
"""Columns besides the name in which users may write line ends."""
_ID = re.compile(r"\d[\d_+]*(?:\[[\d,%:-]*\.{0,3}\]?)?", re.A)
_SIGNS = dict.fromkeys(_TIMES, slurm.TIME_CELL) | dict.fromkeys(("NODES", "CPUS"), slurm.COUNT_CELL)
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}", re.A)
_ELAPSED = re.compile(r"(?:(\d{1,5})-)?(?:(\d{1,2}):)?(\d{1,2}):(\d\d)", re.A)
"""Days, hours, minutes and seconds of the column TIME."""
_WHY = re.compile(r"\(.*\)")


def _recognise_slurm_squeue(head: str, path: str) -> bool:
    """Return True if the first line except comments and dates has squeue's columns."""
    for line in head.split("\n"):
        if not _is_skipped(line):
            return _is_title(line)
    return False


def _parse_slurm_squeue(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the jobs of one file; a repeated job is an error, rows that do not fit are left out."""
    (file,) = files
    found = slurm.JobList(file.path)
    seen_at = options.observed_at or file.modified_at
    cleaning = without = 0
    for cells, where in _rows(found, file):
        if job := found.attempt(partial(_job, cells, where, seen_at)):
            found.add(job, where)
            cleaning += job.state == "COMPLETING" and _hosts_text(cells) != ""
            without += bool(job.hosts) and "CPUS" not in cells
    return found.parsed(
        (
            without,
            "job",
            "jobs",
            "without CPUs: one rank per host is assumed; use `scontrol show jobs -d` instead",
        ),
        (
            cleaning,
            "completing job lists",
            "completing jobs list",
            "only the hosts still being cleaned: read without hosts",
        ),
    )


def _is_title(line: str) -> bool:
    words = line.replace("|", " ").split()
    return "JOBID" in words and ("ST" in words or "STATE" in words) and any(name in words for name in _HOSTS)


def _rows(found: slurm.JobList, file: SourceFile) -> Iterator[tuple[dict[str, str], Where]]:
    """Yield the cells of each job by column."""
    path, lines = file.path, found.lines(file)
    first = next((at for at in lines if not _is_skipped(at[1])), None)
    if first is None:
        return
    title, where = first[1], Where(path, *first)
    if not _is_title(title):
        raise where.error("the columns JOBID, ST or STATE, and NODELIST are required")
    columns = [name.strip() for name in title.split("|")] if "|" in title else []
    if not columns and not title.rstrip().endswith(_HOSTS):
        raise where.error("the last column of a table must be NODELIST; or use -o '%i|%T|%N'")
    if len(set(columns)) != len(columns):
        raise where.error("a column is repeated")
    if not columns:
        for number, line in lines:
            where = Where(path, number, line)
            if line.strip() and (by_width := found.attempt(partial(_by_width, title, line, where))):
                yield by_width, where
        return
    state = "ST" if "ST" in columns else "STATE"
    signs = {"JOBID": _ID, state: slurm.STATE_CELL, **_SIGNS}
    rows = slurm.RowsBetweenBars(columns, _FREE_TEXT, _LINES, name="NAME", signs=signs)
    for number, line in rows.split(lines):
        where = Where(path, number, line)
        if cells := found.attempt(partial(rows.cells, line, where)):
            yield {name: cell.strip() for name, cell in cells.items()}, where


def _is_skipped(line: str) -> bool:
    """Return True for a line that may precede the title: empty, a comment, a date or a diagnostic."""
    patterns = _DATE.fullmatch(line.strip()), slurm.DIAGNOSTIC.fullmatch(line)
    return not line.strip() or line.startswith("#") or any(patterns)


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
    return "" if _WHY.fullmatch(text) else slurm.present(text)


def _job(cells: Mapping[str, str], where: Where, seen_at: datetime) -> Job:
    """Return the job of a row; it started its time ago if the row has no other start."""
    if not _ID.fullmatch(cells["JOBID"]):
        raise where.error(f"not a job's number: {cells['JOBID']!r}")
    state = _state(cells, where)
    hosts = () if state == "COMPLETING" else slurm.parse_hosts(_hosts_text(cells), where)
    if hosts and cells.get("NODES") and len(hosts) != slurm.parse_count(cells["NODES"], "NODES", where):
        raise where.error(f"names {len(hosts)} hosts, but NODES is {cells['NODES']}")
    submitted, started, ended = (slurm.parse_time(cells.get(name, ""), where) for name in _TIMES)
    elapsed = _ELAPSED.fullmatch(cells.get("TIME", ""))
    if started is None and elapsed and hosts:
        days, hours, minutes, seconds = (int(part or 0) for part in elapsed.groups())
        started = seen_at - timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return slurm.make_job(
        where,
        id=cells["JOBID"],
        name=cells.get("NAME", ""),
        user=cells.get("USER", ""),
        account=cells.get("ACCOUNT", ""),
        partition=cells.get("PARTITION", ""),
        state=state,
        times=[submitted, started, ended],
        hosts=hosts,
        slots=slurm.even_slots(slurm.parse_count(cells.get("CPUS", ""), "CPUS", where), len(hosts)),
        guessed=True,
        ranks=0,
        source=SLURM_SQUEUE.name,
    )


def _state(cells: Mapping[str, str], where: Where) -> str:
    """Return the state of a compact word, or of one that the long table has truncated."""
    short = cells.get("ST", "")
    word = STATES.get(short) or slurm.parse_state(cells.get("STATE", short), where)
    whole = [name for name in STATES.values() if len(word) == _STATE_WIDTH and name.startswith(word)]
    return whole[0] if len(whole) == 1 else word


SLURM_SQUEUE = Format(
    "slurm-squeue",
    kind="jobs",
    evidence="real",
    about="jobs: output of `squeue`, as a table or with `|` between columns",
    recognise=_recognise_slurm_squeue,
    parse=_parse_slurm_squeue,
)
