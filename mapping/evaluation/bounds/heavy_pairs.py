"""Bound on the worst link by pairs of ranks with many bytes: they need hosts with fast paths between them.

All bytes of a pair of ranks use the paths between their two hosts. So a time of `t` for the worst link needs,
for a pair that sends `w` bytes, two hosts between which a byte takes at most ``t / w`` on the slowest link of
its paths. Three arguments:

- stars: a rank's heaviest partner is at best on the fastest slot around it, the second on the second, ...;
- pairs: the `k` pairs with most bytes need `k` pairs of hosts;
- groups: ranks that are connected by pairs of at least `w` bytes are all in one group of hosts connected by
  paths of at most ``t / w``; if there are too many, one of the pairs is not.

This is the bottleneck assignment problem in place of Gilmore's and Lawler's sums. It counts where pairs have
one path, as on PERCS or dragonflies with shortest paths: averages over links see nothing of it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, triu
from scipy.sparse.csgraph import minimum_spanning_tree

from mapping.distances.distances import Distances
from mapping.distances.equivalent import hosts_routed_alike
from mapping.evaluation.bounds.cables import OBLIVIOUS, Cables
from mapping.evaluation.bounds.guest_graph import SortedBytes
from mapping.evaluation.bounds.hop_bytes import host_kinds, levels, nearest_first
from mapping.evaluation.bounds.network_parts import NOT_TRIED
from mapping.routing.routes import Routes
from registry.model import Bound, Floats, Ints, Profile

NAME = "heavy-pairs"
MAX_GROUPS = 2048
"""Largest number of kinds of hosts between which all paths are compared."""
SAMPLE = 4
"""Kinds of hosts whose paths are compared first: what they do not prove, others do not either."""


def heavy_pairs(profile: Profile, routes: Routes, cables: Cables, slots: Ints, above: float) -> Bound:
    """Return a bound on the worst link of the network, in seconds; 0 if it cannot be more than `above`.

    Parameters
    ----------
    cables : Cables
        Capacity of the links. Bytes of other jobs on them do not count here.
    above : float
        Seconds that are proved already.

    Notes
    -----
    Both directions of a pair are one: the larger number of bytes, on the faster of both ways.
    """
    nothing = Bound(value=0.0, proof=f"{NAME}: nothing more is proved", name=NAME)
    if routes.name.partition(":")[0] not in OBLIVIOUS or float(profile.bytes.sum()) == 0.0:
        return nothing
    group, first, second = hosts_routed_alike(routes)
    pairs = _Pairs(profile)
    sample = np.unique(np.linspace(0, len(first) - 1, SAMPLE).astype(np.int32))
    some = _seconds(routes, cables, sample, first, second)
    if min(pairs.most(np.repeat(one[group], slots)) for one in some) <= above:
        return nothing
    if len(first) > MAX_GROUPS:
        proof = f"{NOT_TRIED}{NAME}: {len(first)} kinds of hosts, more than {MAX_GROUPS}"
        return Bound(value=0.0, proof=proof, name=NAME)
    between = _seconds(routes, cables, np.arange(len(first), dtype=np.int32), first, second)
    near = Distances(name="seconds", group=group, between=np.minimum(between, between.T))
    value, argument = max(
        (pairs.stars(near, slots), "the heaviest partners of each rank on the fastest paths around it"),
        (pairs.all_together(near, slots), "the heaviest pairs of ranks on the fastest paths"),
        (pairs.groups(near, slots), "ranks connected by many bytes on hosts connected by fast paths"),
    )
    return Bound(value=value, proof=f"{NAME}: with {argument}", name=NAME)


class _Pairs:
    """Bytes of pairs of ranks, the larger of both directions.

    Parameters
    ----------
    profile : Profile
    """

    def __init__(self, profile: Profile) -> None:
        ranks = profile.ranks
        one_way = csr_array((profile.bytes, profile.partner, profile.indptr), shape=(ranks, ranks))
        both = one_way.maximum(one_way.T).tocsr()
        both.eliminate_zeros()
        self._sorted = SortedBytes.of(both.indptr.astype(np.int64), both.data)
        self._falling = -np.sort(-triu(both).data)
        self._needed = _connecting(both)

    def most(self, seconds: Floats) -> float:
        """Return the most that can be proved, by the times of a byte between one slot and all slots."""
        rising = np.sort(seconds)[1:]
        weights = self._sorted.table(len(rising))
        star = float((weights * rising[: weights.shape[1]]).max(initial=0.0))
        needed = self._needed[np.minimum(np.arange(len(rising)) + 1, len(self._needed) - 1)]
        return max(star, float((needed * rising).max(initial=0.0)))

    def stars(self, near: Distances, slots: Ints) -> float:
        """Return the bound by the heaviest partners of each rank."""
        _, hosts = host_kinds(near.group, slots)
        weights = self._sorted.table(int(slots.sum()) - 1)
        rising = np.unique(nearest_first(near, slots, hosts, weights.shape[1]), axis=0)
        best = np.full(len(weights), np.inf)
        for row in rising:
            np.minimum(best, (weights * row).max(axis=1), out=best)
        return float(best.max())

    def all_together(self, near: Distances, slots: Ints) -> float:
        """Return the bound by the number of pairs of slots between which a byte takes at most so long."""
        held = np.bincount(near.group, slots, near.groups)
        within = float((slots * (slots.astype(np.float64) - 1.0)).sum()) / 2
        number = np.triu(np.outer(held, held), 1)
        number[np.diag_indices(len(held))] = (
            held**2 - np.bincount(near.group, slots.astype(np.float64) ** 2, len(held))
        ) / 2
        order = np.argsort(near.between, axis=None, kind="stable")
        until = within + np.cumsum(number.ravel()[order])
        count = np.arange(1, len(self._falling) + 1)
        after = np.minimum(np.searchsorted(until, count), len(order) - 1)
        seconds = np.where(count <= within, 0.0, near.between.ravel()[order[after]])
        return float((self._falling * seconds).max(initial=0.0))

    def groups(self, near: Distances, slots: Ints) -> float:
        """Return the bound by ranks that are connected by many bytes."""
        found = 0.0
        for seconds, label in levels(near):
            size = int(np.bincount(label, slots).max())
            if size < len(self._needed):
                found = max(found, seconds * float(self._needed[size]))
        return found


def _connecting(both: csr_array) -> Floats:
    """Return the bytes (float64[ranks + 1]) such that pairs of at least these connect more than `i` ranks.

    0 if no pairs do.
    """
    tree = minimum_spanning_tree(csr_array((1.0 / both.data, both.indices, both.indptr), shape=both.shape))
    low, high = tree.nonzero()
    order = np.argsort(tree.data, kind="stable")
    needed, largest = np.zeros(both.shape[0] + 1), 1
    needed[0] = np.inf
    part, members = list(range(both.shape[0])), [[rank] for rank in range(both.shape[0])]
    for u, v, bytes in zip(
        low[order].tolist(), high[order].tolist(), (1.0 / tree.data[order]).tolist(), strict=True
    ):
        keep, drop = part[u], part[v]
        if len(members[keep]) < len(members[drop]):
            keep, drop = drop, keep
        for rank in members[drop]:
            part[rank] = keep
        members[keep] += members[drop]
        if len(members[keep]) > largest:
            needed[largest : len(members[keep])] = bytes
            largest = len(members[keep])
    return needed


def _seconds(routes: Routes, cables: Cables, rows: Ints, first: Ints, second: Ints) -> Floats:
    """Return the time of a byte (float64[k, g]) to some kinds of hosts from all, on the slowest link.

    0 from a kind to itself if it has one host.
    """
    kinds = np.arange(len(first))
    target = np.where(rows[:, None] == kinds, second, first[rows][:, None])
    row, column = np.nonzero(target >= 0)
    found = np.zeros(target.shape)
    found[row, column] = cables.pair_seconds(routes, first[column], target[row, column])
    return found
