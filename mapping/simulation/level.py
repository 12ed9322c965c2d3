"""What simulations of both modes share: run in slices, given more room where they need it, read."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from mapping.simulation.kernels.event_queue import WAITING, new_queue, wider_queue
from mapping.simulation.kernels.packet_moves import FULL, MORE
from mapping.simulation.sending import Senders
from registry.model import Floats, Ints, Longs


class Level(ABC):
    """A simulation in memory.

    Parameters
    ----------
    senders : Senders
        Ranks with their messages, and the ways.
    events : int
        That there is room for at the begin.
    """

    def __init__(self, senders: Senders, events: int) -> None:
        self._senders = senders
        self._queue = new_queue(events)

    def advance(self) -> bool:
        """Run a slice; whether anything may happen after it."""
        while True:
            ended = self._run()
            if ended != FULL:
                return ended == MORE
            if int(self._queue.counts[WAITING]) * 2 > len(self._queue.time):
                self._widen()
            self._add_packets()

    def _widen(self) -> None:
        """Make room for twice as many events."""
        self._queue = wider_queue(self._queue, 2 * len(self._queue.time))

    @abstractmethod
    def _run(self) -> int:
        """Run a slice; why it ended, as kernels tell it."""

    @abstractmethod
    def _add_packets(self) -> None:
        """Make room for twice as many packets, where half of it is taken."""

    @property
    @abstractmethod
    def room(self) -> int:
        """Packets that there is memory for."""

    @property
    @abstractmethod
    def link_bytes(self) -> Floats:
        """float64[m]: bytes of messages that each link has carried."""

    @property
    @abstractmethod
    def link_busy_seconds(self) -> Floats:
        """float64[m]: how long each link was sending."""

    @property
    @abstractmethod
    def hops(self) -> int:
        """Links crossed."""

    @abstractmethod
    def waiting_for(self) -> Longs:
        """int64[channels]: the channel that the first packet of each channel's buffer waits for; -1 none."""


def new_packets(rows: int) -> tuple[Ints, Ints]:
    """Room for so many packets, and the list of free rows, all of them; the last of it is taken first."""
    return np.zeros((rows, 8), np.int32), np.arange(rows, dtype=np.int32)[::-1].copy()


def more_packets(packet: Ints, free: Ints, left: int) -> tuple[Ints, Ints]:
    """The same packets with twice the room, and the list of free rows: `left` old ones, then the new ones."""
    rows = len(free)
    wider, listed = new_packets(2 * rows)
    wider[:rows] = packet
    added = listed[:rows].copy()  # the new rows
    listed[:left], listed[left : left + rows] = free[:left], added
    return wider, listed
