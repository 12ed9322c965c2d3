"""Bounds on bytes times distance, under any convention of distance.

Sources of the bound of Gilmore and Lawler: Gilmore, "Optimal and suboptimal algorithms for the quadratic
assignment problem", 1962; Lawler, "The quadratic assignment problem", 1963.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mapping.distances.distances import Distances
from mapping.evaluation.bounds.common_partners import common_partners
from mapping.evaluation.bounds.guest_graph import SortedBytes
from mapping.evaluation.bounds.network_parts import NOT_TRIED
from mapping.evaluation.bounds.partition import Crossings
from mapping.evaluation.bounds.projection import projection
from mapping.evaluation.kernels import nearest_slots as kernel
from mapping.threads import each
from registry.model import Bound, Floats, Ints, Longs

MAX_ASSIGNMENT = 1 << 20
"""Largest number of entries (ranks times slots) of a linear assignment; above, row minima are used."""
MAX_TABLE = 1 << 24
"""Largest number of entries of a table of partners or slots; above, only the heaviest partners count."""
MAX_GROUPS = 4096
"""Largest number of host groups of which all distances are used together."""
SMALL = 0.005
"""A level that adds less than this part of the sum of the others is not worth much work."""
ROWS = 512
"""Rows of a larger table that are processed together."""
MAX_LEVELS = 8
"""Largest number of distances at which hosts are grouped."""


def least_cost(crossings: Crossings, distances: Distances, slots: Ints) -> list[Bound]:
    """Return bounds on the sum of bytes times distance over all pairs of ranks.

    Parameters
    ----------
    crossings : Crossings
        Least bytes between groups of the profile's ranks.
    distances : Distances
        Distances between the hosts; the cost is hop-bytes if they are links, else a mapping coefficient.
    slots : int32[h]
    """
    proof = "gilmore-lawler: at best each rank's heaviest partners are on the slots nearest to it"
    return [
        Bound(
            value=least_assignment(crossings.partners.both, distances, slots),
            proof=proof,
            name="gilmore-lawler",
        ),
        nested_cuts(crossings, distances, slots),
        common_partners(crossings.guest, distances, slots),
        projection(crossings.guest, distances, slots),
    ]


def least_assignment(partners: SortedBytes, distances: Distances, slots: Ints) -> float:
    """Return the least sum of bytes times distance by the argument of Gilmore and Lawler.

    Parameters
    ----------
    partners : SortedBytes
        Bytes of each rank with its partners, both directions together.
    distances : Distances
        Distances between the hosts. The smaller of both directions counts.
    slots : int32[h]
        Slots of each host.

    Notes
    -----
    A rank on a host pays at least the weights of its partners, heaviest first, times the distances of the
    slots around it, nearest first. The least total over all assignments of ranks to slots is a linear
    assignment problem; above `MAX_ASSIGNMENT` entries each rank takes its best slot instead. Hosts of one
    group with the same number of slots are one kind, and kinds with the same distances are one row.
    """
    kind, first = host_kinds(distances.group, slots)
    ranks = len(partners.ptr) - 1
    weights = partners.table(MAX_TABLE // max(ranks, len(first))) / 2
    near, row = np.unique(
        nearest_first(distances, slots, first, weights.shape[1]), axis=0, return_inverse=True
    )
    if ranks * int(slots.sum()) > MAX_ASSIGNMENT:
        chunks = np.array_split(weights, -(-ranks * len(near) // MAX_TABLE))
        return float(sum((chunk @ near.T).min(axis=1).sum() for chunk in chunks))
    costs = (weights @ near.T)[:, np.repeat(row[kind], slots)]
    return float(costs[linear_sum_assignment(costs)].sum())


def host_kinds(group: Ints, slots: Ints) -> tuple[Longs, Longs]:
    """Return the kind of each host, by group and slots, and the first host of each kind."""
    key = group.astype(np.int64) * (int(slots.max()) + 1) + slots
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return kind.astype(np.int64), first.astype(np.int64)


def nearest_first(distances: Distances, slots: Ints, hosts: Longs, count: int) -> Floats:
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


def nested_cuts(crossings: Crossings, distances: Distances, slots: Ints) -> Bound:
    """Return a bound by groups within groups: bytes between groups pay the least distance between them.

    Notes
    -----
    For distances d_1 < d_2 < ... the cost is at least the sum of ``(d_k - d_(k - 1)) * c_k``, where c_k
    are the least bytes between groups that are d_k apart or more: each byte is counted at every level up
    to its own distance.
    """
    total, floor, found = 0.0, 0.0, []
    for distance, label in levels(distances):
        enough = SMALL * total / (distance - floor) if distance > floor else np.inf
        between, argument = crossings.least(np.bincount(label, slots).astype(np.int64), above=enough)
        total, floor = total + (distance - floor) * between, distance
        found.append(f"{between:.6g} at {distance:.4g} or more (by {argument})")
    if distances.groups > MAX_GROUPS:
        found.append(f"larger distances {NOT_TRIED}{distances.groups} kinds of hosts, more than {MAX_GROUPS}")
    return Bound(value=total, proof=f"nested-cuts: least bytes: {', '.join(found)}", name="nested-cuts")


def levels(distances: Distances) -> list[tuple[float, Longs]]:
    """Return rising distances, and groups (by host) that are at least that far apart."""
    hosts = np.arange(len(distances))
    if len(distances) < 2:
        return []
    if distances.groups > MAX_GROUPS:
        return [(_nearest(distances), hosts)]
    between = np.minimum(distances.between, distances.between.T)
    single = np.bincount(distances.group, minlength=len(between)) == 1
    np.fill_diagonal(between, np.where(single, np.inf, np.diagonal(between)))
    values = np.unique(between[np.isfinite(between)])
    if len(values) > MAX_LEVELS:
        values = values[np.linspace(0, len(values) - 1, MAX_LEVELS).astype(np.int64)]
    found = []
    for value in values.tolist():
        label = _apart(between, distances.group, value)
        if int(label.max()) == 0:
            break
        found.append((value, label))
    return found


def _apart(between: np.ndarray[tuple[int, int], np.dtype[np.float64]], group: Ints, value: float) -> Longs:
    """Return groups of hosts (int64[h]) connected by steps below a distance."""
    near = between < value
    _, label = connected_components(csr_array(near), directed=False)
    single = ~np.asarray(near.any(axis=1))  # hosts of such a group are not connected to each other either
    of_host = label[group].astype(np.int64)
    lone = single[group]
    of_host[lone] = len(between) + np.arange(int(lone.sum()))
    return np.unique(of_host, return_inverse=True)[1].astype(np.int64)


def _nearest(distances: Distances) -> float:
    """Return the least distance of two hosts, for tables too large to process at once."""
    count = np.bincount(distances.group, minlength=distances.groups)
    table, value = (distances.between, None) if distances.codes is None else distances.codes
    least = np.inf
    for first in range(0, len(table), ROWS):
        rows = np.array(table[first : first + ROWS])
        groups = first + np.arange(len(rows))
        lone = np.flatnonzero(count[groups] == 1)  # such a group has no two hosts
        rows[lone, groups[lone]] = rows.max()
        least = min(least, float(rows.min()))
    if value is not None:
        return float(value[int(least)])
    return least if np.isfinite(least) else 0.0
