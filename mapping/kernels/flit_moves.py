"""The state of a flit-level simulation, and single moves of flits. See `flit_simulation`."""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from mapping.kernels.random_numbers import State
from mapping.kernels.simulated_ranks import SIZE
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
FREE, ALIVE, FLYING, CYCLE, TOUCHED, HOPS = range(6)
"""Places in ``Flits.counts``: free rows of packets, packets, flits on links, the cycle, channels with room
coming back, links crossed by flits."""
NONE, TAKEN_UP = -1, -2


class Flits(NamedTuple):
    """A flit-level simulation; changed in place.

    Buffers are numbered like channels, those of sending ports after them.

    Attributes
    ----------
    link : int64[m, 6], channel : int64[channels, 5], buffer : int64[channels + ports, 7]
    flight : int32[m, cycles]
        Lane of the flit that comes in by a link in a cycle, modulo `cycles`; -1 none.
    worm : int32[channels + ports, slots, 2]
        Packets of a buffer in a ring, and how many flits of each have come.
    packet : int64[k, 8]
    free : int32[k]
    touched, wanted : int32[channels]
    winner : int32[channels]
        -1 between cycles.
    counts : int64[6]
    flit_bytes, header_bytes : int
    alone : bool
        A buffer is emptied before the next packet comes in, as adaptive routing with escape channels needs
        (Duato 1993, assumption 6).
    cycle_seconds : float
    random : uint64[1]
    """

    link: Longs
    channel: Longs
    buffer: Longs
    flight: Ints
    worm: Ints
    packet: Longs
    free: Ints
    touched: Ints
    wanted: Ints
    winner: Ints
    counts: Longs
    flit_bytes: int
    header_bytes: int
    alone: bool
    cycle_seconds: float
    random: State


@njit(cache=True, nogil=True)
def come_in(state: Flits, width: int) -> int:
    """Flits that were sent some cycles ago are in the next buffers."""
    flight, worm, buffer, packet, count = state.flight, state.worm, state.buffer, state.packet, state.counts
    depth, slots, moved = flight.shape[1], worm.shape[1], 0
    now = count[CYCLE] % depth
    for row in range(len(flight)):
        if flight[row, now] < 0:
            continue
        d = row * width + flight[row, now]
        flight[row, now] = -1
        slot = (buffer[d, FIRST] + buffer[d, WHOLE]) % slots
        worm[d, slot, 1] += 1
        if worm[d, slot, 1] == packet[worm[d, slot, 0], SIZE]:
            buffer[d, WHOLE] += 1
        moved += 1
    count[FLYING] -= moved
    return moved


@njit(cache=True, nogil=True)
def know_of_room(state: Flits) -> int:
    """Room that flits left in the last cycle is known at the senders' ends."""
    channel, touched, count = state.channel, state.touched, state.counts
    many = count[TOUCHED]
    for k in range(many):
        d = touched[k]
        channel[d, CREDIT] += channel[d, BACK]
        channel[d, BACK] = 0
    count[TOUCHED] = 0
    return int(many)


@njit(inline="always")
def give_back(state: Flits, place: int, flits: int) -> None:
    """Flits have left a buffer."""
    if place < len(state.channel):
        if state.channel[place, BACK] == 0:
            state.touched[state.counts[TOUCHED]] = place
            state.counts[TOUCHED] += 1
        state.channel[place, BACK] += flits


@njit(inline="always")
def pop(state: Flits, place: int) -> None:
    """The first packet of a buffer has left it whole."""
    buffer = state.buffer
    buffer[place, FIRST] = (buffer[place, FIRST] + 1) % state.worm.shape[1]
    buffer[place, COUNT] -= 1
    buffer[place, WHOLE] -= 1
    buffer[place, SENT], buffer[place, OUT], buffer[place, WISH] = 0, NONE, NONE


@njit(inline="always")
def send_flit(state: Flits, row: int, lane: int, d: int, place: int) -> None:
    """A buffer sends a flit of its first packet over a channel, which is its own."""
    link, flight, count = state.link, state.flight, state.counts
    cycle = count[CYCLE]
    state.buffer[place, SENT] += 1
    state.channel[d, CREDIT] -= 1
    link[row, SENT_FLITS] += 1
    link[row, IDLE_AT] = cycle + link[row, PERIOD]
    flight[row, (cycle + link[row, CYCLES]) % flight.shape[1]] = lane
    count[FLYING] += 1
    count[HOPS] += 1
    give_back(state, place, 1)
