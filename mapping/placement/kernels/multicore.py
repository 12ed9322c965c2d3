"""Correct groups of ranks to exact sizes and improve them by swaps, on plain arrays.

An edge weighs the bytes of both directions. The swaps reduce the cut: the weight between groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, kernel
from registry.model import Floats, Ints, Longs

NOBODY = -1


class Groups(NamedTuple):
    """Group of each rank; changed in place."""

    group: Ints
    """int32[ranks]."""
    first: Longs
    """int64[groups + 1]: Ranks of group ``g`` are ``member[first[g]:first[g + 1]]``."""
    member: Ints
    """int32[ranks]."""
    place: Ints
    """int32[ranks]: Position of each rank in `member`."""


@allocating
def repair(indptr: Longs, partner: Ints, weight: Floats, groups: Groups, sizes: Longs) -> None:
    """Move ranks from groups above their size to groups below, each time the one that adds least to the cut.

    Groups are handled in order; ties go to the lower place in a group and the first partner. A rank without
    partners in a group that has room goes to the lowest such group. Of `groups`, only `group` is updated.
    """
    group, first, member = groups.group, groups.first, groups.member
    room = sizes - np.diff(first)
    towards, lowest = np.zeros(len(sizes)), 0
    for g in range(len(sizes)):
        while room[g] < 0:
            while room[lowest] <= 0:
                lowest += 1
            best, rank, target = np.inf, NOBODY, NOBODY
            for at in range(first[g], first[g + 1]):
                r = member[at]
                if group[r] != g:
                    continue
                for e in range(indptr[r], indptr[r + 1]):
                    towards[group[partner[e]]] += weight[e]
                loss, to = towards[g] - towards[lowest], lowest
                for e in range(indptr[r], indptr[r + 1]):
                    k = group[partner[e]]
                    if room[k] > 0 and towards[g] - towards[k] < loss:
                        loss, to = towards[g] - towards[k], k
                for e in range(indptr[r], indptr[r + 1]):
                    towards[group[partner[e]]] = 0.0
                if loss < best:
                    best, rank, target = loss, r, to
            group[rank] = target
            room[g] += 1
            room[target] -= 1


@allocating
def swap_pass(indptr: Longs, partner: Ints, weight: Floats, groups: Groups, least: float) -> int:
    """Make for each rank the best swap into a group with which it exchanges more than with its own.

    Of two ranks whose swap lowers the cut, at least one is such a rank, so none is missed.

    Args:
        least: A swap that saves no more is ignored, because of rounding.

    Returns:
        Number of swaps.
    """
    group, first, member = groups.group, groups.first, groups.member
    towards, made = np.zeros(len(first) - 1), 0
    for rank in range(len(group)):
        own = group[rank]
        for e in range(indptr[rank], indptr[rank + 1]):
            towards[group[partner[e]]] += weight[e]
        best, other, staying = least, NOBODY, towards[own]
        for e in range(indptr[rank], indptr[rank + 1]):
            g = group[partner[e]]
            gain = towards[g] - staying
            towards[g] = -np.inf if g != own else towards[g]  # each group is looked at once
            if g == own or gain <= 0.0:
                continue
            for at in range(first[g], first[g + 1]):
                both = gain + _swap_back(indptr, partner, weight, group, member[at], rank)
                if both > best:
                    best, other = both, member[at]
        for e in range(indptr[rank], indptr[rank + 1]):
            towards[group[partner[e]]] = 0.0
        if other != NOBODY:
            _swap(groups, rank, other)
            made += 1
    return made


@kernel
def _swap_back(indptr: Longs, partner: Ints, weight: Floats, group: Ints, rank: int, incomer: int) -> float:
    """Return the gain of a rank that goes to the group of `incomer`, with their own edge deducted."""
    gain, here, there = 0.0, group[rank], group[incomer]
    for e in range(indptr[rank], indptr[rank + 1]):
        if partner[e] == incomer:
            gain -= weight[e]
        elif group[partner[e]] == there:
            gain += weight[e]
        elif group[partner[e]] == here:
            gain -= weight[e]
    return gain


@kernel
def _swap(groups: Groups, rank: int, other: int) -> None:
    group, member, place = groups.group, groups.member, groups.place
    group[rank], group[other] = group[other], group[rank]
    place[rank], place[other] = place[other], place[rank]
    member[place[rank]], member[place[other]] = rank, other
