"""Demands on single shortest paths: chosen by a hash at every switch, or as the least loaded so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, inner, kernel
from mapping.kernels.random_numbers import GAMMA, mixed
from mapping.routing.kernels.paths import ArcArrays, HopArray, Spread, trace
from registry.model import Floats, Ints, Longs


class ArcCables(NamedTuple):
    """Physical cables of arcs."""

    ptr: Longs
    link: Ints
    """int64[arcs + 1] and int32: Rows of ``fabric.links`` of each arc."""
    cables: Ints
    """int32[m]: Physical cables of each row."""


class HashedFlows(NamedTuple):
    """Demands that are divided into equal flows, ordered by goal."""

    ptr: Longs
    """int64[goals + 1]: Demands of each goal."""
    start: Ints
    """int32[d]: Vertex where each demand starts."""
    key: Longs
    """int64[d]: Hash key of the flows of each demand."""
    amount: Floats
    """float64[d]: Bytes."""
    flows: int
    """Flows of each demand."""
    seed: int
    """Seed of the hash."""


class Demands(NamedTuple):
    """Demands in the order in which they are routed."""

    start: Ints
    """int32[d]: Vertex where each demand starts."""
    goal: Ints
    """int32[d]: Row of the table of hops of its goal."""
    amount: Floats
    """float64[d]: Bytes."""


@inner
def _hash(word: np.uint64, value: int) -> np.uint64:
    """Return a hash of both, by the mixing function of SplitMix64."""
    return mixed((word ^ np.uint64(value)) + GAMMA)


@allocating
def carry_hashed(arcs: ArcArrays, cables: ArcCables, goals: Ints, demands: HashedFlows, load: Floats) -> Ints:
    """Route each demand as several equal flows, each along one shortest path.

    Args:
        goals (int32[k]): Vertices where demands end.
        load (float64[m]): Load of each row of ``fabric.links``; increased.

    Returns:
        int32[d]: Length of each demand's paths; -1 if there is none.
    """
    start, key, amount, ptr = demands.start, demands.key, demands.amount, demands.ptr
    hops, queue = np.full(len(arcs.forwards), -1, np.int32), np.empty(len(arcs.forwards), np.int32)
    length = np.empty(len(start), np.int32)
    for r in range(len(goals)):
        goal = goals[r]
        reached = _search(arcs, goal, hops, queue)
        for d in range(ptr[r], ptr[r + 1]):
            length[d] = hops[start[d]]
            if length[d] < 0:
                continue
            for flow in range(demands.flows):
                word = _hash(_hash(np.uint64(demands.seed), key[d]), flow)
                u = int(np.int64(start[d]))
                while u != goal:
                    u = _next(u, goal, hops, arcs, cables, _hash(word, u), amount[d] / demands.flows, load)
        for k in range(reached):
            hops[queue[k]] = -1
    return length


@kernel
def _search(arcs: ArcArrays, goal: int, hops: Ints, queue: Ints) -> int:
    """Fill `hops` with the links from each vertex to the goal; return the number of vertices in `queue`."""
    in_ptr, tail, forwards = arcs.in_ptr, arcs.tail, arcs.forwards
    hops[goal], queue[0] = 0, goal
    reached, k = 1, 0
    while k < reached:
        v = queue[k]
        k += 1
        if v != goal and not forwards[v]:
            continue
        for e in range(in_ptr[v], in_ptr[v + 1]):
            if hops[tail[e]] < 0:
                hops[tail[e]], queue[reached] = hops[v] + 1, tail[e]
                reached += 1
    return reached


@inner
def _next(
    u: int, goal: int, hops: Ints, arcs: ArcArrays, cables: ArcCables,
    word: np.uint64, amount: float, load: Floats,
) -> int:  # fmt: skip
    """Load the cable that the hash selects of all cables nearer to the goal; return the vertex at its end."""
    out_ptr, head, forwards = arcs.out_ptr, arcs.head, arcs.forwards
    ptr, link, count = cables.ptr, cables.link, cables.cables
    total = 0
    for arc in range(out_ptr[u], out_ptr[u + 1]):
        v = head[arc]
        if hops[v] == hops[u] - 1 and (v == goal or forwards[v]):
            for e in range(ptr[arc], ptr[arc + 1]):
                total += count[link[e]]
    left = np.int64(((word >> np.uint64(32)) * np.uint64(total)) >> np.uint64(32))
    for arc in range(out_ptr[u], out_ptr[u + 1]):
        v = head[arc]
        if hops[v] == hops[u] - 1 and (v == goal or forwards[v]):
            for e in range(ptr[arc], ptr[arc + 1]):
                left -= count[link[e]]
                if left < 0:
                    load[link[e]] += amount
                    return int(v)
    return -1


@allocating
def carry_singly(
    arcs: ArcArrays, capacity: Floats, hops_to: HopArray, demands: Demands,
    spread: Spread, arc_load: Floats, length: Ints,
) -> None:  # fmt: skip
    """Route each demand, in order, on the shortest path with the least sum of load / capacity so far.

    Of equal paths, the one that leaves their first differing vertex by the first arc is used.

    Args:
        capacity (float64[arcs]): Bytes/s.
        hops_to (int8[k, v] or int16[k, v]): Links to each goal.
        spread: Working memory; ``paths`` holds the least sum from each vertex here.
        arc_load (float64[arcs]): Increased.
        length (int32[d]): Filled; -1 if there is no path.
    """
    out_ptr, head, forwards = arcs.out_ptr, arcs.head, arcs.forwards
    start, goal, amount = demands.start, demands.goal, demands.amount
    order, first, listed = spread.order, spread.first, spread.arc
    known, least, best = spread.known, spread.paths, np.empty(len(forwards), np.int32)
    for d in range(len(start)):
        near, v = hops_to[goal[d]], start[d]
        far = int(np.int64(near[v]))
        length[d] = far
        if far < 0:
            continue
        spread.level[far] = v
        for k in range(trace(out_ptr, head, forwards, near, far, spread) - 1, -1, -1):
            u = order[k]
            known[u] = False
            least[u] = 0.0 if near[u] == 0 else np.inf
            for e in range(first[k], first[k + 1]):
                arc = listed[e]
                total = arc_load[arc] / capacity[arc] + least[head[arc]]
                if total < least[u]:
                    least[u], best[u] = total, arc
        for _ in range(far):
            arc_load[best[v]] += amount[d]
            v = head[best[v]]
