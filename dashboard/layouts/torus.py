"""A torus or mesh in slices side by side."""

from __future__ import annotations

import numpy as np

from dashboard.layouts.order import fitted, running, seat_of
from registry.model import Fabric, Floats, Ints

GAP = 1
"""Free columns between two slices."""
CORNER = 0.28
"""Distance of a host from the switch that it hangs on, in steps of the grid."""


def slices(fabric: Fabric, spot: Ints) -> tuple[Floats, Floats]:
    """float64[n], float64[n]: x and y. Axes beyond the second are laid out in x, slice by slice.

    Parameters
    ----------
    spot : int32[n, d]
        Coordinates of what forwards; -1 for what hangs on it, and is drawn around it.
    """
    place = np.zeros((len(fabric), max(2, spot.shape[1])))
    place[:, : spot.shape[1]] = spot[seat_of(fabric)]
    width = float(place[:, 0].max()) + 1 + GAP
    x = place[:, 0].copy()
    for axis in range(2, place.shape[1]):
        x += place[:, axis] * width
        width *= float(place[:, axis].max()) + 1
    y = place[:, 1].copy()
    hanging = np.flatnonzero(~fabric.forwards)
    seat = seat_of(fabric)[hanging]
    around = np.bincount(seat[seat >= 0], minlength=len(fabric))[seat]
    angle = np.pi / 4 + 2 * np.pi * running(seat) / np.maximum(around, 1)
    x[hanging] += CORNER * np.cos(angle)
    y[hanging] += CORNER * np.sin(angle)
    return fitted(x), fitted(y)
