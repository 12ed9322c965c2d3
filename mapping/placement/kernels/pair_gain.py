"""Exact gains of pair exchanges on distances between groups of hosts, and random exchanges that gain.

Distances come as `mapping.distances.distances.Distances` keeps them: ``between[group[h], group[k]]``
for two different hosts, 0 within a host. Both directions of every pair count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import kernel
from mapping.kernels.random_numbers import State, below
from mapping.placement.kernels.hop_bytes_search import SlotAssignment, swap_into
from registry.model import Floats, Ints, Longs

NOBODY = -1


class Partners(NamedTuple):
    """Partners of each rank, ascending, with the bytes of both directions."""

    indptr: Longs
    """int64[ranks + 1]."""
    partner: Ints
    """int32[e]."""
    sent: Floats
    received: Floats
    """float64[e]: Bytes from the rank to the partner, and back."""


def partners(ranks: int, source: Ints, target: Ints, bytes: Floats) -> Partners:
    """Return the partners of each rank.

    Args:
        source, target (int32[pairs]): Sending and receiving rank; no pair of a rank with itself.
        bytes (float64[pairs]):
    """
    rank = np.concatenate([source, target]).astype(np.int64)
    other = np.concatenate([target, source])
    none = np.zeros(len(bytes))
    key, inverse = np.unique(rank * ranks + other, return_inverse=True)
    sent = np.bincount(inverse, weights=np.concatenate([bytes, none]), minlength=len(key))
    received = np.bincount(inverse, weights=np.concatenate([none, bytes]), minlength=len(key))
    indptr = np.searchsorted(key, np.arange(ranks + 1, dtype=np.int64) * ranks)
    return Partners(indptr, (key % ranks).astype(np.int32), sent.astype(float), received.astype(float))


@kernel
def cost_at(
    table: Partners, group: Ints, between: Floats, host_of_rank: Ints,
    rank: int, host: int, other: int, other_host: int,
) -> float:  # fmt: skip
    """Return bytes times distance of `rank` on `host` with `other` (-1: none) on `other_host`."""
    indptr, partner, sent, received = table.indptr, table.partner, table.sent, table.received
    at, cost = group[host], 0.0
    for e in range(indptr[rank], indptr[rank + 1]):
        there = other_host if partner[e] == other else int(host_of_rank[partner[e]])
        if there != host:
            cost += sent[e] * between[at, group[there]] + received[e] * between[group[there], at]
    return cost


@kernel
def exchange_gain(
    table: Partners, group: Ints, between: Floats, host_of_rank: Ints, rank: int, other: int, there: int
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


class Course(NamedTuple):
    """State of a search by random exchanges."""

    failures: int
    """Failures in a row so far."""
    limit: int
    """Failures in a row at which the search stops."""
    least: float
    """An exchange that saves no more fails, because of rounding."""


@kernel
def exchange_at_random(
    table: Partners, group: Ints, between: Floats, assignment: SlotAssignment,
    course: Course, state: State, saved: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Exchange two random slots and keep what saves, until too many in a row fail or `saved` is full.

    Args:
        assignment: Changed in place; fixed ranks are exchanged too.
        saved (float64[n]): Filled with the gain of each exchange; 0 for a failure.

    Returns:
        Exchanges made, and failures in a row at the end.
    """
    failures, limit, least = course
    slot_host, rank_of_slot = assignment.slot_host, assignment.rank_of_slot
    slots, done = len(slot_host), 0
    while done < len(saved) and failures < limit:
        one = below(state, slots)
        two = below(state, slots - 1)
        two += two >= one
        if rank_of_slot[one] == NOBODY:
            one, two = two, one
        rank, other, there, gain = int(rank_of_slot[one]), int(rank_of_slot[two]), slot_host[two], 0.0
        if rank != NOBODY and slot_host[one] != there:
            gain = exchange_gain(table, group, between, assignment.host_of_rank, rank, other, there)
        if gain > least:
            swap_into(assignment, rank, two)
            failures, saved[done] = 0, gain
        else:
            failures, saved[done] = failures + 1, 0.0
        done += 1
    return done, failures
