"""Eigenvalues of traffic and of distances together: a bound on bytes times distance.

Source: Hadley, Rendl and Wolkowicz, "A new lower bound via projection for the quadratic assignment problem",
Mathematics of Operations Research 17, 1992. It sees what no rank or cut alone shows: the ranks of a row and
those of a column of a transform cannot both be near each other.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh

from mapping.distances.distances import Distances
from mapping.evaluation.bounds.network_parts import NOT_TRIED
from mapping.evaluation.kernels.nearest_flows import GuestArrays
from registry.model import Bound, Floats, Ints

MAX_SLOTS = 512
"""Largest number of slots for which all eigenvalues are computed, whatever the density of traffic."""
MAX_DENSE_SLOTS, DENSE = 2048, 16
"""The same if ranks have `DENSE` partners on average; with fewer, other arguments prove more."""
SHARES, SHARE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 0.3
"""Parts of a rank's bytes that are subtracted on the diagonal, and the one of more than `MAX_SLOTS` slots."""
EVEN = 1e-12
"""Ranks whose bytes differ relatively by less are alike: then the diagonal makes no difference."""


def projection(guest: GuestArrays, distances: Distances, slots: Ints) -> Bound:
    """Return a bound on the sum of bytes times distance, at least 0.

    Parameters
    ----------
    distances : Distances
        The smaller of both directions counts.
    slots : int32[h]
        Slots of each host; those of one host are at distance 0.

    Notes
    -----
    With bytes ``A`` (ranks without traffic fill the free slots) and distances ``D`` the cost of a permutation
    ``X`` of slots is half the trace of ``A X D X'``. The part of both matrices along the constant vector
    depends on sums of rows only, whose least product is that of sorted sums. The other parts have the
    eigenvalues of the projected matrices, and a permutation is orthogonal there, so that their product is at
    least that of eigenvalues sorted against each other. Distances of a slot from itself are 0, so the
    diagonal of ``A`` costs nothing: the part of each rank's bytes there that gives the highest bound is used.
    """
    count, ranks = int(slots.sum()), len(guest.ptr) - 1
    most = MAX_DENSE_SLOTS if len(guest.head) >= DENSE * ranks else MAX_SLOTS
    if count > most:
        proof = f"{NOT_TRIED}projection: {count} slots, more than {most}"
        return Bound(value=0.0, proof=proof, name="projection")
    far = distances.between_slots(slots)
    eigenvalues, error = _projected(far)
    traffic, value = _traffic(guest, count), 0.0
    own, sums = traffic.sum(axis=1), far.sum(axis=1)
    alike = float(np.ptp(own)) <= EVEN * float(own.max())
    for share in SHARES[:1] if alike else SHARES if count <= MAX_SLOTS else (SHARE,):
        np.fill_diagonal(traffic, -share * own)
        other, other_error = _projected(traffic)
        left = (1.0 - share) * own
        apart = float(np.sort(other) @ np.sort(eigenvalues)[::-1])
        along = float(np.sort(left) @ np.sort(sums)[::-1]) * 2 / count
        along -= float(left.sum() * sums.sum()) / count**2
        wrong = float(np.abs(other).sum() * error + np.abs(eigenvalues).sum() * other_error)
        value = max(value, (apart + along - wrong) / 2)
    return Bound(
        value=value,
        proof="projection: the eigenvalues of bytes and of distances, the largest with the smallest",
        name="projection",
    )


def _traffic(guest: GuestArrays, count: int) -> Floats:
    """Return the bytes between ranks, both directions together, with ranks without traffic up to a number."""
    owner = np.repeat(np.arange(len(guest.ptr) - 1), np.diff(guest.ptr))
    found = np.zeros((count, count))
    found[owner, guest.head] = guest.weight[guest.edge]
    np.fill_diagonal(found, 0.0)
    return found


def _projected(matrix: Floats) -> tuple[Floats, float]:
    """Return the eigenvalues across the constant vector (float64[n - 1]), and the largest error of one."""
    count = len(matrix)
    mean = matrix.mean(axis=1)
    across = matrix - mean[:, None] - mean + mean.mean()
    lift = 1.0 + 2.0 * float(np.abs(across).sum(axis=1).max(initial=0.0))  # above all others
    values = eigvalsh(across + lift / count, overwrite_a=True, check_finite=False)
    return values[:-1], 4 * count * float(np.finfo(np.float64).eps) * lift
