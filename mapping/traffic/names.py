"""Lookup of links, switches and hosts by name: ``DEVICE:PORT``, a name or a GUID.

A device is the name of a vertex, whole or as pages shorten it, ``HOST ADAPTER``, the description of an
adapter, or the GUID of a switch or adapter as ``0x...``. A link is named by the port that it leaves,
``DEVICE:PORT``, or, if ports are not known, by both of its ends, ``DEVICE:DEVICE``. Names may contain colons.

Short names of switches, hosts and links for pages: without what all devices of a vendor share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from registry.errors import InvalidValue, UnknownName
from registry.model import HOST, SWITCH, Fabric, Longs
from registry.model.fabric import ENDS, End, adapter_names, end_name, end_parts

ARROW = " → "
FABRICS_CACHED = 4
"""Number of fabrics whose short names are kept: every refresh of a page needs them."""
_SWITCH = re.compile(r"(?:MF0;)?(?P<name>[^;:]+):[A-Z]{2,3}\d{4}\w*(?:-\w+)?(?:/\w+)?")
_IN_TEXT = re.compile(r"MF0;([^;:]+):[A-Z]{2,3}\d{4}[\w-]*(?:/\w+)?")
"""The description that managed InfiniBand switches have: ``MF0;NAME:MODEL/UNIT``."""


@lru_cache(maxsize=FABRICS_CACHED)
def short_names(fabric: Fabric) -> tuple[str, ...]:
    """Return the short name of each vertex; the full name if two would have the same short one."""
    short = [short_name(name) for name in fabric.names]
    count = Counter(short)
    full = set(fabric.names)
    return tuple(
        name if count[one] > 1 or (one != name and one in full) else one
        for one, name in zip(short, fabric.names, strict=True)
    )


def short_name(name: str) -> str:
    """Return a device's name without a vendor's prefix and model: ``MF0;leaf1:MQM9701/U1`` is ``leaf1``."""
    found = _SWITCH.fullmatch(name)
    return name if found is None else found["name"]


def shortened(text: str) -> str:
    """Return a message with the vendors' parts of names left out, as `short_name` does."""
    return _IN_TEXT.sub(r"\1", text)


def short_port(fabric: Fabric, row: int, end: End, names: tuple[str, ...] | None = None) -> str:
    """Return the port at one end of a link: ``leaf1:33``, ``node1 mlx5_0:1``, or the device if none is known.

    Args:
        row: Row of ``fabric.links``.
        names: Result of `short_names` (default: computed for these two devices without regard to others).
    """
    device, port = end_parts(fabric, row, end)
    if names is None:
        return short_name(device) + port
    vertices = fabric.links.source if end == "source" else fabric.links.target
    return names[int(vertices[row])] + port


def short_link(fabric: Fabric, row: int, names: tuple[str, ...] | None = None) -> str:
    """Return a link by both ends: ``spine1:57 → leaf8:33``; see `short_port`."""
    return ARROW.join(short_port(fabric, row, end, names) for end in ENDS)


def full_link(fabric: Fabric, row: int) -> str:
    """Return a link by both ends with the full names of its devices."""
    return ARROW.join(end_name(fabric, row, end) for end in ENDS)


KINDS = {"switch": SWITCH, "host": HOST}
"""Kinds of vertices by name."""


class DeviceMatch(NamedTuple):
    """A vertex, and one of its adapters if that was named, else -1."""

    vertex: int
    adapter: int


def find_device(fabric: Fabric, text: str, *, kind: str = "device") -> DeviceMatch:
    """Return the vertex, or the adapter and its host, with this name or GUID.

    Args:
        kind: ``device``; or ``switch`` or ``host``, the only kind that matches.

    Raises:
        UnknownName: There is none; the error names the closest ones.
    """
    found = _device(fabric, text)
    if found is None or (kind in KINDS and fabric.kind[found.vertex] != KINDS[kind]):
        vertices = {"switch": fabric.switches, "host": fabric.hosts}.get(kind, np.arange(len(fabric)))
        raise UnknownName(kind, text, [fabric.names[vertex] for vertex in vertices.tolist()])
    return found


def is_switch(fabric: Fabric, text: str) -> bool:
    """Return True if a switch has this name or GUID."""
    found = _device(fabric, text)
    return found is not None and fabric.kind[found.vertex] == SWITCH


def find_link(fabric: Fabric, text: str) -> int:
    """Return the row of ``fabric.links`` that leaves ``DEVICE:PORT``, or that connects ``DEVICE:DEVICE``.

    Raises:
        UnknownName: There is no such device or no cable there; the error names the closest ones.
        InvalidValue: Several links match: an adapter or port must be named.
    """
    rows = find_links(fabric, text)
    if len(rows) > 1:
        raise _ambiguous(fabric, text, rows)
    return int(rows[0])


def find_links(fabric: Fabric, text: str) -> Longs:
    """Return the row (int64) that leaves ``DEVICE:PORT``, or all that connect ``DEVICE:DEVICE``.

    Raises:
        UnknownName: There is no such device or no cable there; the error names the closest ones.
        InvalidValue: Several adapters of a host have that port: one must be named.
    """
    links, device = fabric.links, None
    for left, right in splits(text):
        one = _device(fabric, left)
        if one is None:
            continue
        device = left
        leaves = links.source == one.vertex
        if one.adapter >= 0:
            leaves &= links.source_adapter == one.adapter
        if right.isdecimal() and len(right) < _DIGITS:
            rows = np.flatnonzero(leaves & (links.source_port == int(right)))
            if len(rows) > 1:
                raise _ambiguous(fabric, text, rows)
            if len(rows):
                return rows
        other = _device(fabric, right)
        rows = np.flatnonzero(leaves & (links.target == (-1 if other is None else other.vertex)))
        if len(rows):
            return rows
    raise _unknown(fabric, text, device)


def reverse_rows(fabric: Fabric, rows: Longs) -> Longs:
    """Return the other directions (int64) of the cables in these rows, if they exist."""
    links = fabric.links
    ends = ("target", "source", "target_port", "source_port", "target_adapter", "source_adapter")
    back = {tuple(getattr(links, name)[row] for name in ends) for row in rows.tolist()}
    near = np.flatnonzero(np.isin(links.source, links.target[rows]))
    reverse = ("source", "target", "source_port", "target_port", "source_adapter", "target_adapter")
    found = [row for row in near.tolist() if tuple(getattr(links, name)[row] for name in reverse) in back]
    return np.asarray(found, np.int64)


def link_text(fabric: Fabric, row: int) -> str:
    """Return the name of a row for `find_link`: the port that it leaves, or both devices if none is known."""
    device, port = end_parts(fabric, row)
    return device + (port or f":{fabric.names[fabric.links.target[row]]}")


def splits(text: str) -> Iterator[tuple[str, str]]:
    """Return the parts before and after each colon, the last colon first."""
    colon = text.rfind(":")
    while colon > 0:
        yield text[:colon], text[colon + 1 :]
        colon = text.rfind(":", 0, colon)


_DIGITS = 9
"""Numbers with this many digits are not ports."""
_SHOWN = 8
"""Largest number of links or ports in a message."""


def _device(fabric: Fabric, text: str) -> DeviceMatch | None:
    adapters, vertex = fabric.adapters, _vertex(fabric, text)
    if vertex is not None:
        return DeviceMatch(vertex, -1)
    rows = [a for a, name in enumerate(adapters.names) if name == text]
    guid = _guid(text)
    if guid:
        switches = np.flatnonzero(fabric.guid == guid)
        if len(switches):
            return DeviceMatch(int(switches[0]), -1)
        rows = np.flatnonzero(adapters.guid == guid).tolist()
    rows = rows or _adapters_of_host(fabric, *text.rpartition(" ")[::2])
    return DeviceMatch(int(adapters.host[rows[0]]), int(rows[0])) if len(rows) == 1 else None


def _vertex(fabric: Fabric, text: str) -> int | None:
    """Return the vertex with this name, or the only one with this name in short, by pages or by domain."""
    if text in fabric.names:
        return fabric.names.index(text)
    found = [vertex for vertex, name in enumerate(fabric.names) if short_name(name) == text]
    found = found or list(fabric.known_vertices([text], kind="device").values())
    return found[0] if len(found) == 1 else None


def _adapters_of_host(fabric: Fabric, host: str, adapter: str) -> list[int]:
    """Return the adapter of a host that has this name there, if any."""
    vertex = _vertex(fabric, host)
    rows = np.flatnonzero(fabric.adapters.host == (-1 if vertex is None else vertex)).tolist()
    return [row for row, name in adapter_names(fabric, rows).items() if name == adapter]


def _guid(text: str) -> int:
    """Return the number of ``0x...``, or 0 if the text is no such number."""
    try:
        return int(text, 16) if text.lower().startswith("0x") else 0
    except ValueError:
        return 0


def _listed(fabric: Fabric, rows: Longs) -> str:
    shown = ", ".join(link_text(fabric, row) for row in rows[:_SHOWN].tolist())
    return shown + (", ..." if len(rows) > _SHOWN else "")


def _ambiguous(fabric: Fabric, text: str, rows: Longs) -> InvalidValue:
    return InvalidValue("link", f"{text!r} matches {len(rows)} links, name one: {_listed(fabric, rows)}")


def _unknown(fabric: Fabric, text: str, device: str | None) -> UnknownName:
    """Return the error for a link that does not exist, with a remedy for its device or port."""
    if device is None:
        left = text.rpartition(":")[0] or text
        close = UnknownName("device", left, fabric.names).close
        remedy = "a link is written DEVICE:PORT"
        if close:
            remedy += f"; closest devices: {', '.join(close)}"
        return UnknownName("link", text, remedy=remedy)
    one = find_device(fabric, device)
    rows = np.flatnonzero(fabric.links.source == one.vertex)
    if one.adapter >= 0:
        rows = rows[fabric.links.source_adapter[rows] == one.adapter]
    remedy = f"links at {device}: {_listed(fabric, rows)}" if len(rows) else f"{device} has no cables"
    return UnknownName("link", text, remedy=remedy)
