"""Circuits of an optical switch: those that a search proposes for an application, and the present ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Floats, Ints, Longs, check_range, freeze

PAPER, BEST = METHODS = ("paper", "best")
"""The loop of the 2013 paper alone; the best of ours."""
Circuits = tuple[tuple[int, int], ...]
"""Nodes that circuits join, the lower first, ascending."""

_WHOLE = ("nodes", "max_degree", "max_edges", "seed")
_SPEEDS = ("compute_speed", "link_speed")
_RATES = ("throughput", "compute_throughput", "communication_throughput", "upper_bound")
_MAY_MISS = ("present_throughput", "reconfiguration_seconds", "gain", "break_even_seconds")
"""Numbers that are nan where they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitRoutes:
    """What two ends exchange, and its unsplit route. Not compared.

    Attributes
    ----------
    of_nodes : bool
        Whether ends are nodes, as where ranks stay and what their hosts exchange is one flow; else vertices.
    one, other : int32[e]
        Ends of each flow, each pair once.
    bytes : float64[e]
        Of one application, both directions together.
    first : int64[e + 1], circuit : int32[r]
        Circuits of flow k, rows of the plan's, in order from the node of `one`:
        ``circuit[first[k]:first[k + 1]]``. None within a node.
    """

    of_nodes: bool
    one: Ints
    other: Ints
    bytes: Floats
    first: Longs
    circuit: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "of_nodes", bool(self.of_nodes))
        freeze(self, "one", np.int32, None)
        flows = len(self.one)
        freeze(self, "other", np.int32, flows)
        freeze(self, "bytes", np.float64, flows)
        freeze(self, "first", np.int64, flows + 1)
        freeze(self, "circuit", np.int32, None)
        if not bool((np.isfinite(self.bytes) & (self.bytes >= 0.0)).all()):
            raise InvalidValue("CircuitRoutes.bytes", "must be finite and not negative")
        if self.first[0] != 0 or self.first[-1] != len(self.circuit) or bool((np.diff(self.first) < 0).any()):
            raise InvalidValue("CircuitRoutes.first", f"does not rise from 0 to {len(self.circuit)}")

    @property
    def crossing(self) -> Longs:
        """int64[k]: rows of the flows that take a circuit; others stay within a node."""
        return np.flatnonzero(np.diff(self.first))

    def check(self, ends: int, circuits: int) -> None:
        """Raise `InvalidValue` where an end or a circuit is not one of so many."""
        for name, count in (("one", ends), ("other", ends), ("circuit", circuits)):
            check_range(self, name, 0, count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlan:
    """A configuration of an optical switch, the node of each vertex of an application, and what that gives.

    Throughput is in applications a second: all vertices compute and send once. Rates are inf where nothing
    loads the machine.

    Attributes
    ----------
    nodes, max_degree, max_edges : int
        Nodes on the switch, circuits that may end at one, circuits that the switch can hold.
    compute_speed : float
        Vertex weight that a node computes a second; above 0.
    link_speed : float
        Bytes/s of a circuit, both directions together; above 0.
    node_of_vertex : int32[v]
        Node of each vertex (rank).
    source, target : int32[m]
        The proposed circuits: nodes that each joins, ``source < target``, ascending, each pair once.
    link_load : float64[m]
        Bytes of one application over each of them, both directions together.
    present_source, present_target : int32[k]
        The circuits that there were when this was proposed, likewise; empty where that is not known.
    throughput, compute_throughput, communication_throughput : float
        The smaller of the two, that of the nodes, that of the circuits.
    present_throughput : float
        Of the present circuits; nan where they are not known.
    upper_bound : float
        No configuration, partition and routes give more, certified.
    bound : str
        The argument for that, in short.
    reconfiguration_seconds : float
        For which nothing flows while circuits move; nan where it was not told.
    gain : float
        Throughput over that of the present circuits; nan where that is not known.
    break_even_seconds : float
        Time after which as much has been done as without a change; inf where nothing is gained, nan where it
        is not known.
    number : int32[k]
        Iterations of the search, ascending, the first 0: the initial topology.
    bottleneck : tuple of str
        What bound each of them.
    trail_throughput : float64[k]
        Throughput after each of them.
    complete : bool
        False where the search was interrupted: then it is the best so far.
    seed : int
    method : str
        One of `METHODS`.
    routes : CircuitRoutes or None
        The way of every flow over the proposed circuits; None where it is not known, as of plans that were
        saved before ways were kept.
    """

    nodes: int
    max_degree: int
    max_edges: int
    compute_speed: float
    link_speed: float
    node_of_vertex: Ints
    source: Ints
    target: Ints
    link_load: Floats
    present_source: Ints
    present_target: Ints
    throughput: float
    compute_throughput: float
    communication_throughput: float
    present_throughput: float
    upper_bound: float
    bound: str
    reconfiguration_seconds: float
    gain: float
    break_even_seconds: float
    number: Ints
    bottleneck: tuple[str, ...]
    trail_throughput: Floats
    complete: bool
    seed: int
    method: str
    routes: CircuitRoutes | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        object.__setattr__(self, "complete", bool(self.complete))
        object.__setattr__(self, "bottleneck", tuple(map(str, self.bottleneck)))
        if self.method not in METHODS:
            raise InvalidValue("CircuitPlan.method", f"{self.method!r} is none of {', '.join(METHODS)}")
        freeze(self, "node_of_vertex", np.int32, None)
        check_range(self, "node_of_vertex", 0, self.nodes)
        self._check_circuits("source", "target")
        self._check_circuits("present_source", "present_target")
        freeze(self, "link_load", np.float64, len(self.source))
        freeze(self, "number", np.int32, None)
        freeze(self, "trail_throughput", np.float64, len(self.number))
        if len(self.bottleneck) != len(self.number):
            reason = f"has {len(self.bottleneck)} entries, not {len(self.number)}"
            raise InvalidValue("CircuitPlan.bottleneck", reason)
        if bool((np.diff(self.number) <= 0).any()):
            raise InvalidValue("CircuitPlan.number", "must ascend")
        if not bool((np.isfinite(self.link_load) & (self.link_load >= 0.0)).all()):
            raise InvalidValue("CircuitPlan.link_load", "must be finite and not negative")
        if bool(np.isnan(self.trail_throughput).any()) or bool((self.trail_throughput < 0.0).any()):
            raise InvalidValue("CircuitPlan.trail_throughput", "must be numbers, and not negative")
        if self.routes is not None:
            ends = self.nodes if self.routes.of_nodes else len(self.node_of_vertex)
            self.routes.check(ends, len(self.source))

    def _check_numbers(self) -> None:
        for name in _WHOLE:
            count = int(getattr(self, name))
            if count < (0 if name == "seed" else 1):
                raise InvalidValue(f"CircuitPlan.{name}", f"is {count}")
            object.__setattr__(self, name, count)
        for name in (*_SPEEDS, *_RATES, *_MAY_MISS):
            value = float(getattr(self, name))
            missing = name in _MAY_MISS and math.isnan(value)
            if not (missing or value >= 0.0) or (name in _SPEEDS and not 0.0 < value < math.inf):
                raise InvalidValue(f"CircuitPlan.{name}", f"is {value}")
            object.__setattr__(self, name, value)

    def _check_circuits(self, source: str, target: str) -> None:
        freeze(self, source, np.int32, None)
        freeze(self, target, np.int32, len(getattr(self, source)))
        one, other = getattr(self, source), getattr(self, target)
        wrong = (one < 0) | (one >= other) | (other >= self.nodes)
        if wrong.any():
            row = int(np.argmax(wrong))
            reason = f"row {row} joins {one[row]} and {other[row]}, not 0 <= a < b < {self.nodes}"
            raise InvalidValue(f"CircuitPlan.{source}", reason)
        if bool((np.diff(one.astype(np.int64) * self.nodes + other) <= 0).any()):
            raise InvalidValue(f"CircuitPlan.{source}", "circuits must ascend, each once")

    @property
    def circuits(self) -> Circuits:
        """The proposed ones."""
        return _pairs(self.source, self.target)

    @property
    def present(self) -> Circuits:
        """Those that there were; none where that is not known."""
        return _pairs(self.present_source, self.present_target)

    @property
    def removed(self) -> Circuits:
        """Circuits to take away; none where the present ones are not known."""
        return tuple(sorted(set(self.present) - set(self.circuits)))

    @property
    def inserted(self) -> Circuits:
        """Circuits to put in: all of them where the present ones are not known."""
        return tuple(sorted(set(self.circuits) - set(self.present)))

    def ways(self, flows: Longs | None = None) -> Iterator[tuple[int, ...]]:
        """Nodes that flows of `routes` lead over, from that of its one end to that of the other.

        One node where both are there; nothing where routes are not known.

        Parameters
        ----------
        flows : int64[k], optional
            Rows of `routes`; all of them unless told.
        """
        if self.routes is None:
            return
        rows = np.arange(len(self.routes.one)) if flows is None else flows
        one, first = self.routes.one[rows], self.routes.first
        start = (one if self.routes.of_nodes else self.node_of_vertex[one]).tolist()
        ends = self.source + self.target
        for at, begin, end in zip(start, first[rows].tolist(), first[rows + 1].tolist(), strict=True):
            over = ends[self.routes.circuit[begin:end]].tolist()
            yield tuple(itertools.accumulate(over, lambda here, both: both - here, initial=at))

    @property
    def best(self) -> Floats:
        """float64[k]: the best throughput until each iteration."""
        return np.maximum.accumulate(self.trail_throughput)


def _pairs(source: Ints, target: Ints) -> Circuits:
    return tuple(zip(source.tolist(), target.tolist(), strict=True))
