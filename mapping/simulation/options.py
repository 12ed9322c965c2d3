"""Options of a simulated network besides its fabric: packets, latencies, buffers, lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mapping.simulation.kernels.packet_moves import LARGEST_PACKET
from registry.errors import InvalidValue
from registry.model import Floats, Longs

MOST_CYCLES = 1 << 20
"""Longest latency of a link in cycles."""
MOST_LANES = 64
"""Largest number of lanes of a class: InfiniBand has 15."""
EVERY = 10_000
"""Default number of messages between two points of traffic over time, as in the figures of the 2004 paper."""
MOST_EVERY = 1 << 40
MOST_ROOM = 1 << 40
"""Largest size of a buffer in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """The network through which messages are sent, and how the traffic is recorded.

    Attributes
    ----------
    packet_bytes : int
        Largest part of a message in a packet.
    header_bytes : int
        Further bytes of every packet; not counted in ``Simulation.link_bytes``.
    latency_seconds : float or float64[m]
        Time from one end of a link until the head of a packet may leave the next switch, of all links or of
        each. In flits it is at least a cycle, and rounded to whole cycles; to halves, thirds or quarters of
        a cycle if that would change a latency or a link's speed by more than 1%.
    buffer_bytes : int, int64[m] or None
        Size of each channel's buffer at the far end of a link; default: the bytes sent until free room is
        reported back, and four packets (nine flits) more.
    lanes : int
        Number of channels of each class per link, 1 to `MOST_LANES`.
    selection : str
        Choice among several next channels; see ``channels.SELECTIONS``.
    flit_bytes : int
        The fastest link sends a flit per cycle; others take more, rounded like latencies.
    every : int
        Number of messages between two points of the traffic over time.

    Raises
    ------
    InvalidValue
        An option is out of range.
    """

    packet_bytes: int = 2048
    header_bytes: int = 0
    latency_seconds: float | Floats = 1e-7
    buffer_bytes: int | Longs | None = None
    lanes: int = 1
    selection: str = "adaptive"
    flit_bytes: int = 8
    every: int = EVERY

    def __post_init__(self) -> None:
        for name, low, high in (
            ("header_bytes", 0, LARGEST_PACKET - 2),
            ("packet_bytes", 1, LARGEST_PACKET - 1 - self.header_bytes),
            ("flit_bytes", 1, LARGEST_PACKET - 1),
            ("lanes", 1, MOST_LANES),
            ("every", 1, MOST_EVERY),
        ):
            if not low <= getattr(self, name) <= high:
                raise InvalidValue(f"simulate.{name}", f"must be {low} to {high}, is {getattr(self, name)}")
        if self.buffer_bytes is not None and bool((np.asarray(self.buffer_bytes) > MOST_ROOM).any()):
            raise InvalidValue(
                "simulate.buffer_bytes", f"must be at most {MOST_ROOM}, is {self.buffer_bytes}"
            )
        latency = np.asarray(self.latency_seconds, np.float64)
        if not bool((np.isfinite(latency) & (latency >= 0)).all()):
            raise InvalidValue("simulate.latency_seconds", f"must be finite and not negative, is {latency}")

    @property
    def parameters(self) -> dict[str, str | int | float | bool]:
        """Options by name, as stored with a run, without those that follow from others."""
        names = ("packet_bytes", "header_bytes", "flit_bytes", "latency_seconds", "buffer_bytes")
        values = {name: getattr(self, name) for name in (*names, "lanes", "selection")}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def largest(self) -> int:
        """Bytes of a full packet with its header."""
        return self.packet_bytes + self.header_bytes

    def latency(self, links: int) -> Floats:
        """Return the latency of each link in seconds (float64[m]).

        Raises
        ------
        InvalidValue
            The number of values is not that of links.
        """
        return _by_link(self.latency_seconds, links, "latency_seconds").astype(np.float64)

    def buffers(self, links: int, *, at_least: int, default: Longs) -> Longs:
        """Return the bytes of each channel's buffer by link (int64[m]).

        Raises
        ------
        InvalidValue
            A buffer is smaller than `at_least`; names the link.
        """
        given = default if self.buffer_bytes is None else self.buffer_bytes
        found = _by_link(given, links, "buffer_bytes").astype(np.int64)
        if len(found) and int(found.min()) < at_least:
            row = int(np.argmin(found))
            raise InvalidValue("simulate.buffer_bytes", f"{found[row]} at link {row}: less than {at_least}")
        return found


def _by_link(values: ArrayLike, links: int, name: str) -> Floats | Longs:
    found = np.asarray(values)
    if found.ndim and found.shape != (links,):
        raise InvalidValue(f"simulate.{name}", f"has {found.size} entries, not {links}")
    return np.broadcast_to(found, (links,)).copy()
