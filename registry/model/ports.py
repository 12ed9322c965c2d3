"""Ports of which a source tells more than the cable in them: those that are down, or could be faster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from registry.errors import InvalidValue
from registry.model.arrays import Floats, Int8s, Ints, Longs, check_range, freeze

PORT_STATES = ("active", "down", "disabled", "training", "initialize", "armed")
"""Names of the states, by number.

``down`` has no partner (no cable, a dead cable, a host that is off), ``disabled`` was switched off,
``training`` tries to come up, ``initialize`` and ``armed`` have a link that no subnet manager has made
active.
"""
ACTIVE, DOWN, DISABLED, TRAINING, INITIALIZE, ARMED = range(len(PORT_STATES))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ports:
    """Ports that a source says more of than their cable, one row each; most sources tell none.

    A port that is not listed is either in a link of the fabric or untold. A `Fabric` keeps the rows
    ordered by (vertex, adapter, number).

    Attributes
    ----------
    vertex : int32[q]
        Switch or host that has the port.
    adapter : int32[q]
        Adapter at a host; `NO_PORT` at a switch or where the source knows none.
    number : int32[q]
    state : uint8[q]
        Index in `PORT_STATES`.
    could_be : float64[q]
        Data bytes/s that both ends could negotiate, where that is more than the link has; else 0.
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
        """int64: rows whose port has no working link: down, disabled or training."""
        return np.flatnonzero(np.isin(self.state, (DOWN, DISABLED, TRAINING)))

    def take(self, rows: NDArray[Any]) -> Ports:
        """The rows chosen by an index or mask array, in its order."""
        return Ports(**{name: getattr(self, name)[rows] for name in PORT_COLUMNS})

    def order(self) -> Longs:
        """int64[q]: the rows by (vertex, adapter, number)."""
        return np.lexsort((self.number, self.adapter, self.vertex)).astype(np.int64)


PORT_COLUMNS = ("vertex", "adapter", "number", "state", "could_be")
