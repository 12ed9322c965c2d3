"""Merging of the adapters of two sources of one fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ingest.merging.disagreements import Disagreements
from ingest.merging.identities import UNKNOWN
from registry.model import Adapters, Fabric, Ints, format_guid


@dataclass(slots=True, kw_only=True)
class _Adapter:
    """An adapter; `ports` maps port numbers to GUID, LID and LMC."""

    name: str
    guid: int
    system_guid: int
    host: int
    ports: dict[int, tuple[int, int, int]] = field(default_factory=dict)


def merge_adapters(
    a: Fabric,
    b: Fabric,
    same: Ints,
    first: Ints,
    second: Ints,
    names: Sequence[str],
    notes: Disagreements,
) -> tuple[Adapters, Ints]:
    """Return the adapters of `a` in their order, filled from `b`, followed by those of `b` only.

    Parameters
    ----------
    a, b : Fabric
        Fabrics of the two sources.
    same : int32[len(b.adapters)]
        Adapter of `a` for each adapter of `b`, or `UNKNOWN`.
    first, second : int32[n]
        Merged vertex of each vertex of `a` and `b`.
    names : sequence of str
        Names of the merged vertices.
    notes : Disagreements
        Receives the disagreements.

    Returns
    -------
    Adapters
        Merged adapters.
    int32[len(b.adapters)]
        Merged adapter of each adapter of `b`.
    """
    found = _listed(a.adapters, first)
    place = np.zeros(len(b.adapters), np.int32)
    for index, adapter in enumerate(_listed(b.adapters, second)):
        known = int(same[index])
        if known == UNKNOWN:
            place[index] = len(found)
            found.append(adapter)
        else:
            place[index] = known
            _fill(found[known], adapter, names, notes)
    return _adapters(found), place


def _listed(adapters: Adapters, vertex: Ints) -> list[_Adapter]:
    """Return the adapters as objects, their hosts in merged numbers."""
    found = [
        _Adapter(name=name, guid=guid, system_guid=system, host=int(vertex[host]))
        for name, guid, system, host in zip(
            adapters.names,
            adapters.guid.tolist(),
            adapters.system_guid.tolist(),
            adapters.host.tolist(),
            strict=True,
        )
    ]
    columns = ("port_adapter", "port_number", "port_guid", "port_lid", "port_lmc")
    for owner, number, *port in zip(*(getattr(adapters, name).tolist() for name in columns), strict=True):
        found[owner].ports[number] = (port[0], port[1], port[2])
    return found


def _fill(known: _Adapter, other: _Adapter, names: Sequence[str], notes: Disagreements) -> None:
    """Fill missing values of an adapter from the same one of the other source, and note differences."""
    if known.host != other.host:
        where = f"{names[known.host]} in the first and {names[other.host]} in the second"
        notes.add("hosts of adapters", f"adapter {known.name} is in host {where}: the first is taken")
    known.guid = _node_guid(known, other, notes)
    known.system_guid = known.system_guid or other.system_guid
    known.name = known.name or other.name
    for number, (guid, lid, lmc) in other.ports.items():
        if number not in known.ports:
            known.ports[number] = guid, lid, lmc
            continue
        own_guid, own_lid, own_lmc = known.ports[number]
        what = f"port {number} of adapter {known.name}"
        if own_lid and lid and own_lid != lid:
            line = f"{what} has LID {own_lid} in the first and {lid} in the second: the first is taken"
            notes.add("LIDs", line)
        if own_guid and guid and own_guid != guid:
            line = f"{format_guid(own_guid)} in the first and {format_guid(guid)} in the second"
            notes.add("GUIDs", f"{what} has GUID {line}: the first is taken")
        known.ports[number] = own_guid or guid, own_lid or lid, own_lmc or lmc


def _node_guid(known: _Adapter, other: _Adapter, notes: Disagreements) -> int:
    """Return the adapter's GUID, but not one that the other source knows as the GUID of a port."""
    of_ports = [{port[0] for port in adapter.ports.values()} for adapter in (known, other)]
    if not known.guid or (other.guid and known.guid in of_ports[1] and known.guid != other.guid):
        return 0 if other.guid in of_ports[0] else other.guid
    if other.guid and other.guid != known.guid and other.guid not in of_ports[0]:
        guids = f"{format_guid(known.guid)} in the first and {format_guid(other.guid)} in the second"
        notes.add("GUIDs", f"adapter {known.name} has GUID {guids}: the first is taken")
    return known.guid


def _adapters(found: Sequence[_Adapter]) -> Adapters:
    """Return the adapters as arrays."""
    ports = [
        (a, number, *found[a].ports[number]) for a in range(len(found)) for number in sorted(found[a].ports)
    ]
    columns: list[Any] = list(zip(*ports, strict=True)) if ports else [()] * 5
    return Adapters(
        names=tuple(adapter.name for adapter in found),
        guid=np.array([adapter.guid for adapter in found], np.uint64),
        system_guid=np.array([adapter.system_guid for adapter in found], np.uint64),
        host=np.array([adapter.host for adapter in found], np.int32),
        port_adapter=np.array(columns[0], np.int32),
        port_number=np.array(columns[1], np.int32),
        port_guid=np.array(columns[2], np.uint64),
        port_lid=np.array(columns[3], np.int32),
        port_lmc=np.array(columns[4], np.int32),
    )
