"""Eigenvalues of traffic and of distances together: a bound on bytes times distance.

Source: Hadley, Rendl and Wolkowicz, "A new lower bound via projection for the quadratic assignment problem",
Mathematics of Operations Research 17, 1992. It sees what no rank or cut alone shows: the ranks of a row and
those of a column of a transform cannot both be near each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from mapping.cost.bounds.partition import is_positive
from mapping.cost.bounds.parts import NOT_TRIED
from mapping.cost.kernels.nearest_flows import GuestArrays
from mapping.distances.distances import Distances
from registry.model import Bound, Floats, Ints, Longs

MAX_SIZE = 512
"""Largest number of ranks and of hosts, whatever the density of traffic."""
MAX_RANKS, MAX_HOSTS, DENSE = 4096, 2048, 16
"""The same if ranks have `DENSE` partners on average; with fewer, other arguments prove more."""
MAX_ALL, LARGEST = 2048, 48
"""Most ranks whose traffic has all eigenvalues computed; with more, so many of the largest are bounded."""
SHARES, SHARE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 0.3
"""Parts of a rank's bytes that are subtracted on the diagonal, and the one for more than `MAX_SIZE`."""
TOLERANCE = 1e-6
"""Relative error of eigenvalues by Lanczos."""
EVEN = 1e-12
"""Ranks whose bytes differ relatively by less are alike: then the diagonal makes no difference."""
MARGIN, FLOOR = 1e-4, 1e-9
"""Parts by which estimated eigenvalues are raised: of themselves, and of the sum of a row."""


def projection(guest: GuestArrays, distances: Distances, slots: Ints) -> Bound:
    """Return a bound on the sum of bytes times distance, at least 0.

    Args:
        distances: The smaller of both directions counts.
        slots (int32[h]): Slots of each host; those of one host are at distance 0.

    Notes:
        With bytes ``A`` (ranks without traffic fill the free slots) and distances ``D`` the cost of a
        permutation ``X`` of slots is half the trace of ``A X D X'``. The part of both matrices along the
        constant vector depends on sums of rows only, whose least product is that of sorted sums. The other
        parts have the eigenvalues of the projected matrices, and a permutation is orthogonal there, so that
        their product is at least that of eigenvalues sorted against each other. Distances of a slot from
        itself are 0, so the diagonal of ``A`` costs nothing: the part of each rank's bytes there that gives
        the highest bound is used. Slots of one host are one row of ``D``, and ranks without traffic one of
        ``A``, weighted by their number: all other eigenvalues of these are 0.
    """
    ranks, hosts = len(guest.ptr) - 1, len(slots)
    dense = len(guest.head) >= DENSE * ranks
    for size, of, most in ((ranks, "ranks", MAX_RANKS), (hosts, "hosts", MAX_HOSTS)):
        if size > (most if dense else MAX_SIZE):
            proof = f"{NOT_TRIED}projection: {size} {of}, more than {most if dense else MAX_SIZE}"
            return Bound(value=0.0, proof=proof, name="projection")
    count = int(slots.sum())
    far, traffic = _distances(distances, slots), _traffic(guest, count)
    sums, own, eigenvalues = far.row_sums(), traffic.row_sums(), far.eigenvalues()
    alike, value = float(np.ptp(own)) <= EVEN * float(own.max()), 0.0
    for share in SHARES[:1] if alike else SHARES if max(ranks, hosts) <= MAX_SIZE else (SHARE,):
        left = (1.0 - share) * own
        along = float(np.sort(left) @ np.sort(sums)[::-1]) * 2 / count
        along -= float(left.sum() * sums.sum()) / count**2
        np.fill_diagonal(traffic.matrix, -share * own[: len(traffic.unit)])
        value = max(value, (_least_product(traffic, *eigenvalues) + along) / 2)
    return Bound(
        value=value,
        proof="projection: the eigenvalues of bytes and of distances, the largest with the smallest",
        name="projection",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Across:
    """A symmetric matrix of all slots, of which the part across the constant vector counts."""

    matrix: Floats
    """float64[m, m]: Slots that are alike are one row and column, times the root of their number each."""
    number: Longs
    """int64[m]: Number of slots of each row."""

    @property
    def unit(self) -> Floats:
        """The constant vector (float64[m]), of length 1."""
        return np.asarray(np.sqrt(self.number / self.number.sum()))

    def row_sums(self) -> Floats:
        """Return the sum of each row of the matrix of all slots (float64[slots])."""
        root = np.sqrt(self.number)
        return np.repeat(self.matrix @ root / root, self.number)

    def trace(self) -> float:
        """Return the sum of all eigenvalues across the constant vector."""
        return float(np.trace(self.matrix) - self.unit @ self.matrix @ self.unit)

    def projected(self) -> Floats:
        """Return the matrix without the part along the constant vector (float64[m, m])."""
        unit, found = self.unit, self.matrix.copy()
        mean = found @ unit
        mean -= 0.5 * float(unit @ mean) * unit
        found -= np.outer(unit, mean)
        found -= np.outer(mean, unit)
        return found

    def eigenvalues(self) -> tuple[Floats, float]:
        """Return all eigenvalues, rising (float64[slots - 1]), and the largest error of one."""
        unit, across = self.unit, self.projected()
        lift = 1.0 + 2.0 * float(np.abs(across).sum(axis=1).max(initial=0.0))  # above all others
        across += lift * np.outer(unit, unit)
        values = eigvalsh(across, overwrite_a=True, check_finite=False)[:-1]
        zeros = np.zeros(int(self.number.sum()) - len(self.number))
        return np.sort(np.r_[values, zeros]), 4 * len(unit) * float(np.finfo(np.float64).eps) * lift

    def at_most(self) -> Floats:
        """Return what the eigenvalues across the constant vector are at most, falling (float64[slots - 1]).

        Those of Lanczos are only near eigenvalues, and some may be missing. But if multiples of the identity
        and of the vectors found, less the matrix, have a Cholesky factorisation, the eigenvalues of these
        multiples are larger than those of the matrix, one by one.
        """
        across, rows = self.projected(), float(np.abs(self.matrix).sum(axis=1).max())
        error = 8 * len(across) * float(np.finfo(np.float64).eps) * rows
        values, vectors = _near_largest(self)
        for kept in (len(values) - 1, 0) if len(values) else ():
            found, rest = vectors[:, :kept], max(float(values[kept]), 0.0) * (1.0 + MARGIN) + FLOOR * rows
            more = np.maximum(values[:kept] * (1.0 + MARGIN) - rest, 0.0)
            left = (found * more) @ found.T - across
            left[np.diag_indices(len(left))] += rest
            if is_positive(left):
                longest = 1.0 + float(np.linalg.norm(found.T @ found - np.eye(kept)))
                most = np.r_[rest + error + more * longest, np.full(len(left) - 1 - kept, rest + error)]
                return np.asarray(np.r_[most, np.zeros(int(self.number.sum()) - len(left))])
        return np.full(int(self.number.sum()) - 1, rows)


def _near_largest(across: _Across) -> tuple[Floats, Floats]:
    """Return estimates of the largest eigenvalues, falling, and of their vectors; none if Lanczos fails."""
    matrix, unit = csr_array(across.matrix), across.unit
    mean = matrix @ unit
    mean -= 0.5 * float(unit @ mean) * unit
    operator = LinearOperator(matrix.shape, lambda x: matrix @ x - unit * (mean @ x) - mean * (unit @ x))
    start = np.random.default_rng(0).standard_normal(len(unit))
    try:
        values, vectors = eigsh(operator, k=LARGEST, which="LA", v0=start, tol=TOLERANCE)
    except ArpackError:
        return np.zeros(0), np.zeros((len(unit), 0))
    return values[::-1], vectors[:, ::-1]


def _distances(distances: Distances, slots: Ints) -> _Across:
    """Return the smaller of both distances between slots; those of a host are alike."""
    far = distances.matrix()
    if not distances.symmetric:
        np.minimum(far, far.T, out=far)
    root = np.sqrt(slots)
    far *= root[:, None]
    far *= root
    return _Across(matrix=far, number=slots.astype(np.int64))


def _traffic(guest: GuestArrays, count: int) -> _Across:
    """Return the bytes between ranks, both directions together; free slots are alike."""
    ranks = len(guest.ptr) - 1
    number = np.ones(ranks, np.int64) if count == ranks else np.r_[np.ones(ranks, np.int64), count - ranks]
    found = np.zeros((len(number), len(number)))
    owner = np.repeat(np.arange(ranks), np.diff(guest.ptr))
    found[owner, guest.head] = guest.weight[guest.edge]
    np.fill_diagonal(found, 0.0)
    return _Across(matrix=found, number=number)


def _least_product(traffic: _Across, other: Floats, other_error: float) -> float:
    """Return what the trace of the product with distances is at least, in whatever order of slots.

    Args:
        other (float64[slots - 1]): Eigenvalues of the distances, rising.
        other_error: Largest error of one of them.

    Notes:
        If only upper limits of the traffic's eigenvalues are known, the largest eigenvalue of distances is
        subtracted from all of these, so that none is above 0 and higher ones of the traffic cost less. What
        that takes from the trace is known: the largest times the sum of the traffic's eigenvalues.
    """
    if len(traffic.number) > MAX_ALL:
        largest = float(other[-1]) + other_error
        return float(traffic.at_most() @ (other - other_error - largest)) + largest * traffic.trace()
    one, error = traffic.eigenvalues()
    wrong = float(np.abs(one).sum() * other_error + np.abs(other).sum() * error)
    return float(one @ other[::-1]) - wrong
