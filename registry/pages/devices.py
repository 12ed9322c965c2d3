"""Reads for the fabric page: when the cables and the name of a host or switch changed; one statement."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from registry.database.driver import Database
from registry.model import Fabric
from registry.store.derived import device_id, device_keys
from registry.store.timeline import FOREVER

APPEARED, REMOVED, CHANGED_SPEED, RENAMED = "added", "removed", "changed speed", "renamed"
"""Kinds of events."""

_DEVICE = """
MATCH (d:Device {id: $device})
OPTIONAL MATCH (d)-[:HAS_STATE]->(s:DeviceState)
WITH d, collect(s.valid_from) AS state_starts, collect(s.name) AS state_names
OPTIONAL MATCH (d)-[l:LINK]->(b:Device)
RETURN state_starts, state_names, collect(l.valid_from) AS starts, collect(l.valid_to) AS ends,
       collect([l.src_port, l.src_guid, l.dst_port, l.dst_guid, l.twin]) AS ports,
       collect(b.name) AS peers
"""


class DeviceEvent(NamedTuple):
    """A change of a device."""

    at: datetime
    """Time of the first observation after it, UTC."""
    kind: str
    """`APPEARED`, `REMOVED` or `CHANGED_SPEED` of a cable, or `RENAMED`."""
    port: int
    """Port of the device; negative if unknown, or if the device got another name."""
    peer: str
    """Present name of the device at the other end; the new name if the device got another one."""
    peer_port: int
    """Port there; negative if unknown."""


class DeviceHistory(NamedTuple):
    """Time of the first observation of a device, None if there is none; its changes, newest first."""

    first_at: datetime | None
    events: tuple[DeviceEvent, ...]


def read_device_history(database: Database, cluster: str, fabric: Fabric, vertex: int) -> DeviceHistory:
    """Return when the cables and the name of a device changed; one statement.

    Args:
        fabric: A fabric of the cluster.
        vertex: Host or switch in it.
    """
    identity = device_id(cluster, device_keys(fabric)[vertex])
    rows = database.read(lambda transaction: transaction.run(_DEVICE, device=identity))
    if not rows or not rows[0]["state_starts"]:
        return DeviceHistory(None, ())
    row = rows[0]
    names = sorted(zip(row["state_starts"], row["state_names"], strict=True))
    first = names[0][0]
    renamed = [
        DeviceEvent(at, RENAMED, -1, name, -1)
        for (_, before), (at, name) in pairwise(names)
        if before != name
    ]
    events = [*renamed, *_cable_events(row, first)]
    return DeviceHistory(first, tuple(sorted(events, key=_newest_first)))


def _cable_events(row: dict[str, Any], first: datetime) -> list[DeviceEvent]:
    """Return the events of the cables; those that the first observation saw were not added."""
    came: defaultdict[tuple[Any, ...], set[datetime]] = defaultdict(set)
    went: defaultdict[tuple[Any, ...], set[datetime]] = defaultdict(set)
    columns = (row[name] for name in ("starts", "ends", "ports", "peers"))
    for start, end, ports, peer in zip(*columns, strict=True):
        came[*ports, peer].add(start)
        went[*ports, peer].add(end)
    events = []
    for cable, starts in came.items():
        port, _, peer_port, _, _, peer = cable
        ends = went[cable] - {FOREVER}
        for at in sorted(starts | ends):
            if at in starts and at in ends:
                kind = CHANGED_SPEED
            elif at in ends:
                kind = REMOVED
            elif at > first:
                kind = APPEARED
            else:
                continue
            events.append(DeviceEvent(at, kind, int(port), peer, int(peer_port)))
    return events


def _newest_first(event: DeviceEvent) -> tuple[float, str, int, str]:
    return -event.at.timestamp(), event.kind, event.port, event.peer
