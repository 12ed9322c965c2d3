"""Positions for a torus or mesh: slices side by side."""

from __future__ import annotations

import numpy as np

from dashboard.layouts.order import fitted, surround, switch_of
from registry.model import Fabric, Floats, Ints

GAP = 1
"""Number of empty columns between two slices."""
CORNER = 0.28
"""Distance of a host from its switch, in steps of the grid."""


def slices(fabric: Fabric, spot: Ints) -> tuple[Floats, Floats]:
    """Return float64[n], float64[n]: x and y. Further axes are drawn along x, slice by slice.

    Parameters
    ----------
    spot : int32[n, d]
        Coordinates of forwarding vertices; -1 for hosts, which are drawn around their switch.
    """
    place = np.zeros((len(fabric), max(2, spot.shape[1])))
    place[:, : spot.shape[1]] = spot[switch_of(fabric)]
    width = float(place[:, 0].max()) + 1 + GAP
    x = place[:, 0].copy()
    for axis in range(2, place.shape[1]):
        x += place[:, axis] * width
        width *= float(place[:, axis].max()) + 1
    y = place[:, 1].copy()
    surround(fabric, x, y, CORNER, np.pi / 4)
    return fitted(x), fitted(y)
