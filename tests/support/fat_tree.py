"""Generated fabrics for tests: a two-level fat tree with GUIDs, ports, LIDs, rails and tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np

from registry.model import HOST, NO_ROUTE, SWITCH, Adapters, Fabric, ForwardingTables, Links

LEAF_GUID = 0xB00000
SPINE_GUID = 0xC00000
ADAPTER_GUID = 0xA00000


def at(minutes: float) -> datetime:
    """Return a time of these tests, in minutes."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)


def fat_tree(
    leaves: int = 2,
    spines: int = 2,
    hosts: int = 2,
    rails: int = 1,
    cables: int = 1,
    *,
    without: tuple[int, ...] = (),
    slow: tuple[int, ...] = (),
    renamed: Mapping[str, str] | None = None,
    shuffle: int | None = None,
) -> Fabric:
    """Return a fat tree with `hosts` per leaf on `rails` of its ports, and `cables` per leaf and spine.

    Cables are numbered from 0, uplinks first; `without` leaves some out, `slow` halves some.
    `shuffle` lists vertices, adapters and cables in another order.
    """
    names = [f"spine{s}" for s in range(spines)] + [f"leaf{v}" for v in range(leaves)]
    names += [f"node{h:02}" for h in range(leaves * hosts)]
    called = [(renamed or {}).get(name, name) for name in names]
    switches, machines = spines + leaves, leaves * hosts
    ends: list[tuple[int, int, int, int, int, int]] = []  # vertex, port, adapter at each end
    for leaf in range(leaves):
        for spine in range(spines):
            for cable in range(cables):
                up = 1 + hosts * rails + spine * cables + cable
                ends.append((spines + leaf, up, -1, spine, 1 + leaf * cables + cable, -1))
    for machine in range(machines):
        for rail in range(rails):
            leaf, place = divmod(machine, hosts)
            port = 1 + place * rails + rail
            ends.append((switches + machine, 1, machine * rails + rail, spines + leaf, port, -1))
    kept = [number for number in range(len(ends)) if number not in without]
    order = np.arange if shuffle is None else np.random.default_rng(shuffle).permutation
    count, a = len(names), machines * rails
    vertex, adapter, row = order(count).astype(np.int32), order(a).astype(np.int32), order(len(kept))
    table = np.asarray([ends[number] for number in kept], np.int32).reshape(-1, 6)[row]
    speed = np.where(np.isin(kept, slow), 25e9, 50e9)[row]
    there, back = np.argsort(vertex), np.argsort(adapter)  # new number -> old number
    near, far = table[:, :3], table[:, 3:]
    source, target = np.vstack([near, far]), np.vstack([far, near])
    guid = np.r_[SPINE_GUID + np.arange(spines), LEAF_GUID + np.arange(leaves), np.zeros(machines)]
    lid = np.r_[1 + np.arange(switches), np.zeros(machines)]
    hostwise = np.r_[np.zeros(switches), np.ones(machines)]
    return Fabric(
        names=tuple(called[v] for v in there),
        kind=np.where(hostwise > 0, HOST, SWITCH)[there],
        slots=hostwise.astype(int)[there],
        forwards=(hostwise == 0)[there],
        guid=guid.astype(np.uint64)[there],
        lid=lid.astype(int)[there],
        links=Links(
            source=vertex[source[:, 0]],
            target=vertex[target[:, 0]],
            capacity=np.r_[speed, speed],
            source_port=source[:, 1],
            target_port=target[:, 1],
            source_adapter=np.where(source[:, 2] < 0, -1, adapter[source[:, 2]]),
            target_adapter=np.where(target[:, 2] < 0, -1, adapter[target[:, 2]]),
            cables=np.ones(2 * len(kept), int),
        ),
        adapters=Adapters(
            names=tuple(f"{called[switches + x // rails]} mlx5_{x % rails}" for x in back),
            guid=(ADAPTER_GUID + 16 * np.arange(a, dtype=np.uint64))[back],
            system_guid=(ADAPTER_GUID + 16 * np.arange(a, dtype=np.uint64))[back],
            host=vertex[switches + np.arange(a) // rails][back],
            port_adapter=np.arange(a, dtype=np.int32),
            port_number=np.ones(a, int),
            port_guid=(ADAPTER_GUID + 16 * np.arange(a, dtype=np.uint64) + np.uint64(1))[back],
            port_lid=(switches + 1 + np.arange(a, dtype=np.int32))[back],
            port_lmc=np.zeros(a, int),
        ),
    )


def tree_tables(
    leaves: int = 2, spines: int = 2, hosts: int = 2, rails: int = 1, *, turn: int = 0
) -> ForwardingTables:
    """Return tables for a `fat_tree` with one cable per leaf and spine: up by LID + `turn`, down by leaf."""
    switches, a = spines + leaves, leaves * hosts * rails
    lids = switches + 1 + a
    ports = np.full((switches, lids), NO_ROUTE, np.uint8)  # row: leaves first, by GUID
    for x in range(a):
        lid, (leaf, place) = switches + 1 + x, divmod(x, hosts * rails)
        ports[:leaves, lid] = 1 + hosts * rails + (lid + turn) % spines
        ports[leaf, lid] = 1 + place
        ports[leaves:, lid] = 1 + leaf
    owner = np.zeros(lids, np.uint64)
    owner[1 : 1 + spines] = SPINE_GUID + np.arange(spines, dtype=np.uint64)
    owner[1 + spines : 1 + switches] = LEAF_GUID + np.arange(leaves, dtype=np.uint64)
    owner[switches + 1 :] = ADAPTER_GUID + 16 * np.arange(a, dtype=np.uint64) + np.uint64(1)
    guids = np.r_[LEAF_GUID + np.arange(leaves), SPINE_GUID + np.arange(spines)]
    return ForwardingTables(switch_guid=guids, ports=ports, lid_guid=owner)
