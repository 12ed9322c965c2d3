"""Single moves of packets between buffers: waiting, being chosen, being sent; see `packet_simulation`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import inner
from mapping.kernels.random_numbers import State, below
from mapping.simulation.kernels.event_queue import EventLines, EventQueue, put_behind, put_in
from mapping.simulation.kernels.next_hops import NextHops
from mapping.simulation.kernels.simulated_ranks import AT, HOPS, KIND_BITS, NEXT, PAYLOAD, READY, SIZE, STATE
from registry.model import Floats, Ints, Longs

HEAD_CAME, TAIL_LEFT, ROOM, DELIVER = range(READY + 1, READY + 5)
"""Kinds of events: the head of a packet reaches a buffer, the tail has left by a link, the sender
learns of free room, the tail has reached its goal."""
KIND = (1 << KIND_BITS) - 1
INDEX_BITS = 31
INDEX = (1 << INDEX_BITS) - 1
LARGEST_PACKET = 1 << 29
"""Size of the largest packet in bytes that fits into an event."""
SOON, LEAVING, ARRIVING = range(3)
"""Lines of events (`event_queue.EventLines`): due a link's latency from now (a head arrives, free room is
known), tails that leave, packets at goals. Each is in order if links are equal and packets full."""
CAPACITY, LATENCY, SINCE, BUSY = range(4)
"""Columns of ``Packets.link``: bytes/s, seconds, when the present packet began, seconds of sending."""
WHO, HOW_MUCH, BODY, CARRIED = range(4)
"""Columns of ``Packets.sending``: buffer whose packet a link sends (-1 idle), its size, the message's part of
it, such parts summed."""
CREDIT, FIRST, LAST = range(3)
"""Columns of ``Packets.channel``: bytes of room known of, first and last entry that waits (-1)."""
HEAD, TAIL, READING, WAITS, TICKET = range(5)
"""Columns of ``Packets.buffer``: first and last packet (-1), whether one is leaving, channels that the first
waits for, since when (a number)."""
CHANNEL, LATER, EARLIER = range(3)
"""Columns of ``Packets.entry``: channel that is waited for, entries after and before this one (-1)."""
TICKETS = HOPS + 1
"""Further place in ``Packets.counts``: tickets given."""


class Packets(NamedTuple):
    """A packet-level simulation; changed in place.

    Buffers are numbered like channels, followed by those of sending ports.
    """

    link: Floats
    sending: Longs
    """float64[m, 4] and int64[m, 4]."""
    channel: Longs
    buffer: Longs
    """int64[channels, 3] and int64[channels + ports, 5]."""
    entry: Ints
    """int32[(channels + ports) * most, 3]: Those of one buffer are adjacent."""
    packet: Ints
    tail_at: Floats
    """int32[k, 8] and float64[k]: When the tail is where the head is now."""
    free: Ints
    """int32[k]."""
    ask: Longs
    """int64[ports + 4]: Memory for buffers whose first packet needs its next channel."""
    counts: Longs
    """int64[3]."""
    header_bytes: int
    random: State
    """uint64[1]."""


@inner
def room_event(place: int, size: int) -> int:
    """Return the event that a channel has so many more bytes of room."""
    return ROOM | (place << KIND_BITS) | (size << (KIND_BITS + INDEX_BITS))


@inner
def free_channel(hops_on: NextHops, state: Packets, first: int, last: int, size: int) -> int:
    """Return the channel with most room that a packet may take at once, of the lowest class, or -1.

    At equality one is drawn.
    """
    lanes, width, sending, channel = hops_on.lanes, hops_on.width, state.sending, state.channel
    best, most_room, equals, lowest = -1, 0, 0, 0
    for c in range(first, last):
        base = hops_on.choice[c]
        row = base if width == 1 else base // width
        if width > lanes:
            of_class = (base - row * width) // lanes
            if best >= 0 and of_class > lowest:
                break
            lowest = of_class
        if sending[row, WHO] >= 0:
            continue
        for d in range(base, base + lanes):
            credit = channel[d, CREDIT]
            if channel[d, FIRST] >= 0 or credit < size:
                continue
            if best < 0 or credit > most_room:
                best, most_room, equals = d, credit, 1
            elif credit == most_room:
                equals += 1
                if below(state.random, equals) == 0:
                    best = d
    return best


@inner
def wait(hops_on: NextHops, state: Packets, place: int, first: int, last: int) -> None:
    """Let the first packet of a buffer wait for all these channels."""
    channel, entry = state.channel, state.entry
    e = place * hops_on.most
    for c in range(first, last):
        for d in range(hops_on.choice[c], hops_on.choice[c] + hops_on.lanes):
            earlier = channel[d, LAST]
            entry[e, CHANNEL], entry[e, LATER], entry[e, EARLIER] = d, -1, earlier
            if earlier >= 0:
                entry[earlier, LATER] = e
            else:
                channel[d, FIRST] = e
            channel[d, LAST] = e
            e += 1
    state.buffer[place, WAITS] = e - place * hops_on.most
    state.buffer[place, TICKET] = state.counts[TICKETS]
    state.counts[TICKETS] += 1


@inner
def longest_waiting(hops_on: NextHops, state: Packets, row: int) -> int:
    """Return the entry that waits longest of the first ones at a link's channels with room, or -1."""
    channel, buffer = state.channel, state.buffer
    best, ticket = -1, 0
    for d in range(row * hops_on.width, (row + 1) * hops_on.width):
        e = channel[d, FIRST]
        if e >= 0:
            place = e // hops_on.most
            fits = state.packet[buffer[place, HEAD], SIZE] <= channel[d, CREDIT]
            if fits and (best < 0 or buffer[place, TICKET] < ticket):
                best, ticket = e, buffer[place, TICKET]
    return best


@inner
def lane_with_most_room(hops_on: NextHops, state: Packets, waits: int, row: int) -> int:
    """Return the lane of an entry's class with most room, which the waiting packet takes.

    Lanes for which another packet has waited longer are left to that one; at equality the lowest is taken.
    """
    entry, channel, lanes = state.entry, state.channel, hops_on.lanes
    taken = int(np.int64(entry[waits, CHANNEL]))
    if lanes == 1:
        return taken
    first_lane = taken - (taken - row * hops_on.width) % lanes
    place = waits // hops_on.most
    for e in range(place * hops_on.most, place * hops_on.most + state.buffer[place, WAITS]):
        d = int(np.int64(entry[e, CHANNEL]))
        of_class = first_lane <= d < first_lane + lanes
        if of_class and entry[e, EARLIER] < 0 and channel[d, CREDIT] > channel[taken, CREDIT]:
            taken = d
    return taken


@inner
def take_out(state: Packets, place: int) -> None:
    """Let the first packet of a buffer start to leave."""
    buffer, packet = state.buffer, state.packet
    after = packet[buffer[place, HEAD], NEXT]
    packet[buffer[place, HEAD], NEXT] = -1
    buffer[place, HEAD] = after
    if after < 0:
        buffer[place, TAIL] = -1
    buffer[place, READING] = 1


@inner
def send(
    hops_on: NextHops, queue: EventQueue, lines: EventLines, state: Packets, now: float, place: int, d: int
) -> None:
    """Let the first packet of a buffer start to cross a channel, which is free."""
    packet, link, sending = state.packet, state.link, state.sending
    p, row = state.buffer[place, HEAD], d if hops_on.width == 1 else d // hops_on.width
    size, latency = packet[p, SIZE], link[row, LATENCY]
    if state.buffer[place, WAITS] > 0:
        _stop_waiting(hops_on, queue, state, now, place, d)
    take_out(state, place)
    state.channel[d, CREDIT] -= size
    leaves = max(now + size / link[row, CAPACITY], state.tail_at[p])
    sending[row, WHO], sending[row, HOW_MUCH], sending[row, BODY] = place, size, packet[p, PAYLOAD]
    link[row, SINCE] = now
    state.counts[HOPS] += 1
    state.tail_at[p] = leaves + latency
    packet[p, AT], packet[p, STATE] = d, hops_on.state_of[d]
    put_behind(queue, lines, LEAVING, leaves, TAIL_LEFT | (row << KIND_BITS))
    if hops_on.state_of[d] < 0:
        put_behind(queue, lines, ARRIVING, leaves + latency, DELIVER | (p << KIND_BITS))
    else:
        put_behind(queue, lines, SOON, now + latency, HEAD_CAME | (p << KIND_BITS))


@inner
def _stop_waiting(
    hops_on: NextHops, queue: EventQueue, state: Packets, now: float, place: int, taken: int
) -> None:
    """Remove the first packet of a buffer from all its queues, since it takes one of the channels."""
    channel, entry, width = state.channel, state.entry, hops_on.width
    for e in range(place * hops_on.most, place * hops_on.most + state.buffer[place, WAITS]):
        d, later, earlier = int(np.int64(entry[e, CHANNEL])), entry[e, LATER], entry[e, EARLIER]
        if later >= 0:
            entry[later, EARLIER] = earlier
        else:
            channel[d, LAST] = earlier
        if earlier >= 0:
            entry[earlier, LATER] = later
        else:
            channel[d, FIRST] = later
            row = d if width == 1 else d // width
            if later >= 0 and d != taken and state.sending[row, WHO] < 0:
                # Who is first now may be smaller than what room was missing for.
                put_in(queue, now, room_event(d, 0))
    state.buffer[place, WAITS] = 0
