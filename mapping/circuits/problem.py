"""Problems: an application, and a machine whose nodes a circuit switch connects (section 2.2).

Topologies that a circuit switch can take: undirected graphs of nodes and links (section 2.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from registry.errors import InvalidValue
from registry.model import Bools, Floats, Ints, Longs, Profile
from registry.model.arrays import freeze, whole_numbers
from registry.model.views import one_line


class Rows(NamedTuple):
    """Distinct rows of the edges of a graph."""

    source: Ints
    target: Ints
    """int32[e]: ``source < target``, in ascending order of source, then of target."""
    first: Longs
    """int64[given]: Row of each given edge; -1 for an edge from a vertex to itself."""

    def sums(self, weight: Floats) -> Floats:
        """Return the total weight of the given edges (float64[given]) of each row (float64[e])."""
        kept = self.first >= 0
        found = np.bincount(self.first[kept], weight[kept], len(self.source))
        return found.astype(np.float64)


def rows_of(field: str, count: int, source: ArrayLike, target: ArrayLike) -> Rows:
    """Return the rows of edges in any direction, possibly repeated; edges within a vertex are dropped.

    Raises:
        InvalidValue: The values are no whole numbers, columns differ in length, or a vertex is outside ``0 ..
            count - 1``.
    """
    one = indices(f"{field}.source", source, None, count)
    other = indices(f"{field}.target", target, None, count)
    if len(one) != len(other):
        raise InvalidValue(field, f"columns differ in length: {len(one)} and {len(other)}")
    apart = one != other
    low, high = np.minimum(one, other)[apart], np.maximum(one, other)[apart]
    key, place = np.unique(low * count + high, return_inverse=True)
    first = np.full(len(one), -1, np.int64)
    first[apart] = place.reshape(-1)
    size = max(count, 1)
    return Rows((key // size).astype(np.int32), (key % size).astype(np.int32), first)


def indices(field: str, values: ArrayLike, size: int | None, most: int) -> Longs:
    """Return whole numbers from 0 to below `most` as int64[size]; any number of them if `size` is None.

    Raises:
        InvalidValue: With `field`, the entry and the value.
    """
    found = whole_numbers(values, field)
    if size is not None and len(found) != size:
        raise InvalidValue(field, f"has {len(found)} entries, not {size}")
    wrong = (found < 0) | (found >= most)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidValue(field, f"is {found[row]} at {row}, not within 0 .. {most - 1}")
    return found


def check_rows(field: str, count: int, source: Ints, target: Ints) -> None:
    """Raise `InvalidValue` with the row unless ``0 <= source < target < count`` and rows ascend."""
    wrong = (source < 0) | (target >= count) | (source >= target)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidValue(
            f"{field}.source",
            f"row {row} connects {source[row]} and {target[row]}, not 0 <= source < target < {count}",
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
    """Raise `InvalidValue` with the entry unless all values are finite and not negative."""
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InvalidValue(field, f"is {values[place]} at {place}, must be finite and not negative")


def components(count: int, source: Ints, target: Ints) -> Ints:
    """Return the number of the connected component of each vertex (int32[count])."""
    graph = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(count, count))
    label = connected_components(graph, directed=False)[1]
    return np.asarray(label, np.int32)


def require_not_negative(**values: float | None) -> None:
    """Raise `InvalidValue` with the name of the first value below zero; None means no limit."""
    for name, value in values.items():
        if value is not None and not value >= 0:
            raise InvalidValue(name, f"is {value}, must not be negative")


MOST_NODES = 1 << 14
"""Largest number of nodes of a machine: more than switches have ports, and a table of all pairs fits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Application:
    """A task graph G: kernels that compute, and edges along which they exchange data (section 2.2).

    Raises:
        InvalidValue: With the field, the row and the value.
    """

    vertex_weight: Floats
    """float64[v]: Computation of each vertex per output element, finite, >= 0; at least one vertex."""
    source: Ints
    target: Ints
    """int32[e]: Vertices of each edge, ``source < target``; rows ascend, so that none is repeated."""
    weight: Floats
    """float64[e]: Data along each edge per output element, both directions together, finite, >= 0."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        freeze(self, "vertex_weight", np.float64, None)
        freeze(self, "source", np.int32, None)
        edges = len(self.source)
        freeze(self, "target", np.int32, edges)
        freeze(self, "weight", np.float64, edges)
        if self.vertices < 1:
            raise InvalidValue("Application.vertex_weight", "an application has at least one vertex")
        check_weights("Application.vertex_weight", self.vertex_weight)
        check_weights("Application.weight", self.weight)
        check_rows("Application", self.vertices, self.source, self.target)

    @classmethod
    def from_edges(
        cls,
        source: ArrayLike,
        target: ArrayLike,
        weight: ArrayLike,
        *,
        vertex_weight: ArrayLike | None = None,
        vertices: int | None = None,
        connected: bool = True,
    ) -> Self:
        """Return an application from any list of edges; both directions and repeated edges are added.

        An edge from a vertex to itself is dropped: it never needs a link.

        Args:
            source, target (int[k]): Vertices, from 0.
            weight (float[k]): Finite, >= 0.
            vertex_weight (float[v]): Default: all 1.
            vertices: Default: the number of vertex weights, or else one more than the highest end of an edge.
            connected: Refuse an application whose edges do not connect all vertices.

        Raises:
            InvalidValue: As of the class; or the application is not connected, with a vertex of another
                component.
        """
        if vertices is None and vertex_weight is not None:
            vertices = np.size(vertex_weight)
        elif vertices is None:
            vertices = max((int(np.max(ends)) + 1 for ends in (source, target) if np.size(ends)), default=0)
        own = np.asarray(np.ones(vertices) if vertex_weight is None else vertex_weight, np.float64).reshape(
            -1
        )
        if len(own) != vertices:
            raise InvalidValue("Application.vertex_weight", f"has {len(own)} entries, not {vertices}")
        rows = rows_of("Application", vertices, source, target)
        size = np.asarray(weight, np.float64).reshape(-1)
        if len(size) != len(rows.first):
            raise InvalidValue("Application.weight", f"has {len(size)} entries, not {len(rows.first)}")
        check_weights("Application.weight", size)
        found = cls(vertex_weight=own, source=rows.source, target=rows.target, weight=rows.sums(size))
        if connected:
            found._require_connected()
        return found

    @classmethod
    def of_profile(cls, profile: Profile, vertex_weight: ArrayLike | None = None) -> Self:
        """Return the application of a profile: ranks are vertices, edges weigh the bytes of both directions.

        The vertex weights and errors are those of `from_edges`.
        """
        ends, size = (profile.sender, profile.partner), profile.bytes
        return cls.from_edges(*ends, size, vertex_weight=vertex_weight, vertices=profile.ranks)

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.vertex_weight)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self.source)

    def _require_connected(self) -> None:
        """Raise `InvalidValue` with a vertex that no path connects with vertex 0, if there is one."""
        component = components(self.vertices, self.source, self.target)
        apart = component != component[0]
        if apart.any():
            raise InvalidValue(
                "Application.source",
                f"no path of edges connects vertex {int(np.argmax(apart))} and vertex 0:"
                f" the application has {int(component.max()) + 1} components",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Equal nodes, connected by a switch that can take any topology within two limits (section 2.2).

    Raises:
        InvalidValue: With the field and the value.
    """

    nodes: int
    """N_P, from 1 to `MOST_NODES`."""
    max_degree: int
    """Ports of a node: largest number of links at a node; at least 2 if there are more than two nodes."""
    max_edges: int
    """Largest number of links in the switch; at least ``nodes - 1``, which connect all nodes."""
    compute_speed: float
    """S_comp: vertex weight that a node computes per unit of time, finite, > 0."""
    link_speed: float
    """S_comm: edge weight that a link carries per unit of time, both directions together, finite, > 0."""

    def __post_init__(self) -> None:
        _whole("Machine.nodes", self.nodes, 1, "a machine has at least one node")
        if self.nodes > MOST_NODES:
            raise InvalidValue("Machine.nodes", f"is {self.nodes}, must be at most {MOST_NODES}")
        joins = f"fewer links do not connect {self.nodes} nodes"
        _whole("Machine.max_degree", self.max_degree, min(self.nodes - 1, 2), joins)
        _whole("Machine.max_edges", self.max_edges, self.nodes - 1, joins)
        for name in ("compute_speed", "link_speed"):
            speed = getattr(self, name)
            if not (math.isfinite(speed) and speed > 0):
                raise InvalidValue(f"Machine.{name}", f"is {speed}, must be finite and above zero")


class Level(NamedTuple):
    """A graph of the multilevel hierarchy, and how the next finer graph was contracted to it."""

    vertex_weight: Floats
    """float64[v]."""
    source: Ints
    target: Ints
    """int32[e]: ``source < target``, ascending."""
    weight: Floats
    """float64[e]."""
    vertex: Ints
    """int32[v of the finer graph]: Vertex that each finer vertex was contracted to; empty for the finest
    graph, as are the next two."""
    edge: Ints
    """int32[e of the finer graph]: Edge that each finer edge is part of; -1 for a contracted one."""
    backwards: Bools
    """bool[e of the finer graph]: True if the source of the finer edge is part of the target of that edge."""

    @classmethod
    def of(cls, application: Application) -> Self:
        """Return the application itself, the finest graph."""
        graph = application.vertex_weight, application.source, application.target, application.weight
        none = np.zeros(0, np.int32)
        return cls(*graph, vertex=none, edge=none, backwards=np.zeros(0, np.bool_))


def _whole(field: str, value: int, least: int, why: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidValue(field, f"is {value!r}, must be a whole number")
    if value < least:
        raise InvalidValue(field, f"is {value}, must be at least {least}: {why}")


Pair = tuple[int, int]
"""Two nodes that a link connects."""


class Neighbours(NamedTuple):
    """Links of each node: entries ``indptr[n] .. indptr[n + 1]`` are those of node n, rows ascending."""

    indptr: Longs
    """int64[nodes + 1]."""
    node: Ints
    """int32[2 m]: Node at the other end."""
    link: Ints
    """int32[2 m]: Row of the link."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Nodes 0 to n - 1 and the undirected links that connect them (section 2.2).

    Raises:
        InvalidValue: With the field, the row and the value.
    """

    nodes: int
    """Number of nodes, at least 1."""
    source: Ints
    target: Ints
    """int32[m]: Nodes of each link, ``source < target``; rows ascend, so that none is repeated."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        freeze(self, "source", np.int32, None)
        freeze(self, "target", np.int32, len(self.source))
        if self.nodes < 1:
            raise InvalidValue("Topology.nodes", f"is {self.nodes}, must be at least 1")
        check_rows("Topology", self.nodes, self.source, self.target)

    @classmethod
    def of(cls, nodes: int, pairs: ArrayLike) -> Self:
        """Return a topology from pairs of nodes in any order; a repeated pair is one link.

        Args:
            pairs (int[k, 2]):

        Raises:
            InvalidValue: A node is outside ``0 .. nodes - 1``, or a link connects a node with itself.
        """
        ends = np.asarray(pairs)
        ends = ends.reshape(-1, 2) if ends.size else np.zeros((0, 2), np.int64)
        rows = rows_of("Topology", nodes, ends[:, 0], ends[:, 1])
        if (rows.first < 0).any():
            loop = ends[np.argmin(rows.first), 0]
            raise InvalidValue("Topology.source", f"a link connects node {loop} with itself")
        return cls(nodes=nodes, source=rows.source, target=rows.target)

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.source)

    @cached_property
    def pairs(self) -> Longs:
        """int64[m, 2]: nodes of each link."""
        return np.stack((self.source, self.target), axis=1).astype(np.int64)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Links of each node, as read-only arrays."""
        ends, others = np.r_[self.source, self.target], np.r_[self.target, self.source]
        link = np.tile(np.arange(self.links, dtype=np.int32), 2)
        order = np.lexsort((link, ends))
        indptr = np.r_[0, np.cumsum(np.bincount(ends, minlength=self.nodes))].astype(np.int64)
        found = Neighbours(indptr, others[order], link[order])
        for array in found:
            array.flags.writeable = False
        return found

    @cached_property
    def degree(self) -> Longs:
        """int64[nodes]: number of links of each node."""
        return np.diff(self.neighbours.indptr)

    def connected(self) -> bool:
        """Return True if links connect all nodes."""
        return int(self.components().max()) == 0

    def components(self, without: ArrayLike = ()) -> Ints:
        """Return the number of the connected component of each node (int32[nodes]), without some links.

        Args:
            without (int[k]): Rows of the links that are left out.
        """
        kept = np.ones(self.links, bool)
        kept[np.asarray(without, np.int64)] = False
        return components(self.nodes, self.source[kept], self.target[kept])

    def link_between(self, one: int, other: int) -> int:
        """Return the row of the link between two nodes, or -1."""
        if not (0 <= one < self.nodes and 0 <= other < self.nodes) or one == other:
            return -1
        low, high = min(one, other), max(one, other)
        first, last = np.searchsorted(self.source, (low, low + 1))
        row = int(first + np.searchsorted(self.target[first:last], high))
        return row if row < last and self.target[row] == high else -1

    def rows_between(self, pairs: Longs) -> Longs:
        """Return the row of the link between each pair of nodes (int64[k, 2]), in any order, or -1.

        Result: int64[k].
        """
        key = np.sort(pairs, axis=1) @ (self.nodes, 1)
        keys = self.pairs @ (self.nodes, 1)
        row = np.searchsorted(keys, key)
        return np.where(np.isin(key, keys), row, -1)

    def changed(self, removed: ArrayLike = (), added: ArrayLike = ()) -> Self:
        """Return the topology without some links, and with others.

        Args:
            removed (int[k]): Rows of links.
            added (int[k, 2]): Pairs of nodes, as of `of`.
        """
        kept = np.delete(self.pairs, np.asarray(removed, np.int64), axis=0)
        return self.of(self.nodes, np.concatenate((kept, np.asarray(added, np.int64).reshape(-1, 2))))

    def ends(self, link: int) -> Pair:
        """Return the two nodes of a link."""
        return int(self.source[link]), int(self.target[link])

    def swap_ends(self, link: int, other: int, crossed: bool) -> tuple[Pair, Pair]:
        """Return the links after an edge swap, in which two links exchange ends (Figure 2).

        Links {u, v} and {x, z}, ``u < v`` and ``x < z``, become {u, x} and {v, z}, or if `crossed` {u, z} and
        {v, x}.
        """
        (u, v), (x, z) = self.ends(link), self.ends(other)
        return ((u, z), (v, x)) if crossed else ((u, x), (v, z))

    def beyond(self, other: Self) -> tuple[Pair, ...]:
        """Return the links that this topology has and another does not, ascending."""
        key = (max(self.nodes, other.nodes), 1)
        rows = np.flatnonzero(~np.isin(self.pairs @ key, other.pairs @ key))
        return tuple(self.ends(row) for row in rows.tolist())

    def require(self, machine: Machine) -> None:
        """Raise `InvalidValue` with node and number unless the machine can take this topology.

        It must have the nodes of the machine, connect them all, and keep max-degree and max-edges.
        """
        if self.nodes != machine.nodes:
            raise InvalidValue("Topology.nodes", f"is {self.nodes}, the machine has {machine.nodes}")
        if self.links > machine.max_edges:
            raise InvalidValue("Topology.source", f"has {self.links} links, max_edges is {machine.max_edges}")
        most = int(np.argmax(self.degree))
        if self.degree[most] > machine.max_degree:
            reason = f"node {most} has {self.degree[most]} links, max_degree is {machine.max_degree}"
            raise InvalidValue("Topology.source", reason)
        if not self.connected():
            apart = int(np.argmax(self.components() != self.components()[0]))
            raise InvalidValue("Topology.source", f"no path of links connects node {apart} and node 0")


class LinkChange(NamedTuple):
    """A topology after a change of links, and the links by which it differs from the one before."""

    topology: Topology
    removed: tuple[Pair, ...]
    inserted: tuple[Pair, ...]
