"""Events by time, and those of one time in the order in which they were put in: a binary heap in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from registry.model import Floats, Longs

WAITING, PUT_IN = 0, 1
"""Places in ``EventQueue.counts``."""
ORDER, WHAT = 0, 1
"""Columns of ``EventQueue.event``."""


class EventQueue(NamedTuple):
    """A heap; changed in place. Made by `new_queue`.

    Attributes
    ----------
    time : float64[room]
    event : int64[room, 2]
        How many were put in before, and what happens.
    counts : int64[2]
        Events that wait, and all that were ever put in.
    """

    time: Floats
    event: Longs
    counts: Longs


def new_queue(room: int) -> EventQueue:
    """An empty queue with room for so many events."""
    return EventQueue(np.zeros(room), np.zeros((room, 2), np.int64), np.zeros(2, np.int64))


def wider_queue(queue: EventQueue, room: int) -> EventQueue:
    """The same events with room for more."""
    wider = new_queue(room)
    wider.time[: len(queue.time)] = queue.time
    wider.event[: len(queue.event)] = queue.event
    wider.counts[:] = queue.counts
    return wider


@njit(inline="always")
def put_in(time: Floats, event: Longs, count: Longs, at: float, what: int) -> None:
    """Add an event; there must be room."""
    place, order = count[WAITING], count[PUT_IN]
    count[WAITING], count[PUT_IN] = place + 1, order + 1
    while place > 0:
        above = (place - 1) >> 1
        if time[above] <= at:  # of one time it came first
            break
        time[place] = time[above]
        event[place, ORDER], event[place, WHAT] = event[above, ORDER], event[above, WHAT]
        place = above
    time[place] = at
    event[place, ORDER], event[place, WHAT] = order, what


@njit(inline="always")
def drop_first(time: Floats, event: Longs, count: Longs) -> None:
    """Take out the first event, which stands at place 0; there must be one."""
    last = count[WAITING] - 1
    count[WAITING] = last
    at, order, what = time[last], event[last, ORDER], event[last, WHAT]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        other = below + 1
        if other < last and (
            time[other] < time[below]
            or (time[other] == time[below] and event[other, ORDER] < event[below, ORDER])
        ):
            below = other
        if time[below] > at or (time[below] == at and event[below, ORDER] > order):
            break
        time[place] = time[below]
        event[place, ORDER], event[place, WHAT] = event[below, ORDER], event[below, WHAT]
        place = below
    time[place] = at
    event[place, ORDER], event[place, WHAT] = order, what
