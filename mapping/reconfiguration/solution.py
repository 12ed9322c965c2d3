"""Where vertices are, how flows go, and the throughput that follows (section 2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.topology import Topology
from registry.errors import InvalidValue
from registry.model import Floats, Ints, Longs
from registry.model.arrays import freeze, whole_numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """A partition of an application on a topology, and its unsplit routes. Made by `evaluate`.

    Attributes
    ----------
    node_of_vertex : int32[v]
        Node of each vertex; nodes may be empty.
    route_ptr : int64[e + 1], route : int32[r]
        Links that edge e is routed along, rows of the topology, in order from the node of the edge's source
        to that of its target: ``route[route_ptr[e]:route_ptr[e + 1]]``. None within a node.
    node_load : float64[n]
        Computation on each node.
    link_load : float64[m]
        Data on each link, both directions together.
    compute_throughput : float
        Compute speed / the largest node load; infinite where nothing is computed.
    communication_throughput : float
        Link speed / the largest link load; infinite where no link is used.
    throughput : float
        The smaller of the two.
    """

    node_of_vertex: Ints
    route_ptr: Longs
    route: Ints
    node_load: Floats
    link_load: Floats
    compute_throughput: float
    communication_throughput: float
    throughput: float

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
    """Loads and throughputs of a partition and its routes.

    Parameters
    ----------
    node_of_vertex, route_ptr, route
        As of `Solution`.

    Raises
    ------
    InvalidValue
        A topology with another number of nodes than the machine, an array of a wrong size, a node or link
        that there is not, or a route that does not join the nodes of its edge's ends, naming the edge.
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


def performance_vector(solution: Solution, machine: Machine) -> Floats:
    """float64[n + m]: throughput of each node and each link alone, ascending (section 3.2.3).

    The first entry is the throughput of the whole; an entry is infinite where nothing loads it.
    """
    with np.errstate(divide="ignore"):
        return np.sort(
            np.concatenate(
                (machine.compute_speed / solution.node_load, machine.link_speed / solution.link_load)
            )
        )


def throughput_under(speed: float, load: float) -> float:
    """Elements of output a unit of time where this is the largest load; infinite without any."""
    return speed / load if load > 0 else math.inf


def indices(field: str, values: ArrayLike, size: int | None, most: int) -> Longs:
    """int64[size]: whole numbers from 0 to below `most`, any number of them where `size` is None.

    Raises
    ------
    InvalidValue
        Naming `field`, the entry and the value.
    """
    found = whole_numbers(values, field)
    if size is not None and len(found) != size:
        raise InvalidValue(field, f"has {len(found)} entries, not {size}")
    wrong = (found < 0) | (found >= most)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidValue(field, f"is {found[row]} at {row}, not within 0 .. {most - 1}")
    return found


def _check_routes(
    application: Application, topology: Topology, node: Longs, ptr: Longs, route: Longs
) -> None:
    """Walk all routes at once, link by link."""
    at, goal = node[application.source], node[application.target]
    length = np.diff(ptr)
    for k in range(int(length.max(initial=0))):
        going = np.flatnonzero(length > k)
        link = route[ptr[going] + k]
        one, other = topology.source[link], topology.target[link]
        torn = (at[going] != one) & (at[going] != other)
        if torn.any():
            _refuse(int(going[np.argmax(torn)]), f"link {k} of it does not go on from where it has led")
        at[going] = one + other - at[going]
    if (at != goal).any():
        edge = int(np.argmax(at != goal))
        _refuse(edge, f"it ends on node {at[edge]}, not on node {goal[edge]}")


def _refuse(edge: int, reason: str) -> None:
    raise InvalidValue("Solution.route", f"route of edge {edge}: {reason}")
