"""Parts of a network for cuts: leaf switches, pods, cliques, halves.

Any parts give valid bounds; these give good bounds on networks in common use.

The cables that traffic between the allocation's hosts can use, and the time that bytes need on them.

The guest graph for the bounds: the partners of each rank, heaviest first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mapping.cost.kernels.nearest_flows import GuestArrays
from mapping.cost.kernels.nearest_slots import sort_descending
from mapping.cost.kernels.pair_seconds import fill_seconds
from mapping.deadline import each
from mapping.distances.cost_model import Background
from mapping.distances.distances import Distances, hosts_routed_alike
from mapping.placement.methods.bisection import bisect, weighted_graph
from mapping.routing import shortest_paths
from mapping.routing.kernels.flows import new_scratch
from mapping.routing.network import attachment
from mapping.routing.routes import Routes
from registry.model import Allocation, Bools, Bound, Fabric, Floats, Ints, Longs, Profile

MAX_GROUPS = 2048
"""Largest number of host groups of which all distances are used together."""
MAX_TIERS = 4
"""Largest number of distances at which hosts are grouped by nearness, above the leaf switches."""
MAX_CLIQUE_WORK = 20_000_000
"""Largest number of arc pairs that are searched for densely cabled groups of vertices."""
MAX_BISECTED_ARCS = 100_000
"""Largest network that is bisected."""
BISECTIONS = 2
"""Number of bisections of the network: into 2 parts, then 4."""


NOT_TRIED = "not tried: "
"""Beginning of the proof of a bound of 0 if an argument was left out because of size."""


def not_tried(routes: Routes, near: Distances) -> list[Bound]:
    """Return bounds of 0 for cuts left out because the network is too large, each with the reason."""
    work, arcs = _clique_work(routes.fabric), int(_inner(routes.fabric).sum())
    sizes = (
        ("pod-cut", "pods", near.groups, "kinds of hosts", MAX_GROUPS),
        ("pod-cut", "densely cabled parts", work, "pairs of arcs", MAX_CLIQUE_WORK),
        ("bisection", "parts of 2 and of 4", arcs, "arcs", MAX_BISECTED_ARCS),
    )
    return [
        Bound(
            value=0.0, proof=f"{NOT_TRIED}{name} of {what}: {size:.6g} {of}, more than {most:.6g}", name=name
        )
        for name, what, size, of, most in sizes
        if size > most
    ]


def leaf_parts(routes: Routes, vertex: Longs) -> Longs | None:
    """Return the leaf switches of the hosts (int64[n]) as parts, -1 for others; None for direct networks.

    Args:
        vertex (int64[h]): Result of `host_vertex`, here and below.
    """
    fabric = routes.fabric
    if bool(fabric.forwards[routes.hosts].any()):
        return None
    part = np.full(len(fabric), -1, np.int64)
    leaves = np.unique(vertex)
    part[leaves] = np.arange(len(leaves))
    return part


def host_vertex(routes: Routes) -> Longs | None:
    """Return the forwarding vertex (int64[h]) that each host is attached to or is.

    None if a host has several such vertices or none.
    """
    fabric, ends = routes.fabric, routes.ends
    if bool((np.diff(ends.port_ptr[ends.rail_ptr]) == 0).any()):
        return None
    of_port = attachment(fabric, ends)
    direct = fabric.forwards[routes.hosts]
    of_port = np.where(direct[ends.port_host], routes.hosts[ends.port_host], of_port)
    first = of_port[ends.port_ptr[ends.rail_ptr[:-1]]]
    if bool((of_port < 0).any() or (of_port != first[ends.port_host]).any()):
        return None
    return np.asarray(first, np.int64)


def tiers(routes: Routes, near: Distances, vertex: Longs) -> list[Longs]:
    """Return parts of hosts nearer to each other than a distance, for each distance that separates parts."""
    if near.groups > MAX_GROUPS:
        return []
    between = np.minimum(near.between, near.between.T)
    found: list[Longs] = []
    for distance in np.unique(between)[1 : MAX_TIERS + 2]:
        count, label = connected_components(csr_array(between < distance), directed=False)
        if count == 1:
            break
        if 1 < count < near.groups:
            part = np.full(len(routes.fabric), -1, np.int64)
            part[vertex] = label[near.group]
            found.append(_grown(routes, part))
    return found


def _grown(routes: Routes, part: Longs) -> Longs:
    """Assign each switch in between to the part that has more than half of its known capacity."""
    fabric = routes.fabric
    tail, inner = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr)), _inner(fabric)
    tail, head, capacity = tail[inner], fabric.neighbour[inner], fabric.capacity[inner]
    parts, grown = int(part.max()) + 1, part.copy()
    for _ in range(3):
        known = grown[head] >= 0
        to = np.bincount(tail[known] * parts + grown[head[known]], capacity[known], len(fabric) * parts)
        table = to.reshape(len(fabric), parts)
        most, taken = table.argmax(axis=1), table.max(axis=1)
        clear = (taken > 0.5 * table.sum(axis=1)) & fabric.forwards & (grown < 0)
        if not clear.any():
            break
        grown[clear] = most[clear]
    return grown


def dense_parts(routes: Routes) -> Longs | None:
    """Return parts joined by arcs whose ends share many neighbours: cliques, such as dragonfly groups."""
    fabric = routes.fabric
    if _clique_work(fabric) > MAX_CLIQUE_WORK:
        return None
    forwards = np.flatnonzero(fabric.forwards)
    graph = csr_array(
        (np.ones(len(fabric.neighbour), np.float32), fabric.neighbour, fabric.indptr),
        shape=(len(fabric),) * 2,
    )[forwards][:, forwards]
    common = (graph @ graph).multiply(graph).tocsr()
    if common.nnz == 0:
        return None
    common.data = (common.data >= 0.5 * common.data.max()).astype(np.float32)
    common.eliminate_zeros()
    count, label = connected_components(common, directed=False)
    if not 1 < count < len(forwards):
        return None
    part = np.full(len(fabric), -1, np.int64)
    part[forwards] = label
    return part


def bisections(routes: Routes, allocation: Allocation, vertex: Longs) -> list[tuple[int, Longs]]:
    """Return the network cut into 2 parts, then 4, with equal slots in each and little capacity between."""
    fabric = routes.fabric
    tail, inner = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr)), _inner(fabric)
    if not 0 < int(inner.sum()) <= MAX_BISECTED_ARCS:
        return []
    graph = weighted_graph(tail[inner], fabric.neighbour[inner], fabric.capacity[inner], len(fabric))
    weight = np.bincount(vertex, allocation.slots, len(fabric)).astype(np.int64)
    forwards = np.flatnonzero(fabric.forwards)
    part = np.where(fabric.forwards, 0, -1)
    found: list[tuple[int, Longs]] = []
    for level in range(1, BISECTIONS + 1):
        cut = part.copy()
        for one in range(1 << (level - 1)):
            inside = forwards[part[forwards] == one]
            if int(weight[inside].sum()) < 2:
                return found
            first = bisect(graph[inside][:, inside], weight[inside], 0.5, seed=0, cuts=4, slack=0.02)
            cut[inside] = 2 * one + np.where(first, 0, 1)
        part = cut
        found.append((1 << level, part))
    return found


def _inner(fabric: Fabric) -> Bools:
    """Return the arcs (bool[arcs]) between vertices that forward."""
    return np.repeat(fabric.forwards, np.diff(fabric.indptr)) & fabric.forwards[fabric.neighbour]


def _clique_work(fabric: Fabric) -> float:
    """Return the number of pairs of arcs that leave the same vertex, over all forwarding vertices."""
    tail = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr))
    return float((np.bincount(tail[_inner(fabric)], minlength=len(fabric)) ** 2.0).sum())


MAX_PAIRS = 4_000_000
"""Largest number of host pairs (hosts with equal routes counted once) whose routes are searched."""
PAIRS = 1 << 16
"""Pairs of hosts whose paths are compared together."""
OBLIVIOUS = ("shortest-paths", "tables", "dimension-order", "up-down")
"""Routings in which the paths of a pair do not depend on other traffic."""
ON_SHORTEST = ("ecmp", "least-loaded")
"""Routings that choose among all shortest paths."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cables:
    """The links of a fabric that the allocation's traffic can use."""

    usable: Bools
    """bool[m]: True for rows of ``fabric.links`` that some pair of the hosts may load."""
    capacity: Floats
    """float64[m]: Bytes/s, reduced by background."""
    background: Floats
    """float64[m]: Bytes of other jobs."""

    def least_seconds(self, rows: Bools, bytes: float) -> float:
        """Return the least time of the worst of some links over which the given bytes are spread.

        In `t` seconds a link carries ``capacity * t`` bytes including its background. The time of links
        without bytes of this job does not count: the result is the least `t` in which all links have room for
        the bytes.
        """
        capacity, background = self.capacity[rows], self.background[rows]
        if bytes <= 0 or not len(capacity):
            return 0.0
        begin = background / capacity
        order = np.argsort(begin, kind="stable")
        rate, used = np.cumsum(capacity[order]), np.cumsum(background[order])
        level = (bytes + used) / rate  # time if only the first links are used
        enough = np.append(begin[order][1:], np.inf) >= level
        return float(level[int(np.argmax(enough))])

    def pair_seconds(self, routes: Routes, source: Ints, target: Ints) -> Floats:
        """Return the time of a byte (float64[p]) between two hosts, on the slowest link of its paths.

        Only links of the network count, and no bytes of other jobs on them.
        """
        rate = np.where(routes.fabric.network_link, 1.0 / self.capacity, 0.0)
        found, flows = np.empty(len(source)), routes.flows
        each(
            lambda part: fill_seconds(
                flows, new_scratch(flows), source[part], target[part], rate, found[part]
            ),
            [slice(begin, begin + PAIRS) for begin in range(0, len(source), PAIRS)],
        )
        return found


def cables(routes: Routes, background: Background | None) -> Cables:
    """Return the cables of the hosts of `routes`, and the network between them."""
    fabric, ends = routes.fabric, routes.ends
    own = (ends.out_port >= 0) | (ends.in_port >= 0)
    loaded = _loaded(routes)
    usable = fabric.network_link | own if loaded is None else loaded
    if background is None:
        return Cables(usable=usable, capacity=fabric.links.capacity, background=np.zeros(len(fabric.links)))
    return Cables(
        usable=usable, capacity=background.capacity(fabric), background=background.link_bytes(fabric)
    )


def _loaded(routes: Routes) -> Bools | None:
    """Return the links (bool[m]) on a path between two of the hosts, or None if not searched or all are."""
    name = routes.name.partition(":")[0]
    if name in ON_SHORTEST:
        routes = shortest_paths.build(routes.fabric, routes.hosts, rails=routes.rails)
    elif name not in OBLIVIOUS:
        return None
    network = routes.fabric.network_link
    if routes.name == shortest_paths.ShortestPaths.name and bool(_between_hosts(routes)[network].all()):
        return None
    _, first, second = hosts_routed_alike(routes)
    if len(first) ** 2 > MAX_PAIRS:
        return None
    i, j = np.repeat(first, len(first)), np.tile(first, len(first))
    j = np.where(i == j, np.repeat(second, len(first)), j)
    i, j = i[j >= 0], j[j >= 0]
    found = routes.link_bytes(i, j, np.ones(len(i))) > 0
    ends = routes.ends
    return np.asarray(found | (ends.out_port >= 0) | (ends.in_port >= 0))


def _between_hosts(routes: Routes) -> Bools:
    """Return the links (bool[m]) between two of the hosts that both forward; shortest paths use them."""
    fabric = routes.fabric
    direct = np.zeros(len(fabric), bool)
    direct[routes.hosts] = fabric.forwards[routes.hosts]
    return np.asarray(direct[fabric.links.source] & direct[fabric.links.target])


def guest_arrays(profile: Profile) -> GuestArrays:
    """Return the undirected graph of the ranks that send bytes."""
    low = np.minimum(profile.sender, profile.partner).astype(np.int64)
    high = np.maximum(profile.sender, profile.partner).astype(np.int64)
    sends = profile.bytes > 0
    key, edge = np.unique(low[sends] * profile.ranks + high[sends], return_inverse=True)
    weight = np.bincount(edge, profile.bytes[sends], len(key)).astype(np.float64)
    ends = np.r_[key // profile.ranks, key % profile.ranks]
    order = np.argsort(ends, kind="stable")
    return GuestArrays(
        ptr=np.searchsorted(ends[order], np.arange(profile.ranks + 1)).astype(np.int64),
        head=np.r_[key % profile.ranks, key // profile.ranks][order].astype(np.int32),
        edge=np.r_[np.arange(len(key)), np.arange(len(key))][order].astype(np.int32),
        weight=weight,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SortedBytes:
    """Bytes of each rank with its partners, heaviest first."""

    ptr: Longs
    """int64[ranks + 1]."""
    bytes: Floats
    """float64[e]."""

    @classmethod
    def of(cls, ptr: Longs, bytes: Floats) -> SortedBytes:
        """Sort the bytes of each rank.

        Args:
            ptr (int64[ranks + 1]):
            bytes (float64[e]): In any order within a rank.
        """
        ordered = np.array(bytes, np.float64)
        sort_descending(ptr, ordered)
        return cls(ptr=ptr, bytes=ordered)

    def beyond(self, kept: int) -> Floats:
        """Return the bytes (float64[ranks]) with all partners except the `kept` heaviest."""
        rank, position = self._positions()
        left = position >= kept
        return np.bincount(rank[left], self.bytes[left], len(self.ptr) - 1).astype(np.float64)

    def table(self, columns: int) -> Floats:
        """Return the heaviest bytes first (float64[ranks, d]), padded with zeros; d <= columns."""
        rank, position = self._positions()
        table = np.zeros((len(self.ptr) - 1, min(int(position.max(initial=-1)) + 1, columns)))
        kept = position < columns
        table[rank[kept], position[kept]] = self.bytes[kept]
        return table

    def _positions(self) -> tuple[Longs, Longs]:
        """Return the rank of each entry, and its position there (int64[e] each)."""
        count = np.diff(self.ptr)
        rank = np.repeat(np.arange(len(count)), count)
        return rank, np.arange(len(rank)) - np.repeat(self.ptr[:-1], count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partners:
    """Bytes that each rank sends, receives and both, by partner, heaviest first."""

    sent: SortedBytes
    received: SortedBytes
    both: SortedBytes

    @classmethod
    def of(cls, profile: Profile, guest: GuestArrays) -> Partners:
        """Return a profile's bytes sorted for each rank."""
        shape = (profile.ranks, profile.ranks)
        received = csr_array((profile.bytes, profile.partner, profile.indptr), shape=shape).tocsc()
        return cls(
            sent=SortedBytes.of(np.array(profile.indptr), profile.bytes),
            received=SortedBytes.of(received.indptr.astype(np.int64), received.data),
            both=SortedBytes.of(guest.ptr, guest.weight[guest.edge]),
        )
