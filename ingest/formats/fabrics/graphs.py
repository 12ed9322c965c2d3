"""Conversion of a networkx graph read from a file of any format to a `Fabric`.

A graph written by Fabric Almanac is restored completely. In other graphs an edge is a cable: ``capacity`` is
its bytes/s, ``cables`` the number of cables; weights are ignored. ``kind`` (``host`` or ``switch``) or
``slots`` (0: a switch) give the kind of a node. If no node has either, nodes with exactly one neighbour are
hosts attached to a switch; if all or no nodes have one neighbour, every node is a host that forwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from ingest.formats.fabrics.draft import UNIT_RATE, Place, check_name, unknown_rates
from ingest.options import Options
from ingest.parsed import Parsed
from registry.errors import InputError, InvalidValue
from registry.exports.graphml import LISTS
from registry.interchange import from_networkx
from registry.model import Fabric

MAX_GRAPH_BYTES = 1 << 28
"""Largest file of a graph, in bytes: the graph in memory is about twenty times as large."""


def read_graph(read: Callable[[], Any], path: str) -> nx.Graph[Any]:
    """Return the graph that a reader of networkx makes of a file.

    Raises
    ------
    InputError
    """
    try:
        graph = read()
    except InputError:
        raise
    except Exception as error:  # the readers let KeyError, TypeError and others pass
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"networkx cannot read the graph: {reason}", path=path) from error
    if not isinstance(graph, nx.Graph):
        raise InputError("expected one graph in the file", path=path)
    return graph


def graph_fabric(graph: nx.Graph[Any], path: str, options: Options) -> Parsed:
    """Return the fabric of a graph.

    Raises
    ------
    InputError
        The graph is a profile's, has no edges, or has attributes that a fabric cannot have.
    """
    place = Place(path)
    if graph.graph.get("type") == "profile":
        raise place.error("this is the graph of a profile: give its edges as CSV")
    for node, data in graph.nodes(data=True):
        _check_node(str(node), data, path)
    loops = list(nx.selfloop_edges(graph))
    graph.remove_edges_from(loops)
    if not graph.number_of_edges():
        raise place.error("the graph has no edges")
    notes = [f"{len(loops)} edge(s) lead from a node to itself and are ignored"] if loops else []
    notes += _kinds(graph)
    default = options.rate or UNIT_RATE
    without = 0
    for *_, data in graph.edges(data=True):
        if "capacity" not in data:
            data["capacity"] = default
            without += 1
    if without == graph.number_of_edges() and any("weight" in data for *_, data in graph.edges(data=True)):
        notes.append("weights of edges are ignored: the bytes/s of an edge is its attribute capacity")
    if options.rate is None:
        notes += unknown_rates(without, default, None)
    graph.graph["type"] = "fabric"
    try:
        fabric = from_networkx(graph)
    except (InvalidValue, OverflowError, AttributeError) as error:
        raise InputError(f"not a valid fabric: {error}", path=path) from error
    if not isinstance(fabric, Fabric):
        raise place.error("no fabric")
    assumed = np.ones(len(fabric.links), np.bool_) if without == graph.number_of_edges() else None
    return Parsed(fabric=fabric, assumed=assumed, warnings=tuple(notes))


def _check_node(name: str, data: dict[str, Any], path: str) -> None:
    """Convert lists from text, and reject values that Python would interpret in another way."""
    place = Place(path, text=name)
    check_name(name, place)
    for key in data.keys() & set(LISTS):
        data[key] = _decoded(data[key], key, path)
    if data.get("forwards", True) not in (True, False):
        raise place.error("the attribute forwards is neither true nor false")
    for key in data.keys() & {"slots", "level"}:
        if not isinstance(data[key], int):
            raise place.error(f"the attribute {key} is not a whole number")


def _decoded(value: Any, name: str, path: str) -> Any:
    """Return a list that is given as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise InputError(f"the attribute {name} is not a list", path=path, text=value)
    return found


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
