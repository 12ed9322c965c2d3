"""A packet-level simulation in memory."""

from __future__ import annotations

import numpy as np

from mapping.kernels.random_numbers import state_from
from mapping.simulation.kernels.event_queue import new_lines, wider_lines
from mapping.simulation.kernels.packet_moves import (
    BUSY,
    CAPACITY,
    CARRIED,
    CHANNEL,
    CREDIT,
    FREE,
    HEAD,
    HOPS,
    LATENCY,
    TAIL,
    WAITS,
    WHO,
    Packets,
)
from mapping.simulation.kernels.packet_simulation import run_packets
from mapping.simulation.level import Level, Senders, more_packets, new_packets
from mapping.simulation.options import MOST_ROOM, Options
from registry.model import Fabric, Floats, Longs

SLICE = 1 << 18
"""Events between two checks for an interrupt: a small part of a second."""
PACKETS_OF_ROOM = 4
"""Default room of a buffer in packets, besides the bytes sent until free room is reported back."""


class PacketLevel(Level):
    """Virtual cut-through, event by event.

    Parameters
    ----------
    senders : Senders
        Ranks with their messages and routes.

    Raises
    ------
    InvalidValue
        A buffer has no room for a full packet.
    """

    def __init__(
        self, fabric: Fabric, senders: Senders, options: Options, generator: np.random.Generator
    ) -> None:
        hops_on, links = senders.next_hops, len(fabric.links)
        there_and_back = np.ceil(2 * options.latency(links) * fabric.links.capacity)
        enough = PACKETS_OF_ROOM * options.largest + np.minimum(there_and_back, MOST_ROOM).astype(np.int64)
        buffers = options.buffers(links, at_least=options.largest, default=enough)
        channels, ports = len(hops_on.state_of), len(hops_on.start)
        super().__init__(senders, 2 * (2 * ports + len(senders.ranks.host) + channels + hops_on.most) + 64)
        self._lines = new_lines(channels + ports + 64)
        link, sending = np.zeros((links, 4)), np.zeros((links, 4), np.int64)
        link[:, CAPACITY], link[:, LATENCY] = fabric.links.capacity, options.latency(links)
        sending[:, WHO] = -1
        channel = np.full((channels, 3), -1, np.int64)
        channel[:, CREDIT] = np.repeat(buffers, hops_on.width)
        buffer = np.zeros((channels + ports, 5), np.int64)
        buffer[:, [HEAD, TAIL]] = -1
        packet, free = new_packets(2 * ports + channels + 64)
        self._state = Packets(
            link=link,
            sending=sending,
            channel=channel,
            buffer=buffer,
            entry=np.full(((channels + ports) * hops_on.most, 3), -1, np.int32),
            packet=packet,
            tail_at=np.zeros(len(free)),
            free=free,
            ask=np.zeros(ports + 4, np.int64),
            counts=np.array([len(free), 0, 0], np.int64),
            header_bytes=options.header_bytes,
            random=state_from(generator),
        )

    def _run(self) -> int:
        senders, lines = self.senders, self._lines
        ways = senders.channels
        return int(
            run_packets(senders.next_hops, senders.ranks, *ways, self._queue, lines, self._state, SLICE)
        )

    def _widen(self) -> None:
        super()._widen()
        self._lines = wider_lines(self._lines, 2 * self._lines.time.shape[1])

    def _add_packets(self) -> None:
        state, rows = self._state, len(self._state.free)
        left = int(state.counts[FREE])
        if left * 2 <= rows:
            packet, free = more_packets(state.packet, state.free, left)
            tail_at = np.r_[state.tail_at, np.zeros(rows)]
            state.counts[FREE] = left + rows
            self._state = state._replace(packet=packet, tail_at=tail_at, free=free)

    @property
    def room(self) -> int:
        """Number of packets that fit into memory."""
        return len(self._state.packet)

    @property
    def link_bytes(self) -> Floats:
        """float64[m]: bytes of messages that each link has carried."""
        return self._state.sending[:, CARRIED].astype(np.float64)

    @property
    def link_busy_seconds(self) -> Floats:
        """float64[m]: how long each link was sending."""
        return self._state.link[:, BUSY].copy()

    @property
    def hops(self) -> int:
        """Number of links crossed by packets."""
        return int(self._state.counts[HOPS])

    def waiting_for(self) -> Longs:
        """Return the channel that the first packet of each channel's buffer waits for, or -1.

        Result: int64[channels].
        """
        state, channels = self._state, len(self._state.channel)
        waits = (state.buffer[:channels, HEAD] >= 0) & (state.buffer[:channels, WAITS] > 0)
        most = self.senders.next_hops.most
        wanted = state.entry[np.arange(channels) * most, CHANNEL].astype(np.int64)
        return np.where(waits, wanted, -1)
