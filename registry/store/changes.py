"""Differences between two states of a fabric: devices, cables, capacities, names; also as text.

Switches are identified by their GUID, hosts by the GUIDs of (most of) their adapters, devices without GUIDs
by name. Cables are identified by both ends: device, adapter and port; without ports, only the number of
cables between two devices is compared.

What earlier scans showed and the fabric no longer has, and cables that vanished in a period.

A device is still there if its name or one of its GUIDs is: it was renamed or replaced. A cable is still there
if one of its ports has a cable: it was moved. All is read from the derived graph.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from registry import units
from registry.database.driver import Transaction
from registry.model import HOST, NO_PORT, SWITCH, Fabric, format_guid
from registry.model.fabric import port_name
from registry.model.job import Interruption, Losses, Vanished
from registry.model.views import one_line
from registry.store.derived import DeviceFact, LinkFact, device_facts, link_facts

_HOW = ("appeared", "vanished")

End = tuple[int, int, str]
"""Identity of a device, port, adapter's GUID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A device with a new name."""

    kind: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cable:
    """A cable, or a bundle of cables if ports are unknown.

    Attributes:
        source, target: Names of the devices at its ends.
        source_port, target_port: Ports; `registry.model.NO_PORT` if unknown.
        source_guid, target_guid: Adapter at a host; empty at a switch.
    """

    source: str
    source_port: int
    source_guid: str
    target: str
    target_port: int
    target_guid: str
    cables: int
    capacity: float
    capacity_back: float
    """Data bytes/s of all its cables together, from source to target and back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityChange:
    """A cable with another capacity."""

    before: Cable
    after: Cable


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Differences between two states; names are those of the state that has the device."""

    start: datetime | None = None
    end: datetime | None = None
    """Times of the two states, UTC."""
    start_snapshot: str | None = None
    end_snapshot: str | None = None
    """Ids of their snapshots."""
    hosts_appeared: tuple[str, ...] = ()
    hosts_vanished: tuple[str, ...] = ()
    switches_appeared: tuple[str, ...] = ()
    switches_vanished: tuple[str, ...] = ()
    renamed: tuple[Rename, ...] = ()
    cables_appeared: tuple[Cable, ...] = ()
    cables_vanished: tuple[Cable, ...] = ()
    capacity_changed: tuple[CapacityChange, ...] = ()
    switches_rerouted: tuple[str, ...] = ()
    """GUIDs of switches whose forwarding table differs; also empty if one state has no tables."""

    __repr__ = one_line

    @property
    def empty(self) -> bool:
        """True if wiring, names and tables are the same."""
        about = ("start", "end", "start_snapshot", "end_snapshot")
        return self == Changes(**{name: getattr(self, name) for name in about})


def compare(before: Fabric, after: Fabric) -> Changes:
    """Return the differences in wiring and names between two fabrics."""
    same = _same_devices(before, after)
    identity = [same.get(v, len(before) + v) for v in range(len(after))]
    old = _cables(before, list(range(len(before))))
    new = _cables(after, identity)
    appeared, vanished, changed = [], [], []
    for ends in old.keys() | new.keys():
        was, now = old.get(ends), new.get(ends)
        more = (now.cables if now else 0) - (was.cables if was else 0)
        if now and more > 0:
            appeared.append(_part(now, more))
        elif was and more < 0:
            vanished.append(_part(was, -more))
        if was and now and _speed(was) != _speed(now):
            changed.append(CapacityChange(before=was, after=now))
    gone = set(range(len(before))) - set(same.values())
    come = set(range(len(after))) - same.keys()
    renamed = [
        Rename(kind="host" if after.kind[v] == HOST else "switch", old=before.names[w], new=after.names[v])
        for v, w in same.items()
        if before.names[w] != after.names[v]
    ]
    return Changes(
        hosts_appeared=_names(after, come, HOST),
        hosts_vanished=_names(before, gone, HOST),
        switches_appeared=_names(after, come, SWITCH),
        switches_vanished=_names(before, gone, SWITCH),
        renamed=tuple(sorted(renamed, key=lambda one: (one.kind, one.old))),
        cables_appeared=tuple(sorted(appeared, key=_order)),
        cables_vanished=tuple(sorted(vanished, key=_order)),
        capacity_changed=tuple(sorted(changed, key=lambda one: _order(one.after))),
    )


def _same_devices(before: Fabric, after: Fabric) -> dict[int, int]:
    """Return the vertex of `before` for each vertex of `after` that is the same device."""
    shared: Counter[tuple[int, int]] = Counter()
    for owner in (_switch_guids, _host_guids):
        old = owner(before)
        for guid, vertex in owner(after).items():
            if guid in old:
                shared[vertex, old[guid]] += 1
    same: dict[int, int] = {}
    taken: set[int] = set()

    def pair(vertex: int, older: int) -> None:
        if vertex not in same and older not in taken:
            same[vertex] = older
            taken.add(older)

    def likelihood(pair: tuple[int, int]) -> tuple[int, bool, int, int]:
        return -shared[pair], after.names[pair[0]] != before.names[pair[1]], *pair

    for vertex, older in sorted(shared, key=likelihood):
        pair(vertex, older)
    by_name = {name: vertex for vertex, name in enumerate(before.names)}
    for vertex, name in enumerate(after.names):
        older = by_name.get(name, -1)
        if (
            older >= 0
            and before.kind[older] == after.kind[vertex]
            and not _other_switch(before, older, after, vertex)
        ):
            pair(vertex, older)
    return same


def _switch_guids(fabric: Fabric) -> dict[int, int]:
    return {int(fabric.guid[v]): int(v) for v in fabric.switches if fabric.guid[v]}


def _host_guids(fabric: Fabric) -> dict[int, int]:
    adapters = fabric.adapters
    return {
        guid: host for guid, host in zip(adapters.guid.tolist(), adapters.host.tolist(), strict=True) if guid
    }


def _other_switch(before: Fabric, older: int, after: Fabric, vertex: int) -> bool:
    """Return True if GUIDs show that another switch took the place of the old one."""
    guids = int(before.guid[older]), int(after.guid[vertex])
    return all(guids) and guids[0] != guids[1]


def _cables(fabric: Fabric, identity: list[int]) -> dict[tuple[End, End], Cable]:
    """Return the cables by their ends; both directions of a cable are one row."""
    links = fabric.links
    guids = [*map(format_guid, fabric.adapters.guid.tolist()), ""]
    source, target = links.source.tolist(), links.target.tolist()
    sums: dict[tuple[End, End], list[float]] = {}
    named: dict[tuple[End, End], tuple[int, int]] = {}
    ports = zip(links.source_port.tolist(), links.target_port.tolist(), strict=True)
    adapters = zip(links.source_adapter.tolist(), links.target_adapter.tolist(), strict=True)
    weights = zip(links.cables.tolist(), links.capacity.tolist(), strict=True)
    for a, b, (port_a, port_b), (adapter_a, adapter_b), (count, capacity) in zip(
        source, target, ports, adapters, weights, strict=True
    ):
        near, far = (identity[a], port_a, guids[adapter_a]), (identity[b], port_b, guids[adapter_b])
        forth = near < far
        ends = (near, far) if forth else (far, near)
        total = sums.setdefault(ends, [0, 0, 0.0, 0.0])
        total[0 if forth else 1] += count
        total[2 if forth else 3] += capacity
        named[ends] = (a, b) if forth else (b, a)
    return {ends: _cable(fabric, ends, named[ends], total) for ends, total in sums.items()}


def _cable(fabric: Fabric, ends: tuple[End, End], vertices: tuple[int, int], total: list[float]) -> Cable:
    (_, port_a, guid_a), (_, port_b, guid_b) = ends
    return Cable(
        source=fabric.names[vertices[0]],
        source_port=port_a,
        source_guid=guid_a,
        target=fabric.names[vertices[1]],
        target_port=port_b,
        target_guid=guid_b,
        cables=int(max(total[0], total[1])),
        capacity=total[2],
        capacity_back=total[3],
    )


def _part(cable: Cable, count: int) -> Cable:
    """Return `count` cables of a bundle."""
    share = count / cable.cables
    return replace(
        cable,
        cables=count,
        capacity=cable.capacity * share,
        capacity_back=cable.capacity_back * share,
    )


def _speed(cable: Cable) -> tuple[float, float]:
    return cable.capacity / cable.cables, cable.capacity_back / cable.cables


def _order(cable: Cable) -> tuple[str, int, str, str, int, str]:
    near = cable.source, cable.source_port, cable.source_guid
    return *near, cable.target, cable.target_port, cable.target_guid


def _names(fabric: Fabric, vertices: set[int], kind: int) -> tuple[str, ...]:
    return tuple(sorted(fabric.names[v] for v in vertices if fabric.kind[v] == kind))


def in_words(changes: Changes) -> list[str]:
    """Return a line per change of devices, cables, capacities and routes; empty if nothing changed."""
    lines = [f"switch {name} appeared" for name in changes.switches_appeared]
    lines += [f"switch {name} vanished" for name in changes.switches_vanished]
    lines += [f"host {name} appeared" for name in changes.hosts_appeared]
    lines += [f"host {name} vanished" for name in changes.hosts_vanished]
    lines += [f"{one.kind} {one.old} is now called {one.new}" for one in changes.renamed]
    lines += [f"{_count_text(cable)} {ends(cable)} appeared" for cable in changes.cables_appeared]
    lines += [f"{_count_text(cable)} {ends(cable)} vanished" for cable in changes.cables_vanished]
    lines += [
        f"cable {ends(one.after)} now carries {units.text(one.after.capacity, units.RATE)}, "
        f"before {units.text(one.before.capacity, units.RATE)}"
        for one in changes.capacity_changed
    ]
    if changes.switches_rerouted:
        lines.append(f"the forwarding tables of {len(changes.switches_rerouted)} switches changed")
    return lines


def summary(changes: Changes) -> str:
    """Return the numbers of changes in one line: ``2 cables vanished, 1 host appeared``."""
    counts = (
        *((len(getattr(changes, f"switches_{how}")), "switch", "switches", how) for how in _HOW),
        *((len(getattr(changes, f"hosts_{how}")), "host", "hosts", how) for how in _HOW),
        *((_cable_count(changes, how), "cable", "cables", how) for how in _HOW),
        (len(changes.renamed), "device", "devices", "renamed"),
        (len(changes.capacity_changed), "cable", "cables", "changed in speed"),
        (len(changes.switches_rerouted), "switch", "switches", "rerouted"),
    )
    parts = [f"{count:,} {one if count == 1 else many} {what}" for count, one, many, what in counts if count]
    return ", ".join(parts) or "nothing changed"


def ends(cable: Cable) -> str:
    """Return a cable by its ends: ``leaf1:4 - spine2:1``."""
    return f"{port_name(cable.source, cable.source_port)} - {port_name(cable.target, cable.target_port)}"


def _cable_count(changes: Changes, how: str) -> int:
    return sum(cable.cables for cable in getattr(changes, f"cables_{how}"))


def _count_text(cable: Cable) -> str:
    return "cable" if cable.cables == 1 else f"{cable.cables} cables"


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

    Args:
        start: Beginning of the period of the interruptions.
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
