"""Bounds from all connected groups of a few ranks: the bytes that they can keep, and that they must send.

The bytes within a group are those within its connected parts, so that connected groups are enough. If every
rank has a price, and no group of at most `m` ranks keeps more bytes than the prices of its ranks, then groups
of at most `m` keep no more than all prices together. This is the dual of the linear programme that packs
ranks into groups (set packing); any such prices prove their bound, and prices are lowered one by one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mapping.evaluation.kernels.nearest_flows import GuestArrays
from mapping.evaluation.kernels.small_groups import best_groups
from registry.model import Floats, Longs

MAX_SIZE = 8
"""Largest size of groups that are enumerated."""
MAX_ENUMERATED = 20_000_000
"""Largest number of groups of one enumeration; ten million take 0.3 s."""
PASSES = 2
"""Number of times that the price of each rank is lowered."""


class SmallGroups:
    """Bytes that groups of few ranks keep and send.

    Parameters
    ----------
    guest : GuestArrays
    """

    def __init__(self, guest: GuestArrays) -> None:
        self.guest = guest
        self._too_many = MAX_SIZE + 1

    @cached_property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.guest.ptr) - 1

    def crossing(self, slots: Longs) -> float:
        """Return the least bytes between groups with these numbers of slots; 0 if not enumerated.

        Notes
        -----
        If at most `N_s` ranks are in groups with `s` slots or more, the bytes that are kept are at most the
        sum over `s` of the `N_s` largest increases of a rank's part of the best group, from ``s - 1`` to `s`
        slots.
        """
        size = int(min(slots.max(), self.ranks))
        best = self._best(size, np.zeros(self.ranks))
        if best is None:
            return 0.0
        parts = np.maximum.accumulate(best[:, 1:] / np.arange(1, size + 1), axis=1)
        rises, kept = -np.sort(-np.diff(parts, axis=1), axis=0), 0.0
        for s in range(2, size + 1):
            kept += float(rises[: int(slots[slots >= s].sum()), s - 2].sum())
        price = parts[:, -1].copy()
        for _ in range(PASSES):
            best_groups(self.guest, size, price, True, MAX_ENUMERATED, _nothing(self.ranks, size))
        return float(self.guest.weight.sum()) - min(kept, float(price.sum()))

    def leaving(self, slots: Longs, bytes: Floats) -> Floats | None:
        """Return the least bytes (float64[ranks]) out of the group of each rank; None if not enumerated.

        Parameters
        ----------
        slots : int64[g]
            Slots of each group.
        bytes : float64[ranks]
            Bytes that each rank sends (or receives).

        Notes
        -----
        If other groups have too few slots for all other ranks, a group has further ranks: the bytes of its
        connected parts add up.
        """
        best = self._best(int(slots.max()), bytes)
        if best is None:
            return None
        out = np.maximum(-best, 0.0)[:, 1:]
        sizes, others = np.arange(1, out.shape[1] + 1), self.ranks - int(slots.sum()) + int(slots.min())
        return np.asarray((out + _of_all_parts(out)[np.maximum(others - sizes, 0)]).min(axis=1))

    def least_leaving(self, fewest: int, size: int, bytes: Floats) -> float:
        """Return the least bytes out of any group of `fewest` to `size` ranks; 0 if not enumerated."""
        best = self._best(size, bytes) if fewest > 0 else None
        return 0.0 if best is None else float(_of_all_parts(np.maximum(-best, 0.0)[:, 1:])[fewest])

    def _best(self, size: int, price: Floats) -> Floats | None:
        """Return the result of `best_groups`, or None if the groups are too large or too many."""
        size = min(size, self.ranks)
        if not 2 <= size < self._too_many or not len(self.guest.weight):
            return None
        best = _nothing(self.ranks, size)
        if best_groups(self.guest, size, price, False, MAX_ENUMERATED, best) > MAX_ENUMERATED:
            self._too_many = size
            return None
        return best


def _of_all_parts(out: Floats) -> Floats:
    """Return the least bytes (float64[size + 1]) out of a group of `i` to `size` ranks.

    Parameters
    ----------
    out : float64[ranks, size]
        Least bytes out of connected groups of 1, 2, ... ranks with each rank.
    """
    least, found = np.r_[0.0, out.min(axis=0)], np.zeros(out.shape[1] + 1)
    for count in range(1, len(found)):
        found[count] = min(least[s] + found[count - s] for s in range(1, count + 1))
    return np.asarray(np.minimum.accumulate(found[::-1])[::-1])


def _nothing(ranks: int, size: int) -> Floats:
    """Return a table that `best_groups` fills."""
    return np.full((ranks, size + 1), -np.inf)
