"""Merging of the cables of two sources of one fabric.

Rows are those of `registry.model.Links`, in numbers of the merged fabric. If both sources have ports, cables
are matched by their ports; otherwise all cables between two vertices are treated together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ingest.merging.identities import UNKNOWN, Disagreements, has_ports
from registry.model import LINK_COLUMNS, NO_PORT, Adapters, Bools, Fabric, Ints, Links, format_guid
from registry.model.fabric import port_name

CLOSE = 1e-6
"""Largest relative difference of equal capacities."""


class Row(NamedTuple):
    """One row of `Links`; `assumed` is True if its capacity is missing in the source."""

    source: int
    target: int
    capacity: float
    source_port: int
    target_port: int
    source_adapter: int
    target_adapter: int
    cables: int
    assumed: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cables:
    """Cables of one source."""

    rows: Sequence[Row]
    """Cables in both directions."""
    linked: Bools
    """bool[n]: true for vertices that have cables in the source."""
    ports: bool
    """True if the source has ports; without ports it may have fewer cables than exist."""


def cables_of(fabric: Fabric, assumed: Bools | None, vertex: Ints, adapter: Ints, n: int) -> Cables:
    """Return the cables of a source in merged numbers, without those of switches that are ignored.

    Args:
        assumed (bool[m]): True for links whose capacity is missing; None if no capacity is missing.
        vertex, adapter (int32[...]): Merged number of each vertex (or `UNKNOWN`) and adapter of the fabric.
        n: Number of merged vertices.
    """
    links, adapter = fabric.links, np.r_[adapter, NO_PORT]  # the last for NO_PORT
    columns = {name: getattr(links, name) for name in LINK_COLUMNS}
    columns["source"] = source = vertex[links.source]
    columns["target"] = target = vertex[links.target]
    columns["source_adapter"] = adapter[links.source_adapter]
    columns["target_adapter"] = adapter[links.target_adapter]
    columns["assumed"] = np.zeros(len(links), np.bool_) if assumed is None else assumed
    kept = (source != UNKNOWN) & (target != UNKNOWN) & (source != target)
    rows = zip(*(columns[name][kept].tolist() for name in Row._fields), strict=True)
    linked = np.zeros(n, np.bool_)
    linked[source[kept]] = linked[target[kept]] = True
    return Cables(rows=[Row._make(row) for row in rows], linked=linked, ports=has_ports(fabric))


def links_of(rows: Sequence[Row]) -> tuple[Links, Bools]:
    """Return the links in the order of a fabric, and which capacities are missing."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(Row._fields)
    arrays: dict[str, Any] = {
        name: np.asarray(values, np.float64 if name == "capacity" else np.int32)
        for name, values in zip(LINK_COLUMNS, columns, strict=False)
    }
    links = Links(**arrays)
    order = links.order()
    return links.take(order), np.asarray(columns[-1], np.bool_)[order]


def merge_cables(first: Cables, second: Cables, names: Sequence[str], notes: Disagreements) -> list[Row]:
    """Return the cables of both sources; if they disagree, the first wins.

    A cable of the second source only is left out if both its ends have cables in the first, unless only the
    second has ports.
    """
    one, two = _by_pair(first.rows), _by_pair(second.rows)
    merged: list[Row] = []
    for pair, rows in one.items():
        if pair in two:
            merged += _merge_pair(rows, two[pair], names, notes)
        else:
            merged += rows
            if second.linked[pair[0]] and second.linked[pair[1]]:
                _note_isolated(rows, names, notes, f"is only in {notes.first}: it is kept")
    wins = second.ports and not first.ports
    for pair, rows in two.items():
        if pair in one:
            continue
        denied = first.linked[pair[0]] and first.linked[pair[1]]
        if denied:
            what = "it is added" if wins else "it is left out"
            _note_isolated(rows, names, notes, f"is only in {notes.second}: {what}")
        if wins or not denied:
            merged += rows
    return merged


def cable_text(row: Row, names: Sequence[str]) -> str:
    """Return the two ends of a cable as text."""
    source = port_name(names[row.source], row.source_port)
    return f"{source} - {port_name(names[row.target], row.target_port)}"


def _by_pair(rows: Sequence[Row]) -> dict[tuple[int, int], list[Row]]:
    found: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.source, row.target].append(row)
    return found


def _merge_pair(one: list[Row], two: list[Row], names: Sequence[str], notes: Disagreements) -> list[Row]:
    """Merge the cables from one vertex to another that both sources have."""
    ports = [all(_has_port(row) for row in rows) for rows in (one, two)]
    if all(ports):
        return _by_ports(one, two, names, notes)
    count = [sum(row.cables for row in rows) for rows in (one, two)]
    # one cable in a source without ports often means a link of unknown width
    if all(has or total > 1 for has, total in zip(ports, count, strict=True)) and count[0] != count[1]:
        if one[0].source < one[0].target:
            what = f"{names[one[0].source]} - {names[one[0].target]}"
            line = f"{what} has {count[0]} cables in the first and {count[1]} in the second"
            notes.add("numbers of cables", f"{line}: the first is taken")
        return one
    kept, other = (two, one) if ports[1] else (one, two)
    each = _mean_capacity(one), _mean_capacity(two)
    if each[0] and each[1] and not _close(each[0], each[1]):
        _differ(one[0], each[0], each[1], names, notes)
    rate = each[0] or each[1]
    if not rate or (other is two and each[0]):
        return kept
    return [row._replace(capacity=rate * row.cables, assumed=False) for row in kept]


def _by_ports(one: list[Row], two: list[Row], names: Sequence[str], notes: Disagreements) -> list[Row]:
    """Merge cables of two sources with ports."""
    merged, left = [], list(two)
    for row in one:
        found = next((other for other in left if _same(row, other)), None)
        if found is None:
            _note_isolated([row], names, notes, f"is only in {notes.first}: it is kept")
            merged.append(row)
            continue
        left.remove(found)
        merged.append(_filled(row, found, names, notes))
    _note_isolated(left, names, notes, f"is only in {notes.second}: it is left out")
    return merged


def _filled(row: Row, other: Row, names: Sequence[str], notes: Disagreements) -> Row:
    """Return a cable of both sources, missing values of the first filled from the second."""
    if row.assumed and not other.assumed:
        row = row._replace(capacity=other.capacity, assumed=False)
    elif not row.assumed and not other.assumed and not _close(row.capacity, other.capacity):
        _differ(row, row.capacity, other.capacity, names, notes)
    filled = {
        name: getattr(other, name)
        for name in ("source_port", "target_port", "source_adapter", "target_adapter")
        if getattr(row, name) == NO_PORT
    }
    return row._replace(**filled)


def _differ(row: Row, one: float, two: float, names: Sequence[str], notes: Disagreements) -> None:
    if row.source < row.target:
        speeds = f"{one:.6g} bytes/s in the first and {two:.6g} in the second: the first is taken"
        notes.add("speeds", f"cable {cable_text(row, names)} has {speeds}")


def _note_isolated(rows: Sequence[Row], names: Sequence[str], notes: Disagreements, what: str) -> None:
    """Note the cables, once for both directions."""
    for row in rows:
        if row.source < row.target:
            notes.add("cables", f"cable {cable_text(row, names)} {what}")


def _same(row: Row, other: Row) -> bool:
    """Return True if two rows between the same vertices are one cable; missing values match anything."""
    pairs = (
        (row.source_port, other.source_port),
        (row.target_port, other.target_port),
        (row.source_adapter, other.source_adapter),
        (row.target_adapter, other.target_adapter),
    )
    return all(NO_PORT in pair or pair[0] == pair[1] for pair in pairs)


def _has_port(row: Row) -> bool:
    return row.source_port != NO_PORT or row.target_port != NO_PORT


def _mean_capacity(rows: Sequence[Row]) -> float:
    """Return the mean bytes/s of the cables, or 0 if a capacity is missing."""
    if any(row.assumed for row in rows):
        return 0.0
    return sum(row.capacity for row in rows) / sum(row.cables for row in rows)


def _close(one: float, two: float) -> bool:
    return abs(one - two) <= CLOSE * max(one, two)


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

    Args:
        a, b: Fabrics of the two sources.
        same (int32[len(b.adapters)]): Adapter of `a` for each adapter of `b`, or `UNKNOWN`.
        first, second (int32[n]): Merged vertex of each vertex of `a` and `b`.
        names: Names of the merged vertices.
        Notes: Receives the disagreements.

    Returns:
        Merged adapters.
        int32[len(b.adapters)]: Merged adapter of each adapter of `b`.
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
