"""Ranks with common partners cannot all be neighbours: a bound on bytes times distance for direct networks.

On a torus of even sizes two neighbouring hosts have no common neighbour, two others at most two. So an edge
of the guest whose ranks have `m` common partners costs more than its 2 m + 1 edges would separately, whatever
hosts they are on: on such a torus 4, 6, 10, 13, ... hops for m = 1, 2, 3, 4. Bytes are divided between such
sets and the stars of the bound of Gilmore and Lawler; any division is a bound, and an ascent on the dual of
that linear programme finds a good one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapping.distances.distances import Distances
from mapping.evaluation.bounds.network_parts import NOT_TRIED
from mapping.evaluation.kernels.common_partners import ascend, least_of_sets, list_sets
from mapping.evaluation.kernels.nearest_flows import GuestArrays
from registry.model import Bound, Floats, Ints

MAX_SLOTS = 2048
"""Largest number of slots whose distances are compared pair by pair."""
MAX_ENTRIES = 4_000_000
"""Largest number of edges in all sets together."""
COMMON = 6
"""Largest number of common partners in a set."""
ROUNDS, STEP = 250, 0.05


def common_partners(guest: GuestArrays, distances: Distances, slots: Ints) -> Bound:
    """Return a bound on the sum of bytes times distance; 0 if sets cost no more than their edges separately.

    Parameters
    ----------
    distances : Distances
        The smaller of both directions counts.
    slots : int32[h]
        Slots of each host; those of one host are at distance 0.
    """
    nothing = Bound(value=0.0, proof="common-partners: nothing is proved", name="common-partners")
    partners = int(np.diff(guest.ptr).max())
    if int(slots.sum()) < 3 or len(guest.weight) == 0:
        return nothing
    if int(slots.sum()) > MAX_SLOTS:
        return replace(
            nothing, proof=f"{NOT_TRIED}common-partners: {int(slots.sum())} slots, more than {MAX_SLOTS}"
        )
    matrix = distances.between_slots(slots)
    rising = np.sort(matrix + np.diag(np.full(len(matrix), np.inf)), axis=1)[:, : max(partners, COMMON)]
    least = _least(matrix, rising)
    if bool((least <= rising.min() * (2 * np.arange(len(least)) + 1)).all()):
        return nothing
    sets, filled = list_sets(guest, len(least) - 1, np.zeros(0, np.int64), np.zeros(0, np.int32))
    if filled > MAX_ENTRIES:
        return replace(nothing, proof=f"{NOT_TRIED}common-partners: {filled} edges, more than {MAX_ENTRIES}")
    if filled == 0:
        return nothing
    ptr, edges = np.zeros(sets + 1, np.int64), np.zeros(filled, np.int32)
    list_sets(guest, len(least) - 1, ptr, edges)
    cost = least[(np.diff(ptr) - 1) // 2]
    value = ascend(guest, ptr, edges, cost, rising.min(axis=0), ROUNDS, STEP)
    sums = ", ".join(f"{one:.4g}" for one in least[1:])
    return Bound(
        value=value,
        proof=f"common-partners: two ranks and 1, 2, ... common partners are no nearer than {sums} in all",
        name="common-partners",
    )


def _least(matrix: Floats, rising: Floats) -> Floats:
    """Return the least sum of distances (float64[m + 1]) of two hosts and of m others from both."""
    most = min(COMMON, len(matrix) - 2)
    least = np.full(most + 1, np.inf)
    least[0] = rising.min()
    sums = np.ascontiguousarray(np.cumsum(rising[:, :most], axis=1))
    least_of_sets(np.ascontiguousarray(matrix[:64, :64]) if len(matrix) > 64 else matrix, sums, least)
    if len(matrix) > 64:  # values from some of the hosts exclude most pairs
        least_of_sets(matrix, sums, least)
    return least
