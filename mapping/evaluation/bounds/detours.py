"""Bound on the worst link by pairs of ranks with many bytes: several paths share them, which are longer.

If the worst link takes at most `t` seconds, a pair that sends `w` bytes is on two hosts between which a byte
takes at most ``t / w`` on the slowest link of its paths. On a torus, neighbours have one path of one link;
hosts with several paths are two links apart or more. So small times need many links, and all bytes times
links share the capacity of all cables: that takes at least `f(t)` seconds, which falls as `t` rises. The
worst link takes at least the smaller of `t` and `f(t)`, for any `t`; best where both are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from mapping.distances.distances import Distances
from mapping.distances.equivalent import hosts_routed_alike
from mapping.evaluation.bounds.cables import OBLIVIOUS, Cables
from mapping.evaluation.bounds.hop_bytes import host_kinds
from mapping.evaluation.bounds.network_parts import NOT_TRIED
from mapping.evaluation.kernels.detours import least_hop_bytes
from mapping.routing.routes import Routes
from registry.model import Bools, Bound, Floats, Ints, Longs, Profile

NAME = "detours"
NEAREST = 128
"""Hosts around each host whose paths are looked at; bytes may be on all others."""
MAX_PAIRS = 1_000_000
"""Most pairs of such hosts, and of ranks."""
SAMPLE = 4
"""Kinds of hosts that are looked at first: what they do not prove, all together do not either."""
VALUES = 64
"""Most different times and numbers of links; above, some are rounded down."""
EQUAL = 1e-9
"""Values closer than this, relatively, are one: sums of the same numbers in another order."""
STEPS = 40
"""Halvings of the range of times that can be proved."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """Pairs of ranks that exchange bytes, by rank, heaviest first.

    Attributes
    ----------
    ptr : int64[ranks + 1]
    bytes : float64[e]
        In both directions.
    larger : float64[e]
        In the direction with more bytes.
    """

    ptr: Longs
    bytes: Floats
    larger: Floats

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
    """Most slots near any of some hosts, by links and by the time of a byte.

    Attributes
    ----------
    links : float64[l]
        Links between hosts, rising from 0.
    seconds : float64[k]
        Time of a byte on the slowest link between hosts, rising from 0.
    slots : int64[l, k]
        Most slots within so many links between which a byte takes at most so long.
    """

    links: Floats
    seconds: Floats
    slots: Longs

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

    Parameters
    ----------
    rows : bool[m]
        The links of the network that the bytes may use.
    near : Distances
        Links of the network between the hosts.
    above : float
        Seconds that are proved already.
    """
    nothing = Bound(value=0.0, proof=f"{NAME}: nothing more is proved", name=NAME)
    if routes.name.partition(":")[0] not in OBLIVIOUS or float(profile.bytes.sum()) == 0.0:
        return nothing
    pairs = _Pairs.of(profile)
    kinds = host_kinds(hosts_routed_alike(routes)[0], slots)[1]
    sample = kinds[np.unique(np.linspace(0, len(kinds) - 1, SAMPLE).astype(np.int64))]
    for hosts in (sample, kinds):
        looked_at = max(len(pairs.bytes), len(hosts) * min(NEAREST, len(slots) - 1))
        if looked_at > MAX_PAIRS:
            proof = f"{NOT_TRIED}{NAME}: {looked_at} pairs, more than {MAX_PAIRS}"
            return Bound(value=0.0, proof=proof, name=NAME)
        around = _around(routes, cables, slots, near, hosts)
        time = _largest(around, pairs, cables, rows, above)
        if time <= above:
            return nothing
    least = around.hop_bytes(pairs, time)
    proof = (
        f"{NAME}: faster, pairs with many bytes need several paths, and all bytes times links of the network"
        f" are at least {least:.6g}"
    )
    return Bound(value=time, proof=proof, name=NAME)


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
