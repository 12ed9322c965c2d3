"""Partners by weight and seats by distance, in order: what bounds sum up over many ranks and hosts."""

from __future__ import annotations

import numpy as np
from numba import njit

from registry.model import Floats, Int8s, Longs


@njit(cache=True, nogil=True)
def sort_falling(ptr: Longs, weight: Floats) -> None:
    """Sort the weights of each row, heaviest first, in place.

    Parameters
    ----------
    ptr : int64[n + 1]
    weight : float64[e]
    """
    for row in range(len(ptr) - 1):
        part = weight[ptr[row] : ptr[row + 1]]
        part[:] = np.sort(part)[::-1]


@njit(cache=True, nogil=True)
def nearest_seats(
    code: Int8s, value: Floats, both: bool, seats: Longs, group: Longs, own: Longs, found: Floats
) -> None:
    """Distances from a seat to the nearest others, rising, where distances are places in a list.

    Parameters
    ----------
    code : uint8[g, g]
        From group to group.
    value : float64[n]
        Rising.
    both : bool
        The nearer of both directions counts; otherwise they are the same.
    seats : int64[g]
        Of each group.
    group : int64[k], own : int64[k]
        Group of the host that each row starts from, and its seats.
    found : float64[k, count]
        Filled; the ``own - 1`` first are 0. Where there are fewer others, the rest stays as it is.
    """
    there = np.empty(len(value), np.int64)
    for row in range(len(group)):
        start = group[row]
        there[:] = 0
        for other in range(len(seats)):
            place = code[start, other]
            if both:
                place = min(place, code[other, start])
            there[place] += seats[other]
        place = code[start, start]
        there[place] -= own[row]
        at = min(own[row] - 1, found.shape[1])
        found[row, :at] = 0.0
        for place in range(len(value)):
            end = min(at + there[place], found.shape[1])
            found[row, at:end] = value[place]
            at = end
