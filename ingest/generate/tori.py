"""Direct networks: tori, meshes and hypercubes, and chordal rings. Every node hosts ranks and forwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingest.generate.checks import cabled, each, numbered, pairs, whole, wholes
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

    Node ``(m_0, m_1, ...)`` is connected to those that differ by 1 modulo the side in one coordinate. Nodes
    are numbered in lexicographic order, the last coordinate fastest (Hoefler and Snir 2011, 5.3.1). A side of
    2 gives one link between its two nodes, a side of 1 none. The mean distance of two different nodes of a
    torus of one side k in n dimensions is ``n * (k // 2) * ((k + 1) // 2) / k`` times ``N / (N - 1)``, and
    its diameter ``n * (k // 2)``.

    Parameters
    ----------
    sides : sequence of int
        Number of nodes along each dimension.
    wraps : bool or sequence of bool
        Whether the last node of a dimension is connected to the first, for all dimensions or one for each.
    capacity : float or sequence of float
        Bytes/s in each direction of a link, for all dimensions or one for each.
    """
    sides = wholes("torus.sides", sides, 1)
    around = (wraps,) * len(sides) if isinstance(wraps, bool) else tuple(wraps)
    if len(around) != len(sides):
        raise InvalidValue("torus.wraps", f"has {len(around)} entries, not {len(sides)}")
    rates = each("torus.capacity", capacity, len(sides))
    place = np.stack(np.unravel_index(np.arange(np.prod(sides)), sides), axis=1)
    cables = [_along(place, sides, axis, around[axis] and side > 2) for axis, side in enumerate(sides)]
    return cabled(
        ("n" + "-".join(map(str, point)) for point in place.tolist()),
        cables,
        rates,
        slots=whole("torus.slots", slots, 1),
        direct=True,
        coordinates=place,
    )


def mesh(sides: Sequence[int], *, capacity: float | Sequence[float] = 1.0, slots: int = 1) -> Fabric:
    """Return a torus without the links from the last node of a dimension to the first."""
    return torus(sides, wraps=False, capacity=capacity, slots=slots)


def hypercube(dimensions: int, *, capacity: float = 1.0, slots: int = 1) -> Fabric:
    """Return a torus of side 2: nodes whose numbers differ in one bit are connected."""
    return torus((2,) * whole("hypercube.dimensions", dimensions, 1, 24), capacity=capacity, slots=slots)


def chordal_ring(
    nodes: int,
    chords: int | Sequence[int],
    *,
    capacity: float | Sequence[float] = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return the ring C(n; q_1, q_2, ...): node i is connected to i + 1 and to each i + q_j, modulo n.

    A node has two links and two for each chord, or one for a chord of half the ring. With one chord q the
    algebraic connectivity is ``a = min_k 4 - 2 cos(2 pi k / n) - 2 cos(2 pi k q / n)``, and at least ``ceil(n
    * a / 4)`` links connect any two halves (Ajwani et al. 2013, section 5).

    Parameters
    ----------
    nodes : int
        Number of nodes n, at least 3.
    chords : int or sequence of int
        Different lengths from 2 to n / 2; without any it is a ring.
    capacity : float or sequence of float
        Bytes/s in each direction of a link, for all links, or one for the ring and one for each chord.
    """
    whole("chordal_ring.nodes", nodes, 3)
    lengths = (chords,) if isinstance(chords, int) else tuple(chords)
    for length in lengths:
        whole("chordal_ring.chords", length, 2, max(2, nodes // 2))
    if len(set(lengths)) < len(lengths) or nodes < 2 * max(lengths, default=0):
        raise InvalidValue("chordal_ring.chords", f"{lengths} are not different lengths up to {nodes // 2}")
    rates = each("chordal_ring.capacity", capacity, 1 + len(lengths))
    node = np.arange(nodes)
    cables = []
    for length in (1, *lengths):
        start = node[: nodes // 2] if 2 * length == nodes else node
        cables.append(pairs(start, (start + length) % nodes))
    slots = whole("chordal_ring.slots", slots, 1)
    return cabled(numbered("n", nodes), cables, rates, slots=slots, direct=True)


def _along(place: Longs, sides: tuple[int, ...], axis: int, wrapped: bool) -> Longs:
    """Return the nodes of each cable along an axis, including the wrap-around if `wrapped`."""
    near = place if wrapped else place[place[:, axis] < sides[axis] - 1]
    far = near.copy()
    far[:, axis] = (far[:, axis] + 1) % sides[axis]
    return pairs(*(np.ravel_multi_index(tuple(end.T), sides) for end in (near, far)))
