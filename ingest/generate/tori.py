"""Tori, meshes and hypercubes: direct networks whose nodes are the points of a grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingest.generate.checks import cabled, each, whole, wholes
from registry.errors import InvalidValue
from registry.model import Fabric, Longs


def torus(
    sides: Sequence[int],
    *,
    wraps: bool | Sequence[bool] = True,
    capacity: float | Sequence[float] = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return a torus of ``sides[0] x sides[1] x ...`` nodes, which host ranks and forward traffic.

    Node ``(m_0, m_1, ...)`` is joined to those that differ by 1 modulo the side in one coordinate, and the
    nodes are numbered in lexicographic order, the last coordinate fastest (Hoefler and Snir 2011, 5.3.1).
    A side of 2 gives one link between its two nodes, not two; a side of 1 gives none. The mean distance
    of two different nodes of a torus of one side k in n dimensions is ``n * (k // 2) * ((k + 1) // 2) / k``
    times ``N / (N - 1)``, and its diameter ``n * (k // 2)``.

    Parameters
    ----------
    sides : sequence of int
        Nodes along each dimension; they may differ.
    wraps : bool or sequence of bool
        Whether the last node of a dimension is joined to the first; without, it is a mesh there.
    capacity : float or sequence of float
        Bytes/s of a link and direction, for all dimensions or one for each.
    slots : int
        Ranks a node takes.

    Raises
    ------
    InvalidValue
    """
    sides = wholes("torus.sides", sides, 1)
    around = (wraps,) * len(sides) if isinstance(wraps, bool) else tuple(wraps)
    if len(around) != len(sides):
        raise InvalidValue("torus.wraps", f"has {len(around)} entries, not {len(sides)}")
    rates = each("torus.capacity", capacity, len(sides))
    place = np.stack(np.unravel_index(np.arange(np.prod(sides)), sides), axis=1)
    ends, size = [], []
    for axis, (side, wrapped, rate) in enumerate(zip(sides, around, rates, strict=True)):
        ends.append(_along(place, sides, axis, wrapped and side > 2))
        size.append(np.full(len(ends[-1]), rate))
    return cabled(
        ("n" + "-".join(map(str, point)) for point in place.tolist()),
        np.concatenate(ends),
        np.concatenate(size),
        slots=whole("torus.slots", slots, 1),
        direct=True,
        coordinates=place,
    )


def mesh(sides: Sequence[int], *, capacity: float | Sequence[float] = 1.0, slots: int = 1) -> Fabric:
    """Return a torus without the links that go around."""
    return torus(sides, wraps=False, capacity=capacity, slots=slots)


def hypercube(dimensions: int, *, capacity: float = 1.0, slots: int = 1) -> Fabric:
    """Return a torus of side 2: nodes whose numbers differ in one bit are joined."""
    return torus((2,) * whole("hypercube.dimensions", dimensions, 1, 24), capacity=capacity, slots=slots)


def _along(place: Longs, sides: tuple[int, ...], axis: int, wrapped: bool) -> Longs:
    """Return the nodes of each cable along an axis, including the wrap-around if `wrapped`."""
    near = place if wrapped else place[place[:, axis] < sides[axis] - 1]
    far = near.copy()
    far[:, axis] = (far[:, axis] + 1) % sides[axis]
    return np.stack([np.ravel_multi_index(tuple(end.T), sides) for end in (near, far)], axis=1)
