"""A fabric as CSV with a row a link and direction: ``source,target`` and what else is known of it.

Further columns are ``capacity`` (bytes/s of all cables of the row), ``cables``, ``source_port``,
``target_port``, ``source_guid``, ``target_guid`` (node GUIDs; a host's are its adapters'), ``source_kind``
(``host`` or ``switch``), ``source_slots``, ``source_forwards``; columns that are not known are not read,
which is said. Cells may be empty. `registry.exports.links_csv` writes all of them. A row without a target is
a vertex without links. A file whose rows all run one way lists each cable once: the other direction is added.

Where no kinds are told, vertices with exactly one neighbour are hosts, the others switches; where there are
none (a torus), every vertex is a host that forwards.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ingest.formats.fabrics.draft import UNIT_RATE, Place, check_name, unknown_rates
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Fabric, Links

FORMAT = "links-csv"
COLUMNS = frozenset(
    {
        "source",
        "target",
        "capacity",
        "cables",
        "source_port",
        "target_port",
        "source_guid",
        "target_guid",
        "source_kind",
        "source_slots",
        "source_forwards",
    }
)
_KINDS = {"host": HOST, "switch": SWITCH}
_TRUTH = {"1": True, "0": False, "true": True, "false": False}
_DIGITS = re.compile(r"\d{1,9}", re.ASCII)
_GUID = re.compile(r"(?:0x)?[0-9a-fA-F]{1,16}", re.ASCII)
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


class _Link(NamedTuple):
    source: str
    target: str
    capacity: float | None
    cables: int
    ports: tuple[int, int]
    guids: tuple[int, int]
    place: Place


class _Vertex(NamedTuple):
    kind: int | None
    slots: int | None
    forwards: bool | None


UNTOLD = _Vertex(None, None, None)


def recognise(head: str, path: str) -> bool:
    """Whether the first line that is no comment names columns of links, and not what a job loaded them by."""
    lines = (line for line in head.split("\n") if line.strip() and not line.startswith("#"))
    names = _names(next(lines, "").split(","))
    return {"source", "target"} <= set(names) and "bytes" not in names and len(COLUMNS & set(names)) > 2


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The fabric of one file.

    Raises
    ------
    InputError
        No such columns, a cell that cannot be read, a vertex told differently in two rows, no link.
    """
    (file,) = files
    links: list[_Link] = []
    vertices: dict[str, _Vertex] = {}
    unknown: set[str] = set()
    for row, place in _rows(file, unknown):
        name = check_name(row.get("source", ""), place)
        told = _Vertex(_kind(row, place), _whole(row, "source_slots", place), _truth(row, place))
        before = vertices.get(name, UNTOLD)
        if UNTOLD not in (before, told) and before != told:
            raise place.error(f"{name!r} has another kind, slots or forwards than in a row before")
        vertices[name] = before if told == UNTOLD else told
        if row.get("target"):
            links.append(_link(name, row, place))
    if not links:
        raise InputError("holds no link", path=file.path)
    for link in links:
        vertices.setdefault(link.target, UNTOLD)
    links, said = _both_ways(links)
    said += [f"the columns {', '.join(sorted(unknown))} are not read"] if unknown else []
    rate = options.rate or UNIT_RATE
    without = sum(link.capacity is None for link in links)
    said += unknown_rates(without, rate, options.rate)
    fabric, kinds = _fabric(links, vertices, rate)
    assumed = np.ones(len(links), np.bool_) if without == len(links) else None
    return Parsed(fabric=fabric, assumed=assumed, warnings=(*said, *kinds))


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


def _rows(file: SourceFile, unknown: set[str]) -> Iterator[tuple[dict[str, str], Place]]:
    """Cells by column, blanks around them gone; columns that are not known go into `unknown`."""
    reader = csv.reader(io.StringIO(file.text(), newline=""), strict=True)
    names: list[str] = []
    try:
        for cells in reader:
            place = Place(file.path, reader.line_num, ",".join(cells))
            if not cells or (not names and cells[0].startswith("#")):
                continue
            if not names:
                names = _names(cells)
                if not {"source", "target"} <= set(names) or len(set(names)) != len(names):
                    raise place.error("there are not the columns source and target, or one stands twice")
                unknown |= set(names) - COLUMNS
                continue
            if len(cells) != len(names):
                raise place.error(f"{len(cells)} cells where there are {len(names)} columns")
            yield dict(zip(names, (cell.strip() for cell in cells), strict=True)), place
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", path=file.path, line=reader.line_num) from error


def _link(source: str, row: Mapping[str, str], place: Place) -> _Link:
    target = check_name(row["target"], place)
    if target == source:
        raise place.error("a link from a vertex to itself")
    cables = _whole(row, "cables", place)
    if cables == 0:
        raise place.error("a row of no cables")
    ports = tuple(_whole(row, name, place) for name in ("source_port", "target_port"))
    guids = tuple(_guid(row, name, place) for name in ("source_guid", "target_guid"))
    return _Link(
        source,
        target,
        _capacity(row, place),
        1 if cables is None else cables,
        (NO_PORT if ports[0] is None else ports[0], NO_PORT if ports[1] is None else ports[1]),
        (guids[0], guids[1]),
        place,
    )


def _whole(row: Mapping[str, str], name: str, place: Place) -> int | None:
    text = row.get(name, "")
    if text and not _DIGITS.fullmatch(text):
        raise place.error(f"{name} is no whole number: {text!r}")
    return int(text) if text else None


def _guid(row: Mapping[str, str], name: str, place: Place) -> int:
    text = row.get(name, "")
    if text and not _GUID.fullmatch(text):
        raise place.error(f"{name} is no GUID: {text!r}")
    return int(text, 16) if text else 0


def _capacity(row: Mapping[str, str], place: Place) -> float | None:
    text = row.get("capacity", "")
    if not text:
        return None
    value = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not (math.isfinite(value) and value > 0):
        raise place.error(f"capacity is no number of bytes/s above zero: {text!r}")
    return value


def _kind(row: Mapping[str, str], place: Place) -> int | None:
    text = row.get("source_kind", "").lower()
    if text and text not in _KINDS:
        raise place.error(f"source_kind is neither host nor switch: {text!r}")
    return _KINDS.get(text)


def _truth(row: Mapping[str, str], place: Place) -> bool | None:
    text = row.get("source_forwards", "").lower()
    if text and text not in _TRUTH:
        raise place.error(f"source_forwards is neither 1 nor 0: {text!r}")
    return _TRUTH.get(text)


def _both_ways(links: list[_Link]) -> tuple[list[_Link], list[str]]:
    """The links, mirrored where the whole file lists each cable once; and warnings."""
    pairs = {(link.source, link.target) for link in links}
    single = sum((target, source) not in pairs for source, target in pairs)
    if single == len(pairs):
        mirrored = [
            link._replace(
                source=link.target, target=link.source, ports=link.ports[::-1], guids=link.guids[::-1]
            )
            for link in links
        ]
        return links + mirrored, ["the file lists each cable once: the other direction is added"]
    return links, [f"{single} pair(s) are joined in one direction only and are kept so"] if single else []


def _fabric(links: list[_Link], told: Mapping[str, _Vertex], rate: float) -> tuple[Fabric, list[str]]:
    names = tuple(sorted(told))
    index = {name: vertex for vertex, name in enumerate(names)}
    source = np.array([index[link.source] for link in links], np.int64)
    target = np.array([index[link.target] for link in links], np.int64)
    kind, said = _vertex_kinds([told[name].kind for name in names], source, target)
    direct = bool((kind == HOST).all())
    slots = [told[name].slots for name in names]
    forwards = [told[name].forwards for name in names]
    guid, adapters, ends = _adapters(links, kind, index)
    fabric = Fabric(
        names=names,
        kind=kind,
        slots=np.where(kind == HOST, [1 if count is None else count for count in slots], 0),
        forwards=np.array(
            [(direct or kind[v] == SWITCH) if one is None else one for v, one in enumerate(forwards)],
            np.bool_,
        ),
        guid=guid,
        lid=np.zeros(len(names), np.int32),
        links=Links.of(
            source,
            target,
            [rate if link.capacity is None else link.capacity for link in links],
            source_port=[link.ports[0] for link in links],
            target_port=[link.ports[1] for link in links],
            source_adapter=[end[0] for end in ends],
            target_adapter=[end[1] for end in ends],
            cables=[link.cables for link in links],
        ),
        adapters=adapters,
    )
    return fabric, said


def _vertex_kinds(
    told: Sequence[int | None], source: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Kind of each vertex; those that are not told by their neighbours."""
    if None not in told:
        return np.array(told, np.uint8), []
    n = len(told)
    ends = np.unique(np.concatenate([source * n + target, target * n + source]))
    hanging = np.bincount(ends // n, minlength=n) == 1
    if not hanging.any() or bool(hanging.all()):
        guessed = np.full(n, HOST, np.uint8)
        said = "every vertex of which no kind is told is taken as a host that forwards"
    else:
        guessed = np.where(hanging, HOST, SWITCH).astype(np.uint8)
        said = "vertices of which no kind is told are hosts where they have one neighbour, else switches"
    known = [guess if kind is None else kind for kind, guess in zip(told, guessed.tolist(), strict=True)]
    return np.array(known, np.uint8), [said]


def _adapters(
    links: list[_Link], kind: np.ndarray, index: Mapping[str, int]
) -> tuple[np.ndarray, Adapters, list[tuple[int, int]]]:
    """GUIDs of switches, adapters of hosts by GUID, and the adapters of each link's ends."""
    guid = np.zeros(len(kind), np.uint64)
    found: dict[int, int] = {}
    ports: set[tuple[int, int]] = set()
    for link in links:
        for name, number, port in zip((link.source, link.target), link.guids, link.ports, strict=True):
            vertex = index[name]
            if not number:
                continue
            if kind[vertex] == SWITCH:
                if guid[vertex] not in (0, number):
                    raise link.place.error(f"the switch {name!r} has two GUIDs")
                guid[vertex] = number
            elif found.setdefault(number, vertex) != vertex:
                raise link.place.error(f"the adapter {number:#018x} is in two hosts")
            elif port >= 0:
                ports.add((number, port))
    order = sorted(found, key=lambda number: (found[number], number))
    place = {number: at for at, number in enumerate(order)}
    rows = sorted((place[number], port) for number, port in ports)
    adapters = Adapters(
        names=("",) * len(order),
        guid=np.array(order, np.uint64),
        system_guid=np.zeros(len(order), np.uint64),
        host=np.array([found[number] for number in order], np.int32),
        port_adapter=np.array([at for at, _ in rows], np.int32),
        port_number=np.array([port for _, port in rows], np.int32),
        port_guid=np.zeros(len(rows), np.uint64),
        port_lid=np.zeros(len(rows), np.int32),
        port_lmc=np.zeros(len(rows), np.int32),
    )
    none = NO_PORT
    ends = [(place.get(link.guids[0], none), place.get(link.guids[1], none)) for link in links]
    return guid, adapters, ends
