"""Types of circuit plans: the proposed and present circuits of an optical switch, and routes over them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Floats, Ints, Longs, check_range, freeze_all
from registry.model.views import one_line

PAPER, BEST = METHODS = ("paper", "best")
"""Methods: only the loop of the 2013 paper; the best of our searches."""
Circuits = tuple[tuple[int, int], ...]
"""The two nodes of each circuit, the lower first, ascending."""

_WHOLE = ("nodes", "max_degree", "max_edges", "seed")
_SPEEDS = ("compute_speed", "link_speed")
_RATES = ("throughput", "compute_throughput", "communication_throughput", "upper_bound")
_MAY_MISS = ("present_throughput", "reconfiguration_seconds", "gain", "break_even_seconds")
"""Numbers that are nan if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitRoutes:
    """Flows between pairs of ends, each with its one unsplit route."""

    of_nodes: bool
    """True if ends are nodes, with one flow per pair of hosts because ranks stay; False if ends are vertices.
    """
    one: Ints
    other: Ints
    """int32[e]: The two ends of each flow, each pair once."""
    bytes: Floats
    """float64[e]: Bytes of one application, both directions together."""
    first: Longs
    circuit: Ints
    """int64[e + 1] and int32[r]: Circuits (rows of the plan) of flow k, in order from the node of `one`:
    ``circuit[first[k]:first[k + 1]]``. Empty within a node."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        object.__setattr__(self, "of_nodes", bool(self.of_nodes))
        freeze_all(self, None, "one", "circuit")
        freeze_all(self, len(self.one), "other", "bytes")
        freeze_all(self, len(self.one) + 1, "first")
        if not bool((np.isfinite(self.bytes) & (self.bytes >= 0.0)).all()):
            raise InvalidValue("CircuitRoutes.bytes", "must be finite and not negative")
        if self.first[0] != 0 or self.first[-1] != len(self.circuit) or bool((np.diff(self.first) < 0).any()):
            raise InvalidValue("CircuitRoutes.first", f"does not rise from 0 to {len(self.circuit)}")

    @property
    def crossing(self) -> Longs:
        """Rows of the flows that use a circuit; others stay within a node: int64[k]."""
        return np.flatnonzero(np.diff(self.first))

    def check(self, ends: int, circuits: int) -> None:
        """Raise `InvalidValue` if an end or a circuit is out of range."""
        for name, count in (("one", ends), ("other", ends), ("circuit", circuits)):
            check_range(self, name, 0, count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlan:
    """Circuits of an optical switch, the node of each vertex of an application, and the throughput.

    Throughput is in applications per second: all vertices compute and send once. Rates are inf without load.
    """

    nodes: int
    max_degree: int
    max_edges: int
    """Number of nodes, most circuits at a node, most circuits of the switch."""
    compute_speed: float
    """Vertex weight that a node computes per second; above 0."""
    link_speed: float
    """Bytes/s of a circuit, both directions together; above 0."""
    node_of_vertex: Ints
    """int32[v]: Node of each vertex (rank)."""
    source: Ints
    target: Ints
    """int32[m]: The two nodes of each proposed circuit, ``source < target``, ascending, each pair once."""
    link_load: Floats
    """float64[m]: Bytes of one application over each proposed circuit, both directions together."""
    present_source: Ints
    present_target: Ints
    """int32[k]: The two nodes of each present circuit; empty if unknown."""
    throughput: float
    compute_throughput: float
    communication_throughput: float
    """Throughput of all, of the nodes and of the circuits; the first is the smaller of the others."""
    present_throughput: float
    """Throughput of the present circuits; nan if unknown."""
    upper_bound: float
    """Certified upper bound for any circuits, partition and routes."""
    bound: str
    """Name of the proof of the upper bound."""
    reconfiguration_seconds: float
    """Time without traffic while circuits are moved; nan if unknown."""
    gain: float
    """Throughput divided by that of the present circuits; nan if unknown."""
    break_even_seconds: float
    """Time after which as much has been done as without a change; inf if nothing is gained, nan if unknown.
    """
    number: Ints
    """int32[k]: Iterations of the search, ascending, the first 0: the initial topology."""
    bottleneck: tuple[str, ...]
    """Bottleneck of each iteration."""
    trail_throughput: Floats
    """float64[k]: Throughput after each iteration."""
    complete: bool
    """False if the search was interrupted: then the plan is the best so far."""
    seed: int
    method: str
    """One of `METHODS`."""
    routes: CircuitRoutes | None = None
    """Route of every flow over the proposed circuits; None if unknown, as in plans of earlier versions."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        self._check_numbers()
        object.__setattr__(self, "complete", bool(self.complete))
        object.__setattr__(self, "bottleneck", tuple(map(str, self.bottleneck)))
        if self.method not in METHODS:
            raise InvalidValue("CircuitPlan.method", f"{self.method!r} is none of {', '.join(METHODS)}")
        freeze_all(self, None, "node_of_vertex", "number")
        check_range(self, "node_of_vertex", 0, self.nodes)
        self._check_circuits("source", "target")
        self._check_circuits("present_source", "present_target")
        freeze_all(self, len(self.source), "link_load")
        freeze_all(self, len(self.number), "trail_throughput")
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
        """Raise if a number is out of range; convert numbers to int and float."""
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
        freeze_all(self, None, source)
        freeze_all(self, len(getattr(self, source)), target)
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
        """Proposed circuits."""
        return _pairs(self.source, self.target)

    @property
    def present(self) -> Circuits:
        """Present circuits; empty if unknown."""
        return _pairs(self.present_source, self.present_target)

    @property
    def removed(self) -> Circuits:
        """Circuits to remove; empty if the present ones are unknown."""
        return tuple(sorted(set(self.present) - set(self.circuits)))

    @property
    def inserted(self) -> Circuits:
        """Circuits to insert; all circuits if the present ones are unknown."""
        return tuple(sorted(set(self.circuits) - set(self.present)))

    def ways(self, flows: Longs | None = None) -> Iterator[tuple[int, ...]]:
        """Yield the nodes on the route of each flow, from its one end to the other.

        A flow within a node has one node; nothing is yielded if routes are unknown.

        Args:
            flows (int64[k]): Rows of `routes` (default: all).
        """
        if self.routes is None:
            return
        rows = np.arange(len(self.routes.one)) if flows is None else flows
        one, first = self.routes.one[rows], self.routes.first
        start = (one if self.routes.of_nodes else self.node_of_vertex[one]).tolist()
        ends = self.source + self.target
        for node, begin, end in zip(start, first[rows].tolist(), first[rows + 1].tolist(), strict=True):
            over = ends[self.routes.circuit[begin:end]].tolist()
            yield tuple(itertools.accumulate(over, lambda here, both: both - here, initial=node))

    @property
    def best(self) -> Floats:
        """Best throughput until each iteration: float64[k]."""
        return np.maximum.accumulate(self.trail_throughput)


def _pairs(source: Ints, target: Ints) -> Circuits:
    return tuple(zip(source.tolist(), target.tolist(), strict=True))
