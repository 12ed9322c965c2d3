"""Jobs as rows of a table: output of Slurm's ``sacct`` and ``squeue``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise

from ingest.formats import slurm_fields as slurm
from ingest.formats.slurm_fields import Where
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
_SQUEUE_FREE_TEXT = ("COMMAND", "NAME", "COMMENT", "WORK_DIR")
"""Columns in which users may write ``|``, the most likely first."""
_SQUEUE_LINES = frozenset({"COMMAND", "COMMENT"})
"""Columns besides the name in which users may write line ends."""
_ID = re.compile(r"\d[\d_+]*(?:\[[\d,%:-]*\.{0,3}\]?)?", re.A)
_SQUEUE_SIGNS = dict.fromkeys(_TIMES, slurm.TIME_CELL) | dict.fromkeys(("NODES", "CPUS"), slurm.COUNT_CELL)
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
    for cells, where in _squeue_rows(found, file):
        if job := found.attempt(partial(_squeue_job, cells, where, seen_at)):
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


def _squeue_rows(found: slurm.JobList, file: SourceFile) -> Iterator[tuple[dict[str, str], Where]]:
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
    signs = {"JOBID": _ID, state: slurm.STATE_CELL, **_SQUEUE_SIGNS}
    rows = slurm.RowsBetweenBars(columns, _SQUEUE_FREE_TEXT, _SQUEUE_LINES, name="NAME", signs=signs)
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


def _squeue_job(cells: Mapping[str, str], where: Where, seen_at: datetime) -> Job:
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
"""Jobs of ``squeue``: its table, short or long (``-l``), or columns separated by ``|``.

The table truncates names and contains no CPUs; columns separated by ``|`` (``-o '%i|%j|%T|%N|%C'``) contain
what is requested. JOBID, ST or STATE, and NODELIST or NODELIST(REASON) are required; NAME, USER, ACCOUNT,
PARTITION, NODES, CPUS and the times are read, too. squeue does not print ranks; a host gets its share of
CPUS, or one. A completing job lists only the hosts still being cleaned: it is read without hosts, and
counted.

Tested with Slurm 22.05. Times are printed in the cluster's local time without a zone and taken as UTC.
"""


_USE = (
    "run sacct -P --format=JobID,JobName,User,Account,Partition,NNodes,NTasks,AllocCPUS,State,Submit,"
    "Start,End,NodeList,Layout"
)
_NEEDED = ("jobid", "state", "nodelist")
_COUNTS = ("ntasks", "alloccpus", "ncpus")
_SACCT_SIGNS = {"jobid": slurm.ID_CELL, "state": slurm.STATE_CELL}
_SACCT_SIGNS |= dict.fromkeys(("nnodes", *_COUNTS), slurm.COUNT_CELL)
_SACCT_SIGNS |= dict.fromkeys(("submit", "start", "end"), slurm.TIME_CELL)
_SACCT_FREE_TEXT = ("submitline", "jobname", "comment", "admincomment", "systemcomment", "workdir")
"""Columns in which users may write ``|``, the most likely first."""
_SACCT_LINES = frozenset({"submitline", "comment", "admincomment", "systemcomment"})
"""Columns besides the name in which users may write line ends, such as the script of ``sbatch --wrap``."""


@dataclass(slots=True)
class _Row:
    where: Where
    cells: dict[str, str]

    def text(self, column: str) -> str:
        return slurm.present(self.cells.get(column, "").strip())

    def count(self, column: str) -> int:
        return slurm.parse_count(self.text(column), f"column {column}", self.where)

    def is_application(self) -> bool:
        return slurm.is_application(self.text("jobid"), self.text("jobname"))


@dataclass(slots=True)
class _Record:
    job: _Row
    steps: list[_Row] = field(default_factory=list)


def _recognise_slurm_sacct(head: str, path: str) -> bool:
    """Return True if the first line except comments has sacct's columns; squeue writes JOBID."""
    for line in head.splitlines():
        if line.strip() and not line.startswith("#") and not slurm.DIAGNOSTIC.fullmatch(line):
            columns = line.replace("|", " ").split()
            return "JobID" in columns and any(name in columns for name in ("State", "NodeList", "JobName"))
    return False


def _parse_slurm_sacct(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the jobs of one file; truncated column names are an error, rows that do not fit are left out."""
    (file,) = files
    records: dict[str, _Record] = {}
    found = slurm.JobList(file.path)
    for row in _sacct_rows(found, file):
        found.runs += found.attempt(partial(_add, row, records)) or 0
    for job_id, record in records.items():
        if job := found.attempt(partial(_sacct_job, job_id, record)):
            found.add(job, record.job.where)
    return found.parsed()


def _add(row: _Row, records: dict[str, _Record]) -> bool:
    """Add a row to the record of its job; return True if it replaces an earlier run of the job."""
    identity = row.text("jobid")
    job_id, _, step = identity.partition(".")
    if not job_id or not job_id[0].isdigit():
        raise row.where.error("the row has no job number")
    if not step:
        again = job_id in records
        records[job_id] = _Record(row)
        return again
    if job_id not in records:
        raise row.where.error(f"step {identity} precedes the row of its job")
    records[job_id].steps.append(row)
    return False


def _sacct_rows(found: slurm.JobList, file: SourceFile) -> Iterator[_Row]:
    lines = found.lines(file)
    title = next((at for at in lines if at[1].strip() and not at[1].startswith("#")), None)
    if title is None:
        return
    columns = _columns(title[1], Where(file.path, *title))
    rows = slurm.RowsBetweenBars(columns, _SACCT_FREE_TEXT, _SACCT_LINES, name="jobname", signs=_SACCT_SIGNS)
    for number, line in rows.split(lines):
        where = Where(file.path, number, line)
        if cells := found.attempt(partial(rows.cells, line, where)):
            yield _Row(where, cells)


def _columns(line: str, where: Where) -> list[str]:
    if "|" not in line:
        other = re.search(r"JobID(\t|[^\w\s])", line, re.IGNORECASE)
        why = f"has {other[1]!r} between its columns" if other else "has truncated values"
        raise where.error(f"a table without '|' {why}: {_USE}")
    columns = [name.strip().lower() for name in line.split("|")]
    for name in _NEEDED:
        if name not in columns:
            raise where.error(f"column {name} is missing: {_USE}")
    if not any(name in columns for name in _COUNTS):
        raise where.error(f"no column has the number of tasks or CPUs: {_USE}")
    if len(set(columns)) != len(columns):
        raise where.error("a column is repeated")
    return columns


def _sacct_job(job_id: str, record: _Record) -> Job:
    """Return the job of a row and its steps."""
    row = record.job
    hosts = slurm.parse_hosts(row.text("nodelist"), row.where)
    if hosts and "nnodes" in row.cells and len(hosts) != row.count("nnodes"):
        raise row.where.error(f"NodeList names {len(hosts)} hosts, but NNodes is {row.text('nnodes')}")
    steps = [step for step in record.steps if step.is_application()]
    if not record.steps and row.count("ntasks"):
        steps = [row]
    largest = max(steps, key=lambda step: step.count("ntasks"), default=None)
    ranks = largest.count("ntasks") if largest else 0
    return slurm.make_job(
        row.where,
        id=job_id,
        name=row.cells.get("jobname", ""),
        user=row.text("user"),
        account=row.text("account"),
        partition=row.text("partition"),
        state=slurm.parse_state(row.text("state"), row.where),
        times=[slurm.parse_time(row.text(name), row.where) for name in ("submit", "start", "end")],
        hosts=hosts,
        slots=_slots(row, largest, ranks, len(hosts)),
        guessed=True,
        ranks=ranks,
        distribution=slurm.parse_distribution(steps[0].text("layout")) if steps else "",
        source=SLURM_SACCT.name,
    )


def _slots(job: _Row, step: _Row | None, ranks: int, hosts: int) -> tuple[int, ...]:
    """Return even shares of the ranks over the hosts of their step, or else of the job's CPUs."""
    if step is None or not ranks:
        return slurm.even_slots(job.count("alloccpus") or job.count("ncpus"), hosts)
    on = len(slurm.parse_hosts(step.text("nodelist"), step.where)) or hosts
    return slurm.even_slots(ranks, on)[:1] * hosts


SLURM_SACCT = Format(
    "slurm-sacct",
    kind="jobs",
    evidence="real",
    about="jobs: output of `sacct -P` with its header line",
    recognise=_recognise_slurm_sacct,
    parse=_parse_slurm_sacct,
)
"""Jobs of ``sacct -P``: columns separated by ``|``, first their names, then one row per job and step.

Columns may be in any order; JobID, State and NodeList are required. The ranks of a job are the tasks of its
largest step, its distribution is the Layout of its first; of a job without steps, its own. Batch and extern
steps, and steps in which an MPI launcher starts its daemons, are not the application. sacct does not print
the tasks of each host: they are assumed to be even.

Tested with Slurm 22.05. Times are printed in the cluster's local time without a zone and taken as UTC. Lines
that begin with ``#`` before the column names are comments.
"""
