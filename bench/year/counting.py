"""Counters of all ports of a cluster, sweep by sweep: traffic by the time of day, and a few errors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from bench.dashboard.machine import CAPACITY, cable_ends
from registry.model import CounterSweep, Fabric, Guids, Ints, Longs

NAMES = (
    *("xmit_bytes", "rcv_bytes", "xmit_packets", "rcv_packets", "xmit_wait"),
    *("symbol_errors", "link_downed", "xmit_discards"),
)
ERRORS_PER_DAY = 40
"""Of all ports and counters together."""
PACKET_BYTES = 2048


@dataclass(slots=True)
class Counting:
    """The counters of all ports of a fabric; every sweep differs from the one before in nearly every port.

    Attributes
    ----------
    guid, port : uint64[p]; Ports, ascending
    values : int64[8, p]; Present values of `NAMES`
    """

    guid: Guids
    port: Ints
    values: Longs
    draw: np.random.Generator

    @classmethod
    def of(cls, fabric: Fabric, seed: int) -> Counting:
        """Return the counters of a fabric's ports with random first values."""
        draw = np.random.default_rng([seed, 1])
        guid, port = cable_ends(fabric)
        order = np.lexsort((port, guid))
        values = draw.integers(1 << 36, 1 << 44, (len(NAMES), len(port)))
        values[5:] = 0
        return cls(guid[order], port[order], values, draw)

    def sweep(self, at: datetime, since: timedelta) -> CounterSweep:
        """Let the counters grow and return them."""
        ports, seconds = len(self.port), since.total_seconds()
        busy = 0.25 + 0.15 * np.sin(2 * np.pi * (at.hour + at.minute / 60) / 24)
        sent, received = self.draw.gamma(0.6, busy / 0.6, (2, ports)).clip(max=0.95) * CAPACITY * seconds
        waited = self.draw.integers(0, 1 << 20, ports)
        grown = (sent, received, sent / PACKET_BYTES, received / PACKET_BYTES, waited)
        self.values[:5] += np.stack(grown).astype(np.int64)
        errors = int(self.draw.poisson(ERRORS_PER_DAY * seconds / 86400))
        self.values[self.draw.integers(5, 8, errors), self.draw.integers(0, ports, errors)] += 1
        return CounterSweep(
            at=at, guid=self.guid, port=self.port, names=NAMES, values=np.ascontiguousarray(self.values.T)
        )
