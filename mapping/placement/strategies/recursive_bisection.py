"""Recursive bisection: both graphs are cut into halves by METIS until a part is one host.

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

Weights are whole numbers (`mapping.placement.partition.bisection.weighted_graph`); an edge weighs the bytes
or bytes/s of both directions. The paper requires as many slots as ranks: of more slots, those closest to the
first host of the allocation are used, by number among equals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from mapping.placement.partition.bisection import bisect, repaired, subgraph, weighted_graph
from mapping.placement.problem.problem import Problem, arc_capacities, arc_tails, hosts_are_neighbours
from registry.errors import InvalidValue, UnknownName
from registry.model import Bools, Fabric, Ints, Longs

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
    """Ranks that go to some hosts, and the rest of both graphs.

    Attributes
    ----------
    ranks : int64[r]
        Ascending.
    guest : csr_matrix
        Edges among these ranks.
    units : list of int32[...]
        Hosts of each of the first vertices of `host`; the other vertices have no slots.
    slots : int64[u]
        Slots of each unit; their sum is the number of ranks.
    host : csr_matrix
    """

    ranks: Longs
    guest: csr_matrix
    units: list[Ints]
    slots: Longs
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

    Parameters
    ----------
    variant : str
        ``paper``, ``whole``, or ``auto``: ``paper`` if at least half of the hosts have an edge to
        another host of the allocation.
    cuts : int
        Number of bisections that METIS tries each time; the lightest cut wins.
    slack : float
        How far METIS may let a part grow above its share, relatively, before the repair.
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
