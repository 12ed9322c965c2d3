"""Functions that generators share: checks of parameters, and fabrics from cables instead of arcs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue
from registry.model import Fabric

MOST = 1 << 24
"""Most vertices that a generated fabric may have: a slip of the pen should not fill the memory."""


def whole(field: str, value: int, low: int, high: int = MOST) -> int:
    """Return the value as int.

    Raises
    ------
    InvalidValue
        Not a whole number, or outside ``low .. high``.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidValue(field, f"must be a whole number, not {value!r}")
    if not low <= value <= high:
        raise InvalidValue(field, f"is {value}, not within {low} .. {high}")
    return int(value)


def wholes(field: str, values: Sequence[int], low: int) -> tuple[int, ...]:
    """Return a sequence of at least one whole number, their product at most `MOST`."""
    if isinstance(values, str) or len(values) == 0:
        raise InvalidValue(field, "needs at least one number")
    found = tuple(whole(field, value, low) for value in values)
    whole(field, math.prod(found), low, MOST)
    return found


def positive(field: str, value: float) -> float:
    """Return the value as float; finite and above zero."""
    if not (math.isfinite(value) and value > 0):
        raise InvalidValue(field, f"is {value}, must be finite and above zero")
    return float(value)


def each(field: str, value: float | Sequence[float], count: int) -> tuple[float, ...]:
    """Return one positive number for each of `count` things: the same for all, or as many as there are."""
    values = (value,) * count if isinstance(value, int | float) else tuple(value)
    if len(values) != count:
        raise InvalidValue(field, f"has {len(values)} numbers, not {count}")
    return tuple(positive(field, one) for one in values)


def cabled(
    names: Iterable[str],
    ends: ArrayLike,
    capacity: ArrayLike,
    *,
    slots: ArrayLike,
    direct: bool = False,
    level: ArrayLike | None = None,
    coordinates: ArrayLike | None = None,
) -> Fabric:
    """Return a fabric from full-duplex cables.

    Parameters
    ----------
    ends : int[cables, 2]
        Vertices that each cable joins, either order; a repeated pair is a parallel cable.
    capacity : float[cables] or float
        Bytes/s of each direction.
    slots : int[n] or int
        Ranks a vertex takes; 0 makes it a switch.
    direct : bool
        Whether hosts carry others' traffic; switches always do.
    """
    names = tuple(names)
    pairs = np.asarray(ends, np.int64).reshape(-1, 2)
    size = np.broadcast_to(np.asarray(capacity, np.float64), len(pairs))
    fabric = Fabric.from_arcs(
        names,
        np.r_[pairs[:, 0], pairs[:, 1]],
        np.r_[pairs[:, 1], pairs[:, 0]],
        np.r_[size, size],
        slots=slots,
        forwards=direct,
    )
    return replace(
        fabric,
        level=None if level is None else np.asarray(level, np.int32),
        coordinates=None if coordinates is None else np.asarray(coordinates, np.int32),
    )


def numbered(prefix: str, count: int) -> list[str]:
    """Return ``prefix`` and a number from 0, padded so that names sort as numbers do."""
    width = len(str(max(count - 1, 0)))
    return [f"{prefix}{index:0{width}d}" for index in range(count)]
