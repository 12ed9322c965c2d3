"""Certified least bytes that a guest sends between groups of ranks of limited size.

Four arguments; each holds for every grouping, and the highest result is used:

- heaviest partners: in a group of `m` a rank keeps at most its `m - 1` heaviest;
- small groups: all connected groups of a few ranks are enumerated (``small_groups``);
- eigenvalues of the traffic's Laplacian (Donath and Hoffman, "Lower bounds for the partitioning of graphs",
  1973; Fiedler, "Algebraic connectivity of graphs", 1973), for small or dense guests, each certified from
  below: a Cholesky factorisation that completes proves a matrix to be positive definite up to rounding (Rump,
  "Verification of positive definiteness", BIT 46, 2006);
- flows: if every rank can send to its `k` nearest at once, within the bytes that ranks exchange, a group of
`m`
  cuts at least `k - m + 1` of the `k` flows of each of its ranks (Leighton and Rao 1999). The flows need not
  be the best possible: any feasible flows prove their bound.

Bounds from all connected groups of a few ranks: the bytes that they can keep, and that they must send.

The bytes within a group are those within its connected parts, so that connected groups are enough. If every
rank has a price, and no group of at most `m` ranks keeps more bytes than the prices of its ranks, then groups
of at most `m` keep no more than all prices together. This is the dual of the linear programme that packs
ranks into groups (set packing); any such prices prove their bound, and prices are lowered one by one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pymetis
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from scipy.sparse import csr_array, csr_matrix
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mapping.cost.bounds.parts import Partners, guest_arrays
from mapping.cost.kernels.nearest_flows import GuestArrays, send_to_nearest
from mapping.cost.kernels.small_groups import best_groups
from mapping.placement.methods.bisection import weighted_graph
from registry.model import Floats, Longs, Profile

MAX_SIZE = 8
"""Largest size of groups that are enumerated."""
MAX_ENUMERATED = 20_000_000
"""Largest number of groups of one enumeration; ten million take 0.3 s."""
GROUP_PASSES = 2
"""Number of times that the price of each rank is lowered."""


class SmallGroups:
    """Bytes that groups of few ranks keep and send."""

    def __init__(self, guest: GuestArrays) -> None:
        self.guest = guest
        self._too_many = MAX_SIZE + 1

    @cached_property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.guest.ptr) - 1

    def crossing(self, slots: Longs) -> float:
        """Return the least bytes between groups with these numbers of slots; 0 if not enumerated.

        Notes:
            If at most `N_s` ranks are in groups with `s` slots or more, the bytes that are kept are at most
            the sum over `s` of the `N_s` largest increases of a rank's part of the best group, from ``s - 1``
            to `s` slots.
        """
        size = int(min(slots.max(), self.ranks))
        best = self._best(size, np.zeros(self.ranks))
        if best is None:
            return 0.0
        parts = np.maximum.accumulate(best[:, 1:] / np.arange(1, size + 1), axis=1)
        rises, kept = -np.sort(-np.diff(parts, axis=1), axis=0), 0.0
        for s in range(2, size + 1):
            kept += float(rises[: int(slots[slots >= s].sum()), s - 2].sum())
        price = parts[:, -1].copy()
        for _ in range(GROUP_PASSES):
            best_groups(self.guest, size, price, True, MAX_ENUMERATED, _nothing(self.ranks, size))
        return float(self.guest.weight.sum()) - min(kept, float(price.sum()))

    def leaving(self, slots: Longs, bytes: Floats) -> Floats | None:
        """Return the least bytes (float64[ranks]) out of the group of each rank; None if not enumerated.

        Args:
            slots (int64[g]): Slots of each group.
            bytes (float64[ranks]): Bytes that each rank sends (or receives).

        Notes:
            If other groups have too few slots for all other ranks, a group has further ranks: the bytes of
            its connected parts add up.
        """
        best = self._best(int(slots.max()), bytes)
        if best is None:
            return None
        out = np.maximum(-best, 0.0)[:, 1:]
        sizes, others = np.arange(1, out.shape[1] + 1), self.ranks - int(slots.sum()) + int(slots.min())
        return np.asarray((out + _of_all_parts(out)[np.maximum(others - sizes, 0)]).min(axis=1))

    def least_leaving(self, fewest: int, size: int, bytes: Floats) -> float:
        """Return the least bytes out of any group of `fewest` to `size` ranks; 0 if not enumerated."""
        best = self._best(size, bytes) if fewest > 0 else None
        return 0.0 if best is None else float(_of_all_parts(np.maximum(-best, 0.0)[:, 1:])[fewest])

    def _best(self, size: int, price: Floats) -> Floats | None:
        """Return the result of `best_groups`, or None if the groups are too large or too many."""
        size = min(size, self.ranks)
        if not 2 <= size < self._too_many or not len(self.guest.weight):
            return None
        best = _nothing(self.ranks, size)
        if best_groups(self.guest, size, price, False, MAX_ENUMERATED, best) > MAX_ENUMERATED:
            self._too_many = size
            return None
        return best


def _of_all_parts(out: Floats) -> Floats:
    """Return the least bytes (float64[size + 1]) out of a group of `i` to `size` ranks.

    Args:
        out (float64[ranks, size]): Least bytes out of connected groups of 1, 2, ... ranks with each rank.
    """
    least, found = np.r_[0.0, out.min(axis=0)], np.zeros(out.shape[1] + 1)
    for count in range(1, len(found)):
        found[count] = min(least[s] + found[count - s] for s in range(1, count + 1))
    return np.asarray(np.minimum.accumulate(found[::-1])[::-1])


def _nothing(ranks: int, size: int) -> Floats:
    """Return a table that `best_groups` fills."""
    return np.full((ranks, size + 1), -np.inf)


WORK, WORK_EACH = 60_000_000, 400
"""Partners that the flows of one bound visit, and the additional number per rank: ten million take 0.1 s."""
PASSES = 16
"""Largest number of times that each rank sends."""
SPARSE = 8
"""No flows are computed if fewer than one rank in this number could send."""
PARTS = 32
"""Parts in which ranks send; the bound is evaluated after each."""
ENOUGH = 0.4
"""No flows are computed if other arguments prove this part of all bytes, or, in dense guests, of what some
grouping sends."""
SMALL = 16
"""Smallest size of groups for which METIS is tried before the flows."""
MAX_METIS_RANKS = 32_768
"""Largest number of ranks for which METIS is tried: above, it takes as long as the flows."""
STEEPNESS, FADE = 8.0, 0.95
"""Growth of lengths with load, and the part of older flows kept after each part."""
MAX_EIGEN_RANKS = 512
"""Largest number of ranks for which all eigenvalues are computed, whatever the density of traffic."""
MAX_DENSE_RANKS = 1024
"""The same if ranks have `DENSE` partners on average, since flows are poor then."""
MAX_FIEDLER_RANKS = 3072
"""Largest number of ranks for which, in dense guests, the second eigenvalue is bounded: 75 MB."""
DENSE = 32
MARGINS = (0.002, 0.02, 0.1, 0.3)
"""Parts by which the second eigenvalue is lowered below the estimate of Lanczos, which is too high."""


class Crossings:
    """Least bytes that a guest sends between groups; each group size is computed once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.guest = guest_arrays(profile)
        self.partners = Partners.of(profile, self.guest)
        self.small_groups = SmallGroups(self.guest)
        self._quick: dict[bytes, tuple[float, str]] = {}
        self._by_metis: dict[int, float] = {}
        self._by_flows: dict[int, float] = {}

    def least(self, slots: Longs, *, above: float = 0.0) -> tuple[float, str]:
        """Return the least bytes between groups with these numbers of slots, and the argument in a few words.

        Args:
            slots (int64[g]): Slots of each group, >= 1.
            above: Smallest useful result: flows are computed only if METIS finds no groups with fewer bytes.
        """
        slots = np.sort(slots)[::-1]
        filled = np.diff(np.minimum(np.cumsum(slots), self.profile.ranks), prepend=0)
        key, size = slots.tobytes(), int(filled.max())
        if key not in self._quick:
            self._quick[key] = self._without_flows(slots, filled[filled > 0])
        best = self._quick[key]
        if size >= self.profile.ranks or best[0] >= float(self.guest.weight.sum()):
            return best
        if size not in self._by_flows and self._flows_may_help(size, best[0], above):
            self._by_flows[size] = flows(self.guest, size)
        result = max(best, (self._by_flows.get(size, 0.0), "flows to the nearest ranks"))
        return result if result[0] > 0 else (0.0, "no argument that is worth its time")

    def _without_flows(self, slots: Longs, sizes: Longs) -> tuple[float, str]:
        size = int(sizes.max())
        if size == 1:
            return float(self.guest.weight.sum()), "all bytes"
        return max(
            (heaviest_partners(self.partners, size), "each rank's lighter partners"),
            (self.small_groups.crossing(slots), "all groups of few ranks"),
            (eigenvalues(self._spectrum, sizes), "eigenvalues (Donath and Hoffman)"),
        )

    @cached_property
    def _spectrum(self) -> Floats:
        return spectrum(self.guest)

    def _flows_may_help(self, size: int, proved: float, above: float) -> bool:
        """Return True if flows are worth their time after other arguments have proved `proved` bytes."""
        total, dense = float(self.guest.weight.sum()), bool(len(self._spectrum)) and is_dense(self.guest)
        if proved >= ENOUGH * total or _reach(self.guest, size) == 0:
            return False
        wanted = max(above, proved * 1.02, proved / ENOUGH if dense else 0.0)
        try_metis = size >= SMALL and self.profile.ranks <= MAX_METIS_RANKS
        return not try_metis or self._reachable(size) > wanted

    def _reachable(self, size: int) -> float:
        """Return the bytes that a good grouping sends between groups of about this size: an upper limit."""
        if size not in self._by_metis:
            parts = -(-self.profile.ranks // size)
            graph = weighted_graph(
                self.profile.sender, self.profile.partner, self.profile.bytes, self.profile.ranks
            )
            part = metis_groups(graph, parts)
            apart = part[self.profile.sender] != part[self.profile.partner]
            self._by_metis[size] = float(self.profile.bytes[apart].sum())
        return self._by_metis[size]


def heaviest_partners(partners: Partners, size: int) -> float:
    """Return bytes between groups of `size` ranks: all except each rank's ``size - 1`` heaviest partners."""
    both, sent, received = (
        float(one.beyond(size - 1).sum()) for one in (partners.both, partners.sent, partners.received)
    )
    return max(both / 2, sent, received)


def eigenvalues(least: Floats, sizes: Longs) -> float:
    """Return bytes between groups of these sizes by eigenvalues; 0 if no eigenvalues are known.

    Args:
        least (float64[k]): Eigenvalues of the Laplacian from `spectrum`, rising; the last holds for all
            others.
        sizes (int64[g]): Sizes in descending order.

    Notes:
        With groups of m_1 >= m_2 >= ... ranks at least ``sum(m_i * e_i) / 2`` crosses, where e_1 <= e_2 <=
        ... are the eigenvalues of the Laplacian; full groups, largest first, give the least.
    """
    if not len(least) or len(sizes) < 2:
        return 0.0
    return float(least[np.minimum(np.arange(len(sizes)), len(least) - 1)] @ sizes) / 2


def flows(guest: GuestArrays, size: int) -> float:
    """Return bytes between groups of at most `size` ranks, by flows from each rank to the nearest ranks.

    0 if the guest is too large for its groups.

    Notes:
        Ranks send in a random order (seed 0), lengths of edges grow with their load, and older flows fade.
        After every part the bound is the worth of all flows divided by the largest load of an edge; the best
        counts.
    """
    ranks, reach, budget = len(guest.ptr) - 1, _reach(guest, size), _budget(guest, size)
    if reach == 0:
        return 0.0
    worth = np.maximum(np.arange(reach + 1.0) - (size - 1), 0.0)
    times = max(min(PASSES * ranks, budget // reach), PARTS)
    generator = np.random.default_rng(0)
    rounds = [generator.permutation(ranks) for _ in range(-(-times // ranks))]
    order = np.concatenate(rounds)[:times].astype(np.int32)
    load, sent, best, total = np.zeros(len(guest.weight)), np.zeros(ranks), 0.0, 0.0
    for sources in np.array_split(order, PARTS):
        steepness = STEEPNESS * best / total if total > 0 else 0.0
        total, load = total * FADE, load * FADE
        total += send_to_nearest(guest, sources, worth, steepness, load, sent)
        worst = float((load / guest.weight).max())
        best = max(best, total / worst if worst > 0 else 0.0)
    return best


def _budget(guest: GuestArrays, size: int) -> int:
    """Return the total number of ranks that flows may reach; each visits all its partners."""
    ranks = len(guest.ptr) - 1
    visits = (WORK + WORK_EACH * ranks) // (1 if size >= SMALL else 4)
    return int(visits * ranks / max(len(guest.head), ranks))


def _reach(guest: GuestArrays, size: int) -> int:
    """Return the number of other ranks searched for the nearest of each rank; 0 if no flows are computed."""
    ranks, budget = len(guest.ptr) - 1, _budget(guest, size)
    reach = int(min(max(0.4 * budget / ranks, 1.6 * size), 4 * size, ranks - 1))
    return 0 if reach < size or len(guest.weight) == 0 or SPARSE * budget < reach * ranks else reach


def metis_groups(graph: csr_matrix, parts: int) -> Longs:
    """Return nearly equal groups (int64[ranks]) with few bytes between them, by METIS."""
    if parts < 2 or graph.nnz == 0:
        return np.zeros(graph.shape[0], np.int64)
    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
    _, part = pymetis.part_graph(
        parts, adjacency, eweights=graph.data, recursive=parts <= 8, options=pymetis.Options(seed=0)
    )
    return np.asarray(part, np.int64)


def spectrum(guest: GuestArrays) -> Floats:
    """Return lower bounds, rising, of the first eigenvalues of the Laplacian; the last holds for all others.

    Returns:
        float64[k]: Empty if nothing was computed: too many ranks for their density, or no bytes.
    """
    ranks, dense = len(guest.ptr) - 1, is_dense(guest)
    if len(guest.weight) == 0:
        return np.zeros(0)
    if ranks <= (MAX_DENSE_RANKS if dense else MAX_EIGEN_RANKS):
        return _all_eigenvalues(guest)
    return _second_eigenvalue(guest) if dense and ranks <= MAX_FIEDLER_RANKS else np.zeros(0)


def is_dense(guest: GuestArrays) -> bool:
    """Return True if ranks have many partners on average."""
    return len(guest.head) >= DENSE * (len(guest.ptr) - 1)


def _all_eigenvalues(guest: GuestArrays) -> Floats:
    """Return all eigenvalues of the Laplacian, lowered by possible rounding errors."""
    ranks, laplacian = len(guest.ptr) - 1, _laplacian(guest).toarray()
    error = ranks * np.finfo(np.float64).eps * 2 * float(laplacian.max(initial=0.0))
    values = eigvalsh(laplacian, overwrite_a=True, check_finite=False)
    return np.asarray(np.maximum(values - error, 0.0), np.float64)


def _second_eigenvalue(guest: GuestArrays) -> Floats:
    """Return 0 and the second eigenvalue as proved by a Cholesky factorisation (float64[2])."""
    ranks, laplacian = len(guest.ptr) - 1, _laplacian(guest)
    mean = float(laplacian.diagonal().mean())
    lift = 2.0 * mean  # lifts the eigenvalue 0, whose vector is constant, above the second
    lifted = LinearOperator(
        (ranks, ranks), lambda x: laplacian @ x + lift / ranks * x.sum(), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal(ranks)
    try:
        estimate = float(eigsh(lifted, k=1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False)[0])
    except ArpackNoConvergence:
        return np.zeros(0)
    error = 4 * ranks * np.finfo(np.float64).eps * 2 * ranks * mean  # twice the error of the trace
    for margin in MARGINS:
        proved = (1.0 - margin) * min(estimate, lift)
        matrix = laplacian.toarray()
        matrix += lift / ranks
        matrix[np.diag_indices(ranks)] -= proved + error
        if is_positive(matrix):
            return np.array([0.0, max(proved, 0.0)])
    return np.zeros(0)


def is_positive(matrix: Floats) -> bool:
    """Return True if a matrix has a Cholesky factorisation, up to rounding; it is overwritten."""
    try:
        cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def _laplacian(guest: GuestArrays) -> csr_array:
    """Return the Laplacian of the guest's traffic."""
    ranks = len(guest.ptr) - 1
    owner = np.repeat(np.arange(ranks), np.diff(guest.ptr))
    weight = guest.weight[guest.edge]
    degree = np.bincount(owner, weight, ranks)
    diagonal = np.arange(ranks)
    return csr_array(
        (np.r_[-weight, degree], (np.r_[owner, diagonal], np.r_[guest.head, diagonal])), shape=(ranks, ranks)
    )
