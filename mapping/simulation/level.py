"""Code shared by packet and flit simulations: ranks with their messages and routes, and runs in slices.

Memory grows while a simulation runs: a slice ends if it needs more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from mapping.kernels.random_numbers import state_from
from mapping.routing.kernels.channels import Channels, Ends, new_channels
from mapping.routing.kernels.paths import HopArray
from mapping.simulation.channels import ChannelRoutes
from mapping.simulation.kernels.event_queue import WAITING, new_queue, wider_queue
from mapping.simulation.kernels.next_hops import NextHops
from mapping.simulation.kernels.packet_moves import FULL, MORE
from mapping.simulation.kernels.simulated_ranks import (
    BYTES,
    DELIVERED,
    LAST_DELIVERY,
    POINT_LATENCY,
    POINTS,
    ROUND,
    Ranks,
)
from mapping.simulation.messages import Messages
from registry.model import Bools, Floats, Ints, Longs, Placement
from registry.model.simulation import PERCENTILES


class Senders(NamedTuple):
    """Ranks, and the routes of their messages.

    Attributes
    ----------
    ranks : Ranks
    next_hops : NextHops
    channels : tuple
        Ends, hops and memory for channels, as arguments of
        ``mapping.routing.kernels.channels.pair_channels``.
    """

    ranks: Ranks
    next_hops: NextHops
    channels: tuple[Ends, HopArray, Channels]

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
    ways: ChannelRoutes,
    placement: Placement,
    messages: Messages,
    *,
    packet_bytes: int,
    every: int,
    generator: np.random.Generator,
) -> Senders:
    """Return ranks that have sent nothing yet.

    Parameters
    ----------
    messages : Messages
        From ``check_messages``.

    Raises
    ------
    DisconnectedAllocation, UnreachablePair
        Two hosts that exchange messages are not connected.
    """
    routes, n, count = ways.routes, len(messages.rank), placement.ranks
    host = np.searchsorted(routes.hosts, placement.host_of_rank).astype(np.int32)
    _require_connected(ways, host, messages)
    flows = routes.flows
    only_port, only_target = _only_ways(flows.ends)
    tally, clock = np.zeros(4, np.int64), np.zeros(5)
    tally[ROUND] = -1
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
        packet_bytes=packet_bytes,
        cursor=np.zeros(count, np.int64),
        sent=np.zeros(count, np.int64),
        way=np.full((count, 4), -1, np.int64),
        line=np.full((len(ways.next_hops.start), 2), -1, np.int64),
        left=np.full(n, -1, np.int32),
        latency=np.zeros(n),
        tally=tally,
        clock=clock,
        points=np.zeros((n // every + 1, 3)),
        every=every,
        random=state_from(generator),
    )
    ranks.cursor[:] = ranks.first[:-1]
    # Copies, as one set of types and of layouts is one compilation.
    ends = Ends._make(np.array(part) if isinstance(part, np.ndarray) else part for part in flows.ends)
    hops = np.array(flows.hops, np.int16, order="C")
    return Senders(ranks, ways.next_hops, (ends, hops, new_channels(max(flows.max_channels, 1))))


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


def _require_connected(ways: ChannelRoutes, host: Ints, messages: Messages) -> None:
    """Raise an error if two hosts that exchange messages are not connected."""
    source, target = host[messages.rank].astype(np.int64), host[messages.receiver]
    hosts = len(ways.routes.hosts)
    pair = np.unique(source * hosts + target)
    ways.routes.load(pair // hosts, pair % hosts, np.zeros(len(pair)))


class Level(ABC):
    """A simulation in memory.

    Parameters
    ----------
    senders : Senders
        Ranks with their messages and routes.
    events : int
        Initial room for events.
    """

    def __init__(self, senders: Senders, events: int) -> None:
        self.senders = senders
        self._queue = new_queue(events)

    def advance(self) -> bool:
        """Run a slice; return True if anything may happen after it."""
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
        """Run a slice; return why it ended, as a constant of the kernels."""

    @abstractmethod
    def _add_packets(self) -> None:
        """Make room for twice as many packets if half of it is used."""

    @property
    @abstractmethod
    def room(self) -> int:
        """Number of packets that fit into memory."""

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
        """Number of links crossed."""

    @abstractmethod
    def waiting_for(self) -> Longs:
        """Return the channel that the first packet of each channel's buffer waits for, or -1.

        Result: int64[channels].
        """


def new_packets(rows: int) -> tuple[Ints, Ints]:
    """Return memory for packets, and the list of free rows, all of them; the last of it is used first."""
    return np.zeros((rows, 8), np.int32), np.arange(rows, dtype=np.int32)[::-1].copy()


def more_packets(packet: Ints, free: Ints, left: int) -> tuple[Ints, Ints]:
    """Return the packets with twice the room, and the free rows: `left` old ones, then the new ones."""
    rows = len(free)
    wider, listed = new_packets(2 * rows)
    wider[:rows] = packet
    added = listed[:rows].copy()  # the new rows
    listed[:left], listed[left : left + rows] = free[:left], added
    return wider, listed
