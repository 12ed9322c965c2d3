"""Edge exchanges: links to remove from a topology and to add, beyond the swaps of section 3.3.

The swaps of the paper keep every degree. These changes also use free ports and links: the ends of a flow, or
the node with most computation and another, are linked directly, and the lightest links in the way are
removed.
"""

from __future__ import annotations

import numpy as np

from mapping.reconfiguration.model.problem import Machine
from mapping.reconfiguration.model.solution import COMPUTE, Solution, bottleneck
from mapping.reconfiguration.model.topology import LinkChange, Pair, Topology
from mapping.reconfiguration.paper.loop import next_swap
from registry.model import Ints, Longs

CHOICE = 3
"""One of so many of the lightest removable links is drawn."""
SKIP = 0.5
"""Probability of ignoring a pair of links in a swap of section 3.3."""


def exchange_edges(
    topology: Topology,
    solution: Solution,
    machine: Machine,
    ends: Pair | None,
    generator: np.random.Generator,
) -> LinkChange | None:
    """Return a random change that may relieve the bottleneck, or None if the one drawn is not possible.

    Parameters
    ----------
    ends : (int, int) or None
        Nodes to link directly; None makes a swap of section 3.3.
    """
    if ends is None:
        return next_swap(topology, solution, generator, skip=SKIP)
    removed = _room(topology, solution, machine, ends, generator)
    if removed is None:
        return None
    inserted = [ends, *_freed(topology, removed, ends)]
    while topology.links - len(removed) + len(inserted) > machine.max_edges:
        if len(inserted) > 1:
            inserted.pop()
            continue
        row = _light(solution, np.arange(topology.links), removed, generator)
        if row < 0:
            return None
        removed.append(row)
    made = topology.changed(removed, inserted)
    if not made.connected() or int(made.degree.max()) > machine.max_degree:
        return None
    return LinkChange(made, tuple(topology.ends(row) for row in removed), tuple(inserted))


def choose_ends(
    topology: Topology,
    solution: Solution,
    flows: tuple[Ints, Ints],
    generator: np.random.Generator,
) -> Pair | None:
    """Return nodes that a direct link might help; None, for a swap, one time in three or if all are linked.

    If nodes are the bottleneck: one of the most loaded and a node not linked to it, drawn. If links are: the
    ends of a flow whose route has several links and includes the most loaded link, drawn; without such a
    flow, one end of that link and any node. If that node is linked to all others: any two nodes.

    Parameters
    ----------
    flows : (int32[e], int32[e])
        Nodes of both ends of each edge of the application.
    """
    if generator.random() < 1 / 3 or topology.links == 0:
        return None
    if bottleneck(solution) == COMPUTE:
        fullest = np.flatnonzero(solution.node_load == solution.node_load.max())
        return _to_any(topology, int(fullest[generator.integers(len(fullest))]), generator)
    hottest = int(np.argmax(solution.link_load))
    length = np.diff(solution.route_ptr)
    on_route = np.repeat(np.arange(len(length)), length)[solution.route == hottest]
    edges = on_route[length[on_route] > 1]
    if len(edges):
        edge = int(edges[generator.integers(len(edges))])
        one, other = sorted((int(flows[0][edge]), int(flows[1][edge])))
        if topology.link_between(one, other) < 0:
            return one, other
    end = int(topology.pairs[hottest][generator.integers(2)])
    return _to_any(topology, end, generator)


def _to_any(topology: Topology, node: int, generator: np.random.Generator) -> Pair | None:
    """Return the node and one not linked to it, or any two nodes without a link, or None."""
    indptr, around, _ = topology.neighbours
    apart = np.ones(topology.nodes, bool)
    apart[node] = False
    apart[around[indptr[node] : indptr[node + 1]]] = False
    others = np.flatnonzero(apart)
    if len(others) == 0:
        return _any_two(topology, generator)
    one, two = sorted((node, int(others[generator.integers(len(others))])))
    return one, two


def _any_two(topology: Topology, generator: np.random.Generator) -> Pair | None:
    """Return two nodes without a link, drawn, or None if all are linked."""
    apart = np.triu(np.ones((topology.nodes, topology.nodes), bool), 1)
    apart[topology.source, topology.target] = False
    pairs = np.argwhere(apart)
    if len(pairs) == 0:
        return None
    one, other = pairs[generator.integers(len(pairs))].tolist()
    return one, other


def _room(
    topology: Topology, solution: Solution, machine: Machine, ends: Pair, generator: np.random.Generator
) -> list[int] | None:
    """Return the rows of links to remove so that both nodes have a free port, or None."""
    removed: list[int] = []
    indptr, _, link = topology.neighbours
    for node in ends:
        if topology.degree[node] >= machine.max_degree:
            row = _light(solution, link[indptr[node] : indptr[node + 1]], removed, generator)
            if row < 0:
                return None
            removed.append(row)
    return removed


def _light(solution: Solution, rows: Ints | Longs, removed: list[int], generator: np.random.Generator) -> int:
    """Return one of the lightest of these links that is not removed yet, or -1."""
    left = np.setdiff1d(rows, removed)
    if len(left) == 0:
        return -1
    lightest = left[np.argsort(solution.link_load[left], kind="stable")[:CHOICE]]
    return int(lightest[generator.integers(len(lightest))])


def _freed(topology: Topology, removed: list[int], ends: Pair) -> list[Pair]:
    """Return the link between the two nodes whose ports became free, if it is a new one."""
    if len(removed) != 2:
        return []
    far = [node for row in removed for node in topology.pairs[row].tolist() if node not in ends]
    if len(far) != 2 or far[0] == far[1] or topology.link_between(far[0], far[1]) >= 0:
        return []
    one, other = sorted(far)
    return [(one, other)]
