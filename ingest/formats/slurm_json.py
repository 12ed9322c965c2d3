"""Jobs in the JSON of ``squeue --json``, ``scontrol show jobs --json``, ``sacct --json`` and slurmrestd.

The structure differs between versions: a plain number became ``{set, infinite, number}``, a state became a
list of words, and the CPUs of a host moved. Both forms are read. Jobs of squeue contain the CPUs of each
host, those of sacct contain steps instead. Tested with Slurm 22.05 (v0.0.38); newer forms
are from public samples (v0.0.41).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ingest.formats import slurm_fields as slurm
from ingest.formats.slurm_fields import Where
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from ingest.reading.text import items
from registry.model import Job

_ALLOCATED = "allocated"
_DIGITS = 12
"""Largest number: times are seconds since 1970."""


def _recognise_slurm_json(head: str, path: str) -> bool:
    """Return True if the text is a JSON object with jobs of Slurm."""
    return head.lstrip().startswith("{") and '"jobs"' in head and ('"job_id"' in head or '"Slurm' in head)


def _parse_slurm_json(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the jobs of one file; a job without required fields is left out."""
    (file,) = files
    found = slurm.JobList(file.path, requeued=True)
    for index, record in enumerate(items(file, "jobs")):
        where = Where(file.path, text=f"jobs[{index}]")
        if job := found.attempt(partial(_job, record, where)):
            found.add(job, where)
    return found.parsed()


def _job(record: Any, where: Where) -> Job:
    if not isinstance(record, dict):
        raise where.error("a job is not a JSON object")
    return _accounted(record, where) if "time" in record else _queued(record, where)


def _queued(record: Mapping[str, Any], where: Where) -> Job:
    """Return a job of squeue or scontrol."""
    names = _hosts(record.get("nodes"), where)
    cpus = _cpus_by_host(record, where)
    if names and set(names) < set(cpus):  # a completing job lists only the hosts still being cleaned
        names = tuple(cpus)
    ranks = _number(record.get("tasks"), where)
    slots = _queued_slots(record, names, cpus, where)
    task = record.get("array_task_id")
    if _optional(task, where) is None:
        task = record.get("array_task_string")
    return slurm.make_job(
        where,
        id=_id(
            record,
            (record.get("array_job_id"), task),
            (record.get("het_job_id"), record.get("het_job_offset")),
            where,
        ),
        name=record["name"] if isinstance(record.get("name"), str) else "",
        user=_text(record.get("user_name")),
        account=_text(record.get("account")),
        partition=_text(record.get("partition")),
        state=_state(record.get("job_state"), where),
        times=_times(record, ("submit_time", "start_time", "end_time"), where),
        hosts=names,
        slots=slots or slurm.even_slots(ranks, len(names)),
        guessed=not slots,
        ranks=ranks,
        source=SLURM_JSON.name,
    )


def _accounted(record: Mapping[str, Any], where: Where) -> Job:
    """Return a job of sacct."""
    names = _hosts(record.get("nodes"), where)
    steps = [step for step in _list(record.get("steps"), where) if _is_application(step)]
    largest: Any = max(steps, key=lambda step: _number(_get(step, "tasks", "count"), where), default={})
    ranks = _number(_get(largest, "tasks", "count"), where)
    on = _number(_get(largest, "nodes", "count"), where) if ranks else 0
    return slurm.make_job(
        where,
        id=_id(
            record,
            (_get(record, "array", "job_id"), _get(record, "array", "task_id")),
            (_get(record, "het", "job_id"), _get(record, "het", "job_offset")),
            where,
        ),
        name=record["name"] if isinstance(record.get("name"), str) else "",
        user=_text(record.get("user")) or _text(_get(record, "association", "user")),
        account=_text(record.get("account")),
        partition=_text(record.get("partition")),
        state=_state(_get(record, "state", "current"), where),
        times=_times(record.get("time"), ("submission", "start", "end"), where),
        hosts=names,
        slots=slurm.even_slots(ranks or _allocated_cpus(record, where), on or len(names))[:1] * len(names),
        guessed=True,
        ranks=ranks,
        distribution=slurm.parse_distribution(_text(_get(steps[0], "task", "distribution"))) if steps else "",
        source=SLURM_JSON.name,
    )


def _id(record: Mapping[str, Any], array: tuple[Any, Any], het: tuple[Any, Any], where: Where) -> str:
    """Return the job's id as text: (job, task) of an array, (job, offset) of a heterogeneous job."""
    if _number(het[0], where):
        return slurm.het_id(str(_number(het[0], where)), str(_number(het[1], where)))
    job, task = _number(array[0], where), array[1]
    if job and isinstance(task, str) and task:
        return slurm.array_id(str(job), task)
    if job and _optional(task, where) is not None:
        return slurm.array_id(str(job), str(_number(task, where)))
    own = _number(record.get("job_id"), where)
    if not own:
        raise where.error("the job has no job_id")
    return str(own)


def _queued_slots(
    record: Mapping[str, Any], names: Sequence[str], cpus: Mapping[str, int], where: Where
) -> tuple[int, ...]:
    """Return the number of ranks on each host; empty if unknown."""
    per_host = record.get("tasks_per_node")
    if isinstance(per_host, str) and per_host:
        return slurm.parse_tasks_per_node(per_host, len(names), where)
    if _number(per_host, where):
        return (_number(per_host, where),) * len(names)
    if not cpus:
        return ()
    width = _number(record.get("cpus_per_task"), where) or 1
    if set(cpus) != set(names):
        raise where.error("the nodes of job_resources lack hosts of the job")
    return slurm.ranks_by_host(_number(record.get("tasks"), where), [cpus[name] // width for name in names])


def _cpus_by_host(record: Mapping[str, Any], where: Where) -> dict[str, int]:
    """Return the allocated CPUs of each host; older versions list them by core."""
    newer = _get(record, "job_resources", "nodes", "allocation")
    if newer is not None:
        return {
            _text(_get(host, "name")): _number(_get(host, "cpus", "count"), where)
            for host in _list(newer, where)
        }
    older = _get(record, "job_resources", "allocated_nodes")
    return {_text(_get(host, "nodename")): sum(_cores(host)) for host in _list(older, where)}


def _cores(host: Any) -> Iterator[bool]:
    """Return True if a core of a host is allocated."""
    sockets = _get(host, "sockets")
    for socket in sockets.values() if isinstance(sockets, dict) else ():
        cores = _get(socket, "cores")
        for status in cores.values() if isinstance(cores, dict) else ():
            yield isinstance(status, str) and status.startswith(_ALLOCATED)


def _is_application(step: Any) -> bool:
    """Return True if the step runs the application's ranks."""
    about = _get(step, "step")
    number = _get(about, "id")
    if isinstance(number, dict):
        number = number.get("step_id")
    return slurm.is_application(str(number), _text(_get(about, "name")))


def _allocated_cpus(record: Mapping[str, Any], where: Where) -> int:
    for tres in _list(_get(record, "tres", "allocated"), where):
        if _get(tres, "type") == "cpu":
            return _number(_get(tres, "count"), where)
    return 0


def _times(record: Any, keys: Sequence[str], where: Where) -> list[datetime | None]:
    return [slurm.parse_epoch(_number(_get(record, key), where), where) for key in keys]


def _hosts(value: Any, where: Where) -> tuple[str, ...]:
    """Return the hosts of a host list, of a list of names, or of an object with either."""
    if isinstance(value, dict):
        value = value.get("range") or value.get("list")
    if isinstance(value, list):
        value = ",".join(_text(name) for name in value)
    return slurm.parse_hosts(_text(value), where)


def _state(value: Any, where: Where) -> str:
    """Return the first word of a list; the others are flags."""
    first = value[0] if isinstance(value, list) and value else value
    return slurm.parse_state(_text(first), where)


def _number(value: Any, where: Where) -> int:
    """Return a whole number, plain or as ``{set, infinite, number}``; 0 if there is none."""
    return _optional(value, where) or 0


def _optional(value: Any, where: Where) -> int | None:
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _DIGITS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**_DIGITS:
        raise where.error(f"not a whole number: {value!r}")
    return int(value)


def _text(value: Any) -> str:
    return slurm.present(value) if isinstance(value, str) else ""


def _list(value: Any, where: Where) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise where.error("expected a list")
    return value


def _get(value: Any, *keys: str) -> Any:
    """Return the value under nested keys; None if there is none."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


SLURM_JSON = Format(
    "slurm-json",
    kind="jobs",
    evidence="real",
    about="jobs: `squeue --json`, `sacct --json` or `scontrol show jobs --json`",
    recognise=_recognise_slurm_json,
    parse=_parse_slurm_json,
    streamed=True,
)
