"""Flows from every rank to all others: a bound on bytes times distance.

If every rank can send to all others at once within the bytes that ranks exchange, then those bytes cost at
least what these flows cost, since no way through other ranks is shorter than the distance of its ends. And
flows between all ranks cost the same wherever the ranks are (Leighton and Rao, "Multicommodity max-flow
min-cut theorems", 1999). So ranks that reach all others in few steps cannot all be near their partners.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mapping.distances.distances import Distances
from mapping.evaluation.bounds.guest_graph import SortedBytes
from mapping.evaluation.bounds.hop_bytes import MAX_TABLE, host_kinds, least_assignment, nearest_first
from mapping.evaluation.bounds.network_parts import NOT_TRIED, host_vertex
from mapping.evaluation.kernels.nearest_flows import GuestArrays, send_to_nearest
from mapping.routing.routes import Routes
from mapping.routing.shortest_paths import ShortestPaths
from registry.model import Bound, Floats, Ints

VISITS = 40_000_000
"""Most partners that flows visit: ten million take 0.4 s."""
PASSES = 16
"""Largest number of times that each rank sends."""
PARTS = 16
"""Parts of the ranks that send one after the other; lengths are computed anew after each."""
STEEPNESS = 12.0
"""Growth of lengths with load, at the end: the fullest edge is then ``exp(12)`` times longer than empty."""
NAME = "all-to-all"


class Flows(NamedTuple):
    """Flows that together carry no more than the bytes between any two ranks.

    Attributes
    ----------
    sent : float64[ranks]
        Bytes from a rank to each other one.
    load : float64[e]
        Bytes on each edge of the guest.
    """

    sent: Floats
    load: Floats


def all_to_all(
    guest: GuestArrays, routes: Routes, distances: Distances, slots: Ints, *, above: float
) -> Bound:
    """Return a bound on the sum of bytes times distance; 0 if not all ranks with traffic reach each other.

    Bytes that the flows leave over cost what the argument of Gilmore and Lawler proves for them.

    Parameters
    ----------
    routes : Routes
        Routes between the hosts. Without shortest paths, or between hosts with several switches, a distance
        may be longer than the way through a third host: then nothing is proved.
    distances : Distances
        Distances of the hosts on these routes.
    slots : int32[h]
        Slots of each host; those of one host are at distance 0.
    above : float
        What other arguments prove for all bytes. Flows that prove less for the bytes that they take are given
        up after their first part.
    """
    nothing = Bound(value=0.0, proof=f"{NAME}: nothing is proved", name=NAME)
    talking = np.flatnonzero(np.diff(guest.ptr)).astype(np.int32)
    if len(talking) < 2 or not _obeys_triangles(routes, distances):
        return nothing
    (kind, first), visits = host_kinds(distances.group, slots), len(talking) * len(guest.head)
    if len(first) * len(talking) > MAX_TABLE or visits > PARTS * VISITS:
        return replace(
            nothing, proof=f"{NOT_TRIED}{NAME}: {len(talking)} ranks on {len(first)} kinds of hosts"
        )
    around = nearest_first(distances, slots, first, len(talking) - 1).sum(axis=1)
    rising = np.sort(np.repeat(around[kind], slots))[: len(talking)]
    flows = _flows(guest, talking, rising, above / float(guest.weight.sum()))
    value = _cost(flows, rising)
    if value == 0.0:
        return nothing
    rest = np.maximum(guest.weight - flows.load, 0.0)
    left = least_assignment(SortedBytes.of(guest.ptr, rest[guest.edge]), distances, slots)
    return Bound(
        value=value + left,
        proof=f"{NAME}: {value:.6g} for equal flows between all ranks, {left:.6g} for the bytes left over",
        name=NAME,
    )


def _obeys_triangles(routes: Routes, distances: Distances) -> bool:
    """Return True if no distance is longer than the way through a third host."""
    return type(routes) is ShortestPaths and host_vertex(routes) is not None and distances.symmetric


def _flows(guest: GuestArrays, talking: Ints, rising: Floats, enough: float) -> Flows:
    """Return flows that cost as much as can be found.

    Parameters
    ----------
    talking : int32[t]
        Ranks with partners.
    rising : float64[t]
        As for `_cost`.
    enough : float
        Least cost for each byte of their loads.

    Notes
    -----
    Ranks send in a random order (seed 0), and lengths of edges grow with their load, at first slowly. After
    every part all flows so far are divided by the largest load of an edge; those that cost most count.
    """
    ranks, count = len(guest.ptr) - 1, len(talking)
    times, size = min(PASSES * count, VISITS // len(guest.head)), -(-count // PARTS)
    generator, to_all = np.random.default_rng(0), np.zeros(count)
    to_all[-1] = 1.0
    order = np.concatenate([generator.permutation(talking) for _ in range(-(-times // count))])[:times]
    total = Flows(np.zeros(ranks), np.zeros(len(guest.weight)))
    best, worst = Flows(np.zeros(ranks), np.zeros(len(guest.weight))), 0.0
    for start in range(0, times, size):
        steepness = STEEPNESS * (start / times) / worst if worst > 0.0 else 0.0
        send_to_nearest(guest, order[start : start + size], to_all, steepness, total.load, total.sent)
        worst = float((total.load / guest.weight).max())
        cheap = float(total.sent.sum() * rising.mean()) < enough * float(total.load.sum())
        if worst == 0.0 or (start == 0 and cheap):
            break
        found = Flows(total.sent / worst, total.load / worst)
        best = max(best, found, key=lambda flows: _cost(flows, rising))
    return best


def _cost(flows: Flows, rising: Floats) -> float:
    """Return the least cost of flows.

    Parameters
    ----------
    rising : float64[t]
        Distances from a slot to the nearest of all others together, for the slots where these are least.
    """
    return float(np.sort(flows.sent)[::-1][: len(rising)] @ rising)
