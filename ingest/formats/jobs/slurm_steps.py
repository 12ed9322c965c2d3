"""Output of ``scontrol show steps``: ranks of running jobs, and their distribution.

A step is not its job: it may have fewer hosts, and starts later. Only the tasks and the distribution of each
job's largest step are read; ``scontrol show jobs -d`` has hosts, times and the rest. Batch, extern and
interactive steps and those of MPI launchers' daemons do not count. The components of a heterogeneous job
(``7+0``, ``7+1``) have their own numbers here (7, 8): if one srun started steps of several numbers, they are
ignored.

Tested with Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ingest.formats.jobs.slurm_fields import LAUNCHERS, Where, make_job, parse_distribution
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import SourceFile
from registry.errors import InputError

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
