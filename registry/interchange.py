"""Conversion of data types for networkx, pandas and py2neo; each library is imported on use.

pandas and py2neo are optional: without them the functions that need them raise `MissingExtra`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from registry.errors import InvalidValue
from registry.installation import require
from registry.model import (
    HOST,
    NO_PORT,
    SWITCH,
    Fabric,
    Floats,
    Guids,
    HasFabric,
    HasProfile,
    Ints,
    Profile,
    format_guid,
)
from registry.model.views import content, whole_number
from registry.store.derived import (
    DEVICE_LISTS,
    KINDS,
    DeviceFact,
    LinkFact,
    device_facts,
    link_facts,
    ordered_fabric,
)
from registry.store.snapshots import canonical

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from registry.store.placement_rows import StoredPlacementInfo

_LINK_DATA = ("capacity", "cables", "src_port", "dst_port", "src_guid", "dst_guid")
_LONGEST_NUMBER = 20
"""Longest name of a node that is taken as a whole number, in characters."""
_Edge = tuple[Any, Any, dict[str, Any]]
_PROFILE_DATA = ("name", "application", "source", "self_edges", "self_bytes", "missing_ranks")


def to_networkx(
    thing: Fabric | HasFabric | Profile | HasProfile,
) -> nx.MultiDiGraph[str] | nx.DiGraph[int]:
    """Return a fabric as a MultiDiGraph over names, or a profile as a DiGraph over ranks.

    Vertices of a fabric have the fields of `registry.store.derived.DeviceFact` as attributes. Edges, one per
    cable and direction, have ``capacity cables src_port dst_port src_guid dst_guid`` (GUIDs of adapters).
    Edges of a profile have ``bytes messages``. Forwarding tables are left out.
    """
    if isinstance(thing, Profile) or hasattr(thing, "profile"):
        return _profile_graph(content(thing, Profile, "thing"))
    return _fabric_graph(content(thing, Fabric, "thing"))


def loaded_graph(fabric: Fabric, host_of_rank: Ints, link_bytes: Floats) -> nx.DiGraph[str]:
    """Return a fabric with a placement's ranks and loads: an edge per pair of neighbours.

    Vertices have ``kind`` and ``ranks`` (a list), edges ``capacity`` (bytes/s), ``cables`` and ``bytes``: the
    sums over parallel cables.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, kind in zip(fabric.names, fabric.kind.tolist(), strict=True):
        graph.add_node(name, kind=KINDS[kind], ranks=[])
    for rank, host in enumerate(host_of_rank.tolist()):
        graph.nodes[fabric.names[host]]["ranks"].append(rank)
    loads = np.bincount(fabric.arc_of_link, link_bytes, len(fabric.neighbour))
    tails = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr))
    columns = (tails, fabric.neighbour, fabric.capacity, fabric.cables, loads)
    for tail, head, capacity, cables, load in zip(*(each.tolist() for each in columns), strict=True):
        graph.add_edge(fabric.names[tail], fabric.names[head], capacity=capacity, cables=cables, bytes=load)
    return graph


def from_networkx(
    graph: nx.Graph[Any], *, capacity: float | str | None = None, weight: float | str | None = None
) -> Fabric | Profile:
    """Return the fabric or profile of a graph: the inverse of `to_networkx`, also for plain graphs.

    A graph with ``capacity`` (bytes/s) on all edges is a fabric, one with ``bytes`` a profile over ranks
    0, 1, ... A fabric needs only capacities: by default, as in `Fabric.from_arcs`, each vertex is a host with
    one slot, and hosts forward only if there is no switch. The order of the nodes is kept. An undirected edge
    counts in both directions. Lists may be JSON texts, as in the GraphML that `registry.exports` writes.

    Args:
        graph: Not changed.
        capacity: The graph is a fabric: bytes/s of edges without ``capacity``, or the attribute with the
            bytes/s.
        weight: The graph is a profile: bytes of edges without ``bytes``, or the attribute with the bytes.
            Nodes that are not 0, 1, ... become ranks in ascending order if all are whole numbers, otherwise
            in the order of the graph, with a warning.

    Raises:
        InvalidValue: The graph is neither, or has invalid values, or two nodes have the same text, such as 1
            and "1".
    """
    import networkx as nx

    graph = content(graph, nx.Graph, "graph")
    if capacity is not None and weight is not None:
        raise InvalidValue("weight", "not with capacity: a graph is a fabric or a profile")
    directed = graph if graph.is_directed() else graph.to_directed()
    edges = list(directed.edges(data=True))
    kind = directed.graph.get("type")
    if capacity is not None:
        kind, edges = "fabric", _with(edges, "capacity", capacity)
    elif weight is not None:
        kind, edges = "profile", _with(edges, "bytes", weight)
        directed, edges = _numbered(directed, edges)
    if kind == "fabric" or (kind is None and edges and all("capacity" in data for *_, data in edges)):
        return _fabric(directed, edges)
    if kind == "profile" or (kind is None and edges and all("bytes" in data for *_, data in edges)):
        return _profile(directed, edges)
    reason = "not all edges have a capacity (a fabric) or bytes (a profile): give capacity= or weight="
    raise InvalidValue("graph", reason)


def _with(edges: Sequence[_Edge], name: str, given: float | str) -> list[_Edge]:
    """Return the edges with this attribute: from another one, or where it is missing, a number."""
    if not isinstance(given, str):
        return [(source, target, {name: given, **data}) for source, target, data in edges]
    for source, target, data in edges:
        if given not in data:
            raise InvalidValue("graph", f"the edge from {source!r} to {target!r} has no attribute {given!r}")
    return [(source, target, {**data, name: data[given]}) for source, target, data in edges]


def _numbered(graph: nx.Graph[Any], edges: list[_Edge]) -> tuple[nx.Graph[Any], list[_Edge]]:
    """Return the graph and its edges with nodes 0, 1, ...: whole numbers ascending, others in their order.

    Numbers may be text, as in GraphML.
    """
    import networkx as nx

    nodes, count = list(graph), graph.number_of_nodes()
    if all(str(node).isdecimal() and len(str(node)) < _LONGEST_NUMBER for node in nodes):
        nodes.sort(key=lambda node: int(str(node)))
    if [str(node) for node in nodes] != [str(rank) for rank in range(count)]:
        shown = f"{nodes[0]!r} .. {nodes[-1]!r}" if nodes else "none"
        warnings.warn(f"the ranks 0 .. {count - 1} are the nodes {shown}, in this order", stacklevel=3)
    rank_of = {node: rank for rank, node in enumerate(nodes)}
    ranks: nx.Graph[Any] = nx.empty_graph(count, create_using=nx.DiGraph)
    ranks.graph.update(graph.graph)
    return ranks, [(rank_of[source], rank_of[target], data) for source, target, data in edges]


def fabric_tables(fabric: Fabric) -> dict[str, pd.DataFrame]:
    """Return tables ``vertices``, ``links`` and ``adapters`` of a fabric, with names instead of indices."""
    require("pandas", "pandas")
    import pandas as pd

    names = np.asarray(fabric.names, object)
    adapters = fabric.adapters
    vertices: dict[str, Any] = {
        "name": names,
        "kind": [KINDS[kind] for kind in fabric.kind.tolist()],
        "slots": fabric.slots,
        "forwards": fabric.forwards,
        "guid": _guids(fabric.guid),
        "lid": fabric.lid,
    }
    if fabric.level is not None:
        vertices["level"] = fabric.level
    if fabric.coordinates is not None:
        for axis, values in enumerate(fabric.coordinates.T):
            vertices[f"coordinate_{axis}"] = values
    return {
        "vertices": pd.DataFrame(vertices),
        "links": data_frame(fabric.columns()),
        "adapters": pd.DataFrame(
            {
                "name": list(adapters.names),
                "host": names[adapters.host],
                "guid": _guids(adapters.guid),
                "system_guid": _guids(adapters.system_guid),
            }
        ),
    }


def data_frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns by name as a DataFrame."""
    require("pandas", "pandas")
    import pandas as pd

    return pd.DataFrame(dict(columns))


def history_table(rows: Iterable[StoredPlacementInfo]) -> pd.DataFrame:
    """Return a row per placement, with bounds and baselines as ``bound_*``, ``in_order_*``, ``random_*``."""
    require("pandas", "pandas")
    import pandas as pd

    return pd.DataFrame([_flat(asdict(row)) for row in rows])


def py2neo_graph(
    uri: str, *, user: str | None = None, password: str | None = None, name: str | None = None
) -> Any:
    """Return a py2neo ``Graph`` on the database of a registry.

    Close its connections with ``graph.service.connector.close()``.

    Args:
        uri, user, password, name: See `Registry.open`; those of the local server are returned by
            ``registry.database.embedded_server.ensure_server``.

    Raises:
        MissingExtra: py2neo is not installed.
    """
    require("py2neo", "py2neo")
    with warnings.catch_warnings():
        # py2neo is no longer maintained and uses deprecated parts of the standard library.
        warnings.simplefilter("ignore", DeprecationWarning)
        import py2neo

        auth = None if user is None else (user, password or "")
        return py2neo.Graph(uri, auth=auth, name=name)


def _fabric_graph(fabric: Fabric) -> nx.MultiDiGraph[str]:
    """Return a fabric as a graph."""
    import networkx as nx

    wiring = canonical(fabric)
    devices = device_facts(wiring)
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(type="fabric")
    for device in devices.values():
        known = {name: value for name, value in device._asdict().items() if value is not None}
        graph.add_node(device.name, **{name: known[name] for name in known if name not in ("key", "name")})
    for link in link_facts(wiring):
        data = {name: getattr(link, name) for name in _LINK_DATA}
        graph.add_edge(devices[link.source].name, devices[link.target].name, **data)
    return graph


def _profile_graph(profile: Profile) -> nx.DiGraph[int]:
    """Return a profile as a graph."""
    import networkx as nx

    about = {name: getattr(profile, name) for name in _PROFILE_DATA}
    graph: nx.DiGraph[int] = nx.DiGraph(type="profile", **about)
    graph.add_nodes_from(range(profile.ranks))
    for source, target, size, count in zip(
        profile.sender.tolist(),
        profile.partner.tolist(),
        profile.bytes.tolist(),
        profile.messages.tolist(),
        strict=True,
    ):
        graph.add_edge(source, target, bytes=size, messages=count)
    return graph


def _fabric(graph: nx.Graph[Any], edges: Sequence[_Edge]) -> Fabric:
    """Return the fabric of a graph."""
    names: dict[str, Any] = {}
    for node in graph:
        if str(node) in names:
            raise InvalidValue("graph", f"the nodes {names[str(node)]!r} and {node!r} need different names")
        names[str(node)] = node
    try:
        kinds = [_kind(data) for _, data in graph.nodes(data=True)]
        direct = KINDS[SWITCH] not in kinds
        devices = [
            _device(str(node), kind, direct, data)
            for kind, (node, data) in zip(kinds, graph.nodes(data=True), strict=True)
        ]
        links = [
            LinkFact(
                source=str(source),
                target=str(target),
                src_port=whole_number(data.get("src_port", NO_PORT), "src_port", NO_PORT),
                dst_port=whole_number(data.get("dst_port", NO_PORT), "dst_port", NO_PORT),
                src_guid=str(data.get("src_guid", "")),
                dst_guid=str(data.get("dst_guid", "")),
                twin=0,
                capacity=float(data["capacity"]),
                cables=whole_number(data.get("cables", 1), "cables", 1),
            )
            for source, target, data in edges
        ]
        return ordered_fabric(devices, links)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidValue("graph", f"is no fabric: {error}") from error


def _kind(data: dict[str, Any]) -> str:
    return data.get("kind") or KINDS[HOST if data.get("slots", 1) else SWITCH]


def _device(name: str, kind: str, direct: bool, data: dict[str, Any]) -> DeviceFact:
    """Return the facts about a device from the attributes of its node; hosts of direct networks forward."""
    lists: dict[str, Any] = {field: _listed(data.get(field, ()), field) for field in DEVICE_LISTS}
    coordinates = data.get("coordinates")
    return DeviceFact(
        key=name,
        name=name,
        kind=kind,
        forwards=bool(data.get("forwards", direct or kind == KINDS[SWITCH])),
        slots=whole_number(data.get("slots", int(kind == KINDS[HOST])), "slots"),
        guid=str(data.get("guid", "")),
        level=data.get("level"),
        coordinates=None if coordinates is None else _listed(coordinates, "coordinates"),
        **lists,
    )


def _listed(value: Any, field: str) -> tuple[Any, ...]:
    """Return the items of a list, which GraphML holds as JSON text."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if not isinstance(value, list | tuple):
        raise ValueError(f"the attribute {field} is not a list: {value!r}")
    return tuple(value)


def _profile(graph: nx.Graph[Any], edges: Sequence[_Edge]) -> Profile:
    """Return the profile of a graph."""
    ranks = graph.number_of_nodes()
    if set(graph.nodes) != set(range(ranks)):
        raise InvalidValue("graph", f"the nodes of a profile are the ranks 0 .. {ranks - 1}")
    try:
        profile = Profile.from_edges(
            [source for source, _, _ in edges],
            [target for _, target, _ in edges],
            [data["bytes"] for _, _, data in edges],
            ranks=ranks,
            messages=[data.get("messages", 0) for _, _, data in edges],
        )
        about = {name: graph.graph[name] for name in _PROFILE_DATA if name in graph.graph}
        return replace(profile, **about)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidValue("graph", f"is no profile: {error}") from error


def _guids(values: Guids) -> list[str]:
    return [format_guid(guid) for guid in values.tolist()]


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "bounds":
            flat |= {f"bound_{metric}": bound for metric, bound in value.items()}
        elif name in ("in_order", "random"):
            flat |= {f"{name}_{metric}": number for metric, number in (value or {}).items()}
        else:
            flat[name] = value
    return flat
