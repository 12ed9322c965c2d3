"""The state of a flit-level simulation, and the steps of a cycle; see `flit_simulation`.

Nothing divides: for numbers below twice the divisor the remainder is a difference.
"""

from __future__ import annotations

from typing import NamedTuple

from mapping.kernels.decorators import inner
from mapping.kernels.random_numbers import State, below
from mapping.simulation.kernels.next_hops import NextHops, channels_of, next_set
from mapping.simulation.kernels.simulated_ranks import FREE, HOPS, PAYLOAD, SIZE, STATE
from registry.model import Ints, Longs

PERIOD, CYCLES, IDLE_AT, TURN, SENT_FLITS, CARRIED = range(6)
"""Columns of ``Flits.link``: cycles a flit takes on it, cycles until it is in the next buffer, first cycle
when it may send again, lane whose turn it was, flits sent, bytes of messages in packets that crossed it."""
CREDIT, BACK, OWNER, LAST_OWNER, EMPTY = range(5)
"""Columns of ``Flits.channel``: flits of room known of, and those known of from the next cycle; buffer that
owns the channel (-1), and that owned it last; flits of room when the buffer is empty."""
FIRST, COUNT, WHOLE, SENT, OUT, WISH, WISHES = range(7)
"""Columns of ``Flits.buffer``: slot of the first packet, packets, those that have come whole, flits of the
first one that have left, channel that it owns (`NONE`, `TAKEN_UP`), which of the next channels' list it may
claim, from (`NONE`: not looked up) and to."""
ALIVE, FLYING, CYCLE, TOUCHED = range(HOPS + 1, HOPS + 5)
"""Further places in ``Flits.counts``: packets, flits on links, the cycle, channels with room coming back."""
NONE, TAKEN_UP = -1, -2


class Flits(NamedTuple):
    """A flit-level simulation; changed in place.

    Buffers are numbered like channels, followed by those of sending ports.
    """

    link: Longs
    channel: Longs
    buffer: Longs
    """int64[m, 6] and int64[channels, 5] and int64[channels + ports, 7]."""
    flight: Ints
    """int32[cycles, m]: Lane of the flit that arrives by a link in a cycle, modulo `cycles`; -1 for none."""
    worm: Ints
    """int32[channels + ports, slots, 2]: Packets of a buffer in a ring, and how many flits of each have
    arrived."""
    packet: Ints
    """int32[k, 8]."""
    free: Ints
    """int32[k]."""
    touched: Ints
    wanted: Ints
    """int32[channels]."""
    winner: Ints
    """int32[channels]: -1 between cycles."""
    done: Ints
    """int32[channels]: Result of a step: packets that were delivered, or ports whose packet has left."""
    counts: Longs
    """int64[6]."""
    flit_bytes: int
    header_bytes: int
    exclusive: bool
    """True if a buffer is emptied before the next packet comes in, as adaptive routing with escape channels
    requires (Duato 1993, assumption 6)."""
    cycle_seconds: float
    random: State
    """uint64[1]."""


@inner
def come_in(width: int, state: Flits) -> int:
    """Move flits sent some cycles ago into the next buffers; return how many."""
    flight, worm, buffer = state.flight, state.worm, state.buffer
    now, slots, came = state.counts[CYCLE] % len(flight), worm.shape[1], 0
    for row in range(flight.shape[1]):
        lane = flight[now, row]
        if lane < 0:
            continue
        flight[now, row] = -1
        d = row * width + lane
        slot = buffer[d, FIRST] + buffer[d, WHOLE]
        if slot >= slots:
            slot -= slots
        flits = worm[d, slot, 1] + 1
        worm[d, slot, 1] = flits
        if flits == state.packet[worm[d, slot, 0], SIZE]:
            buffer[d, WHOLE] += 1
        came += 1
    state.counts[FLYING] -= came
    return came


@inner
def know_of_room(state: Flits) -> int:
    """Report the room of flits that left in the last cycle to the senders; return the number of channels."""
    channel, many = state.channel, state.counts[TOUCHED]
    for k in range(many):
        d = state.touched[k]
        channel[d, CREDIT] += channel[d, BACK]
        channel[d, BACK] = 0
    state.counts[TOUCHED] = 0
    return int(many)


@inner
def give_channels(hops_on: NextHops, state: Flits) -> int:
    """Give free channels to head flits at the front; return how many got one or are at their goal."""
    buffer, worm, packet, winner = state.buffer, state.worm, state.packet, state.winner
    channels, places, claims, moved = len(state.channel), len(buffer), 0, 0
    for place in range(places):
        if buffer[place, COUNT] == 0 or buffer[place, OUT] != NONE:
            continue
        slot = buffer[place, FIRST]
        if worm[place, slot, 1] == 0:
            continue
        p = worm[place, slot, 0]
        if buffer[place, WISH] < 0:
            segment = next_set(hops_on, packet, p, place, channels)
            if segment < 0:
                buffer[place, OUT] = TAKEN_UP
                moved += 1
                continue
            one, end = channels_of(hops_on, segment, packet, p, state.random)
            buffer[place, WISH], buffer[place, WISHES] = one, end
        d = _choose(hops_on, state, buffer[place, WISH], buffer[place, WISHES])
        if d < 0:
            continue
        last = state.channel[d, LAST_OWNER]
        if winner[d] < 0:
            winner[d], state.wanted[claims] = place, d
            claims += 1
        elif _turns(last, place, places) < _turns(last, winner[d], places):
            winner[d] = place
    for k in range(claims):
        _enter(hops_on, state, state.wanted[k])
    return moved + claims


@inner
def _enter(hops_on: NextHops, state: Flits, d: int) -> None:
    """Give a channel to the buffer that won it, and let its first packet enter the next one."""
    buffer, worm, slots = state.buffer, state.worm, state.worm.shape[1]
    place = state.winner[d]
    state.winner[d] = -1
    state.channel[d, OWNER], state.channel[d, LAST_OWNER] = place, place
    buffer[place, OUT] = d
    p = worm[place, buffer[place, FIRST], 0]
    state.packet[p, STATE] = hops_on.state_of[d]
    slot = buffer[d, FIRST] + buffer[d, COUNT]
    if slot >= slots:
        slot -= slots
    worm[d, slot, 0], worm[d, slot, 1] = p, 0
    buffer[d, COUNT] += 1


@inner
def _choose(hops_on: NextHops, state: Flits, first: int, last: int) -> int:
    """Return the channel that a packet claims: the lowest class, then most room, then drawn; or `NONE`."""
    channel, lanes, width = state.channel, hops_on.lanes, hops_on.width
    best, most_room, equals, lowest = NONE, -1, 0, 0
    for c in range(first, last):
        base = hops_on.choice[c]
        if width > lanes:
            of_class = base % width // lanes
            if best >= 0 and of_class > lowest:
                break
            lowest = of_class
        for d in range(base, base + lanes):
            credit = channel[d, CREDIT]
            if channel[d, OWNER] >= 0 or credit < (channel[d, EMPTY] if state.exclusive else 1):
                continue
            if credit > most_room:
                best, most_room, equals = d, credit, 1
            elif credit == most_room:
                equals += 1
                if below(state.random, equals) == 0:
                    best = d
    return best


@inner
def _turns(last: int, place: int, places: int) -> int:
    """Return how many turns after the last one the turn of a buffer comes."""
    ahead = place - last - 1
    return ahead if ahead >= 0 else ahead + places


@inner
def take_up(state: Flits) -> tuple[int, int]:
    """Remove the flits of packets at their goals that have arrived.

    Returns:
        Number of buffers that have moved, and of delivered packets, which are in ``state.done``.
    """
    buffer, worm, count, moved, ended = state.buffer, state.worm, state.counts, 0, 0
    for place in range(len(state.channel)):
        if buffer[place, OUT] != TAKEN_UP:
            continue
        slot = buffer[place, FIRST]
        flits = worm[place, slot, 1] - buffer[place, SENT]
        if flits == 0:
            continue
        moved += 1
        buffer[place, SENT] += flits
        _give_back(state, place, flits)
        p = worm[place, slot, 0]
        if buffer[place, SENT] == state.packet[p, SIZE]:
            _pop(state, place)
            state.free[count[FREE]] = p
            count[FREE] += 1
            count[ALIVE] -= 1
            state.done[ended] = p
            ended += 1
    return moved, ended


@inner
def send_flits(width: int, state: Flits) -> tuple[int, int]:
    """Let every link send a flit of one of its channels, if one can go.

    Returns:
        Number of links that sent, and of ports whose packet has left completely, which are in ``state.done``.
    """
    link, channel, channels, moved, ended = state.link, state.channel, len(state.channel), 0, 0
    for row in range(len(link)):
        if link[row, IDLE_AT] > state.counts[CYCLE]:
            continue
        lane = link[row, TURN]
        for _ in range(width):
            lane += 1
            if lane >= width:
                lane = 0
            d = row * width + lane
            place = channel[d, OWNER]
            if place < 0 or channel[d, CREDIT] == 0:
                continue
            if state.worm[place, state.buffer[place, FIRST], 1] <= state.buffer[place, SENT]:
                continue
            moved += 1
            if _send_flit(state, row, lane, d, place) and place >= channels:
                state.done[ended] = place - channels
                ended += 1
            break
    state.counts[FLYING] += moved
    state.counts[HOPS] += moved
    return moved, ended


@inner
def _send_flit(state: Flits, row: int, lane: int, d: int, place: int) -> bool:
    """Send a flit of the first packet of a buffer by its channel; return True if it was the last one."""
    link, buffer, cycle, depth = state.link, state.buffer, state.counts[CYCLE], len(state.flight)
    buffer[place, SENT] += 1
    state.channel[d, CREDIT] -= 1
    link[row, TURN] = lane
    link[row, SENT_FLITS] += 1
    link[row, IDLE_AT] = cycle + link[row, PERIOD]
    at = cycle % depth + link[row, CYCLES]
    if at >= depth:
        at -= depth
    state.flight[at, row] = lane
    if place < len(state.channel):
        _give_back(state, place, 1)
    p = state.worm[place, buffer[place, FIRST], 0]
    if buffer[place, SENT] < state.packet[p, SIZE]:
        return False
    link[row, CARRIED] += state.packet[p, PAYLOAD]
    state.channel[d, OWNER] = NONE
    _pop(state, place)
    return True


@inner
def _give_back(state: Flits, place: int, flits: int) -> None:
    """Record that flits have left the buffer of a channel."""
    if state.channel[place, BACK] == 0:
        state.touched[state.counts[TOUCHED]] = place
        state.counts[TOUCHED] += 1
    state.channel[place, BACK] += flits


@inner
def _pop(state: Flits, place: int) -> None:
    """Remove the first packet of a buffer, which has left completely."""
    buffer = state.buffer
    first = buffer[place, FIRST] + 1
    buffer[place, FIRST] = first if first < state.worm.shape[1] else 0
    buffer[place, COUNT] -= 1
    buffer[place, WHOLE] -= 1
    buffer[place, SENT], buffer[place, OUT], buffer[place, WISH] = 0, NONE, NONE
