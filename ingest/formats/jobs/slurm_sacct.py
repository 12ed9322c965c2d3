"""Jobs of ``sacct -P``: columns separated by ``|``, first their names, then one row per job and step.

Columns may be in any order; JobID, State and NodeList are required. The ranks of a job are the tasks of its
largest step, its distribution is the Layout of its first; of a job without steps, its own. Batch and extern
steps, and steps in which an MPI launcher starts its daemons, are not the application. sacct does not print
the tasks of each host: they are assumed to be even.

Tested with Slurm 22.05. Times are printed in the cluster's local time without a zone and taken as UTC. Lines
that begin with ``#`` before the column names are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from ingest.formats.jobs import slurm_fields as slurm
from ingest.formats.jobs.slurm_fields import Where
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.model import Job

_USE = (
    "run sacct -P --format=JobID,JobName,User,Account,Partition,NNodes,NTasks,AllocCPUS,State,Submit,"
    "Start,End,NodeList,Layout"
)
_NEEDED = ("jobid", "state", "nodelist")
_COUNTS = ("ntasks", "alloccpus", "ncpus")
_SIGNS = {"jobid": slurm.ID_CELL, "state": slurm.STATE_CELL}
_SIGNS |= dict.fromkeys(("nnodes", *_COUNTS), slurm.COUNT_CELL)
_SIGNS |= dict.fromkeys(("submit", "start", "end"), slurm.TIME_CELL)
_FREE_TEXT = ("submitline", "jobname", "comment", "admincomment", "systemcomment", "workdir")
"""Columns in which users may write ``|``, the most likely first."""
_LINES = frozenset({"submitline", "comment", "admincomment", "systemcomment"})
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
    for row in _rows(found, file):
        found.runs += found.attempt(partial(_add, row, records)) or 0
    for job_id, record in records.items():
        if job := found.attempt(partial(_job, job_id, record)):
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


def _rows(found: slurm.JobList, file: SourceFile) -> Iterator[_Row]:
    lines = found.lines(file)
    title = next((at for at in lines if at[1].strip() and not at[1].startswith("#")), None)
    if title is None:
        return
    columns = _columns(title[1], Where(file.path, *title))
    rows = slurm.RowsBetweenBars(columns, _FREE_TEXT, _LINES, name="jobname", signs=_SIGNS)
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


def _job(job_id: str, record: _Record) -> Job:
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
