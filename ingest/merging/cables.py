"""The cables of two sources of one fabric: what both tell, what one tells, what they disagree on.

Rows are of `registry.model.Links`, in numbers of the merged fabric. Where both sources tell ports, cables are
the same by their ports; where one of them does not, all cables between two vertices are taken together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ingest.merging.notes import Notes
from registry.model import LINK_COLUMNS, NO_PORT, Bools, Links

CLOSE = 1e-6
"""Capacities that differ by less, relatively, are the same."""


class Row(NamedTuple):
    """One row of `Links`, and whether its capacity is assumed."""

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
class Side:
    """The cables of one source.

    Attributes
    ----------
    rows : sequence of Row
    told : bool[n]
        Vertices of which the source tells the cables.
    ports : bool
        Whether it tells ports; one that does not may tell fewer cables than there are.
    """

    rows: Sequence[Row]
    told: Bools
    ports: bool


def rows_of(links: Links, assumed: Bools | None) -> list[Row]:
    """The rows of a source."""
    columns = [getattr(links, name).tolist() for name in LINK_COLUMNS]
    unknown = [False] * len(links) if assumed is None else assumed.tolist()
    return [Row._make(row) for row in zip(*columns, unknown, strict=True)]


def links_of(rows: Sequence[Row]) -> tuple[Links, Bools]:
    """The links, ordered as a fabric keeps them, and which capacities are assumed."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(Row._fields)
    arrays: dict[str, Any] = {
        name: np.asarray(values, np.float64 if name == "capacity" else np.int32)
        for name, values in zip(LINK_COLUMNS, columns, strict=False)
    }
    links = Links(**arrays)
    order = links.order()
    return links.take(order), np.asarray(columns[-1], np.bool_)[order]


def merge_cables(first: Side, second: Side, names: Sequence[str], notes: Notes) -> list[Row]:
    """All cables of both, the first source's word where they disagree.

    A cable of the second alone is left out where the first tells the cables of both its ends; not where
    only the second tells ports.
    """
    one, two = _by_pair(first.rows), _by_pair(second.rows)
    merged: list[Row] = []
    for pair, rows in one.items():
        if pair in two:
            merged += _both(rows, two[pair], names, notes)
        else:
            merged += rows
            if second.told[pair[0]] and second.told[pair[1]]:
                _alone(rows, names, notes, f"is in {notes.first} alone: it is kept")
    wins = second.ports and not first.ports
    for pair, rows in two.items():
        if pair in one:
            continue
        denied = first.told[pair[0]] and first.told[pair[1]]
        if denied:
            what = "it is added" if wins else "it is left out"
            _alone(rows, names, notes, f"is in {notes.second} alone: {what}")
        if wins or not denied:
            merged += rows
    return merged


def words(row: Row, names: Sequence[str]) -> str:
    """A cable in words."""
    source = names[row.source] + (f" port {row.source_port}" if row.source_port != NO_PORT else "")
    target = names[row.target] + (f" port {row.target_port}" if row.target_port != NO_PORT else "")
    return f"{source} - {target}"


def _by_pair(rows: Sequence[Row]) -> dict[tuple[int, int], list[Row]]:
    found: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.source, row.target].append(row)
    return found


def _both(one: list[Row], two: list[Row], names: Sequence[str], notes: Notes) -> list[Row]:
    """The cables from one vertex to another that both sources tell of."""
    ports = [all(_has_port(row) for row in rows) for rows in (one, two)]
    if all(ports):
        return _by_ports(one, two, names, notes)
    count = [sum(row.cables for row in rows) for rows in (one, two)]
    # a source without ports often tells that there is a link, not how many cables it has
    if all(has or total > 1 for has, total in zip(ports, count, strict=True)) and count[0] != count[1]:
        if one[0].source < one[0].target:
            what = f"{names[one[0].source]} - {names[one[0].target]}"
            line = f"{what} has {count[0]} cables in the first and {count[1]} in the second"
            notes.add("numbers of cables", f"{line}: the first is taken")
        return one
    kept, other = (two, one) if ports[1] else (one, two)
    each = _each(one), _each(two)
    if each[0] and each[1] and not _close(each[0], each[1]):
        _differ(one[0], each[0], each[1], names, notes)
    rate = each[0] or each[1]
    if not rate or (other is two and each[0]):
        return kept
    return [row._replace(capacity=rate * row.cables, assumed=False) for row in kept]


def _by_ports(one: list[Row], two: list[Row], names: Sequence[str], notes: Notes) -> list[Row]:
    """Cables that both sources tell with ports."""
    merged, left = [], list(two)
    for row in one:
        found = next((other for other in left if _same(row, other)), None)
        if found is None:
            _alone([row], names, notes, f"is in {notes.first} alone: it is kept")
            merged.append(row)
            continue
        left.remove(found)
        merged.append(_filled(row, found, names, notes))
    _alone(left, names, notes, f"is in {notes.second} alone: it is left out")
    return merged


def _filled(row: Row, other: Row, names: Sequence[str], notes: Notes) -> Row:
    """A cable that both tell, with what the first does not tell from the second."""
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


def _differ(row: Row, one: float, two: float, names: Sequence[str], notes: Notes) -> None:
    if row.source < row.target:
        speeds = f"{one:.6g} bytes/s in the first and {two:.6g} in the second: the first is taken"
        notes.add("speeds", f"cable {words(row, names)} has {speeds}")


def _alone(rows: Sequence[Row], names: Sequence[str], notes: Notes, what: str) -> None:
    """Note the cables, each once for its two directions."""
    for row in rows:
        if row.source < row.target:
            notes.add("cables", f"cable {words(row, names)} {what}")


def _same(row: Row, other: Row) -> bool:
    """Whether two rows between the same vertices are one cable; what is not told fits anything."""
    pairs = (
        (row.source_port, other.source_port),
        (row.target_port, other.target_port),
        (row.source_adapter, other.source_adapter),
        (row.target_adapter, other.target_adapter),
    )
    return all(NO_PORT in pair or pair[0] == pair[1] for pair in pairs)


def _has_port(row: Row) -> bool:
    return row.source_port != NO_PORT or row.target_port != NO_PORT


def _each(rows: Sequence[Row]) -> float:
    """Bytes/s of a cable, where all are told; else 0."""
    if any(row.assumed for row in rows):
        return 0.0
    return sum(row.capacity for row in rows) / sum(row.cables for row in rows)


def _close(one: float, two: float) -> bool:
    return abs(one - two) <= CLOSE * max(one, two)


def told_vertices(links: Links, n: int) -> Bools:
    """bool[n]: vertices that have a cable."""
    told = np.zeros(n, np.bool_)
    told[links.source] = told[links.target] = True
    return told


def renumbered(links: Links, vertex: np.ndarray, adapter: np.ndarray) -> Links:
    """The links in other numbers of vertices and adapters."""
    adapter = np.r_[adapter, NO_PORT].astype(np.int32)  # the last for NO_PORT
    return replace(
        links,
        source=vertex[links.source],
        target=vertex[links.target],
        source_adapter=adapter[links.source_adapter],
        target_adapter=adapter[links.target_adapter],
    )
