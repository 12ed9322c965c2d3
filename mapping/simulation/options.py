"""What a simulated network is made of besides its fabric: packets, latencies, buffers, lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing.routes import ALL_CONNECTED
from mapping.simulation.kernels.packet_moves import LARGEST_PACKET
from registry.errors import InvalidValue
from registry.model import Floats, Longs

MOST_CYCLES = 1 << 20
"""Longest latency of a link in cycles."""
MOST_LANES = 64
"""Of a class: InfiniBand has 15."""
MOST_ROOM = 1 << 40
"""Bytes of a buffer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """The network that messages are sent through.

    Attributes
    ----------
    packet_bytes : int
        Most bytes of a message in a packet.
    header_bytes : int
        Beside them, in every packet; no part of ``Simulation.link_bytes``.
    latency_seconds : float or float64[m]
        From one end of a link until a packet's head may leave the next switch, of all links or of each. In
        flits it is rounded to whole cycles, at least one.
    buffer_bytes : int, int64[m] or None
        Of each channel at the far end of a link; unless told, as much as is sent until room is known of,
        and four packets (nine flits) more.
    lanes : int
        Channels of each class that a link has, 1 to `MOST_LANES`.
    selection : str
        How packets choose among several next channels; see ``channels.SELECTIONS``.
    rails : str
        How messages are spread over adapters; see ``mapping.routing.routes.RAILS``. A message goes one way.
    flit_bytes : int
        The fastest link sends a flit in a cycle; others take a whole number of cycles.
    """

    packet_bytes: int = 2048
    header_bytes: int = 0
    latency_seconds: float | Floats = 1e-7
    buffer_bytes: int | Longs | None = None
    lanes: int = 1
    selection: str = "adaptive"
    rails: str = ALL_CONNECTED
    flit_bytes: int = 8

    def __post_init__(self) -> None:
        for name, low in (("packet_bytes", 1), ("header_bytes", 0), ("lanes", 1), ("flit_bytes", 1)):
            if getattr(self, name) < low:
                raise InvalidValue(f"simulate.{name}", f"must be {low} or more, is {getattr(self, name)}")
        for name, size in (("packet_bytes", self.largest), ("flit_bytes", self.flit_bytes)):
            if size >= LARGEST_PACKET:
                raise InvalidValue(f"simulate.{name}", f"must be below {LARGEST_PACKET}, is {size}")
        if self.lanes > MOST_LANES:
            raise InvalidValue("simulate.lanes", f"must be {MOST_LANES} or fewer, is {self.lanes}")
        if self.buffer_bytes is not None and bool((np.asarray(self.buffer_bytes) > MOST_ROOM).any()):
            raise InvalidValue(
                "simulate.buffer_bytes", f"must be at most {MOST_ROOM}, is {self.buffer_bytes}"
            )
        latency = np.asarray(self.latency_seconds, np.float64)
        if not bool((np.isfinite(latency) & (latency >= 0)).all()):
            raise InvalidValue("simulate.latency_seconds", f"must be finite and not negative, is {latency}")

    @property
    def largest(self) -> int:
        """Bytes of a full packet with its header."""
        return self.packet_bytes + self.header_bytes

    def latency(self, links: int) -> Floats:
        """float64[m]: seconds by link.

        Raises
        ------
        InvalidValue
        """
        return _by_link(self.latency_seconds, links, "latency_seconds").astype(np.float64)

    def buffers(self, links: int, *, at_least: int, unless_told: Longs) -> Longs:
        """int64[m]: bytes of each channel's buffer by link.

        Raises
        ------
        InvalidValue
            One that is smaller than `at_least`, and which.
        """
        told = unless_told if self.buffer_bytes is None else self.buffer_bytes
        found = _by_link(told, links, "buffer_bytes").astype(np.int64)
        if len(found) and int(found.min()) < at_least:
            row = int(np.argmin(found))
            raise InvalidValue("simulate.buffer_bytes", f"{found[row]} at link {row}: less than {at_least}")
        return found


def _by_link(values: ArrayLike, links: int, name: str) -> Floats | Longs:
    found = np.asarray(values)
    if found.ndim and found.shape != (links,):
        raise InvalidValue(f"simulate.{name}", f"has {found.size} entries, not {links}")
    return np.broadcast_to(found, (links,)).copy()
