"""Changes of a topology that is in use: which links to take away and which to put in, beyond section 3.3.

The paper's swaps keep every degree. These moves also use ports and links that are free: a flow's ends, or the
node that computes most and another, are joined directly, and the lightest links that are in the way go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.reconfiguration.problem import Machine
from mapping.reconfiguration.solution import Solution
from mapping.reconfiguration.swaps import COMPUTE, Pair, bottleneck, next_swap
from mapping.reconfiguration.topology import Topology
from registry.model import Ints, Longs

CHOICE = 3
"""Of the lightest links that could go, one of so many is drawn."""
SKIP = 0.5
"""Probability of ignoring a swap, where one of section 3.3 is drawn."""


class Relinked(NamedTuple):
    """A topology after a move, and the links by which it differs."""

    topology: Topology
    removed: tuple[Pair, ...]
    inserted: tuple[Pair, ...]


def relinked(
    topology: Topology,
    solution: Solution,
    machine: Machine,
    ends: Pair | None,
    generator: np.random.Generator,
) -> Relinked | None:
    """A random change that may take the bottleneck away; None where what was drawn is not possible.

    Parameters
    ----------
    ends : (int, int) or None
        Nodes to join directly; unless told, a swap of section 3.3 is made.
    """
    if ends is None:
        swap = next_swap(topology, solution, generator, skip=SKIP)
        return None if swap is None else Relinked(*swap)
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
    pairs = np.concatenate((np.delete(topology.pairs, removed, axis=0), np.array(inserted).reshape(-1, 2)))
    made = Topology.of(topology.nodes, pairs)
    if not made.connected() or int(made.degree.max()) > machine.max_degree:
        return None
    gone = tuple((int(topology.source[row]), int(topology.target[row])) for row in removed)
    return Relinked(made, gone, tuple(inserted))


def wanted_ends(
    topology: Topology,
    solution: Solution,
    flows: tuple[Ints, Ints],
    generator: np.random.Generator,
) -> Pair | None:
    """Nodes that a direct link might help; None for a swap, one time in three, or where all are joined.

    Where nodes are the bottleneck, one of the fullest and a node that is not joined to it, drawn. Where links
    are, the ends of a flow that takes the hottest link on a way of several links, drawn; where there is none,
    one end of that link and any node. Where that node is joined to all others, any two nodes.

    Parameters
    ----------
    flows : (int32[e], int32[e])
        Nodes between which each edge of the application flows.
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
    """The node and any that no link joins it to; or any two nodes that none joins, or None."""
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
    """Two nodes that no link joins, drawn; None where all are joined."""
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
    """Rows of links to remove so that both nodes have a free port."""
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
    """One of the lightest of these links, less those that go already; -1 for none."""
    left = np.setdiff1d(rows, removed)
    if len(left) == 0:
        return -1
    lightest = left[np.argsort(solution.link_load[left], kind="stable")[:CHOICE]]
    return int(lightest[generator.integers(len(lightest))])


def _freed(topology: Topology, removed: list[int], ends: Pair) -> list[Pair]:
    """The link between the two nodes whose ports became free, where that is a new one."""
    if len(removed) != 2:
        return []
    far = [node for row in removed for node in topology.pairs[row].tolist() if node not in ends]
    if len(far) != 2 or far[0] == far[1] or topology.link_between(far[0], far[1]) >= 0:
        return []
    one, other = sorted(far)
    return [(one, other)]
