"""A slow reading of section 3.2.3 on small cases: every step is tried, every vector is sorted anew."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from mapping.circuits import paper_partition
from mapping.circuits.kernels.routes import Guest, Net, PartitionState
from mapping.circuits.problem import Application, Level, Machine, Topology
from mapping.circuits.solution import Solution
from registry.model import Floats, Ints
from tests.support.reconfigure_problems import graph_of, machine

Vector = list[Fraction]


class Case(NamedTuple):
    """An application on a topology and a machine with these nodes."""

    application: Application
    topology: Topology
    machine: Machine


@st.composite
def topologies(draw: st.DrawFn, least: int = 1, most: int = 6) -> Topology:
    nodes = draw(st.integers(least, most))
    pairs = [(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)]
    every = [(a, b) for b in range(nodes) for a in range(b)]
    more = draw(st.lists(st.sampled_from(every), max_size=6)) if every else []
    return Topology.of(nodes, np.array(pairs + more).reshape(-1, 2))


@st.composite
def applications(draw: st.DrawFn, most: int = 9, whole: bool = True) -> Application:
    vertices = draw(st.integers(1, most))
    weights = st.integers(0, 5) if whole else st.floats(0, 5, width=32)
    every = [(a, b) for a in range(vertices) for b in range(a + 1, vertices)]
    chosen = draw(st.lists(st.sampled_from(every), unique=True, max_size=14)) if every else []
    ends = np.array(sorted(chosen), np.int32).reshape(-1, 2)
    return Application(
        vertex_weight=np.array(draw(st.lists(weights, min_size=vertices, max_size=vertices)), float),
        source=ends[:, 0],
        target=ends[:, 1],
        weight=np.array(draw(st.lists(weights, min_size=len(ends), max_size=len(ends))), float),
    )


@st.composite
def cases(draw: st.DrawFn, most_nodes: int = 6, whole: bool = True) -> Case:
    topology = draw(topologies(most=most_nodes))
    speeds = st.sampled_from([1, 2, 3, 10] if whole else [0.3, 1.7, 1e-9, 1e9])
    limits = machine_of(topology.nodes, compute_speed=draw(speeds), link_speed=draw(speeds))
    return Case(draw(applications(whole=whole)), topology, limits)


def machine_of(nodes: int, compute_speed: float = 1.0, link_speed: float = 1.0) -> Machine:
    speeds = {"compute_speed": compute_speed, "link_speed": link_speed}
    return machine(nodes, max(nodes - 1, 2), nodes**2, **speeds)


class Start(NamedTuple):
    """A case as kernels take it, with vertices on given nodes and routed flows."""

    net: Net
    guest: Guest
    state: PartitionState


def start(case: Case, node: Ints) -> Start:
    level, scale = Level.of(case.application), paper_partition.Scale.of(case.application, case.machine)
    net, guest = paper_partition.build_net(case.topology), paper_partition.build_guest(level, scale)
    longest = paper_partition.longest_route(case.topology)
    return Start(net, guest, paper_partition.route_unsplit(net, guest, node.copy(), longest))


@st.composite
def started(draw: st.DrawFn, whole: bool = True) -> tuple[Case, Start]:
    case = draw(cases(whole=whole))
    size, last = len(case.application.vertex_weight), case.topology.nodes - 1
    node = draw(st.lists(st.integers(0, last), min_size=size, max_size=size))
    return case, start(case, np.array(node, np.int32))


def performance_vector(solution: Solution, machine: Machine) -> Floats:
    """Return the throughput of each node and each link alone, in ascending order (float64[n + m]; 3.2.3)."""
    with np.errstate(divide="ignore"):
        speeds = machine.compute_speed / solution.node_load, machine.link_speed / solution.link_load
        return np.sort(np.concatenate(speeds))


def path_by_trying_all(
    topology: Topology, load: list[Fraction], source: int, target: int, flow: Fraction
) -> list[int]:
    """Return the minimum-congestion path: least largest load, then fewest links, then lowest nodes."""
    if source == target:
        return []
    graph = graph_of(topology)

    def rows(path: list[int]) -> list[int]:
        return [graph.edges[one, other]["row"] for one, other in pairwise(path)]

    def key(path: list[int]) -> tuple[Fraction, int, list[int]]:
        return max(load[row] + flow for row in rows(path)), len(path), path

    return rows(min(nx.all_simple_paths(graph, source, target), key=key))


class Slow:
    """A partition and its routes; all steps are tried and all vectors sorted."""

    def __init__(self, case: Case, state: PartitionState, thorough: bool) -> None:
        self.case, self.thorough = case, thorough
        self.graph = graph_of(case.topology)
        self.node = state.node.tolist()
        self.routes = [state.route[e, :count].tolist() for e, count in enumerate(state.length.tolist())]
        application = case.application
        self.vertex = [Fraction(weight) for weight in application.vertex_weight.tolist()]
        self.flow = [Fraction(weight) for weight in application.weight.tolist()]
        self.ends = list(zip(application.source.tolist(), application.target.tolist(), strict=True))

    def vector(self, node: list[int], routes: list[list[int]]) -> Vector:
        """Return the reciprocals of the performance vector's entries, in its order."""
        machine = self.case.machine
        on_node = [Fraction(0)] * self.case.topology.nodes
        for vertex, place in enumerate(node):
            on_node[place] += self.vertex[vertex]
        loads = [load / Fraction(machine.compute_speed) for load in on_node]
        loads += [load / Fraction(machine.link_speed) for load in self.link_load(routes)]
        return sorted(loads, reverse=True)

    def link_load(self, routes: list[list[int]]) -> list[Fraction]:
        load = [Fraction(0)] * len(self.case.topology.source)
        for e, route in enumerate(routes):
            for link in route:
                load[link] += self.flow[e]
        return load

    def moved(self, vertex: int, to: int) -> tuple[list[int], list[list[int]]]:
        node = list(self.node)
        node[vertex] = to
        routes = [list(route) for route in self.routes]
        mine = [e for e, ends in enumerate(self.ends) if vertex in ends]
        if not self.thorough:
            for e in mine:
                routes[e] = self.grown_or_cut(e, vertex, to)
            return node, routes
        for e in mine:
            routes[e] = []
        for e in sorted(mine, key=lambda e: (-self.flow[e], e)):
            one, other = self.ends[e]
            load = self.link_load(routes)
            routes[e] = path_by_trying_all(self.case.topology, load, node[one], node[other], self.flow[e])
        return node, routes

    def grown_or_cut(self, e: int, vertex: int, to: int) -> list[int]:
        flipped = self.ends[e][1] == vertex
        route = self.routes[e][::-1] if flipped else list(self.routes[e])
        here, at = self.node[vertex], self.node[vertex]
        found = None
        for k, link in enumerate(route):
            at = int(self.case.topology.source[link]) + int(self.case.topology.target[link]) - at
            if at == to:
                found = route[k + 1 :]
                break
        if found is None:
            found = [self.graph.edges[here, to]["row"], *route]
        return found[::-1] if flipped else found

    def rerouted(self, e: int) -> list[list[int]]:
        routes = [list(route) for route in self.routes]
        routes[e] = []
        one, other = self.ends[e]
        load = self.link_load(routes)
        routes[e] = path_by_trying_all(
            self.case.topology, load, self.node[one], self.node[other], self.flow[e]
        )
        return routes

    def steps(self) -> list[tuple[Vector, int, list[int], list[list[int]]]]:
        """Return the vector after each step, with its number, nodes and routes."""
        found, nodes = [], self.case.topology.nodes
        for vertex, here in enumerate(self.node):
            for to in self.graph.neighbors(here):
                node, routes = self.moved(vertex, to)
                found.append((self.vector(node, routes), vertex * nodes + to, node, routes))
        for e in range(len(self.ends)):
            routes = self.rerouted(e)
            found.append((self.vector(self.node, routes), len(self.node) * nodes + e, self.node, routes))
        return found

    def make_best(self) -> int:
        """Make the best step and return its number, or -1 if none is better than no step."""
        now = self.vector(self.node, self.routes)
        best = min(self.steps(), key=lambda step: step[:2], default=(now, -1, self.node, self.routes))
        if not best[0] < now:
            return -1
        _, number, self.node, self.routes = best
        return number
