"""Graphs of networkx, Gephi, igraph, yEd and D3: GraphML and node-link JSON.

A graph written by Fabric Almanac is restored completely. In other graphs an edge is a cable: ``capacity`` is
its bytes/s, ``cables`` the number of cables; weights are ignored. ``kind`` (``host`` or ``switch``) or
``slots`` (0: a switch) give the kind of a node. If no node has either, nodes with exactly one neighbour are
hosts attached to a switch; if all or no nodes have one neighbour, every node is a host that forwards.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

from ingest.formats.fabrics.draft import UNIT_RATE, check_name, unknown_rates
from ingest.formats.profiles.shared import self_edge_warnings, stem
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import Place, SourceFile
from ingest.reading.xml_text import load_xml
from registry.errors import InputError, InvalidValue
from registry.interchange import from_networkx
from registry.model import Fabric, Profile
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
