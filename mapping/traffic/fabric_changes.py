"""Changes of a fabric: cables or switches removed, cables added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from mapping.traffic.device_names import (
    DeviceMatch,
    find_device,
    find_links,
    is_switch,
    reverse_rows,
    splits,
)
from registry.errors import InvalidValue, UnknownName
from registry.model import NO_PORT, Fabric, Ints, Links, Longs
from registry.model.links import LINK_COLUMNS

GBIT = 1e9 / 8
"""Bytes/s of 1 Gbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a fabric, by names (`mapping.traffic.device_names`).

    Attributes
    ----------
    down_links : tuple of str
        ``DEVICE:PORT``: the cable at that port, in both directions; ``DEVICE:DEVICE``: all cables between the
        two.
    down_switches : tuple of str
        Names or GUIDs of switches that are removed with all of their cables.
    added : tuple of str
        ``A:B`` or ``A:B:GBPS``: a cable between two devices and its speed in Gbit/s (default: the most common
        speed of the cables at each end; the slower of the two).
    drained : tuple of str
        Hosts whose ranks are removed with their traffic; their cables remain.
    """

    down_links: tuple[str, ...] = ()
    down_switches: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, fabric: Fabric, *, down: Iterable[str] = (), add: Iterable[str] = (), drain: Iterable[str] = ()
    ) -> Self:
        """Return a change from command line arguments; `down` takes links and switches alike.

        Raises
        ------
        UnknownName
            A device or link does not exist; the error names the closest ones.
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
        """Return the vertices (int64) of the drained hosts, ascending.

        Raises
        ------
        UnknownName
        """
        return np.unique([find_device(fabric, text, kind="host").vertex for text in self.drained]).astype(
            np.int64
        )

    def __bool__(self) -> bool:
        return bool(self.down_links or self.down_switches or self.added or self.drained)


class Applied(NamedTuple):
    """A changed fabric.

    Attributes
    ----------
    fabric : Fabric
    row_before : int32[m]
        Row of each link in the old ``fabric.links``; -1 for an added cable.
    """

    fabric: Fabric
    row_before: Ints


def applied(fabric: Fabric, change: Change, *, keep_tables: bool = False) -> Applied:
    """Return the fabric after a change: the same vertices, with links removed and added.

    Parameters
    ----------
    keep_tables : bool
        Keep the forwarding tables, which may then lead into removed cables; by default they are dropped.

    Raises
    ------
    UnknownName, InvalidValue
    """
    links, removed = fabric.links, np.zeros(len(fabric.links), np.bool_)
    for text in change.down_switches:
        vertex = find_device(fabric, text, kind="switch").vertex
        removed |= (links.source == vertex) | (links.target == vertex)
    for text in change.down_links:
        rows = find_links(fabric, text)
        removed[rows] = True
        removed[reverse_rows(fabric, rows)] = True
    kept = np.flatnonzero(~removed)
    new, rows = links.take(kept), kept.astype(np.int32)
    for text in change.added:
        new = _with_cable(fabric, new, text)
        rows = np.append(rows, np.full(2, -1, np.int32))
    order = new.order()
    tables = fabric.tables if keep_tables else None
    return Applied(replace(fabric, links=new.take(order), tables=tables), rows[order].astype(np.int32))


def _with_cable(fabric: Fabric, links: Links, text: str) -> Links:
    """Return the links with both directions of a new cable ``A:B[:GBPS]`` at the end."""
    one, other, speed = _cable(fabric, text)
    if one.vertex == other.vertex:
        raise InvalidValue("Change.added", f"{text!r} connects {fabric.names[one.vertex]!r} to itself")
    ends = (_with_adapter(fabric, one, text), _with_adapter(fabric, other, text))
    ports = [_free_port(links, end) for end in ends]
    capacity = _usual_speed(fabric, ends, text) if speed is None else speed * GBIT
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


def _cable(fabric: Fabric, text: str) -> tuple[DeviceMatch, DeviceMatch, float | None]:
    """Return the ends and the speed in Gbit/s of ``A:B[:GBPS]``."""
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
        raise InvalidValue("Change.added", f"{text!r} must be A:B or A:B:GBPS")
    left, right = parts[-1]
    find_device(fabric, left)
    find_device(fabric, right.partition(":")[0])
    raise InvalidValue("Change.added", f"{text!r} must be A:B or A:B:GBPS")


def _ends(fabric: Fabric, one: str, other: str) -> tuple[DeviceMatch, DeviceMatch] | None:
    try:
        return find_device(fabric, one), find_device(fabric, other)
    except UnknownName:
        return None


def _speed(text: str) -> float | None:
    """Return the number if it is above zero and finite, else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < np.inf else None


def _with_adapter(fabric: Fabric, end: DeviceMatch, text: str) -> DeviceMatch:
    """Return the end with the adapter of its host, if the host has any.

    Raises
    ------
    InvalidValue
        The host has several adapters and none was named.
    """
    if end.adapter >= 0 or fabric.forwards[end.vertex]:
        return end
    own = np.flatnonzero(fabric.adapters.host == end.vertex)
    if len(own) > 1:
        names = ", ".join(fabric.adapters.names[a] for a in own.tolist())
        host = fabric.names[end.vertex]
        raise InvalidValue("Change.added", f"{text!r}: host {host!r} has several adapters, name one: {names}")
    return DeviceMatch(end.vertex, int(own[0]) if len(own) else NO_PORT)


def _free_port(links: Links, end: DeviceMatch) -> int:
    """Return the next port number at a device; `NO_PORT` if its ports are not known."""
    here = (links.source == end.vertex) & ((end.adapter < 0) | (links.source_adapter == end.adapter))
    there = (links.target == end.vertex) & ((end.adapter < 0) | (links.target_adapter == end.adapter))
    ports = np.concatenate((links.source_port[here], links.target_port[there]))
    if not len(ports):
        return 1 if bool((links.source_port >= 0).any()) else NO_PORT
    return NO_PORT if int(ports.max()) < 0 else int(ports.max()) + 1


def _usual_speed(fabric: Fabric, ends: tuple[DeviceMatch, DeviceMatch], text: str) -> float:
    """Return the most common bytes/s of cables at the ends: the faster of equals, the slower end."""
    links, found = fabric.links, []
    for end in ends:
        here = links.source == end.vertex
        speeds, counts = np.unique(links.capacity[here] / links.cables[here], return_counts=True)
        if len(speeds):
            found.append(float(speeds[::-1][np.argmax(counts[::-1])]))
    if not found:
        raise InvalidValue("Change.added", f"{text!r}: neither end has a cable, so give the speed: A:B:GBPS")
    return min(found)
