"""The next channels of packets, by state of the routing and target, for both kinds of simulation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import inner, kernel
from mapping.kernels.random_numbers import State, below
from mapping.simulation.kernels.simulated_ranks import GOAL, GOAL_PORT, STATE
from registry.model import Ints, Longs

ADAPTIVE, RANDOM, FIXED = range(3)
"""Which of several next channels is taken: any that is free, the one with most room first; one drawn for each
packet at each vertex; one for each vertex and receiving port."""
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class NextHops(NamedTuple):
    """Next channels of packets, in segments of one list.

    A channel is a lane of a link, with number ``link * width + class * lanes + lane``; each has its own
    buffer at the far end of the link. The list contains the first lane of each class.
    """

    lanes: int
    """Lanes of a class."""
    width: int
    """Channels of a link."""
    states: int
    """Segment ``target * states + state`` is that of a packet in a state of the routing."""
    up: int
    down: int
    """First segments of the sending and of the receiving ports' own cables."""
    set_of: Ints
    """int32[segments]: Set of each segment: many are equal, such as those of all far targets, and stored
    once."""
    ptr: Longs
    choice: Ints
    """int64[sets + 1] and int32: The channels of each set; classes of a set never descend."""
    most: int
    """Size of the largest set times the lanes."""
    state_of: Ints
    """int32[channels]: State of a packet that has crossed a channel; -1 if it has reached its port."""
    start: Ints
    """int32[ports]: State in which packets of a port start; -1 if they start with the port's own cable."""
    selection: int
    """`ADAPTIVE`, `RANDOM` or `FIXED`."""


@inner
def next_set(hops_on: NextHops, packet: Ints, p: int, place: int, channels: int) -> int:
    """Return the set of channels that a packet may take next, or -1 if it is at its goal.

    Args:
        packet (int32[k, 8]): Columns as in ``simulated_ranks``.
        p: Row of the packet.
        place: Channel in which the packet is, or `channels` plus the port where it starts.
    """
    set_of, ptr, state = hops_on.set_of, hops_on.ptr, packet[p, STATE]
    if state < 0:
        return int(set_of[hops_on.up + place - channels]) if place >= channels else -1
    found = set_of[np.int64(packet[p, GOAL]) * hops_on.states + state]
    if ptr[found] == ptr[found + 1]:
        found = set_of[hops_on.down + packet[p, GOAL_PORT]]
        if ptr[found] == ptr[found + 1]:
            return -1
    return int(found)


@kernel
def mixed_below(one: int, other: int, n: int) -> int:
    """Return a well mixed number in 0 .. n - 1 from two numbers (the finaliser of SplitMix64)."""
    z = np.uint64(one) * _GAMMA + np.uint64(other) + _GAMMA
    z = (z ^ (z >> np.uint64(30))) * _MIX
    z = (z ^ (z >> np.uint64(27))) * _GAMMA
    return int(np.int64(((z >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)))


@inner
def channels_of(hops_on: NextHops, found: int, packet: Ints, p: int, random: State) -> tuple[int, int]:
    """Return start and end, in the list, of the channels of a set that a packet may take: all or one."""
    first, last = hops_on.ptr[found], hops_on.ptr[found + 1]
    if hops_on.selection != ADAPTIVE and last - first > 1:
        if hops_on.selection == RANDOM:
            first += below(random, last - first)
        else:
            first += mixed_below(packet[p, GOAL_PORT], packet[p, STATE], last - first)
        last = first + 1
    return first, last
