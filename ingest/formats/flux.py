"""Flux: the resources of a job, and the hosts of its ranks."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ingest.formats.hostlists import MAX_HOSTS, expand
from ingest.formats.placements import MAX_RANKS, placement
from ingest.formats.slurm_fields import Where, make_job
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import STANDARD_INPUT, SourceFile
from ingest.reading.text import Spot, load_json
from registry.errors import InputError
from registry.model import Job

_LAST = 253_402_300_799
"""Last second of the year 9999, since 1970."""
_ID_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.A)


def _recognise_flux_r(head: str, path: str) -> bool:
    """Return True if the text is a JSON object with the key ``R_lite`` under ``execution``."""
    return head.lstrip().startswith("{") and '"R_lite"' in head and '"execution"' in head


def _parse_flux_r(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the job of one file.

    Inconsistent host lists and id sets, and a file whose name is not a job's id, are errors.
    """
    (file,) = files
    root = Spot(file.path)
    content = root.object(load_json(file))
    if content.get("version") != 1:
        raise root.at("version").error("is not 1, the supported version", content.get("version"))
    spot = root.at("execution")
    execution = spot.object(content.get("execution"))
    cores = _cores(execution.get("R_lite"), spot.at("R_lite"))
    hosts = _hosts(execution.get("nodelist"), spot.at("nodelist")) or options.hosts
    if not hosts:
        raise spot.at("nodelist").error("is missing: give the job's hosts with --hosts")
    if len(hosts) != len(cores):
        raise spot.error(f"names {len(hosts)} hosts and {len(cores)} broker ranks")
    started = _time(execution.get("starttime"), spot.at("starttime"))
    job = make_job(
        Where(file.path),
        id=_id(file),
        state="",
        times=(None, started, None),
        hosts=hosts,
        slots=[cores[rank] for rank in sorted(cores)],
        ranks=0,
        source=FLUX_R.name,
    )
    return Parsed(jobs=(job,), warnings=_warnings(content, job))


def _warnings(content: dict[str, Any], job: Job) -> tuple[str, ...]:
    graph = ("its scheduling graph is ignored",) if content.get("scheduling") else ()
    return (f"job {job.id}: R contains no tasks, so the slots of a host are its cores", *graph)


def _id(file: SourceFile) -> str:
    """Return the file's name up to the first dot."""
    name = posixpath.basename(file.path.replace("\\", "/").rsplit("!", 1)[-1]).split(".", 1)[0]
    if file.path == STANDARD_INPUT or not name or not name.isprintable():
        reason = "neither R nor the file's name contains the job's id: name the file JOBID.json"
        raise InputError(reason, path=file.path)
    return name


def _hosts(value: Any, spot: Spot) -> tuple[str, ...]:
    """Return the hosts of the list of host lists; empty if it is missing."""
    if value is None:
        return ()
    texts = [spot.at(index).text(text) for index, text in enumerate(spot.list(value))]
    return expand(",".join(texts), path=spot.path)


def _cores(value: Any, spot: Spot) -> dict[int, int]:
    """Return the cores of each broker rank."""
    cores: dict[int, int] = {}
    for index, entry in enumerate(spot.list(value)):
        here = spot.at(index)
        item = here.object(entry)
        children = here.at("children").object(item.get("children"))
        count = len(_id_set(children.get("core"), here.at("children").at("core")))
        for rank in _id_set(item.get("rank"), here.at("rank")):
            if rank in cores:
                raise here.at("rank").error(f"broker rank {rank} is repeated")
            cores[rank] = count
    return cores


def _id_set(value: Any, spot: Spot) -> list[int]:
    """Return the ids of ``0-3,7`` or ``[0-3,7]``; at least one."""
    text = spot.text(value).strip()
    inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    ids: list[int] = []
    for part in inside.split(","):
        found = _ID_RANGE.fullmatch(part.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if last < first or len(ids) + last - first >= MAX_HOSTS:
            raise spot.error("is not a set of ids such as 0-3,7", value)
        ids += range(first, last + 1)
    if len(set(ids)) != len(ids):
        raise spot.error("repeats an id", value)
    return ids


def _time(value: Any, spot: Spot) -> datetime | None:
    """Return a time in seconds since 1970; None if it is missing or 0."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LAST:
        raise spot.error("is not a time in seconds since 1970", value)
    return datetime.fromtimestamp(math.floor(value), UTC) if value else None


FLUX_R = Format(
    "flux-r",
    kind="jobs",
    evidence="public",
    about="job: resource set (R, version 1) of a Flux job, in a file named after the job",
    recognise=_recognise_flux_r,
    parse=_parse_flux_r,
)
"""The resource set of a Flux job (R, version 1, RFC 20): output of ``flux job info JOBID R``.

The hosts are read in the order of ``nodelist``; ``R_lite`` gives their cores (and GPUs) by broker ranks in
the same order; and the times are read. R contains neither the job's id, which is taken from the file's name
up to the first dot, nor its tasks: slots are the cores of each host. Older versions of Flux wrote no
``nodelist``; then ``--hosts`` is needed. Source: flux-framework/rfc, spec_20, spec_22 (id sets) and spec_29
(host lists), and published outputs.
"""


_BLOCK = r"\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
_BARE = re.compile(rf"\s*\[\s*{_BLOCK}\s*[,\]]", re.A)
_WRAPPED = re.compile(rf'"map"\s*:\s*\[\s*{_BLOCK}', re.A)
_FIELDS = ("nodeid", "nnodes", "ppn", "repeat")


def _recognise_flux_taskmap(head: str, path: str) -> bool:
    """Return True if the text begins with a block of four numbers, bare or under the key ``map``."""
    if head.lstrip().startswith("{"):
        return '"version"' in head and _WRAPPED.search(head) is not None
    return _BARE.match(head) is not None


def _parse_flux_taskmap(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the tasks of one file; a node beyond the given hosts is an error."""
    (file,) = files
    spot = Spot(file.path)
    value = load_json(file)
    if isinstance(value, dict):
        if value.get("version") != 1:
            raise spot.at("version").error("is not 1, the supported version")
        value, spot = value.get("map"), spot.at("map")
    if not options.hosts:
        reason = "contains no hosts: give those of the job with --hosts, in the order of its R"
        raise InputError(reason, path=file.path)
    hosts: list[str] = []
    for index, block in enumerate(spot.list(value)):
        here = spot.at(index)
        first, nodes, each, repeat = _numbers(block, here)
        if first + nodes > len(options.hosts):
            raise here.error(f"node {first + nodes - 1} is not one of the {len(options.hosts)} hosts given")
        if len(hosts) + nodes * each * repeat > MAX_RANKS:
            raise here.error(f"places more than {MAX_RANKS} ranks")
        hosts += [host for host in options.hosts[first : first + nodes] for _ in range(each)] * repeat
    return placement(hosts, file, FLUX_TASKMAP.name)


def _numbers(block: Any, spot: Spot) -> tuple[int, int, int, int]:
    values = spot.list(block)
    if len(values) != len(_FIELDS):
        raise spot.error(f"has {len(values)} numbers, not the four of {', '.join(_FIELDS)}")
    first, nodes, each, repeat = (
        spot.at(name).whole(value, int(name != "nodeid"), MAX_RANKS)
        for name, value in zip(_FIELDS, values, strict=True)
    )
    return first, nodes, each, repeat


FLUX_TASKMAP = Format(
    "flux-taskmap",
    kind="placement",
    evidence="public",
    about="placement: task map of Flux (RFC 34); needs --hosts",
    recognise=_recognise_flux_taskmap,
    parse=_parse_flux_taskmap,
)
"""A placement as a task map of Flux (RFC 34): ``[[nodeid, nnodes, ppn, repeat], ...]``.

Each block places tasks in order, ppn on each of nnodes nodes from nodeid on, and this repeat times. The array
may be wrapped: ``{"version": 1, "map": [...]}``. Node ids count the hosts of the job, which are not in the
map: they must be given with ``almanac ingest --hosts``, in the order of the job's R. ``flux job taskmap
JOBID`` prints the map. Source: flux-framework/rfc, spec_34.
"""
