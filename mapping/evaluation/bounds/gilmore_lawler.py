"""The bound of Gilmore and Lawler on bytes times distance.

Sources: Gilmore, "Optimal and suboptimal algorithms for the quadratic assignment problem", 1962; Lawler,
"The quadratic assignment problem", 1963.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from mapping.distances.distances import Distances
from mapping.evaluation.bounds.guest_graph import SortedBytes, guest_arrays
from mapping.evaluation.kernels import nearest_slots as kernel
from mapping.threads import each
from registry.model import Floats, Ints, Longs, Profile

MAX_ASSIGNMENT = 1 << 20
"""Largest number of entries (ranks times slots) of a linear assignment problem; above, row minima are
used."""
MAX_TABLE = 1 << 24
"""Largest number of entries of a table of partners or slots; above, only the heaviest partners count."""


def gilmore_lawler(profile: Profile, distances: Distances, slots: Ints) -> float:
    """Return the least sum of bytes times distance that any placement can reach.

    Parameters
    ----------
    distances : Distances
        Distances between the hosts. The smaller of both directions counts.
    slots : int32[h]
        Slots of each host.

    Notes ----- A rank on a host pays at least the weights of its partners, heaviest first, times the
    distances of the slots around it, nearest first. The least total over all assignments of ranks to slots is
    a linear assignment problem; above `MAX_ASSIGNMENT` entries each rank takes its best slot instead. Hosts
    of one group with the same number of slots are one kind, and kinds with the same distances are one row.
    """
    guest = guest_arrays(profile)
    return least_assignment(SortedBytes.of(guest.ptr, guest.weight[guest.edge]), distances, slots)


def least_assignment(partners: SortedBytes, distances: Distances, slots: Ints) -> float:
    """Return `gilmore_lawler` of a guest from sorted bytes in both directions."""
    kind, first = _kinds(distances, slots)
    ranks = len(partners.ptr) - 1
    weights = partners.table(MAX_TABLE // max(ranks, len(first))) / 2
    near, row = np.unique(
        _nearest_first(distances, slots, first, weights.shape[1]), axis=0, return_inverse=True
    )
    if ranks * int(slots.sum()) > MAX_ASSIGNMENT:
        chunks = np.array_split(weights, -(-ranks * len(near) // MAX_TABLE))
        return float(sum((chunk @ near.T).min(axis=1).sum() for chunk in chunks))
    costs = (weights @ near.T)[:, np.repeat(row[kind], slots)]
    return float(costs[linear_sum_assignment(costs)].sum())


def _kinds(distances: Distances, slots: Ints) -> tuple[Longs, Longs]:
    """Return the kind of each host, by group and slots, and the first host of each kind."""
    key = distances.group.astype(np.int64) * (int(slots.max()) + 1) + slots
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return kind.astype(np.int64), first.astype(np.int64)


def _nearest_first(distances: Distances, slots: Ints, hosts: Longs, count: int) -> Floats:
    """Return distances from a slot of each host to the nearest others, rising (float64[hosts, count])."""
    group_slots = np.bincount(distances.group, slots, distances.groups).astype(np.int64)
    found = np.zeros((len(hosts), count))
    if distances.codes is not None:
        code, value = distances.codes
        both, group, held = not distances.symmetric, distances.group[hosts].astype(np.int64), slots[hosts]
        each(
            lambda rows: kernel.nearest_slots(
                code, value, both, group_slots, group[rows], held[rows].astype(np.int64), found[rows]
            ),
            [slice(first, first + 256) for first in range(0, len(hosts), 256)],
        )
        return found
    for index, host in enumerate(hosts.tolist()):
        own, here = int(distances.group[host]), int(slots[host])
        far, free = np.minimum(*distances.rows(own)), group_slots.copy()
        free[own] -= here
        near = np.arange(len(free))
        if count + 2 < len(free):  # these groups have enough slots, without the host's own
            near = np.argpartition(far, count + 1)[: count + 2]
        near = near[np.argsort(far[near], kind="stable")]
        enough = int(np.searchsorted(np.cumsum(free[near]), count)) + 1
        around = np.repeat(far[near[:enough]], free[near[:enough]])
        found[index] = np.r_[np.zeros(min(here - 1, count)), around][:count]
    return found
