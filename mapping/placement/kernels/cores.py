"""Distribute the ranks of one host over its NUMA domains by greedy growth and descent, on dense arrays.

A byte between two ranks costs the distance of their domains, one that leaves the host the distance of the
rank's domain to the nearest adapter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, kernel
from registry.model import Floats, Ints, Longs

NOBODY = -1


class HostRanks(NamedTuple):
    """Traffic of the ranks of a host, and its NUMA domains."""

    weight: Floats
    """float64[n, n]: Bytes between each two ranks, both directions summed; 0 on the diagonal."""
    leaves: Floats
    """float64[n]: Bytes that each rank sends to and receives from other hosts."""
    room: Longs
    """int64[d]: Cores of each domain."""
    distance: Floats
    """float64[d, d]: Symmetric."""
    reach: Floats
    """float64[d]: From each domain to the nearest adapter."""


@kernel
def cost(host: HostRanks, domain: Ints) -> float:
    """Return bytes times distance of a placement."""
    total = 0.0
    for r in range(len(domain)):
        total += host.leaves[r] * host.reach[domain[r]]
        for s in range(r):
            total += host.weight[r, s] * host.distance[domain[r], domain[s]]
    return total


@allocating
def grow(host: HostRanks) -> Ints:
    """Return int32[n]: domains filled one after the other, those near an adapter first.

    Each takes the rank that has most bytes with the ranks in it, of equals the one with most bytes that
    leave the host, then the lower; its first is chosen by the bytes that leave.
    """
    n = len(host.leaves)
    domain, left = np.full(n, NOBODY, np.int32), n
    order = np.argsort(host.reach, kind="mergesort")
    for d in order:
        towards = np.zeros(n)
        for _ in range(min(host.room[d], left)):
            best = NOBODY
            for r in range(n):
                if domain[r] == NOBODY and (
                    best == NOBODY
                    or towards[r] > towards[best]
                    or (towards[r] == towards[best] and host.leaves[r] > host.leaves[best])
                ):
                    best = r
            domain[best] = d
            left -= 1
            towards += host.weight[best]
    return domain


@allocating
def descend(host: HostRanks, domain: Ints, least: float) -> None:
    """Make the best move, swap or exchange of whole domains while it saves more than `least`."""
    taken = np.zeros(len(host.room), np.int64)
    for d in domain:
        taken[d] += 1
    while _best_of_one(host, domain, taken, least) or _exchange_domains(host, domain, taken, least):
        pass


@allocating
def _best_of_one(host: HostRanks, domain: Ints, taken: Longs, least: float) -> bool:
    """Make the best move or swap; ties go to the lower rank, moves first. Return False if none saves."""
    n, d, weight, distance = len(domain), len(host.room), host.weight, host.distance
    at = np.zeros((n, d))
    for r in range(n):
        for b in range(d):
            at[r, b] = host.leaves[r] * host.reach[b]
        for s in range(n):
            at[r] += weight[r, s] * distance[:, domain[s]]
    best, rank, other, target = least, NOBODY, NOBODY, NOBODY
    for r in range(n):
        a = domain[r]
        for b in range(d):
            if b != a and taken[b] < host.room[b] and at[r, a] - at[r, b] > best:
                best, rank, other, target = at[r, a] - at[r, b], r, NOBODY, b
        for s in range(r + 1, n):
            b = domain[s]
            if b != a:
                own = weight[r, s] * (distance[a, a] + distance[b, b] - 2.0 * distance[a, b])
                saved = at[r, a] + at[s, b] - at[r, b] - at[s, a] + own
                if saved > best:
                    best, rank, other, target = saved, r, s, b
    if rank == NOBODY:
        return False
    a = domain[rank]
    domain[rank] = target
    if other != NOBODY:
        domain[other] = a
    else:
        taken[a] -= 1
        taken[target] += 1
    return True


@allocating
def _exchange_domains(host: HostRanks, domain: Ints, taken: Longs, least: float) -> bool:
    """Exchange the ranks of the first two domains for which that saves; return False if there are none."""
    now = cost(host, domain)
    for a in range(len(taken)):
        for b in range(a):
            if taken[a] > host.room[b] or taken[b] > host.room[a]:
                continue
            turned = domain.copy()
            for r in range(len(domain)):
                if domain[r] == a:
                    turned[r] = b
                elif domain[r] == b:
                    turned[r] = a
            if cost(host, turned) < now - least:
                domain[:] = turned
                taken[a], taken[b] = taken[b], taken[a]
                return True
    return False
