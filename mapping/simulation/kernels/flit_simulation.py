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

from mapping.kernels.decorators import inner, kernel
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


@kernel
def run_flits(hops_on: NextHops, ranks: Ranks, queue: EventQueue, state: Flits, limit: int) -> int:
    """Process up to `limit` cycles in which something may move.

    Returns:
        `MORE`, `ENDED` or `FULL`.
    """
    count, clock, tally = state.counts, ranks.clock, ranks.tally
    rounds, space = len(ranks.in_round), len(queue.time) - len(ranks.host) - 8
    for _ in range(limit):
        if count[FREE] < 2 * len(hops_on.start) + 2 or queue.counts[WAITING] > space:
            return FULL
        clock[NOW] = count[CYCLE] * state.cycle_seconds
        moved = come_in(hops_on.width, state) if count[FLYING] > 0 else 0
        moved += know_of_room(state)
        moved += _begin(hops_on, ranks, queue, state)
        if count[ALIVE] > 0:
            moved += _move(hops_on, ranks, queue, state)
        more_rounds = tally[ROUND_LEFT] <= 0 and tally[ROUND] + 1 < rounds
        count[CYCLE] += 1
        if moved == 0 and count[FLYING] == 0 and count[TOUCHED] == 0 and not more_rounds:
            next_cycle = _next_cycle(queue, state)
            if next_cycle < 0:
                return ENDED
            count[CYCLE] = max(count[CYCLE], next_cycle)
    clock[NOW] = count[CYCLE] * state.cycle_seconds
    return MORE


@inner
def _begin(hops_on: NextHops, ranks: Ranks, queue: EventQueue, state: Flits) -> int:
    """Start rounds whose time it is, and offer messages that are ready by now; return how many ranks try."""
    tally, clock, tried = ranks.tally, ranks.clock, 0
    while tally[ROUND_LEFT] <= 0 and tally[ROUND] + 1 < len(ranks.in_round):
        next_round(ranks)
        for rank in range(len(ranks.host)):
            _load(hops_on, ranks, state, offer(ranks, queue, rank))
            tried += 1
    soon = clock[NOW] + 1e-9 * state.cycle_seconds
    while queue.counts[WAITING] > 0 and queue.time[0] <= soon:
        ready = queue.event[0, WHAT] >> KIND_BITS
        clock[NOW] = max(clock[NOW], queue.time[0])
        drop_first(queue)
        _load(hops_on, ranks, state, offer(ranks, queue, ready))
        tried += 1
    return tried


@inner
def _move(hops_on: NextHops, ranks: Ranks, queue: EventQueue, state: Flits) -> int:
    """Give channels, remove packets at their goals, and let the links send; return how many moved."""
    moved = give_channels(hops_on, state)
    taken, ended = take_up(state)
    for k in range(ended):
        arrive(ranks, state.packet[state.done[k], MESSAGE])
    gone, left = send_flits(hops_on.width, state)
    for k in range(left):
        port = state.done[k]
        other = after_packet(ranks, queue, port)
        if ranks.line[port, 0] >= 0:
            _load(hops_on, ranks, state, port)
        if other != port:
            _load(hops_on, ranks, state, other)
    return moved + taken + gone


@inner
def _load(hops_on: NextHops, ranks: Ranks, state: Flits, port: int) -> None:
    """Make the next packet of the first rank in the queue of a port; nothing if `port` is -1."""
    if port < 0:
        return
    buffer, count, packet = state.buffer, state.counts, state.packet
    place = len(state.channel) + port
    count[FREE] -= 1
    count[ALIVE] += 1
    made = state.free[count[FREE]]
    size = state.header_bytes + make_packet(ranks, packet, made, port, hops_on.start[port])
    flits = max((size + state.flit_bytes - 1) // state.flit_bytes, 1)
    packet[made, SIZE] = flits
    state.worm[place, 0, 0], state.worm[place, 0, 1] = made, flits
    buffer[place, FIRST], buffer[place, COUNT], buffer[place, WHOLE] = 0, 1, 1
    buffer[place, SENT], buffer[place, OUT] = 0, NONE


@inner
def _next_cycle(queue: EventQueue, state: Flits) -> int:
    """Return the cycle in which something may move again though nothing does now, or -1."""
    soonest, link, count = -1, state.link, state.counts
    if queue.counts[WAITING] > 0:
        soonest = int(np.ceil(queue.time[0] / state.cycle_seconds - 1e-9))
    if count[ALIVE] > 0:
        for row in range(len(link)):
            at = link[row, IDLE_AT]
            if at >= count[CYCLE] and (soonest < 0 or at < soonest):
                soonest = at
    return soonest
