"""Partners by weight and slots by distance, in order, as needed by bounds over many ranks and hosts."""

from __future__ import annotations

import numpy as np

from mapping.kernels.decorators import allocating
from registry.model import Floats, Int8s, Longs


@allocating
def sort_descending(ptr: Longs, weight: Floats) -> None:
    """Sort the weights of each row, heaviest first, in place.

    Args:
        ptr (int64[n + 1]):
        weight (float64[e]):
    """
    for row in range(len(ptr) - 1):
        part = weight[ptr[row] : ptr[row + 1]]
        part[:] = np.sort(part)[::-1]


@allocating
def nearest_slots(
    code: Int8s, value: Floats, both: bool, slots: Longs, group: Longs, own: Longs, found: Floats
) -> None:
    """Fill distances from a slot to the nearest others, rising; distances are indices into a list.

    Args:
        code (uint8[g, g]): Index of the distance from group to group.
        value (float64[n]): Distances, rising.
        both: Use the nearer of both directions; False if they are equal.
        slots (int64[g]): Slots of each group.
        group (int64[k]), own (int64[k]): Group of the host that each row starts from, and its slots.
        found (float64[k, count]): Filled; the first ``own - 1`` entries are 0. With fewer other slots the
            rest is unchanged.
    """
    count = np.empty(len(value), np.int64)
    for row in range(len(group)):
        start = group[row]
        count[:] = 0
        for other in range(len(slots)):
            index = code[start, other]
            if both:
                index = min(index, code[other, start])
            count[index] += slots[other]
        index = code[start, start]
        count[index] -= own[row]
        filled = min(own[row] - 1, found.shape[1])
        found[row, :filled] = 0.0
        for index in range(len(value)):
            end = min(filled + count[index], found.shape[1])
            found[row, filled:end] = value[index]
            filled = end
