"""Arrays for searches, computed once per problem: compact distances, near slots, unit of temperature."""

from __future__ import annotations

import numpy as np

from mapping.distances.distances import Distances
from mapping.placement.kernels.hop_bytes_search import DICE, Hops, Near, count_pairs, near_groups
from registry.model import Floats, Int8s, Ints, Longs

CODES = 256
"""Number of distances that searches distinguish, including that of a host from itself."""
NEAR = 256
"""Most groups at one distance that are proposed near a host."""
SHARES = (0.0, 0.67, 0.87)
"""Cumulative parts of the proposals to the partner's host, its nearest groups, and its second nearest."""
SHARES_SEVERAL = (0.31, 0.77, 0.91)
"""The same if hosts take several ranks."""


def compact_hops(distances: Distances) -> Hops:
    """Return distances in one byte each; rounded if there are more than 255 values."""
    if distances.codes is not None and len(distances.codes[1]) < CODES:
        one_way, value = distances.codes[0] + np.uint8(1), distances.codes[1]
        return _hops(distances, one_way, value)
    between = distances.between
    value = np.unique(between)
    if len(value) > CODES - 1:
        value = np.linspace(value[0], value[-1], CODES - 1)
    middle = (value[1:] + value[:-1]) / 2
    return _hops(distances, (1 + np.searchsorted(middle, between)).astype(np.uint8), value)


def _hops(distances: Distances, one_way: Int8s, value: Floats) -> Hops:
    both = [one_way] if distances.symmetric else [one_way, one_way.T]
    padded = np.zeros(CODES)
    padded[1 : 1 + len(value)] = value
    return Hops(distances.group.astype(np.int32), np.ascontiguousarray(np.stack(both)), padded)


def near_slots(hops: Hops, slot_host: Ints, first_slot: Longs) -> Near:
    """Return the slots at the two nearest distances of each group of hosts, and of each host."""
    groups = hops.code.shape[1]
    of_slot = hops.group[slot_host]
    size = np.bincount(hops.group, minlength=groups).astype(np.int64)
    start, middle, end, group = near_groups(hops.code[0], hops.value, size, NEAR)
    slot = np.argsort(of_slot, kind="stable").astype(np.int32)
    several = len(slot_host) > len(hops.group)
    return Near(
        host_group=hops.group,
        slot_host=slot_host,
        first_slot=first_slot,
        start=start,
        middle=middle,
        end=end,
        group=group,
        first=np.searchsorted(of_slot[slot], np.arange(groups + 1)).astype(np.int64),
        slot=slot,
        shares=np.rint(DICE * np.array(SHARES_SEVERAL if several else SHARES)).astype(np.int64),
    )


def hop_unit(hops: Hops) -> float:
    """Return the unit of temperatures: the distance of the mean host beyond the nearest.

    It grows with the scale of the distances and does not change if all of them change by the same amount, as
    from links to switches. 0 if all hosts are equally far.
    """
    size = np.bincount(hops.group, minlength=hops.code.shape[1]).astype(np.int64)
    pairs = count_pairs(hops.code[0], size)
    if not pairs.any():
        return 0.0
    return float((pairs * hops.value).sum() / pairs.sum() - hops.value[pairs > 0].min())
