"""Flits through switches by wormhole switching, cycle by cycle.

Follows the methodology of Duato, "A new theory of deadlock-free adaptive routing in wormhole networks",
1993, with which Orduña, Silla and Duato 2004 (section 5.1) measure. The head flit of a packet claims a
channel, which belongs to the packet until its tail has left; the flits follow as far as there are credits.
In each cycle flits arrive, head flits are given channels, packets at their goals are removed, and then every
link sends a flit of one of its channels. A flit that is sent in cycle c is in the next buffer in cycle c plus
the link's cycles, and may then continue. Its free room is known at the near end in the next cycle.

Several heads that want one channel, and several channels of one link, take turns (round robin).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mapping.simulation.kernels.event_queue import WAITING, WHAT, EventQueue, drop_first
from mapping.simulation.kernels.flit_moves import (
    ALIVE,
    COUNT,
    CYCLE,
    FIRST,
    FLYING,
    IDLE_AT,
    NONE,
    OUT,
    SENT,
    TOUCHED,
    WHOLE,
    Flits,
    come_in,
    give_channels,
    know_of_room,
    send_flits,
    take_up,
)
from mapping.simulation.kernels.next_hops import NextHops
from mapping.simulation.kernels.simulated_ranks import (
    ENDED,
    FREE,
    FULL,
    KIND_BITS,
    MESSAGE,
    MORE,
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
from registry.model import Floats, Ints, Longs


@njit(cache=True, nogil=True, error_model="numpy")
def run_flits(hops_on: NextHops, ranks: Ranks, queue: EventQueue, state: Flits, limit: int) -> int:
    """Process up to `limit` cycles in which something may move.

    This is one function, like `packet_simulation.run_packets`: arrays are taken out of their tuples once.

    Returns
    -------
    int
        `MORE`, `ENDED` or `FULL`.
    """
    count, clock, tally, cycle_seconds = state.counts, ranks.clock, ranks.tally, state.cycle_seconds
    link, channel, buffer, flight = state.link, state.channel, state.buffer, state.flight
    worm, packet, free, touched = state.worm, state.packet, state.free, state.touched
    wanted, winner, done = state.wanted, state.winner, state.done
    random, exclusive = state.random, state.exclusive
    flit_bytes, header_bytes = state.flit_bytes, state.header_bytes
    ptr, choice, state_of, start = hops_on.ptr, hops_on.choice, hops_on.state_of, hops_on.start
    set_of = hops_on.set_of
    lanes, width, states, selection = hops_on.lanes, hops_on.width, hops_on.states, hops_on.selection
    up, down, line = hops_on.up, hops_on.down, ranks.line
    time, event, waiting = queue.time, queue.event, queue.counts
    many_ranks, rounds, ports = len(ranks.host), len(ranks.in_round), len(start)
    space, depth = len(time) - many_ranks - 8, len(flight)
    for _ in range(limit):
        if count[FREE] < 2 * ports + 2 or waiting[WAITING] > space:
            return FULL
        clock[NOW] = count[CYCLE] * cycle_seconds
        now, moved = count[CYCLE] % depth, 0
        if count[FLYING] > 0:
            moved += come_in(now, width, flight, worm, buffer, packet, count)
        moved += know_of_room(channel, touched, count)
        # Rounds whose time it is, and messages that are ready by now.
        while tally[ROUND_LEFT] <= 0 and tally[ROUND] + 1 < rounds:
            next_round(ranks)
            for rank in range(many_ranks):
                port = offer(ranks, queue, rank)
                if port >= 0:
                    _load(ranks, port, start, packet, free, worm, buffer, count, header_bytes, flit_bytes)
                moved += 1
        soon = clock[NOW] + 1e-9 * cycle_seconds
        while waiting[WAITING] > 0 and time[0] <= soon:
            ready = event[0, WHAT] >> KIND_BITS
            clock[NOW] = max(clock[NOW], time[0])
            drop_first(time, event, waiting)
            port = offer(ranks, queue, ready)
            if port >= 0:
                _load(ranks, port, start, packet, free, worm, buffer, count, header_bytes, flit_bytes)
            moved += 1
        if count[ALIVE] > 0:
            moved += give_channels(
                set_of, ptr, choice, state_of, lanes, width, states, up, down, selection, exclusive,
                channel, buffer, worm, packet, wanted, winner, random,
            )  # fmt: skip
            taken, ended = take_up(channel, buffer, worm, packet, free, touched, done, count)
            for k in range(ended):
                arrive(ranks, packet[done[k], MESSAGE])
            gone, left = send_flits(
                now, width, link, channel, buffer, flight, worm, packet, touched, done, count
            )
            moved += taken + gone
            for k in range(left):
                port = done[k]
                other = after_packet(ranks, queue, port)
                if line[port, 0] >= 0:
                    _load(ranks, port, start, packet, free, worm, buffer, count, header_bytes, flit_bytes)
                if other >= 0 and other != port:
                    _load(ranks, other, start, packet, free, worm, buffer, count, header_bytes, flit_bytes)
        more_rounds = tally[ROUND_LEFT] <= 0 and tally[ROUND] + 1 < rounds
        count[CYCLE] += 1
        if moved == 0 and count[FLYING] == 0 and count[TOUCHED] == 0 and not more_rounds:
            next_cycle = _next_cycle(time, waiting, link, count, cycle_seconds)
            if next_cycle < 0:
                return ENDED
            count[CYCLE] = max(count[CYCLE], next_cycle)
    clock[NOW] = count[CYCLE] * cycle_seconds
    return MORE


@njit(inline="always")
def _load(
    ranks: Ranks,
    port: int,
    start: Ints,
    packet: Ints,
    free: Ints,
    worm: Ints,
    buffer: Longs,
    count: Longs,
    header_bytes: int,
    flit_bytes: int,
) -> None:
    """Make the next packet of the first rank in the queue of a port."""
    place = len(buffer) - len(start) + port
    count[FREE] -= 1
    count[ALIVE] += 1
    made = free[count[FREE]]
    size = header_bytes + make_packet(ranks, packet, made, port, start[port])
    flits = max((size + flit_bytes - 1) // flit_bytes, 1)
    packet[made, SIZE] = flits
    worm[place, 0, 0], worm[place, 0, 1] = made, flits
    buffer[place, FIRST], buffer[place, COUNT], buffer[place, WHOLE] = 0, 1, 1
    buffer[place, SENT], buffer[place, OUT] = 0, NONE


@njit(cache=True, nogil=True)
def _next_cycle(time: Floats, waiting: Longs, link: Longs, count: Longs, cycle_seconds: float) -> int:
    """Return the cycle in which something may move again though nothing does now, or -1."""
    soonest = -1
    if waiting[WAITING] > 0:
        soonest = int(np.ceil(time[0] / cycle_seconds - 1e-9))
    if count[ALIVE] > 0:
        for row in range(len(link)):
            at = link[row, IDLE_AT]
            if at >= count[CYCLE] and (soonest < 0 or at < soonest):
                soonest = at
    return soonest
