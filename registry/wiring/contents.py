"""What a fabric is made of: its canonical form, its hash, and its devices and links as facts.

The same wiring always has the same hash, in whatever order a file told it. The order of vertices is
that of their names, of adapters that of (host, name, GUID), of links that of the data type. The time
of the scan and the forwarding tables are no part of it.

Facts are what the derived graph holds: each says one thing of one device or one directed link, under
a key that outlives a change of it. A switch with a GUID is known by the GUID, so that a rename is a
change of state; any other device by its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from registry import codec
from registry.errors import DatabaseError, InvalidValue
from registry.model import (
    HOST,
    LINK_COLUMNS,
    NO_PORT,
    SWITCH,
    Adapters,
    Fabric,
    ForwardingTables,
    Ints,
    Links,
    format_guid,
)

KINDS = ("host", "switch")
"""Names of `HOST` and `SWITCH`."""

_VERTEX_COLUMNS = ("names", "kind", "slots", "forwards", "guid", "lid")
_VERTEX_OPTIONAL = ("level", "coordinates")
_ADAPTER_COLUMNS = (
    "names",
    "guid",
    "system_guid",
    "host",
    "port_adapter",
    "port_number",
    "port_guid",
    "port_lid",
    "port_lmc",
)


class DeviceFact(NamedTuple):
    """What is known of one host or switch.

    GUIDs are ``0x`` and 16 digits, empty for unknown. A host's adapters are listed one after the
    other, their ports too; ``port_adapters`` are positions in the list of adapters. ``lids`` are those
    of the ports, of a switch its own.
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


class LinkFact(NamedTuple):
    """One row of `Fabric.links`: a cable and direction, between two device keys.

    ``twin`` counts rows that nothing else tells apart (parallel cables of a source that knows no
    ports); the adapters' GUIDs are empty at a switch or where unknown.
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
        """Name of the cable and direction among all that leave its source, whatever it carries."""
        return f"{self.src_port} {self.src_guid}>{self.target} {self.dst_port} {self.dst_guid}#{self.twin}"


def canonical(fabric: Fabric) -> Fabric:
    """The same wiring with sorted names, adapters and links, without tables and time."""
    order = np.asarray(sorted(range(len(fabric)), key=fabric.names.__getitem__), np.int64)
    vertex = _inverse(order)
    adapters, adapter = _canonical_adapters(fabric.adapters, vertex)
    links = fabric.links
    moved = Links(
        source=vertex[links.source],
        target=vertex[links.target],
        capacity=links.capacity,
        source_port=links.source_port,
        target_port=links.target_port,
        source_adapter=np.where(links.source_adapter < 0, NO_PORT, adapter[links.source_adapter]),
        target_adapter=np.where(links.target_adapter < 0, NO_PORT, adapter[links.target_adapter]),
        cables=links.cables,
    )
    return Fabric(
        names=tuple(fabric.names[v] for v in order),
        kind=fabric.kind[order],
        slots=fabric.slots[order],
        forwards=fabric.forwards[order],
        guid=fabric.guid[order],
        lid=fabric.lid[order],
        # the data type's own order is stable: rows that it cannot tell apart stay by capacity
        links=moved.take(np.lexsort((moved.cables, moved.capacity))),
        adapters=adapters,
        level=None if fabric.level is None else fabric.level[order],
        coordinates=None if fabric.coordinates is None else fabric.coordinates[order],
    )


def content_hash(fabric: Fabric) -> str:
    """Hash of a canonical fabric's wiring: 16 hexadecimal digits."""
    return codec.digest(_columns(fabric))[:16]


def pack_fabric(fabric: Fabric) -> bytes:
    """A fabric's wiring as a blob."""
    return codec.pack(_columns(fabric))


def unpack_fabric(
    blob: bytes, *, tables: ForwardingTables | None = None, observed_at: datetime | None = None
) -> Fabric:
    """The fabric of a blob, with what is kept apart from it.

    Raises
    ------
    DatabaseError
        The blob is damaged or holds no fabric.
    """
    columns = codec.unpack(blob)
    try:
        vertices: dict[str, Any] = {name: columns[name] for name in _VERTEX_COLUMNS}
        vertices |= {name: columns[name] for name in _VERTEX_OPTIONAL if name in columns}
        links = Links(**{name: columns[f"link_{name}"] for name in LINK_COLUMNS})
        adapters = Adapters(**{name: columns[f"adapter_{name}"] for name in _ADAPTER_COLUMNS})
        return Fabric(**vertices, links=links, adapters=adapters, tables=tables, observed_at=observed_at)
    except (KeyError, InvalidValue) as error:
        raise DatabaseError(f"a stored fabric is damaged: {error}") from error


def device_keys(fabric: Fabric) -> list[str]:
    """Key of each vertex: a switch's GUID where it has one of its own, else its kind and name."""
    guids = fabric.guid.tolist()
    owners = Counter(guids)
    return [
        format_guid(guid) if kind == SWITCH and guid and owners[guid] == 1 else _named_key(name, kind)
        for name, kind, guid in zip(fabric.names, fabric.kind.tolist(), guids, strict=True)
    ]


def host_key(name: str) -> str:
    """Key of the host of that name."""
    return _named_key(name, HOST)


def device_facts(fabric: Fabric) -> dict[str, DeviceFact]:
    """What a canonical fabric says of each device, by key."""
    adapters = fabric.adapters
    first_adapter = np.searchsorted(adapters.host, np.arange(len(fabric) + 1)).tolist()
    first_port = np.searchsorted(adapters.port_adapter, np.arange(len(adapters) + 1)).tolist()
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
        )
    return facts


def link_facts(fabric: Fabric) -> list[LinkFact]:
    """What a canonical fabric says of each directed link, row by row."""
    keys, links = device_keys(fabric), fabric.links
    guids = [*(format_guid(guid) for guid in fabric.adapters.guid.tolist()), ""]  # the last for NO_PORT
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
    """The canonical fabric that the facts tell of; the opposite of `device_facts` and `link_facts`.

    Links to devices that are not among those given are left out.
    """
    ordered = sorted(devices, key=lambda fact: fact.name)
    vertex = {fact.key: v for v, fact in enumerate(ordered)}
    adapters = _adapters_of(ordered)
    adapter = {format_guid(guid): a for a, guid in enumerate(adapters.guid.tolist()) if guid}
    kept = [fact for fact in links if fact.source in vertex and fact.target in vertex]
    levels = [fact.level for fact in ordered]
    coordinates = [fact.coordinates for fact in ordered]
    fabric = Fabric(
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
        level=None if None in levels else np.asarray(levels, np.int32),
        coordinates=None if None in coordinates else np.asarray(coordinates, np.int32),
    )
    return canonical(fabric)


def _columns(fabric: Fabric) -> dict[str, codec.Column]:
    columns: dict[str, codec.Column] = {name: getattr(fabric, name) for name in _VERTEX_COLUMNS}
    for name in _VERTEX_OPTIONAL:
        values = getattr(fabric, name)
        if values is not None:
            columns[name] = values
    columns |= {f"link_{name}": getattr(fabric.links, name) for name in LINK_COLUMNS}
    columns |= {f"adapter_{name}": getattr(fabric.adapters, name) for name in _ADAPTER_COLUMNS}
    return columns


def _canonical_adapters(adapters: Adapters, vertex: Ints) -> tuple[Adapters, Ints]:
    """Adapters in canonical order, and the new place of each old one."""
    if not len(adapters):
        return adapters, np.zeros(1, np.int32)
    host = vertex[adapters.host].tolist()
    guid, system = adapters.guid.tolist(), adapters.system_guid.tolist()
    ranking = sorted(range(len(adapters)), key=lambda a: (host[a], adapters.names[a], guid[a], system[a]))
    order = np.asarray(ranking, np.int64)
    place = _inverse(order)
    owner = place[adapters.port_adapter]
    ports = np.lexsort((adapters.port_guid, adapters.port_number, owner))
    moved = Adapters(
        names=tuple(adapters.names[a] for a in ranking),
        guid=adapters.guid[order],
        system_guid=adapters.system_guid[order],
        host=vertex[adapters.host][order],
        port_adapter=owner[ports],
        port_number=adapters.port_number[ports],
        port_guid=adapters.port_guid[ports],
        port_lid=adapters.port_lid[ports],
        port_lmc=adapters.port_lmc[ports],
    )
    return moved, place


def _adapter_fields(
    adapters: Adapters, low: int, high: int, first_port: list[int], switch_lid: int
) -> dict[str, Any]:
    """Fields of a `DeviceFact` for the adapters ``low .. high - 1`` of one host and their ports."""
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


def _adapters_of(devices: list[DeviceFact]) -> Adapters:
    names: list[str] = []
    columns: dict[str, list[int]] = {name: [] for name in _ADAPTER_COLUMNS if name != "names"}
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


def _inverse(order: np.ndarray[Any, Any]) -> Ints:
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place
