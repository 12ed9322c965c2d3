"""A placement as a task map of Flux (RFC 34): ``[[nodeid, nnodes, ppn, repeat], ...]``.

Each block places tasks in order, ppn on each of nnodes nodes from nodeid on, and this repeat times. The array
may be wrapped: ``{"version": 1, "map": [...]}``. Node ids count the hosts of the job, which are not in the
map: they must be given with ``almanac ingest --hosts``, in the order of the job's R. ``flux job taskmap
JOBID`` prints the map. Source: flux-framework/rfc, spec_34.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ingest.formats.placements.orders import MAX_RANKS, placement
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import SourceFile
from registry.errors import InputError

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
