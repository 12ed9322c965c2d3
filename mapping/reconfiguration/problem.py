"""What is reconfigured: an application, and a machine whose nodes a circuit switch joins (section 2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.graphs import (
    Incidence,
    check_rows,
    check_weights,
    components,
    incidence,
    rows_of,
)
from registry.errors import InvalidValue
from registry.model import Floats, Ints, Profile
from registry.model.arrays import freeze

MOST_NODES = 1 << 14
"""Nodes of a machine: more than optical switches have ports, few enough for a table of their pairs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Application:
    """A task graph G: kernels that compute, and edges along which they exchange data (section 2.2).

    Attributes
    ----------
    vertex_weight : float64[v]
        Computation of each vertex for one element of output, finite, >= 0; at least one vertex.
    source, target : int32[e]
        Vertices that an edge joins, ``source < target``; rows ascend, so that none is repeated.
    weight : float64[e]
        Data along each edge for one element of output, both directions together, finite, >= 0.

    Raises
    ------
    InvalidValue
        Naming the field, the row and the value.
    """

    vertex_weight: Floats
    source: Ints
    target: Ints
    weight: Floats

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
        """An application from any list of edges; both directions and repeats are summed.

        An edge from a vertex to itself is left out: it needs no link, wherever the vertex is.

        Parameters
        ----------
        source, target : int[k]
            Vertices, from 0.
        weight : float[k]
            Finite, >= 0.
        vertex_weight : float[v], optional
            All 1 unless told.
        vertices : int, optional
            Unless told, as many as there are vertex weights, or else one more than the highest end.
        connected : bool
            Refuse an application whose edges do not join all vertices.

        Raises
        ------
        InvalidValue
            As of the class; and a disconnected application, naming a vertex of another component.
        """
        count = _vertices(source, target, vertex_weight, vertices)
        rows = rows_of("Application", count, source, target)
        size = np.asarray(weight, np.float64).reshape(-1)
        if len(size) != len(rows.first):
            raise InvalidValue("Application.weight", f"has {len(size)} entries, not {len(rows.first)}")
        check_weights("Application.weight", size)
        found = cls(
            vertex_weight=np.ones(count) if vertex_weight is None else np.asarray(vertex_weight, np.float64),
            source=rows.source,
            target=rows.target,
            weight=rows.sums(size),
        )
        if connected:
            found.require_connected()
        return found

    @classmethod
    def of_profile(
        cls, profile: Profile, vertex_weight: ArrayLike | None = None, *, connected: bool = True
    ) -> Self:
        """The application of a profile: ranks are vertices, an edge weighs the bytes of both directions.

        Parameters
        ----------
        vertex_weight : float[ranks], optional
            All 1 unless told: ranks that compute alike.

        Raises
        ------
        InvalidValue
            As `from_edges`.
        """
        return cls.from_edges(
            profile.sender,
            profile.partner,
            profile.bytes,
            vertex_weight=vertex_weight,
            vertices=profile.ranks,
            connected=connected,
        )

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.vertex_weight)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self.source)

    @cached_property
    def incidence(self) -> Incidence:
        """Edges by vertex."""
        return incidence(self.vertices, self.source, self.target)

    @cached_property
    def component(self) -> Ints:
        """int32[v]: number of the connected component of each vertex."""
        return components(self.vertices, self.source, self.target)

    def require_connected(self) -> None:
        """Raise `InvalidValue`, naming a vertex of another component than vertex 0, unless all are joined."""
        apart = self.component != self.component[0]
        if apart.any():
            raise InvalidValue(
                "Application.source",
                f"no path of edges joins vertex {int(np.argmax(apart))} and vertex 0:"
                f" the application falls apart into {int(self.component.max()) + 1} components",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Alike nodes, joined by a switch that can take any topology within two limits (section 2.2).

    Attributes
    ----------
    nodes : int
        N_P, from 1 to `MOST_NODES`.
    max_degree : int
        Ports of a node: most links that may end at it. At least 2 where there are more than two nodes.
    max_edges : int
        Most links that the switch can hold at a time; at least ``nodes - 1``, which join all nodes.
    compute_speed : float
        S_comp: vertex weight that a node computes in a unit of time, finite, > 0.
    link_speed : float
        S_comm: edge weight that a link carries in a unit of time, both directions together, finite, > 0.

    Raises
    ------
    InvalidValue
        Naming the field and the value.
    """

    nodes: int
    max_degree: int
    max_edges: int
    compute_speed: float
    link_speed: float

    def __post_init__(self) -> None:
        _whole("Machine.nodes", self.nodes, 1, "a machine has at least one node")
        if self.nodes > MOST_NODES:
            raise InvalidValue("Machine.nodes", f"is {self.nodes}, must be at most {MOST_NODES}")
        joins = f"fewer links do not join {self.nodes} nodes"
        _whole("Machine.max_degree", self.max_degree, min(self.nodes - 1, 2), joins)
        _whole("Machine.max_edges", self.max_edges, self.nodes - 1, joins)
        for name in ("compute_speed", "link_speed"):
            speed = getattr(self, name)
            if not (math.isfinite(speed) and speed > 0):
                raise InvalidValue(f"Machine.{name}", f"is {speed}, must be finite and above zero")


def _vertices(
    source: ArrayLike, target: ArrayLike, vertex_weight: ArrayLike | None, vertices: int | None
) -> int:
    """Number of vertices of a list of edges."""
    if vertices is not None:
        count = int(vertices)
    elif vertex_weight is not None:
        count = len(np.asarray(vertex_weight).reshape(-1))
    else:
        count = max((int(np.max(ends)) + 1 for ends in (source, target) if np.size(ends)), default=0)
    given = None if vertex_weight is None else len(np.asarray(vertex_weight).reshape(-1))
    if given is not None and given != count:
        raise InvalidValue("Application.vertex_weight", f"has {given} entries, not {count}")
    return count


def _whole(field: str, value: int, least: int, why: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidValue(field, f"is {value!r}, must be a whole number")
    if value < least:
        raise InvalidValue(field, f"is {value}, must be at least {least}: {why}")
