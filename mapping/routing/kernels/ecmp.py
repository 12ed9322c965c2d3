"""Flows that each go one shortest way, every switch choosing the next cable by a hash."""

from __future__ import annotations

import numpy as np
from numba import njit

from mapping.routing.kernels.paths import ArcArrays
from registry.model import Bools, Floats, Ints, Longs

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True, error_model="numpy", inline="always")
def _mixed(word: np.uint64, value: int) -> np.uint64:
    """A hash of both: SplitMix64 (Steele, Lea and Flood 2014) of their sum."""
    z = (word ^ np.uint64(value)) + _GAMMA
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return np.uint64(z ^ (z >> np.uint64(31)))


@njit(cache=True, error_model="numpy", nogil=True)
def carry_hashed(
    arcs: ArcArrays,
    cable_ptr: Longs,
    cable: Ints,
    cables: Ints,
    goals: Ints,
    demand_ptr: Longs,
    start: Ints,
    key: Longs,
    amount: Floats,
    flows: int,
    seed: int,
    load: Floats,
) -> Ints:
    """Send demands to their goals, each as several equal flows along one shortest way each.

    Parameters
    ----------
    cable_ptr, cable : int64[arcs + 1], int32
        Rows of ``fabric.links`` of each arc.
    cables : int32[m]
        Physical cables of each row.
    goals : int32[k]
        Vertex where the demands ``demand_ptr[r]:demand_ptr[r + 1]`` end.
    start : int32[d]
        Vertex where each begins.
    key : int64[d]
        What a demand's flows are hashed by.
    amount : float64[d]
        Bytes.
    load : float64[m]
        Added to.

    Returns
    -------
    int32[d]
        Length of each demand's ways; -1 where there is none.
    """
    out_ptr, head, forwards = arcs.out_ptr, arcs.head, arcs.forwards
    in_ptr, tail = arcs.in_ptr, arcs.tail
    hops, queue = np.full(len(forwards), -1, np.int32), np.empty(len(forwards), np.int32)
    length = np.empty(len(start), np.int32)
    for r in range(len(goals)):
        goal = goals[r]
        hops[goal], queue[0] = 0, goal
        reached, at = 1, 0
        while at < reached:
            v = queue[at]
            at += 1
            if v != goal and not forwards[v]:
                continue
            for e in range(in_ptr[v], in_ptr[v + 1]):
                if hops[tail[e]] < 0:
                    hops[tail[e]], queue[reached] = hops[v] + 1, tail[e]
                    reached += 1
        for d in range(demand_ptr[r], demand_ptr[r + 1]):
            length[d] = hops[start[d]]
            if length[d] < 0:
                continue
            for flow in range(flows):
                word = _mixed(_mixed(np.uint64(seed), key[d]), flow)
                u = int(np.int64(start[d]))
                while u != goal:
                    u = _next(
                        u, goal, hops, out_ptr, head, forwards, cable_ptr, cable, cables,
                        _mixed(word, u), amount[d] / flows, load,
                    )  # fmt: skip
        for at in range(reached):
            hops[queue[at]] = -1
    return length


@njit(cache=True, error_model="numpy")
def _next(
    u: int,
    goal: int,
    hops: Ints,
    out_ptr: Longs,
    head: Ints,
    forwards: Bools,
    cable_ptr: Longs,
    cable: Ints,
    cables: Ints,
    word: np.uint64,
    amount: float,
    load: Floats,
) -> int:
    """Load the cable that the hash takes of all that lead nearer to the goal; the vertex it leads to."""
    total = 0
    for arc in range(out_ptr[u], out_ptr[u + 1]):
        v = head[arc]
        if hops[v] == hops[u] - 1 and (v == goal or forwards[v]):
            for e in range(cable_ptr[arc], cable_ptr[arc + 1]):
                total += cables[cable[e]]
    left = np.int64(((word >> np.uint64(32)) * np.uint64(total)) >> np.uint64(32))
    for arc in range(out_ptr[u], out_ptr[u + 1]):
        v = head[arc]
        if hops[v] == hops[u] - 1 and (v == goal or forwards[v]):
            for e in range(cable_ptr[arc], cable_ptr[arc + 1]):
                left -= cables[cable[e]]
                if left < 0:
                    load[cable[e]] += amount
                    return int(v)
    return -1
