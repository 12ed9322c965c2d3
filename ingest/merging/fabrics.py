"""Merging of several sources of one fabric into one `Fabric`.

Vertices are identified by GUID, else by name. What one source lacks (GUIDs, LIDs, speeds, ports, states of
ports) is filled from another. If two disagree, the one given first is used and the disagreement is reported;
see docs/reference/formats/infiniband.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest.merging.cables import cables_of, links_of, merge_adapters, merge_cables
from ingest.merging.identities import (
    UNKNOWN,
    Disagreements,
    described,
    one_machine,
    represent_others,
    same_adapters,
    same_vertices,
)
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
    claimed_name,
    format_guid,
    is_made_up,
)
from registry.model.host_names import doubtful, same_hosts

REPRESENTING = "switches that represent others"
"""Kind of a line that is no disagreement: one source shows one switch for several of the other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceFabric:
    """Fabric of one source."""

    path: str
    """Path of the source."""
    fabric: Fabric
    """Fabric as the source describes it."""
    assumed: Bools | None = None
    """bool[m] or None: true for links whose capacity is missing in the source; None if no capacity is
    missing.
    """


def merge_fabrics(sources: Sequence[SourceFabric]) -> tuple[Fabric, tuple[str, ...]]:
    """Return one fabric of all sources (at least one), and one warning per disagreement.

    If sources disagree, the earlier one wins.

    Raises:
        InputError: A source has no host or switch in common with those before it.
    """
    merged, warnings = sources[0], list[str]()
    for source in sources[1:]:
        notes = Disagreements(merged.path, source.path)
        fabric, assumed = _merge(merged, source, notes)
        warnings += notes.lines()
        before = [part.assumed.sum() for part in (merged, source) if part.assumed is not None]
        if before and assumed.sum() < max(before):
            filled = int(max(before) - assumed.sum()) // 2
            what = f"{filled} capacities missing in one are taken from the other"
            warnings.append(f"{merged.path} and {source.path}: {what}")
        merged = SourceFabric(path=f"{merged.path} + {source.path}", fabric=fabric, assumed=assumed)
    return merged.fabric, tuple(warnings)


def differences(one: SourceFabric, two: SourceFabric) -> Disagreements:
    """Return the disagreements of two sources, and switches of one that represent others (`REPRESENTING`).

    Raises:
        InputError: They have no host or switch in common.
    """
    notes = Disagreements(one.path, two.path)
    _merge(one, two, notes)
    return notes


def _merge(one: SourceFabric, two: SourceFabric, notes: Disagreements) -> tuple[Fabric, Bools]:
    """Return the merged fabric of two sources, and the links whose capacity is still missing."""
    a, b = one.fabric, two.fabric
    same = same_vertices(a, b)
    # two lists of devices have none in common, such as hosts and switches
    if not (same != UNKNOWN).any() and len(a.links) and len(b.links):
        reason = f"it has no host or switch in common with {one.path}: ingest different fabrics one by one"
        raise InputError(reason, path=two.path)
    names, first, second = _numbers(a, b, same, notes)
    adapters, adapter_of_b = merge_adapters(a, b, same_adapters(a, b, same), first, second, names, notes)
    adapter_of_a = np.arange(len(a.adapters), dtype=np.int32)
    cables_a = cables_of(a, one.assumed, first, adapter_of_a, len(names))
    cables_b = cables_of(b, two.assumed, second, adapter_of_b, len(names))
    links, assumed = links_of(merge_cables(cables_a, cables_b, names, notes))
    sides = (a, first, adapter_of_a), (b, second, adapter_of_b)
    fabric = Fabric(
        names=names,
        links=links,
        adapters=adapters,
        ports=_ports(sides, links, names, notes),
        observed_at=a.observed_at or b.observed_at,
        **_vertex_columns(((a, first), (b, second)), names, notes),
    )
    return fabric, assumed


def _numbers(a: Fabric, b: Fabric, same: Ints, notes: Disagreements) -> tuple[tuple[str, ...], Ints, Ints]:
    """Return the merged vertices' names, sorted, and the merged vertex of each vertex of `a` and `b`.

    The number of a vertex that is left out is `UNKNOWN`. Vertices of one source alone, and vertices with two
    names, are noted.
    """
    partner = {int(w): v for v, w in enumerate(same.tolist()) if w != UNKNOWN}
    gone_a = represent_others(a, b, partner)
    gone_b = represent_others(b, a, partner.values())
    for fabric, gone, path in ((a, gone_a, notes.first), (b, gone_b, notes.second)):
        for v in sorted(gone):
            line = f"switch {fabric.names[v]} of {path} represents several of the other: it is left out"
            notes.add(REPRESENTING, line)
    also = one_machine(a, b, same)
    left = [w for w in range(len(a)) if w not in gone_a and w not in also]
    named = [
        (_name(a, w, b, partner[w], notes) if w in partner else a.names[w], w, partner.get(w, UNKNOWN))
        for w in left
    ]
    isolated = [w for w in left if w not in partner]
    added = [v for v, w in enumerate(same.tolist()) if w == UNKNOWN and v not in gone_b]
    named += _added(b, added, {name for name, *_ in named})
    # the switches that one switch of the other source represents are no disagreement
    hosts_a = [w for w in isolated if a.kind[w] == HOST]
    hosts_b = [v for v in added if b.kind[v] == HOST]
    _note_isolated(a, hosts_a if gone_b else isolated, b, f"is only in {notes.first}: it is kept", notes)
    _note_isolated(b, hosts_b if gone_a else added, a, f"is only in {notes.second}: it is added", notes)
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
    return tuple(name for name, *_ in named), first, second


def _added(fabric: Fabric, vertices: Sequence[int], taken: set[str]) -> list[tuple[str, int, int]]:
    """Return the vertices of the second source alone, each with a unique name."""
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


def _note_isolated(
    fabric: Fabric, vertices: Sequence[int], other: Fabric, what: str, notes: Disagreements
) -> None:
    """Note devices of one source only, if the other source has devices of that kind."""
    kinds = set(other.kind.tolist())
    for v in vertices:
        if int(fabric.kind[v]) in kinds:
            notes.add("devices", f"{described(fabric, v)} {fabric.names[v]} {what}")


def _name(a: Fabric, w: int, b: Fabric, v: int, notes: Disagreements) -> str:
    """Return the name of a vertex of both sources: that of the first unless it was made up."""
    one, two = a.names[w], b.names[v]
    host = a.kind[w] == HOST
    same = same_hosts([two], [one]) if host else {}
    if one == two or is_made_up(two) or (host and (claimed_name(two) or same)):
        for text in doubtful(same):
            notes.add("domains", text)
        return one
    if is_made_up(one) and two not in a.names:
        return two
    guid = format_guid(int(a.guid[w]) or int(b.guid[v]))
    kind = "switch" if a.kind[w] == SWITCH else "host"
    what = f"{kind} {guid}".rstrip()
    notes.add("names", f"{what} is {one} in the first and {two} in the second: the first is taken")
    return one


def _vertex_columns(
    sides: Sequence[tuple[Fabric, Ints]], names: Sequence[str], notes: Disagreements
) -> dict[str, Any]:
    """Return the columns of `Fabric` with one entry per vertex, the first source's filled from the second."""
    n = len(names)
    in_first = np.isin(np.arange(n), sides[0][1])
    columns: dict[str, Any] = {}
    for name in ("kind", "slots", "forwards"):
        one, two = (_column(fabric, name, vertex, n) for fabric, vertex in sides)
        columns[name] = np.where(in_first, one, two)
    for name, label in (("guid", "GUIDs"), ("lid", "LIDs")):
        one, two = (_column(fabric, name, vertex, n) for fabric, vertex in sides)
        for v in np.flatnonzero((one != two) & (one != 0) & (two != 0)).tolist():
            what = f"{one[v]} in the first and {two[v]} in the second"
            if name == "guid":
                what = f"{format_guid(one[v])} in the first and {format_guid(two[v])} in the second"
            notes.add(label, f"switch {names[v]} has {label[:-1]} {what}: the first is taken")
        columns[name] = np.where(one != 0, one, two)
    for name in ("level", "coordinates"):
        columns[name] = _whole(sides, name, n)
    return columns


def _column(fabric: Fabric, name: str, vertex: Ints, n: int) -> Any:
    values = np.zeros(n, getattr(fabric, name).dtype)
    values[vertex[vertex != UNKNOWN]] = getattr(fabric, name)[vertex != UNKNOWN]
    return values


def _whole(sides: Sequence[tuple[Fabric, Ints]], name: str, n: int) -> Any:
    """Return a column that one source has for every merged vertex, or None."""
    for fabric, vertex in sides:
        values = getattr(fabric, name)
        known = np.flatnonzero(vertex != UNKNOWN)
        if values is not None and len(np.unique(vertex[known])) == n:
            merged = np.zeros((n, *values.shape[1:]), np.int32)
            merged[vertex[known]] = values[known]
            return merged
    return None


def _ports(
    sides: Sequence[tuple[Fabric, Ints, Ints]], links: Links, names: Sequence[str], notes: Disagreements
) -> Ports:
    """Return the ports of both sources, except ports that are down in the second but linked in the first."""
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
            rows[end] = before[0], max(before[1], could_be) if before[0] == state else before[1]
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
    """Yield the end (merged vertex, merged adapter, number), state and possible rate of every port."""
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
