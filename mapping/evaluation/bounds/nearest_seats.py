"""The bound of Gilmore and Lawler on bytes times distance.

Sources: Gilmore, "Optimal and suboptimal algorithms for the quadratic assignment problem", 1962; Lawler,
"The quadratic assignment problem", 1963.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from mapping.distances.grouped_distances import Distances
from mapping.evaluation.bounds.guest import Falling, guest_arrays
from mapping.evaluation.kernels import seats as kernel
from mapping.threads import each
from registry.model import Floats, Ints, Longs, Profile

MAX_ASSIGNMENT = 1 << 20
"""Most entries (ranks times slots) of a linear assignment problem that is solved; above, row minima."""
MAX_TABLE = 1 << 24
"""Most entries of a table of partners or of seats; above, only the heaviest partners count."""


def gilmore_lawler(profile: Profile, distances: Distances, slots: Ints) -> float:
    """Least sum of bytes times distance that any placement can reach.

    Parameters
    ----------
    distances : Distances
        Between the hosts. The smaller of both directions counts.
    slots : int32[h]
        Of each host.

    Notes
    -----
    A rank on a host pays at least its partners' weights, heaviest first, times the distances of the
    seats around it, nearest first. The least total over all ways to seat the ranks is a linear assignment
    problem; above `MAX_ASSIGNMENT` entries each rank takes its best seat instead. Hosts of one group with
    as many slots are one kind of seat, and kinds that see the same distances are one row.
    """
    guest = guest_arrays(profile)
    return least_seating(Falling.of(guest.ptr, guest.weight[guest.edge]), distances, slots)


def least_seating(partners: Falling, distances: Distances, slots: Ints) -> float:
    """`gilmore_lawler` of a guest whose ranks' partners are sorted: bytes of both directions."""
    kind, first = _kinds(distances, slots)
    ranks = len(partners.ptr) - 1
    weights = partners.table(MAX_TABLE // max(ranks, len(first))) / 2
    near, alike = np.unique(
        _nearest_first(distances, slots, first, weights.shape[1]), axis=0, return_inverse=True
    )
    if ranks * int(slots.sum()) > MAX_ASSIGNMENT:
        chunks = np.array_split(weights, -(-ranks * len(near) // MAX_TABLE))
        return float(sum((chunk @ near.T).min(axis=1).sum() for chunk in chunks))
    costs = (weights @ near.T)[:, np.repeat(alike[kind], slots)]
    return float(costs[linear_sum_assignment(costs)].sum())


def _kinds(distances: Distances, slots: Ints) -> tuple[Longs, Longs]:
    """Kind of each host, by group and slots, and the first host of each kind."""
    key = distances.group.astype(np.int64) * (int(slots.max()) + 1) + slots
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return kind.astype(np.int64), first.astype(np.int64)


def _nearest_first(distances: Distances, slots: Ints, hosts: Longs, count: int) -> Floats:
    """float64[hosts, count]: distances from a seat of each host to the nearest other seats, rising."""
    seats = np.bincount(distances.group, slots, distances.groups).astype(np.int64)
    found = np.zeros((len(hosts), count))
    if distances.codes is not None:
        code, value = distances.codes
        both, group, held = not distances.symmetric, distances.group[hosts].astype(np.int64), slots[hosts]
        each(
            lambda rows: kernel.nearest_seats(
                code, value, both, seats, group[rows], held[rows].astype(np.int64), found[rows]
            ),
            [slice(first, first + 256) for first in range(0, len(hosts), 256)],
        )
        return found
    for at, host in enumerate(hosts.tolist()):
        own, here = int(distances.group[host]), int(slots[host])
        far, free = np.minimum(*distances.ways(own)), seats.copy()
        free[own] -= here
        near = np.arange(len(free))
        if count + 2 < len(free):  # so many groups have enough seats, the host's own left out
            near = np.argpartition(far, count + 1)[: count + 2]
        near = near[np.argsort(far[near], kind="stable")]
        enough = int(np.searchsorted(np.cumsum(free[near]), count)) + 1
        around = np.repeat(far[near[:enough]], free[near[:enough]])
        found[at] = np.r_[np.zeros(min(here - 1, count)), around][:count]
    return found
