"""From a networkx graph that a file holds to a `Fabric`, whichever format it was.

A graph that Fabric Almanac wrote comes back whole. In others an edge is a cable: ``capacity`` is its
bytes/s, ``cables`` how many it stands for; weights have no meaning here. What a node is tells ``kind``
(``host`` or ``switch``) or ``slots`` (0: a switch); where no node has either, nodes with exactly one
neighbour are hosts that hang on a switch, and where there are none, or nothing else, every node is a
host that forwards.
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
"""Largest file of a graph: one in memory is some twenty times as large."""


def read_graph(read: Callable[[], Any], path: str) -> nx.Graph[Any]:
    """What a reader of networkx makes of a file; it raises whatever it stumbles over.

    Raises
    ------
    InputError
    """
    try:
        graph = read()
    except InputError:
        raise
    except Exception as error:  # the readers leave KeyError, TypeError and others as they come
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"no graph that networkx can read: {reason}", path=path) from error
    if not isinstance(graph, nx.Graph):
        raise InputError("holds no graph, or several", path=path)
    return graph


def graph_fabric(graph: nx.Graph[Any], path: str, options: Options) -> Parsed:
    """The fabric of a graph.

    Raises
    ------
    InputError
        A profile's graph, no edges, attributes that are none of a fabric.
    """
    place = Place(path)
    if graph.graph.get("type") == "profile":
        raise place.error("the graph of a profile; give its edges as CSV")
    for node, data in graph.nodes(data=True):
        _check_node(str(node), data, path)
    loops = list(nx.selfloop_edges(graph))
    graph.remove_edges_from(loops)
    if not graph.number_of_edges():
        raise place.error("the graph has no edges")
    said = [f"{len(loops)} edge(s) lead from a node to itself and are left out"] if loops else []
    said += _kinds(graph)
    default = options.rate or UNIT_RATE
    without = 0
    for *_, data in graph.edges(data=True):
        if "capacity" not in data:
            data["capacity"] = default
            without += 1
    if without == graph.number_of_edges() and any("weight" in data for *_, data in graph.edges(data=True)):
        said.append("weights of edges are not read: the bytes/s of an edge is its capacity")
    if options.rate is None:
        said += unknown_rates(without, default, None)
    graph.graph["type"] = "fabric"
    try:
        fabric = from_networkx(graph)
    except (InvalidValue, OverflowError, AttributeError) as error:
        raise InputError(f"no fabric: {error}", path=path) from error
    if not isinstance(fabric, Fabric):
        raise place.error("no fabric")
    assumed = np.ones(len(fabric.links), np.bool_) if without == graph.number_of_edges() else None
    return Parsed(fabric=fabric, assumed=assumed, warnings=tuple(said))


def _check_node(name: str, data: dict[str, Any], path: str) -> None:
    """Turn lists back from text, and refuse what Python would take for something else."""
    place = Place(path, text=name)
    check_name(name, place)
    for key in data.keys() & set(LISTS):
        data[key] = _decoded(data[key], key, path)
    if data.get("forwards", True) not in (True, False):
        raise place.error("the attribute forwards is neither true nor false")
    for key in data.keys() & {"slots", "level"}:
        if not isinstance(data[key], int):
            raise place.error(f"the attribute {key} is no whole number")


def _decoded(value: Any, name: str, path: str) -> Any:
    """A list that stands as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise InputError(f"the attribute {name} is no list", path=path, text=value)
    return found


def _kinds(graph: nx.Graph[Any]) -> list[str]:
    """Say what is a host where the file does not."""
    if any("kind" in data or "slots" in data for _, data in graph.nodes(data=True)):
        return []
    beside: dict[Any, set[Any]] = {node: set() for node in graph}
    for a, b in graph.edges():
        beside[a].add(b)
        beside[b].add(a)
    hanging = {node for node, others in beside.items() if len(others) == 1}
    if not hanging or len(hanging) == len(beside):
        return ["the file tells no hosts from switches: every node is taken as a host that forwards"]
    for node, data in graph.nodes(data=True):
        data["kind"] = "host" if node in hanging else "switch"
        data["forwards"] = node not in hanging
    return ["the file tells no hosts from switches: nodes with one neighbour are taken as hosts"]
