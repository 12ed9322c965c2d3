"""Several sources of one fabric made one `Fabric`.

Vertices are the same by GUID, else by name. What one source does not tell (GUIDs, LIDs, speeds, ports,
states of ports) is filled from another. Where two disagree the one that was given first is taken, and each
disagreement is told; see docs/formats/infiniband.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest.merging.adapters import merge_adapters
from ingest.merging.cables import Side, links_of, merge_cables, renumbered, rows_of, told_vertices
from ingest.merging.identities import (
    UNKNOWN,
    described,
    one_machine,
    same_adapters,
    same_vertices,
    stands_for_others,
    tells_ports,
)
from ingest.merging.notes import Notes
from registry.errors import InputError
from registry.model import (
    HOST,
    NO_PORT,
    PORT_STATES,
    SWITCH,
    Bools,
    Fabric,
    Ints,
    Links,
    Ports,
    format_guid,
    is_made_up,
)

STAND_INS = "switches that stand for others"
"""Kind of note on what is no disagreement: one switch drawn for several."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """What one source tells of a fabric.

    Attributes
    ----------
    path : str
    fabric : Fabric
    assumed : bool[m] or None
        Links whose capacity the source does not tell; None: it tells all.
    """

    path: str
    fabric: Fabric
    assumed: Bools | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Merged:
    """One fabric of several sources, and a line a disagreement."""

    fabric: Fabric
    warnings: tuple[str, ...]


def merge_fabrics(sources: Sequence[Told]) -> Merged:
    """One fabric of all sources, the earlier before the later where they disagree.

    Parameters
    ----------
    sources : sequence of Told
        At least one.

    Raises
    ------
    InputError
        A source that has no host or switch in common with those before it.
    """
    merged, warnings = sources[0], list[str]()
    for source in sources[1:]:
        notes = Notes(merged.path, source.path)
        fabric, assumed = _merge(merged, source, notes)
        warnings += notes.lines()
        before = [told.assumed.sum() for told in (merged, source) if told.assumed is not None]
        if before and assumed.sum() < max(before):
            filled = f"{int(max(before) - assumed.sum()) // 2} capacities that one does not tell"
            warnings.append(f"{merged.path} and {source.path}: {filled} are those of the other")
        merged = Told(path=f"{merged.path} + {source.path}", fabric=fabric, assumed=assumed)
    return Merged(fabric=merged.fabric, warnings=tuple(warnings))


def differences(one: Told, two: Told) -> Notes:
    """What two sources disagree on, and which switches of one stand for several of the other (`STAND_INS`).

    Raises
    ------
    InputError
        They have no host or switch in common.
    """
    notes = Notes(one.path, two.path)
    _merge(one, two, notes)
    return notes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Numbers:
    """Vertices of the merged fabric: names, and the number there of each vertex of both; `UNKNOWN` none."""

    names: tuple[str, ...]
    first: Ints
    second: Ints


def _merge(one: Told, two: Told, notes: Notes) -> tuple[Fabric, Bools]:
    a, b = one.fabric, two.fabric
    same = same_vertices(a, b)
    if not (same != UNKNOWN).any() and not _are_lists(a, b):
        reason = f"it has no host or switch in common with {one.path}: ingest different fabrics one by one"
        raise InputError(reason, path=two.path)
    numbers = _numbers(a, b, same, notes)
    adapters, adapter_of_b = merge_adapters(
        a, b, same_adapters(a, b, same), numbers.first, numbers.second, numbers.names, notes
    )
    adapter_of_a = np.arange(len(a.adapters), dtype=np.int32)
    n = len(numbers.names)
    links, assumed = links_of(
        merge_cables(
            _side(a, one.assumed, numbers.first, adapter_of_a, n),
            _side(b, two.assumed, numbers.second, adapter_of_b, n),
            numbers.names,
            notes,
        )
    )
    sides = (a, numbers.first, adapter_of_a), (b, numbers.second, adapter_of_b)
    fabric = Fabric(
        names=numbers.names,
        links=links,
        adapters=adapters,
        ports=_ports(sides, links, numbers.names, notes),
        observed_at=a.observed_at or b.observed_at,
        **_vertex_columns(a, b, numbers, notes),
    )
    return fabric, assumed


def _are_lists(a: Fabric, b: Fabric) -> bool:
    """Whether one of the two tells no links, such as a list of hosts beside one of switches."""
    return not len(a.links) or not len(b.links)


def _numbers(a: Fabric, b: Fabric, same: Ints, notes: Notes) -> _Numbers:
    """The merged vertices, sorted by name; says what is of one source alone or called differently."""
    partner = {int(w): v for v, w in enumerate(same.tolist()) if w != UNKNOWN}
    gone_a = stands_for_others(a, b, partner)
    gone_b = stands_for_others(b, a, partner.values())
    for fabric, gone, path in ((a, gone_a, notes.first), (b, gone_b, notes.second)):
        for v in sorted(gone):
            line = f"switch {fabric.names[v]} of {path} stands for real ones of the other: it is left out"
            notes.add(STAND_INS, line)
    also = one_machine(a, b, same)
    left = [w for w in range(len(a)) if w not in gone_a and w not in also]
    named = [
        (_name(a, w, b, partner[w], notes) if w in partner else a.names[w], w, partner.get(w, UNKNOWN))
        for w in left
    ]
    alone = [w for w in left if w not in partner]
    added = [v for v, w in enumerate(same.tolist()) if w == UNKNOWN and v not in gone_b]
    named += _added(b, added, {name for name, *_ in named})
    # what the real switches are that one switch of the other stands for is no disagreement
    hosts_a = [w for w in alone if a.kind[w] == HOST]
    hosts_b = [v for v in added if b.kind[v] == HOST]
    _note_alone(a, hosts_a if gone_b else alone, b, f"is in {notes.first} alone: it is kept", notes)
    _note_alone(b, hosts_b if gone_a else added, a, f"is in {notes.second} alone: it is added", notes)
    named.sort()
    first = np.full(len(a), UNKNOWN, np.int32)
    second = np.full(len(b), UNKNOWN, np.int32)
    for number, (_, w, v) in enumerate(named):
        if w != UNKNOWN:
            first[w] = number
        else:
            second[v] = number
    for own, host in also.items():
        first[own] = first[host]
    both = same != UNKNOWN
    second[both] = first[same[both]]
    return _Numbers(names=tuple(name for name, *_ in named), first=first, second=second)


def _added(fabric: Fabric, vertices: Sequence[int], taken: set[str]) -> list[tuple[str, int, int]]:
    """Vertices of the second source alone, each under a name that no other has."""
    found = []
    for v in vertices:
        name = fabric.names[v]
        if name in taken:
            name = f"{name} [{described(fabric, v)}]"
        while name in taken:
            name += "'"
        taken.add(name)
        found.append((name, UNKNOWN, v))
    return found


def _note_alone(fabric: Fabric, vertices: Sequence[int], other: Fabric, what: str, notes: Notes) -> None:
    """Note devices of one source, of kinds of which the other tells some."""
    kinds = set(other.kind.tolist())
    for v in vertices:
        if int(fabric.kind[v]) in kinds:
            notes.add("devices", f"{described(fabric, v)} {fabric.names[v]} {what}")


def _name(a: Fabric, w: int, b: Fabric, v: int, notes: Notes) -> str:
    """Name of a vertex of both: the first source's, unless it was made up."""
    one, two = a.names[w], b.names[v]
    if one == two or is_made_up(two):
        return one
    if is_made_up(one) and two not in a.names:
        return two
    guid = format_guid(int(a.guid[w]) or int(b.guid[v]))
    kind = "switch" if a.kind[w] == SWITCH else "host"
    what = f"{kind} {guid}".rstrip()
    notes.add("names", f"{what} is {one} in the first and {two} in the second: the first is taken")
    return one


def _side(fabric: Fabric, assumed: Bools | None, vertex: Ints, adapter: Ints, n: int) -> Side:
    """The cables of a source in merged numbers, without those of switches that are left out."""
    source, target = vertex[fabric.links.source], vertex[fabric.links.target]
    kept = (source != UNKNOWN) & (target != UNKNOWN) & (source != target)
    links = renumbered(fabric.links.take(kept), vertex, adapter)
    return Side(
        rows=rows_of(links, None if assumed is None else assumed[kept]),
        told=told_vertices(links, n),
        ports=tells_ports(fabric),
    )


def _vertex_columns(a: Fabric, b: Fabric, numbers: _Numbers, notes: Notes) -> dict[str, Any]:
    """The columns of `Fabric` that have an entry a vertex: the first source's, filled from the second."""
    n = len(numbers.names)
    columns: dict[str, Any] = {}
    sides = ((b, numbers.second), (a, numbers.first))  # the first source last: its word stays
    for name in ("kind", "slots", "forwards"):
        values = np.zeros(n, getattr(a, name).dtype)
        for fabric, vertex in sides:
            values[vertex[vertex != UNKNOWN]] = getattr(fabric, name)[vertex != UNKNOWN]
        columns[name] = values
    for name, label in (("guid", "GUIDs"), ("lid", "LIDs")):
        one, two = (_column(fabric, name, vertex, n) for fabric, vertex in sides[::-1])
        for v in np.flatnonzero((one != two) & (one != 0) & (two != 0)).tolist():
            what = f"{one[v]} in the first and {two[v]} in the second"
            if name == "guid":
                what = f"{format_guid(one[v])} in the first and {format_guid(two[v])} in the second"
            notes.add(label, f"switch {numbers.names[v]} has {label[:-1]} {what}: the first is taken")
        columns[name] = np.where(one != 0, one, two)
    for name in ("level", "coordinates"):
        columns[name] = _whole(sides[::-1], name, n)
    return columns


def _column(fabric: Fabric, name: str, vertex: Ints, n: int) -> Any:
    values = np.zeros(n, getattr(fabric, name).dtype)
    values[vertex[vertex != UNKNOWN]] = getattr(fabric, name)[vertex != UNKNOWN]
    return values


def _whole(sides: Sequence[tuple[Fabric, Ints]], name: str, n: int) -> Any:
    """A column that a source tells of every merged vertex; None where none does."""
    for fabric, vertex in sides:
        values = getattr(fabric, name)
        known = np.flatnonzero(vertex != UNKNOWN)
        if values is not None and len(np.unique(vertex[known])) == n:
            merged = np.zeros((n, *values.shape[1:]), np.int32)
            merged[vertex[known]] = values[known]
            return merged
    return None


def _ports(
    sides: Sequence[tuple[Fabric, Ints, Ints]], links: Links, names: Sequence[str], notes: Notes
) -> Ports:
    """What both sources note of ports, but not that one is down which is linked in the first."""
    linked = set(
        zip(links.source.tolist(), links.source_adapter.tolist(), links.source_port.tolist(), strict=True)
    )
    rows: dict[tuple[int, int, int], tuple[int, float]] = {}
    for second, (fabric, vertex, adapter) in enumerate(sides):
        for end, state, could_be in _port_rows(fabric.ports, vertex, adapter):
            before = rows.get(end)
            if before is None:
                if not (second and end in linked and PORT_STATES[state] in ("down", "disabled", "training")):
                    rows[end] = state, could_be
                continue
            if before[0] != state:
                was, now = PORT_STATES[before[0]], PORT_STATES[state]
                line = f"port {end[2]} of {names[end[0]]} is {was} in the first and {now} in the second"
                notes.add("states of ports", f"{line}: the first is taken")
            rows[end] = before[0], before[1] or (could_be if before[0] == state else 0.0)
    if not rows:
        return Ports()
    ends = np.array(list(rows), np.int32).reshape(-1, 3)
    return Ports(
        vertex=ends[:, 0],
        adapter=ends[:, 1],
        number=ends[:, 2],
        state=np.array([state for state, _ in rows.values()], np.uint8),
        could_be=np.array([could_be for _, could_be in rows.values()], np.float64),
    )


def _port_rows(
    ports: Ports, vertex: Ints, adapter: Ints
) -> Iterator[tuple[tuple[int, int, int], int, float]]:
    """Vertex, adapter and number in merged numbers, state and possible rate of every port."""
    for v, a, number, state, could_be in zip(
        ports.vertex.tolist(),
        ports.adapter.tolist(),
        ports.number.tolist(),
        ports.state.tolist(),
        ports.could_be.tolist(),
        strict=True,
    ):
        if vertex[v] != UNKNOWN:
            yield (int(vertex[v]), NO_PORT if a < 0 else int(adapter[a]), number), state, could_be
