"""The drawing of a fabric: its layout, cables and cells, which depend on the wiring alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dashboard.layouts import groups as dragonfly
from dashboard.layouts.cells import Cells, cells
from dashboard.layouts.free import free
from dashboard.layouts.model import FREE, GRID, GROUPS, TREE, Cables, Layout, cables
from dashboard.layouts.torus import slices
from dashboard.layouts.tree import columns, tiers
from mapping.routing.tori import torus_coordinates
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawing:
    """Positions of the vertices of a fabric, its cables, and the cell of each cable."""

    layout: Layout
    cables: Cables
    cells: Cells


Spread = Callable[[Fabric], tuple[Floats, Floats]]


def draw_fabric(fabric: Fabric, spread: Spread = free) -> Drawing:
    """Return the drawing of a fabric.

    Parameters
    ----------
    spread : callable
        Returns the positions of a free layout.
    """
    placed, pairs = layout(fabric, spread), cables(fabric)
    return Drawing(layout=placed, cables=pairs, cells=cells(fabric, placed, pairs))


def redrawn(drawing: Drawing, fabric: Fabric) -> Drawing:
    """Return the drawing of a fabric with the same vertices at the same places but other links.

    Raises
    ------
    InvalidValue
        The number of vertices differs.
    """
    if len(fabric) != len(drawing.layout.x):
        raise InvalidValue("fabric", f"has {len(fabric)} vertices, not {len(drawing.layout.x)}")
    pairs = cables(fabric)
    return Drawing(layout=drawing.layout, cables=pairs, cells=cells(fabric, drawing.layout, pairs))


def layout(fabric: Fabric, spread: Spread = free) -> Layout:
    """Return the layout that suits a fabric: tree in levels, torus in slices, dragonfly in groups, or free.

    Parameters
    ----------
    spread : callable
        Returns the positions of a free layout.
    """
    tier = tiers(fabric)
    top = max(int(tier.max()), 1)
    if int(tier.max()) > 1 and fabric.coordinates is None:
        return Layout(form=TREE, x=columns(fabric, tier), y=tier / top, tier=tier)
    spot = _torus(fabric)
    if spot is not None:
        x, y = slices(fabric, spot)
        return Layout(form=GRID, x=x, y=y, tier=tier, spot=spot, sizes=spot.max(axis=0) + 1)
    group = dragonfly.groups(fabric)
    if group is not None:
        x, y = dragonfly.circles(fabric, group)
        return Layout(form=GROUPS, x=x, y=y, tier=tier, group=group)
    x, y = spread(fabric)
    return Layout(form=FREE, x=x, y=y, tier=tier)


def _torus(fabric: Fabric) -> Ints | None:
    """Return int32[n, d]: coordinates in a torus or mesh of two or more axes, -1 for hosts; or None."""
    found = torus_coordinates(fabric)
    if found is not None and found.coordinates.shape[1] > 1 and int(found.sizes.max()) > 2:
        return found.coordinates
    if fabric.coordinates is None or fabric.coordinates.shape[1] < 2:
        return None
    lowest = fabric.coordinates[fabric.forwards].min(axis=0)
    given: Ints = np.where(fabric.forwards[:, None], fabric.coordinates - lowest, -1).astype(np.int32)
    return given
