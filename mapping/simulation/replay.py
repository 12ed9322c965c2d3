"""Simulations in memory, run slice by slice: packets by virtual cut-through, or flits by wormhole switching.

Memory grows while a simulation runs: a slice ends if it needs more.

The ranks of a simulation with their messages and routes, before anything is sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from mapping.kernels.random_numbers import state_from
from mapping.routing.kernels.channels import Ends, new_channels
from mapping.routing.routes import Routes
from mapping.simulation.kernels import flit_moves as flits
from mapping.simulation.kernels import packet_moves as packets
from mapping.simulation.kernels.event_queue import WAITING, new_lines, new_queue, wider_lines, wider_queue
from mapping.simulation.kernels.flit_simulation import run_flits
from mapping.simulation.kernels.packet_simulation import run_packets
from mapping.simulation.kernels.simulated_ranks import (
    BYTES,
    DELIVERED,
    FREE,
    FULL,
    HOPS,
    LAST_DELIVERY,
    MORE,
    POINT_LATENCY,
    POINTS,
    ROUND,
    Ranks,
)
from mapping.simulation.messages import MOST_CYCLES, MOST_ROOM, Messages, Options
from mapping.simulation.network import ChannelRoutes
from registry.errors import InvalidValue
from registry.model import Bools, Fabric, Floats, Ints, Longs, Placement
from registry.model.simulation import FLITS, PERCENTILES


class Senders(NamedTuple):
    """Ranks, and the routes of their messages."""

    ranks: Ranks
    routes: ChannelRoutes

    @property
    def delivered(self) -> Bools:
        """bool[n]: True for messages that are delivered."""
        done: Bools = self.ranks.left == 0
        return done

    def points(self) -> Floats:
        """Return the points of traffic over time (float64[k, 3]); the last may be of fewer messages."""
        ranks = self.ranks
        full = ranks.points[: ranks.tally[POINTS]]
        rest = int(ranks.tally[DELIVERED]) % ranks.every
        if rest == 0:
            return full.copy()
        mean = ranks.clock[POINT_LATENCY] / rest
        last = [ranks.clock[LAST_DELIVERY], ranks.clock[BYTES], mean]
        return np.concatenate((full, [last]))

    def latencies(self) -> tuple[Floats, float]:
        """Return latencies of delivered messages at `PERCENTILES`, and their mean; zeros without messages."""
        found = np.sort(self.ranks.latency[self.delivered])
        if not len(found):
            return np.zeros(len(PERCENTILES)), 0.0
        return np.maximum.accumulate(np.percentile(found, PERCENTILES)), float(found.mean())


def new_senders(
    routes: ChannelRoutes,
    placement: Placement,
    messages: Messages,
    options: Options,
    generator: np.random.Generator,
) -> Senders:
    """Return ranks that have sent nothing yet; parameters and errors are those of ``levels.new_level``."""
    n, count, flows = len(messages.rank), placement.ranks, routes.routes.flows
    host = np.searchsorted(routes.routes.hosts, placement.host_of_rank).astype(np.int32)
    _require_connected(routes.routes, host, messages)
    only_port, only_target = _only_ways(flows.ends)
    tally, clock = np.zeros(4, np.int64), np.zeros(5)
    tally[ROUND] = -1
    ends = Ends._make(np.array(part) if isinstance(part, np.ndarray) else part for part in flows.ends)
    ranks = Ranks(
        host=host,
        only_port=only_port,
        only_target=only_target,
        first=np.searchsorted(messages.rank, np.arange(count + 1)).astype(np.int64),
        receiver=messages.receiver,
        bytes=messages.bytes,
        ready=messages.ready,
        round=messages.round,
        in_round=np.bincount(messages.round, minlength=1).astype(np.int64),
        packet_bytes=options.packet_bytes,
        cursor=np.zeros(count, np.int64),
        sent=np.zeros(count, np.int64),
        way=np.full((count, 4), -1, np.int64),
        line=np.full((len(routes.next_hops.start), 2), -1, np.int64),
        left=np.full(n, -1, np.int32),
        latency=np.zeros(n),
        tally=tally,
        clock=clock,
        points=np.zeros((n // options.every + 1, 3)),
        every=options.every,
        random=state_from(generator),
        ends=ends,  # copies, as one set of types and of layouts is one compilation
        hops=np.array(flows.hops, np.int16, order="C"),
        channels=new_channels(max(flows.max_channels, 1)),
    )
    ranks.cursor[:] = ranks.first[:-1]
    return Senders(ranks, routes)


def _only_ways(ends: Ends) -> tuple[Ints, Ints]:
    """Return port and target of each host that has one of each (int32[h], int32[h]); -1 for others."""
    port = np.full(len(ends.rail_ptr) - 1, -1, np.int32)
    target = port.copy()
    host = np.flatnonzero(np.diff(ends.rail_ptr) == 1)
    rail = ends.rail_ptr[host]
    alone = np.diff(ends.port_ptr)[rail] == 1
    host, rail = host[alone], rail[alone]
    at = ends.port_ptr[rail]
    alone = np.diff(ends.target_ptr)[at] == 1
    host, at = host[alone], at[alone]
    port[host], target[host] = at, ends.target[ends.target_ptr[at]]
    return port, target


def _require_connected(routes: Routes, host: Ints, messages: Messages) -> None:
    """Raise an error if two hosts that exchange messages are not connected."""
    source, target = host[messages.rank].astype(np.int64), host[messages.receiver]
    hosts = len(routes.hosts)
    pair = np.unique(source * hosts + target)
    routes.load(pair // hosts, pair % hosts, np.zeros(len(pair)))


EVENTS, CYCLES = 1 << 18, 1 << 14
"""Events and cycles between two checks for an interrupt: a small part of a second."""
SPARE_PACKETS, SPARE_FLITS = 4, 9
"""Default room of a buffer in packets, besides the bytes sent until free room is reported back, and in flits
beyond the cycles of its link; one flit of it is needed to send in each cycle."""
MOST_PARTS = 4
"""Most steps of a flit simulation per cycle, so that latencies like 12.5 cycles are exact."""
ROUNDING = 0.01
"""Largest error of a latency, or of a flit's time on a link, for which no more steps are made."""


class Level(ABC):
    """A simulation in memory.

    Args:
        senders: Ranks with their messages and routes.
        events: Initial room for events.
        state: State of the network before anything is sent.
    """

    def __init__(self, senders: Senders, events: int, state: packets.Packets | flits.Flits) -> None:
        self.senders = senders
        self._queue = new_queue(events)
        self._state = state

    def advance(self) -> bool:
        """Run a slice; return True if anything may happen after it."""
        while True:
            ended = self._run()
            if ended != FULL:
                return ended == MORE
            if int(self._queue.counts[WAITING]) * 2 > len(self._queue.time):
                self._widen()
            left = int(self._state.counts[FREE])
            if left * 2 <= self.room:
                self._add_packets(left)

    @abstractmethod
    def _run(self) -> int:
        """Run a slice; return why it ended, as a constant of the kernels."""

    def _widen(self) -> None:
        """Make room for twice as many events."""
        self._queue = wider_queue(self._queue, 2 * len(self._queue.time))

    def _add_packets(self, left: int) -> None:
        """Make room for twice as many packets; `left` rows are free."""
        rows = self.room
        packet, listed = _new_packets(2 * rows)
        packet[:rows] = self._state.packet
        added = listed[:rows].copy()  # the new rows come after the old ones
        listed[:left], listed[left : left + rows] = self._state.free[:left], added
        self._state.counts[FREE] = left + rows
        self._state = self._state._replace(packet=packet, free=listed)

    @property
    def room(self) -> int:
        """Number of packets that fit into memory."""
        return len(self._state.packet)

    @property
    def hops(self) -> int:
        """Number of links crossed, by packets or by flits."""
        return int(self._state.counts[HOPS])

    @property
    @abstractmethod
    def link_bytes(self) -> Floats:
        """float64[m]: bytes of messages that each link has carried, in flits only by whole packets."""

    @property
    @abstractmethod
    def link_busy_seconds(self) -> Floats:
        """float64[m]: how long each link was sending."""

    @abstractmethod
    def waiting_for(self) -> Longs:
        """Return the channel that the first packet of each channel's buffer waits for, or -1.

        Result: int64[channels].
        """


def new_level(
    fabric: Fabric,
    placement: Placement,
    messages: Messages,
    routes: ChannelRoutes,
    options: Options,
    *,
    mode: str,
    seed: int,
) -> Level:
    """Return a simulation in memory before anything is sent.

    Args:
        messages: From ``check_messages``.
        mode: ``packets`` or ``flits``.

    Raises:
        InvalidValue: A buffer has no room for a full packet or for a flit, or a latency has too many cycles.
        DisconnectedAllocation, UnreachablePair: Two hosts that exchange messages are not connected.
    """
    generator = np.random.default_rng(seed)
    senders = new_senders(routes, placement, messages, options, generator)
    kind = FlitLevel if mode == FLITS else PacketLevel
    return kind(fabric, senders, options, generator)


class PacketLevel(Level):
    """Virtual cut-through, event by event."""

    _state: packets.Packets

    def __init__(
        self, fabric: Fabric, senders: Senders, options: Options, generator: np.random.Generator
    ) -> None:
        hops_on, links = senders.routes.next_hops, len(fabric.links)
        there_and_back = np.ceil(2 * options.latency(links) * fabric.links.capacity)
        enough = SPARE_PACKETS * options.largest + np.minimum(there_and_back, MOST_ROOM).astype(np.int64)
        buffers = options.buffers(links, at_least=options.largest, default=enough)
        channels, ports = len(hops_on.state_of), len(hops_on.start)
        link, sending = np.zeros((links, 4)), np.zeros((links, 4), np.int64)
        link[:, packets.CAPACITY], link[:, packets.LATENCY] = fabric.links.capacity, options.latency(links)
        sending[:, packets.WHO] = -1
        channel = np.full((channels, 3), -1, np.int64)
        channel[:, packets.CREDIT] = np.repeat(buffers, hops_on.width)
        buffer = np.zeros((channels + ports, 5), np.int64)
        buffer[:, [packets.HEAD, packets.TAIL]] = -1
        packet, free = _new_packets(2 * ports + channels + 64)
        state = packets.Packets(
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
        events = 2 * (2 * ports + len(senders.ranks.host) + channels + hops_on.most) + 64
        super().__init__(senders, events, state)
        self._lines = new_lines(channels + ports + 64)

    def _run(self) -> int:
        senders = self.senders
        return int(
            run_packets(
                senders.routes.next_hops, senders.ranks, self._queue, self._lines, self._state, EVENTS
            )
        )

    def _widen(self) -> None:
        super()._widen()
        self._lines = wider_lines(self._lines, 2 * self._lines.time.shape[1])

    def _add_packets(self, left: int) -> None:
        tail_at = np.r_[self._state.tail_at, np.zeros(self.room)]
        super()._add_packets(left)
        self._state = self._state._replace(tail_at=tail_at)

    @property
    def link_bytes(self) -> Floats:
        return self._state.sending[:, packets.CARRIED].astype(np.float64)

    @property
    def link_busy_seconds(self) -> Floats:
        return self._state.link[:, packets.BUSY].copy()

    def waiting_for(self) -> Longs:
        state, channels = self._state, len(self._state.channel)
        waits = (state.buffer[:channels, packets.HEAD] >= 0) & (state.buffer[:channels, packets.WAITS] > 0)
        first = np.arange(channels) * self.senders.routes.next_hops.most
        return np.where(waits, state.entry[first, packets.CHANNEL].astype(np.int64), -1)


class FlitLevel(Level):
    """Wormhole switching, cycle by cycle."""

    _state: flits.Flits

    def __init__(
        self, fabric: Fabric, senders: Senders, options: Options, generator: np.random.Generator
    ) -> None:
        hops_on, links = senders.routes.next_hops, len(fabric.links)
        flit, capacity = options.flit_bytes, fabric.links.capacity
        cycle = flit / (float(capacity.max()) if links else 1.0)
        link, parts = _links(fabric, options, cycle)
        enough = (-(-link[:, flits.CYCLES] // parts) + SPARE_FLITS) * flit
        buffers = options.buffers(links, at_least=flit, default=enough) // flit
        channels, ports = len(hops_on.state_of), len(hops_on.start)
        channel = np.zeros((channels, 5), np.int64)
        channel[:, flits.CREDIT] = channel[:, flits.EMPTY] = np.repeat(buffers, hops_on.width)
        channel[:, [flits.OWNER, flits.LAST_OWNER]] = -1
        buffer = np.zeros((channels + ports, 7), np.int64)
        buffer[:, [flits.OUT, flits.WISH]] = flits.NONE
        packet, free = _new_packets(4 * ports + channels + 64)
        state = flits.Flits(
            link=link,
            channel=channel,
            buffer=buffer,
            flight=np.full((int(link[:, flits.CYCLES].max(initial=1)) + 1, links), -1, np.int32),
            worm=np.zeros((channels + ports, int(buffers.max(initial=1)) + 2, 2), np.int32),
            packet=packet,
            free=free,
            touched=np.zeros(channels, np.int32),
            wanted=np.zeros(channels, np.int32),
            winner=np.full(channels, -1, np.int32),
            done=np.zeros(channels + 1, np.int32),
            counts=np.array([len(free), 0, 0, 0, 0, 0], np.int64),
            flit_bytes=flit,
            header_bytes=options.header_bytes,
            exclusive=senders.routes.escapes,
            cycle_seconds=cycle / parts,
            random=state_from(generator),
        )
        super().__init__(senders, 2 * len(senders.ranks.host) + 64, state)

    def _run(self) -> int:
        senders = self.senders
        return int(run_flits(senders.routes.next_hops, senders.ranks, self._queue, self._state, CYCLES))

    @property
    def link_bytes(self) -> Floats:
        return self._state.link[:, flits.CARRIED].astype(np.float64)

    @property
    def link_busy_seconds(self) -> Floats:
        link, cycles = self._state.link, int(self._state.counts[flits.CYCLE])
        busy = np.minimum(link[:, flits.SENT_FLITS] * link[:, flits.PERIOD], cycles)
        return np.asarray(busy * self._state.cycle_seconds, np.float64)

    def waiting_for(self) -> Longs:
        buffer = self._state.buffer[: len(self._state.channel)]
        out, wish = buffer[:, flits.OUT], buffer[:, flits.WISH]
        wished = self.senders.routes.next_hops.choice[np.maximum(wish, 0)] if len(buffer) else wish
        wanted = np.where(out >= 0, out, np.where(wish >= 0, wished, -1))
        return np.where((buffer[:, flits.COUNT] > 0) & (out != flits.TAKEN_UP), wanted, -1)


def _new_packets(rows: int) -> tuple[Ints, Ints]:
    """Return memory for packets, and the list of free rows, all of them; the last of it is used first."""
    return np.zeros((rows, 8), np.int32), np.arange(rows, dtype=np.int32)[::-1].copy()


def _links(fabric: Fabric, options: Options, cycle: float) -> tuple[Longs, int]:
    """Return the initial state of the links (int64[m, 6]), and the number of steps that make up a cycle.

    It is the smallest number up to `MOST_PARTS` for which rounding to whole steps changes no latency and no
    time of a flit by more than `ROUNDING`, or if there is none the one for which it changes them least.
    """
    links = len(fabric.links)
    found = np.zeros((links, 6), np.int64)
    period = np.maximum(options.flit_bytes / fabric.links.capacity / cycle, 1.0)
    latency = np.maximum(options.latency(links) / cycle, period)
    for name, cycles in (("latency_seconds", latency), ("flit_bytes", period)):
        if float(cycles.max(initial=0.0)) > MOST_CYCLES:
            raise InvalidValue(f"simulate.{name}", f"a link takes {cycles.max():g} cycles of {cycle:g} s")
    both = np.concatenate((latency, period))
    several = np.arange(1, MOST_PARTS + 1)[:, None]
    error = (np.abs(np.rint(both * several) / several / both - 1.0)).max(axis=1, initial=0.0)
    parts = 1 + int(np.argmax(error <= ROUNDING) if bool((error <= ROUNDING).any()) else np.argmin(error))
    found[:, flits.PERIOD] = np.rint(period * parts)
    found[:, flits.CYCLES] = np.rint(latency * parts)
    found[:, flits.TURN] = -1
    return found, parts
