"""A fabric as CSV with one row per link and direction: ``source,target`` and optional columns.

Optional columns are ``capacity`` (bytes/s of all cables of the row), ``cables``, ``source_port``,
``target_port``, ``source_guid``, ``target_guid`` (node GUIDs; those of a host are its adapters'),
``source_kind`` (``host`` or ``switch``), ``source_slots``, ``source_forwards``; other columns are ignored
with a warning. Cells may be empty. `registry.exports.graphs` writes all columns. A row without a target is
a vertex without links. If all rows run one way, each row is a cable: the other direction is added.

Without kinds, vertices with exactly one neighbour are hosts and the others are switches; if there are none (a
torus), every vertex is a host that forwards.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ingest.formats.fabrics.draft import UNIT_RATE, attached_to_one, check_name, unknown_rates
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from registry.csv_text import without_guard
from registry.errors import InputError
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Fabric, Links

_OPTIONAL = "cables source_port target_port source_guid target_guid source_kind source_slots source_forwards"
COLUMNS = frozenset(("source", "target", "capacity", *_OPTIONAL.split()))
_KINDS = {"host": HOST, "switch": SWITCH}
_TRUTH = {"1": True, "0": False, "true": True, "false": False}
_DIGITS = re.compile(r"\d{1,9}", re.ASCII)
LARGEST = 65_535
"""Largest number of a port, and most cables of a row and slots of a host: a larger one is a typing error, and
arrays with an element per slot or port would fill the memory."""
RATES = (1e-6, 1e18)
"""Smallest and largest capacity in bytes/s; loads divided by others are not finite."""
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


UNKNOWN = _Vertex(None, None, None)


def _recognise_links_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments names columns of links (except loaded links)."""
    lines = (line for line in head.split("\n") if line.strip() and not line.startswith("#"))
    names = _names(next(lines, "").split(","))
    return {"source", "target"} <= set(names) and "bytes" not in names and len(COLUMNS & set(names)) > 2


def _parse_links_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one file; different values for a vertex in two rows are an error."""
    (file,) = files
    links: list[_Link] = []
    vertices: dict[str, _Vertex] = {}
    unknown: set[str] = set()
    for row, place in _rows(file, unknown):
        name = check_name(row.get("source", ""), place)
        row_vertex = _vertex(row, place)
        before = vertices.get(name, UNKNOWN)
        if UNKNOWN not in (before, row_vertex) and before != row_vertex:
            raise place.error(f"{name!r} has another kind, slots or forwards than in an earlier row")
        vertices[name] = before if row_vertex == UNKNOWN else row_vertex
        if row.get("target"):
            links.append(_link(name, row, place))
    if not links:
        raise InputError("no links found", path=file.path)
    for link in links:
        vertices.setdefault(link.target, UNKNOWN)
    links, notes = _both_ways(links)
    notes += [f"the columns {', '.join(sorted(unknown))} are ignored"] if unknown else []
    rate = options.rate or UNIT_RATE
    without = sum(link.capacity is None for link in links)
    notes += unknown_rates(without, rate, given=options.rate is not None)
    fabric, kinds = _fabric(links, vertices, rate)
    assumed = np.ones(len(links), np.bool_) if without == len(links) else None
    return Parsed(fabric=fabric, assumed=assumed, warnings=(*notes, *kinds))


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


def _rows(file: SourceFile, unknown: set[str]) -> Iterator[tuple[dict[str, str], Place]]:
    """Yield the cells of each row by column, stripped; unknown columns go into `unknown`."""
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
                    raise place.error("the columns source and target are missing, or a column is repeated")
                unknown |= set(names) - COLUMNS
                continue
            if len(cells) != len(names):
                raise place.error(f"{len(cells)} cells, but there are {len(names)} columns")
            yield dict(zip(names, (without_guard(cell.strip()) for cell in cells), strict=True)), place
    except csv.Error as error:
        raise InputError(f"invalid CSV: {error}", path=file.path, line=reader.line_num) from error


def _link(source: str, row: Mapping[str, str], place: Place) -> _Link:
    """Return the link of a row."""
    target = check_name(row["target"], place)
    if target == source:
        raise place.error("a link from a vertex to itself")
    cables = _whole(row, "cables", place)
    if cables == 0:
        raise place.error("a row of no cables")
    ports = _port(row, "source_port", place), _port(row, "target_port", place)
    guids = _guid(row, "source_guid", place), _guid(row, "target_guid", place)
    capacity = _capacity(row, place)
    return _Link(source, target, capacity, 1 if cables is None else cables, ports, guids, place)


def _whole(row: Mapping[str, str], name: str, place: Place) -> int | None:
    text = row.get(name, "")
    if text and not _DIGITS.fullmatch(text):
        raise place.error(f"{name} is not a whole number: {text!r}")
    if text and int(text) > LARGEST:
        raise place.error(f"{name} is above {LARGEST}: {text!r}")
    return int(text) if text else None


def _port(row: Mapping[str, str], name: str, place: Place) -> int:
    number = _whole(row, name, place)
    return NO_PORT if number is None else number


def _guid(row: Mapping[str, str], name: str, place: Place) -> int:
    text = row.get(name, "")
    if text and not _GUID.fullmatch(text):
        raise place.error(f"{name} is not a GUID: {text!r}")
    return int(text, 16) if text else 0


def _capacity(row: Mapping[str, str], place: Place) -> float | None:
    text = row.get("capacity", "")
    if not text:
        return None
    value = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not RATES[0] <= value <= RATES[1]:
        raise place.error(f"capacity is not a number of bytes/s from {RATES[0]:g} to {RATES[1]:g}: {text!r}")
    return value


def _vertex(row: Mapping[str, str], place: Place) -> _Vertex:
    """Return what a row contains about its source."""
    kind, forwards = row.get("source_kind", "").lower(), row.get("source_forwards", "").lower()
    if kind and kind not in _KINDS:
        raise place.error(f"source_kind is neither host nor switch: {kind!r}")
    if forwards and forwards not in _TRUTH:
        raise place.error(f"source_forwards is neither 1 nor 0: {forwards!r}")
    return _Vertex(_KINDS.get(kind), _whole(row, "source_slots", place), _TRUTH.get(forwards))


def _both_ways(links: list[_Link]) -> tuple[list[_Link], list[str]]:
    """Return the links, mirrored if the whole file lists each cable once, and warnings."""
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
    return links, counted((single, "pair is", "pairs are", "linked in one direction only, and kept so"))


def _fabric(links: list[_Link], vertices: Mapping[str, _Vertex], rate: float) -> tuple[Fabric, list[str]]:
    """Return the fabric of the links, and warnings."""
    names = tuple(sorted(vertices))
    index = {name: vertex for vertex, name in enumerate(names)}
    source = np.array([index[link.source] for link in links], np.int64)
    target = np.array([index[link.target] for link in links], np.int64)
    kind, notes = _vertex_kinds([vertices[name].kind for name in names], source, target)
    direct = bool((kind == HOST).all())
    slots = [vertices[name].slots for name in names]
    forwards = [vertices[name].forwards for name in names]
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
    return fabric, notes


def _vertex_kinds(
    kinds: Sequence[int | None], source: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return the kind of each vertex, guessed from its neighbours if it is not given, and warnings."""
    if None not in kinds:
        return np.array(kinds, np.uint8), []
    attached = attached_to_one(source, target, len(kinds))
    if attached.any():
        guessed = np.where(attached, HOST, SWITCH)
        note = "vertices without a kind are taken as hosts if they have one neighbour, else as switches"
    else:
        guessed = np.full(len(kinds), HOST)
        note = "every vertex without a kind is taken as a host that forwards"
    known = [guess if kind is None else kind for kind, guess in zip(kinds, guessed.tolist(), strict=True)]
    return np.array(known, np.uint8), [note]


def _adapters(
    links: list[_Link], kind: np.ndarray, index: Mapping[str, int]
) -> tuple[np.ndarray, Adapters, list[tuple[int, int]]]:
    """Return the GUIDs of switches, the adapters of hosts by GUID, and the adapters of each link's ends."""
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


LINKS_CSV = Format(
    "links-csv",
    kind="fabric",
    evidence="own",
    about="fabric: CSV with columns source,target, optionally capacity, ports, GUIDs, kinds",
    recognise=_recognise_links_csv,
    parse=_parse_links_csv,
)
