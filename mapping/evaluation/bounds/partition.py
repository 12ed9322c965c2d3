"""How little a guest can send between groups of ranks of limited size, certified.

Three arguments; the highest of what they give holds, whatever ranks are put together:

- heaviest partners: in a group of `m` a rank keeps at most its `m - 1` heaviest;
- eigenvalues of the traffic's Laplacian (`mapping.evaluation.bounds.spectrum`; Donath and Hoffman, "Lower
bounds for
  the partitioning of graphs", 1973), for small or dense guests;
- flows: where every rank can send to its `k` nearest at once, within the bytes that ranks exchange, a group
  of `m` cuts at least `k - m + 1` of the `k` flows of each of its ranks (Leighton and Rao 1999). The flows
  need not be the best possible: any that fit prove their bound.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pymetis
from scipy.sparse import csr_matrix

from mapping.evaluation.bounds.guest import Partners, guest_arrays
from mapping.evaluation.bounds.spectrum import is_dense, spectrum
from mapping.evaluation.kernels.nearest_flows import GuestArrays, send_to_nearest
from mapping.placement.partition.bisection import weighted_graph
from registry.model import Floats, Longs, Profile

WORK, WORK_EACH = 60_000_000, 400
"""Partners that the flows of one bound look at, and so many more for each rank: ten million take 0.1 s."""
PASSES = 16
"""Most times that each rank sends."""
SPARSE = 8
"""No flows are sought where not even one rank in so many could send."""
PARTS = 32
"""Parts in which ranks send; the bound is looked at after each."""
ENOUGH = 0.4
"""No flows are sought where other arguments prove this part of all bytes, or, in dense guests, of what some
grouping sends."""
SMALL = 16
"""Smallest groups of which it is asked first what METIS finds."""
MAX_ASKED_RANKS = 32_768
"""Most ranks of which METIS is asked: of more, that takes as long as the flows."""
STEEPNESS, FADE = 8.0, 0.95
"""How lengths grow with load, and what is kept of older flows after each part."""


class Crossings:
    """Least bytes that a guest sends between groups, each size asked for computed once.

    Parameters
    ----------
    profile : Profile
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.guest = guest_arrays(profile)
        self.partners = Partners.of(profile, self.guest)
        self._quick: dict[bytes, tuple[float, str]] = {}
        self._found: dict[int, float] = {}
        self._by_flows: dict[int, float] = {}

    def least(self, slots: Longs, *, above: float = 0.0) -> tuple[float, str]:
        """Bytes between groups that take so many ranks each, and the argument in a few words.

        Parameters
        ----------
        slots : int64[g]
            >= 1.
        above : float
            Bytes that would be of use: flows are looked for only where METIS finds no groups with less.
        """
        filled = np.diff(np.minimum(np.cumsum(np.sort(slots)[::-1]), self.profile.ranks), prepend=0)
        sizes = filled[filled > 0]
        key, size = sizes.tobytes(), int(sizes.max())
        if key not in self._quick:
            self._quick[key] = self._quickly(sizes)
        best = self._quick[key]
        if size >= self.profile.ranks or best[0] >= float(self.guest.weight.sum()):
            return best
        if size not in self._by_flows and self._flows_may_help(size, best[0], above):
            self._by_flows[size] = flows(self.guest, size)
        found = max(best, (self._by_flows.get(size, 0.0), "flows to the nearest ranks"))
        return found if found[0] > 0 else (0.0, "no argument that is worth its time")

    def _quickly(self, sizes: Longs) -> tuple[float, str]:
        size = int(sizes.max())
        if size == 1:
            return float(self.guest.weight.sum()), "all bytes"
        return max(
            (heaviest_partners(self.partners, size), "each rank's lighter partners"),
            (eigenvalues(self._spectrum, sizes), "eigenvalues (Donath and Hoffman)"),
        )

    @cached_property
    def _spectrum(self) -> Floats:
        return spectrum(self.guest)

    def _flows_may_help(self, size: int, proved: float, above: float) -> bool:
        """Whether flows are worth their time where other arguments have proved so many bytes."""
        total, dense = float(self.guest.weight.sum()), bool(len(self._spectrum)) and is_dense(self.guest)
        if proved >= ENOUGH * total or _reach(self.guest, size) == 0:
            return False
        wanted = max(above, proved * 1.02, proved / ENOUGH if dense else 0.0)
        ask = size >= SMALL and self.profile.ranks <= MAX_ASKED_RANKS
        return not ask or self._reachable(size) > wanted

    def _reachable(self, size: int) -> float:
        """Bytes that some good grouping sends between groups of about this size; no bound is above it."""
        if size not in self._found:
            parts = -(-self.profile.ranks // size)
            graph = weighted_graph(
                self.profile.sender, self.profile.partner, self.profile.bytes, self.profile.ranks
            )
            part = grouped(graph, parts)
            apart = part[self.profile.sender] != part[self.profile.partner]
            self._found[size] = float(self.profile.bytes[apart].sum())
        return self._found[size]


def heaviest_partners(partners: Partners, size: int) -> float:
    """Bytes between groups of at most `size` ranks: all but each rank's ``size - 1`` heaviest partners."""
    both, sent, received = (
        float(one.beyond(size - 1).sum()) for one in (partners.both, partners.sent, partners.received)
    )
    return max(both / 2, sent, received)


def eigenvalues(least: Floats, sizes: Longs) -> float:
    """Bytes between groups of these sizes, by eigenvalues; 0 where none are known.

    Parameters
    ----------
    least : float64[k]
        Of the Laplacian, rising; the last holds for all others (`mapping.evaluation.bounds.spectrum`).
    sizes : int64[g]
        Falling.

    Notes
    -----
    With groups of m_1 >= m_2 >= ... ranks at least ``sum(m_i * e_i) / 2`` crosses, where e_1 <= e_2 <= ...
    are the eigenvalues of the Laplacian; full groups, largest first, give the least.
    """
    if not len(least) or len(sizes) < 2:
        return 0.0
    return float(least[np.minimum(np.arange(len(sizes)), len(least) - 1)] @ sizes) / 2


def flows(guest: GuestArrays, size: int) -> float:
    """Bytes between groups of at most `size` ranks, by flows from each rank to the ranks nearest to it.

    Notes
    -----
    Ranks send in a random order (seed 0), lengths of edges grow with what they carry, and older flows fade.
    After every part the bound is the worth of all flows over the largest load of an edge; the best counts.
    0 where the guest is too large for its groups.
    """
    ranks, reach, budget = len(guest.ptr) - 1, _reach(guest, size), _budget(guest, size)
    if reach == 0:
        return 0.0
    worth = np.maximum(np.arange(reach + 1.0) - (size - 1), 0.0)
    times = max(min(PASSES * ranks, budget // reach), PARTS)
    generator = np.random.default_rng(0)
    rounds = [generator.permutation(ranks) for _ in range(-(-times // ranks))]
    order = np.concatenate(rounds)[:times].astype(np.int32)
    load, best, total = np.zeros(len(guest.weight)), 0.0, 0.0
    for sources in np.array_split(order, PARTS):
        steepness = STEEPNESS * best / total if total > 0 else 0.0
        total, load = total * FADE, load * FADE
        total += send_to_nearest(guest, sources, worth, steepness, load)
        worst = float((load / guest.weight).max())
        best = max(best, total / worst if worst > 0 else 0.0)
    return best


def _budget(guest: GuestArrays, size: int) -> int:
    """Ranks that flows may reach in all: each looks at all its partners."""
    ranks = len(guest.ptr) - 1
    looked = (WORK + WORK_EACH * ranks) // (1 if size >= SMALL else 4)
    return int(looked * ranks / max(len(guest.head), ranks))


def _reach(guest: GuestArrays, size: int) -> int:
    """Others among which each rank looks for its nearest; 0 where no flows are sought."""
    ranks, budget = len(guest.ptr) - 1, _budget(guest, size)
    reach = int(min(max(0.4 * budget / ranks, 1.6 * size), 4 * size, ranks - 1))
    return 0 if reach < size or len(guest.weight) == 0 or SPARSE * budget < reach * ranks else reach


def grouped(graph: csr_matrix, parts: int) -> Longs:
    """int64[ranks]: nearly equal groups with few bytes between them, by METIS."""
    if parts < 2 or graph.nnz == 0:
        return np.zeros(graph.shape[0], np.int64)
    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
    _, part = pymetis.part_graph(
        parts, adjacency, eweights=graph.data, recursive=parts <= 8, options=pymetis.Options(seed=0)
    )
    return np.asarray(part, np.int64)
