"""The next configuration of a switch whose nodes are in use: ranks stay where they are, circuits move."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfigure.co_optimise import Iteration, Reconfiguration
from mapping.reconfigure.coarsening import coarsen
from mapping.reconfigure.improving import TRIALS, improve
from mapping.reconfigure.problem import Application, Machine
from mapping.reconfigure.refinement import Scale, guest_of
from mapping.reconfigure.solution import Solution, evaluate
from mapping.reconfigure.swaps import Pair, bottleneck
from mapping.reconfigure.topology import Topology
from mapping.reconfigure.unsplit import flat_routes, longest_route, net_of, route_unsplit
from registry.errors import InvalidValue
from registry.model.arrays import whole_numbers
from registry.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proposal:
    """Another configuration of the switch, against the present one.

    Attributes
    ----------
    present : Solution
        Routes of the present topology.
    found : Reconfiguration
        The proposed topology and its routes; the present one where none is better.
    removed, inserted : tuple of (int, int)
        Circuits to take away and to put in: nodes that they join, ascending.
    gain : float
        Throughput of the proposal over the present one; 1 where nothing changes.
    break_even_seconds : float
        Time after which as much has been done as without a change, where nothing flows while circuits move;
        inf where nothing is gained.
    """

    present: Solution
    found: Reconfiguration
    removed: tuple[Pair, ...]
    inserted: tuple[Pair, ...]
    gain: float
    break_even_seconds: float


def next_configuration(
    application: Application,
    machine: Machine,
    present: Topology,
    node_of_vertex: ArrayLike,
    *,
    reconfiguration_seconds: float,
    trials: int = TRIALS,
    seed: int = 0,
    seconds: float | None = None,
    progress: Progress = silent,
) -> Proposal:
    """Propose circuits for what runs now, and weigh the gain against the time of the change.

    What vertices compute does not count, as they do not move: the throughput is that of the worst link.

    Parameters
    ----------
    application : Application
        Who communicates how much now, for instance all running jobs together.
    present : Topology
        As the switch is configured, connected.
    node_of_vertex : int[v]
        Where each vertex is, and stays.
    reconfiguration_seconds : float
        For which nothing flows while circuits move, finite, >= 0.
    trials, seed, seconds, progress
        Of `mapping.reconfigure.improving.improve`.

    Raises
    ------
    InvalidValue
        A topology beyond the machine's limits, a vertex on no node, a parameter out of range.
    """
    if not (math.isfinite(reconfiguration_seconds) and reconfiguration_seconds >= 0):
        reason = f"is {reconfiguration_seconds}, must be finite and not negative"
        raise InvalidValue("next_configuration.reconfiguration_seconds", reason)
    present.require(machine)
    still = replace(application, vertex_weight=np.zeros(application.vertices))
    begin = time.perf_counter()
    now = routed(still, present, machine, node_of_vertex)
    start = Iteration(
        number=0,
        removed=(),
        inserted=(),
        links=present.links,
        bottleneck=bottleneck(now),
        throughput=now.throughput,
        compute_throughput=now.compute_throughput,
        communication_throughput=now.communication_throughput,
        best=now.throughput,
        seconds=time.perf_counter() - begin,
    )
    before = Reconfiguration(topology=present, solution=now, trail=(start,), complete=True)
    found = improve(
        still, machine, before, pinned=True, trials=trials, seed=seed, seconds=seconds, progress=progress
    )
    if not found.throughput > now.throughput:
        found = replace(before, complete=found.complete)
    else:
        made, solution = fewer_circuits(still, machine, present, found.topology, found.solution)
        found = replace(found, topology=made, solution=solution)
    removed, inserted = circuits(present, found.topology)
    gain = found.throughput / now.throughput if found.throughput > now.throughput else 1.0
    return Proposal(
        present=now,
        found=found,
        removed=removed,
        inserted=inserted,
        gain=gain,
        break_even_seconds=break_even_seconds(gain, reconfiguration_seconds),
    )


def routed(
    application: Application, topology: Topology, machine: Machine, node_of_vertex: ArrayLike
) -> Solution:
    """Unsplit routes of low congestion for vertices that are where they are (section 3.2.2)."""
    node = whole_numbers(node_of_vertex, "node_of_vertex")
    if len(node) != application.vertices:
        raise InvalidValue("node_of_vertex", f"has {len(node)} entries, not {application.vertices}")
    wrong = (node < 0) | (node >= topology.nodes)
    if wrong.any():
        vertex = int(np.argmax(wrong))
        reason = f"is {node[vertex]} at {vertex}, not within 0 .. {topology.nodes - 1}"
        raise InvalidValue("node_of_vertex", reason)
    guest = guest_of(coarsen(application, topology.nodes)[0], Scale.of(application, machine))
    standing = route_unsplit(net_of(topology), guest, node.astype(np.int32), longest_route(topology))
    route_ptr = np.r_[0, np.cumsum(standing.length, dtype=np.int64)].astype(np.int64)
    return evaluate(application, topology, machine, node, route_ptr, flat_routes(standing))


def fewer_circuits(
    application: Application, machine: Machine, present: Topology, topology: Topology, solution: Solution
) -> tuple[Topology, Solution]:
    """The same routes with circuits left where they are: new ones that no route takes go, old ones come back.

    Old circuits come back in ascending order, as far as the machine's limits allow.
    """
    used = np.bincount(solution.route, minlength=topology.links) > 0
    old = {(one, other) for one, other in present.pairs.tolist()}
    ends = [(one, other) for one, other in topology.pairs.tolist()]
    kept = [pair for pair, takes in zip(ends, used.tolist(), strict=True) if takes or pair in old]
    degree = np.bincount(np.array(kept, np.int64).reshape(-1), minlength=topology.nodes)
    for one, other in sorted(old - set(kept)):
        if len(kept) < machine.max_edges and max(degree[one], degree[other]) < machine.max_degree:
            kept.append((one, other))
            degree[[one, other]] += 1
    made = Topology.of(topology.nodes, np.array(kept, np.int64).reshape(-1, 2))
    if not made.connected():
        return topology, solution
    row = np.array([made.link_between(one, other) for one, other in ends], np.int64)
    route = row[solution.route]
    return made, evaluate(application, made, machine, solution.node_of_vertex, solution.route_ptr, route)


def circuits(before: Topology, after: Topology) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Circuits of the first topology alone and of the second alone, ascending."""
    old, new = ({(one, other) for one, other in at.pairs.tolist()} for at in (before, after))
    return tuple(sorted(old - new)), tuple(sorted(new - old))


def break_even_seconds(gain: float, reconfiguration_seconds: float) -> float:
    """Time t with ``gain (t - reconfiguration_seconds) = t``; inf without a gain."""
    if gain <= 1:
        return math.inf
    return reconfiguration_seconds * gain / (gain - 1) if math.isfinite(gain) else reconfiguration_seconds
