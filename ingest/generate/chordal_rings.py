"""Chordal rings: circulant graphs, nodes on a ring with chords (Ajwani et al. 2013, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingest.generate.checks import cabled, each, numbered, whole
from registry.errors import InvalidValue
from registry.model import Fabric


def chordal_ring(
    nodes: int,
    chords: int | Sequence[int],
    *,
    capacity: float | Sequence[float] = 1.0,
    slots: int = 1,
) -> Fabric:
    """Return the ring C(n; q_1, q_2, ...): node i is joined to i + 1 and to each i + q_j, modulo n.

    A node has two links and two for each chord, one for a chord of half the ring. With one chord q the
    algebraic connectivity is ``a = min_k 4 - 2 cos(2 pi k / n) - 2 cos(2 pi k q / n)``, and at least ``ceil(n
    * a / 4)`` links join any two halves (section 5). Every node hosts ranks and carries others' traffic.

    Parameters
    ----------
    nodes : int
        n, at least 3.
    chords : int or sequence of int
        Lengths from 2 to n / 2, each once; none makes it a ring.
    capacity : float or sequence of float
        Bytes/s of a link and direction, for all links, or one for the ring and one for each chord.
    slots : int
        Ranks a node takes.

    Raises
    ------
    InvalidValue
    """
    whole("chordal_ring.nodes", nodes, 3)
    lengths = (chords,) if isinstance(chords, int) else tuple(chords)
    for length in lengths:
        whole("chordal_ring.chords", length, 2, max(2, nodes // 2))
    if len(set(lengths)) < len(lengths) or nodes < 2 * max(lengths, default=0):
        raise InvalidValue("chordal_ring.chords", f"{lengths} are not different lengths up to {nodes // 2}")
    rates = each("chordal_ring.capacity", capacity, 1 + len(lengths))
    node = np.arange(nodes)
    ends, size = [], []
    for length, rate in zip((1, *lengths), rates, strict=True):
        start = node[: nodes // 2] if 2 * length == nodes else node
        ends.append(np.stack((start, (start + length) % nodes), axis=1))
        size.append(np.full(len(start), rate))
    return cabled(
        numbered("n", nodes),
        np.concatenate(ends),
        np.concatenate(size),
        slots=whole("chordal_ring.slots", slots, 1),
        direct=True,
    )
