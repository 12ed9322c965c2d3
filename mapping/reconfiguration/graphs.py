"""What applications and topologies share: undirected graphs as ascending rows ``source < target``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from registry.errors import InvalidValue
from registry.model import Floats, Ints, Longs
from registry.model.arrays import whole_numbers


class Rows(NamedTuple):
    """Rows of a graph's edges, each once.

    Attributes
    ----------
    source, target : int32[e]
        ``source < target``, ascending by source, then by target.
    first : int64[given]
        Which of these rows each given edge became; -1 for an edge from a vertex to itself.
    """

    source: Ints
    target: Ints
    first: Longs

    def sums(self, weight: Floats) -> Floats:
        """float64[e]: what the given edges (float64[given]) of each row weigh together."""
        kept = self.first >= 0
        found = np.bincount(self.first[kept], weight[kept], len(self.source))
        return found.astype(np.float64)


class Incidence(NamedTuple):
    """Edges by vertex: entries ``indptr[v] .. indptr[v + 1]`` are those of vertex v, rows ascending.

    Attributes
    ----------
    indptr : int64[n + 1]
    other : int32[2 e]
        The vertex at the other end.
    row : int32[2 e]
        The edge.
    """

    indptr: Longs
    other: Ints
    row: Ints


def rows_of(field: str, count: int, source: ArrayLike, target: ArrayLike) -> Rows:
    """The rows of any list of edges: each way round, repeated, or from a vertex to itself (left out).

    Raises
    ------
    InvalidValue
        No whole numbers, columns that differ in length, a vertex outside ``0 .. count - 1``.
    """
    one, other = whole_numbers(source, f"{field}.source"), whole_numbers(target, f"{field}.target")
    if len(one) != len(other):
        raise InvalidValue(field, f"columns differ in length: {len(one)} and {len(other)}")
    for name, ends in (("source", one), ("target", other)):
        wrong = (ends < 0) | (ends >= count)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidValue(f"{field}.{name}", f"is {ends[row]} in row {row}, not within 0 .. {count - 1}")
    apart = one != other
    low, high = np.minimum(one, other)[apart], np.maximum(one, other)[apart]
    key, place = np.unique(low * count + high, return_inverse=True)
    first = np.full(len(one), -1, np.int64)
    first[apart] = place.reshape(-1)
    size = max(count, 1)
    return Rows((key // size).astype(np.int32), (key % size).astype(np.int32), first)


def check_rows(field: str, count: int, source: Ints, target: Ints) -> None:
    """Raise `InvalidValue`, naming the row, unless ``0 <= source < target < count`` and rows ascend."""
    wrong = (source < 0) | (target >= count) | (source >= target)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidValue(
            f"{field}.source",
            f"row {row} joins {source[row]} and {target[row]}, not 0 <= source < target < {count}",
        )
    key = source.astype(np.int64) * count + target
    falls = np.diff(key) <= 0
    if falls.any():
        row = int(np.argmax(falls)) + 1
        raise InvalidValue(
            f"{field}.source",
            f"row {row}, {source[row]} and {target[row]}, repeats or goes back: rows must ascend",
        )


def check_weights(field: str, values: Floats) -> None:
    """Raise `InvalidValue`, naming the entry, unless all are finite and not negative."""
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InvalidValue(field, f"is {values[place]} at {place}, must be finite and not negative")


def incidence(count: int, source: Ints, target: Ints) -> Incidence:
    """Edges by vertex; arrays are read-only."""
    ends = np.r_[source, target]
    row = np.tile(np.arange(len(source), dtype=np.int32), 2)
    order = np.lexsort((row, ends))
    others = np.r_[target, source].astype(np.int32)[order]
    indptr = np.r_[0, np.cumsum(np.bincount(ends, minlength=count))].astype(np.int64)
    found = Incidence(indptr, others, row[order])
    for array in found:
        array.flags.writeable = False
    return found


def components(count: int, source: Ints, target: Ints) -> Ints:
    """int32[count]: number of the connected component of each vertex."""
    graph = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(count, count))
    label = connected_components(graph, directed=False)[1]
    return np.asarray(label, np.int32)
