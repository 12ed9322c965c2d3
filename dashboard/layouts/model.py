"""Positions of the vertices of a fabric, and its cables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dashboard.layouts.order import repeat_number
from registry.model import Fabric, Floats, Ints, Longs

TREE = "tree"
GRID = "grid"
GROUPS = "groups"
FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Positions of the vertices of a fabric.

    Attributes
    ----------
    form : str
        `TREE` (y is the tier), `GRID` (torus in slices), `GROUPS` (dragonfly, one circle per group) or
        `FREE`.
    x, y : float64[n]
        Position, from 0 to 1; y grows upwards.
    tier : int32[n]
        Tier: 0 hosts, 1 leaf switches, ...; only 0 and 1 if the fabric is no tree.
    group : int32[n] or None
        Group of each vertex of a dragonfly, -1 for none; None for other fabrics.
    spot : int32[n, d] or None
        Coordinates of each forwarding vertex of a torus, -1 for others; None for other fabrics.
    sizes : int32[d] or None
        Number of vertices along each axis of a torus; None for other fabrics.
    """

    form: str
    x: Floats
    y: Floats
    tier: Ints
    group: Ints | None = None
    spot: Ints | None = None
    sizes: Ints | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cables:
    """The cables of a fabric: each pair of opposite links once, ordered by ends and ports.

    Attributes
    ----------
    a, b : int64[c]
        Vertices at the ends, ``a < b``.
    there, back : int64[c]
        Rows of ``fabric.links`` from a to b and from b to a; -1 for a missing
        direction.
    """

    a: Longs
    b: Longs
    there: Longs
    back: Longs

    def __len__(self) -> int:
        return len(self.a)


def cables(fabric: Fabric) -> Cables:
    """Return the cables of a fabric; without port numbers, parallel links are paired by their order."""
    links = fabric.links
    forth = links.source < links.target
    ends = [
        np.where(forth, *(getattr(links, f"{end}{what}") for end in order)).astype(np.int64)
        for what in ("", "_port", "_adapter")
        for order in (("source", "target"), ("target", "source"))
    ]
    twin = repeat_number(*ends, forth.astype(np.int64))
    order = np.lexsort((~forth, twin, *reversed(ends)))
    keys = np.stack([*ends, twin])[:, order]
    starts = np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)] if len(order) else np.zeros(0, bool)
    cable = np.cumsum(starts) - 1
    count = int(starts.sum())
    rows = np.full((2, count), -1, np.int64)
    rows[np.where(forth[order], 0, 1), cable] = order
    a, b = keys[0][starts], keys[1][starts]
    return Cables(a=a, b=b, there=rows[0], back=rows[1])
