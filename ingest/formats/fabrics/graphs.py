"""Graphs of networkx, Gephi, igraph, yEd and D3: GraphML and node-link JSON.

A graph written by Fabric Almanac is restored completely. In other graphs an edge is a cable: ``capacity`` is
its bytes/s, ``cables`` the number of cables; weights are ignored. ``kind`` (``host`` or ``switch``) or
``slots`` (0: a switch) give the kind of a node. If no node has either, nodes with exactly one neighbour are
hosts attached to a switch; if all or no nodes have one neighbour, every node is a host that forwards.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from ingest.formats.fabrics.draft import UNIT_RATE, attached_to_one, check_name, unknown_rates
from ingest.formats.profiles.shared import self_edge_warnings, stem
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from ingest.reading.text import Spot, load_json, load_xml
from registry.csv_text import without_guard
from registry.errors import InputError, InvalidValue
from registry.interchange import from_networkx
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Fabric, Links, Profile
from registry.store.snapshots import canonical

MAX_GRAPH_BYTES = 1 << 28
"""Largest file of a graph, in bytes: the graph in memory is about twenty times as large."""
SOURCE = "graph"
"""Source of profiles from graphs."""
_NODES = re.compile(r'"nodes"\s*:\s*\[\s*(\{[^{}]*"id"|\])')
_EDGES = re.compile(r'"(edges|links)"\s*:\s*\[|"multigraph"\s*:')


def _parse_graph(load: Callable[[SourceFile], Any], files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one graph; the graph of a profile is an error, and so are several graphs.

    `load` returns the graph of a file, as a reader of networkx makes it.
    """
    (file,) = files
    try:
        graph = load(file)
    except InputError:
        raise
    except Exception as error:  # the readers let KeyError, TypeError and others pass
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"networkx cannot read the graph: {reason}", path=file.path) from error
    if not isinstance(graph, nx.Graph):
        raise InputError("expected one graph in the file", path=file.path)
    if options.graph == "profile":
        return _profile(graph, file.path, options)
    return _fabric(graph, file.path, options)


def _is_graphml(head: str, path: str) -> bool:
    return head.lstrip().startswith("<") and "<graphml" in head[:8192]


def _load_graphml(file: SourceFile) -> Any:
    if len(file.data) > MAX_GRAPH_BYTES:
        raise InputError(f"more than {MAX_GRAPH_BYTES} bytes of GraphML", path=file.path)
    load_xml(file)
    return nx.parse_graphml(file.text())


def _is_node_link(head: str, path: str) -> bool:
    begins = head.lstrip().startswith("{")
    return begins and _NODES.search(head) is not None and _EDGES.search(head) is not None


def _load_node_link(file: SourceFile) -> Any:
    """Return the graph of a JSON object; raise `InputError` for a repeated node and an edge of no node."""
    root = Spot(file.path)
    content = root.object(load_json(file, limit=MAX_GRAPH_BYTES))
    key = "edges" if "edges" in content else "links"
    ids: set[str] = set()
    for spot, attributes in root.at("nodes").objects(content.get("nodes")):
        node = attributes.get("id")
        if isinstance(node, bool) or not isinstance(node, (str, int)) or str(node) in ids:
            raise spot.error("the id is missing or repeated", node)
        ids.add(str(node))
    for spot, edge in root.at(key).objects(content.get(key)):
        for end in ("source", "target"):
            if isinstance(edge.get(end), (list, dict)) or str(edge.get(end)) not in ids:
                raise spot.at(end).error("is not the id of a node", edge.get(end))
        edge.pop("key", None)
    if not isinstance(content.get("graph", {}), (dict, list)):
        raise InputError("the attributes of the graph are not an object", path=file.path)
    if isinstance(content.get("graph"), list):  # of pairs, as networkx wrote it before version 1.10
        content["graph"] = {}
    content["multigraph"] = True
    return nx.node_link_graph(content, edges=key)


GRAPHML = Format(
    "graphml",
    kind="fabric",
    evidence="real",
    about="graph of a fabric: GraphML",
    recognise=_is_graphml,
    parse=partial(_parse_graph, _load_graphml),
)
"""GraphML. It has no lists: lists in a node's attributes are JSON text. The name of a node is its id."""

NODE_LINK = Format(
    "node-link",
    kind="fabric",
    evidence="real",
    about="graph of a fabric: node-link JSON of networkx or D3",
    recognise=_is_node_link,
    parse=partial(_parse_graph, _load_node_link),
)
"""Node-link JSON of networkx and D3.

An object with ``nodes`` (each with an ``id``) and ``edges`` or ``links`` (each with ``source`` and
``target``), and optionally ``directed``, ``multigraph`` and ``graph``. Two edges between one pair are
parallel cables, whatever the value of ``multigraph``.
"""


def _fabric(graph: nx.Graph[Any], path: str, options: Options) -> Parsed:
    """Return the fabric of a graph; raise `InputError` if it is a profile's or has no edges."""
    place = Place(path)
    if graph.graph.get("type") == "profile":
        raise place.error("this is the graph of a profile: give its edges as CSV")
    for node, data in graph.nodes(data=True):
        _check_node(str(node), data, path)
    loops = list(nx.selfloop_edges(graph))
    graph.remove_edges_from(loops)
    if not graph.number_of_edges():
        raise place.error("the graph has no edges")
    notes = counted((len(loops), "edge leads", "edges lead", "from a node to itself: ignored"))
    notes += _kinds(graph)
    default = options.rate or UNIT_RATE
    without = 0
    for *_, data in graph.edges(data=True):
        if options.attribute is not None:
            data["capacity"] = _attribute(data, options.attribute, place)
        if "capacity" not in data:
            data["capacity"] = default
            without += 1
    if without == graph.number_of_edges() and any("weight" in data for *_, data in graph.edges(data=True)):
        notes.append("weights of edges are ignored: the bytes/s of an edge is its attribute capacity")
    if options.rate is None:
        notes += unknown_rates(without, default)
    graph.graph["type"] = "fabric"
    try:
        fabric = from_networkx(graph)
    except (InvalidValue, OverflowError, AttributeError) as error:
        raise InputError(f"not a valid fabric: {error}", path=path) from error
    if not isinstance(fabric, Fabric):
        raise place.error("no fabric")
    assumed = np.ones(len(fabric.links), np.bool_) if without == graph.number_of_edges() else None
    fabric = canonical(fabric)
    return Parsed(fabric=fabric, assumed=assumed, warnings=tuple(notes))


def _attribute(data: dict[str, Any], name: str, place: Place) -> Any:
    """Return the value of an edge's attribute."""
    if name not in data:
        raise place.error(f"an edge has no attribute {name!r}; it has {', '.join(map(repr, data)) or 'none'}")
    return data[name]


def _profile(graph: nx.Graph[Any], path: str, options: Options) -> Parsed:
    """Return the profile of a graph whose edges have bytes, or get the same number each."""
    given = options.attribute or options.weight
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            profile = from_networkx(graph, weight=given)
        except (InvalidValue, OverflowError, AttributeError) as error:
            raise InputError(f"not a valid profile: {error}", path=path) from error
    if not isinstance(profile, Profile):
        raise Place(path).error("no profile")
    name = options.name or profile.name or stem(path)
    profile = replace(profile, name=name, application=profile.application or name, source=SOURCE)
    notes = tuple(str(warning.message) for warning in caught)
    return Parsed(profiles=(profile,), warnings=(*notes, *self_edge_warnings(profile)))


def _check_node(name: str, data: dict[str, Any], path: str) -> None:
    """Reject values that Python would interpret in another way."""
    place = Place(path, text=name)
    check_name(name, place)
    if data.get("forwards", True) not in (True, False):
        raise place.error("the attribute forwards is neither true nor false")
    for key in data.keys() & {"slots", "level"}:
        if not isinstance(data[key], int):
            raise place.error(f"the attribute {key} is not a whole number")


def _kinds(graph: nx.Graph[Any]) -> list[str]:
    """Set the kinds of nodes if the file does not, and return a note about it."""
    if any("kind" in data or "slots" in data for _, data in graph.nodes(data=True)):
        return []
    beside: dict[Any, set[Any]] = {node: set() for node in graph}
    for a, b in graph.edges():
        beside[a].add(b)
        beside[b].add(a)
    hanging = {node for node, others in beside.items() if len(others) == 1}
    if not hanging or len(hanging) == len(beside):
        return ["the file does not separate hosts and switches: every node is taken as a host that forwards"]
    for node, data in graph.nodes(data=True):
        data["kind"] = "host" if node in hanging else "switch"
        data["forwards"] = node not in hanging
    return ["the file does not separate hosts and switches: nodes with one neighbour are taken as hosts"]


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
    fabric, kinds = _links_fabric(links, vertices, rate)
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


def _links_fabric(
    links: list[_Link], vertices: Mapping[str, _Vertex], rate: float
) -> tuple[Fabric, list[str]]:
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
"""A fabric as CSV with one row per link and direction: ``source,target`` and optional columns.

Optional columns are ``capacity`` (bytes/s of all cables of the row), ``cables``, ``source_port``,
``target_port``, ``source_guid``, ``target_guid`` (node GUIDs; those of a host are its adapters'),
``source_kind`` (``host`` or ``switch``), ``source_slots``, ``source_forwards``; other columns are ignored
with a warning. Cells may be empty. `registry.exports.graphs` writes all columns. A row without a target is
a vertex without links. If all rows run one way, each row is a cable: the other direction is added.

Without kinds, vertices with exactly one neighbour are hosts and the others are switches; if there are none (a
torus), every vertex is a host that forwards.
"""
