"""Graphs of stream computing applications, as in Ajwani et al. 2013, section 4.2.

The paper's generator is in a report that was not available (RC25181); this one has the four properties stated
in the paper. Weights of vertices and edges are not published; here they are log-normal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ingest.generate.checks import positive, whole
from ingest.generate.collectives import edges
from registry.errors import InvalidValue
from registry.model import Floats, Ints, Profile

VERTEX_SPREAD = 2.2
"""Standard deviation of the logarithm of a vertex's weight: the heaviest of 100, 200 and 300 vertices weighs
about 22, 37 and 50 times the mean, as in the paper's Table 1."""
EDGE_SPREAD = 1.0
"""Standard deviation of the logarithm of an edge's weight, which Table 1 does not determine."""


class StreamGraph(NamedTuple):
    """A task graph of v kernels and e streams, directed from the sources of data to its sinks."""

    source: Ints
    target: Ints
    """int32[e]: Kernels at the ends of each stream; ``source < target``, no pair repeated."""
    edge_weight: Floats
    """float64[e]: Bytes of each stream for one element of output, > 0."""
    vertex_weight: Floats
    """float64[v]: Computation of each kernel for one element of output, > 0."""
    level: Ints
    """int32[v]: Number of streams on the longest path from a source."""


class LogNormal(NamedTuple):
    """A log-normal distribution: its mean, and the standard deviation of its logarithm."""

    mean: float
    spread: float


VERTEX_WEIGHT, EDGE_WEIGHT = LogNormal(1.0, VERTEX_SPREAD), LogNormal(1.0, EDGE_SPREAD)
"""Default weights of kernels and streams."""


def stream(
    vertices: int,
    *,
    sources: int | None = None,
    branching: float = 0.12,
    fan: int = 3,
    edge_weight: float = 1.0,
    edge_spread: float = EDGE_SPREAD,
    seed: int = 0,
) -> Profile:
    """Return the profile of a stream computing application: kernels are ranks, streams are their traffic.

    `stream_weights` with the same seed gives the computation of the kernels, which a profile does not
    contain.

    Args:
        vertices: Number of kernels.
        sources: Number of kernels without incoming streams; default: one per hundred kernels, at least one.
        branching: Approximate share of kernels that split or join streams, 0 to 0.5.
        fan: Largest number of streams that a kernel splits into or joins; at least 2.
        edge_weight: Mean bytes of a stream.
        edge_spread: Standard deviation of the logarithm of these bytes; 0 makes all streams equal.
    """
    law = LogNormal(edge_weight, edge_spread)
    graph = stream_graph(vertices, sources=sources, branching=branching, fan=fan, edge=law, seed=seed)
    sent = edges(graph.source, graph.target, graph.edge_weight, 0)
    return sent.profile(vertices, f"stream-{vertices}", "stream computing")


def stream_weights(
    vertices: int, *, vertex_weight: float = 1.0, vertex_spread: float = VERTEX_SPREAD, seed: int = 0
) -> Floats:
    """Return the computation of each kernel of `stream` with the same seed (float64[vertices]).

    Args:
        vertices: Number of kernels.
        vertex_weight: Mean computation of a kernel.
        vertex_spread: Standard deviation of its logarithm; 0 makes all kernels equal.
    """
    count = whole("stream.vertices", vertices, 1)
    return _weights("vertex", LogNormal(vertex_weight, vertex_spread), count, _seeds(seed).vertex_weights)


def stream_graph(
    vertices: int,
    *,
    sources: int | None = None,
    branching: float = 0.12,
    fan: int = 3,
    vertex: LogNormal = VERTEX_WEIGHT,
    edge: LogNormal = EDGE_WEIGHT,
    seed: int = 0,
) -> StreamGraph:
    """Return a random task graph of a stream computing application, weakly connected.

    Kernels are in levels, and streams lead from one level to the next. All open streams continue to the next
    level: most through a filter, some split, some are joined by two or more. The probability of splits falls,
    and that of joins rises, from sources to sinks. The last kernel joins all remaining parts.
    Therefore (section 4.2):

    1. there are few edges; 2. no kernel has several streams in and several out, and most are filters; 3. all
    paths between two kernels have the same length; 4. splits outnumber joins near the sources, and joins
    splits near the sinks.

    Args:
        vertices, sources, branching, fan, seed: As for `stream`. Structure and weights are drawn
            independently.
        vertex, edge: Weights of kernels and streams.
    """
    count = whole("stream.vertices", vertices, 1)
    starts = max(count // 100, 1) if sources is None else whole("stream.sources", sources, 1, count)
    if starts > 1 and count <= starts:
        raise InvalidValue("stream.sources", f"is {starts}, must leave one of {count} vertices to join them")
    if not 0 <= branching <= 0.5:
        raise InvalidValue("stream.branching", f"is {branching}, not within 0 .. 0.5")
    whole("stream.fan", fan, 2)
    seeds = _seeds(seed)
    growing = _Growing(count, starts, branching, fan, np.random.default_rng(seeds.structure))
    growing.grow()
    ends = np.array(growing.edges, np.int32).reshape(-1, 2)
    return StreamGraph(
        source=ends[:, 0],
        target=ends[:, 1],
        edge_weight=_weights("edge", edge, len(ends), seeds.edge_weights),
        vertex_weight=_weights("vertex", vertex, count, seeds.vertex_weights),
        level=np.array(growing.level, np.int32),
    )


class _Seeds(NamedTuple):
    """Independent seeds of everything that is drawn."""

    structure: np.random.SeedSequence
    edge_weights: np.random.SeedSequence
    vertex_weights: np.random.SeedSequence


def _seeds(seed: int) -> _Seeds:
    return _Seeds(*np.random.SeedSequence(seed).spawn(3))


class _Growing:
    """A graph that grows level by level; `open` lists the kernel of each open stream."""

    def __init__(
        self, count: int, sources: int, branching: float, fan: int, generator: np.random.Generator
    ) -> None:
        self._count, self._branching, self._fan, self._generator = count, branching, fan, generator
        self.edges: list[tuple[int, int]] = []
        self.level = [0] * sources
        self._part = list(range(sources))  # union-find over the kernels that streams connect
        self._open = list(range(sources))
        self._reserved = int(sources > 1)

    def grow(self) -> None:
        """Add kernels up to the requested number; the last joins the remaining parts."""
        while len(self.level) < self._count - self._reserved:
            self._next_level()
        if len(self.level) < self._count:
            first: dict[int, int] = {}
            for kernel in self._open:
                first.setdefault(self._root(kernel), kernel)
            self._add(sorted(first.values()))

    def _next_level(self) -> None:
        """Connect each open stream to a kernel of the next level, while kernels are left."""
        share = len(self.level) / self._count
        joins = self._branching * math.sin(math.pi * share / 2) ** 2
        splits = self._branching * math.cos(math.pi * share / 2) ** 2
        waiting = [self._open[at] for at in self._generator.permutation(len(self._open)).tolist()]
        made: list[int] = []
        while waiting and len(self.level) < self._count - self._reserved:
            tails = [waiting.pop()]
            if self._generator.random() < joins:
                self._gather(tails, waiting)
            kernel = self._add(tails)
            copies = 1
            if len(tails) == 1 and self._generator.random() < splits:
                copies = int(self._generator.integers(2, self._fan + 1))
            made += [kernel] * copies
        self._open = waiting + made

    def _gather(self, tails: list[int], waiting: list[int]) -> None:
        """Take streams of other kernels for a join from the open ones."""
        most = int(self._generator.integers(2, self._fan + 1))
        for place in range(len(waiting) - 1, -1, -1):
            if len(tails) == most:
                break
            if waiting[place] not in tails:
                tails.append(waiting.pop(place))

    def _add(self, tails: list[int]) -> int:
        """Add a kernel that these streams reach; return its number."""
        kernel = len(self.level)
        self.level.append(1 + max(self.level[tail] for tail in tails))
        self._part.append(kernel)
        for tail in tails:
            self.edges.append((tail, kernel))
            self._part[self._root(tail)] = kernel
        return kernel

    def _root(self, kernel: int) -> int:
        while self._part[kernel] != kernel:
            self._part[kernel] = self._part[self._part[kernel]]
            kernel = self._part[kernel]
        return kernel


def _weights(what: str, law: LogNormal, count: int, seed: np.random.SeedSequence) -> Floats:
    """Return weights drawn from a distribution (float64[count])."""
    size, spread = positive(f"stream.{what}_weight", law.mean), law.spread
    if not 0 <= spread <= 10:
        raise InvalidValue(f"stream.{what}_spread", f"is {spread}, not within 0 .. 10")
    drawn = np.random.default_rng(seed).normal(-(spread**2) / 2, spread, count)
    return np.asarray(size * np.exp(drawn), np.float64)
