"""Cray's node tables: ``xtdb2proc`` (coordinates), optionally with ``xtprocadmin`` (names).

``xtdb2proc`` has one line per node with ``key=value`` pairs separated by commas, ``xtprocadmin`` a table
``NID (HEX) NODENAME TYPE STATUS MODE``. Nodes are matched by number (NID). A host has its node name
(``c0-0c1s3n2``) if ``xtprocadmin`` is given, else ``nid00042`` like Cray's own host names. Neither file
contains cables:

* Up to two nodes at a position are an XT (SeaStar) or XE/XK (Gemini): a 3D torus of positions. Axes with more
  than two positions are assumed to be rings, as in full machines; capacities are assumed to be equal, which
  holds for SeaStar but not for Gemini (y is slower).
* More nodes are an XC (Aries), a dragonfly: x is the group, y the chassis in it and z the slot. All slots of
  a chassis and all chassis at the same slot are connected. The optical links between groups are in no file:
  one is assumed between the routers at the same place of each two groups.

With one node at every position a node is its own router; else routers are switches ``router-x-y-z``. Service
nodes are hosts like others. Nodes of ``xtprocadmin`` without coordinates are ignored and counted.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ingest.formats.fabrics.draft import Draft, Position, grid_links
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains, counted
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError

MOST_ON_A_TORUS = 2
"""Largest number of nodes on a router of a torus: 1 SeaStar, 2 Gemini; an Aries has 4."""
MAX_COORDINATE = 4095

_ARIES = (
    "more than two nodes at a position: taken as XC (Aries); no file contains the cables between groups, so "
    "one is assumed between the routers at the same place of each two"
)
_PAIR = re.compile(r"([a-z_]\w*)=('[^']*'|[^,']*)", re.ASCII)
_PAIRS = re.compile(rf"{_PAIR.pattern}(,{_PAIR.pattern})*+\s*", re.ASCII)
_TABLE = re.compile(r"\s*NID\s+\(HEX\)\s+NODENAME\s+TYPE\s+STATUS\b.*")
_NODE = re.compile(
    r"\s*(\d{1,7})\s+0x([0-9a-f]{1,6})\s+(c\d+-\d+c\d+s\d+n\d+)\s+(\w+)\s+(\w+)(?:\s.*)?", re.ASCII
)
_COORDINATES = ("x_coord", "y_coord", "z_coord")


class _Node(NamedTuple):
    at: Position
    up: bool
    place: Place


def _parse_cray(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one machine; nodes without coordinates are an error."""
    nodes: dict[int, _Node] = {}
    names: dict[int, str] = {}
    for file in files:
        if any(_TABLE.fullmatch(line) for line in file.lines()):
            _read_names(file, names)
        else:
            _read_nodes(file, nodes)
    if not nodes:
        reason = "xtprocadmin contains no coordinates: ingest it together with the output of xtdb2proc"
        raise InputError(reason, path=files[0].path)
    draft, notes = _draft(nodes, names)
    notes += counted(
        (len(names.keys() - nodes.keys()), "node has", "nodes have", "a name but no coordinates: ignored"),
        (sum(not node.up for node in nodes.values()), "node is", "nodes are", "not up; their routers work"),
    )
    return draft.parsed(files[0].path, options, warnings=notes)


def _read_nodes(file: SourceFile, nodes: dict[int, _Node]) -> None:
    """Read the lines of xtdb2proc."""
    for place in file.places():
        line = place.text
        if not line.strip() or line.startswith("#"):
            continue
        if _PAIRS.fullmatch(line) is None:
            raise place.error("expected key=value pairs separated by commas: the file seems truncated")
        pairs = {match[1]: match[2].strip("'") for match in _PAIR.finditer(line)}
        nid = _number(pairs, "processor_id", place)
        if nid in nodes:
            raise place.error(f"node {nid} is already in line {nodes[nid].place.line}")
        at = tuple(_number(pairs, key, place) for key in _COORDINATES)
        if max(at) > MAX_COORDINATE:
            raise place.error(f"a coordinate is above {MAX_COORDINATE}")
        nodes[nid] = _Node(at=at, up=pairs.get("processor_status", "up") == "up", place=place)


def _read_names(file: SourceFile, names: dict[int, str]) -> None:
    """Read the table of xtprocadmin."""
    used = set(names.values())
    for place in file.places():
        line = place.text
        if not line.strip() or line.startswith("#") or _TABLE.fullmatch(line):
            continue
        match = _NODE.fullmatch(line)
        if match is None or int(match[1]) != int(match[2], 16):
            raise place.error("not a row of xtprocadmin, or its two numbers differ")
        if int(match[1]) in names or match[3] in used:
            raise place.error("the node or its name is repeated")
        names[int(match[1])] = match[3]
        used.add(match[3])


def _number(pairs: Mapping[str, str], key: str, place: Place) -> int:
    digits = pairs.get(key, "")
    if not re.fullmatch(r"\d{1,7}", digits, re.ASCII):
        raise place.error(f"{key} is missing or not a whole number")
    return int(digits)


def _draft(nodes: Mapping[int, _Node], names: Mapping[int, str]) -> tuple[Draft, list[str]]:
    """Return hosts, routers and links, and notes about assumptions."""
    draft = Draft()
    members: dict[Position, list[str]] = {}
    for nid, node in nodes.items():
        members.setdefault(node.at, []).append(names.get(nid, f"nid{nid:05d}"))
    most = max(len(hosts) for hosts in members.values())
    router: dict[Position, str] = {}
    for at, hosts in members.items():
        router[at] = hosts[0] if most == 1 else "router-{}-{}-{}".format(*at)
        place = Place(next(iter(nodes.values())).place.path)
        if most > 1:
            draft.switch(router[at], place, coordinates=at)
        for host in hosts:
            draft.host(host, place, forwards=most == 1, coordinates=at)
            if most > 1:
                draft.cable(router[at], host)
    if most <= MOST_ON_A_TORUS:
        links, notes = _torus(list(members))
    else:
        links, notes = list(_dragonfly(sorted(members))), [_ARIES]
    for a, b in links:
        draft.cable(router[a], router[b])
    return draft, notes


def _torus(found: Sequence[Position]) -> tuple[list[tuple[Position, Position]], list[str]]:
    """Return the links of a torus of positions (coordinates may begin anywhere), and the assumptions."""
    low = [min(at[axis] for at in found) for axis in range(3)]
    sizes = [max(at[axis] for at in found) - low[axis] + 1 for axis in range(3)]
    shift = {tuple(value - lowest for value, lowest in zip(at, low, strict=True)): at for at in found}
    wrap = [size > 2 for size in sizes]
    links = [(shift[a], shift[b]) for a, b in grid_links(list(shift), sizes, wrap)]
    notes = [
        f"a torus of {' x '.join(map(str, sizes))}: axes of more than two positions are taken to be rings"
    ]
    holes = math.prod(sizes) - len(found)
    return links, notes + counted(
        (
            holes,
            "position of the torus has",
            "positions of the torus have",
            "no node: links there are ignored",
        )
    )


def _dragonfly(found: Sequence[Position]) -> Iterator[tuple[Position, Position]]:
    """Yield the links of a dragonfly of Aries routers at (group, chassis, slot)."""
    for key in ((0, 1), (0, 2), (1, 2)):  # one chassis; one slot of a group; one place in all groups
        alike: dict[tuple[int, ...], list[Position]] = {}
        for at in found:
            alike.setdefault(tuple(at[axis] for axis in key), []).append(at)
        for routers in alike.values():
            yield from itertools.combinations(routers, 2)


CRAY = Format(
    "cray",
    kind="fabric",
    evidence="public",
    about="Cray XT, XE or XC: xtdb2proc, optionally with xtprocadmin",
    recognise=contains(r"^cpu=\d+,slot=\d+,.*\bx_coord=|^[ \t]*NID[ \t]+\(HEX\)[ \t]+NODENAME[ \t]+TYPE\s"),
    parse=_parse_cray,
    grouped=True,
)
