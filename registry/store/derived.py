"""Derived graph for queries: devices, their states and the links between them, each valid for a time.

It is computed from the observations and can be rebuilt from them; `timeline` gives the changes by one more
observation. At any time it contains the same as the last snapshot.

Conversion between a fabric and facts about its devices and links, which the derived graph stores.

A fact describes one device or one directed link under a key that survives changes. The key of a switch is its
GUID, so that a rename is a change of state; the key of any other device is its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import numpy as np

from registry.database.driver import BATCH, Transaction
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Fabric, Links, Ports, format_guid
from registry.model.links import PORT_COLUMNS, PORT_STATES
from registry.store.snapshots import ADAPTER_COLUMNS, canonical
from registry.store.timeline import FOREVER, Edits, Interval, edits, intervals, without_repeats

KINDS = ("host", "switch")
"""Names of `HOST` and `SWITCH`."""


class DeviceFact(NamedTuple):
    """Description of one host or switch.

    GUIDs are ``0x`` and 16 digits, empty if unknown. ``port_adapters`` are positions in the list of the
    host's adapters. ``lids`` are those of the ports, or the switch's own. Ports with more data (`Ports`) are
    listed by the position of their adapter (`NO_PORT` at a switch) and number, with state and possible
    bytes/s.
    """

    key: str
    name: str
    kind: str
    forwards: bool
    slots: int
    guid: str
    level: int | None
    coordinates: tuple[int, ...] | None
    lids: tuple[int, ...]
    adapter_names: tuple[str, ...] = ()
    adapter_guids: tuple[str, ...] = ()
    system_guids: tuple[str, ...] = ()
    port_adapters: tuple[int, ...] = ()
    port_numbers: tuple[int, ...] = ()
    port_guids: tuple[str, ...] = ()
    port_lmcs: tuple[int, ...] = ()
    listed_adapters: tuple[int, ...] = ()
    listed_ports: tuple[int, ...] = ()
    port_states: tuple[str, ...] = ()
    could_be: tuple[float, ...] = ()


DEVICE_LISTS = DeviceFact._fields[DeviceFact._fields.index("lids") :]
"""Fields of `DeviceFact` that are lists; empty if there are no values."""


class LinkFact(NamedTuple):
    """One row of `Fabric.links`: a cable in one direction, between two device keys.

    ``twin`` numbers rows that are otherwise equal (parallel cables of a source without ports); GUIDs of
    adapters are empty at a switch or if unknown.
    """

    source: str
    target: str
    src_port: int
    dst_port: int
    src_guid: str
    dst_guid: str
    twin: int
    capacity: float
    cables: int

    @property
    def key(self) -> str:
        """Name of the cable and direction, unique among the links that leave its source."""
        return f"{self.src_port} {self.src_guid}>{self.target} {self.dst_port} {self.dst_guid}#{self.twin}"


def device_keys(fabric: Fabric) -> list[str]:
    """Return the key of each vertex: the GUID of a switch if it is unique, else kind and name."""
    guids = fabric.guid.tolist()
    owners = Counter(guids)
    return [
        format_guid(guid) if kind == SWITCH and guid and owners[guid] == 1 else _named_key(name, kind)
        for name, kind, guid in zip(fabric.names, fabric.kind.tolist(), guids, strict=True)
    ]


def host_key(name: str) -> str:
    """Return the key of the host with this name."""
    return _named_key(name, HOST)


def device_facts(fabric: Fabric) -> dict[str, DeviceFact]:
    """Return the facts about the devices of a canonical fabric, by key."""
    adapters = fabric.adapters
    first_adapter = np.searchsorted(adapters.host, np.arange(len(fabric) + 1)).tolist()
    first_port = np.searchsorted(adapters.port_adapter, np.arange(len(adapters) + 1)).tolist()
    listed = np.searchsorted(fabric.ports.vertex, np.arange(len(fabric) + 1)).tolist()
    facts = {}
    for vertex, key in enumerate(device_keys(fabric)):
        low, high = first_adapter[vertex], first_adapter[vertex + 1]
        facts[key] = DeviceFact(
            key=key,
            name=fabric.names[vertex],
            kind=KINDS[fabric.kind[vertex]],
            forwards=bool(fabric.forwards[vertex]),
            slots=int(fabric.slots[vertex]),
            guid=format_guid(int(fabric.guid[vertex])),
            level=None if fabric.level is None else int(fabric.level[vertex]),
            coordinates=None if fabric.coordinates is None else tuple(fabric.coordinates[vertex].tolist()),
            **_adapter_fields(adapters, low, high, first_port, int(fabric.lid[vertex])),
            **_port_fields(fabric.ports, listed[vertex], listed[vertex + 1], low),
        )
    return facts


def link_facts(fabric: Fabric) -> list[LinkFact]:
    """Return the facts about the links of a canonical fabric, row by row."""
    keys, links = device_keys(fabric), fabric.links
    guids = [*_adapter_keys(fabric.adapters), ""]  # the last for NO_PORT
    ends = zip(
        (keys[v] for v in links.source.tolist()),
        (keys[v] for v in links.target.tolist()),
        links.source_port.tolist(),
        links.target_port.tolist(),
        (guids[a] for a in links.source_adapter.tolist()),
        (guids[a] for a in links.target_adapter.tolist()),
        strict=True,
    )
    seen: Counter[tuple[Any, ...]] = Counter()
    facts = []
    for end, capacity, cables in zip(ends, links.capacity.tolist(), links.cables.tolist(), strict=True):
        facts.append(LinkFact._make((*end, seen[end], capacity, cables)))
        seen[end] += 1
    return facts


def fabric_of(devices: Collection[DeviceFact], links: Collection[LinkFact]) -> Fabric:
    """Return the canonical fabric of facts; the inverse of `device_facts` and `link_facts`.

    Links to devices that are not given are left out.
    """
    return canonical(ordered_fabric(sorted(devices, key=lambda fact: fact.name), links))


def ordered_fabric(ordered: Sequence[DeviceFact], links: Collection[LinkFact]) -> Fabric:
    """Return the fabric of facts with its vertices in the order of the devices."""
    vertex = {fact.key: v for v, fact in enumerate(ordered)}
    adapters = _adapters_of(ordered)
    adapter = {guid: a for a, guid in enumerate(_adapter_keys(adapters)) if guid}
    kept = [fact for fact in links if fact.source in vertex and fact.target in vertex]
    levels = [fact.level for fact in ordered]
    coordinates = [fact.coordinates for fact in ordered]
    return Fabric(
        names=tuple(fact.name for fact in ordered),
        kind=np.asarray([KINDS.index(fact.kind) for fact in ordered], np.uint8),
        slots=np.asarray([fact.slots for fact in ordered], np.int32),
        forwards=np.asarray([fact.forwards for fact in ordered], np.bool_),
        guid=np.asarray([_guid(fact.guid) for fact in ordered], np.uint64),
        lid=np.asarray([_switch_lid(fact) for fact in ordered], np.int32),
        links=Links.of(
            [vertex[fact.source] for fact in kept],
            [vertex[fact.target] for fact in kept],
            [fact.capacity for fact in kept],
            source_port=[fact.src_port for fact in kept],
            target_port=[fact.dst_port for fact in kept],
            source_adapter=[adapter.get(fact.src_guid, NO_PORT) for fact in kept],
            target_adapter=[adapter.get(fact.dst_guid, NO_PORT) for fact in kept],
            cables=[fact.cables for fact in kept],
        ),
        adapters=adapters,
        ports=_ports_of(ordered),
        level=None if None in levels else np.asarray(levels, np.int32),
        coordinates=None if None in coordinates else np.asarray(coordinates, np.int32),
    )


def _adapter_keys(adapters: Adapters) -> list[str]:
    """Return the GUID of each adapter, else that of its first port, else empty text."""
    keys = np.where(adapters.guid != 0, adapters.guid, adapters.first_port_guid())
    return [format_guid(each) for each in keys.tolist()]


def _adapter_fields(
    adapters: Adapters, low: int, high: int, first_port: list[int], switch_lid: int
) -> dict[str, Any]:
    """Return fields of a `DeviceFact` for the adapters ``low .. high - 1`` of one host and their ports."""
    if low == high:
        return {"lids": (switch_lid,) if switch_lid else ()}
    ports = slice(first_port[low], first_port[high])
    return {
        "lids": tuple(adapters.port_lid[ports].tolist()),
        "adapter_names": adapters.names[low:high],
        "adapter_guids": tuple(format_guid(guid) for guid in adapters.guid[low:high].tolist()),
        "system_guids": tuple(format_guid(guid) for guid in adapters.system_guid[low:high].tolist()),
        "port_adapters": tuple((adapters.port_adapter[ports] - low).tolist()),
        "port_numbers": tuple(adapters.port_number[ports].tolist()),
        "port_guids": tuple(format_guid(guid) for guid in adapters.port_guid[ports].tolist()),
        "port_lmcs": tuple(adapters.port_lmc[ports].tolist()),
    }


def _port_fields(ports: Ports, low: int, high: int, first_adapter: int) -> dict[str, Any]:
    """Return fields of a `DeviceFact` for the rows ``low .. high - 1`` of `Ports` of one device."""
    if low == high:
        return {}
    adapter = ports.adapter[low:high]
    return {
        "listed_adapters": tuple(np.where(adapter < 0, NO_PORT, adapter - first_adapter).tolist()),
        "listed_ports": tuple(ports.number[low:high].tolist()),
        "port_states": tuple(PORT_STATES[state] for state in ports.state[low:high].tolist()),
        "could_be": tuple(ports.could_be[low:high].tolist()),
    }


def _ports_of(devices: Sequence[DeviceFact]) -> Ports:
    """Return the listed ports of all devices."""
    rows: list[tuple[int, int, int, int, float]] = []
    first = 0
    for vertex, fact in enumerate(devices):
        listed = zip(fact.listed_adapters, fact.listed_ports, fact.port_states, fact.could_be, strict=True)
        rows += [
            (vertex, NO_PORT if index < 0 else first + index, number, PORT_STATES.index(state), could_be)
            for index, number, state, could_be in listed
        ]
        first += len(fact.adapter_names)
    columns = zip(*rows, strict=True) if rows else ((),) * len(PORT_COLUMNS)
    dtypes = (np.int32, np.int32, np.int32, np.uint8, np.float64)
    return Ports(
        **{
            name: np.asarray(values, dtype)
            for name, values, dtype in zip(PORT_COLUMNS, columns, dtypes, strict=True)
        }
    )


def _adapters_of(devices: Sequence[DeviceFact]) -> Adapters:
    """Return the adapters of all devices."""
    names: list[str] = []
    columns: dict[str, list[int]] = {name: [] for name in ADAPTER_COLUMNS if name != "names"}
    for vertex, fact in enumerate(devices):
        first = len(names)
        names += fact.adapter_names
        columns["guid"] += map(_guid, fact.adapter_guids)
        columns["system_guid"] += map(_guid, fact.system_guids)
        columns["host"] += [vertex] * len(fact.adapter_names)
        columns["port_adapter"] += [first + position for position in fact.port_adapters]
        columns["port_number"] += fact.port_numbers
        columns["port_guid"] += map(_guid, fact.port_guids)
        columns["port_lmc"] += fact.port_lmcs
        if fact.adapter_names:
            columns["port_lid"] += fact.lids
    arrays: dict[str, Any] = {
        name: np.asarray(values, np.uint64 if name.endswith("guid") else np.int32)
        for name, values in columns.items()
    }
    return Adapters(names=tuple(names), **arrays)


def _switch_lid(fact: DeviceFact) -> int:
    return fact.lids[0] if fact.lids and not fact.adapter_names else 0


def _named_key(name: str, kind: int) -> str:
    return f"{'hs'[kind]}:{name}"


def _guid(text: str) -> int:
    return int(text, 16) if text else 0


Fact = TypeVar("Fact", DeviceFact, LinkFact)

_EVER = datetime.min.replace(tzinfo=UTC)
"""A time before all observations."""
_STATE_FIELDS, _LINK_FIELDS = DeviceFact._fields[1:], LinkFact._fields[2:]
"""Fields that are properties of a state (all but the key of its device), and of a link (all but its ends)."""
_STATE = f"[d.key, {', '.join(f's.{name}' for name in _STATE_FIELDS)}]"
_LINK = ", ".join(
    (
        "collect(a.key) AS source, collect(b.key) AS target",
        *(f"collect(l.{name}) AS {name}" for name in _LINK_FIELDS),
    )
)
_SPAN = "valid_from: $moments[$start[i]], valid_to: $moments[$end[i]]"
_LISTED = DeviceFact._fields.index("listed_adapters")


def _assigned(names: Iterable[str]) -> str:
    """Return the properties of row ``i`` from the columns with their names."""
    return ", ".join(f"{name}: ${name}[i]" for name in names)


_STATES_TOUCHING = f"""
MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)
WHERE d.id IN $devices AND s.valid_from <= $until AND s.valid_to >= $at
RETURN s.valid_from AS valid_from, s.valid_to AS valid_to, collect({_STATE}) AS states
"""

_LINKS_TOUCHING = f"""
MATCH (a:Device)-[l:LINK]->(b:Device)
WHERE a.id IN $devices AND l.valid_from <= $until AND l.valid_to >= $at
RETURN l.valid_from AS valid_from, l.valid_to AS valid_to, {_LINK}
"""

_STATES_AS_OF = f"""
MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)
WHERE d.cluster = $cluster AND s.valid_from <= $at AND s.valid_to > $at
  AND (s.forwards OR d.key IN $hosts)
RETURN collect({_STATE}) AS states
"""

_LINKS_AS_OF = f"""
MATCH (a:Device)-[l:LINK]->(b:Device)
WHERE a.id IN $devices AND l.valid_from <= $at AND l.valid_to > $at
RETURN {_LINK}
"""

_MERGE_DEVICES = """
UNWIND range(0, size($id) - 1) AS i
MERGE (d:Device {id: $id[i]})
ON CREATE SET d.cluster = $cluster, d.key = $key[i], d.kind = $kind[i], d.name = $name[i]
"""

_LATEST_NAMES = """
UNWIND $devices AS id
MATCH (d:Device {id: id})
WITH d
MATCH (d)-[:HAS_STATE]->(s:DeviceState)
WITH d, s ORDER BY s.valid_from
WITH d, collect(s.name) AS names
SET d.name = names[size(names) - 1]
"""

_IS_UNSEEN = "NOT (d)-[:HAS_STATE]->(:DeviceState) AND NOT (d)<-[:LOADS]-(:Placement)"

_MARK_HOSTS = f"""
UNWIND $devices AS id
MATCH (d:Device {{id: id}})
WHERE {_IS_UNSEEN}
MATCH (d)<-[:ON]-(a:Allocation)
WITH a, collect(d.name) AS names
SET a.unknown_hosts = coalesce(a.unknown_hosts, []) + names
"""
"""See `registry.store.allocations.save_allocations`."""

_DELETE_UNSEEN = f"""
UNWIND $devices AS id
MATCH (d:Device {{id: id}})
WHERE {_IS_UNSEEN}
DETACH DELETE d
"""

_DEVICES = """
MATCH (d:Device)
WHERE d.cluster = $cluster
RETURN collect(d.id) AS ids
"""

_REMOVE_STATES = """
UNWIND range(0, size($id) - 1) AS i
MATCH (s:DeviceState {id: $id[i]})
DETACH DELETE s
"""

_MOVE_STATES = """
UNWIND range(0, size($id) - 1) AS i
MATCH (s:DeviceState {id: $id[i]})
SET s.valid_to = $moments[$end[i]]
"""

_OPEN_STATES = f"""
UNWIND range(0, size($id) - 1) AS i
MATCH (d:Device {{id: $device[i]}})
CREATE (d)-[:HAS_STATE]->(:DeviceState {{{_assigned(("id", *_STATE_FIELDS))}, {_SPAN}}})
"""

_REMOVE_LINKS = """
UNWIND range(0, size($source) - 1) AS i
MATCH (a:Device {id: $source[i]})-[l:LINK {key: $key[i]}]->(:Device)
WHERE l.valid_from = $moments[$start[i]]
WITH collect(l) AS links
UNWIND links AS l
DELETE l
"""
"""All are found before the first is deleted: ArcadeDB 26.10 cannot go on from a deleted relationship."""

_MOVE_LINKS = """
UNWIND range(0, size($source) - 1) AS i
MATCH (a:Device {id: $source[i]})-[l:LINK {key: $key[i]}]->(:Device)
WHERE l.valid_from = $moments[$start[i]]
SET l.valid_to = $moments[$end[i]]
"""

_OPEN_LINKS = f"""
UNWIND range(0, size($source) - 1) AS i
MATCH (a:Device {{id: $source[i]}})
MATCH (b:Device {{id: $target[i]}})
CREATE (a)-[:LINK {{{_assigned(("key", *_LINK_FIELDS))}, {_SPAN}}}]->(b)
"""

_DROP_STATES = """
MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)
WHERE d.cluster = $cluster
WITH collect(s) AS states
UNWIND states AS s
DETACH DELETE s
"""
"""All are found before the first is deleted: ArcadeDB 26.10 leaves some out otherwise."""

_DROP_LINKS = """
MATCH (d:Device)-[l:LINK]->(:Device)
WHERE d.cluster = $cluster
WITH collect(l) AS links
UNWIND links AS l
DELETE l
"""


def apply(
    transaction: Transaction,
    cluster: str,
    before: Fabric | None,
    after: Fabric | None,
    at: datetime,
    until: datetime,
) -> tuple[int, int]:
    """Update the graph by one observation, or by the deletion of one.

    Args:
        before: Canonical fabric of the last observation at or before `at`; if one is deleted, its own fabric.
        after: Canonical fabric of the observation at `at`; if one is deleted, that of the one before, if any.
        until: Time of the next observation of a fabric, or `FOREVER`.

    Returns:
        opened, closed: Number of directed links only in `after`, and only in `before`.
    """
    only = before is None and until == FOREVER
    old = [] if before is None else list(device_facts(before).values())
    new = [] if after is None else list(device_facts(after).values())
    devices = {fact.key for fact in set(old) ^ set(new)}
    ids = _ids(cluster, sorted(devices))
    states = {} if only else _touching(transaction, _STATES_TOUCHING, _device_facts, ids, (at, until))
    _enter_states(transaction, cluster, edits(old, new, at, until, states), [*old, *new])

    were = [] if before is None else link_facts(before)
    are = [] if after is None else link_facts(after)
    differing = set(were) ^ set(are)
    sources = {fact.source for fact in differing}
    ids = _ids(cluster, sorted(sources))
    links = {} if only else _touching(transaction, _LINKS_TOUCHING, _link_facts, ids, (at, until))
    _enter_links(transaction, cluster, edits(were, are, at, until, links))
    _delete_unseen(transaction, _ids(cluster, sorted({fact.key for fact in old} & devices)))
    closed = len(differing.intersection(were))
    return len(differing) - closed, closed


def rebuild(
    transaction: Transaction,
    cluster: str,
    observations: Sequence[tuple[datetime, str]],
    fabric_of: Callable[[str], Fabric],
) -> None:
    """Rebuild the graph of a cluster from all its observations.

    Args:
        observations: Time and snapshot id of each, in order of time and arrival.
        fabric_of: Returns the canonical fabric of a snapshot; all fabrics at once may exceed the memory.
    """
    drop(transaction, cluster)
    graph = derive(observations, fabric_of)
    _enter_states(transaction, cluster, _all_opened(graph.states), graph.states)
    _enter_links(transaction, cluster, _all_opened(graph.links))
    _delete_unseen(transaction, transaction.run(_DEVICES, cluster=cluster)[0]["ids"])


def drop(transaction: Transaction, cluster: str) -> None:
    """Delete the links and the states of the devices of a cluster."""
    transaction.run(_DROP_LINKS, cluster=cluster)
    transaction.run(_DROP_STATES, cluster=cluster)


class Graph(NamedTuple):
    """Derived graph of a cluster: the intervals of each state of a device and of each link."""

    states: dict[DeviceFact, list[Interval]]
    links: dict[LinkFact, list[Interval]]


def derive(observations: Sequence[tuple[datetime, str]], fabric_of: Callable[[str], Fabric]) -> Graph:
    """Return the graph of observations; see `rebuild`."""
    changes = without_repeats(observations)
    return Graph(
        intervals((at, device_facts(fabric_of(content)).values()) for at, content in changes),
        intervals((at, link_facts(fabric_of(content))) for at, content in changes),
    )


def stored_graph(transaction: Transaction, cluster: str) -> Graph:
    """Return the graph of a cluster as it is stored."""
    devices = transaction.run(_DEVICES, cluster=cluster)[0]["ids"]
    always = (_EVER, FOREVER)
    return Graph(
        _touching(transaction, _STATES_TOUCHING, _device_facts, devices, always),
        _touching(transaction, _LINKS_TOUCHING, _link_facts, devices, always),
    )


def read(
    transaction: Transaction, cluster: str, hosts: Iterable[str], at: datetime
) -> tuple[list[DeviceFact], list[LinkFact]]:
    """Return the forwarding devices and the named hosts at a time, and the links that leave them."""
    moment = min(at, FOREVER - timedelta(microseconds=1))  # open intervals hold for ever
    keys = [host_key(name) for name in hosts]
    found = transaction.run(_STATES_AS_OF, cluster=cluster, hosts=keys, at=moment)[0]
    devices = _device_facts(found)
    ids = _ids(cluster, [fact.key for fact in devices])
    columns = transaction.run(_LINKS_AS_OF, devices=ids, at=moment)[0]
    return devices, _link_facts(columns)


def _delete_unseen(transaction: Transaction, devices: Sequence[str]) -> None:
    """Delete those of the devices that no observation shows any more."""
    for start in range(0, len(devices), BATCH):
        some = devices[start : start + BATCH]
        transaction.run(_MARK_HOSTS, devices=some)
        transaction.run(_DELETE_UNSEEN, devices=some)


def device_id(cluster: str, key: str) -> str:
    """Return the id of the device with this key."""
    return f"{cluster}/{key}"


def _ids(cluster: str, keys: Iterable[str]) -> list[str]:
    return [device_id(cluster, key) for key in keys]


def _touching(
    transaction: Transaction,
    statement: str,
    facts_of: Callable[[dict[str, Any]], list[Fact]],
    devices: list[str],
    between: tuple[datetime, datetime],
) -> dict[Fact, list[Interval]]:
    """Return the stored intervals that overlap or touch a period, by fact."""
    spans: dict[Fact, list[Interval]] = {}
    for row in transaction.run(statement, devices=devices, at=between[0], until=between[1]):
        for fact in facts_of(row):
            spans.setdefault(fact, []).append(Interval(row["valid_from"], row["valid_to"]))
    return spans


def _device_facts(row: dict[str, Any]) -> list[DeviceFact]:
    # states of before ports were listed have nothing there
    return [
        DeviceFact._make(
            tuple(value) if isinstance(value, list) else () if value is None and at >= _LISTED else value
            for at, value in enumerate(state)
        )
        for state in row["states"]
    ]


def _link_facts(columns: dict[str, Any]) -> list[LinkFact]:
    return [LinkFact._make(row) for row in zip(*(columns[name] for name in LinkFact._fields), strict=True)]


def _all_opened(spans: dict[Fact, list[Interval]]) -> Edits[Fact]:
    opened = [(fact, span) for fact, found in spans.items() for span in found]
    return Edits(removed=[], moved=[], opened=opened)


def _enter_states(
    transaction: Transaction, cluster: str, change: Edits[DeviceFact], known: Iterable[DeviceFact]
) -> None:
    """Write edits of states; `known` are facts of all devices concerned, the latest last."""
    named = {fact.key: fact for fact in known}
    touched = {fact.key for fact, _ in (*change.opened, *change.removed, *change.moved)}
    made = [named[key] for key in sorted(named.keys() & touched)]
    transaction.run_columns(
        _MERGE_DEVICES,
        {
            "id": _ids(cluster, [fact.key for fact in made]),
            "key": [fact.key for fact in made],
            "kind": [fact.kind for fact in made],
            "name": [fact.name for fact in made],
        },
        cluster=cluster,
    )
    for statement, changed in ((_REMOVE_STATES, change.removed), (_MOVE_STATES, change.moved)):
        moments, columns = _spans(changed)
        columns["id"] = _state_ids(cluster, changed)
        transaction.run_columns(statement, columns, moments=moments)
    moments, columns = _spans(change.opened)
    columns |= _columns(DeviceFact._fields, change.opened)
    columns |= {"id": _state_ids(cluster, change.opened), "device": _ids(cluster, columns["key"])}
    transaction.run_columns(_OPEN_STATES, columns, moments=moments)
    transaction.run(_LATEST_NAMES, devices=_ids(cluster, sorted(touched)))


def _enter_links(transaction: Transaction, cluster: str, change: Edits[LinkFact]) -> None:
    for statement, changed in ((_REMOVE_LINKS, change.removed), (_MOVE_LINKS, change.moved)):
        moments, columns = _spans(changed)
        columns["source"] = _ids(cluster, [fact.source for fact, _ in changed])
        columns["key"] = [fact.key for fact, _ in changed]
        transaction.run_columns(statement, columns, moments=moments)
    moments, columns = _spans(change.opened)
    columns |= _columns(LinkFact._fields, change.opened)
    columns["key"] = [fact.key for fact, _ in change.opened]
    columns |= {end: _ids(cluster, columns[end]) for end in ("source", "target")}
    transaction.run_columns(_OPEN_LINKS, columns, moments=moments)


def _state_ids(cluster: str, changed: Iterable[tuple[DeviceFact, Interval]]) -> list[str]:
    return [f"{cluster}/{fact.key}@{span.start.isoformat()}" for fact, span in changed]


def _columns(fields: Sequence[str], changed: Sequence[tuple[Fact, Interval]]) -> dict[str, list[Any]]:
    values = zip(*(fact for fact, _ in changed), strict=True) if changed else ((),) * len(fields)
    return {name: list(column) for name, column in zip(fields, values, strict=True)}


def _spans(changed: Sequence[tuple[Fact, Interval]]) -> tuple[list[datetime], dict[str, list[Any]]]:
    """Distinct times, and columns that point into them: a time costs a hundred times a number."""
    moments = sorted({moment for _, span in changed for moment in span})
    index = {moment: number for number, moment in enumerate(moments)}
    return moments, {
        "start": [index[span.start] for _, span in changed],
        "end": [index[span.end] for _, span in changed],
    }
