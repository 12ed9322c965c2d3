"""Solutions: nodes of vertices, routes of flows, and the throughput that follows (section 2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from mapping.circuits.problem import Application, Machine, Pair, Topology, indices
from registry.errors import InvalidValue
from registry.model import Floats, Ints, Longs
from registry.model.arrays import freeze
from registry.model.views import one_line

COMPUTE, COMMUNICATION = "compute", "communication"
"""Kinds of bottleneck."""
GAIN = 1e-12
"""Smallest relative gain of throughput that counts as one: sums of loads are rounded."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """A partition of an application on a topology, and its unsplit routes; made by `evaluate`."""

    node_of_vertex: Ints
    """int32[v]: Node of each vertex; nodes may be empty."""
    route_ptr: Longs
    route: Ints
    """int64[e + 1] and int32[r]: Links of the route of edge e, as rows of the topology, in order from the
    node of the edge's source to that of its target: ``route[route_ptr[e]:route_ptr[e + 1]]``. No links within
    a node."""
    node_load: Floats
    """float64[n]: Computation on each node."""
    link_load: Floats
    """float64[m]: Data on each link, both directions together."""
    compute_throughput: float
    """Compute speed / the largest node load; infinite if nothing is computed."""
    communication_throughput: float
    """Link speed / the largest link load; infinite if no link is used."""
    throughput: float
    """The smaller of the two."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        freeze(self, "node_of_vertex", np.int32, None)
        freeze(self, "route_ptr", np.int64, None)
        freeze(self, "route", np.int32, None)
        freeze(self, "node_load", np.float64, None)
        freeze(self, "link_load", np.float64, None)


def evaluate(
    application: Application,
    topology: Topology,
    machine: Machine,
    node_of_vertex: ArrayLike,
    route_ptr: ArrayLike,
    route: ArrayLike,
) -> Solution:
    """Return loads and throughput of a partition and its routes.

    Args:
        node_of_vertex, route_ptr, route: As in `Solution`.

    Raises:
        InvalidValue: The topology has another number of nodes than the machine, an array has a wrong size, a
            node or link does not exist, or a route does not connect the nodes of its edge.
    """
    if topology.nodes != machine.nodes:
        raise InvalidValue("Topology.nodes", f"is {topology.nodes}, the machine has {machine.nodes}")
    node = indices("Solution.node_of_vertex", node_of_vertex, application.vertices, topology.nodes)
    rows = indices("Solution.route", route, None, topology.links)
    ptr = indices("Solution.route_ptr", route_ptr, application.edges + 1, len(rows) + 1)
    if ptr[0] != 0 or ptr[-1] != len(rows) or (np.diff(ptr) < 0).any():
        raise InvalidValue("Solution.route_ptr", f"does not rise from 0 to {len(rows)}")
    _check_routes(application, topology, node, ptr, rows)
    on_node = np.bincount(node, application.vertex_weight, topology.nodes)
    on_link = np.bincount(rows, np.repeat(application.weight, np.diff(ptr)), len(topology.source))
    compute = throughput_under(machine.compute_speed, float(on_node.max(initial=0.0)))
    communication = throughput_under(machine.link_speed, float(on_link.max(initial=0.0)))
    return Solution(
        node_of_vertex=node.astype(np.int32),
        route_ptr=ptr,
        route=rows.astype(np.int32),
        node_load=on_node.astype(np.float64),
        link_load=on_link.astype(np.float64),
        compute_throughput=compute,
        communication_throughput=communication,
        throughput=min(compute, communication),
    )


def throughput_under(speed: float, load: float) -> float:
    """Return the output elements per unit of time if this is the largest load; infinite without load."""
    return speed / load if load > 0 else math.inf


def checked_nodes(node_of_vertex: ArrayLike, application: Application, nodes: int) -> Longs:
    """Return the node of each vertex (int64[v]).

    Raises:
        InvalidValue: There is not one node per vertex, or a node does not exist.
    """
    return indices("node_of_vertex", node_of_vertex, application.vertices, nodes)


def bottleneck(solution: Solution) -> str:
    """Return what limits the throughput: `COMPUTE` (also if both do) or `COMMUNICATION`."""
    computes = solution.compute_throughput <= solution.communication_throughput
    return COMPUTE if computes else COMMUNICATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One iteration of a search: a topology, and the throughput reached on it."""

    number: int
    """0 for the seed topology."""
    removed: tuple[Pair, ...]
    inserted: tuple[Pair, ...]
    """Links by which its topology differs from that of the iteration before, as pairs of nodes."""
    links: int
    """Number of links of its topology."""
    bottleneck: str
    """``compute`` or ``communication``: what limits the throughput."""
    throughput: float
    compute_throughput: float
    communication_throughput: float
    """Output elements per unit of time; inf without load."""
    best: float
    """Highest throughput so far."""
    seconds: float = field(compare=False)
    """Wall seconds since the start; ignored in comparisons, since it differs between runs."""

    @classmethod
    def of(
        cls,
        number: int,
        solution: Solution,
        *,
        removed: tuple[Pair, ...] = (),
        inserted: tuple[Pair, ...] = (),
        best: float | None = None,
        seconds: float,
    ) -> Self:
        """Return the iteration of a solution on its topology; `best` is by default its throughput."""
        return cls(
            number=number,
            removed=removed,
            inserted=inserted,
            links=len(solution.link_load),
            bottleneck=bottleneck(solution),
            throughput=solution.throughput,
            compute_throughput=solution.compute_throughput,
            communication_throughput=solution.communication_throughput,
            best=solution.throughput if best is None else best,
            seconds=seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """The best topology found by a search, with its partition and routes."""

    topology: Topology
    solution: Solution
    """Partition and routes on that topology."""
    trail: tuple[Iteration, ...]
    """All iterations, beginning with the seed topology."""
    complete: bool
    """False if an interrupt ended the search early."""

    __repr__ = one_line

    @property
    def throughput(self) -> float:
        """Output elements per unit of time."""
        return self.solution.throughput

    @property
    def best_iteration(self) -> int:
        """i_opt: number of the first iteration that reached the throughput (section 4.3)."""
        return next(one.number for one in self.trail if one.throughput == self.throughput)

    @property
    def improvement(self) -> float:
        """Phi: the throughput divided by that on the seed topology (section 4.3)."""
        first = self.trail[0].throughput
        return 1.0 if self.throughput == first else self.throughput / first


def _check_routes(
    application: Application, topology: Topology, node: Longs, ptr: Longs, route: Longs
) -> None:
    """Follow all routes at once, link by link, and raise `InvalidValue` for the first that is broken."""
    at, goal = node[application.source], node[application.target]
    length = np.diff(ptr)
    for k in range(int(length.max(initial=0))):
        longer = np.flatnonzero(length > k)
        link = route[ptr[longer] + k]
        one, other = topology.source[link], topology.target[link]
        broken = (at[longer] != one) & (at[longer] != other)
        if broken.any():
            _raise_broken(
                int(longer[np.argmax(broken)]), f"link {k} does not continue from the end of the link before"
            )
        at[longer] = one + other - at[longer]
    if (at != goal).any():
        edge = int(np.argmax(at != goal))
        _raise_broken(edge, f"it ends on node {at[edge]}, not on node {goal[edge]}")


def _raise_broken(edge: int, reason: str) -> None:
    raise InvalidValue("Solution.route", f"route of edge {edge}: {reason}")
