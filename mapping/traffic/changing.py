"""A fabric as it would be if cables or switches went, or cables came."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from mapping.traffic.naming import (
    Ends,
    find_device,
    find_host,
    find_links,
    find_switch,
    is_switch,
    reverse_rows,
    splits,
)
from registry.errors import InvalidValue, UnknownName
from registry.model import NO_PORT, Fabric, Ints, Links, Longs
from registry.model.links import LINK_COLUMNS

GBIT = 1e9 / 8
"""Bytes/s of one Gbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is done to a fabric, by names (`mapping.traffic.naming`).

    Attributes
    ----------
    down_links : tuple of str
        ``DEVICE:PORT``: the cable at that port, in both directions; ``DEVICE:DEVICE``: all cables of the two.
    down_switches : tuple of str
        Names or GUIDs: with all of their cables.
    added : tuple of str
        ``A:B`` or ``A:B:GBPS``: a cable between two devices, of so many Gbit/s; unless told, as its two ends'
        other cables mostly are, the slower end counts.
    drained : tuple of str
        Hosts whose ranks are gone, and their traffic with them; their cables stay.
    """

    down_links: tuple[str, ...] = ()
    down_switches: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, fabric: Fabric, *, down: Iterable[str] = (), add: Iterable[str] = (), drain: Iterable[str] = ()
    ) -> Self:
        """A change in the words of the command line: `down` takes links and switches alike.

        Raises
        ------
        UnknownName
            Of a device or link; with the closest.
        InvalidValue
        """
        taken = tuple(down)
        switches = tuple(text for text in taken if is_switch(fabric, text))
        change = cls(
            down_links=tuple(text for text in taken if text not in switches),
            down_switches=switches,
            added=tuple(add),
            drained=tuple(drain),
        )
        applied(fabric, change)
        change.drained_hosts(fabric)
        return change

    def drained_hosts(self, fabric: Fabric) -> Longs:
        """int64: vertices of the hosts that are drained, ascending.

        Raises
        ------
        UnknownName
        """
        return np.unique([find_host(fabric, text) for text in self.drained]).astype(np.int64)

    def __bool__(self) -> bool:
        return bool(self.down_links or self.down_switches or self.added or self.drained)


class Applied(NamedTuple):
    """A changed fabric.

    Attributes
    ----------
    fabric : Fabric
    row_before : int32[m]
        Row of the old ``fabric.links`` that each link was; -1 for an added cable.
    """

    fabric: Fabric
    row_before: Ints


def changed(fabric: Fabric, change: Change, *, keep_tables: bool = False) -> Fabric:
    """The fabric after a change: the same vertices, links gone and come.

    Parameters
    ----------
    keep_tables : bool
        Keep the forwarding tables, which then lead into gone cables; else there are none.

    Raises
    ------
    UnknownName, InvalidValue
    """
    return applied(fabric, change, keep_tables=keep_tables).fabric


def applied(fabric: Fabric, change: Change, *, keep_tables: bool = False) -> Applied:
    """`changed`, and what each of its links was before.

    Raises
    ------
    UnknownName, InvalidValue
    """
    links, gone = fabric.links, np.zeros(len(fabric.links), np.bool_)
    for text in change.down_switches:
        vertex = find_switch(fabric, text)
        gone |= (links.source == vertex) | (links.target == vertex)
    for text in change.down_links:
        rows = find_links(fabric, text)
        gone[rows] = True
        gone[reverse_rows(fabric, rows)] = True
    kept = np.flatnonzero(~gone)
    whole, rows = links.take(kept), kept.astype(np.int32)
    for text in change.added:
        whole = _with_cable(fabric, whole, text)
        rows = np.append(rows, np.full(2, -1, np.int32))
    order = whole.order()
    tables = fabric.tables if keep_tables else None
    return Applied(replace(fabric, links=whole.take(order), tables=tables), rows[order].astype(np.int32))


def _with_cable(fabric: Fabric, links: Links, text: str) -> Links:
    """The links with both directions of a new cable ``A:B[:GBPS]`` at the end."""
    one, other, speed = _cable(fabric, text)
    if one.vertex == other.vertex:
        raise InvalidValue("Change.added", f"{text!r} leads from {fabric.names[one.vertex]!r} to itself")
    ends = (_at_adapter(fabric, one, text), _at_adapter(fabric, other, text))
    ports = [_free_port(links, end) for end in ends]
    capacity = _commonest(fabric, ends, text) if speed is None else speed * GBIT
    both = Links.of(
        [end.vertex for end in ends],
        [end.vertex for end in reversed(ends)],
        capacity,
        source_port=ports,
        target_port=ports[::-1],
        source_adapter=[end.adapter for end in ends],
        target_adapter=[end.adapter for end in reversed(ends)],
    )
    return Links(
        **{name: np.concatenate((getattr(links, name), getattr(both, name))) for name in LINK_COLUMNS}
    )


def _cable(fabric: Fabric, text: str) -> tuple[Ends, Ends, float | None]:
    """The ends and the speed in Gbit/s of ``A:B[:GBPS]``."""
    for left, right in splits(text):
        if (found := _ends(fabric, left, right)) is not None:
            return (*found, None)
        speed = _speed(right)
        if speed is not None:
            for one, other in splits(left):
                if (found := _ends(fabric, one, other)) is not None:
                    return (*found, speed)
    parts = list(splits(text))
    if not parts:
        raise InvalidValue("Change.added", f"{text!r} is not A:B or A:B:GBPS")
    left, right = parts[-1]
    find_device(fabric, left)
    find_device(fabric, right.partition(":")[0])
    raise InvalidValue("Change.added", f"{text!r} is not A:B or A:B:GBPS")


def _ends(fabric: Fabric, one: str, other: str) -> tuple[Ends, Ends] | None:
    try:
        return find_device(fabric, one), find_device(fabric, other)
    except UnknownName:
        return None


def _speed(text: str) -> float | None:
    """Above zero and finite, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < np.inf else None


def _at_adapter(fabric: Fabric, end: Ends, text: str) -> Ends:
    """The end at an adapter, where its host has any.

    Raises
    ------
    InvalidValue
        The host has several, and none was named.
    """
    if end.adapter >= 0 or fabric.forwards[end.vertex]:
        return end
    own = np.flatnonzero(fabric.adapters.host == end.vertex)
    if len(own) > 1:
        names = ", ".join(fabric.adapters.names[a] for a in own.tolist())
        host = fabric.names[end.vertex]
        raise InvalidValue("Change.added", f"{text!r}: host {host!r} has several adapters, name one: {names}")
    return Ends(end.vertex, int(own[0]) if len(own) else NO_PORT)


def _free_port(links: Links, end: Ends) -> int:
    """A port number after all that are cabled at a device; `NO_PORT` where its ports are not known."""
    here = (links.source == end.vertex) & ((end.adapter < 0) | (links.source_adapter == end.adapter))
    there = (links.target == end.vertex) & ((end.adapter < 0) | (links.target_adapter == end.adapter))
    ports = np.concatenate((links.source_port[here], links.target_port[there]))
    if not len(ports):
        return 1 if bool((links.source_port >= 0).any()) else NO_PORT
    return NO_PORT if int(ports.max()) < 0 else int(ports.max()) + 1


def _commonest(fabric: Fabric, ends: tuple[Ends, Ends], text: str) -> float:
    """Bytes/s that cables at the ends mostly have: of equals the faster, of the two ends the slower."""
    links, found = fabric.links, []
    for end in ends:
        here = links.source == end.vertex
        speeds, counts = np.unique(links.capacity[here] / links.cables[here], return_counts=True)
        if len(speeds):
            found.append(float(speeds[::-1][np.argmax(counts[::-1])]))
    if not found:
        raise InvalidValue("Change.added", f"{text!r}: neither end has a cable to go by: A:B:GBPS")
    return min(found)
