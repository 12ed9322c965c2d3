"""Functions that generators share: checks of parameters, and fabrics from cables instead of arcs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue
from registry.model import Fabric, Longs

MOST = 1 << 24
"""Largest number of vertices of a generated fabric, so that a typing error does not fill the memory."""


def whole(field: str, value: int, low: int, high: int = MOST) -> int:
    """Return the value as int; raise `InvalidValue` unless it is a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidValue(field, f"must be a whole number, not {value!r}")
    if not low <= value <= high:
        raise InvalidValue(field, f"is {value}, not within {low} .. {high}")
    return int(value)


def power_of_two(field: str, value: int) -> None:
    """Raise `InvalidValue` unless the value is a power of two."""
    if value & (value - 1):
        raise InvalidValue(field, f"is {value}, must be a power of two")


def wholes(field: str, values: Sequence[int], low: int) -> tuple[int, ...]:
    """Return a sequence of at least one whole number, their product at most `MOST`."""
    if isinstance(values, str) or len(values) == 0:
        raise InvalidValue(field, "needs at least one number")
    found = tuple(whole(field, value, low) for value in values)
    whole(field, math.prod(found), low, MOST)
    return found


def positive(field: str, value: float) -> float:
    """Return the value as float; raise `InvalidValue` unless it is finite and above zero."""
    if not (math.isfinite(value) and value > 0):
        raise InvalidValue(field, f"is {value}, must be finite and above zero")
    return float(value)


def each(field: str, value: float | Sequence[float], count: int) -> tuple[float, ...]:
    """Return `count` positive numbers from as many, or from one for all."""
    values = (value,) * count if isinstance(value, int | float) else tuple(value)
    if len(values) != count:
        raise InvalidValue(field, f"has {len(values)} numbers, not {count}")
    return tuple(positive(field, one) for one in values)


def cabled(
    names: Iterable[str],
    cables: Sequence[Longs],
    rates: Sequence[float],
    *,
    slots: ArrayLike,
    direct: bool = False,
    level: ArrayLike | None = None,
    coordinates: ArrayLike | None = None,
) -> Fabric:
    """Return a fabric from groups of full-duplex cables.

    Args:
        names: Names of the vertices.
        cables (sequence of int[c, 2]): Vertices that each cable of a group connects, in any order; a repeated
            pair is a parallel cable.
        rates: Bytes/s in each direction of the cables of each group.
        slots (int[n] or int): Number of ranks per vertex; 0 makes it a switch.
        direct: True if hosts forward traffic of others; switches always do.
        level, coordinates (int[n], int[n, dimensions]):
    """
    one, other = np.concatenate(cables).T
    size = np.repeat(rates, [len(part) for part in cables])
    fabric = Fabric.from_arcs(
        names, np.r_[one, other], np.r_[other, one], np.r_[size, size], slots=slots, forwards=direct
    )
    return replace(
        fabric,
        level=None if level is None else np.asarray(level, np.int32),
        coordinates=None if coordinates is None else np.asarray(coordinates, np.int32),
    )


def switched(
    names: Sequence[str], hosts: int, cables: Sequence[Longs], rates: Sequence[float], slots: int
) -> Fabric:
    """Return a fabric of switches with the same number of hosts each.

    Args:
        names: Names of the switches.
        hosts: Number of hosts per switch.
        cables (sequence of int[c, 2]): Groups of cables between switches, which are numbered from 0.
        rates: Bytes/s in each direction of a host's cable, then of the cables of each group.
        slots: Number of ranks per host.
    """
    switches, count = len(names), len(names) * hosts
    host = np.arange(count)
    return cabled(
        [*numbered("node", count), *names],
        [pairs(host, count + host // hosts), *(count + part for part in cables)],
        rates,
        slots=np.repeat((slots, 0), (count, switches)),
        level=np.repeat((0, 1), (count, switches)),
    )


def pairs(one: Longs, other: Longs) -> Longs:
    """Return the vertices that cables connect (int64[cables, 2]) from those of each end."""
    return np.stack((one, other), axis=1)


def numbered(prefix: str, count: int) -> list[str]:
    """Return ``prefix`` and a number from 0, padded so that names sort as numbers do."""
    width = len(str(max(count - 1, 0)))
    return [f"{prefix}{index:0{width}d}" for index in range(count)]
