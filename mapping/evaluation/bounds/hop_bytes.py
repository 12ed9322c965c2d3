"""Bounds on bytes times distance, under any convention of distance."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mapping.distances.grouped_distances import Distances
from mapping.evaluation.bounds.common_partners import common_partners
from mapping.evaluation.bounds.nearest_seats import least_seating
from mapping.evaluation.bounds.partition import Crossings
from mapping.evaluation.bounds.parts import NOT_TRIED
from registry.model import Bound, Ints, Longs

MAX_GROUPS = 4096
"""Most groups of hosts of which all distances are looked at together."""
SMALL = 0.005
"""A level that adds less than this part of the others together is not worth much work."""
ROWS = 512
"""Rows of such a table that are looked at together."""
MAX_LEVELS = 8
"""Most distances at which hosts are grouped."""


def least_cost(crossings: Crossings, distances: Distances, slots: Ints) -> list[Bound]:
    """Bounds on the sum of bytes times distance over all pairs of ranks.

    Parameters
    ----------
    crossings : Crossings
        Of the profile.
    distances : Distances
        Between the hosts; hop-bytes where they are links, else a mapping coefficient.
    slots : int32[h]
    """
    nearest_seats = "gilmore-lawler: at best each rank's heaviest partners sit on the seats nearest to it"
    return [
        Bound(
            value=least_seating(crossings.partners.both, distances, slots),
            proof=nearest_seats,
            name="gilmore-lawler",
        ),
        nested_cuts(crossings, distances, slots),
        common_partners(crossings.guest, distances, slots),
    ]


def nested_cuts(crossings: Crossings, distances: Distances, slots: Ints) -> Bound:
    """Groups of hosts within groups: what crosses between them pays the least distance between them.

    Notes
    -----
    For distances d_1 < d_2 < ... the cost is at least the sum of ``(d_k - d_(k - 1)) * c_k``, where c_k
    are the least bytes between groups that are d_k apart or more: each byte is counted at every level up
    to its own distance.
    """
    total, floor, said = 0.0, 0.0, []
    for distance, label in _levels(distances):
        enough = SMALL * total / (distance - floor) if distance > floor else np.inf
        between, argument = crossings.least(np.bincount(label, slots).astype(np.int64), above=enough)
        total, floor = total + (distance - floor) * between, distance
        said.append(f"{between:.6g} at {distance:.4g} or more (by {argument})")
    if distances.groups > MAX_GROUPS:
        said.append(f"larger distances {NOT_TRIED}{distances.groups} kinds of hosts, more than {MAX_GROUPS}")
    return Bound(value=total, proof=f"nested-cuts: least bytes: {', '.join(said)}", name="nested-cuts")


def _levels(distances: Distances) -> list[tuple[float, Longs]]:
    """Rising distances, and groups (by host) that are at least so far apart."""
    hosts = np.arange(len(distances))
    if len(distances) < 2:
        return []
    if distances.groups > MAX_GROUPS:
        return [(_nearest(distances), hosts)]
    between = np.minimum(distances.between, distances.between.T)
    alone = np.bincount(distances.group, minlength=len(between)) == 1
    np.fill_diagonal(between, np.where(alone, np.inf, np.diagonal(between)))
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
    """int64[h]: hosts joined by steps below a distance."""
    near = between < value
    _, label = connected_components(csr_array(near), directed=False)
    single = ~np.asarray(near.any(axis=1))  # hosts of such a group are not joined to each other either
    of_host = label[group].astype(np.int64)
    lone = single[group]
    of_host[lone] = len(between) + np.arange(int(lone.sum()))
    return np.unique(of_host, return_inverse=True)[1].astype(np.int64)


def _nearest(distances: Distances) -> float:
    """Least distance of two hosts, where there are too many to see all at once."""
    count = np.bincount(distances.group, minlength=distances.groups)
    table, value = (distances.between, None) if distances.codes is None else distances.codes
    least = np.inf
    for first in range(0, len(table), ROWS):
        rows = np.array(table[first : first + ROWS])
        at = first + np.arange(len(rows))
        lone = np.flatnonzero(count[at] == 1)  # such a group has no two hosts
        rows[lone, at[lone]] = rows.max()
        least = min(least, float(rows.min()))
    if value is not None:
        return float(value[int(least)])
    return least if np.isfinite(least) else 0.0
