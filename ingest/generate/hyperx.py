"""HyperX: switches on a grid, all switches of a line joined to each other (Ahn et al., SC 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ingest.generate.checks import cabled, each, numbered, positive, whole, wholes
from registry.errors import InvalidValue
from registry.model import Fabric, Longs


def hyperx(
    sides: Sequence[int],
    hosts: int,
    *,
    widths: int | Sequence[int] = 1,
    capacity: float | Sequence[float] = 1.0,
    host_capacity: float = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return the network (L, S, K, T) of Ahn, Binkert, Davis, McLaren and Schreiber (SC 2009, section 3).

    There are ``P = S_1 * S_2 * ...`` switches of `hosts` hosts each; switches whose coordinates differ in one
    dimension alone are joined by K_i cables. A HyperX of one dimension is a complete graph, one whose sides
    are all 2 a hypercube, one of equal sides and widths 1 a Hamming graph (the flattened butterfly). There
    are ``P * sum_i K_i * (S_i - 1) / 2`` cables between switches, which are as far apart as coordinates
    differ: at most the number of sides above 1, in the mean of two different ones ``P / (P - 1) * sum_i (1 -
    1 / S_i)``. Cut in halves across an even side i it has ``P * K_i * S_i / 4`` cables between them; the
    least of these is the bisection (section 3.2).

    Parameters
    ----------
    sides : sequence of int
        S_1, S_2, ...: switches along each dimension.
    hosts : int
        T: hosts of a switch.
    widths : int or sequence of int
        K_i: parallel cables between two switches of a line, for all dimensions or one for each.
    capacity : float or sequence of float
        Bytes/s of a cable between switches and direction, for all dimensions or one for each.
    host_capacity : float
        Bytes/s of a host's cable and direction.
    slots : int
        Ranks a host takes.

    Raises
    ------
    InvalidValue
    """
    sides = wholes("hyperx.sides", sides, 1)
    dimensions = len(sides)
    bundle = (widths,) * dimensions if isinstance(widths, int) else tuple(widths)
    if len(bundle) != dimensions:
        raise InvalidValue("hyperx.widths", f"has {len(bundle)} numbers, not {dimensions}")
    rates = each("hyperx.capacity", capacity, dimensions)
    switches = int(np.prod(sides))
    count = whole("hyperx.hosts", switches * whole("hyperx.hosts", hosts, 1), 1)
    place = np.stack(np.unravel_index(np.arange(switches), sides), axis=1)
    ends = [np.stack((np.arange(count), count + np.arange(count) // hosts), axis=1)]
    size = [np.full(count, positive("hyperx.host_capacity", host_capacity))]
    for axis, (copies, rate) in enumerate(zip(bundle, rates, strict=True)):
        pairs = _along(place, sides, axis) + count
        ends.append(np.repeat(pairs, whole("hyperx.widths", copies, 1, 1 << 12), axis=0))
        size.append(np.full(len(ends[-1]), rate))
    return cabled(
        [*numbered("node", count), *("s" + "-".join(map(str, point)) for point in place.tolist())],
        np.concatenate(ends),
        np.concatenate(size),
        slots=np.repeat((whole("hyperx.slots", slots, 1), 0), (count, switches)),
        level=np.repeat((0, 1), (count, switches)),
    )


def _along(place: Longs, sides: tuple[int, ...], axis: int) -> Longs:
    """Return pairs of switches that differ in this coordinate alone."""
    first = place[place[:, axis] == 0]
    found = []
    for low, high in combinations(range(sides[axis]), 2):
        near, far = first.copy(), first.copy()
        near[:, axis], far[:, axis] = low, high
        found.append(np.stack([np.ravel_multi_index(tuple(end.T), sides) for end in (near, far)], axis=1))
    return np.concatenate(found) if found else np.zeros((0, 2), np.int64)
