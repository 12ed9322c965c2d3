"""Flits through switches by wormhole switching, cycle by cycle.

Follows the methodology of Duato, "A new theory of deadlock-free adaptive routing in wormhole networks",
1993, that Orduña, Silla and Duato 2004 (section 5.1) measure with. The head flit of a packet claims a
channel, which then is the packet's own until its tail has left; the flits follow as far as there are credits.
Each cycle: flits come in, head flits are given channels, packets at their goals are taken up, then every
link sends a flit of one of its channels. A flit that is sent in cycle c is in the next buffer in cycle c plus
the link's cycles, and may go on then. Room that it leaves is known at the near end in the next cycle.

Several heads that want one channel, and several channels of one link, take turns (round robin).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mapping.kernels.channels import Channels, Ends
from mapping.kernels.event_queue import WAITING, WHAT, EventQueue, drop_first
from mapping.kernels.flit_moves import (
    ALIVE,
    CARRIED,
    COUNT,
    CREDIT,
    CYCLE,
    EMPTY,
    FIRST,
    FLYING,
    FREE,
    IDLE_AT,
    LAST_OWNER,
    NONE,
    OUT,
    OWNER,
    SENT,
    TAKEN_UP,
    TOUCHED,
    TURN,
    WHOLE,
    WISH,
    WISHES,
    Flits,
    come_in,
    give_back,
    know_of_room,
    pop,
    send_flit,
)
from mapping.kernels.next_hops import ADAPTIVE, RANDOM, NextHops, mixed_below, segment_of
from mapping.kernels.packet_moves import ENDED, FULL, MORE
from mapping.kernels.paths import HopArray
from mapping.kernels.random_numbers import below
from mapping.kernels.simulated_ranks import (
    GOAL_PORT,
    KIND_BITS,
    MESSAGE,
    NOW,
    PAYLOAD,
    ROUND,
    ROUND_LEFT,
    SIZE,
    STATE,
    Ranks,
    after_packet,
    arrive,
    make_packet,
    next_round,
    offer,
)
from registry.model import Ints, Longs


@njit(cache=True, nogil=True, error_model="numpy")
def run_flits(
    hops_on: NextHops,
    ranks: Ranks,
    ends: Ends,
    hops: HopArray,
    room: Channels,
    queue: EventQueue,
    state: Flits,
    limit: int,
) -> int:
    """Let up to `limit` cycles pass in which something may move.

    Returns
    -------
    int
        `MORE`, `ENDED` or `FULL`.
    """
    count, clock, cycle_seconds = state.counts, ranks.clock, state.cycle_seconds
    ports = len(hops_on.start)
    for _ in range(limit):
        if count[FREE] < 2 * ports + 2 or queue.counts[WAITING] + len(ranks.host) + 8 > len(queue.time):
            return FULL
        clock[NOW] = count[CYCLE] * cycle_seconds
        moved = come_in(state, hops_on.width) if count[FLYING] > 0 else 0
        moved += know_of_room(state)
        moved += _begin(hops_on, ranks, ends, hops, room, queue, state)
        if count[ALIVE] > 0:
            moved += _give_channels(hops_on, state)
            moved += _take_up(ranks, state)
            moved += _send(hops_on, ranks, ends, hops, room, queue, state)
        more_rounds = ranks.tally[ROUND_LEFT] <= 0 and ranks.tally[ROUND] + 1 < len(ranks.in_round)
        count[CYCLE] += 1
        if moved == 0 and count[FLYING] == 0 and count[TOUCHED] == 0 and not more_rounds:
            next_cycle = _next_cycle(queue, state)
            if next_cycle < 0:
                return ENDED
            count[CYCLE] = max(count[CYCLE], next_cycle)
    clock[NOW] = count[CYCLE] * cycle_seconds
    return MORE


@njit(cache=True, nogil=True)
def _next_cycle(queue: EventQueue, state: Flits) -> int:
    """When something may move again though nothing does now; -1 never."""
    count, link, soonest = state.counts, state.link, -1
    if queue.counts[WAITING] > 0:
        soonest = int(np.ceil(queue.time[0] / state.cycle_seconds - 1e-9))
    if count[ALIVE] > 0:
        for row in range(len(link)):
            at = link[row, IDLE_AT]
            if at >= count[CYCLE] and (soonest < 0 or at < soonest):
                soonest = at
    return soonest


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(
    hops_on: NextHops,
    ranks: Ranks,
    ends: Ends,
    hops: HopArray,
    room: Channels,
    queue: EventQueue,
    state: Flits,
) -> int:
    """Begin a round if it is time, and messages that are ready by now; how many ports have something new."""
    clock, begun = ranks.clock, 0
    while next_round(ranks):
        for rank in range(len(ranks.host)):
            port = offer(ranks, ends, hops, room, queue, rank)
            if port >= 0:
                _load(hops_on, ranks, state, port)
            begun += 1
    soon = clock[NOW] + 1e-9 * state.cycle_seconds
    while queue.counts[WAITING] > 0 and queue.time[0] <= soon:
        rank = queue.event[0, WHAT] >> KIND_BITS
        clock[NOW] = max(clock[NOW], queue.time[0])
        drop_first(queue.time, queue.event, queue.counts)
        port = offer(ranks, ends, hops, room, queue, rank)
        if port >= 0:
            _load(hops_on, ranks, state, port)
        begun += 1
    return begun


@njit(cache=True, nogil=True)
def _load(hops_on: NextHops, ranks: Ranks, state: Flits, port: int) -> None:
    """Make the next packet of the first rank in line at a port."""
    place = len(state.channel) + port
    state.counts[FREE] -= 1
    state.counts[ALIVE] += 1
    p = state.free[state.counts[FREE]]
    size = state.header_bytes + make_packet(ranks, state.packet, p, port, hops_on.start[port])
    flits = max((size + state.flit_bytes - 1) // state.flit_bytes, 1)
    state.packet[p, SIZE] = flits
    state.worm[place, 0, 0], state.worm[place, 0, 1] = p, flits
    buffer = state.buffer
    buffer[place, FIRST], buffer[place, COUNT], buffer[place, WHOLE] = 0, 1, 1
    buffer[place, SENT], buffer[place, OUT] = 0, NONE


@njit(cache=True, nogil=True)
def _give_channels(hops_on: NextHops, state: Flits) -> int:
    """Head flits at the front of their buffers claim free channels; how many got one."""
    buffer, worm, channel, choice = state.buffer, state.worm, state.channel, hops_on.choice
    wanted, winner, lanes, places = state.wanted, state.winner, hops_on.lanes, len(state.buffer)
    claims, moved = 0, 0
    for place in range(places):
        if buffer[place, COUNT] == 0 or buffer[place, OUT] != NONE:
            continue
        slot = buffer[place, FIRST]
        if worm[place, slot, 1] == 0:
            continue
        if buffer[place, WISH] < 0:
            if not _wish(hops_on, state, place, worm[place, slot, 0]):
                buffer[place, OUT] = TAKEN_UP
                moved += 1
                continue
        elif not _any_free(buffer[place, WISH], buffer[place, WISHES], choice, lanes, channel, state.alone):
            continue
        d = _choose(hops_on, state, place)
        if d >= 0:
            if winner[d] < 0:
                winner[d], wanted[claims] = place, d
                claims += 1
            elif _distance(channel[d, LAST_OWNER], place, places) < _distance(
                channel[d, LAST_OWNER], winner[d], places
            ):
                winner[d] = place
    for k in range(claims):
        _claim(wanted[k], hops_on.state_of, state)
    return moved + claims


@njit(inline="always")
def _claim(d: int, state_of: Ints, state: Flits) -> None:
    """A channel becomes the own one of the packet that has won it."""
    buffer, worm = state.buffer, state.worm
    place = state.winner[d]
    state.winner[d] = -1
    state.channel[d, OWNER], state.channel[d, LAST_OWNER] = place, place
    buffer[place, OUT] = d
    p = worm[place, buffer[place, FIRST], 0]
    state.packet[p, STATE] = state_of[d]
    slot = (buffer[d, FIRST] + buffer[d, COUNT]) % worm.shape[1]
    worm[d, slot, 0], worm[d, slot, 1] = p, 0
    buffer[d, COUNT] += 1


@njit(inline="always")
def _distance(last: int, place: int, places: int) -> int:
    """How many turns after the last one a buffer's turn comes."""
    return (place - last - 1 + places) % places


@njit(inline="always")
def _wish(hops_on: NextHops, state: Flits, place: int, p: int) -> bool:
    """Look up which channels a head flit at the front may claim; False where it is at its goal."""
    packet, ptr = state.packet, hops_on.ptr
    segment = segment_of(ptr, hops_on.states, hops_on.up, hops_on.down, packet, p, place, len(state.channel))
    if segment < 0:
        return False
    first, last = ptr[segment], ptr[segment + 1]
    if hops_on.selection != ADAPTIVE and last - first > 1:
        if hops_on.selection == RANDOM:
            first += below(state.random, last - first)
        else:
            first += mixed_below(packet[p, GOAL_PORT], packet[p, STATE], last - first)
        last = first + 1
    state.buffer[place, WISH], state.buffer[place, WISHES] = first, last
    return True


@njit(inline="always")
def _any_free(first: int, last: int, choice: Ints, lanes: int, channel: Longs, alone: bool) -> bool:
    for c in range(first, last):
        for d in range(choice[c], choice[c] + lanes):
            if channel[d, OWNER] < 0 and channel[d, CREDIT] >= (channel[d, EMPTY] if alone else 1):
                return True
    return False


@njit(inline="always")
def _choose(hops_on: NextHops, state: Flits, place: int) -> int:
    """The channel that a packet claims, of the lowest class, of most room, of equals any; `NONE`."""
    channel, choice, lanes, width = state.channel, hops_on.choice, hops_on.lanes, hops_on.width
    best, most_room, equals, lowest = NONE, -1, 0, 0
    for c in range(state.buffer[place, WISH], state.buffer[place, WISHES]):
        of_class = choice[c] % width // lanes
        if best >= 0 and of_class > lowest:
            break
        lowest = of_class
        for d in range(choice[c], choice[c] + lanes):
            if channel[d, OWNER] >= 0 or channel[d, CREDIT] < (channel[d, EMPTY] if state.alone else 1):
                continue
            if channel[d, CREDIT] > most_room:
                best, most_room, equals = d, channel[d, CREDIT], 1
            elif channel[d, CREDIT] == most_room:
                equals += 1
                if below(state.random, equals) == 0:
                    best = d
    return best


@njit(cache=True, nogil=True)
def _take_up(ranks: Ranks, state: Flits) -> int:
    """Packets at their goals are taken up as far as they have come; how many buffers have moved."""
    buffer, worm, packet, count, moved = state.buffer, state.worm, state.packet, state.counts, 0
    for place in range(len(state.channel)):
        if buffer[place, OUT] != TAKEN_UP:
            continue
        slot = buffer[place, FIRST]
        flits = worm[place, slot, 1] - buffer[place, SENT]
        if flits == 0:
            continue
        moved += 1
        buffer[place, SENT] += flits
        give_back(state, place, flits)
        p = worm[place, slot, 0]
        if buffer[place, SENT] == packet[p, SIZE]:
            pop(state, place)
            state.free[count[FREE]] = p
            count[FREE] += 1
            count[ALIVE] -= 1
            arrive(ranks, packet[p, MESSAGE])
    return moved


@njit(cache=True, nogil=True, error_model="numpy")
def _send(
    hops_on: NextHops,
    ranks: Ranks,
    ends: Ends,
    hops: HopArray,
    room: Channels,
    queue: EventQueue,
    state: Flits,
) -> int:
    """Every link sends a flit of one of its channels, if one can go; how many did."""
    link, channel, buffer, worm, count = state.link, state.channel, state.buffer, state.worm, state.counts
    cycle, width, channels, moved = count[CYCLE], hops_on.width, len(state.channel), 0
    for row in range(len(link)):
        if link[row, IDLE_AT] > cycle:
            continue
        for step in range(width):
            lane = (link[row, TURN] + 1 + step) % width
            d = row * width + lane
            place = channel[d, OWNER]
            if place < 0 or channel[d, CREDIT] == 0:
                continue
            slot = buffer[place, FIRST]
            if worm[place, slot, 1] <= buffer[place, SENT]:
                continue
            moved += 1
            link[row, TURN] = lane
            send_flit(state, row, lane, d, place)
            p = worm[place, slot, 0]
            if buffer[place, SENT] == state.packet[p, SIZE]:
                link[row, CARRIED] += state.packet[p, PAYLOAD]
                channel[d, OWNER] = NONE
                pop(state, place)
                if place >= channels:
                    port = place - channels
                    other = after_packet(ranks, ends, hops, room, queue, port)
                    if ranks.line[port, 0] >= 0:
                        _load(hops_on, ranks, state, port)
                    if other >= 0 and other != port:
                        _load(hops_on, ranks, state, other)
            break
    return moved
