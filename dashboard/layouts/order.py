"""Orders, scales and neighbours that several layouts use."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from registry.model import Fabric, Floats, Ints, Longs

_NUMBER = re.compile(r"([0-9]+)")


def natural_order(names: Sequence[str]) -> Ints:
    """Return int32[n]: rank of each name in natural order, in which numbers within names count as numbers."""
    keys = [
        [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _NUMBER.split(name) if part]
        for name in names
    ]
    order = sorted(range(len(names)), key=keys.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names))
    return rank


def fitted(values: Floats) -> Floats:
    """Return the values scaled to 0 .. 1; one half if all are equal."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


def surround(fabric: Fabric, x: Floats, y: Floats, distance: float, turn: float = 0.0) -> None:
    """Place the hosts of each switch in a circle around it, the first one at the angle `turn`."""
    hanging = np.flatnonzero(~fabric.forwards)
    switch = switch_of(fabric)[hanging]
    hanging, switch = hanging[switch >= 0], switch[switch >= 0]
    around = np.bincount(switch, minlength=len(fabric))[switch]
    angle = turn + 2 * np.pi * repeat_number(switch) / np.maximum(around, 1)
    x[hanging] = x[switch] + distance * np.cos(angle)
    y[hanging] = y[switch] + distance * np.sin(angle)


def repeat_number(*keys: Ints | Longs) -> Longs:
    """Return int64[k]: for each row the number of earlier rows with the same keys."""
    count = len(keys[0])
    order = np.lexsort((np.arange(count), *reversed(keys)))
    changed = np.zeros(count, bool)
    changed[:1] = True
    for key in keys:
        changed[1:] |= np.diff(key[order]) != 0
    first = np.flatnonzero(changed)
    number = np.empty(count, np.int64)
    number[order] = np.arange(count) - np.repeat(first, np.diff(np.r_[first, count]))
    return number


def switch_of(fabric: Fabric) -> Longs:
    """Return int64[n]: the switch of each vertex: itself if it forwards, a forwarding neighbour, or -1."""
    links, n = fabric.links, len(fabric)
    switch = np.full(n, -1, np.int64)
    hanging = ~fabric.forwards[links.source] & fabric.forwards[links.target]
    vertex, first = np.unique(links.source[hanging], return_index=True)
    switch[vertex] = links.target[hanging][first]
    core = np.flatnonzero(fabric.forwards)
    switch[core] = core
    return switch
