"""Which node of a proposed topology is which of the present one: nodes are alike, circuits cost moves.

Where nothing is pinned, a topology with its partition and routes is as good under other numbers of its nodes.
Under those of most common circuits the fewest are moved: a maximum common edge subgraph, which is hard, so
it is searched. A relaxation (Vogelstein et al., "Fast approximate quadratic programming for graph matching",
2015, as scipy has it), the numbers as they are, and a few at random begin an exchange of nodes by pairs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import quadratic_assignment

from mapping.reconfiguration.co_optimise import Iteration, Reconfiguration
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.solution import evaluate
from mapping.reconfiguration.swaps import Pair
from mapping.reconfiguration.topology import Topology
from registry.model import Floats, Longs

MOST_NODES = 512
"""Topologies of more nodes keep their numbers: exchanges take time by the square of their number."""
STARTS, WORK = 50, 50_000_000
"""Most random starts, and at most so many times the nodes' cube in all."""


def renamed(
    application: Application, machine: Machine, present: Topology, found: Reconfiguration
) -> Reconfiguration:
    """The same under the numbers that keep most of the present circuits, also in its trail.

    Only circuits that a route takes count: others need not be put in.
    """
    spare = np.flatnonzero(np.bincount(found.solution.route, minlength=found.topology.links) == 0)
    number = numbers_that_keep(present, found.topology.without(spare))
    if (number == np.arange(len(number))).all():
        return found
    pairs, solution = number[found.topology.pairs], found.solution
    topology = Topology.of(present.nodes, pairs)
    node, route = number[solution.node_of_vertex], topology.rows_between(pairs)[solution.route]
    return replace(
        found,
        topology=topology,
        solution=evaluate(application, topology, machine, node, solution.route_ptr, route),
        trail=tuple(_under(number, one) for one in found.trail),
    )


def numbers_that_keep(present: Topology, topology: Topology) -> Longs:
    """int64[n]: a number for each node, under which many links of a topology are present ones.

    No fewer than under the numbers that they have, and these where none better are found. No exchange of two
    nodes keeps more.
    """
    nodes = present.nodes
    numbers = np.arange(nodes)
    if nodes > MOST_NODES or nodes < 2:
        return numbers
    old, new = _adjacency(present), _adjacency(topology)
    generator = np.random.default_rng(0)
    options = {"maximize": True, "rng": generator}  # which draws nothing: it begins in the middle of all
    relaxed = quadratic_assignment(new, old, method="faq", options=options).col_ind
    drawn = (generator.permutation(nodes) for _ in range(min(STARTS, WORK // nodes**3)))
    tried = [numbers, *(_exchanged(new, old, start) for start in (numbers, relaxed, *drawn))]
    return max(tried, key=lambda number: _kept(new, old, number))  # of equals the first


def _exchanged(new: Floats, old: Floats, number: Longs) -> Longs:
    """Two nodes exchange numbers, those for which most is gained, until nothing is; ties by index."""
    number = np.array(number, np.int64)
    under = old[np.ix_(number, number)]
    common = under @ new  # of nodes i and k: neighbours of i under its number that are neighbours of k
    while True:
        own = np.diagonal(common)
        gain = common + common.T - own - own[:, None] + 2.0 * under * new
        one, other = divmod(int(np.argmax(gain)), len(number))
        if gain[one, other] <= 0:
            return number
        both, crossed = [one, other], [other, one]
        common += np.outer(under[:, other] - under[:, one], new[one] - new[other])
        under[both], number[both] = under[crossed], number[crossed]
        under[:, both] = under[:, crossed]
        common[both] = under[both] @ new


def _kept(new: Floats, old: Floats, number: Longs) -> float:
    """Links that are present ones, each counted twice."""
    return float((new * old[np.ix_(number, number)]).sum())


def _adjacency(topology: Topology) -> Floats:
    found = np.zeros((topology.nodes, topology.nodes))
    found[topology.source, topology.target] = found[topology.target, topology.source] = 1.0
    return found


def _under(number: Longs, iteration: Iteration) -> Iteration:
    return replace(
        iteration, removed=_pairs(number, iteration.removed), inserted=_pairs(number, iteration.inserted)
    )


def _pairs(number: Longs, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    return tuple((int(number[one]), int(number[other])) for one, other in pairs)
