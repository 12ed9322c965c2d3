"""HyperX: switches on a grid, all switches of a line connected to each other (Ahn et al., SC 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ingest.generate.checks import each, pairs, positive, switched, whole, wholes
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

    There are ``P = S_1 * S_2 * ...`` switches of `hosts` hosts each; switches whose coordinates differ in
    only one dimension are connected by K_i cables. A HyperX of one dimension is a complete graph, one whose
    sides are all 2 a hypercube, one of equal sides and widths 1 a Hamming graph (the flattened butterfly).
    There are ``P * sum_i K_i * (S_i - 1) / 2`` cables between switches. The distance of two switches is the
    number of coordinates in which they differ: at most the number of sides above 1, and ``P / (P - 1) * sum_i
    (1 - 1 / S_i)`` in the mean of two different ones. Two halves across an even side i are connected by ``P *
    K_i * S_i / 4`` cables; the least of these is the bisection (section 3.2).

    Parameters
    ----------
    sides : sequence of int
        S_1, S_2, ...: number of switches along each dimension.
    hosts : int
        T: number of hosts per switch.
    widths : int or sequence of int
        K_i: number of parallel cables between two switches of a line, for all dimensions or one for each.
    capacity : float or sequence of float
        Bytes/s in each direction of a cable between switches, for all dimensions or one for each.
    host_capacity : float
        Bytes/s in each direction of a host's cable.
    """
    sides = wholes("hyperx.sides", sides, 1)
    dimensions = len(sides)
    bundle = (widths,) * dimensions if isinstance(widths, int) else tuple(widths)
    if len(bundle) != dimensions:
        raise InvalidValue("hyperx.widths", f"has {len(bundle)} numbers, not {dimensions}")
    rates = each("hyperx.capacity", capacity, dimensions)
    switches = int(np.prod(sides))
    whole("hyperx.hosts", switches * whole("hyperx.hosts", hosts, 1), 1)
    rates = positive("hyperx.host_capacity", host_capacity), *rates
    place = np.stack(np.unravel_index(np.arange(switches), sides), axis=1)
    cables = [
        np.repeat(_along(place, sides, axis), whole("hyperx.widths", copies, 1, 1 << 12), axis=0)
        for axis, copies in enumerate(bundle)
    ]
    names = ["s" + "-".join(map(str, point)) for point in place.tolist()]
    return switched(names, hosts, cables, rates, whole("hyperx.slots", slots, 1))


def _along(place: Longs, sides: tuple[int, ...], axis: int) -> Longs:
    """Return the pairs of switches that differ only in this coordinate."""
    first = place[place[:, axis] == 0]
    found = [np.zeros((0, 2), np.int64)]
    for low, high in combinations(range(sides[axis]), 2):
        near, far = first.copy(), first.copy()
        near[:, axis], far[:, axis] = low, high
        found.append(pairs(*(np.ravel_multi_index(tuple(end.T), sides) for end in (near, far))))
    return np.concatenate(found)
