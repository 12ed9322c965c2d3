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

from mapping.kernels.decorators import inner, kernel
from mapping.simulation.kernels.event_queue import (
    WAITING,
    EventLines,
    EventQueue,
    put_behind,
    put_in,
    soonest,
    take,
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


@kernel
def run_packets(
    hops_on: NextHops, ranks: Ranks, queue: EventQueue, lines: EventLines, state: Packets, limit: int
) -> int:
    """Process up to `limit` events.

    Returns:
        `MORE`, `ENDED` or `FULL`.
    """
    ports, rounds, tally = len(hops_on.start), len(ranks.in_round), ranks.tally
    space = len(queue.time) - len(ranks.host) - 2 * ports - hops_on.most - 16
    for _ in range(limit):
        if state.counts[FREE] < ports + 2 or queue.counts[WAITING] > space:
            return FULL
        if tally[ROUND_LEFT] <= 0 and tally[ROUND] + 1 < rounds:
            asks, freed = _begin_round(ranks, queue, state), -1
        else:
            where = soonest(queue, lines)
            if where < 0:
                return ENDED
            ranks.clock[NOW], what = take(queue, lines, where)
            asks, freed = _happen(hops_on, ranks, queue, lines, state, what)
        # First who waits for a link that may be free now, then, one by one, who has come to the front.
        if freed >= 0 and state.sending[freed, WHO] < 0:
            _use_again(hops_on, ranks, queue, lines, state, freed)
        for a in range(asks):
            _ask(hops_on, ranks, queue, lines, state, state.ask[a])
    return MORE


@inner
def _begin_round(ranks: Ranks, queue: EventQueue, state: Packets) -> int:
    """Start the next round; return the number of buffers whose first packet needs its next channel."""
    asks = 0
    next_round(ranks)
    for rank in range(len(ranks.host)):
        port = offer(ranks, queue, rank)
        if port >= 0:
            state.ask[asks] = len(state.channel) + port
            asks += 1
    return asks


@inner
def _happen(
    hops_on: NextHops, ranks: Ranks, queue: EventQueue, lines: EventLines, state: Packets, what: int
) -> tuple[int, int]:
    """Process an event.

    Returns:
        Number of buffers in ``state.ask`` whose first packet needs its next channel, and the link that may be
        free now, or -1.
    """
    packet, buffer, ask, channels = state.packet, state.buffer, state.ask, len(state.channel)
    kind, index, asks, freed = what & KIND, (what >> KIND_BITS) & INDEX, 0, -1
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
        freed, place = index, state.sending[index, WHO]
        state.sending[index, WHO] = -1
        state.sending[index, CARRIED] += state.sending[index, BODY]
        state.link[index, BUSY] += ranks.clock[NOW] - state.link[index, SINCE]
        if place < channels:
            asks = _leave(hops_on, ranks, queue, lines, state, place, state.sending[index, HOW_MUCH])
        else:
            buffer[place, READING] = 0
            other = after_packet(ranks, queue, place - channels)
            if ranks.line[place - channels, 0] >= 0:
                ask[0] = place
                asks = 1
            if other >= 0 and other != place - channels:
                ask[asks] = channels + other
                asks += 1
    elif kind == ROOM:
        state.channel[index, CREDIT] += what >> (KIND_BITS + INDEX_BITS)
        freed = index if hops_on.width == 1 else index // hops_on.width
    elif kind == DELIVER:
        asks = _leave(hops_on, ranks, queue, lines, state, packet[index, AT], packet[index, SIZE])
        state.free[state.counts[FREE]] = index
        state.counts[FREE] += 1
        arrive(ranks, packet[index, MESSAGE])
    else:
        port = offer(ranks, queue, index)
        if port >= 0:
            ask[0] = channels + port
            asks = 1
    return asks, freed


@inner
def _leave(
    hops_on: NextHops,
    ranks: Ranks,
    queue: EventQueue,
    lines: EventLines,
    state: Packets,
    place: int,
    size: int,
) -> int:
    """Let the tail of a packet leave the buffer of a channel; return 1 if another packet is there, else 0."""
    row = place if hops_on.width == 1 else place // hops_on.width
    known = ranks.clock[NOW] + state.link[row, LATENCY]
    put_behind(queue, lines, SOON, known, room_event(place, size))
    state.buffer[place, READING] = 0
    state.ask[0] = place
    return 1 if state.buffer[place, HEAD] >= 0 else 0


@inner
def _use_again(
    hops_on: NextHops, ranks: Ranks, queue: EventQueue, lines: EventLines, state: Packets, row: int
) -> None:
    """Let the packet that waits longest for an idle link cross it, if there is one."""
    waits = longest_waiting(hops_on, state, row)
    if waits >= 0:
        chosen = lane_with_most_room(hops_on, state, waits, row)
        send(hops_on, queue, lines, state, ranks.clock[NOW], waits // hops_on.most, chosen)


@inner
def _ask(
    hops_on: NextHops, ranks: Ranks, queue: EventQueue, lines: EventLines, state: Packets, place: int
) -> None:
    """Let the first packet of a buffer take its next channel, wait for it, or reach its goal."""
    packet, buffer, channels, now = state.packet, state.buffer, len(state.channel), ranks.clock[NOW]
    if place >= channels and buffer[place, HEAD] < 0:
        state.counts[FREE] -= 1
        made = state.free[state.counts[FREE]]
        size = make_packet(ranks, packet, made, place - channels, hops_on.start[place - channels])
        packet[made, SIZE] = state.header_bytes + size
        state.tail_at[made] = 0.0
        buffer[place, HEAD], buffer[place, TAIL] = made, made
    p = buffer[place, HEAD]
    segment = next_set(hops_on, packet, p, place, channels)
    if segment < 0:
        take_out(state, place)
        put_in(queue, max(now, state.tail_at[p]), DELIVER | (p << KIND_BITS))
        return
    first, last = channels_of(hops_on, segment, packet, p, state.random)
    chosen = free_channel(hops_on, state, first, last, packet[p, SIZE])
    if chosen >= 0:
        send(hops_on, queue, lines, state, now, place, chosen)
    else:
        wait(hops_on, state, place, first, last)
