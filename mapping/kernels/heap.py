"""A binary heap in two arrays, least key first, with one number per key."""

from __future__ import annotations

from mapping.kernels.decorators import kernel
from registry.model import Floats, Ints


@kernel
def put_in(key: Floats, value: Ints, size: int, new_key: float, new: int) -> None:
    """Add an entry to a heap of `size` entries."""
    at = size
    while at > 0:
        parent = (at - 1) // 2
        if key[parent] <= new_key:
            break
        key[at], value[at] = key[parent], value[parent]
        at = parent
    key[at], value[at] = new_key, new


@kernel
def drop_first(key: Floats, value: Ints, size: int) -> None:
    """Remove the first entry of a heap; `size` is the number of entries that remain."""
    last_key, last, at = key[size], value[size], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and key[child + 1] < key[child]:
            child += 1
        if key[child] >= last_key:
            break
        key[at], value[at] = key[child], value[child]
        at = child
    key[at], value[at] = last_key, last
