"""Slow and simple versions of what the kernels compute: enumeration with networkx, pair by pair.

Nothing here shares code with the rest of ``mapping``: end points, paths and table walks are found anew from
the fabric's links, one cable at a time. The tests use it too.

What a check compared, and which values differ.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from registry.model import NO_ROUTE, Allocation, Fabric, Floats, Placement, Profile

Route = list[tuple[int, float]]
"""Rows of ``fabric.links`` and the fraction of a pair's bytes on each."""


MOST_PATHS = 5_000
"""Most shortest paths of a pair of ports that are enumerated."""


class TooManyPaths(Exception):
    """More than `MOST_PATHS` shortest paths between two ports."""


class EndPoint(NamedTuple):
    """A port of an adapter, or (adapter and port -1) the host itself."""

    host: int
    adapter: int
    port: int


class Cost(NamedTuple):
    link_bytes: Floats
    congestion: float
    network_congestion: float
    hop_bytes: float
    max_dilation: float


def route(
    fabric: Fabric, source: int, target: int, routing: str, rails: str = "all-connected"
) -> Route | None:
    """Return what `source` sends to `target` by ``tables`` or ``shortest-paths``; None if nothing arrives.

    Raises:
        TooManyPaths
    """
    find = {"shortest-paths": shortest_path_route, "tables": table_route}[routing]
    return find(fabric, source, target, rails)


def shortest_path_route(
    fabric: Fabric, source: int, target: int, rails: str = "all-connected"
) -> Route | None:
    """Return what `source` sends to `target` on all shortest paths, or None if there is no path."""
    graph = _graph(fabric)
    channels: dict[tuple[int, int], list[list[Route]]] = defaultdict(list)
    for a, b in _rail_pairs(fabric, source, target, rails):
        for p, q in itertools.product(_ports(fabric, source, a), _ports(fabric, target, b)):
            ways = _all_shortest(fabric, graph, p, q)
            if ways:
                channels[a, b].append(ways)
    return _combine(channels)


def table_route(fabric: Fabric, source: int, target: int, rails: str = "all-connected") -> Route | None:
    """Return what `source` sends to `target` by the forwarding tables, or None if nothing arrives."""
    channels: dict[tuple[int, int], list[list[Route]]] = defaultdict(list)
    for a, b in _rail_pairs(fabric, source, target, rails):
        for p, q in itertools.product(_ports(fabric, source, a), _ports(fabric, target, b)):
            walks = [walk(fabric, p, lid, q) for lid in lids_of(fabric, q)]
            arrived: list[Route] = [[(row, 1.0) for row in rows] for rows in walks if rows]
            if arrived:
                channels[a, b].append(arrived)
    return _combine(channels)


def walk(fabric: Fabric, source: EndPoint, lid: int, target: EndPoint) -> list[int] | None:
    """Return rows of ``fabric.links`` from a port to the port that owns a LID, by the tables, or None."""
    tables, links = fabric.tables, fabric.links
    assert tables is not None
    rows = list(_leaving(fabric).get(source, []))
    if len(rows) != 1:
        return None
    for _ in range(len(tables.switch_guid) + 2):
        row = rows[-1]
        if _enters(fabric, row) == target:
            return rows
        switch = int(links.target[row])
        table = np.flatnonzero(tables.switch_guid == fabric.guid[switch])
        if fabric.guid[switch] == 0 or len(table) != 1:
            return None
        port = int(tables.ports[table[0], lid])
        onward = _leaving(fabric).get(EndPoint(switch, -1, port), [])
        if port in (0, NO_ROUTE) or len(onward) != 1:
            return None
        rows += onward
    return None


@lru_cache(maxsize=2)
def _leaving(fabric: Fabric) -> dict[EndPoint, list[int]]:
    """Return rows of ``fabric.links`` by the port of a switch or adapter that they leave."""
    found: dict[EndPoint, list[int]] = defaultdict(list)
    links = fabric.links
    for row in range(len(links)):
        end = int(links.source[row]), int(links.source_adapter[row]), int(links.source_port[row])
        found[EndPoint(*end)].append(row)
    return dict(found)


def lids_of(fabric: Fabric, port: EndPoint) -> list[int]:
    """Return the LIDs of an adapter port: by its GUID in the tables, else as in the scan."""
    adapters, tables = fabric.adapters, fabric.tables
    assert tables is not None
    for p in range(len(adapters.port_adapter)):
        if (adapters.port_adapter[p], adapters.port_number[p]) == (port.adapter, port.port):
            guid = adapters.port_guid[p]
            named = np.flatnonzero(tables.lid_guid == guid).tolist() if guid else []
            first = int(adapters.port_lid[p])
            scanned = list(range(first, first + 2 ** int(adapters.port_lmc[p]))) if first else []
            return named or [lid for lid in scanned if lid < len(tables.lid_guid)]
    return []


def cost(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    *,
    routing: str = "shortest-paths",
    rails: str = "all-connected",
) -> Cost:
    """Return the metrics of a placement, computed pair of ranks by pair of ranks."""
    known: dict[tuple[int, int], Route | None] = {}
    loads, longest = np.zeros(len(fabric.links)), 0.0
    for rank, partner, size in zip(profile.sender, profile.partner, profile.bytes, strict=True):
        pair = int(placement.host_of_rank[rank]), int(placement.host_of_rank[partner])
        if pair[0] == pair[1]:
            continue
        if pair not in known:
            known[pair] = route(fabric, *pair, routing, rails)
        links = known[pair]
        if links is None:
            raise LookupError(pair)
        for row, part in links:
            loads[row] += size * part
        longest = max(longest, sum(part for _, part in links))
    seconds = loads / fabric.links.capacity
    inner = [
        row
        for row in range(len(loads))
        if fabric.forwards[fabric.links.source[row]] and fabric.forwards[fabric.links.target[row]]
    ]
    return Cost(
        link_bytes=loads,
        congestion=float(seconds.max(initial=0.0)),
        network_congestion=float(seconds[inner].max(initial=0.0)),
        hop_bytes=float(loads.sum()),
        max_dilation=longest,
    )


def resistance(fabric: Fabric, rows: list[int], source: int, target: int, *, own_cables: bool) -> float:
    """Return the resistance over links by networkx: both directions of a cable are one resistor of 1 ohm.

    Args:
        rows: Rows of ``fabric.links`` that the routing uses.
        own_cables: Count the hosts' own cables; otherwise each host is one node with its switches.
    """
    if not own_cables:
        ends = {source: source, target: target}
        short: nx.Graph[Any] = nx.Graph([(source, source), (target, target)])
        for row in rows:
            u, v = int(fabric.links.source[row]), int(fabric.links.target[row])
            if (u == source or v == target) and not (fabric.forwards[u] and fabric.forwards[v]):
                short.add_edge(u, v)
        for part in nx.connected_components(short):
            ends |= dict.fromkeys(part, min(part))
    else:
        ends = {}
    one_way: dict[tuple[int, int], float] = defaultdict(float)
    for row in rows:
        u, v = int(fabric.links.source[row]), int(fabric.links.target[row])
        one_way[ends.get(u, u), ends.get(v, v)] += float(fabric.links.cables[row])
    source, target = ends.get(source, source), ends.get(target, target)
    if source == target:
        return 0.0
    circuit: nx.Graph[Any] = nx.Graph()
    for (u, v), cables in one_way.items():
        if u != v:
            circuit.add_edge(u, v, conductance=max(cables, one_way.get((v, u), 0.0)))
    connected = circuit.subgraph(nx.node_connected_component(circuit, source))
    found: Any = nx.resistance_distance(connected, source, target, "conductance", invert_weight=False)
    return float(found)


def every_placement(hosts: Iterable[int], slots: Iterable[int], ranks: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to put ranks on hosts within their slots: the host of each rank."""
    room = dict(zip(hosts, slots, strict=True))
    for chosen in itertools.product(room, repeat=ranks):
        if all(chosen.count(host) <= room[host] for host in set(chosen)):
            yield chosen


def _combine(channels: dict[tuple[int, int], list[list[Route]]]) -> Route | None:
    """Split evenly over adapter pairs, then over port pairs, then over paths."""
    if not channels:
        return None
    parts: dict[int, float] = defaultdict(float)
    for port_pairs in channels.values():
        for ways in port_pairs:
            for way in ways:
                for row, part in way:
                    parts[row] += part / len(channels) / len(port_pairs) / len(ways)
    return list(parts.items())


def _all_shortest(fabric: Fabric, graph: nx.DiGraph[Any], source: EndPoint, target: EndPoint) -> list[Route]:
    """Return every shortest path, each as its links with the shares of parallel cables."""
    start, end = _node(fabric, source), _node(fabric, target)
    inside = {node for node in graph if node in (start, end) or isinstance(node, int)}
    part_of_graph = graph.subgraph(inside)
    if start not in part_of_graph or end not in part_of_graph:
        return []
    try:
        paths = list(itertools.islice(nx.all_shortest_paths(part_of_graph, start, end), MOST_PATHS + 1))
    except nx.NetworkXNoPath:
        return []
    if len(paths) > MOST_PATHS:
        raise TooManyPaths
    capacity = fabric.links.capacity
    routes = []
    for path in paths:
        route: Route = []
        for tail, head in itertools.pairwise(path):
            rows = graph.edges[tail, head]["rows"]
            total = sum(capacity[row] for row in rows)
            route += [(row, float(capacity[row] / total)) for row in rows]
        routes.append(route)
    return routes


@lru_cache(maxsize=2)
def _graph(fabric: Fabric) -> nx.DiGraph[Any]:
    """Return the graph of forwarding vertices and end points, with rows of parallel cables on each edge."""
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for row in range(len(fabric.links)):
        tail = _node(fabric, _leaves(fabric, row))
        head = _node(fabric, _enters(fabric, row))
        if not graph.has_edge(tail, head):
            graph.add_edge(tail, head, rows=[])
        graph.edges[tail, head]["rows"].append(row)
    return graph


def _node(fabric: Fabric, end: EndPoint) -> int | EndPoint:
    return end.host if fabric.forwards[end.host] else end


def _leaves(fabric: Fabric, row: int) -> EndPoint:
    links = fabric.links
    return _end(fabric, links.source[row], links.source_adapter[row], links.source_port[row])


def _enters(fabric: Fabric, row: int) -> EndPoint:
    links = fabric.links
    return _end(fabric, links.target[row], links.target_adapter[row], links.target_port[row])


def _end(fabric: Fabric, vertex: int, adapter: int, port: int) -> EndPoint:
    own = adapter >= 0 and not fabric.forwards[vertex]
    return EndPoint(int(vertex), int(adapter), int(port)) if own else EndPoint(int(vertex), -1, -1)


def _ports(fabric: Fabric, host: int, adapter: int) -> list[EndPoint]:
    return sorted(end for end in _every_end(fabric) if end.host == host and end.adapter == adapter)


@lru_cache(maxsize=2)
def _every_end(fabric: Fabric) -> set[EndPoint]:
    rows = range(len(fabric.links))
    return {_leaves(fabric, row) for row in rows} | {_enters(fabric, row) for row in rows}


def _rail_pairs(fabric: Fabric, source: int, target: int, rails: str) -> list[tuple[int, int]]:
    ours, theirs = _rails(fabric, source), _rails(fabric, target)
    if rails == "same-rail":
        return [(ours[i], theirs[i]) for i in ours.keys() & theirs.keys()]
    return list(itertools.product(ours.values(), theirs.values()))


def _rails(fabric: Fabric, host: int) -> dict[int, int]:
    """Return a host's adapters by rail number; only -1 for a host that is an end point itself."""
    adapters = fabric.adapters
    own = [a for a in range(len(adapters)) if adapters.host[a] == host and not fabric.forwards[host]]
    own.sort(key=lambda a: (adapters.names[a], int(adapters.guid[a])))
    return dict(enumerate(own)) or {0: -1}


TOLERANCE = 1e-9
"""Largest relative difference of two values that agree."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What the checks are run on."""

    fabric: Fabric
    seconds: float
    """Time after which a check starts no further comparison."""
    generator: np.random.Generator
    """Draws the hosts and the traffic that are compared."""

    def draw_hosts(self, most: int) -> list[int]:
        """Return at most so many hosts that have a cable, drawn at random, ascending."""
        cabled = np.intersect1d(self.fabric.hosts, self.fabric.links.source)
        drawn = self.generator.choice(cabled, min(most, len(cabled)), replace=False)
        return sorted(drawn.tolist())


@dataclass(slots=True)
class Comparison:
    """Values compared so far; each value of the program beside one computed independently."""

    unit: str
    """What was compared, in the plural: ``pairs of hosts``."""
    compared: int = 0
    largest_difference: float = 0.0
    """Largest relative difference."""
    differences: list[str] = field(default_factory=list)
    """Description of each pair of values that differ by more than `TOLERANCE`."""
    skipped: int = 0
    """Comparisons left out because the slow computation would take too long."""
    _started: float | None = None

    @property
    def agrees(self) -> bool:
        """True if something was compared and nothing differs."""
        return self.compared > 0 and not self.differences

    def goes_on(self, subject: Subject) -> bool:
        """Return True until the time of the check is over, which begins with the first call."""
        if self._started is None:
            self._started = time.monotonic()
        return time.monotonic() - self._started < subject.seconds

    def routes(
        self, subject: Subject, pairs: Iterable[tuple[int, int]], routing: str
    ) -> Iterator[tuple[int, int, Route | None]]:
        """Yield pairs of hosts with enumerated routes while time is left; skip those of too many paths."""
        for source, target in pairs:
            if not self.goes_on(subject):
                return
            try:
                yield source, target, route(subject.fabric, source, target, routing)
            except TooManyPaths:
                self.skipped += 1

    def add(self, what: str, value: float, expected: float) -> None:
        """Compare a value of the program with the expected one."""
        self.compared += 1
        if value == expected:
            return
        scale = max(abs(value), abs(expected))
        difference = abs(value - expected) / scale if math.isfinite(scale) else math.inf
        self.largest_difference = max(self.largest_difference, difference)
        if not difference <= TOLERANCE:
            self.differences.append(f"{what}: {value:.12g}, expected {expected:.12g}")


def one_rank_per_host(fabric: Fabric, hosts: list[int]) -> Placement:
    """Return the placement of rank i on the i-th host."""
    allocation = Allocation.of(fabric, hosts, 1)
    return Placement(host_of_rank=np.array(hosts, np.int32), allocation=allocation, strategy="given")
