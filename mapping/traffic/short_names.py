"""Short names of switches, hosts and links for pages: without what all devices of a vendor share."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from registry.model import Fabric
from registry.model.fabric import ENDS, End, end_name, end_parts

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

    Parameters
    ----------
    row : int
        Row of ``fabric.links``.
    names : tuple of str, optional
        Result of `short_names` (default: computed for these two devices without regard to others).
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
