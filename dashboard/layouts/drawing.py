"""Everything about drawing a fabric that depends on its wiring alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dashboard.layouts import groups as dragonfly
from dashboard.layouts.cables import Cables, cables
from dashboard.layouts.cells import Cells, cells
from dashboard.layouts.free import free
from dashboard.layouts.places import FREE, GRID, GROUPS, TREE, Layout
from dashboard.layouts.torus import slices
from dashboard.layouts.tree import columns, tiers
from mapping.routing.torus import torus_coordinates
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawing:
    """How a fabric is drawn: where its vertices are, its `cables`, and the cell of each cable in a matrix."""

    layout: Layout
    cables: Cables
    cells: Cells


Spread = Callable[[Fabric], tuple[Floats, Floats]]


def draw(fabric: Fabric, spread: Spread = free) -> Drawing:
    """Everything about drawing a fabric that depends on its wiring alone.

    Parameters
    ----------
    spread : callable
        Gives the positions where the layout is free.
    """
    placed, pairs = layout(fabric, spread), cables(fabric)
    return Drawing(layout=placed, cables=pairs, cells=cells(fabric, placed, pairs))


def redrawn(drawing: Drawing, fabric: Fabric) -> Drawing:
    """How a fabric of the same vertices but other links is drawn: everything at the same place.

    Raises
    ------
    InvalidValue
        It has other vertices.
    """
    if len(fabric) != len(drawing.layout.x):
        raise InvalidValue("fabric", f"has {len(fabric)} vertices, not {len(drawing.layout.x)}")
    pairs = cables(fabric)
    return Drawing(layout=drawing.layout, cables=pairs, cells=cells(fabric, drawing.layout, pairs))


def layout(fabric: Fabric, spread: Spread = free) -> Layout:
    """The layout that suits a fabric: tree in levels, torus in slices, dragonfly in groups, else free.

    Parameters
    ----------
    spread : callable
        Gives the positions where the layout is free.
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
    """int32[n, d]: coordinates of what forwards in a torus or mesh of two axes or more, -1 for others."""
    found = torus_coordinates(fabric)
    if found is not None and found.coordinates.shape[1] > 1 and int(found.sizes.max()) > 2:
        return found.coordinates
    if fabric.coordinates is None or fabric.coordinates.shape[1] < 2:
        return None
    lowest = fabric.coordinates[fabric.forwards].min(axis=0)
    given: Ints = np.where(fabric.forwards[:, None], fabric.coordinates - lowest, -1).astype(np.int32)
    return given
