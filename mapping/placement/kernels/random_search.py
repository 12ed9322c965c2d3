"""The 2004 paper's search from one random mapping: exchange two values and keep improvements."""

from __future__ import annotations

import numba as nb

from mapping.kernels.random_numbers import State, below
from mapping.placement.kernels.pair_gain import Partners, exchange_gain
from registry.model import Floats, Ints

NOBODY = -1


@nb.njit(cache=True, nogil=True)
def exchange_at_random(
    table: Partners,
    group: Ints,
    between: Floats,
    slot_host: Ints,
    rank_of_slot: Ints,
    host_of_rank: Ints,
    state: State,
    failures: int,
    limit: int,
    least: float,
    saved: Floats,
) -> tuple[int, int]:
    """Make exchanges until a number in a row have failed, or `saved` is full.

    Parameters
    ----------
    rank_of_slot : int32[s]
        -1 free; changed in place, as is `host_of_rank`.
    failures, limit : int
        Failures in a row so far, and the number at which to stop.
    least : float
        An exchange that saves no more fails, because of rounding.
    saved : float64[n]
        Filled with the gain of each exchange; 0 for a failure.

    Returns
    -------
    int, int
        Exchanges made, and failures in a row at the end.
    """
    slots, done = len(slot_host), 0
    while done < len(saved) and failures < limit:
        one = below(state, slots)
        two = below(state, slots - 1)
        two += two >= one
        if rank_of_slot[one] == NOBODY:
            one, two = two, one
        rank, other = int(rank_of_slot[one]), int(rank_of_slot[two])
        here, there = slot_host[one], slot_host[two]
        gain = 0.0
        if rank != NOBODY and here != there:
            gain = exchange_gain(table, group, between, host_of_rank, rank, other, there)
        if gain > least:
            rank_of_slot[one], rank_of_slot[two] = other, rank
            host_of_rank[rank] = there
            if other != NOBODY:
                host_of_rank[other] = here
            failures, saved[done] = 0, gain
        else:
            failures, saved[done] = failures + 1, 0.0
        done += 1
    return done, failures
