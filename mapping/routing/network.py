"""A fabric in the form that kernels use: the end points of hosts, and the graph between them.

An end point is what a host sends from: a port of an adapter, or the host itself if the source knows no
adapters or the host forwards (direct networks). A port attached to one forwarding vertex by its own cable
needs no search: its paths start and end at that vertex. Any other end point (several cables of unknown ports,
hosts connected to each other) becomes a vertex of the transit graph that does not forward.

Groups of hosts with equal distances, so that a table of distances needs no row per host.

Hosts attached to the same switches by the same number of cables have the same distance to every other host.
For a fat tree with 20,000 hosts on 1,000 leaves, distances are a table of 1,000 x 1,000.

Traffic between hosts, summed from the traffic between their ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mapping.deadline import each
from mapping.routing.kernels import channels as kernel
from mapping.routing.kernels.channels import Ends
from mapping.routing.kernels.flows import FlowArrays, GraphArrays, ListArrays
from mapping.routing.kernels.forwarding_tables import TableArrays
from mapping.routing.kernels.paths import ArcArrays, HopArray
from registry.errors import InvalidValue, WrongRanks
from registry.model import NO_PORT, Bools, Fabric, Floats, Int8s, Ints, Longs, Placement, Profile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EndPoints:
    """Hosts, their rails (adapters) and the ports of the rails."""

    hosts: Ints
    """int32[h]: Vertices of the fabric."""
    rail_ptr: Longs
    """int64[h + 1]: Rails of each host, ordered by adapter name, then GUID."""
    rail_adapter: Ints
    """int32[r]: Adapter of each rail; `NO_PORT` if the host itself is the end point."""
    rail_number: Ints
    """int32[r]: Position of the adapter among all adapters of its host in that order, with or without cables.
    """
    port_ptr: Longs
    """int64[r + 1]: Ports of each rail."""
    port_number: Ints
    """int32[p]: Number of each port; `NO_PORT` if unknown."""
    port_host: Ints
    """int32[p]: Index into `hosts`."""
    out_port: Ints
    in_port: Ints
    """int32[m]: End point at the sending and at the receiving end of each link; -1 if there is none."""

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
    """Rows of ``fabric.links`` by port or by arc, and the fraction of its bytes on each."""

    ptr: Longs
    """int64[p + 1]."""
    link: Ints
    """Rows of ``fabric.links`` of each port or arc."""
    share: Floats
    """Fraction by capacity; sums to 1 within a port or arc."""

    def take(self, bundles: Longs) -> CableBundles:
        """Return the cables of these ports (or arcs), which may repeat."""
        counts = np.diff(self.ptr)[bundles]
        ptr = np.r_[0, np.cumsum(counts)]
        rows = np.repeat(self.ptr[bundles] - ptr[:-1], counts) + np.arange(ptr[-1])
        return CableBundles(ptr=ptr, link=self.link[rows], share=self.share[rows])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """The transit graph, and the attachment of end points to it."""

    arcs: ArcArrays
    """Arcs of the graph; parallel cables are one arc."""
    cables: CableBundles
    """Cables of each arc."""
    port_vertex: Ints
    """int32[p]: Vertex of the graph where the paths of each port start and end."""
    up: CableBundles
    down: CableBundles
    """Cables from each port to that vertex and back; none if the port is that vertex itself."""


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


AT_ONCE = 512
"""Rows of a table per piece of parallel work."""


def column_classes(hops: HopArray) -> Longs:
    """Return the class (int64[t]) of each column of `hops`; equal columns have the same class.

    Columns are compared by a hash first, then entry by entry.
    """
    weight = np.random.default_rng(0).integers(0, 1 << 63, len(hops), np.uint64)
    hashes = np.zeros(hops.shape[1], np.uint64)
    for row in range(len(hops)):
        hashes += weight[row] * hops[row].astype(np.uint64)
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    if all(np.array_equal(row, row[first][number]) for row in hops):
        return np.asarray(number, np.int64)
    return np.asarray(np.unique(hops, axis=1, return_inverse=True)[1], np.int64).reshape(-1)


def host_groups(ends: Ends, target_class: Longs) -> Ints:
    """Return the group (int32[h]) of each host, numbered by their first hosts.

    Args:
        target_class (int64[t]): Class of each column of the table of hops; equal for equal columns.
    """
    row, up, down = ends.port_row, np.diff(ends.up_ptr) > 0, np.diff(ends.down_ptr) > 0
    targets, hosts = target_class[ends.target], len(ends.rail_ptr) - 1
    if bool((np.diff(ends.rail_ptr) == 1).all()) and len(row) == len(targets) == hosts:
        width = int(targets.max(initial=0)) + 1
        key = ((row.astype(np.int64) + 1) * width + targets) * 4 + 2 * up + down
    else:
        key = _keys(ends, up.tolist(), down.tolist(), targets.tolist())
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    return number[group]


def _keys(ends: Ends, up: list[bool], down: list[bool], targets: list[int]) -> Longs:
    """Return keys (int64[h]) that are equal for hosts whose rails, ports and targets are all equal."""
    number_of: dict[tuple[object, ...], int] = {}
    rail_ptr, port_ptr, target_ptr = ends.rail_ptr.tolist(), ends.port_ptr.tolist(), ends.target_ptr.tolist()
    numbers, rows = ends.rail_number.tolist(), ends.port_row.tolist()
    keys = []
    for host in range(len(rail_ptr) - 1):
        rails = tuple(
            (
                numbers[rail] if ends.same_rail else 0,
                tuple(
                    (rows[p], up[p], down[p], tuple(targets[target_ptr[p] : target_ptr[p + 1]]))
                    for p in range(port_ptr[rail], port_ptr[rail + 1])
                ),
            )
            for rail in range(rail_ptr[host], rail_ptr[host + 1])
        )
        keys.append(number_of.setdefault(rails, len(number_of)))
    return np.array(keys, np.int64)


def group_hops(ends: Ends, hops: HopArray, group: Ints, max_channels: int) -> Floats:
    """Return mean hops (float64[g, g]) from a host of each group to another host of each; ``inf`` for none.

    The diagonal holds the hops between two hosts of a group; 0 if the group has only one.
    """
    first = np.unique(group, return_index=True)[1].astype(np.int32)
    second, found = second_hosts(group, first), np.zeros((len(first), len(first)))
    if max_channels == 1 and len(ends.port_row) == len(ends.target) == len(group):
        _fill(kernel.single_hops, ends, hops, first, found)
        np.fill_diagonal(found, np.where(first == second, 0.0, np.diagonal(found)))
    else:
        kernel.mean_hops(ends, hops, kernel.new_channels(max_channels), first, second, found)
    return found


def group_links(ends: Ends, hops: HopArray, group: Ints) -> Int8s:
    """Return the same as bytes (uint8[g, g]) for connected hosts with one port and one target each."""
    first = np.unique(group, return_index=True)[1].astype(np.int32)
    second, found = second_hosts(group, first), np.zeros((len(first), len(first)), np.uint8)
    _fill(kernel.single_codes, ends, hops, first, found)
    np.fill_diagonal(found, np.where(first == second, 0, np.diagonal(found)))
    return found


def _fill(fill: Callable[..., None], ends: Ends, hops: HopArray, first: Ints, found: NDArray[Any]) -> None:
    """Fill the table of all groups with a kernel, some rows at a time."""
    row, target = ends.port_row[first], ends.target[first]
    up, down = (np.diff(ends.up_ptr) > 0)[first], (np.diff(ends.down_ptr) > 0)[first]

    def some(begin: int) -> None:
        rows = slice(begin, begin + AT_ONCE)
        fill(hops, row[rows], target, up[rows], down, found[rows])

    each(some, range(0, len(first), AT_ONCE))


def second_hosts(group: Ints, first: Ints) -> Ints:
    """Return the second host of each group (int32[g]), or the first if there is only one."""
    rest = np.ones(len(group), np.bool_)
    rest[first] = False
    found = first.copy()
    others = np.flatnonzero(rest)[::-1]
    found[group[others]] = others
    return found


class HostTraffic(NamedTuple):
    """Traffic between the hosts of a placement."""

    hosts: Ints
    """int32[h]: Vertices that have ranks, ascending."""
    source: Longs
    target: Longs
    """int64[pairs]: Indices into `hosts`; ordered and unique; traffic within a host is left out."""
    bytes: Floats
    """float64[pairs]."""
    rank_pairs: Floats
    """float64[pairs]: Ordered pairs of ranks that communicate, including pairs that send no bytes."""
    messages: Floats
    """float64[pairs]: Messages of each pair; 0 if the profile has none."""
    packets: Floats
    """float64[pairs]: Packets by `packets`; empty if no packet size was given."""
    total_messages: float
    """All messages, including those within hosts; NaN if a pair sends bytes in an unknown number of messages.
    """


def host_traffic(profile: Profile, placement: Placement, *, packet_bytes: float | None = None) -> HostTraffic:
    """Return the traffic between hosts, summed over the ranks of each host.

    Args:
        packet_bytes: Size of a packet, to count packets too.

    Raises:
        InvalidPlacement: The placement has another number of ranks.
        InvalidValue: The packet size is not above zero.
    """
    if placement.ranks != profile.ranks:
        raise WrongRanks(placement.ranks, profile.ranks)
    hosts, host = np.unique(placement.host_of_rank, return_inverse=True)
    source, target = host[profile.sender], host[profile.partner]
    apart = source != target
    pairs, inverse = np.unique(source[apart] * len(hosts) + target[apart], return_inverse=True)

    def summed(values: Floats | None) -> Floats:
        weights = None if values is None else values[apart]
        return np.bincount(inverse, weights=weights, minlength=len(pairs)).astype(np.float64)

    unknown = (profile.messages == 0) & (profile.bytes > 0)
    return HostTraffic(
        hosts=hosts,
        source=pairs // len(hosts),
        target=pairs % len(hosts),
        bytes=summed(profile.bytes),
        rank_pairs=summed(None),
        messages=summed(profile.messages.astype(np.float64)),
        packets=np.zeros(0) if packet_bytes is None else summed(packets(profile, packet_bytes)),
        total_messages=float("nan") if bool(unknown.any()) else float(profile.messages.sum()),
    )


def packets(profile: Profile, packet_bytes: float) -> Floats:
    """Return the packets (float64[e]) that each ordered pair of ranks sends.

    Messages are split into packets of one size (Orduña, Silla and Duato 2004, section 2). A profile has the
    messages and bytes of a pair but not the size of each message. Counted are the packets that its bytes
    fill, and at least one per message.

    Raises:
        InvalidValue
    """
    if not (np.isfinite(packet_bytes) and packet_bytes > 0):
        raise InvalidValue("packets.packet_bytes", f"{packet_bytes:g} is not above zero")
    return np.maximum(np.ceil(profile.bytes / packet_bytes), profile.messages.astype(np.float64))
