"""Graphs with whole weights, their parts by METIS, bisections, and the repair of their balance.

Source of the repair: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel
architectures", 2011, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import pymetis
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from registry.model import Bools, Floats, Ints, Longs

MOST = 1 << 30
"""Sum of the weights of a graph's edges, both directions counted: METIS may count in 32 bits."""


def weighted_graph(source: ArrayLike, target: ArrayLike, weight: Floats, vertices: int) -> csr_matrix:
    """Return the undirected graph of directed edges for METIS: symmetric, without loops, weights int64 >= 1.

    Both directions of an edge are summed. Weights are unchanged if all are whole and sum to at most
    `MOST`; otherwise each is multiplied by `MOST` / sum, rounded, and at least 1.
    """
    one, other = np.asarray(source), np.asarray(target)
    apart = (one != other) & (weight > 0)
    one, other, size = one[apart], other[apart], weight[apart]
    ends = np.r_[one, other], np.r_[other, one]
    graph = csr_matrix((np.r_[size, size], ends), shape=(vertices, vertices))
    graph.sum_duplicates()
    graph.sort_indices()
    total, values = float(graph.data.sum()), graph.data
    if total > MOST or not np.array_equal(values, np.rint(values)):
        values = np.maximum(np.rint(values * (MOST / total)), 1.0)
    graph.data = values.astype(np.int64)
    return graph


SLACK = 50
"""How far METIS may let a part grow above its share before it is corrected, in thousandths."""
CUTS = 4
"""Number of bisections that METIS tries each time; its k-way method needs more correction and cuts more."""


class Adjacency(NamedTuple):
    """Rows of a graph: a scipy matrix without the cost of making one.

    Attributes
    ----------
    indptr : int64[n + 1]
    indices : int32 or int64[2e]
        Neighbours of each vertex.
    data : int64[2e]
        Weights.
    """

    indptr: Longs
    indices: Longs
    data: Longs

    @classmethod
    def of(cls, graph: csr_matrix) -> Self:
        """Return the rows of a graph."""
        return cls(graph.indptr.astype(np.int64), graph.indices, graph.data)

    @property
    def nnz(self) -> int:
        """Number of edges, both directions counted."""
        return len(self.data)

    def among(self, kept: Longs) -> Adjacency:
        """Return the subgraph of some vertices (int64[k]), numbered in their order."""
        first = self.indptr[kept]
        count = self.indptr[kept + 1] - first
        begin = np.concatenate(([0], np.cumsum(count)))
        entry = np.arange(begin[-1]) + np.repeat(first - begin[:-1], count)
        number = np.full(len(self.indptr) - 1, -1, np.int64)
        number[kept] = np.arange(len(kept))
        head = number[self.indices[entry]]
        inside = head >= 0
        before = np.concatenate(([0], np.cumsum(inside)))
        return Adjacency(before[begin], head[inside], self.data[entry[inside]])

    def dense(self) -> Longs:
        """Return int64[n, n]: the adjacency matrix."""
        count = len(self.indptr) - 1
        found = np.zeros((count, count), np.int64)
        found[np.repeat(np.arange(count), np.diff(self.indptr)), self.indices] = self.data
        return found


def subgraph(graph: csr_matrix, kept: Longs) -> csr_matrix:
    """Return the subgraph of some vertices (int64[k]), numbered in their order."""
    found: Any = csr_matrix((len(kept), len(kept)), dtype=np.int64)
    found.indptr, found.indices, found.data = Adjacency.of(graph).among(kept)
    return found


def options_of(generator: np.random.Generator, *, slack: int = SLACK, cuts: int = CUTS) -> pymetis.Options:
    """Return METIS options with a seed drawn from a generator."""
    return pymetis.Options(seed=int(generator.integers(1 << 31)), ncuts=cuts, ufactor=slack)


def metis_parts(
    graph: csr_matrix | Adjacency,
    shares: Sequence[float],
    options: pymetis.Options,
    weight: Longs | None = None,
    *,
    recursive: bool = True,
) -> Ints:
    """Return int32[n]: the part of each vertex, by METIS's recursive bisection.

    Parameters
    ----------
    graph : csr_matrix or Adjacency
        From `weighted_graph`.
    shares : sequence of float
        Share of the weight for each part.
    weight : int64[n], optional
        Weight of each vertex; default: 1.
    recursive : bool
        False for METIS's multilevel k-way method instead.
    """
    found = pymetis.part_graph(
        len(shares),
        pymetis.CSRAdjacency(
            adj_starts=graph.indptr.astype(np.int64), adjacent=graph.indices.astype(np.int64)
        ),
        vweights=weight,
        eweights=graph.data,
        tpwgts=list(shares),
        recursive=recursive,
        options=options,
    )
    return np.asarray(found.vertex_part, np.int32)


def bisect(
    graph: csr_matrix | Adjacency,
    weight: Longs,
    share: float,
    *,
    seed: int,
    cuts: int = 1,
    slack: float = 0.001,
) -> Bools:
    """Return bool[n]: the vertices of the first of two parts, by METIS.

    Parameters
    ----------
    graph
        As in `metis_parts`.
    weight : int64[n]
        Weight of each vertex, >= 0.
    share : float
        Share of the weight for the first part.
    seed : int
        Seed of METIS; the same seed gives the same parts.
    cuts : int
        Number of bisections that METIS tries; the lightest cut wins.
    slack : float
        How far a part may be above its share, relatively, in METIS's own count.
    """
    if graph.nnz == 0:  # nothing is cut: the first vertices, up to the share
        first: Bools = np.cumsum(weight) <= share * float(weight.sum())
        return first
    inside: Bools = metis_parts(graph, (share, 1.0 - share), _options(seed, cuts, slack), weight) == 0
    return inside


@lru_cache(maxsize=16)
def _options(seed: int, cuts: int, slack: float) -> pymetis.Options:
    """Return METIS options, cached, since a recursive bisection uses the same ones many times."""
    return pymetis.Options(seed=seed, ncuts=cuts, ufactor=max(round(1000 * slack), 1))


def repaired(graph: csr_matrix | Adjacency, first: Bools, size: int) -> Bools:
    """Return bool[n]: the first part, corrected to have `size` vertices.

    As often as needed, the vertex with the lowest cumulative edge weight goes from the part that is too
    large to the other; ties by index. The weight is that of all the vertex's edges in the graph.
    """
    extra = int(np.count_nonzero(first)) - size
    if extra == 0:
        return first
    candidates = np.flatnonzero(first == (extra > 0))
    before = np.concatenate(([0], np.cumsum(graph.data)))
    total = (before[graph.indptr[1:]] - before[graph.indptr[:-1]])[candidates]
    mended = first.copy()
    mended[candidates[np.argsort(total, kind="stable")[: abs(extra)]]] = extra < 0
    return mended
