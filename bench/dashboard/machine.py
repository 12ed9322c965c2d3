"""Generate the dashboard's measured machine: 10,000 hosts, cables lost and repaired over 30 days.

A three-level fat tree of `ingest.generate.trees` with everything that a scan of a real one reports:
names, port numbers, GUIDs, LIDs, and the forwarding tables that a subnet manager would set for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from ingest.generate.trees import three_level
from registry.model import (
    NO_ROUTE,
    Adapters,
    Bools,
    Fabric,
    ForwardingTables,
    Guids,
    Ints,
    Links,
    Longs,
    Ports,
)
from registry.model.links import ACTIVE, DOWN

CAPACITY = 2.5e10
"""Bytes/s of every cable and direction: HDR, 200 Gbit/s."""
SLOTS = 8
SWITCH_GUID = 0x0002C90000100000
HOST_GUID = 0x0002C90000F00000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Machine:
    """The whole machine, before anything failed."""

    fabric: Fabric
    lid: Ints
    """int32[n]; Of each vertex: of its one port, or of the switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Faults of the machine since a time."""

    before_now: timedelta
    lost: tuple[tuple[str, str], ...] = ()
    slow: tuple[tuple[str, str], ...] = ()


def story(pods: int, leaves: int) -> tuple[Damage, ...]:
    """Return the damage over 30 days, oldest first: cables are lost in three places and repaired in two."""
    bundle = tuple((f"p{6 % pods:02d}-leaf03", f"p{6 % pods:02d}-up{index:02d}") for index in range(4))
    core = tuple(
        (f"p{1 % pods:02d}-up{5 % leaves:02d}", f"core{5 % leaves * leaves + index:03d}")
        for index in range(3)
    )
    slow = ((f"p{1 % pods:02d}-leaf02", f"p{1 % pods:02d}-up01"),)
    today = tuple((f"p{index:02d}-leaf01", f"p{index:02d}-up02") for index in range(2))
    return (
        Damage(before_now=timedelta(days=30)),
        Damage(before_now=timedelta(days=21), lost=bundle),
        Damage(before_now=timedelta(days=18)),
        Damage(before_now=timedelta(days=9), lost=core, slow=slow),
        Damage(before_now=timedelta(days=4), slow=slow),
        Damage(before_now=timedelta(hours=14), lost=today, slow=slow),
    )


def machine(pods: int = 25, leaves: int = 20, hosts: int = 20) -> Machine:
    """Build the machine with ``pods * leaves * hosts`` hosts and `leaves` upper switches per pod."""
    tree = three_level(pods, leaves, hosts, capacity=CAPACITY, slots=SLOTS)
    count, n = len(tree.hosts), len(tree)
    lid = np.arange(1, n + 1, dtype=np.int32)
    guid = np.where(np.arange(n) < count, 0, SWITCH_GUID + 16 * np.arange(n)).astype(np.uint64)
    named = replace(
        tree,
        names=tuple(_names(pods, leaves, hosts)),
        guid=guid,
        lid=np.where(np.arange(n) < count, 0, lid),
        links=_with_ports(tree),
        adapters=_adapters(count, lid),
    )
    return Machine(fabric=replace(named, tables=tables(named, lid)), lid=lid)


def damaged(whole: Machine, damage: Damage) -> Fabric:
    """Return the machine with lost or slow cables, and forwarding tables that avoid them."""
    fabric = whole.fabric
    kept = with_faults(fabric, _between(fabric, damage.lost), _between(fabric, damage.slow))
    return replace(kept, tables=tables(kept, whole.lid))


def with_faults(fabric: Fabric, lost: Bools, slow: Bools) -> Fabric:
    """Return a fabric without the lost links, the slow ones with a quarter of their lanes."""
    links = fabric.links
    capacity = np.where(slow, links.capacity / 4, links.capacity)
    gone = np.flatnonzero(lost)
    narrow = np.flatnonzero(slow)
    ports = Ports(
        vertex=np.r_[links.source[gone], links.source[narrow]],
        adapter=np.r_[links.source_adapter[gone], links.source_adapter[narrow]],
        number=np.r_[links.source_port[gone], links.source_port[narrow]],
        state=np.repeat(np.array([DOWN, ACTIVE], np.uint8), (len(gone), len(narrow))),
        could_be=np.r_[np.zeros(len(gone)), links.capacity[narrow]],
    )
    return replace(fabric, links=replace(links, capacity=capacity).take(np.flatnonzero(~lost)), ports=ports)


def tables(fabric: Fabric, lid: Ints) -> ForwardingTables:
    """Compute forwarding tables along shortest paths, with equal ports chosen by destination (d-mod-k).

    Args:
        lid (int32[n]; Of each vertex; they follow one another from 1):
    """
    switches, links = fabric.switches, fabric.links
    row_of = np.full(len(fabric), -1)
    row_of[switches] = np.arange(len(switches))
    inner = (row_of[links.source] >= 0) & (row_of[links.target] >= 0)
    ends = row_of[links.source[inner]], row_of[links.target[inner]]
    graph = csr_array((np.ones(len(ends[0])), ends), shape=(len(switches),) * 2)
    distance = shortest_path(graph, unweighted=True)
    home, exit_port = _homes(fabric, row_of)
    level = np.zeros(len(fabric), int) if fabric.level is None else fabric.level
    stride = _stride(fabric)
    ports = np.full((len(switches), len(fabric) + 1), NO_ROUTE, np.uint8)
    for row, numbers, peers in _cables(fabric, inner, row_of):
        nearer = distance[peers] == distance[row] - 1
        first = np.argsort(~nearer, axis=0, kind="stable")
        turn = (
            np.arange(len(fabric)) // stride[level[switches[row]]] % np.maximum(nearer.sum(axis=0), 1)[home]
        )
        chosen = numbers[first[turn, home]]
        ports[row, lid] = np.where(nearer.any(axis=0)[home], chosen, NO_ROUTE)
        here = home == row
        ports[row, lid[here]] = exit_port[here]
    owner = np.zeros(len(fabric) + 1, np.uint64)
    owner[lid[switches]] = fabric.guid[switches]
    owner[fabric.adapters.port_lid] = fabric.adapters.port_guid
    order = np.argsort(fabric.guid[switches], kind="stable")
    return ForwardingTables(switch_guid=fabric.guid[switches][order], ports=ports[order], lid_guid=owner)


def cable_ends(fabric: Fabric) -> tuple[Guids, Ints]:
    """Return the GUID of the device that sends on each link (uint64[m]) and its port (int32[m])."""
    links = fabric.links
    own = np.append(fabric.adapters.guid, np.uint64(0))
    guid = np.where(links.source_adapter >= 0, own[links.source_adapter], fabric.guid[links.source])
    return guid, links.source_port


def _names(pods: int, leaves: int, hosts: int) -> Iterator[str]:
    yield from (f"n{index:05d}" for index in range(pods * leaves * hosts))
    yield from (f"p{pod:02d}-leaf{index:02d}" for pod in range(pods) for index in range(leaves))
    yield from (f"p{pod:02d}-up{index:02d}" for pod in range(pods) for index in range(leaves))
    yield from (f"core{index:03d}" for index in range(leaves * leaves))


def _with_ports(tree: Fabric) -> Links:
    """Number each vertex's ports by its neighbours, from 1, and give each host an adapter."""
    links = tree.links
    port = np.arange(len(links)) - np.searchsorted(links.source, links.source) + 1
    back = np.lexsort((links.source, links.target))  # row of the other direction of each link
    is_host = tree.kind == 0
    adapter = np.where(is_host, np.arange(len(tree)), -1)
    return replace(
        links,
        source_port=port,
        target_port=port[back],
        source_adapter=adapter[links.source],
        target_adapter=adapter[links.target],
    )


def _adapters(count: int, lid: Ints) -> Adapters:
    hosts = np.arange(count, dtype=np.int32)
    guid = (HOST_GUID + 16 * hosts.astype(np.int64)).astype(np.uint64)
    return Adapters(
        names=tuple(f"n{index:05d} mlx5_0" for index in range(count)),
        guid=guid,
        system_guid=guid,
        host=hosts,
        port_adapter=hosts,
        port_number=np.ones(count, np.int32),
        port_guid=guid + np.uint64(1),
        port_lid=lid[:count],
        port_lmc=np.zeros(count, np.int32),
    )


def _between(fabric: Fabric, pairs: tuple[tuple[str, str], ...]) -> Bools:
    """Return which links belong to these cables, in both directions (bool[m])."""
    vertex = {name: index for index, name in enumerate(fabric.names)}
    chosen = {(vertex[a], vertex[b]) for a, b in pairs} | {(vertex[b], vertex[a]) for a, b in pairs}
    both = zip(fabric.links.source.tolist(), fabric.links.target.tolist(), strict=True)
    found = np.fromiter((pair in chosen for pair in both), bool, len(fabric.links))
    if found.sum() != len(chosen):
        raise ValueError(f"no such cables: {pairs}")
    return found


def _homes(fabric: Fabric, row_of: Longs) -> tuple[Longs, Longs]:
    """Return each vertex's switch (itself, if it is a switch) and the port there (int64[n])."""
    links = fabric.links
    home, exit_port = np.maximum(row_of, 0), np.zeros(len(fabric), np.int64)
    down = (row_of[links.source] >= 0) & (row_of[links.target] < 0)
    home[links.target[down]] = row_of[links.source[down]]
    exit_port[links.target[down]] = links.source_port[down]
    return home, exit_port


def _stride(fabric: Fabric) -> Longs:
    """Return, by level of a switch, how many consecutive destinations share one upward port."""
    leaf = int(np.argmax(fabric.kind == 1))
    below = fabric.links.target[fabric.links.source == leaf]
    hosts = int((fabric.kind[below] == 0).sum())
    return np.array([1, 1, hosts, hosts])


def _cables(fabric: Fabric, inner: Bools, row_of: Longs) -> Iterator[tuple[int, Ints, Longs]]:
    """Return for each switch: its row, the ports of its cables to other switches, and their rows."""
    links = fabric.links
    rows = row_of[links.source[inner]]
    starts = np.searchsorted(rows, np.arange(len(fabric.switches) + 1))
    numbers, peers = links.source_port[inner], row_of[links.target[inner]]
    for row, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        if end > begin:
            yield row, numbers[begin:end], peers[begin:end]
