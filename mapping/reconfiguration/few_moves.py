"""A proposed configuration with few circuits moved: what it does not need stays as it is."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.relieving import routed
from mapping.reconfiguration.solution import Solution, evaluate
from mapping.reconfiguration.swaps import Pair
from mapping.reconfiguration.topology import Topology

TRIED = 200
"""New circuits without which routes are tried, at most."""


class FewMoves(NamedTuple):
    """A topology with routes; `complete` is False where an interrupt ended the search for fewer moves."""

    topology: Topology
    solution: Solution
    complete: bool


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
    made = _with_old(Topology.of(topology.nodes, np.array(kept, np.int64).reshape(-1, 2)), present, machine)
    if not made.connected():
        return topology, solution
    route = made.rows_between(topology.pairs)[solution.route]
    return made, evaluate(application, made, machine, solution.node_of_vertex, solution.route_ptr, route)


def fewer_moves(
    application: Application,
    machine: Machine,
    present: Topology,
    topology: Topology,
    solution: Solution,
    *,
    least: float,
    until: float,
) -> FewMoves:
    """Leave new circuits out, the lightest first, where other routes do as well without.

    Parameters
    ----------
    least : float
        Throughput that must stay.
    until : float
        Of ``time.perf_counter()``: nothing is tried after that.
    """
    pairs = [(one, other) for one, other in topology.pairs.tolist()]
    load: dict[Pair, float] = dict(zip(pairs, solution.link_load.tolist(), strict=True))
    new = sorted(topology.beyond(present), key=lambda pair: (load[pair], pair))
    try:
        for pair in new[:TRIED]:
            if time.perf_counter() >= until:
                break
            row = topology.link_between(*pair)
            trial = _with_old(topology.without([row]), present, machine)
            if trial.connected():
                found = routed(application, trial, machine, solution.node_of_vertex)
                if found.throughput >= least:
                    topology, solution = trial, found
    except KeyboardInterrupt:
        return FewMoves(topology, solution, False)
    return FewMoves(topology, solution, True)


def _with_old(topology: Topology, present: Topology, machine: Machine) -> Topology:
    """The topology and present circuits, in ascending order, as far as the machine's limits allow."""
    degree, links, back = topology.degree.copy(), topology.links, []
    for one, other in present.beyond(topology):
        if links < machine.max_edges and max(degree[one], degree[other]) < machine.max_degree:
            back.append((one, other))
            degree[[one, other]] += 1
            links += 1
    pairs = np.concatenate((topology.pairs, np.array(back, np.int64).reshape(-1, 2)))
    return Topology.of(topology.nodes, pairs)
