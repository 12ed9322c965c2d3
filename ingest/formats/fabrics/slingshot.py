"""Fabrics of HPE Slingshot, and of Cray XT, XE and XC."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ingest.formats.fabrics.draft import Draft, Position, grid_links
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains, counted
from ingest.reading.source import Place, SourceFile
from ingest.reading.text import Spot, load_json
from registry.errors import InputError
from registry.model import NO_PORT

COLUMNS = ("xname", "type", "dst", "port_num", "status", "speed")
"""Required columns of the table."""
DEFAULT_RATE = 25e9
"""Bytes/s of a port of a Slingshot switch, 200 Gbit/s."""

_SWITCH = re.compile(r"x\d{1,5}c\d{1,3}r\d{1,3}", re.ASCII)
_PORT = re.compile(r"((x\d{1,5}c\d{1,3}r\d{1,3})j\d{1,4})p\d{1,2}", re.ASCII)
_JACK = re.compile(r"(x\d{1,5}c\d{1,3}r\d{1,3}j\d{1,4})(p\d{1,2})?", re.ASCII)
_CHIP = re.compile(r".*a\d{1,2}l(\d{1,4})", re.ASCII)
_SPEED = re.compile(r"[A-Z]+_(\d{1,5})G", re.ASCII)
_UP = "true"

Ends = tuple[str, str]
"""The two ports of a link, in alphabetical order."""


class _Row(NamedTuple):
    """An end of a link in the table."""

    port: str
    """Name (xname) of the port."""
    jack: str
    """Jack at the other end."""
    number: int
    """Number of the port."""
    up: bool
    """True if the link is up."""
    rate: float | None
    """Bytes/s in each direction."""
    place: Place
    """Location in the file."""


@dataclass(slots=True, eq=False)
class _Template:
    """Content of the template."""

    switches: dict[str, Place] = field(default_factory=dict)
    edge: dict[str, Place] = field(default_factory=dict)
    """Switches, and ports connected to nodes."""
    number: dict[str, int] = field(default_factory=dict)
    """Number of each port; `NO_PORT` if its id has none."""
    links: dict[Ends, Place] = field(default_factory=dict)
    """Links between ports."""


def _read_template(file: SourceFile) -> _Template:
    """Read ``fabric_template.json``; a link to a port that no switch has is an error."""
    root = Spot(file.path)
    content = root.object(load_json(file))
    found = _Template()
    for here, switch in root.at("switches").objects(content.get("switches")):
        name = here.at("id").text(switch.get("id"))
        if name in found.switches or _SWITCH.fullmatch(name) is None:
            raise here.error("is not the xname of a switch, or is repeated", name)
        found.switches[name] = here.place
        for kind in ("edgePorts", "fabricPorts"):
            for spot, port in here.at(kind).objects(switch.get(kind, [])):
                _template_port(port, spot, kind == "edgePorts", name, found)
    for here, link in root.at("links").objects(content.get("links")):
        ends = sorted(here.at(key).text(link.get(key)) for key in ("conn_a", "conn_b"))
        if any(end not in found.number for end in ends):
            raise here.error("leads to a port that no switch has", " ".join(ends))
        found.links[(ends[0], ends[1])] = here.place
    _once(found.links, root)
    return found


def _read_table(file: SourceFile) -> dict[str, _Row]:
    """Return the rows of the table by port; a row of another type is an error."""
    names: list[str] = []
    rows: dict[str, _Row] = {}
    for place in file.places():
        line, found = place.text, _cells(place.text)
        if not line.strip().startswith("|") or set(line) <= set("|-+ :="):
            continue
        if not names:
            names = found
            if not set(COLUMNS) <= set(names):
                raise place.error(f"the columns {', '.join(COLUMNS)} are required")
            continue
        if len(found) != len(names):
            raise place.error(f"{len(found)} cells, but {len(names)} columns: the file seems truncated")
        row = dict(zip(names, found, strict=True))
        if row["type"] != "fabric":
            raise place.error("a row of another type than fabric: only links between switches are supported")
        if row["xname"] in rows:
            raise place.error("the port is repeated")
        rows[row["xname"]] = _row(row, place)
    if not rows:
        raise InputError("the table has no rows", path=file.path)
    return rows


def _jack_of(port: str) -> str:
    """Return the jack of a port: its xname without the last part."""
    return port.rsplit("p", 1)[0]


def _switch_of(port: str, place: Place) -> str:
    """Return the switch of a port; raise `InputError` if the name is not that of a port."""
    match = _PORT.fullmatch(port)
    if match is None:
        raise place.error(f"{port!r} is not a port")
    return match[2]


def _cells(line: str) -> list[str]:
    """Return the cells of a row between bars."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _template_port(port: dict[str, Any], spot: Spot, edge: bool, switch: str, found: _Template) -> None:
    name = spot.at("conn_port").text(port.get("conn_port"))
    match = _PORT.fullmatch(name)
    if match is None or match[2] != switch or name in found.number:
        raise spot.error(f"is not a port of {switch}, or is repeated", name)
    chip = _CHIP.fullmatch(str(port.get("id", "")))
    found.number[name] = int(chip[1]) if chip else NO_PORT
    if edge:
        found.edge[name] = spot.place


def _once(links: Iterable[Ends], root: Spot) -> None:
    """Raise `InputError` if a port has two links."""
    seen: set[str] = set()
    for ends in links:
        for end in ends:
            if end in seen:
                raise root.error("a port has two links", end)
            seen.add(end)


def _row(row: Mapping[str, str], place: Place) -> _Row:
    if not _PORT.fullmatch(row["xname"]) or not (jack := _JACK.fullmatch(row["dst"])):
        raise place.error("xname is not a port, or dst is not a jack")
    if not re.fullmatch(r"\d{1,4}", row["port_num"], re.ASCII):
        raise place.error("port_num is not a whole number")
    speed = _SPEED.fullmatch(row["speed"])
    return _Row(
        port=row["xname"],
        jack=jack[1],
        number=int(row["port_num"]),
        up=row["status"].lower() == _UP,
        rate=int(speed[1]) * 1e9 / 8 if speed and int(speed[1]) else None,
        place=place,
    )


def _recognise_slingshot(head: str, path: str) -> bool:
    """Return True if the text is a JSON object with edge and fabric ports, or a table with STT's columns."""
    if head.lstrip().startswith("{"):
        return '"switches"' in head and ('"fabricPorts"' in head or '"edgePorts"' in head)
    first = next((line for line in head.split("\n") if line.strip().startswith("|")), "")
    return set(COLUMNS) <= set(_cells(first))


def _parse_slingshot(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one machine; a second template or table is an error."""
    template: _Template | None = None
    rows: dict[str, _Row] | None = None
    for file in files:
        is_json = file.head(4096).lstrip().startswith("{")
        if (template if is_json else rows) is not None:
            raise InputError("a second file of its kind", path=file.path)
        if is_json:
            template = _read_template(file)
        else:
            rows = _read_table(file)
    notes: list[str] = []
    if template is None:
        template = _Template(links=dict(_pairs(rows or {})))
        notes.append("the table contains no hosts: ingest it together with the template")
    elif rows is not None:
        notes += _matched(template, rows)
    draft = Draft()
    notes += counted(
        (_cables(template, rows or {}, draft), "link is", "links are", "not up and ignored"),
        (
            len(template.edge),
            "edge port is taken as a host",
            "edge ports are taken as hosts",
            "because the template contains no nodes",
        ),
    )
    return draft.parsed(files[0].path, options, default_rate=DEFAULT_RATE, warnings=notes)


def _matched(template: _Template, rows: Mapping[str, _Row]) -> list[str]:
    """Remove the links of the template that the table does not contain, and return warnings."""
    lacking = elsewhere = 0
    for a, b in list(template.links):
        if a not in rows or b not in rows:
            lacking += 1
        elif rows[a].jack != _jack_of(b) or rows[b].jack != _jack_of(a):
            elsewhere += 1
        else:
            continue
        del template.links[(a, b)]
    listed = {end for ends in template.links for end in ends}
    return counted(
        (lacking, "link of the template is", "links of the template are", "not in the table and ignored"),
        (elsewhere, "link leads", "links lead", "elsewhere in the table: ignored"),
        (
            len(rows.keys() - listed),
            "port of the table has",
            "ports of the table have",
            "no such link in the template",
        ),
    )


def _cables(template: _Template, rows: Mapping[str, _Row], draft: Draft) -> int:
    """Add all devices and cables to the draft, and return the number of links that are not up."""
    down = 0
    for name, place in template.switches.items():
        draft.switch(name, place)
    for (a, b), place in template.links.items():
        for end in (a, b):
            draft.switch(_switch_of(end, place), place)
        ends = [rows[end] for end in (a, b) if end in rows]
        if not all(row.up for row in ends):
            down += 1
            continue
        rate = min((row.rate for row in ends if row.rate), default=None)
        numbers = [rows[end].number if end in rows else template.number.get(end, NO_PORT) for end in (a, b)]
        switches = _switch_of(a, place), _switch_of(b, place)
        draft.cable(*switches, rate=rate, a_port=numbers[0], b_port=numbers[1])
    for port, place in template.edge.items():
        draft.host(port, place)
        draft.cable(_switch_of(port, place), port, a_port=template.number.get(port, NO_PORT))
    return down


def _pairs(rows: Mapping[str, _Row]) -> Iterator[tuple[Ends, Place]]:
    """Yield the links of the table; the ends between two jacks are paired in the order of their ports."""
    between: dict[tuple[str, str], list[_Row]] = {}
    for port in sorted(rows):
        between.setdefault((_jack_of(port), rows[port].jack), []).append(rows[port])
    for (here, there), ends in between.items():
        others = between.get((there, here), [])
        if len(others) != len(ends) or here == there:
            raise ends[0].place.error(f"the rows of jack {there} do not lead back: the file seems truncated")
        if here < there:
            for one, two in zip(ends, others, strict=True):
                yield (one.port, two.port), one.place


SLINGSHOT = Format(
    "slingshot",
    kind="fabric",
    evidence="public",
    about="Slingshot fabric: fabric_template.json, STT's `show fabric`, or both",
    recognise=_recognise_slingshot,
    parse=_parse_slingshot,
    grouped=True,
)
"""HPE Slingshot: the fabric manager's ``fabric_template.json`` and STT's ``show fabric``, alone or together.

The template lists switches with their edge and fabric ports, and links between ports. It does not contain the
nodes of edge ports: each edge port becomes a host named after it (``x1000c0r1j100p0``). The table has one row
per end of a link, with port number, status and speed, but only the jack of the far end: the ends of links
between two jacks are paired in the order of their ports. If both are given, the table adds speeds and status
to the template's links. Links that are not up, that only one of the files contains, or that lead elsewhere in
the table are ignored and counted.

Locations are xnames: switch ``x1000c0r1``, jack ``x1000c0r1j101``, port ``x1000c0r1j101p0``. A port's number
is that of its link on the chip, the last number of its ``id`` ``x1000c0r1a0l3``. Source: HPE's documentation
has the top-level keys, xnames and STT's columns; the keys inside a port and a link (``conn_port``,
``conn_a``, ``conn_b``) are from one unconfirmed sample.
"""


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
