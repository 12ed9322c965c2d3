"""Two states of a wiring as one fabric whose links are new, gone, changed or unchanged. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dashboard.layouts.order import repeat_number
from dashboard.tables.links import with_removed
from registry.model import NO_PORT, Fabric, Floats, Links, Longs
from registry.store.changes import Changes

UNCHANGED, FASTER, SLOWER, NEW, GONE = range(1, 6)
"""Kinds of links, the most important last."""
KINDS = ("unchanged", "faster", "slower", "new", "gone")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlay:
    """Two states of a wiring in one fabric.

    Attributes
    ----------
    fabric : Fabric
        All vertices and links of both states, without adapters and tables.
    kind : float64[m]
        Kind of each link.
    """

    fabric: Fabric
    kind: Floats

    @property
    def differs(self) -> bool:
        """True if any link changed."""
        return bool((self.kind != UNCHANGED).any())


def overlay(before: Fabric, after: Fabric, changes: Changes) -> Overlay:
    """Return two states of a wiring as one fabric.

    Parameters
    ----------
    changes : Changes
        Changes between the states; they contain the renamed vertices.
    """
    names, vertex_of = _vertices(before, after, changes)
    older, newer = before.links, after.links
    ends = (vertex_of[older.source], vertex_of[older.target])
    key = _keys([(*ends, older), (newer.source.astype(np.int64), newer.target.astype(np.int64), newer)])
    old_key, new_key = key[: len(older)], key[len(older) :]
    _, old_at, new_at = np.intersect1d(old_key, new_key, assume_unique=True, return_indices=True)
    kind = np.full(len(newer), NEW, np.float64)
    kind[new_at] = UNCHANGED
    grown = newer.capacity[new_at] - older.capacity[old_at]
    kind[new_at[grown > 0]], kind[new_at[grown < 0]] = FASTER, SLOWER
    gone = np.setdiff1d(np.arange(len(older)), old_at)
    source, target = (end.astype(np.int32) for end in ends)
    links = with_removed(newer, replace(older, source=source, target=target), gone)
    unknown = np.full(len(links), NO_PORT, np.int32)
    links = replace(links, source_adapter=unknown, target_adapter=unknown)
    order = links.order()
    kind = np.r_[kind, np.full(len(gone), GONE)][order]
    return Overlay(fabric=_fabric(before, after, names, vertex_of, links.take(order)), kind=kind)


def _vertices(before: Fabric, after: Fabric, changes: Changes) -> tuple[tuple[str, ...], Longs]:
    """Return all names, the later state's first, and the index of each earlier vertex among them."""
    renamed = {one.old: one.new for one in changes.renamed}
    place = {name: vertex for vertex, name in enumerate(after.names)}
    names = list(after.names)
    vertex_of = np.empty(len(before), np.int64)
    for vertex, name in enumerate(before.names):
        now = renamed.get(name, name)
        if now not in place:
            place[now] = len(names)
            names.append(now)
        vertex_of[vertex] = place[now]
    return tuple(names), vertex_of


def _keys(states: list[tuple[Longs, Longs, Links]]) -> Longs:
    """Return a number for each link of all states, equal for links with equal ends and ports."""
    rows = []
    for source, target, links in states:
        columns = (source, target, links.source_port.astype(np.int64), links.target_port.astype(np.int64))
        rows.append(np.stack([*columns, repeat_number(*columns)], axis=1))
    return np.unique(np.concatenate(rows), axis=0, return_inverse=True)[1].astype(np.int64).reshape(-1)


def _fabric(before: Fabric, after: Fabric, names: tuple[str, ...], vertex_of: Longs, links: Links) -> Fabric:
    """Return the later fabric with the removed vertices and with these links."""
    lost = np.flatnonzero(vertex_of >= len(after))
    lost = lost[np.argsort(vertex_of[lost])]
    empty = replace(
        after,
        adapters=type(after.adapters)(),
        ports=type(after.ports)(),
        tables=None,
        links=links.take(np.zeros(0, np.int64)),
    )
    columns = {
        name: np.r_[getattr(after, name), getattr(before, name)[lost]]
        for name in ("kind", "slots", "forwards", "guid", "lid")
    }
    return replace(empty, names=names, links=links, level=None, coordinates=None, **columns)
