"""A flit-level simulation in memory."""

from __future__ import annotations

import numpy as np

from mapping.kernels.random_numbers import state_from
from mapping.simulation.kernels.flit_moves import (
    CARRIED,
    COUNT,
    CREDIT,
    CYCLE,
    CYCLES,
    EMPTY,
    FREE,
    HOPS,
    LAST_OWNER,
    NONE,
    OUT,
    OWNER,
    PERIOD,
    SENT_FLITS,
    TAKEN_UP,
    TURN,
    WISH,
    Flits,
)
from mapping.simulation.kernels.flit_simulation import run_flits
from mapping.simulation.level import Level, Senders, more_packets, new_packets
from mapping.simulation.options import MOST_CYCLES, Options
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Longs

SLICE = 1 << 14
"""Cycles between two checks for an interrupt."""
SPARE_FLITS = 9
"""Default room of a buffer beyond the cycles of its link; one flit of it is needed to send in each cycle."""


class FlitLevel(Level):
    """Wormhole switching, cycle by cycle.

    Parameters
    ----------
    senders : Senders
        Ranks with their messages and routes.
    exclusive : bool
        True if a buffer is emptied before the next packet comes in.

    Raises
    ------
    InvalidValue
        A buffer has no room for a flit, or a latency has too many cycles.
    """

    def __init__(
        self,
        fabric: Fabric,
        senders: Senders,
        options: Options,
        generator: np.random.Generator,
        *,
        exclusive: bool,
    ) -> None:
        hops_on, links = senders.next_hops, len(fabric.links)
        super().__init__(senders, 2 * len(senders.ranks.host) + 64)
        flit, capacity = options.flit_bytes, fabric.links.capacity
        self._cycle = flit / (float(capacity.max()) if links else 1.0)
        link = _links(fabric, options, self._cycle)
        enough = (link[:, CYCLES] + SPARE_FLITS) * flit
        buffers = options.buffers(links, at_least=flit, default=enough) // flit
        channels, ports = len(hops_on.state_of), len(hops_on.start)
        channel = np.zeros((channels, 5), np.int64)
        channel[:, CREDIT] = channel[:, EMPTY] = np.repeat(buffers, hops_on.width)
        channel[:, [OWNER, LAST_OWNER]] = -1
        buffer = np.zeros((channels + ports, 7), np.int64)
        buffer[:, [OUT, WISH]] = NONE
        packet, free = new_packets(4 * ports + channels + 64)
        self._state = Flits(
            link=link,
            channel=channel,
            buffer=buffer,
            flight=np.full((int(link[:, CYCLES].max(initial=1)) + 1, links), -1, np.int32),
            worm=np.zeros((channels + ports, int(buffers.max(initial=1)) + 2, 2), np.int32),
            packet=packet,
            free=free,
            touched=np.zeros(channels, np.int32),
            wanted=np.zeros(channels, np.int32),
            winner=np.full(channels, -1, np.int32),
            done=np.zeros(channels + 1, np.int32),
            counts=np.zeros(6, np.int64),
            flit_bytes=flit,
            header_bytes=options.header_bytes,
            exclusive=exclusive,
            cycle_seconds=self._cycle,
            random=state_from(generator),
        )
        self._state.counts[FREE] = len(free)

    def _run(self) -> int:
        senders = self.senders
        return int(
            run_flits(senders.next_hops, senders.ranks, *senders.channels, self._queue, self._state, SLICE)
        )

    def _add_packets(self) -> None:
        state, rows = self._state, len(self._state.free)
        left = int(state.counts[FREE])
        if left * 2 <= rows:
            packet, free = more_packets(state.packet, state.free, left)
            state.counts[FREE] = left + rows
            self._state = state._replace(packet=packet, free=free)

    @property
    def room(self) -> int:
        """Packets that there is memory for."""
        return len(self._state.packet)

    @property
    def link_bytes(self) -> Floats:
        """float64[m]: bytes of messages that each link has carried, in packets that have crossed it whole."""
        return self._state.link[:, CARRIED].astype(np.float64)

    @property
    def link_busy_seconds(self) -> Floats:
        """float64[m]: how long each link was sending."""
        link, cycles = self._state.link, int(self._state.counts[CYCLE])
        return np.asarray(np.minimum(link[:, SENT_FLITS] * link[:, PERIOD], cycles) * self._cycle, np.float64)

    @property
    def hops(self) -> int:
        """Number of links crossed by flits."""
        return int(self._state.counts[HOPS])

    def waiting_for(self) -> Longs:
        """Return the channel that the first packet of each channel's buffer waits for, or -1.

        Result: int64[channels].
        """
        buffer = self._state.buffer[: len(self._state.channel)]
        wish = (
            self.senders.next_hops.choice[np.maximum(buffer[:, WISH], 0)] if len(buffer) else buffer[:, WISH]
        )
        wanted = np.where(buffer[:, OUT] >= 0, buffer[:, OUT], np.where(buffer[:, WISH] >= 0, wish, -1))
        return np.where((buffer[:, COUNT] > 0) & (buffer[:, OUT] != TAKEN_UP), wanted, -1)


def _links(fabric: Fabric, options: Options, cycle: float) -> Longs:
    """Return the initial state of the links (int64[m, 6])."""
    links = len(fabric.links)
    found = np.zeros((links, 6), np.int64)
    latency = options.latency(links) / cycle
    period = np.rint(options.flit_bytes / fabric.links.capacity / cycle)
    for name, cycles in (("latency_seconds", latency), ("flit_bytes", period)):
        if float(cycles.max(initial=0.0)) > MOST_CYCLES:
            raise InvalidValue(f"simulate.{name}", f"a link takes {cycles.max():g} cycles of {cycle:g} s")
    found[:, PERIOD] = np.maximum(period, 1)
    found[:, CYCLES] = np.maximum(np.rint(latency), found[:, PERIOD])
    found[:, TURN] = -1
    return found
