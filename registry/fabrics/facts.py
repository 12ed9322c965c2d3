"""Conversion between a fabric and facts about its devices and links, which the derived graph stores.

A fact describes one device or one directed link under a key that survives changes. The key of a switch is its
GUID, so that a rename is a change of state; the key of any other device is its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from registry.fabrics.contents import ADAPTER_COLUMNS, canonical
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Fabric, Links, Ports, format_guid
from registry.model.links import PORT_COLUMNS, PORT_STATES

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
