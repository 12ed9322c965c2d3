"""One shortest path a demand, chosen by the load that those before it left."""

from __future__ import annotations

import numpy as np
from numba import njit

from mapping.routing.kernels.paths import ArcArrays, HopArray, Spread, trace
from registry.model import Floats, Ints


@njit(cache=True, nogil=True)
def carry_singly(
    arcs: ArcArrays,
    capacity: Floats,
    hops_to: HopArray,
    start: Ints,
    goal: Ints,
    amount: Floats,
    spread: Spread,
    arc_load: Floats,
    length: Ints,
) -> None:
    """Put each demand, in order, on the shortest path with the least sum of load / capacity so far.

    Of equals the path that leaves its first differing vertex by the first arc.

    Parameters
    ----------
    capacity : float64[arcs]
        Bytes/s.
    hops_to : int8[k, v] or int16[k, v]
        Links to each goal.
    start : int32[d]
        Vertex where each demand starts.
    goal : int32[d]
        Row of `hops_to`.
    amount : float64[d]
        Bytes.
    spread : Spread
        Room; ``paths`` holds the least sum from each vertex here.
    arc_load : float64[arcs]
        Added to.
    length : int32[d]
        Filled; -1 where no path leads.
    """
    out_ptr, head, forwards = arcs.out_ptr, arcs.head, arcs.forwards
    order, first, listed = spread.order, spread.first, spread.arc
    known, least, best = spread.known, spread.paths, np.empty(len(forwards), np.int32)
    for d in range(len(start)):
        near, v = hops_to[goal[d]], start[d]
        far = int(np.int64(near[v]))
        length[d] = far
        if far < 0:
            continue
        spread.level[far] = v
        for at in range(trace(out_ptr, head, forwards, near, far, spread) - 1, -1, -1):
            u = order[at]
            known[u] = False
            least[u] = 0.0 if near[u] == 0 else np.inf
            for e in range(first[at], first[at + 1]):
                arc = listed[e]
                total = arc_load[arc] / capacity[arc] + least[head[arc]]
                if total < least[u]:
                    least[u], best[u] = total, arc
        for _ in range(far):
            arc_load[best[v]] += amount[d]
            v = head[best[v]]
