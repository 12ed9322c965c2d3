"""Unsplit routes on plain arrays (one path per flow, of fewest links or least congestion); greedy matching.

Entries of a load are numbered as in a performance vector: nodes first, then links. The unit of a load does
not matter here; callers use seconds on a grid (`Scale` in `mapping.circuits.paper_partition`), so
that adding and subtracting leaves no rounding behind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.decorators import allocating, inner, kernel
from mapping.kernels.heap import drop_first, put_in
from registry.model import Bools, Floats, Ints, Longs

Array = NDArray[Any]


@inner
def copy_first(count: int, source: Array, target: Array) -> None:
    """Copy the first entries of an array; an assignment of slices would allocate memory."""
    for k in range(count):
        target[k] = source[k]


@kernel
def match_in_order(order: Longs, source: Ints, target: Ints, most: int, mate: Ints) -> int:
    """Match the ends of each edge, in order, if both are still free.

    Args:
        order (int64[e]): Edges.
        source, target (int32[e]): Never equal.
        most: Largest number of pairs.
        mate (int32[v]): Initially each vertex itself; filled with the partner of each matched vertex.

    Returns:
        Number of pairs.
    """
    made = 0
    for e in order:
        if made == most:
            break
        u, v = source[e], target[e]
        if mate[u] == u and mate[v] == v:
            mate[u], mate[v] = v, u
            made += 1
    return made


NO_PATH = -1


class Net(NamedTuple):
    """A topology of n nodes and m links."""

    first: Longs
    head: Ints
    link: Ints
    """int64[n + 1] and int32[2m] and int32[2m]: Neighbours of each node, ascending, and the links to them."""
    ends: Ints
    """int32[m]: Sum of the two nodes of each link: minus one of them, it is the other."""


class Guest(NamedTuple):
    """An application of v vertices and e edges, each a flow."""

    vertex: Floats
    """float64[v]: Load of each vertex on its node."""
    source: Ints
    target: Ints
    """int32[e]."""
    flow: Floats
    """float64[e]: Load of each edge on each link of its route."""
    first: Longs
    edge: Ints
    """int64[v + 1] and int32[2e]: Edges of each vertex by descending weight, ties by row."""


class PartitionState(NamedTuple):
    """Nodes of vertices and routes of flows; changed in place."""

    node: Ints
    """int32[v]."""
    route: Ints
    """int32[e, longest]: Links from the node of each edge's source to that of its target."""
    length: Ints
    """int32[e]: Number of links of each route."""
    load: Floats
    """float64[n + m]: Loads of nodes, then of links."""


class Search(NamedTuple):
    """Working memory of a path search; made by `new_search`."""

    least: Floats
    """float64[n]: Smallest worst load on a path to each node."""
    hops: Ints
    queue: Ints
    """int32[n]."""
    key: Floats
    place: Ints
    """float64[2m + 1] and int32[2m + 1]: A binary heap."""
    path: Ints
    """int32[longest]: Links of the path found."""


def new_search(nodes: int, links: int, longest: int) -> Search:
    """Return working memory for paths of at most `longest` links."""
    return Search(
        least=np.empty(nodes),
        hops=np.empty(nodes, np.int32),
        queue=np.empty(nodes, np.int32),
        key=np.empty(2 * links + 1),
        place=np.empty(2 * links + 1, np.int32),
        path=np.empty(longest, np.int32),
    )


@kernel
def fewest_links(
    net: Net, load: Floats, source: int, target: int, flow: float, limit: float, search: Search
) -> int:
    """Find the path of fewest links on which no link exceeds a limit after adding the flow.

    Ties go to the path that leaves its first differing node for the lowest neighbour.

    Args:
        load (float64[m]): Loads of links without the flow.

    Returns:
        Number of links of the path in ``search.path``; `NO_PATH` if there is none, or only one that is too
        long for it.
    """
    first, head, link = net.first, net.head, net.link
    hops, queue, path = search.hops, search.queue, search.path
    hops[:] = NO_PATH
    hops[target] = 0
    queue[0] = target
    at, count = 0, 1
    while at < count and hops[source] < 0:
        v = queue[at]
        at += 1
        for a in range(first[v], first[v + 1]):
            u = head[a]
            if hops[u] < 0 and load[link[a]] + flow <= limit:
                hops[u] = hops[v] + 1
                queue[count] = u
                count += 1
    far = int(hops[source])
    if far > len(path):
        return NO_PATH
    here = int(source)
    for k in range(far):
        for a in range(first[here], first[here + 1]):
            if hops[head[a]] == far - k - 1 and load[link[a]] + flow <= limit:
                path[k] = link[a]
                here = int(head[a])
                break
    return far


@kernel
def least_congested(net: Net, load: Floats, source: int, target: int, flow: float, search: Search) -> int:
    """Find the path whose largest load after adding the flow is smallest; ties go to fewest links.

    Parameters, result and further ties are those of `fewest_links`.
    """
    worst = _least_worst(net, load, source, target, flow, search)
    return fewest_links(net, load, source, target, flow, worst, search)


@kernel
def _least_worst(net: Net, load: Floats, source: int, target: int, flow: float, search: Search) -> float:
    """Return the largest load of the best path after adding the flow; infinite without a path."""
    first, head, link, least = net.first, net.head, net.link, search.least
    least[:] = np.inf
    least[source] = 0.0
    key, place, count = search.key, search.place, 1
    put_in(key, place, 0, 0.0, source)
    while count > 0:
        worst, v = key[0], place[0]
        count -= 1
        drop_first(key, place, count)
        if v == target:
            return float(worst)
        if worst > least[v]:
            continue
        for a in range(first[v], first[v + 1]):
            u, through = head[a], max(worst, load[link[a]] + flow)
            if through < least[u]:
                least[u] = through
                put_in(key, place, count, through, u)
                count += 1
    return np.inf


@allocating
def route_shortest(net: Net, guest: Guest, state: PartitionState, search: Search) -> int:
    """Give each flow the path of fewest links; loads are not changed.

    Returns:
        The first edge whose nodes no path connects, or -1.
    """
    node, free = state.node, np.zeros(len(net.ends))
    for e in range(len(guest.flow)):
        start, goal = int(np.int64(node[guest.source[e]])), int(np.int64(node[guest.target[e]]))
        count = fewest_links(net, free, start, goal, 0.0, np.inf, search)
        if count < 0:
            return e
        state.length[e] = count
        copy_first(count, search.path, state.route[e])
    return -1


@allocating
def reroute_flows(net: Net, guest: Guest, state: PartitionState, order: Longs, search: Search) -> int:
    """Re-route flows, in order, along their least congested path if that lowers the largest load of all.

    Args:
        order (int64[e]): Edges.

    Returns:
        Number of flows that were re-routed.
    """
    node, route, length, load = state.node, state.route, state.length, state.load
    links, path, changed = load[len(net.first) - 1 :], search.path, 0
    for e in order:
        flow, count = guest.flow[e], length[e]
        if count == 0 or flow == 0.0:
            continue
        before = load.max()
        for k in range(count):
            links[route[e, k]] -= flow
        start, goal = int(np.int64(node[guest.source[e]])), int(np.int64(node[guest.target[e]]))
        found = least_congested(net, links, start, goal, flow, search)
        for k in range(found):
            links[path[k]] += flow
        if found > 0 and load.max() < before:
            length[e] = found
            copy_first(found, path, route[e])
            changed += 1
            continue
        for k in range(found):
            links[path[k]] -= flow
        for k in range(count):
            links[route[e, k]] += flow
    return changed


@kernel
def project_routes(coarse: PartitionState, edge: Ints, backwards: Bools, fine: PartitionState) -> None:
    """Give each edge the route of the edge that it is part of in the coarser graph.

    Args:
        edge (int32[e]): Edge of the coarser graph; -1 for an edge within one of its vertices.
        backwards (bool[e]): True if that edge has the opposite direction.
    """
    for e in range(len(edge)):
        whole = edge[e]
        count = coarse.length[whole] if whole >= 0 else 0
        fine.length[e] = count
        for k in range(count):
            fine.route[e, k] = coarse.route[whole, count - 1 - k if backwards[e] else k]
