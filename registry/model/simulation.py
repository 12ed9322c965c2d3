"""Type of the result of a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from registry.errors import InvalidValue
from registry.model.arrays import Floats, freeze
from registry.model.views import one_line

PACKETS, FLITS = MODES = ("packets", "flits")
"""Modes: packet by packet (virtual cut-through), flit by flit (wormhole)."""
PERCENTILES = (0.0, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9, 100.0)
"""Stored percentiles of the latency of messages."""
_NUMBERS: Mapping[str, type[int] | type[float]] = MappingProxyType(
    {
        **dict.fromkeys(("completion_seconds", "delivered_bytes", "mean_latency_seconds"), float),
        **dict.fromkeys(("seed", "messages", "packet_hops"), int),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """Result of a simulation of messages over a fabric.

    Messages within a host count as delivered and load no link. If no message was delivered, latencies are 0.
    """

    mode: str
    """One of `MODES`."""
    routing: str
    """Routing with its options."""
    seed: int
    complete: bool
    """False if the simulation was interrupted: then all values are those until the interrupt."""
    completion_seconds: float
    """Simulated time from the start to the last byte."""
    delivered_bytes: float
    messages: int
    """Number of delivered messages."""
    packet_hops: int
    """Sum over packets (or flits) of the number of links that they crossed."""
    link_bytes: Floats
    """float64[m]: Bytes on each row of ``fabric.links``."""
    link_busy_seconds: Floats
    """float64[m]: Time that each link was sending."""
    delivered_at: Floats
    delivered: Floats
    """float64[k]: Times in seconds and bytes delivered by then; neither descends."""
    latency_seconds: Floats
    """float64[len(PERCENTILES)]: Percentiles of the time from the generation of a message to its last byte;
    ascending."""
    mean_latency_seconds: float
    latency_over_time: Floats
    """float64[k]: Mean latency of the messages delivered since the point before."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        object.__setattr__(self, "complete", bool(self.complete))
        if self.mode not in MODES:
            raise InvalidValue("Simulation.mode", f"{self.mode!r} is none of {', '.join(MODES)}")
        links, points = len(np.atleast_1d(self.link_bytes)), len(np.atleast_1d(self.delivered_at))
        sizes = {
            **dict.fromkeys(("link_bytes", "link_busy_seconds"), links),
            **dict.fromkeys(("delivered_at", "delivered", "latency_over_time"), points),
            "latency_seconds": len(PERCENTILES),
        }
        for name, size in sizes.items():
            freeze(self, name, np.float64, size)
            values = getattr(self, name)
            if not bool((np.isfinite(values) & (values >= 0.0)).all()):
                raise InvalidValue(f"Simulation.{name}", "must be finite and not negative")
        for name, kind in _NUMBERS.items():
            value = kind(getattr(self, name))  # kernels return numpy numbers
            if not (math.isfinite(value) and value >= 0):
                raise InvalidValue(f"Simulation.{name}", f"{value} is negative or not finite")
            object.__setattr__(self, name, value)
        for name in ("delivered_at", "delivered", "latency_seconds"):
            if bool((np.diff(getattr(self, name)) < 0.0).any()):
                raise InvalidValue(f"Simulation.{name}", "must not descend")

    @property
    def throughput(self) -> float:
        """Delivered bytes per simulated second; 0 if the run took no time."""
        return self.delivered_bytes / self.completion_seconds if self.completion_seconds > 0.0 else 0.0

    @property
    def link_utilisation(self) -> Floats:
        """Share of the run in which each row of ``fabric.links`` was sending, 0 to 1: float64[m]."""
        if self.completion_seconds <= 0.0:
            return np.zeros(len(self.link_bytes))
        return self.link_busy_seconds / self.completion_seconds

    def latency(self, percentile: float) -> float:
        """Return the latency in seconds at one of `PERCENTILES`.

        Raises:
            InvalidValue: The percentile is not stored.
        """
        if percentile not in PERCENTILES:
            stored = ", ".join(f"{one:g}" for one in PERCENTILES)
            reason = f"the percentile {percentile:g} is not stored, only {stored}"
            raise InvalidValue("Simulation.latency", reason)
        return float(self.latency_seconds[PERCENTILES.index(percentile)])
