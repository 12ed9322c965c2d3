"""Topologies that a circuit switch can take: undirected graphs of nodes and links (section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.model.problem import Machine, check_rows, components, rows_of
from registry.errors import InvalidValue
from registry.model import Ints, Longs
from registry.model.arrays import freeze
from registry.model.views import one_line

Pair = tuple[int, int]
"""Two nodes that a link connects."""


class Neighbours(NamedTuple):
    """Links of each node: entries ``indptr[n] .. indptr[n + 1]`` are those of node n, rows ascending.

    Attributes
    ----------
    indptr : int64[nodes + 1]
    node : int32[2 m]
        Node at the other end.
    link : int32[2 m]
        Row of the link.
    """

    indptr: Longs
    node: Ints
    link: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Nodes 0 to n - 1 and the undirected links that connect them (section 2.2).

    Attributes
    ----------
    nodes : int
        Number of nodes, at least 1.
    source, target : int32[m]
        Nodes of each link, ``source < target``; rows ascend, so that none is repeated.

    Raises
    ------
    InvalidValue
        With the field, the row and the value.
    """

    nodes: int
    source: Ints
    target: Ints

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

        Parameters
        ----------
        pairs : int[k, 2]

        Raises
        ------
        InvalidValue
            A node is outside ``0 .. nodes - 1``, or a link connects a node with itself.
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

        Parameters
        ----------
        without : int[k]
            Rows of the links that are left out.
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

        Parameters
        ----------
        removed : int[k]
            Rows of links.
        added : int[k, 2]
            Pairs of nodes, as of `of`.
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
