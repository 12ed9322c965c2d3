"""The resource set of a Flux job (R, version 1, RFC 20), as ``flux job info JOBID R`` prints it.

Read: the hosts in the order of ``nodelist``, to which ``R_lite`` gives cores (and GPUs) by broker ranks in
that order, and the times. R tells neither the job's id, which is the file's name up to the first dot, nor its
tasks: slots are the cores of each host. Without ``nodelist``, as older versions of Flux wrote it, hosts are
not known; ``--hosts`` then tells them. Source: flux-framework/rfc, spec_20, spec_22 (id sets) and spec_29
(host lists), and published outputs.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ingest.formats.jobs.hostlists import MAX_HOSTS, expand
from ingest.formats.jobs.slurm_fields import Where, make_job
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import STANDARD_INPUT, SourceFile
from registry.errors import InputError
from registry.model import Job

FORMAT = "flux-r"
_LAST = 253_402_300_799
"""Last second of the year 9999, since 1970."""
_ID_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.A)


def recognise(head: str, path: str) -> bool:
    """Whether it is a JSON object with the key ``R_lite`` under ``execution``."""
    return head.lstrip().startswith("{") and '"R_lite"' in head and '"execution"' in head


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The job of one file.

    Raises
    ------
    InputError
        No R of version 1, host lists or id sets that cannot be read or do not fit each other, no name to take
        the job's id from.
    """
    (file,) = files
    root = Spot(file.path)
    content = root.object(load_json(file))
    if content.get("version") != 1:
        raise root.at("version").error("is not 1, the version that is known", content.get("version"))
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
        source=FORMAT,
    )
    return Parsed(jobs=(job,), warnings=_warnings(content, job))


def _warnings(content: dict[str, Any], job: Job) -> tuple[str, ...]:
    graph = ("its scheduling graph is not read",) if content.get("scheduling") else ()
    return (f"job {job.id}: R tells no tasks, so a host's slots are its cores", *graph)


def _id(file: SourceFile) -> str:
    """The file's name up to the first dot."""
    name = posixpath.basename(file.path.replace("\\", "/").rsplit("!", 1)[-1]).split(".", 1)[0]
    if file.path == STANDARD_INPUT or not name or not name.isprintable():
        reason = "R does not tell its job's id, and nor does the file's name: call it JOBID.json"
        raise InputError(reason, path=file.path)
    return name


def _hosts(value: Any, spot: Spot) -> tuple[str, ...]:
    """Hosts of the list of host lists; none where it is missing."""
    if value is None:
        return ()
    texts = [spot.at(index).text(text) for index, text in enumerate(spot.list(value))]
    return expand(",".join(texts), path=spot.path)


def _cores(value: Any, spot: Spot) -> dict[int, int]:
    """Cores of each broker rank."""
    cores: dict[int, int] = {}
    for index, entry in enumerate(spot.list(value)):
        here = spot.at(index)
        item = here.object(entry)
        children = here.at("children").object(item.get("children"))
        count = len(_id_set(children.get("core"), here.at("children").at("core")))
        for rank in _id_set(item.get("rank"), here.at("rank")):
            if rank in cores:
                raise here.at("rank").error(f"broker rank {rank} stands twice")
            cores[rank] = count
    return cores


def _id_set(value: Any, spot: Spot) -> list[int]:
    """Ids of ``0-3,7`` or ``[0-3,7]``; at least one."""
    text = spot.text(value).strip()
    inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    ids: list[int] = []
    for part in inside.split(","):
        found = _ID_RANGE.fullmatch(part.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if last < first or len(ids) + last - first >= MAX_HOSTS:
            raise spot.error("is no set of ids such as 0-3,7", value)
        ids += range(first, last + 1)
    if len(set(ids)) != len(ids):
        raise spot.error("has an id twice", value)
    return ids


def _time(value: Any, spot: Spot) -> datetime | None:
    """A time in seconds since 1970; none where it is missing or 0."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LAST:
        raise spot.error("is no time in seconds since 1970", value)
    return datetime.fromtimestamp(math.floor(value), UTC) if value else None
