"""Graphs with whole weights, their parts by METIS, bisections, and the repair of their balance.

Source of the repair: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel
architectures", 2011, section 3.2.

The hierarchy of an allocation's hosts, found from their distances, and its levels.

Hosts are clustered by average linkage, which finds pods, leaf switches, groups and cabinets without their
names; branches that join at nearly the same height are one branching.

Recursive bisection: both graphs are cut into halves by METIS until a part is one host.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, section 3.2, Algorithm 2, with its repair of the balance. Hosts are cut first and ranks then, so that
each part has as many ranks as slots: lines 5 to 10 only determine which half fits which.

Two variants, for direct and for switched networks:

``paper``
    The fabric is cut as it is, hosts weighing their slots and all else nothing; edges that a cut crosses
    are removed (proof of Theorem 3), so each part is cut within itself. Halves of hosts are repaired
    like halves of ranks; with unequal slots while that makes them more equal.
``whole``
    For switched fabrics, in which a cut would separate a switch from hosts that need it: a switch and the
    hosts attached to it are one vertex, and a part is cut together with all other switches that may be
    between its vertices (no farther from the nearest of them than half the greatest distance from the
    first to another), on whichever side earlier cuts left them. Vertices stay whole, so that halves may be
    unequal; at the end the hosts of one switch are cut by number.

Weights are whole numbers (`mapping.placement.methods.bisection.weighted_graph`); an edge weighs the bytes
or bytes/s of both directions. The paper requires as many slots as ranks: of more slots, those closest to the
first host of the allocation are used, by number among equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import pymetis
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from mapping.distances.distances import Distances
from mapping.placement.problem import Problem, arc_capacities, arc_tails, hosts_are_neighbours
from registry.errors import InvalidValue, UnknownName
from registry.model import Bools, Fabric, Floats, Ints, Longs

MOST = 1 << 30
"""Sum of the weights of a graph's edges, both directions counted: METIS may count in 32 bits."""


def weighted_graph(source: ArrayLike, target: ArrayLike, weight: Floats, vertices: int) -> csr_matrix:
    """Return the undirected graph of directed edges for METIS: symmetric, without loops, weights int64 >= 1.

    Both directions of an edge are summed. Weights are unchanged if all are whole and sum to at most
    `MOST`; otherwise each is multiplied by `MOST` / sum, rounded, and at least 1.
    """
    one, other = np.asarray(source), np.asarray(target)
    apart = (one != other) & (weight > 0)
    one, other, size = one[apart], other[apart], weight[apart]
    ends = np.r_[one, other], np.r_[other, one]
    graph = csr_matrix((np.r_[size, size], ends), shape=(vertices, vertices))
    graph.sum_duplicates()
    graph.sort_indices()
    total, values = float(graph.data.sum()), graph.data
    if total > MOST or not np.array_equal(values, np.rint(values)):
        values = np.maximum(np.rint(values * (MOST / total)), 1.0)
    graph.data = values.astype(np.int64)
    return graph


SLACK = 50
"""How far METIS may let a part grow above its share before it is corrected, in thousandths."""
CUTS = 4
"""Number of bisections that METIS tries each time; its k-way method needs more correction and cuts more."""


class Adjacency(NamedTuple):
    """Rows of a graph: a scipy matrix without the cost of making one."""

    indptr: Longs
    """int64[n + 1]."""
    indices: Longs
    """int32 or int64[2e]: Neighbours of each vertex."""
    data: Longs
    """int64[2e]: Weights."""

    @classmethod
    def of(cls, graph: csr_matrix) -> Self:
        """Return the rows of a graph."""
        return cls(graph.indptr.astype(np.int64), graph.indices, graph.data)

    @property
    def nnz(self) -> int:
        """Number of edges, both directions counted."""
        return len(self.data)

    def among(self, kept: Longs) -> Adjacency:
        """Return the subgraph of some vertices (int64[k]), numbered in their order."""
        first = self.indptr[kept]
        count = self.indptr[kept + 1] - first
        begin = np.concatenate(([0], np.cumsum(count)))
        entry = np.arange(begin[-1]) + np.repeat(first - begin[:-1], count)
        number = np.full(len(self.indptr) - 1, -1, np.int64)
        number[kept] = np.arange(len(kept))
        head = number[self.indices[entry]]
        inside = head >= 0
        before = np.concatenate(([0], np.cumsum(inside)))
        return Adjacency(before[begin], head[inside], self.data[entry[inside]])

    def dense(self) -> Longs:
        """Return int64[n, n]: the adjacency matrix."""
        count = len(self.indptr) - 1
        found = np.zeros((count, count), np.int64)
        found[np.repeat(np.arange(count), np.diff(self.indptr)), self.indices] = self.data
        return found


def subgraph(graph: csr_matrix, kept: Longs) -> csr_matrix:
    """Return the subgraph of some vertices (int64[k]), numbered in their order."""
    found: Any = csr_matrix((len(kept), len(kept)), dtype=np.int64)
    found.indptr, found.indices, found.data = Adjacency.of(graph).among(kept)
    return found


def options_of(generator: np.random.Generator, *, slack: int = SLACK, cuts: int = CUTS) -> pymetis.Options:
    """Return METIS options with a seed drawn from a generator."""
    return pymetis.Options(seed=int(generator.integers(1 << 31)), ncuts=cuts, ufactor=slack)


def metis_parts(
    graph: csr_matrix | Adjacency,
    shares: Sequence[float],
    options: pymetis.Options,
    weight: Longs | None = None,
    *,
    recursive: bool = True,
) -> Ints:
    """Return int32[n]: the part of each vertex, by METIS's recursive bisection.

    Args:
        graph: From `weighted_graph`.
        shares: Share of the weight for each part.
        weight (int64[n]): Weight of each vertex; default: 1.
        recursive: False for METIS's multilevel k-way method instead.
    """
    found = pymetis.part_graph(
        len(shares),
        pymetis.CSRAdjacency(
            adj_starts=graph.indptr.astype(np.int64), adjacent=graph.indices.astype(np.int64)
        ),
        vweights=weight,
        eweights=graph.data,
        tpwgts=list(shares),
        recursive=recursive,
        options=options,
    )
    return np.asarray(found.vertex_part, np.int32)


def bisect(
    graph: csr_matrix | Adjacency,
    weight: Longs,
    share: float,
    *,
    seed: int,
    cuts: int = 1,
    slack: float = 0.001,
) -> Bools:
    """Return bool[n]: the vertices of the first of two parts, by METIS.

    Args:
        graph: As in `metis_parts`.
        weight (int64[n]): Weight of each vertex, >= 0.
        share: Share of the weight for the first part.
        seed: Seed of METIS; the same seed gives the same parts.
        cuts: Number of bisections that METIS tries; the lightest cut wins.
        slack: How far a part may be above its share, relatively, in METIS's own count.
    """
    if graph.nnz == 0:  # nothing is cut: the first vertices, up to the share
        first: Bools = np.cumsum(weight) <= share * float(weight.sum())
        return first
    inside: Bools = metis_parts(graph, (share, 1.0 - share), _options(seed, cuts, slack), weight) == 0
    return inside


@lru_cache(maxsize=16)
def _options(seed: int, cuts: int, slack: float) -> pymetis.Options:
    """Return METIS options, cached, since a recursive bisection uses the same ones many times."""
    return pymetis.Options(seed=seed, ncuts=cuts, ufactor=max(round(1000 * slack), 1))


def repaired(graph: csr_matrix | Adjacency, first: Bools, size: int) -> Bools:
    """Return bool[n]: the first part, corrected to have `size` vertices.

    As often as needed, the vertex with the lowest cumulative edge weight goes from the part that is too
    large to the other; ties by index. The weight is that of all the vertex's edges in the graph.
    """
    extra = int(np.count_nonzero(first)) - size
    if extra == 0:
        return first
    candidates = np.flatnonzero(first == (extra > 0))
    before = np.concatenate(([0], np.cumsum(graph.data)))
    total = (before[graph.indptr[1:]] - before[graph.indptr[:-1]])[candidates]
    mended = first.copy()
    mended[candidates[np.argsort(total, kind="stable")[: abs(extra)]]] = extra < 0
    return mended


MOST_GROUPS = 8192
"""Most host groups that are clustered; of more, adjacent ones are combined."""
TOGETHER = 0.02
"""Branches that join within this part of the highest join are one branching."""
LARGEST = 7
"""Largest prime number of parts into which ranks are cut at one level."""


class Branch(NamedTuple):
    """A part of the hosts and its own parts."""

    height: float
    """Mean distance at which its parts join."""
    parts: tuple[Branch, ...]
    """Empty if the hosts are not divided further."""
    hosts: Ints
    """int32[k]: Hosts in the order of the parts."""


def hierarchy(problem: Problem) -> Branch:
    """Return the hosts of an allocation, clustered by distance; computed once for a problem."""
    return problem.memo.once("hierarchy", lambda: _clustered(problem))


def _clustered(problem: Problem) -> Branch:
    distances = problem.distances
    order = np.argsort(distances.group, kind="stable").astype(np.int32)
    first = np.searchsorted(distances.group[order], np.arange(distances.groups))
    kept = np.arange(0, distances.groups, -(-distances.groups // MOST_GROUPS))
    hosts = np.split(order, first[kept[1:]])
    if len(hosts) == 1:
        return Branch(0.0, (), hosts[0])
    joins: Floats = linkage(_condensed(distances, kept), "average")
    return _Clusters(hosts, joins).branch(2 * len(hosts) - 2)


def _condensed(distances: Distances, kept: Longs) -> Floats:
    """Return float64[k * (k - 1) / 2]: mean distances of both directions between groups, in scipy's order."""
    found = np.empty(len(kept) * (len(kept) - 1) // 2)
    end, symmetric = 0, distances.symmetric
    for at, group in enumerate(kept[:-1].tolist()):
        there, back = distances.rows(group)
        others, begin = kept[at + 1 :], end
        end += len(others)
        found[begin:end] = there[others] if symmetric else (there[others] + back[others]) / 2
    return found


class _Clusters:
    """Clusters in scipy's numbering: groups of hosts first, then joins of two."""

    def __init__(self, hosts: list[Ints], joins: Floats) -> None:
        self._hosts = hosts
        self._pairs = joins[:, :2].astype(np.int64).tolist()
        self._heights = [0.0] * len(hosts) + joins[:, 2].tolist()

    def branch(self, cluster: int) -> Branch:
        """Return a cluster with all below it."""
        if cluster < len(self._hosts):
            return Branch(0.0, (), self._hosts[cluster])
        height = self._heights[cluster]
        lowest = height - TOGETHER * self._heights[-1]
        open_, found = [cluster], []
        while open_:
            at = open_.pop()
            if at >= len(self._hosts) and self._heights[at] >= lowest:
                open_ += self._pairs[at - len(self._hosts)]
            else:
                found.append(self.branch(at))
        parts = tuple(sorted(found, key=lambda part: int(part.hosts[0])))
        return Branch(height, parts, np.concatenate([part.hosts for part in parts]))


def levels_of(top: Branch, slots: Longs) -> Ints:
    """Return int32[h, levels]: the part of its branch to which each host belongs, by level.

    The parts with most slots come first, so that as few as possible are used. Many parts make several levels,
    by the prime factors of their number, the largest first.

    Args:
        slots (int64[h]): Slots of each host.
    """
    columns: list[Ints] = []
    todo = [(top, 0)]
    while todo:
        branch, level = todo.pop()
        if not branch.parts:
            continue
        sides = factors(len(branch.parts))
        columns += [np.zeros(len(slots), np.int32) for _ in range(level + len(sides) - len(columns))]
        room = np.array([int(slots[part.hosts].sum()) for part in branch.parts])
        for number, index in enumerate(np.argsort(-room, kind="stable").tolist()):
            part = branch.parts[index]
            for below, digit in enumerate(np.unravel_index(number, sides)):
                columns[level + below][part.hosts] = digit
            todo.append((part, level + len(sides)))
    return np.stack(columns, axis=1) if columns else np.zeros((len(slots), 0), np.int32)


def factors(parts: int) -> tuple[int, ...]:
    """Return the prime factors of a number > 1, the largest first; of the next number if one is too large."""
    found = prime_factors(parts)[::-1]
    return found if found[0] <= LARGEST else factors(parts + 1)


def prime_factors(number: int) -> tuple[int, ...]:
    """Return the prime factors of a number, the smallest first; none of 1."""
    found, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return (*found, number) if number > 1 else tuple(found)


AUTO, PAPER, WHOLE = "auto", "paper", "whole"
VARIANTS = (AUTO, PAPER, WHOLE)


class _Method(NamedTuple):
    """Variant and METIS settings of all bisections of a run."""

    variant: str
    seed: int
    cuts: int
    slack: float

    def bisect(self, graph: csr_matrix, weight: Longs, share: float) -> Bools:
        """Return the vertices of the first of two parts."""
        return bisect(graph, weight, share, seed=self.seed, cuts=self.cuts, slack=self.slack)

    def cut_ranks(self, guest: csr_matrix, size: int) -> Bools:
        """Return bool[r]: the ranks of a first part of exactly `size`."""
        ranks = guest.shape[0]
        return repaired(guest, self.bisect(guest, np.ones(ranks, np.int64), size / ranks), size)


class _Part(NamedTuple):
    """Ranks that go to some hosts, and the rest of both graphs."""

    ranks: Longs
    """int64[r]: Ascending."""
    guest: csr_matrix
    """Edges among these ranks."""
    units: list[Ints]
    """list of int32[...]: Hosts of each of the first vertices of `host`; the other vertices have no slots."""
    slots: Longs
    """int64[u]: Slots of each unit; their sum is the number of ranks."""
    host: csr_matrix


def place_ranks(
    problem: Problem,
    generator: np.random.Generator,
    *,
    variant: str = AUTO,
    cuts: int = 1,
    slack: float = 0.001,
) -> Ints:
    """Place ranks by Algorithm 2; the generator gives METIS its seed.

    Args:
        variant: ``paper``, ``whole``, or ``auto``: ``paper`` if at least half of the hosts have an edge to
            another host of the allocation.
        cuts: Number of bisections that METIS tries each time; the lightest cut wins.
        slack: How far METIS may let a part grow above its share, relatively, before the repair.
    """
    if variant not in VARIANTS:
        raise UnknownName("recursive-bisection.variant", variant, VARIANTS)
    if cuts < 1 or not slack >= 0:
        raise InvalidValue("recursive-bisection", "cuts must be at least 1 and slack not below 0")
    fabric, hosts = problem.routes.fabric, problem.allocation.hosts
    if variant == AUTO:
        variant = PAPER if hosts_are_neighbours(fabric, hosts) else WHOLE
    method = _Method(variant, int(generator.integers(1 << 31)), cuts, slack)
    slots = _nearest_slots(problem)
    host_of_rank = np.empty(problem.ranks, np.int32)
    parts = [_all(problem, slots, variant)]
    while parts:
        part = parts.pop()
        if len(part.units) > 1:
            parts += _halves(part, method)
        else:
            _place_within_switch(part, slots, method, host_of_rank)
    return host_of_rank


def _nearest_slots(problem: Problem) -> Longs:
    """Return int64[h]: used slots of each host; their sum is the number of ranks."""
    slots = problem.allocation.slots.astype(np.int64)
    far = problem.distances.of(0, np.arange(problem.hosts))
    order = np.argsort(far, kind="stable")
    before = np.cumsum(slots[order]) - slots[order]
    slots[order] = np.clip(problem.ranks - before, 0, slots[order])
    return slots


def _all(problem: Problem, slots: Longs, variant: str) -> _Part:
    """Return all ranks and hosts as one part."""
    fabric, hosts = problem.routes.fabric, problem.allocation.hosts
    used = np.flatnonzero(slots)
    unit, switch = np.arange(len(used)), np.full(len(used), -1)
    if variant == WHOLE:
        unit, switch = _same_switch(fabric, hosts[used])
    order = np.argsort(unit, kind="stable")
    units = np.split(used[order].astype(np.int32), np.flatnonzero(np.diff(unit[order])) + 1)
    number = np.full(len(fabric), -1, np.int64)
    number[switch[switch >= 0]] = unit[switch >= 0]
    number[hosts[used]] = unit
    others = np.flatnonzero(fabric.forwards & (number < 0))
    number[others] = len(units) + np.arange(len(others))
    tail = number[arc_tails(fabric)]
    head = number[fabric.neighbour]
    inside = (tail >= 0) & (head >= 0)
    host = weighted_graph(
        tail[inside], head[inside], arc_capacities(problem)[inside], len(units) + len(others)
    )
    guest = weighted_graph(problem.source, problem.target, problem.bytes, problem.ranks)
    room = np.array([slots[unit].sum() for unit in units])
    return _Part(np.arange(problem.ranks), guest, units, room, host)


def _same_switch(fabric: Fabric, hosts: Ints) -> tuple[Longs, Longs]:
    """Return int64[h] twice: the unit of each host, by first host, and its switch, else -1.

    Hosts whose only neighbour is the same switch are one unit.
    """
    attached = (np.diff(fabric.indptr)[hosts] == 1) & ~fabric.forwards[hosts]
    switch = np.full(len(hosts), -1, np.int64)
    switch[attached] = fabric.neighbour[fabric.indptr[hosts[attached]]]
    key = np.where(attached, switch, len(fabric) + hosts)
    _, first, unit = np.unique(key, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[unit], switch


def _halves(part: _Part, method: _Method) -> list[_Part]:
    """Return the two parts into which a part is cut."""
    count = len(part.units)
    graph = part.host if method.variant == PAPER else _between(part)
    weight = np.r_[part.slots, np.zeros(graph.shape[0] - count, np.int64)]
    first = method.bisect(graph, weight, 0.5)
    inside = _nearly_equal(graph, first[:count], part.slots, method.variant == PAPER)
    ranks = method.cut_ranks(part.guest, int(part.slots[inside].sum()))
    found = []
    for half in (True, False):
        kept, of_unit = np.flatnonzero(ranks == half), np.flatnonzero(inside == half)
        if method.variant == PAPER:
            others = count + np.flatnonzero(first[count:] == half)
            host = subgraph(part.host, np.r_[of_unit, others])
        else:
            host = subgraph(part.host, np.r_[of_unit, np.arange(count, part.host.shape[0])])
        units = [part.units[unit] for unit in of_unit]
        guest = subgraph(part.guest, kept)
        found.append(_Part(part.ranks[kept], guest, units, part.slots[of_unit], host))
    return found


def _nearly_equal(graph: csr_matrix, first: Bools, slots: Longs, equal: bool) -> Bools:
    """Return bool[u]: the units of the first half, neither half empty.

    The unit of the lowest cumulative edge weight goes from the larger half to the smaller while that makes
    the halves more equal (`equal`), else only into an empty half.
    """
    first = first.copy()
    total = np.asarray(graph.sum(axis=1)).reshape(-1)[: len(first)]
    while True:
        surplus = int(slots[first].sum() - slots[~first].sum())
        larger = np.flatnonzero(first == (surplus > 0))
        smaller_is_empty = len(larger) == len(first)
        if not equal and not smaller_is_empty:
            return first
        helps = larger[slots[larger] < abs(surplus)]
        candidates = larger if smaller_is_empty else helps
        if len(candidates) == 0:
            return first
        first[candidates[np.argmin(total[candidates])]] = surplus <= 0


def _between(part: _Part) -> csr_matrix:
    """Return the host graph of a part without the switches that are far from all of its units."""
    count = len(part.units)
    far = dijkstra(part.host, unweighted=True, indices=0)[:count]
    nearest = dijkstra(part.host, unweighted=True, indices=np.arange(count), min_only=True)
    near = 2 * nearest[count:] <= far[np.isfinite(far)].max()
    return subgraph(part.host, np.r_[np.arange(count), count + np.flatnonzero(near)])


def _place_within_switch(part: _Part, slots: Longs, method: _Method, host_of_rank: Ints) -> None:
    """Place ranks on the hosts of one switch, which are cut by number into halves."""
    parts = [(part.ranks, part.guest, part.units[0])]
    while parts:
        ranks, guest, hosts = parts.pop()
        room = slots[hosts]
        if len(hosts) == len(ranks):  # no host takes two
            host_of_rank[ranks] = hosts
        elif len(hosts) == 1:
            host_of_rank[ranks] = hosts[0]
        else:
            half = len(hosts) // 2
            first = method.cut_ranks(guest, int(room[:half].sum()))
            for inside, of_host in ((first, hosts[:half]), (~first, hosts[half:])):
                kept = np.flatnonzero(inside)
                parts.append((ranks[kept], subgraph(guest, kept), of_host))
