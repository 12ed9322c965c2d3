"""The wiring of a cluster whose cables fail and are repaired, so many times a day, at random times."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bench.dashboard.machine import machine, with_faults
from registry.model import Fabric

OUTSTANDING = 20
"""Faults at a time on average."""
SLOW_SHARE = 0.3
"""Part of the faults that are cables with a quarter of their lanes; the others are cables that are gone."""


@dataclass(slots=True)
class Wiring:
    """A fabric and its present faults.

    Attributes
    ----------
    whole : the fabric without faults and forwarding tables
    per_day : changes per day
    """

    whole: Fabric
    draw: np.random.Generator
    per_day: float
    changes: int = 0
    _slow: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, pods: int, leaves: int, per_day: float, seed: int) -> Wiring:
        """Return a three-level fat tree with ``pods * leaves ** 2`` hosts that has no faults yet."""
        whole = replace(machine(pods, leaves, leaves).fabric, tables=None)
        return cls(whole, np.random.default_rng([seed, 0]), per_day)

    def pass_hours(self, hours: float) -> int:
        """Let faults occur and be repaired; return the number of changes."""
        count = int(self.draw.poisson(self.per_day * hours / 24))
        for _ in range(count):
            repaired = self.draw.random() < len(self._slow) / (2 * OUTSTANDING)
            if repaired:
                del self._slow[int(self.draw.choice(list(self._slow)))]
            else:
                self._fail()
        self.changes += count
        return count

    def present(self) -> Fabric:
        """Return the fabric as a scan finds it now."""
        lost, slow = (np.zeros(len(self.whole.links), np.bool_) for _ in range(2))
        for row, is_slow in self._slow.items():
            both = [row, self._back(row)]
            (slow if is_slow else lost)[both] = True
        return with_faults(self.whole, lost, slow)

    def _fail(self) -> None:
        """Slow down or take away a cable that has no fault; only switches lose theirs."""
        links, is_host = self.whole.links, self.whole.kind == 0
        while True:
            row = int(self.draw.integers(len(links)))
            of_host = is_host[links.source[row]] or is_host[links.target[row]]
            if row not in self._slow and self._back(row) not in self._slow:
                self._slow[row] = bool(of_host or self.draw.random() < SLOW_SHARE)
                return

    def _back(self, row: int) -> int:
        """Return the row of the other direction of a cable; the tree has no parallel cables."""
        links = self.whole.links
        low, high = np.searchsorted(links.source, [links.target[row], links.target[row] + 1])
        return int(low + np.flatnonzero(links.target[low:high] == links.source[row])[0])
