"""Bound on the worst link by pairs of ranks with many bytes: several paths share them, which are longer.

If the worst link takes at most `t` seconds, a pair that sends `w` bytes is on two hosts between which a byte
takes at most ``t / w`` on the slowest link of its paths. On a torus, neighbours have one path of one link;
hosts with several paths are two links apart or more. So small times need many links, and all bytes times
links share the capacity of all cables: that takes at least `f(t)` seconds, which falls as `t` rises. The
worst link takes at least the smaller of `t` and `f(t)`, for any `t`; best where both are equal.

Bound on the worst link by pairs of ranks with many bytes: they need hosts with fast paths between them.

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

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, triu
from scipy.sparse.csgraph import minimum_spanning_tree

from mapping.cost.bounds.hop_bytes import host_kinds, levels, nearest_first
from mapping.cost.bounds.parts import NOT_TRIED, OBLIVIOUS, Cables, SortedBytes
from mapping.cost.kernels.detours import least_hop_bytes
from mapping.distances.distances import Distances, hosts_routed_alike
from mapping.routing.routes import Routes
from registry.model import Bools, Bound, Floats, Ints, Longs, Profile

DETOURS = "detours"
NEAREST = 128
"""Hosts around each host whose paths are looked at; bytes may be on all others."""
MAX_PAIRS = 1_000_000
"""Most pairs of such hosts, and of ranks."""
DETOUR_SAMPLE = 4
"""Kinds of hosts that are looked at first: what they do not prove, all together do not either."""
VALUES = 64
"""Most different times and numbers of links; above, some are rounded down."""
EQUAL = 1e-9
"""Values closer than this, relatively, are one: sums of the same numbers in another order."""
STEPS = 40
"""Halvings of the range of times that can be proved."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """Pairs of ranks that exchange bytes, by rank, heaviest first."""

    ptr: Longs
    """int64[ranks + 1]."""
    bytes: Floats
    """float64[e]: In both directions."""
    larger: Floats
    """float64[e]: In the direction with more bytes."""

    @classmethod
    def of(cls, profile: Profile) -> _Pairs:
        """Return the pairs of a profile."""
        shape = (profile.ranks, profile.ranks)
        sent = csr_array((profile.bytes, profile.partner, profile.indptr), shape=shape)
        both, larger = (sent + sent.T).tocsr(), sent.maximum(sent.T).tocsr()
        for matrix in (both, larger):
            matrix.eliminate_zeros()
            matrix.sort_indices()
        ptr = both.indptr.astype(np.int64)
        order = np.lexsort((-both.data, np.repeat(np.arange(profile.ranks), np.diff(ptr))))
        return cls(ptr=ptr, bytes=both.data[order], larger=larger.data[order])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Near:
    """Most slots near any of some hosts, by links and by the time of a byte."""

    links: Floats
    """float64[l]: Links between hosts, rising from 0."""
    seconds: Floats
    """float64[k]: Time of a byte on the slowest link between hosts, rising from 0."""
    slots: Longs
    """int64[l, k]: Most slots within so many links between which a byte takes at most so long."""

    def hop_bytes(self, pairs: _Pairs, time: float) -> float:
        """Return the least bytes times links of all pairs if the worst link takes at most `time` seconds."""
        allowed = np.searchsorted(self.seconds, time / pairs.larger * (1.0 + EQUAL), side="right") - 1
        return float(least_hop_bytes(pairs.ptr, pairs.bytes, allowed, self.slots, self.links))


def detours(
    profile: Profile,
    routes: Routes,
    cables: Cables,
    rows: Bools,
    slots: Ints,
    *,
    near: Distances,
    above: float,
) -> Bound:
    """Return a bound on the worst link of the network, in seconds; 0 if it cannot be more than `above`.

    Args:
        rows (bool[m]): The links of the network that the bytes may use.
        near: Links of the network between the hosts.
        above: Seconds that are proved already.
    """
    nothing = Bound(value=0.0, proof=f"{DETOURS}: nothing more is proved", name=DETOURS)
    if routes.name.partition(":")[0] not in OBLIVIOUS or float(profile.bytes.sum()) == 0.0:
        return nothing
    pairs = _Pairs.of(profile)
    kinds = host_kinds(hosts_routed_alike(routes)[0], slots)[1]
    sample = kinds[np.unique(np.linspace(0, len(kinds) - 1, DETOUR_SAMPLE).astype(np.int64))]
    for hosts in (sample, kinds):
        looked_at = max(len(pairs.bytes), len(hosts) * min(NEAREST, len(slots) - 1))
        if looked_at > MAX_PAIRS:
            proof = f"{NOT_TRIED}{DETOURS}: {looked_at} pairs, more than {MAX_PAIRS}"
            return Bound(value=0.0, proof=proof, name=DETOURS)
        around = _around(routes, cables, slots, near, hosts)
        time = _largest(around, pairs, cables, rows, above)
        if time <= above:
            return nothing
    least = around.hop_bytes(pairs, time)
    proof = (
        f"{DETOURS}: faster, pairs with many bytes need several paths, and all bytes times links of the "
        f"network are at least {least:.6g}"
    )
    return Bound(value=time, proof=proof, name=DETOURS)


def _largest(around: _Near, pairs: _Pairs, cables: Cables, rows: Bools, above: float) -> float:
    """Return the largest time `t` that is at most ``f(t)``, or `above` if that is larger."""

    def least(time: float) -> float:
        return cables.least_seconds(rows, around.hop_bytes(pairs, time))

    low, high = above, least(above)
    if high <= low:
        return above
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if least(middle) >= middle else (low, middle)
    return low


def _around(routes: Routes, cables: Cables, slots: Ints, near: Distances, hosts: Longs) -> _Near:
    """Return the slots near some hosts; those of each host's `NEAREST` hosts by their paths."""
    nearest, at_links = _nearest(near, hosts, min(NEAREST, len(slots) - 1))
    source, target = np.repeat(hosts, nearest.shape[1]).astype(np.int32), nearest.ravel().astype(np.int32)
    there, back = cables.pair_seconds(routes, source, target), cables.pair_seconds(routes, target, source)
    seconds = np.minimum(there, back).reshape(nearest.shape)
    at_seconds = _values(seconds)
    found = np.zeros((len(at_links), len(at_seconds)), np.int64)
    for host, close, time in zip(hosts.tolist(), nearest, seconds, strict=True):
        table, far = np.zeros(found.shape, np.int64), _links_from(near, host)
        others = slots.astype(np.int64)
        others[host], others[close] = 0, 0
        table[0, 0] = slots[host] - 1
        np.add.at(table, (_floor(at_links, far[close]), _floor(at_seconds, time)), slots[close])
        np.add.at(table[:, 0], _floor(at_links, far), others)
        np.maximum(found, table.cumsum(axis=0).cumsum(axis=1), out=found)
    return _Near(links=at_links, seconds=at_seconds, slots=found)


def _nearest(near: Distances, hosts: Longs, count: int) -> tuple[Longs, Floats]:
    """Return the hosts nearest to some hosts (int64[n, count]), and the numbers of links, rising."""
    nearest, links = np.empty((len(hosts), count), np.int64), np.zeros(0)
    for row, host in enumerate(hosts.tolist()):
        far = _links_from(near, host)
        links = np.union1d(links, far)
        far[host] = np.inf
        nearest[row] = np.argpartition(far, count - 1)[:count]
    return nearest, _values(links)


def _links_from(near: Distances, host: int) -> Floats:
    """Return the links between a host and all hosts (float64[h]), 0 to itself."""
    links = np.minimum(*near.rows(int(near.group[host])))[near.group]
    links[host] = 0.0
    return links


def _values(some: Floats) -> Floats:
    """Return 0 and the different values, rising; if there are too many, some of them."""
    rising = np.unique(np.r_[0.0, some.ravel()])
    rising = rising[np.isfinite(rising)]
    rising = rising[np.r_[True, np.diff(rising) > EQUAL * rising[1:]]]
    if len(rising) > VALUES:
        rising = rising[np.unique(np.linspace(0, len(rising) - 1, VALUES).astype(np.int64))]
    return np.asarray(rising)


def _floor(values: Floats, some: Floats) -> Longs:
    """Return the index of the largest value that is not above each."""
    return np.searchsorted(values, some, side="right") - 1


HEAVY_PAIRS = "heavy-pairs"
MAX_GROUPS = 2048
"""Largest number of kinds of hosts between which all paths are compared."""
HEAVY_SAMPLE = 4
"""Kinds of hosts whose paths are compared first: what they do not prove, others do not either."""


def heavy_pairs(profile: Profile, routes: Routes, cables: Cables, slots: Ints, above: float) -> Bound:
    """Return a bound on the worst link of the network, in seconds; 0 if it cannot be more than `above`.

    Args:
        cables: Capacity of the links. Bytes of other jobs on them do not count here.
        above: Seconds that are proved already.

    Notes:
        Both directions of a pair are one: the larger number of bytes, on the faster of both ways.
    """
    nothing = Bound(value=0.0, proof=f"{HEAVY_PAIRS}: nothing more is proved", name=HEAVY_PAIRS)
    if routes.name.partition(":")[0] not in OBLIVIOUS or float(profile.bytes.sum()) == 0.0:
        return nothing
    group, first, second = hosts_routed_alike(routes)
    pairs = _HeavyPairs(profile)
    sample = np.unique(np.linspace(0, len(first) - 1, HEAVY_SAMPLE).astype(np.int32))
    some = _seconds(routes, cables, sample, first, second)
    if min(pairs.most(np.repeat(one[group], slots)) for one in some) <= above:
        return nothing
    if len(first) > MAX_GROUPS:
        proof = f"{NOT_TRIED}{HEAVY_PAIRS}: {len(first)} kinds of hosts, more than {MAX_GROUPS}"
        return Bound(value=0.0, proof=proof, name=HEAVY_PAIRS)
    between = _seconds(routes, cables, np.arange(len(first), dtype=np.int32), first, second)
    near = Distances(name="seconds", group=group, between=np.minimum(between, between.T))
    value, argument = max(
        (pairs.stars(near, slots), "the heaviest partners of each rank on the fastest paths around it"),
        (pairs.all_together(near, slots), "the heaviest pairs of ranks on the fastest paths"),
        (pairs.groups(near, slots), "ranks connected by many bytes on hosts connected by fast paths"),
    )
    return Bound(value=value, proof=f"{HEAVY_PAIRS}: with {argument}", name=HEAVY_PAIRS)


class _HeavyPairs:
    """Bytes of pairs of ranks, the larger of both directions."""

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
