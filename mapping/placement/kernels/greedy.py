"""Algorithm 1 of Hoefler and Snir 2011, on plain arrays.

Two ways to find the closest host with room: the paper's, a search over the fabric's graph in which the
least loaded of the shortest paths wins (`greedy_by_load`), and by a table of distances between groups of
hosts, in which the lowest host wins (`greedy_by_distance`).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, inner, kernel
from registry.model import Bools, Floats, Int8s, Ints, Longs

Edge = tuple[float, np.int32, np.int32]
"""Bytes, negative so that the heaviest comes first, sender and receiver; sender -1 none."""
LAST, SENDER, START = 0, 1, 2
"""Next host: the closest to that used last, to the sender's, or to that of the first rank of the queue."""


class Senders(NamedTuple):
    """Bytes that each rank sends, and the order of ranks if no edge leads to the next one."""

    ptr: Longs
    target: Ints
    bytes: Floats
    """int64[ranks + 1] and int32[e] and float64[e]."""
    heaviest: Ints
    """int32[ranks]: Ranks by the bytes that they send, most first."""


class HostGraph(NamedTuple):
    """The fabric as a graph for Algorithm 1."""

    ptr: Longs
    head: Ints
    capacity: Floats
    """int64[n + 1] and int32[arcs] and float64[arcs]: Directed CSR, parallel cables bundled; bytes/s."""
    tail: Ints
    """int32[arcs]."""
    forwards: Bools
    """bool[n]: Paths go through these only."""
    host: Ints
    """int32[n]: Host index of each vertex, -1 none."""
    vertex: Ints
    """int32[h]: Vertex of each host."""


class _Search(NamedTuple):
    """Buffers of the searches of one run."""

    load: Floats
    """float64[arcs]: The paper's rho, without omega-hat."""
    cost: Floats
    """float64[n]: Load of the path to each vertex that was reached."""
    via: Ints
    """int32[n]: Last arc of that path."""
    seen: Longs
    """int64[n, 2]: Number of the search that last reached a vertex, and the level that it was reached in."""
    queue: Ints
    """int32[n]: Vertices in the order in which they were reached."""


@allocating
def greedy_by_load(guest: Senders, graph: HostGraph, slots: Ints, start: int, near: int) -> Ints:
    """Place all ranks; the closest host has the fewest links, then the least loaded path.

    Args:
        slots (int32[h]):
        start: Host index.
        near: `LAST`, `SENDER` or `START`. With `START` each rank is queued once, by the first edge that leads
            to it, and loads the path from the start; the next start is the next host with room.

    Returns:
        int32[ranks]: Host indices.
    """
    n, number, host = len(graph.forwards), 0, start
    search = _Search(
        np.zeros(len(graph.head)), np.zeros(n), np.zeros(n, np.int32),
        np.zeros((n, 2), np.int64), np.zeros(n, np.int32),
    )  # fmt: skip
    room, host_of_rank = slots.copy(), np.full(len(guest.heaviest), -1, np.int32)
    queued = np.zeros(len(guest.heaviest), np.bool_)
    for first in guest.heaviest:
        queue: list[Edge] = [(0.0, np.int32(-1), first)]
        while len(queue) > 0:
            weight, sender, rank = heapq.heappop(queue)
            if host_of_rank[rank] >= 0:
                continue
            if near == START and sender < 0:
                start = _next_with_room(room, start)
            source = _anchor(host_of_rank, sender, host, start, near)
            host = source
            if room[source] == 0:
                number += 1
                host = _closest(graph, search, room, source, int(np.int64(-1)), number)
            host_of_rank[rank] = host
            room[host] -= 1
            origin = source if near != LAST or sender < 0 else int(host_of_rank[sender])
            if sender >= 0 and origin != host:
                if origin != source:
                    number += 1
                    _closest(graph, search, room, int(np.int64(origin)), host, number)
                _add_along(graph, search, host, number, -weight)
            _follow(guest, host_of_rank, int(rank), queue, queued, near == START)
    return host_of_rank


@allocating
def greedy_by_distance(
    guest: Senders, group: Ints, far: Floats | Int8s, slots: Ints, start: int, near: int
) -> Ints:
    """Place all ranks; the closest host has the least distance, then the lowest index.

    Args:
        group (int32[h]), far (float64[g, g] or uint8[g, g]): Group of each host, and the distance between
            groups or its place in a rising list.
    """
    members = np.argsort(group, kind="mergesort").astype(np.int32)
    end = np.searchsorted(group[members], np.arange(1, len(far) + 1))
    at = np.searchsorted(group[members], np.arange(len(far)))
    room, host_of_rank = slots.copy(), np.full(len(guest.heaviest), -1, np.int32)
    host, queued = start, np.zeros(len(guest.heaviest), np.bool_)
    for first in guest.heaviest:
        queue: list[Edge] = [(0.0, np.int32(-1), first)]
        while len(queue) > 0:
            _, sender, rank = heapq.heappop(queue)
            if host_of_rank[rank] >= 0:
                continue
            if near == START and sender < 0:
                start = _next_with_room(room, start)
            host = _anchor(host_of_rank, sender, host, start, near)
            if room[host] == 0:
                row, host, least = far[group[host]], -1, np.inf
                for g in range(len(at)):
                    while at[g] < end[g] and room[members[at[g]]] == 0:
                        at[g] += 1
                    if at[g] < end[g]:
                        other, d = int(members[at[g]]), float(row[g])
                        if host < 0 or d < least or (d == least and other < host):
                            host, least = other, d
            host_of_rank[rank] = host
            room[host] -= 1
            _follow(guest, host_of_rank, int(rank), queue, queued, near == START)
    return host_of_rank


@inner
def _anchor(host_of_rank: Ints, sender: np.int32, last: int, start: int, near: int) -> int:
    """Return the host to which the next one shall be close."""
    if near == START:
        return start
    return int(host_of_rank[sender]) if near == SENDER and sender >= 0 else last


@kernel
def _next_with_room(room: Ints, host: int) -> int:
    """Return the host or, if it is full, the next one by index with room; the first follows the last."""
    while room[host] == 0:
        host = (host + 1) % len(room)
    return host


@allocating
def _follow(
    guest: Senders, host_of_rank: Ints, rank: int, queue: list[Edge], queued: Bools, once: bool
) -> None:
    """Queue the edges to all ranks that a rank sends to and that have no host yet, each rank `once` only."""
    for e in range(guest.ptr[rank], guest.ptr[rank + 1]):
        target = guest.target[e]
        if host_of_rank[target] < 0 and not (once and queued[target]):
            heapq.heappush(queue, (-guest.bytes[e], np.int32(rank), target))
            queued[target] = True


@allocating
def _closest(graph: HostGraph, search: _Search, room: Ints, source: int, goal: int, number: int) -> int:
    """Return the closest host with room (`goal` -1), or `goal` itself; its path stays in `search`.

    Level by level; of two ways to a vertex the less loaded wins, then that of the lower last arc, and of
    two hosts that of the less loaded path, then the lower. If no host with room is reached, the lowest.
    """
    ptr, head, forwards, host_of = graph.ptr, graph.head, graph.forwards, graph.host
    load, cost, via, seen, queue = search.load, search.cost, search.via, search.seen, search.queue
    root = graph.vertex[source]
    queue[0], cost[root], seen[root, 0], seen[root, 1] = root, 0.0, number, 0
    first, last, level = 0, 1, 0
    while first < last:
        level += 1
        reached = last
        for at in range(first, last):
            u = queue[at]
            if not (forwards[u] or u == root):
                continue
            for arc in range(ptr[u], ptr[u + 1]):
                v, new = head[arc], cost[u] + load[arc]
                if seen[v, 0] != number:
                    seen[v, 0], seen[v, 1] = number, level
                    queue[reached] = v
                    reached += 1
                elif seen[v, 1] != level or new > cost[v] or (new == cost[v] and arc > via[v]):
                    continue
                cost[v], via[v] = new, arc
        found = -1
        for at in range(last, reached):
            v = queue[at]
            host = host_of[v]
            if host >= 0 and (host == goal or (goal < 0 and room[host] > 0)):
                if found < 0 or cost[v] < cost[graph.vertex[found]]:
                    found = host
                elif cost[v] == cost[graph.vertex[found]]:
                    found = min(found, host)
        if found >= 0:
            return int(found)
        first, last = last, reached
    return goal if goal >= 0 else int(np.flatnonzero(room > 0)[0])


@kernel
def _add_along(graph: HostGraph, search: _Search, goal: int, number: int, weight: float) -> None:
    """Add bytes / capacity to the load of each arc on the path that the search has just found."""
    v = graph.vertex[goal]
    while search.seen[v, 0] == number and search.seen[v, 1] > 0:
        arc = search.via[v]
        search.load[arc] += weight / graph.capacity[arc]
        v = graph.tail[arc]
