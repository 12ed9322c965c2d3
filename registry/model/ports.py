"""Type of ports with more data than their cable: ports that are down or could be faster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from registry.errors import InvalidValue
from registry.model.arrays import Floats, Int8s, Ints, Longs, check_range, freeze

PORT_STATES = ("active", "down", "disabled", "training", "initialize", "armed")
"""Names of the states by number.

``down``: no partner (no cable, a broken cable, a host that is off). ``disabled``: switched off. ``training``:
trying to come up. ``initialize``, ``armed``: a link that the subnet manager has not activated.
"""
ACTIVE, DOWN, DISABLED, TRAINING, INITIALIZE, ARMED = range(len(PORT_STATES))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ports:
    """Ports with more data than their cable, one row each; most sources have none.

    A port that is not listed belongs to a link of the fabric or is unknown. A `Fabric` sorts the rows by
    (vertex, adapter, number).

    Attributes
    ----------
    vertex : int32[q]
        Switch or host of the port.
    adapter : int32[q]
        Adapter at a host; `NO_PORT` at a switch or if unknown.
    number : int32[q]
    state : uint8[q]
        Index in `PORT_STATES`.
    could_be : float64[q]
        Data bytes/s that both ends could negotiate, if that is more than the link has; else 0.
    """

    vertex: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    adapter: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    number: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    state: Int8s = field(default_factory=lambda: np.zeros(0, np.uint8))
    could_be: Floats = field(default_factory=lambda: np.zeros(0, np.float64))

    def __post_init__(self) -> None:
        q = len(np.atleast_1d(self.vertex))
        for name in PORT_COLUMNS:
            dtype: Any = {"state": np.uint8, "could_be": np.float64}.get(name, np.int32)
            freeze(self, name, dtype, q)
        check_range(self, "state", 0, len(PORT_STATES))
        if not (np.isfinite(self.could_be).all() and (self.could_be >= 0).all()):
            raise InvalidValue("Ports.could_be", "must be finite and not negative")

    def __len__(self) -> int:
        return len(self.vertex)

    @property
    def down(self) -> Longs:
        """Rows of ports without a working link (down, disabled or training): int64."""
        return np.flatnonzero(np.isin(self.state, (DOWN, DISABLED, TRAINING)))

    def take(self, rows: NDArray[Any]) -> Ports:
        """Return the rows of an index or mask array, in its order."""
        return Ports(**{name: getattr(self, name)[rows] for name in PORT_COLUMNS})

    def order(self) -> Longs:
        """Return the permutation that sorts the rows as int64[q]."""
        return np.lexsort((self.number, self.adapter, self.vertex)).astype(np.int64)


PORT_COLUMNS = ("vertex", "adapter", "number", "state", "could_be")
