"""The ranks of a simulated run: their next messages, the queues at hosts' ports, and delivered messages.

A rank sends its messages one after the other, none before it is ready, none of a later round before all
messages of the earlier rounds are delivered. A message leaves by one port of its host; there the ranks of the
host queue, one message each. Between ranks of one host a message is delivered when it is sent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import inner
from mapping.kernels.random_numbers import State, next_word
from mapping.routing.kernels.channels import Channels, Ends, pair_channels
from mapping.routing.kernels.paths import HopArray
from mapping.simulation.kernels.event_queue import EventQueue, put_in
from registry.model import Floats, Ints, Longs

READY = 0
"""Kind of the event that a rank's next message may be sent."""
KIND_BITS = 3
MORE, ENDED, FULL = range(3)
"""Why a slice ended: it was done, nothing can happen any more, more memory is needed first."""
FREE, HOPS = range(2)
"""First places in ``Packets.counts`` and ``Flits.counts``: free rows of packets, links crossed."""
DELIVERED, ROUND, ROUND_LEFT, POINTS = range(4)
"""Places in ``Ranks.tally``: messages delivered, present round, how many of it are not, rows of points."""
NOW, ROUND_BEGAN, BYTES, POINT_LATENCY, LAST_DELIVERY = range(5)
"""Places in ``Ranks.clock``: three are seconds; bytes delivered; latency summed since the last point."""
FROM, TO, TARGET, AFTER = range(4)
"""Columns of ``Ranks.way``: ports of the sender and of the receiver, target of the routing, next rank."""
NEXT, MESSAGE, GOAL, GOAL_PORT, STATE, AT, SIZE, PAYLOAD = range(8)
"""Columns of packets: next in a list, message, target of the routing, port of the receiver, state of the
routing, channel that it is in, size (bytes or flits), bytes of the message."""


class Ranks(NamedTuple):
    """Messages by rank, and the progress of each rank."""

    host: Ints
    """int32[ranks]: Index into ``Routes.hosts``."""
    only_port: Ints
    only_target: Ints
    """int32[h]: Port and target of each host that has one of each; -1 if there are several."""
    first: Longs
    """int64[ranks + 1]: Messages of each rank."""
    receiver: Ints
    bytes: Longs
    ready: Floats
    round: Ints
    """int32[n], int64[n], float64[n], int32[n]."""
    in_round: Longs
    """int64[rounds]: Number of messages of each round."""
    packet_bytes: int
    cursor: Longs
    """int64[ranks]: Message that each rank sends or waits with."""
    sent: Longs
    """int64[ranks]: Packets of that message made so far."""
    way: Longs
    """int64[ranks, 4]: Route of that message, while the rank is in a queue."""
    line: Longs
    """int64[ports, 2]: First and last rank in the queue of each port; -1 for none."""
    left: Ints
    """int32[n]: Packets of each message that are not delivered; -1 before it is sent."""
    latency: Floats
    """float64[n]: Time when a message was generated; once it is delivered, its latency."""
    tally: Longs
    clock: Floats
    """int64[4], float64[5]."""
    points: Floats
    """float64[k, 3]: Seconds, bytes delivered until then, mean latency of the messages since the point
    before."""
    every: int
    """Messages per point."""
    random: State
    """uint64[1]."""
    ends: Ends
    hops: HopArray
    """int16[rows, targets]."""
    channels: Channels
    """Routes of messages, and memory: the arguments of `pair_channels`."""


@inner
def next_round(ranks: Ranks) -> bool:
    """Start the next round if there is one and the present one is delivered; True if it started."""
    tally = ranks.tally
    if tally[ROUND_LEFT] > 0 or tally[ROUND] + 1 >= len(ranks.in_round):
        return False
    tally[ROUND] += 1
    tally[ROUND_LEFT] = ranks.in_round[tally[ROUND]]
    ranks.clock[ROUND_BEGAN] = ranks.clock[NOW]
    return True


@inner
def offer(ranks: Ranks, queue: EventQueue, rank: int) -> int:
    """Let a rank send its next message; return the port where it is now first in the queue, else -1.

    If the message is not ready yet, an event is added for the time when it is.
    """
    cursor, tally, clock = ranks.cursor, ranks.tally, ranks.clock
    end = ranks.first[rank + 1]
    while cursor[rank] < end:
        message = cursor[rank]
        if ranks.round[message] > tally[ROUND]:
            return -1
        if ranks.ready[message] > clock[NOW]:
            put_in(queue, ranks.ready[message], READY | (rank << KIND_BITS))
            return -1
        ranks.latency[message] = max(ranks.ready[message], clock[ROUND_BEGAN])
        i, j = ranks.host[rank], ranks.host[ranks.receiver[message]]
        if i != j:
            return _join_queue(ranks, rank, i, j)
        _deliver(ranks, message)
        cursor[rank] += 1
    return -1


@inner
def _join_queue(ranks: Ranks, rank: int, i: int, j: int) -> int:
    """Draw the route of a message and queue at its port; return the port if the rank is first, else -1."""
    way, line = ranks.way, ranks.line
    port, goal = ranks.only_port[i], ranks.only_port[j]
    if port >= 0 and goal >= 0:
        way[rank, FROM], way[rank, TO], way[rank, TARGET] = port, goal, ranks.only_target[j]
    else:
        room, chosen = ranks.channels, 0
        count = pair_channels(ranks.ends, ranks.hops, i, j, room)
        if count > 1:
            drawn = np.float64(next_word(ranks.random) >> np.uint64(11)) * 2.0**-53
            while chosen < count - 1 and drawn >= room.weight[chosen]:
                drawn -= room.weight[chosen]
                chosen += 1
        port = room.source[chosen]
        way[rank, FROM], way[rank, TO], way[rank, TARGET] = port, room.port[chosen], room.target[chosen]
    way[rank, AFTER] = -1
    before = line[port, 1]
    line[port, 1] = rank
    if before >= 0:
        way[before, AFTER] = rank
        return -1
    line[port, 0] = rank
    return int(port)


@inner
def packets_of(size: int, packet_bytes: int) -> int:
    """Return the number of packets of a message; one if it has no bytes."""
    return max((size + packet_bytes - 1) // packet_bytes, 1)


@inner
def make_packet(ranks: Ranks, packet: Ints, place: int, port: int, state: int) -> int:
    """Write the next packet of the first rank in the queue of a port; return its bytes.

    Args:
        packet (int32[k, 8]):
        place: Row to write.
        state: State of the routing in which packets of this port start.
    """
    rank = ranks.line[port, 0]
    message, number = ranks.cursor[rank], ranks.sent[rank]
    size, most = ranks.bytes[message], ranks.packet_bytes
    if number == 0:
        ranks.left[message] = packets_of(size, most)
    ranks.sent[rank] = number + 1
    payload = min(most, size - number * most)
    packet[place, NEXT], packet[place, MESSAGE] = -1, message
    packet[place, GOAL], packet[place, GOAL_PORT] = ranks.way[rank, TARGET], ranks.way[rank, TO]
    packet[place, STATE], packet[place, AT] = state, -1
    packet[place, PAYLOAD] = payload
    return int(payload)


@inner
def after_packet(ranks: Ranks, queue: EventQueue, port: int) -> int:
    """Advance the queue of a port after a packet, if it was the last of its message.

    Returns:
        The port where the rank is now first in the queue with its next message, which may be the same, or -1.
    """
    rank = ranks.line[port, 0]
    if ranks.sent[rank] < packets_of(ranks.bytes[ranks.cursor[rank]], ranks.packet_bytes):
        return -1
    after = ranks.way[rank, AFTER]
    ranks.line[port, 0] = after
    if after < 0:
        ranks.line[port, 1] = -1
    ranks.cursor[rank] += 1
    ranks.sent[rank] = 0
    return offer(ranks, queue, rank)


@inner
def arrive(ranks: Ranks, message: int) -> None:
    """Record that a packet of a message is delivered."""
    ranks.left[message] -= 1
    if ranks.left[message] == 0:
        _deliver(ranks, message)


@inner
def _deliver(ranks: Ranks, message: int) -> None:
    """Record that a message is delivered."""
    tally, clock, points = ranks.tally, ranks.clock, ranks.points
    latency = clock[NOW] - ranks.latency[message]
    ranks.left[message] = 0
    ranks.latency[message] = latency
    tally[DELIVERED] += 1
    tally[ROUND_LEFT] -= 1
    clock[BYTES] += ranks.bytes[message]
    clock[LAST_DELIVERY] = clock[NOW]
    clock[POINT_LATENCY] += latency
    if tally[DELIVERED] % ranks.every == 0:
        row = tally[POINTS]
        points[row, 0], points[row, 1] = clock[NOW], clock[BYTES]
        points[row, 2] = clock[POINT_LATENCY] / ranks.every
        clock[POINT_LATENCY] = 0.0
        tally[POINTS] = row + 1
