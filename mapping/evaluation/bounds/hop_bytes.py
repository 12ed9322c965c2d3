"""Bounds on bytes times distance, under any convention of distance."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mapping.distances.distances import Distances
from mapping.evaluation.bounds.common_partners import common_partners
from mapping.evaluation.bounds.gilmore_lawler import least_assignment
from mapping.evaluation.bounds.network_parts import NOT_TRIED
from mapping.evaluation.bounds.partition import Crossings
from registry.model import Bound, Ints, Longs

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
    ]


def nested_cuts(crossings: Crossings, distances: Distances, slots: Ints) -> Bound:
    """Return a bound by groups within groups: bytes between groups pay the least distance between them.

    Notes
    -----
    For distances d_1 < d_2 < ... the cost is at least the sum of ``(d_k - d_(k - 1)) * c_k``, where c_k
    are the least bytes between groups that are d_k apart or more: each byte is counted at every level up
    to its own distance.
    """
    total, floor, levels = 0.0, 0.0, []
    for distance, label in _levels(distances):
        enough = SMALL * total / (distance - floor) if distance > floor else np.inf
        between, argument = crossings.least(np.bincount(label, slots).astype(np.int64), above=enough)
        total, floor = total + (distance - floor) * between, distance
        levels.append(f"{between:.6g} at {distance:.4g} or more (by {argument})")
    if distances.groups > MAX_GROUPS:
        levels.append(
            f"larger distances {NOT_TRIED}{distances.groups} kinds of hosts, more than {MAX_GROUPS}"
        )
    return Bound(value=total, proof=f"nested-cuts: least bytes: {', '.join(levels)}", name="nested-cuts")


def _levels(distances: Distances) -> list[tuple[float, Longs]]:
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
