"""Canonical form, hash and bytes of a fabric's wiring.

The same wiring always has the same hash, whatever the order in a file. Vertices are sorted by name, adapters
by (host, name, GUID), links as in `Links`. The time of the scan and the forwarding tables do not count.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.values import reading
from registry.model import LINK_COLUMNS, NO_PORT, Adapters, Fabric, ForwardingTables, Ints, Links, Ports
from registry.model.links import PORT_COLUMNS

_VERTEX_COLUMNS = ("names", "kind", "slots", "forwards", "guid", "lid")
_VERTEX_OPTIONAL = ("level", "coordinates")
ADAPTER_COLUMNS = (
    *("names", "guid", "system_guid", "host"),
    *("port_adapter", "port_number", "port_guid", "port_lid", "port_lmc"),
)


def canonical(fabric: Fabric) -> Fabric:
    """Return the same wiring with sorted names, adapters and links, without tables and time."""
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
        # the order of `Links` is stable: rows that are equal in it stay sorted by capacity
        links=moved.take(np.lexsort((moved.cables, moved.capacity))),
        adapters=adapters,
        ports=_moved_ports(fabric.ports, vertex, adapter),
        level=None if fabric.level is None else fabric.level[order],
        coordinates=None if fabric.coordinates is None else fabric.coordinates[order],
    )


def content_hash(fabric: Fabric) -> str:
    """Return the hash of a canonical fabric's wiring: 16 hexadecimal digits."""
    return codec.digest(_columns(fabric))[:16]


def pack_fabric(fabric: Fabric) -> bytes:
    """Return a fabric's wiring as a blob."""
    return codec.pack(_columns(fabric))


def unpack_fabric(
    blob: bytes, *, tables: ForwardingTables | None = None, observed_at: datetime | None = None
) -> Fabric:
    """Return the fabric of a blob, with forwarding tables and time of observation."""
    columns = codec.unpack(blob)
    with reading("a stored fabric"):
        vertices: dict[str, Any] = {name: columns[name] for name in _VERTEX_COLUMNS}
        vertices |= {name: columns[name] for name in _VERTEX_OPTIONAL if name in columns}
        links = Links(**{name: columns[f"link_{name}"] for name in LINK_COLUMNS})
        adapters = Adapters(**{name: columns[f"adapter_{name}"] for name in ADAPTER_COLUMNS})
        if "ports_vertex" in columns:
            vertices["ports"] = Ports(**{name: columns[f"ports_{name}"] for name in PORT_COLUMNS})
        return Fabric(**vertices, links=links, adapters=adapters, tables=tables, observed_at=observed_at)


def _columns(fabric: Fabric) -> dict[str, codec.Column]:
    columns: dict[str, codec.Column] = {name: getattr(fabric, name) for name in _VERTEX_COLUMNS}
    for name in _VERTEX_OPTIONAL:
        values = getattr(fabric, name)
        if values is not None:
            columns[name] = values
    columns |= {f"link_{name}": getattr(fabric.links, name) for name in LINK_COLUMNS}
    columns |= {f"adapter_{name}": getattr(fabric.adapters, name) for name in ADAPTER_COLUMNS}
    if len(fabric.ports):  # otherwise bytes and hash stay those of earlier versions
        columns |= {f"ports_{name}": getattr(fabric.ports, name) for name in PORT_COLUMNS}
    return columns


def _moved_ports(ports: Ports, vertex: Ints, adapter: Ints) -> Ports:
    """Return the ports with new numbers of vertices and adapters, in canonical order."""
    if not len(ports):
        return ports
    moved = Ports(
        vertex=vertex[ports.vertex],
        adapter=np.where(ports.adapter < 0, NO_PORT, adapter[ports.adapter]),
        number=ports.number,
        state=ports.state,
        could_be=ports.could_be,
    )
    return moved.take(np.lexsort((moved.could_be, moved.state, moved.number, moved.adapter, moved.vertex)))


def _canonical_adapters(adapters: Adapters, vertex: Ints) -> tuple[Adapters, Ints]:
    """Return the adapters in canonical order, and the new index of each old one."""
    if not len(adapters):
        return adapters, np.zeros(1, np.int32)
    host = vertex[adapters.host].tolist()
    guid, system = adapters.guid.tolist(), adapters.system_guid.tolist()
    first = adapters.first_port_guid().tolist()
    ranking = sorted(
        range(len(adapters)), key=lambda a: (host[a], adapters.names[a], guid[a], system[a], first[a])
    )
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


def _inverse(order: np.ndarray[Any, Any]) -> Ints:
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place
