"""The one way over circuits that each flow of a proposed configuration takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Floats, Ints, Longs, check_range, freeze


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
