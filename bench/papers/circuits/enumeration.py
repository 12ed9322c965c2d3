"""The true optimum of tiny instances: every topology, every partition, every set of unsplit routes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mapping.circuits.problem import Application, Machine, Topology
from mapping.circuits.solution import Solution, evaluate
from registry.errors import InvalidValue
from registry.model import Ints

MOST_NODES, MOST_VERTICES, MOST_EDGES = 5, 8, 12
"""Largest instance that is enumerated."""
Path = tuple[int, ...]
"""Rows of links, in order."""


class Optimum(NamedTuple):
    """A topology and a solution on it than which none is better."""

    topology: Topology
    solution: Solution


class _Flow(NamedTuple):
    edge: int
    source: int
    target: int
    size: float


class _Routing(NamedTuple):
    """Paths by flow, and their largest load."""

    worst: float
    paths: tuple[Path, ...]


def optimum(application: Application, machine: Machine) -> Optimum:
    """The highest throughput there is, by trying all.

    A link more never makes a topology worse, so that only those are tried to which none can be added.
    Partitions are tried up to the names of nodes, as all topologies are, by falling compute throughput.

    Raises:
        InvalidValue: More nodes, vertices or edges than `MOST_NODES`, `MOST_VERTICES`, `MOST_EDGES`.
    """
    _check(application, machine)
    topologies = [(topology, _paths(topology)) for topology in maximal_topologies(machine)]
    first = topologies[0][0]
    alone = np.zeros(application.vertices, np.int32)
    best = Optimum(first, _solution(application, first, machine, alone, [], ()))
    for computes, node_of_vertex in _partitions(application, machine):
        if computes <= best.solution.throughput:
            break
        flows = _flows(application, node_of_vertex)
        for topology, paths in topologies:
            enough = machine.link_speed / computes
            limit = machine.link_speed / best.solution.throughput
            routing = _route(flows, topology, paths, limit, enough)
            if routing is not None:
                found = _solution(application, topology, machine, node_of_vertex, flows, routing.paths)
                if found.throughput > best.solution.throughput:
                    best = Optimum(topology, found)
    return best


def maximal_topologies(machine: Machine) -> list[Topology]:
    """All connected topologies within the limits to which no link can be added, most links first."""
    pairs = list(itertools.combinations(range(machine.nodes), 2))
    found = []
    for count in range(min(machine.max_edges, len(pairs)), machine.nodes - 2, -1):
        for chosen in itertools.combinations(pairs, count):
            topology = Topology.of(machine.nodes, np.array(chosen, np.int64).reshape(-1, 2))
            if _is_maximal(topology, machine, pairs):
                found.append(topology)
    return found


def _is_maximal(topology: Topology, machine: Machine, pairs: Sequence[tuple[int, int]]) -> bool:
    spare = topology.degree < machine.max_degree
    if int(topology.degree.max()) > machine.max_degree or not topology.connected():
        return False
    if topology.links == machine.max_edges:
        return True
    return not any(spare[u] and spare[v] and topology.link_between(u, v) < 0 for u, v in pairs)


def _partitions(application: Application, machine: Machine) -> list[tuple[float, Ints]]:
    """Compute throughput and node of each vertex, of all partitions up to names of nodes, the best first."""
    found = []
    for parts in _growth_strings(application.vertices, machine.nodes):
        node_of_vertex = np.array(parts, np.int32)
        load = float(np.bincount(node_of_vertex, weights=application.vertex_weight).max())
        found.append((machine.compute_speed / load if load > 0 else np.inf, node_of_vertex))
    return sorted(found, key=lambda one: -one[0])


def _growth_strings(length: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Numbers below `parts`, each at most one above the highest before it."""
    grown: list[tuple[int, ...]] = [(0,)]
    for _ in range(length - 1):
        grown = [(*one, k) for one in grown for k in range(min(max(one) + 2, parts))]
    yield from grown


def _flows(application: Application, node_of_vertex: Ints) -> list[_Flow]:
    """Edges between different nodes, the heaviest first."""
    ends = node_of_vertex[application.source], node_of_vertex[application.target]
    edges = np.flatnonzero(ends[0] != ends[1])
    order = edges[np.argsort(-application.weight[edges], kind="stable")].tolist()
    return [_Flow(one, int(ends[0][one]), int(ends[1][one]), float(application.weight[one])) for one in order]


def _paths(topology: Topology) -> dict[tuple[int, int], list[Path]]:
    """All simple paths between two nodes, the shortest first."""
    found: dict[tuple[int, int], list[Path]] = {}

    def walk(start: int, here: int, seen: tuple[int, ...], path: Path) -> None:
        found.setdefault((start, here), []).append(path)
        indptr, node, link = topology.neighbours
        for place in range(int(indptr[here]), int(indptr[here + 1])):
            if int(node[place]) not in seen:
                walk(start, int(node[place]), (*seen, int(node[place])), (*path, int(link[place])))

    for start in range(topology.nodes):
        walk(start, start, (start,), ())
    for paths in found.values():
        paths.sort(key=lambda path: (len(path), path))
    return found


def _route(
    flows: Sequence[_Flow],
    topology: Topology,
    paths: dict[tuple[int, int], list[Path]],
    limit: float,
    enough: float,
) -> _Routing | None:
    """The routes of least worst load below a limit, or any up to `enough`; None where there are none."""
    load = [0.0] * topology.links
    chosen: list[Path] = []
    best: _Routing | None = None
    rest = np.r_[np.cumsum([flow.size for flow in flows][::-1])[::-1], 0.0].tolist()

    def choose(at: int) -> bool:
        """Route flow `at` and those after it in all ways; True to stop."""
        nonlocal best
        most = limit if best is None else best.worst
        if sum(load) + rest[at] >= most * len(load):
            return False
        if at == len(flows):
            best = _Routing(max(load, default=0.0), tuple(chosen))
            return best.worst <= enough
        flow = flows[at]
        for path in paths[flow.source, flow.target]:
            most = limit if best is None else best.worst
            if any(load[link] + flow.size >= most for link in path):
                continue
            before = [load[link] for link in path]
            for link in path:
                load[link] += flow.size
            chosen.append(path)
            stop = choose(at + 1)
            chosen.pop()
            for link, value in zip(path, before, strict=True):
                load[link] = value
            if stop:
                return True
        return False

    choose(0)
    return best


def _solution(
    application: Application,
    topology: Topology,
    machine: Machine,
    node_of_vertex: Ints,
    flows: Sequence[_Flow],
    paths: Sequence[Path],
) -> Solution:
    """The solution with these routes; edges within a node have none."""
    of_edge: list[Path] = [()] * application.edges
    for flow, path in zip(flows, paths, strict=True):
        of_edge[flow.edge] = path
    route_ptr = np.r_[0, np.cumsum([len(path) for path in of_edge], dtype=np.int64)].astype(np.int64)
    route = np.array([link for path in of_edge for link in path], np.int32)
    return evaluate(application, topology, machine, node_of_vertex, route_ptr, route)


def _check(application: Application, machine: Machine) -> None:
    for field, value, most in (
        ("Machine.nodes", machine.nodes, MOST_NODES),
        ("Application.vertex_weight", application.vertices, MOST_VERTICES),
        ("Application.source", application.edges, MOST_EDGES),
    ):
        if value > most:
            raise InvalidValue(field, f"{value} are more than the {most} of which all solutions are tried")
