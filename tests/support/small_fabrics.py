"""Random small fabrics, profiles and placements for property tests (hypothesis strategies)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from registry.model import (
    HOST,
    NO_ROUTE,
    SWITCH,
    Adapters,
    Allocation,
    Fabric,
    ForwardingTables,
    Ints,
    Links,
    Profile,
)

CAPACITIES = (1.0, 2.0, 3.0, 5.0)


@dataclass(frozen=True, kw_only=True)
class _End:
    vertex: int
    adapter: int
    port: int


class _Wiring:
    """Cables being added, with port numbers in order of addition."""

    def __init__(self) -> None:
        self.rows: list[tuple[_End, _End, float]] = []
        self._used: dict[int, int] = {}

    def switch_port(self, vertex: int) -> _End:
        self._used[vertex] = self._used.get(vertex, 0) + 1
        return _End(vertex=vertex, adapter=-1, port=self._used[vertex])

    def cable(self, a: _End, b: _End, capacity: float, back: float) -> None:
        self.rows += [(a, b, capacity), (b, a, back)]

    def links(self) -> Links:
        tails, heads, capacity = zip(*self.rows, strict=True) if self.rows else ((), (), ())
        return Links.of(
            [end.vertex for end in tails],
            [end.vertex for end in heads],
            list(capacity),
            source_port=[end.port for end in tails],
            target_port=[end.port for end in heads],
            source_adapter=[end.adapter for end in tails],
            target_adapter=[end.adapter for end in heads],
        )


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
                end = _End(vertex=host, adapter=len(owner) - 1, port=number)
                wiring.cable(end, leaf, draw(capacity), draw(capacity))
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
    arcs = draw(
        st.lists(st.tuples(ends, ends).filter(lambda arc: arc[0] != arc[1]), min_size=1, max_size=4 * n)
    )
    if draw(st.booleans()):
        arcs += [(b, a) for a, b in arcs]
    forwards = [draw(st.booleans()) or v >= hosts for v in range(n)]
    return Fabric.from_arcs(
        [f"v{v}" for v in range(n)],
        [a for a, _ in arcs],
        [b for _, b in arcs],
        draw(st.lists(st.sampled_from(CAPACITIES), min_size=len(arcs), max_size=len(arcs))),
        slots=[1 if v < hosts else 0 for v in range(n)],
        forwards=forwards,
    )


@st.composite
def table_fabrics(draw: st.DrawFn, *, broken: bool = False) -> Fabric:
    """Draw `adapter_fabrics` with tables along random shortest paths; `broken`: some entries are random."""
    fabric = draw(adapter_fabrics())
    adapters, links = fabric.adapters, fabric.links
    lids = 1 + sum(2 ** int(lmc) for lmc in adapters.port_lmc)
    switches = fabric.switches.tolist()
    ports = np.full((len(switches), lids), NO_ROUTE, np.uint8)
    owner = np.zeros(lids, np.uint64)
    for p in range(len(adapters.port_adapter)):
        for lid in range(
            int(adapters.port_lid[p]), int(adapters.port_lid[p]) + 2 ** int(adapters.port_lmc[p])
        ):
            owner[lid] = adapters.port_guid[p] if draw(st.booleans()) else 0
            at_port = (links.target_adapter == adapters.port_adapter[p]) & (
                links.target_port == adapters.port_number[p]
            )
            for switch, ways in _shortest_ways(fabric, int(np.flatnonzero(at_port)[0])).items():
                ports[switches.index(switch), lid] = draw(st.sampled_from(ways))
    if broken:
        for _ in range(draw(st.integers(1, 4))):
            s, lid = draw(st.integers(0, len(switches) - 1)), draw(st.integers(0, lids - 1))
            ports[s, lid] = draw(st.sampled_from([0, 1, 2, 3, 9, NO_ROUTE]))
    tables = ForwardingTables(
        switch_guid=fabric.guid[fabric.switches], ports=ports, lid_guid=_named_together(fabric, owner)
    )
    return replace(fabric, tables=tables)


def _named_together(fabric: Fabric, owner: np.ndarray) -> np.ndarray:
    """Draw a port's LIDs so that all or none of them are named: no tool reports only some."""
    adapters = fabric.adapters
    for p in range(len(adapters.port_adapter)):
        first, end = int(adapters.port_lid[p]), int(adapters.port_lid[p]) + 2 ** int(adapters.port_lmc[p])
        owner[first:end] = owner[first]
    return owner


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
    return Profile.from_edges(
        [a for a, _, _ in edges], [b for _, b, _ in edges], [w for _, _, w in edges], ranks=ranks
    )


@st.composite
def allocations(draw: st.DrawFn, fabric: Fabric, ranks: int, *, max_slots: int = 2) -> Allocation:
    """Draw some of the fabric's hosts, in any order, with enough slots for the ranks."""
    hosts: list[int] = draw(st.permutations(fabric.hosts.tolist()))
    count = draw(st.integers(1, len(hosts)))
    slots = draw(st.lists(st.integers(1, max_slots), min_size=count, max_size=count))
    while sum(slots) < ranks:
        slots[0] += 1
    return Allocation.of(fabric, hosts[:count], slots)


def indices(values: Sequence[int]) -> Ints:
    return np.asarray(values, np.int32)


def ring_of_switches(switches: int) -> Fabric:
    """Two hosts on every switch of a ring."""
    s, h = np.arange(switches), switches + np.arange(2 * switches)
    tails, heads = np.r_[s, h], np.r_[(s + 1) % switches, np.repeat(s, 2)]
    return Fabric.from_arcs(
        [f"s{i}" for i in s] + [f"h{i}" for i in h],
        np.r_[tails, heads],
        np.r_[heads, tails],
        1.0,
        slots=np.r_[np.zeros(switches, int), np.ones(2 * switches, int)],
        forwards=False,
    )
