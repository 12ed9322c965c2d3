"""The guest as the bounds see it: who talks to whom, heaviest first."""

from __future__ import annotations

import numpy as np

from mapping.kernels.nearest_flows import GuestArrays
from registry.model import Floats, Ints, Longs, Profile


def guest_arrays(profile: Profile) -> GuestArrays:
    """The undirected graph of the ranks that send bytes."""
    low = np.minimum(profile.sender, profile.partner).astype(np.int64)
    high = np.maximum(profile.sender, profile.partner).astype(np.int64)
    sends = profile.bytes > 0
    key, edge = np.unique(low[sends] * profile.ranks + high[sends], return_inverse=True)
    weight = np.bincount(edge, profile.bytes[sends], len(key)).astype(np.float64)
    ends = np.r_[key // profile.ranks, key % profile.ranks]
    order = np.argsort(ends, kind="stable")
    return GuestArrays(
        ptr=np.searchsorted(ends[order], np.arange(profile.ranks + 1)).astype(np.int64),
        head=np.r_[key % profile.ranks, key // profile.ranks][order].astype(np.int32),
        edge=np.r_[np.arange(len(key)), np.arange(len(key))][order].astype(np.int32),
        weight=weight,
    )


def beyond(ranks: int, at: Ints | Longs, other: Ints | Longs, weight: Floats, kept: int) -> Floats:
    """float64[ranks]: what each rank exchanges with all but the `kept` partners that are heaviest for it."""
    left = place_by_weight(ranks, at, other, weight) >= kept
    return np.bincount(at[left], weight[left], ranks).astype(np.float64)


def place_by_weight(ranks: int, rank: Ints | Longs, partner: Ints | Longs, weight: Floats) -> Longs:
    """int64[e]: how many heavier partners a rank has than each of its own; ties by partner."""
    order = np.lexsort((partner, -weight, rank))
    count = np.bincount(rank, minlength=ranks)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    return place
