"""A fabric in the form that kernels use: the end points of hosts, and the graph between them.

An end point is what a host sends from: a port of an adapter, or the host itself if the source knows no
adapters or the host forwards (direct networks). A port attached to one forwarding vertex by its own cable
needs no search: its paths start and end at that vertex. Any other end point (several cables of unknown ports,
hosts connected to each other) becomes a vertex of the transit graph that does not forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mapping.routing.kernels.channels import Ends
from mapping.routing.kernels.flows import FlowArrays, GraphArrays, ListArrays
from mapping.routing.kernels.forwarding_tables import TableArrays
from mapping.routing.kernels.paths import ArcArrays, HopArray
from registry.model import NO_PORT, Bools, Fabric, Floats, Int8s, Ints, Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EndPoints:
    """Hosts, their rails (adapters) and the ports of the rails.

    Attributes
    ----------
    hosts : int32[h]
        Vertices of the fabric.
    rail_ptr : int64[h + 1]
        Rails of each host, ordered by adapter name, then GUID.
    rail_adapter : int32[r]
        Adapter of each rail; `NO_PORT` if the host itself is the end point.
    rail_number : int32[r]
        Position of the adapter among all adapters of its host in that order, with or without cables.
    port_ptr : int64[r + 1]
        Ports of each rail.
    port_number : int32[p]
        Number of each port; `NO_PORT` if unknown.
    port_host : int32[p]
        Index into `hosts`.
    out_port, in_port : int32[m]
        End point at the sending and at the receiving end of each link; -1 if there is none.
    """

    hosts: Ints
    rail_ptr: Longs
    rail_adapter: Ints
    rail_number: Ints
    port_ptr: Longs
    port_number: Ints
    port_host: Ints
    out_port: Ints
    in_port: Ints

    @property
    def port_adapter(self) -> Ints:
        """Adapter of each port (int32[p]); `NO_PORT` if there is none."""
        return np.repeat(self.rail_adapter, np.diff(self.port_ptr))


def end_points(fabric: Fabric, vertices: ArrayLike) -> EndPoints:
    """Return the end points of hosts (unique vertices)."""
    hosts = np.array(vertices, np.int32).reshape(-1)
    links, adapters = fabric.links, fabric.adapters
    host_index = np.full(len(fabric), -1, np.int64)
    host_index[hosts] = np.arange(len(hosts))
    rank, rail_number = _adapter_order(fabric)

    def keys(vertex: Ints, adapter: Ints, port: Ints) -> Longs:
        own = (adapter >= 0) & ~fabric.forwards[vertex]
        rail = np.where(own, rank[adapter], 0)
        number = np.where(own, port.astype(np.int64) + 1, 0)
        ports = int(max(links.source_port.max(initial=0), links.target_port.max(initial=0))) + 2
        key = (host_index[vertex] * (len(adapters) + 1) + rail) * ports + number
        return np.where(host_index[vertex] < 0, -1, key)

    out_key = keys(links.source, links.source_adapter, links.source_port)
    in_key = keys(links.target, links.target_adapter, links.target_port)
    every, first = np.unique(np.concatenate((out_key, in_key)), return_index=True)
    first = first[every >= 0]
    every = every[every >= 0]

    def of_port(out: Ints, into: Ints) -> Ints:
        return np.concatenate((out, into))[first]

    vertex = of_port(links.source, links.target)
    own = ~fabric.forwards[vertex]
    adapter = np.where(own, of_port(links.source_adapter, links.target_adapter), NO_PORT)
    number = np.where(adapter >= 0, of_port(links.source_port, links.target_port), NO_PORT)
    port_host = host_index[vertex]
    new_rail = np.r_[True, (np.diff(port_host) != 0) | (np.diff(adapter) != 0)][: len(every)]
    rail_first = np.flatnonzero(new_rail)
    return EndPoints(
        hosts=hosts,
        rail_ptr=np.searchsorted(port_host[rail_first], np.arange(len(hosts) + 1)),
        rail_adapter=adapter[rail_first].astype(np.int32),
        rail_number=rail_number[adapter[rail_first]],
        port_ptr=np.append(rail_first, len(every)),
        port_number=number.astype(np.int32),
        port_host=port_host.astype(np.int32),
        out_port=_positions(every, out_key),
        in_port=_positions(every, in_key),
    )


def _adapter_order(fabric: Fabric) -> tuple[Longs, Ints]:
    """Return the rank of each adapter by name and GUID, from 1 (int64[a + 1]), and its number in its host.

    The last entry, 0 in both, is for adapter -1: a host that is itself the end point.
    """
    adapters = fabric.adapters
    by_name = sorted(range(len(adapters)), key=lambda a: (adapters.names[a], int(adapters.guid[a]), a))
    rank = np.zeros(len(adapters) + 1, np.int64)
    rank[by_name] = np.arange(1, len(adapters) + 1)
    order = np.lexsort((rank[:-1], adapters.host))
    host = adapters.host[order]
    number = np.zeros(len(adapters) + 1, np.int32)
    number[order] = np.arange(len(order)) - np.searchsorted(host, host)
    return rank, number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CableBundles:
    """Rows of ``fabric.links`` by port or by arc, and the fraction of its bytes on each.

    Attributes
    ----------
    ptr : int64[p + 1]
    link : int32
        Rows of ``fabric.links`` of each port or arc.
    share : float64
        Fraction by capacity; sums to 1 within a port or arc.
    """

    ptr: Longs
    link: Ints
    share: Floats

    def take(self, bundles: Longs) -> CableBundles:
        """Return the cables of these ports (or arcs), which may repeat."""
        counts = np.diff(self.ptr)[bundles]
        ptr = np.r_[0, np.cumsum(counts)]
        rows = np.repeat(self.ptr[bundles] - ptr[:-1], counts) + np.arange(ptr[-1])
        return CableBundles(ptr=ptr, link=self.link[rows], share=self.share[rows])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """The transit graph, and the attachment of end points to it.

    Attributes
    ----------
    arcs : ArcArrays
        Arcs of the graph; parallel cables are one arc.
    cables : CableBundles
        Cables of each arc.
    port_vertex : int32[p]
        Vertex of the graph where the paths of each port start and end.
    up, down : CableBundles
        Cables from each port to that vertex and back; none if the port is that vertex itself.
    """

    arcs: ArcArrays
    cables: CableBundles
    port_vertex: Ints
    up: CableBundles
    down: CableBundles


def attach(fabric: Fabric, hosts: ArrayLike) -> tuple[EndPoints, Network]:
    """Return the end points of hosts (unique vertices), and the graph between them."""
    ends = end_points(fabric, hosts)
    return ends, transit_network(fabric, ends)


def transit_network(fabric: Fabric, ends: EndPoints) -> Network:
    """Return the graph of forwarding vertices and of end points not attached to exactly one of them."""
    links, ports = fabric.links, len(ends.port_host)
    transit = np.flatnonzero(fabric.forwards)
    vertex_of = np.full(len(fabric), -1, np.int64)
    vertex_of[transit] = np.arange(len(transit))
    direct = fabric.forwards[ends.hosts[ends.port_host]]
    attached = attachment(fabric, ends)
    simple = (attached >= 0) & ~direct
    port_vertex = np.where(direct, vertex_of[ends.hosts[ends.port_host]], vertex_of[attached])
    special = np.flatnonzero(~direct & ~simple)
    port_vertex[special] = len(transit) + np.arange(len(special))

    def vertices(end: Ints, port: Ints) -> Longs:
        inside = (port >= 0) & ~np.append(simple, False)[port]
        return np.where(
            fabric.forwards[end], vertex_of[end], np.where(inside, np.append(port_vertex, -1)[port], -1)
        )

    tail, head = vertices(links.source, ends.out_port), vertices(links.target, ends.in_port)
    rows = np.flatnonzero((tail >= 0) & (head >= 0))
    total = len(transit) + len(special)
    arc = tail[rows] * total + head[rows]
    arcs = np.sort(arc, kind="stable")  # nearly sorted: faster than finding distinct values by a hash
    arcs = arcs[np.r_[True, arcs[1:] != arcs[:-1]][: len(arcs)]]
    up = np.flatnonzero((ends.out_port >= 0) & np.append(simple, False)[ends.out_port])
    down = np.flatnonzero((ends.in_port >= 0) & np.append(simple, False)[ends.in_port])
    return Network(
        arcs=arc_arrays(arcs // max(total, 1), arcs % max(total, 1), np.arange(total) < len(transit)),
        cables=_cables(np.searchsorted(arcs, arc), rows, links.capacity, len(arcs)),
        port_vertex=port_vertex.astype(np.int32),
        up=_cables(ends.out_port[up], up, links.capacity, ports),
        down=_cables(ends.in_port[down], down, links.capacity, ports),
    )


def arc_arrays(tail: Longs, head: Longs, forwards: Bools) -> ArcArrays:
    """Return both CSR forms of arcs (int64[arcs] for each end) that are ordered by tail, then head."""
    every, by_head = np.arange(len(forwards) + 1), np.argsort(head, kind="stable")
    return ArcArrays(
        out_ptr=np.searchsorted(tail, every),
        head=head.astype(np.int32),
        in_ptr=np.searchsorted(head[by_head], every),
        tail=tail[by_head].astype(np.int32),
        forwards=forwards,
    )


def attachment(fabric: Fabric, ends: EndPoints) -> Longs:
    """Return the one forwarding vertex (int64[p]) at the other end of all cables of a port, else -1."""
    links, ports = fabric.links, len(ends.port_host)
    low, high = np.full((2, ports), len(fabric)), np.full((2, ports), -1)
    for direction, port, far in ((0, ends.out_port, links.target), (1, ends.in_port, links.source)):
        rows = np.flatnonzero(port >= 0)
        np.minimum.at(low[direction], port[rows], far[rows])
        np.maximum.at(high[direction], port[rows], far[rows])
    one = (low[0] == high[0]) & (low[1] == high[1]) & (low[0] == low[1])
    return np.where(one & fabric.forwards[low[0] * one], low[0], -1)


def _cables(bundle: Ints | Longs, rows: Longs, capacity: Floats, bundles: int) -> CableBundles:
    """Return the given rows as bundles, with each row's fraction of its bundle by capacity."""
    order = np.argsort(bundle, kind="stable")
    bundle, link = bundle[order], rows[order]
    total = np.bincount(bundle, weights=capacity[link], minlength=bundles)
    return CableBundles(
        ptr=np.searchsorted(bundle, np.arange(bundles + 1)),
        link=link.astype(np.int32),
        share=capacity[link] / total[bundle],
    )


def _positions(every: Longs, keys: Longs) -> Ints:
    found = np.searchsorted(every, keys).astype(np.int32)
    found[keys < 0] = -1
    return found


def arcs_with(cables: CableBundles, link: int) -> tuple[Longs, Floats]:
    """Return the arcs (int64) that contain a link, and the fraction (float64) of each arc's bytes on it."""
    rows = np.flatnonzero(cables.link == link)
    return np.searchsorted(cables.ptr, rows, side="right") - 1, cables.share[rows]


def empty_flow_arrays(
    kind: int, links: int, max_entries: int, max_channels: int, ends: Ends, hops: HopArray
) -> FlowArrays:
    """Return `FlowArrays` of one kind with empty graph, tables and lists; replace those of the kind."""
    none, ptr, shares = empty(0), empty(1, dtype=np.int64), empty(0, dtype=np.float64)
    return FlowArrays(
        kind=kind,
        links=links,
        max_entries=max_entries,
        max_channels=max_channels,
        ends=ends,
        hops=hops,
        graph=GraphArrays(
            *(ptr, none, ptr, none, shares, empty(0, dtype=np.bool_), none),
            *(empty(0, 0, dtype=hops.dtype), empty(0, 0, dtype=np.uint8)),
        ),
        tables=TableArrays(empty(0, 0, dtype=np.uint8), empty(0, 0), none, none, none),
        row_switch=none,
        lid=none,
        lists=ListArrays(ptr, none, shares),
    )


def graph_arrays(
    network: Network, vertex: Ints, *, hops_to: HopArray | None = None, next_arc: Int8s | None = None
) -> GraphArrays:
    """Return the network as search kernels read it, with a table of hops or of arcs to follow."""
    return GraphArrays(
        arc_ptr=network.arcs.out_ptr,
        arc_head=network.arcs.head,
        link_ptr=network.cables.ptr,
        link=network.cables.link,
        share=network.cables.share,
        forwards=network.arcs.forwards,
        vertex=vertex,
        hops_to=empty(0, 0, dtype=np.int8) if hops_to is None else hops_to,
        next_arc=empty(0, 0, dtype=np.uint8) if next_arc is None else next_arc,
    )


def empty(*shape: int, dtype: Any = np.int32) -> NDArray[Any]:
    """Return an array of zeros of this shape (by default int32)."""
    return np.zeros(shape, dtype)
