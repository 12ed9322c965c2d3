"""Packets through switches by virtual cut-through, event by event.

A packet may leave a buffer when its head is there, the link is idle and the next buffer has room for all of
it (Kermani and Kleinrock, "Virtual cut-through: a new computer communication switching technique", 1979). Its
head arrives after the link's latency; its tail when the link has sent all its bytes, and never before it has
arrived itself. When the tail has left, the link and the exit of the buffer are idle again, and the free room
is known at the near end of the link by which it came after that link's latency (credits).

Buffers are queues: only the first packet may leave. Packets that wait for a channel get it in the order in
which they began to wait; a small packet does not overtake a large one that waits for room. A packet that may
take several channels waits for all of them. Events of one time happen in the order of their causes.
"""

from __future__ import annotations

from numba import njit

from mapping.simulation.kernels.event_queue import (
    FIRST,
    LINES,
    WAITING,
    WHAT,
    EventLines,
    EventQueue,
    drop_first,
    drop_front,
    put_behind,
    put_in,
    soonest,
)
from mapping.simulation.kernels.next_hops import NextHops, channels_of, next_set
from mapping.simulation.kernels.packet_moves import (
    BODY,
    BUSY,
    CARRIED,
    CREDIT,
    DELIVER,
    HEAD,
    HEAD_CAME,
    HOW_MUCH,
    INDEX,
    INDEX_BITS,
    KIND,
    LATENCY,
    READING,
    ROOM,
    SINCE,
    SOON,
    TAIL,
    TAIL_LEFT,
    WHO,
    Packets,
    free_channel,
    lane_with_most_room,
    longest_waiting,
    room_event,
    send,
    take_out,
    wait,
)
from mapping.simulation.kernels.simulated_ranks import (
    AT,
    ENDED,
    FREE,
    FULL,
    KIND_BITS,
    MESSAGE,
    MORE,
    NEXT,
    NOW,
    ROUND,
    ROUND_LEFT,
    SIZE,
    Ranks,
    after_packet,
    arrive,
    make_packet,
    next_round,
    offer,
)


@njit(cache=True, nogil=True, error_model="numpy")
def run_packets(
    hops_on: NextHops, ranks: Ranks, queue: EventQueue, lines: EventLines, state: Packets, limit: int
) -> int:
    """Process up to `limit` events.

    This is one function, since numba counts references to every array passed to a call, at a multiple of the
    cost of an event: arrays are taken out of their tuples once, and the functions called here are inlined.

    Returns
    -------
    int
        `MORE`, `ENDED` or `FULL`.
    """
    time, event, waiting = queue.time, queue.event, queue.counts
    line_time, line_event, line_ends = lines.time, lines.event, lines.ends
    packet, tail_at, free, counts, ask = state.packet, state.tail_at, state.free, state.counts, state.ask
    link, sending, channel = state.link, state.sending, state.channel
    buffer, entry, random = state.buffer, state.entry, state.random
    ptr, choice, state_of, start = hops_on.ptr, hops_on.choice, hops_on.state_of, hops_on.start
    set_of = hops_on.set_of
    lanes, width, states, most = hops_on.lanes, hops_on.width, hops_on.states, hops_on.most
    up, down, selection = hops_on.up, hops_on.down, hops_on.selection
    tally, clock, line = ranks.tally, ranks.clock, ranks.line
    channels, ports, rounds = len(channel), len(start), len(ranks.in_round)
    space = len(time) - len(ranks.host) - 2 * ports - most - 16
    for _ in range(limit):
        if counts[FREE] < ports + 2 or waiting[WAITING] > space:
            return FULL
        asks, freed = 0, -1
        if tally[ROUND_LEFT] <= 0 and tally[ROUND] + 1 < rounds:
            next_round(ranks)
            for rank in range(len(ranks.host)):
                port = offer(ranks, queue, rank)
                if port >= 0:
                    ask[asks] = channels + port
                    asks += 1
        else:
            where = soonest(line_time, line_event, line_ends, time, event, waiting)
            if where < 0:
                return ENDED
            if where == LINES:
                now, what = time[0], event[0, WHAT]
                drop_first(time, event, waiting)
            else:
                first = line_ends[where, FIRST]
                now, what = line_time[where, first], line_event[where, first, WHAT]
                drop_front(where, line_time, line_ends)
            clock[NOW] = now
            kind, index = what & KIND, (what >> KIND_BITS) & INDEX
            if kind == HEAD_CAME:
                place = packet[index, AT]
                if buffer[place, HEAD] < 0:
                    buffer[place, HEAD], buffer[place, TAIL] = index, index
                    asks = 1 - buffer[place, READING]
                    ask[0] = place
                else:
                    packet[buffer[place, TAIL], NEXT] = index
                    buffer[place, TAIL] = index
            elif kind == TAIL_LEFT:
                freed, place = index, sending[index, WHO]
                sending[index, WHO] = -1
                sending[index, CARRIED] += sending[index, BODY]
                link[index, BUSY] += now - link[index, SINCE]
                buffer[place, READING] = 0
                if place < channels:
                    known = now + link[place if width == 1 else place // width, LATENCY]
                    put_behind(
                        SOON, line_time, line_event, line_ends, time, event, waiting,
                        known, room_event(place, sending[index, HOW_MUCH]),
                    )  # fmt: skip
                    asks = 1 if buffer[place, HEAD] >= 0 else 0
                    ask[0] = place
                else:
                    other = after_packet(ranks, queue, place - channels)
                    if line[place - channels, 0] >= 0:
                        ask[0] = place
                        asks = 1
                    if other >= 0 and other != place - channels:
                        ask[asks] = channels + other
                        asks += 1
            elif kind == ROOM:
                channel[index, CREDIT] += what >> (KIND_BITS + INDEX_BITS)
                freed = index if width == 1 else index // width
            elif kind == DELIVER:
                place, message = packet[index, AT], packet[index, MESSAGE]
                known = now + link[place if width == 1 else place // width, LATENCY]
                put_behind(
                    SOON, line_time, line_event, line_ends, time, event, waiting,
                    known, room_event(place, packet[index, SIZE]),
                )  # fmt: skip
                free[counts[FREE]] = index
                counts[FREE] += 1
                buffer[place, READING] = 0
                asks = 1 if buffer[place, HEAD] >= 0 else 0
                ask[0] = place
                arrive(ranks, message)
            else:
                port = offer(ranks, queue, index)
                if port >= 0:
                    ask[0] = channels + port
                    asks = 1
        now = clock[NOW]
        # First who waits for a link that may be free now, then, one by one, who has come to the front.
        a = -1 if freed >= 0 and sending[freed, WHO] < 0 else 0
        while a < asks:
            place, chosen, first, last = -1, -1, 0, 0
            if a < 0:
                waits = longest_waiting(freed, width, most, packet, channel, buffer)
                if waits >= 0:
                    place = waits // most
                    chosen = lane_with_most_room(waits, freed, width, lanes, most, channel, buffer, entry)
            else:
                place = ask[a]
                if place >= channels and buffer[place, HEAD] < 0:
                    counts[FREE] -= 1
                    made = free[counts[FREE]]
                    size = make_packet(ranks, packet, made, place - channels, start[place - channels])
                    packet[made, SIZE] = state.header_bytes + size
                    tail_at[made] = 0.0
                    buffer[place, HEAD], buffer[place, TAIL] = made, made
                p = buffer[place, HEAD]
                segment = next_set(set_of, ptr, states, up, down, packet, p, place, channels)
                if segment < 0:
                    take_out(buffer, packet, place)
                    put_in(time, event, waiting, max(now, tail_at[p]), DELIVER | (p << KIND_BITS))
                    a += 1
                    continue
                first, last = channels_of(ptr, segment, selection, packet, p, random)
                size = packet[p, SIZE]
                chosen = free_channel(first, last, choice, lanes, width, size, sending, channel, random)
            if chosen >= 0:
                send(
                    now, place, chosen, width, most, state_of, packet, tail_at,
                    link, sending, channel, buffer, entry, counts, time, event, waiting,
                    line_time, line_event, line_ends,
                )  # fmt: skip
            elif place >= 0:
                wait(place, first, last, choice, lanes, most, channel, buffer, entry, counts)
            a += 1
    return MORE
