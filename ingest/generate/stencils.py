"""Stencils: ranks on a grid that exchange their borders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from ingest.generate.checks import each, wholes
from registry.errors import InvalidValue
from registry.model import Longs, Profile

REACH = {(2, 5): 1, (2, 9): 2, (3, 7): 1, (3, 27): 3, (3, 19): 2}
"""Dimensions and points of a stencil: in how many coordinates neighbours may differ."""


def stencil(
    sides: Sequence[int],
    points: int,
    *,
    periodic: bool = False,
    bytes: float | Sequence[float] = 1.0,
    seed: int | None = None,
) -> Profile:
    """Return ranks on a grid, each of which sends to its neighbours.

    Ranks are numbered in lexicographic order, the last coordinate fastest. Of ``n_i`` ranks along dimension i
    a stencil of ``2 d + 1`` points that is not periodic has ``2 * sum_i (n_i - 1) * prod_{j != i} n_j``
    pairs, one of ``3 ** d`` points ``prod_i (3 n_i - 2) - prod_i n_i``.

    Parameters
    ----------
    sides : sequence of int
        Ranks along each of two or three dimensions.
    points : int
        5 or 9 in two dimensions; 7, 19 or 27 in three.
    periodic : bool
        Whether the last rank of a dimension is next to the first. Where a side is 2, both its neighbours are
        one rank, which gets both their bytes.
    bytes : float or sequence of float
        Sent to a neighbour, by the number of coordinates in which it differs: first those across a face, then
        an edge, then a corner.
    seed : int, optional
        Number the ranks at random instead.

    Raises
    ------
    InvalidValue
    """
    sides = wholes("stencil.sides", sides, 1)
    known = [count for dimensions, count in sorted(REACH) if dimensions == len(sides)]
    if points not in known:
        raise InvalidValue("stencil.points", f"is {points}, must be one of {known} for {len(sides)} sides")
    reach = REACH[len(sides), points]
    size = each("stencil.bytes", bytes, reach)
    place = np.stack(np.unravel_index(np.arange(np.prod(sides)), sides))
    source, target, sent = [], [], []
    for step in product((-1, 0, 1), repeat=len(sides)):
        differs = np.count_nonzero(step)
        if not 0 < differs <= reach:
            continue
        moved = place + np.array(step)[:, None]
        inside = (moved >= 0) & (moved < np.array(sides)[:, None])
        rank = np.flatnonzero(inside.all(axis=0) | periodic)
        source.append(rank)
        target.append(np.ravel_multi_index(tuple(moved[:, rank]), sides, mode="wrap"))
        sent.append(np.full(len(rank), size[differs - 1]))
    profile = Profile.from_edges(
        np.concatenate(source),
        np.concatenate(target),
        np.concatenate(sent),
        ranks=place.shape[1],
        name=f"stencil{points}-{'x'.join(map(str, sides))}",
        application=f"{points}-point stencil",
    )
    return profile if seed is None else shuffled(profile, seed)


def shuffled(profile: Profile, seed: int) -> Profile:
    """Return the same traffic between ranks that are numbered at random."""
    return renumbered(profile, np.random.default_rng(seed).permutation(profile.ranks))


def renumbered(profile: Profile, order: Longs) -> Profile:
    """Return the same traffic with rank r called ``order[r]``.

    Raises
    ------
    InvalidValue
        Not a permutation of all ranks.
    """
    order = np.asarray(order)
    if not np.array_equal(np.sort(order), np.arange(profile.ranks)):
        raise InvalidValue("renumbered.order", f"must be a permutation of 0 .. {profile.ranks - 1}")
    return Profile.from_edges(
        order[profile.sender],
        order[profile.partner],
        profile.bytes,
        ranks=profile.ranks,
        messages=profile.messages,
        name=profile.name,
        application=profile.application,
    )
