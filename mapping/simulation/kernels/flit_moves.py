"""The state of a flit-level simulation, and the steps of a cycle; see `flit_simulation`.

Every step gets plain arrays: numba counts references to arrays taken out of tuples, at a multiple of the cost
of a flit. Nothing divides: for numbers below twice the divisor the remainder is a difference.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from mapping.kernels.random_numbers import State, below
from mapping.simulation.kernels.next_hops import channels_of, next_set
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

    Attributes
    ----------
    link : int64[m, 6], channel : int64[channels, 5], buffer : int64[channels + ports, 7]
    flight : int32[cycles, m]
        Lane of the flit that arrives by a link in a cycle, modulo `cycles`; -1 for none.
    worm : int32[channels + ports, slots, 2]
        Packets of a buffer in a ring, and how many flits of each have arrived.
    packet : int32[k, 8]
    free : int32[k]
    touched, wanted : int32[channels]
    winner : int32[channels]
        -1 between cycles.
    done : int32[channels]
        Result of a step: packets that were delivered, or ports whose packet has left.
    counts : int64[6]
    flit_bytes, header_bytes : int
    exclusive : bool
        True if a buffer is emptied before the next packet comes in, as adaptive routing with escape channels
        requires (Duato 1993, assumption 6).
    cycle_seconds : float
    random : uint64[1]
    """

    link: Longs
    channel: Longs
    buffer: Longs
    flight: Ints
    worm: Ints
    packet: Ints
    free: Ints
    touched: Ints
    wanted: Ints
    winner: Ints
    done: Ints
    counts: Longs
    flit_bytes: int
    header_bytes: int
    exclusive: bool
    cycle_seconds: float
    random: State


@njit(inline="always")
def come_in(now: int, width: int, flight: Ints, worm: Ints, buffer: Longs, packet: Ints, count: Longs) -> int:
    """Move flits sent some cycles ago into the next buffers; return how many. `now`: row of `flight`."""
    slots, came = worm.shape[1], 0
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
        if flits == packet[worm[d, slot, 0], SIZE]:
            buffer[d, WHOLE] += 1
        came += 1
    count[FLYING] -= came
    return came


@njit(inline="always")
def know_of_room(channel: Longs, touched: Ints, count: Longs) -> int:
    """Report the room of flits that left in the last cycle to the senders; return the number of channels."""
    many = count[TOUCHED]
    for k in range(many):
        d = touched[k]
        channel[d, CREDIT] += channel[d, BACK]
        channel[d, BACK] = 0
    count[TOUCHED] = 0
    return int(many)


@njit(inline="always")
def give_channels(
    set_of: Ints,
    ptr: Longs,
    choice: Ints,
    state_of: Ints,
    lanes: int,
    width: int,
    states: int,
    up: int,
    down: int,
    selection: int,
    exclusive: bool,
    channel: Longs,
    buffer: Longs,
    worm: Ints,
    packet: Ints,
    wanted: Ints,
    winner: Ints,
    random: State,
) -> int:
    """Give free channels to head flits at the front; return how many got one or are at their goal."""
    channels, places, slots = len(channel), len(buffer), worm.shape[1]
    claims, moved = 0, 0
    for place in range(places):
        if buffer[place, COUNT] == 0 or buffer[place, OUT] != NONE:
            continue
        slot = buffer[place, FIRST]
        if worm[place, slot, 1] == 0:
            continue
        p = worm[place, slot, 0]
        if buffer[place, WISH] < 0:
            segment = next_set(set_of, ptr, states, up, down, packet, p, place, channels)
            if segment < 0:
                buffer[place, OUT] = TAKEN_UP
                moved += 1
                continue
            one, end = channels_of(ptr, segment, selection, packet, p, random)
            buffer[place, WISH], buffer[place, WISHES] = one, end
        d = _choose(
            buffer[place, WISH], buffer[place, WISHES], choice, lanes, width, exclusive, channel, random
        )
        if d < 0:
            continue
        if winner[d] < 0:
            winner[d], wanted[claims] = place, d
            claims += 1
        elif _turns(channel[d, LAST_OWNER], place, places) < _turns(
            channel[d, LAST_OWNER], winner[d], places
        ):
            winner[d] = place
    for k in range(claims):
        d = wanted[k]
        place = winner[d]
        winner[d] = -1
        channel[d, OWNER], channel[d, LAST_OWNER] = place, place
        buffer[place, OUT] = d
        p = worm[place, buffer[place, FIRST], 0]
        packet[p, STATE] = state_of[d]
        slot = buffer[d, FIRST] + buffer[d, COUNT]
        if slot >= slots:
            slot -= slots
        worm[d, slot, 0], worm[d, slot, 1] = p, 0
        buffer[d, COUNT] += 1
    return moved + claims


@njit(inline="always")
def _choose(
    first: int,
    last: int,
    choice: Ints,
    lanes: int,
    width: int,
    exclusive: bool,
    channel: Longs,
    random: State,
) -> int:
    """Return the channel that a packet claims: the lowest class, then most room, then drawn; or `NONE`."""
    best, most_room, equals, lowest = NONE, -1, 0, 0
    for c in range(first, last):
        base = choice[c]
        if width > lanes:
            of_class = base % width // lanes
            if best >= 0 and of_class > lowest:
                break
            lowest = of_class
        for d in range(base, base + lanes):
            credit = channel[d, CREDIT]
            if channel[d, OWNER] >= 0 or credit < (channel[d, EMPTY] if exclusive else 1):
                continue
            if credit > most_room:
                best, most_room, equals = d, credit, 1
            elif credit == most_room:
                equals += 1
                if below(random, equals) == 0:
                    best = d
    return best


@njit(inline="always")
def _turns(last: int, place: int, places: int) -> int:
    """Return how many turns after the last one the turn of a buffer comes."""
    ahead = place - last - 1
    return ahead if ahead >= 0 else ahead + places


@njit(inline="always")
def take_up(
    channel: Longs,
    buffer: Longs,
    worm: Ints,
    packet: Ints,
    free: Ints,
    touched: Ints,
    done: Ints,
    count: Longs,
) -> tuple[int, int]:
    """Remove the flits of packets at their goals that have arrived.

    Returns
    -------
    int, int
        Number of buffers that have moved, and of delivered packets, which are in `done`.
    """
    slots, moved, ended = worm.shape[1], 0, 0
    for place in range(len(channel)):
        if buffer[place, OUT] != TAKEN_UP:
            continue
        slot = buffer[place, FIRST]
        flits = worm[place, slot, 1] - buffer[place, SENT]
        if flits == 0:
            continue
        moved += 1
        buffer[place, SENT] += flits
        _give_back(place, flits, channel, touched, count)
        p = worm[place, slot, 0]
        if buffer[place, SENT] == packet[p, SIZE]:
            _pop(place, slots, buffer)
            free[count[FREE]] = p
            count[FREE] += 1
            count[ALIVE] -= 1
            done[ended] = p
            ended += 1
    return moved, ended


@njit(inline="always")
def send_flits(
    now: int,
    width: int,
    link: Longs,
    channel: Longs,
    buffer: Longs,
    flight: Ints,
    worm: Ints,
    packet: Ints,
    touched: Ints,
    done: Ints,
    count: Longs,
) -> tuple[int, int]:
    """Let every link send a flit of one of its channels, if one can go.

    Returns
    -------
    int, int
        Number of links that sent, and of ports whose packet has left completely, which are in `done`.
    """
    cycle, channels, slots, depth = count[CYCLE], len(channel), worm.shape[1], len(flight)
    moved, ended = 0, 0
    for row in range(len(link)):
        if link[row, IDLE_AT] > cycle:
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
            slot = buffer[place, FIRST]
            sent = buffer[place, SENT]
            if worm[place, slot, 1] <= sent:
                continue
            moved += 1
            sent += 1
            buffer[place, SENT] = sent
            channel[d, CREDIT] -= 1
            link[row, TURN] = lane
            link[row, SENT_FLITS] += 1
            link[row, IDLE_AT] = cycle + link[row, PERIOD]
            at = now + link[row, CYCLES]
            if at >= depth:
                at -= depth
            flight[at, row] = lane
            if place < channels:
                _give_back(place, 1, channel, touched, count)
            p = worm[place, slot, 0]
            if sent == packet[p, SIZE]:
                link[row, CARRIED] += packet[p, PAYLOAD]
                channel[d, OWNER] = NONE
                _pop(place, slots, buffer)
                if place >= channels:
                    done[ended] = place - channels
                    ended += 1
            break
    count[FLYING] += moved
    count[HOPS] += moved
    return moved, ended


@njit(inline="always")
def _give_back(place: int, flits: int, channel: Longs, touched: Ints, count: Longs) -> None:
    """Record that flits have left the buffer of a channel."""
    if channel[place, BACK] == 0:
        touched[count[TOUCHED]] = place
        count[TOUCHED] += 1
    channel[place, BACK] += flits


@njit(inline="always")
def _pop(place: int, slots: int, buffer: Longs) -> None:
    """Remove the first packet of a buffer, which has left completely."""
    first = buffer[place, FIRST] + 1
    buffer[place, FIRST] = first if first < slots else 0
    buffer[place, COUNT] -= 1
    buffer[place, WHOLE] -= 1
    buffer[place, SENT], buffer[place, OUT], buffer[place, WISH] = 0, NONE, NONE
