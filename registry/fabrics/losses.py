"""What earlier scans showed and the fabric no longer has, and cables that vanished in a period.

A device is still there if its name or one of its GUIDs is: it was renamed or replaced. A cable is still there
if one of its ports has a cable: it was moved. All is read from the derived graph.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from registry.database.driver import Transaction
from registry.fabrics.facts import DeviceFact, LinkFact, device_facts, link_facts
from registry.model import NO_PORT, Fabric
from registry.model.interruption import Interruption, Losses, Vanished

_ENDED = """
MATCH (c:Cluster {id: $cluster})
OPTIONAL MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster AND o.at <= $until
WITH c, o ORDER BY o.at DESC, o.seq DESC LIMIT 1
WITH o, coalesce(c.accepted_at, $ever) AS accepted
OPTIONAL MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)
WHERE d.cluster = $cluster AND s.valid_to <= $until AND s.valid_to > accepted
WITH o, accepted, collect(s.valid_to) AS device_ends,
     collect([d.key, s.name, s.kind, s.guid, s.adapter_guids, s.port_guids]) AS devices
OPTIONAL MATCH (a:Device)-[l:LINK]->(b:Device)
WHERE a.cluster = $cluster AND l.valid_from <= $until
  AND (l.valid_to <= $until AND l.valid_to > accepted
       OR l.valid_to > $start AND (l.valid_from > $start OR l.valid_to <= $until))
RETURN o.id AS observation, accepted, device_ends, devices,
       collect(l.valid_from) AS link_starts, collect(l.valid_to) AS link_ends,
       collect([a.name, b.name, a.key, b.key, l.src_port, l.dst_port, l.src_guid, l.dst_guid, l.twin,
                l.capacity, l.cables]) AS links
"""
_EVER = datetime.min.replace(tzinfo=UTC)
_ORDER = ("switch", "host", "cable")

_Port = tuple[str, int, str]
"""Key or name of a device, port, adapter's GUID."""
_Ends = tuple[_Port, _Port, int]
"""Ports of a cable in order, and its number among equal ones."""


class _Device(NamedTuple):
    """A state of a device, and when it ended."""

    key: str
    name: str
    kind: str
    guids: frozenset[str]
    since: datetime


class _Link(NamedTuple):
    """A link with the names of its devices, valid from `start` until `end`."""

    start: datetime
    end: datetime
    names: tuple[str, str]
    fact: LinkFact


def read_losses(
    transaction: Transaction, cluster: str, fabric: Fabric, start: datetime, until: datetime
) -> Losses:
    """Return what a fabric, that of the last scan until a time, has no longer; one statement.

    Parameters
    ----------
    start : datetime
        Beginning of the period of the interruptions.
    """
    rows = transaction.run(_ENDED, cluster=cluster, start=start, until=until, ever=_EVER)
    if not rows or not rows[0]["observation"]:
        return Losses(cluster=cluster, observation="")
    row = rows[0]
    devices = {
        key: _Device(key, name, kind, _guids(guid, adapters or (), ports or ()), since)
        for since, (key, name, kind, guid, adapters, ports) in _by_time(row["device_ends"], row["devices"])
    }
    spans = zip(row["link_starts"], row["link_ends"], strict=True)
    links = [
        _Link(*span, (one[0], one[1]), LinkFact(*one[2:]))
        for span, one in zip(spans, row["links"] if row["link_ends"] else (), strict=True)
    ]
    ended = [link for link in links if row["accepted"] < link.end <= until]
    found = _vanished(fabric, devices, sorted(ended, key=lambda link: link.end))
    vanished = sorted(found, key=lambda one: (_ORDER.index(one.kind), one.devices, one.ports))
    return Losses(
        cluster=cluster,
        observation=row["observation"],
        vanished=tuple(vanished),
        interruptions=tuple(_interruptions(links, start, until)),
    )


def _interruptions(links: Sequence[_Link], start: datetime, until: datetime) -> Iterator[Interruption]:
    """Yield the cables that vanished after `start` and until `until`, by their ends.

    A cable that comes back at once with another speed did not vanish.
    """
    came: defaultdict[_Ends, set[datetime]] = defaultdict(set)
    went: defaultdict[_Ends, set[datetime]] = defaultdict(set)
    for link in links:
        ends = _ends(link.fact, dict(zip(link.fact[:2], link.names, strict=True)))
        came[ends].add(link.start)
        if start < link.end <= until:
            went[ends].add(link.end)
    for ends in sorted(went):
        near, far, _ = ends
        if times := len(went[ends] - came[ends]):
            yield Interruption(
                source=near[0], source_port=near[1], target=far[0], target_port=far[1], times=times
            )


def _guids(own: str, adapters: Sequence[str], ports: Sequence[str]) -> frozenset[str]:
    """Return all GUIDs of a device that are known."""
    return frozenset((own, *adapters, *ports)) - {""}


def _by_time(ends: list[datetime], rows: list[list[Any]]) -> list[tuple[datetime, list[Any]]]:
    """Return rows with the time at which each ended, the earliest first; none if nothing ended."""
    return sorted(zip(ends, rows, strict=True), key=lambda one: one[0]) if ends else []


def _vanished(fabric: Fabric, devices: dict[str, _Device], ended: Sequence[_Link]) -> Iterator[Vanished]:
    """Yield what of these states and links, the earliest first, the fabric does not have."""
    facts = device_facts(fabric)
    there = _still_there(facts, devices)
    present: Counter[_Ends] = Counter()
    used: set[_Port] = set()
    for fact in link_facts(fabric):
        ends = _ends(fact, there)
        present[ends] = max(present[ends], fact.cables)
        used |= {port for port in ends[:2] if port[1] != NO_PORT}
    with_device: Counter[str] = Counter()
    for ends, link in {_ends(link.fact, there): link for link in ended}.items():
        missing = link.fact.cables - present[ends]
        if missing <= 0 or used.intersection(ends[:2]):
            continue
        keys = [port[0] for port in ends[:2]]
        if gone := [key for key in keys if key not in facts]:
            with_device.update(dict.fromkeys(gone, missing))
            continue
        names, ports = tuple(facts[key].name for key in keys), tuple(port[1] for port in ends[:2])
        yield Vanished(kind="cable", devices=names, ports=ports, cables=missing, since=link.end)
    for key, one in devices.items():
        if key not in there:
            yield Vanished(kind=one.kind, devices=(one.name,), cables=with_device[key], since=one.since)


def _still_there(facts: dict[str, DeviceFact], devices: dict[str, _Device]) -> dict[str, str]:
    """Return the key in the fabric of each device that it still has, by its present and earlier keys."""
    names = {(fact.name, fact.kind): key for key, fact in facts.items()}
    owners = {
        guid: key
        for key, fact in facts.items()
        for guid in _guids(fact.guid, fact.adapter_guids, fact.port_guids)
    }
    found = {key: key for key in facts}
    for key, one in devices.items():
        by_guid = next((owners[guid] for guid in sorted(one.guids) if guid in owners), None)
        now = names.get((one.name, one.kind)) or by_guid
        if key not in found and now is not None:
            found[key] = now
    return found


def _ends(fact: LinkFact, called: dict[str, str]) -> _Ends:
    """Return the ports of a cable, with what its devices are called."""
    near = called.get(fact.source, fact.source), fact.src_port, fact.src_guid
    far = called.get(fact.target, fact.target), fact.dst_port, fact.dst_guid
    return min(near, far), max(near, far), fact.twin
