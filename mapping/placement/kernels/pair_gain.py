"""Exact gains of pair exchanges on distances between groups of hosts, in both directions of every pair.

Distances come as `mapping.distances.distances.Distances` keeps them: ``between[group[h], group[k]]``
for two different hosts, 0 within a host.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from registry.model import Floats, Ints, Longs


class Partners(NamedTuple):
    """Partners of each rank, ascending, with the bytes of both directions.

    Attributes
    ----------
    indptr : int64[ranks + 1]
    partner : int32[e]
    sent, received : float64[e]
        Bytes from the rank to the partner, and back.
    """

    indptr: Longs
    partner: Ints
    sent: Floats
    received: Floats


def partners(ranks: int, source: Ints, target: Ints, bytes: Floats) -> Partners:
    """Return the partners of each rank.

    Parameters
    ----------
    source, target : int32[pairs]
        Sending and receiving rank; no pair of a rank with itself.
    bytes : float64[pairs]
    """
    rank = np.concatenate([source, target]).astype(np.int64)
    other = np.concatenate([target, source])
    none = np.zeros(len(bytes))
    key, inverse = np.unique(rank * ranks + other, return_inverse=True)
    sent = np.bincount(inverse, weights=np.concatenate([bytes, none]), minlength=len(key))
    received = np.bincount(inverse, weights=np.concatenate([none, bytes]), minlength=len(key))
    indptr = np.searchsorted(key, np.arange(ranks + 1, dtype=np.int64) * ranks)
    return Partners(indptr, (key % ranks).astype(np.int32), sent.astype(float), received.astype(float))


@nb.njit(cache=True)
def cost_at(
    table: Partners,
    group: Ints,
    between: Floats,
    host_of_rank: Ints,
    rank: int,
    host: int,
    other: int,
    other_host: int,
) -> float:
    """Return bytes times distance of `rank` on `host` with `other` (-1: none) on `other_host`."""
    indptr, partner, sent, received = table.indptr, table.partner, table.sent, table.received
    at, cost = group[host], 0.0
    for e in range(indptr[rank], indptr[rank + 1]):
        there = other_host if partner[e] == other else int(host_of_rank[partner[e]])
        if there != host:
            cost += sent[e] * between[at, group[there]] + received[e] * between[group[there], at]
    return cost


@nb.njit(cache=True)
def exchange_gain(
    table: Partners,
    group: Ints,
    between: Floats,
    host_of_rank: Ints,
    rank: int,
    other: int,
    there: int,
) -> float:
    """Return bytes times distance saved if `rank` goes to host `there` and `other` (-1: none) comes back."""
    here = int(host_of_rank[rank])
    saved = cost_at(table, group, between, host_of_rank, rank, here, -1, -1)
    saved -= cost_at(table, group, between, host_of_rank, rank, there, other, here)
    if other >= 0:
        # The pair's own edge is counted on the first rank's side alone.
        saved += cost_at(table, group, between, host_of_rank, other, there, rank, there)
        saved -= cost_at(table, group, between, host_of_rank, other, here, rank, here)
    return saved
