"""What a layout is."""

from __future__ import annotations

from dataclasses import dataclass

from registry.model import Floats, Ints

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
        `TREE` (y is the tier), `GRID` (a torus in slices), `GROUPS` (of a dragonfly, a circle each) or
        `FREE`.
    x, y : float64[n]
        Between 0 and 1; y grows upwards.
    tier : int32[n]
        0 hosts, 1 leaf switches, ...; a fabric that is no tree has tiers 0 and 1 only.
    group : int32[n] or None
        Of a dragonfly: the group of each vertex; -1 for one that hangs on none.
    spot : int32[n, d] or None
        Of a torus: coordinates of each vertex that forwards; -1 for others.
    sizes : int32[d] or None
        Of a torus: vertices along each axis.
    """

    form: str
    x: Floats
    y: Floats
    tier: Ints
    group: Ints | None = None
    spot: Ints | None = None
    sizes: Ints | None = None
