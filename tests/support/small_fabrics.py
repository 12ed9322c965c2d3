"""Random small fabrics, profiles and placements for property tests (hypothesis strategies)."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from registry import model
from registry.model import HOST, NO_ROUTE, SWITCH, Adapters, Allocation, Fabric, Placement, Profile

CAPACITIES = (1.0, 2.0, 3.0, 5.0)
_End = tuple[int, int, int]
"""Vertex, adapter and port."""


class _Wiring:
    """Cables being added, with port numbers in order of addition."""

    def __init__(self) -> None:
        self.rows: list[tuple[_End, _End, float]] = []
        self._used: dict[int, int] = {}

    def switch_port(self, vertex: int) -> _End:
        self._used[vertex] = self._used.get(vertex, 0) + 1
        return vertex, -1, self._used[vertex]

    def cable(self, a: _End, b: _End, capacity: float, back: float) -> None:
        self.rows += [(a, b, capacity), (b, a, back)]

    def links(self) -> model.Links:
        near, far = (np.array([row[at] for row in self.rows], int).reshape(-1, 3).T for at in (0, 1))
        ports = {"source_port": near[2], "target_port": far[2]}
        ends = {"source_adapter": near[1], "target_adapter": far[1], **ports}
        return model.Links.of(near[0], far[0], [capacity for _, _, capacity in self.rows], **ends)


@st.composite
def adapter_fabrics(draw: st.DrawFn, *, max_switches: int = 4, max_hosts: int = 4) -> Fabric:
    """Draw InfiniBand-like fabrics: hosts with one or two adapters of one or two ports, parallel cables."""
    switches = draw(st.integers(1, max_switches))
    hosts = draw(st.integers(2, max_hosts))
    wiring = _Wiring()
    capacity = st.sampled_from(CAPACITIES)
    for upper in range(1, switches):
        for lower in draw(st.sets(st.integers(0, upper - 1), min_size=1)):
            for _ in range(draw(st.integers(1, 2))):
                a, b = wiring.switch_port(hosts + lower), wiring.switch_port(hosts + upper)
                wiring.cable(a, b, draw(capacity), draw(capacity))
    owner: list[int] = []
    ports: list[tuple[int, int]] = []
    for host in range(hosts):
        for _ in range(draw(st.integers(1, 2))):
            owner.append(host)
            for number in range(1, draw(st.integers(1, 2)) + 1):
                ports.append((len(owner) - 1, number))
                leaf = wiring.switch_port(hosts + draw(st.integers(0, switches - 1)))
                wiring.cable((host, len(owner) - 1, number), leaf, draw(capacity), draw(capacity))
    order = draw(st.permutations(range(len(owner))))
    return Fabric(
        names=tuple([f"host{i}" for i in range(hosts)] + [f"switch{i}" for i in range(switches)]),
        kind=np.r_[np.full(hosts, HOST), np.full(switches, SWITCH)],
        slots=np.r_[np.ones(hosts, int), np.zeros(switches, int)],
        forwards=np.arange(hosts + switches) >= hosts,
        guid=np.r_[np.zeros(hosts, np.uint64), np.arange(1, switches + 1, dtype=np.uint64)],
        lid=np.zeros(hosts + switches, int),
        links=wiring.links(),
        adapters=_adapters(owner, ports, order, draw(st.integers(0, 1))),
    )


def _adapters(owner: list[int], ports: list[tuple[int, int]], order: Sequence[int], lmc: int) -> Adapters:
    first = (1 + np.arange(len(ports)) * (1 << lmc)).astype(np.int32)
    return Adapters(
        names=tuple(f"hca {order[a]}" for a in range(len(owner))),
        guid=1000 + np.arange(len(owner), dtype=np.uint64),
        system_guid=np.zeros(len(owner), np.uint64),
        host=np.array(owner, np.int32),
        port_adapter=np.array([a for a, _ in ports], np.int32),
        port_number=np.array([number for _, number in ports], np.int32),
        port_guid=2000 + np.arange(len(ports), dtype=np.uint64),
        port_lid=first,
        port_lmc=np.full(len(ports), lmc),
    )


@st.composite
def plain_fabrics(draw: st.DrawFn, *, max_vertices: int = 6) -> Fabric:
    """Draw any directed graph: hosts that forward or not, switches, parallel and one-way arcs."""
    n = draw(st.integers(2, max_vertices))
    hosts = draw(st.integers(2, n))
    ends = st.integers(0, n - 1)
    arc = st.tuples(ends, ends).filter(lambda arc: arc[0] != arc[1])
    arcs = draw(st.lists(arc, min_size=1, max_size=4 * n))
    if draw(st.booleans()):
        arcs += [(b, a) for a, b in arcs]
    forwards = [draw(st.booleans()) or v >= hosts for v in range(n)]
    capacity = draw(st.lists(st.sampled_from(CAPACITIES), min_size=len(arcs), max_size=len(arcs)))
    names, slots = [f"v{v}" for v in range(n)], [int(v < hosts) for v in range(n)]
    source, target = zip(*arcs, strict=True)
    return Fabric.from_arcs(names, source, target, capacity, slots=slots, forwards=forwards)


@st.composite
def table_fabrics(draw: st.DrawFn, *, broken: bool = False) -> Fabric:
    """Draw `adapter_fabrics` with tables along random shortest paths; `broken`: some entries are random."""
    fabric = draw(adapter_fabrics())
    adapters, links = fabric.adapters, fabric.links
    lids = 1 + sum(2 ** int(lmc) for lmc in adapters.port_lmc)
    switches = fabric.switches.tolist()
    ports = np.full((len(switches), lids), NO_ROUTE, np.uint8)
    owner = np.zeros(lids, np.uint64)
    for p, first in enumerate(adapters.port_lid.tolist()):
        own = range(first, first + 2 ** int(adapters.port_lmc[p]))
        owner[own] = adapters.port_guid[p] if draw(st.booleans()) else 0  # no tool names only some of them
        at_port = links.target_adapter == adapters.port_adapter[p]
        at_port &= links.target_port == adapters.port_number[p]
        ways_to_port = _shortest_ways(fabric, int(np.flatnonzero(at_port)[0]))
        for lid, (switch, ways) in itertools.product(own, ways_to_port.items()):
            ports[switches.index(switch), lid] = draw(st.sampled_from(ways))
    if broken:
        for _ in range(draw(st.integers(1, 4))):
            s, lid = draw(st.integers(0, len(switches) - 1)), draw(st.integers(0, lids - 1))
            ports[s, lid] = draw(st.sampled_from([0, 1, 2, 3, 9, NO_ROUTE]))
    tables = model.ForwardingTables(switch_guid=fabric.guid[fabric.switches], ports=ports, lid_guid=owner)
    return replace(fabric, tables=tables)


def _shortest_ways(fabric: Fabric, last: int) -> dict[int, list[int]]:
    """Return the ports of each switch on shortest paths to a host's port; row `last` enters it."""
    links = fabric.links
    leaf = int(links.source[last])
    ways, hops, queue = {leaf: [int(links.source_port[last])]}, {leaf: 0}, deque([leaf])
    while queue:
        vertex = queue.popleft()
        for row in np.flatnonzero((links.target == vertex) & fabric.forwards[links.source]):
            near = int(links.source[row])
            if near not in hops:
                hops[near] = hops[vertex] + 1
                queue.append(near)
                ways[near] = []
            if hops[near] == hops[vertex] + 1:
                ways[near].append(int(links.source_port[row]))
    return ways


@st.composite
def profiles(draw: st.DrawFn, *, min_ranks: int = 1, max_ranks: int = 4) -> Profile:
    """Draw profiles of few ranks with whole bytes between any pairs; a pair may send no bytes."""
    ranks = draw(st.integers(min_ranks, max_ranks))
    ends = st.integers(0, ranks - 1)
    edges = draw(st.lists(st.tuples(ends, ends, st.integers(0, 20)), max_size=12))
    return Profile.from_edges(*([edge[part] for edge in edges] for part in range(3)), ranks=ranks)


@st.composite
def allocations(draw: st.DrawFn, fabric: Fabric, ranks: int, *, max_slots: int = 2) -> Allocation:
    """Draw some of the fabric's hosts, in any order, with enough slots for the ranks."""
    hosts: list[int] = draw(st.permutations(fabric.hosts.tolist()))
    count = draw(st.integers(1, len(hosts)))
    slots = draw(st.lists(st.integers(1, max_slots), min_size=count, max_size=count))
    while sum(slots) < ranks:
        slots[0] += 1
    return Allocation.of(fabric, hosts[:count], slots)


def any_fabrics() -> st.SearchStrategy[Fabric]:
    return st.one_of(plain_fabrics(), adapter_fabrics())


@st.composite
def placements(draw: st.DrawFn, fabric: Fabric, profile: Profile) -> Placement:
    """Draw any placement of a profile's ranks on some hosts."""
    allocation = draw(allocations(fabric, profile.ranks))
    slots: list[int] = draw(st.permutations(allocation.host_of_slot.tolist()))
    return given_placement(allocation, slots[: profile.ranks])


def given_placement(allocation: Allocation, host_of_rank: ArrayLike) -> Placement:
    hosts = np.asarray(host_of_rank, np.int32)
    return Placement(host_of_rank=hosts, allocation=allocation, strategy="given")


def cabled(cables: str, hosts: int, capacity: ArrayLike = 1.0, *, slots: ArrayLike = 1) -> Fabric:
    """Return hosts, numbered from 0, and switches after them, with cables such as ``0-2 1-2``."""
    ends = np.array([cable.split("-") for cable in cables.split()], np.int64)
    both, vertices = np.r_[ends, ends[:, ::-1]], int(ends.max()) + 1
    names, speed = [f"v{v}" for v in range(vertices)], np.broadcast_to(np.asarray(capacity), len(ends))
    room = np.r_[np.broadcast_to(np.asarray(slots), hosts), np.zeros(vertices - hosts, int)]
    forwards = np.arange(vertices) >= hosts
    return Fabric.from_arcs(names, both[:, 0], both[:, 1], np.tile(speed, 2), slots=room, forwards=forwards)


def ring_of_switches(switches: int) -> Fabric:
    """Two hosts on every switch of a ring."""
    s, h = np.arange(switches), switches + np.arange(2 * switches)
    tails, heads = np.r_[s, h], np.r_[(s + 1) % switches, np.repeat(s, 2)]
    names, slots = [f"s{i}" for i in s] + [f"h{i}" for i in h], np.r_[s * 0, h * 0 + 1]
    return Fabric.from_arcs(names, np.r_[tails, heads], np.r_[heads, tails], 1.0, slots=slots, forwards=False)


def dumbbell(p: int) -> Fabric:
    """Two complete graphs of p / 2 vertices, joined between their vertices 0 by a link of capacity p."""
    half = p // 2
    arcs = [(a, b) for a in range(p) for b in range(p) if a != b and a // half == b // half]
    capacity = [1.0] * len(arcs) + [float(p)] * 2
    source, target = zip(*arcs, (0, half), (half, 0), strict=True)
    return Fabric.from_arcs([f"v{v}" for v in range(p)], source, target, capacity)
