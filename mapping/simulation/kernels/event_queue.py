"""Events by time, and those of one time in the order in which they were added.

A binary heap in arrays, and a few lines besides it. Events that seldom come before the last one, such as
those due a fixed latency from now, are stored in a ring in their order. To add or remove one there takes
constant time, while a heap of thousands of events is most of the cost of a packet. An event goes into the
heap if it comes before the last of its line, or if the line is full. The first event is the first of the heap
or of a line, whichever is earlier, so that lines change nothing but speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import inner
from registry.model import Floats, Longs

WAITING, PUT_IN = 0, 1
"""Places in ``EventQueue.counts``."""
ORDER, WHAT = 0, 1
"""Columns of ``EventQueue.event`` and of ``EventLines.event``."""
LINES = 3
FIRST, NUMBER = 0, 1
"""Columns of ``EventLines.ends``."""
NOTHING = -1
"""Result of `soonest` if no event waits; `LINES` means the heap."""


class EventQueue(NamedTuple):
    """A heap; changed in place; made by `new_queue`."""

    time: Floats
    """float64[room]."""
    event: Longs
    """int64[room, 2]: Number of events added before, and what happens."""
    counts: Longs
    """int64[2]: Events waiting in the heap, and all ever added, including lines."""


class EventLines(NamedTuple):
    """Rings besides a heap; changed in place; made by `new_lines`."""

    time: Floats
    event: Longs
    """float64[LINES, room] and int64[LINES, room, 2]: As in `EventQueue`."""
    ends: Longs
    """int64[LINES, 2]: Index of the first event of each line, and number of events."""


def new_queue(room: int) -> EventQueue:
    """Return an empty queue with room for so many events."""
    return EventQueue(np.zeros(room), np.zeros((room, 2), np.int64), np.zeros(2, np.int64))


def wider_queue(queue: EventQueue, room: int) -> EventQueue:
    """Return the same events with more room."""
    wider = new_queue(room)
    wider.time[: len(queue.time)] = queue.time
    wider.event[: len(queue.event)] = queue.event
    wider.counts[:] = queue.counts
    return wider


def new_lines(room: int) -> EventLines:
    """Return empty lines, each with room for so many events."""
    time, event = np.zeros((LINES, room)), np.zeros((LINES, room, 2), np.int64)
    return EventLines(time, event, np.zeros((LINES, 2), np.int64))


def wider_lines(lines: EventLines, room: int) -> EventLines:
    """Return the same events with more room."""
    wider = new_lines(room)
    for line, (first, number) in enumerate(lines.ends.tolist()):
        stands = (first + np.arange(number)) % lines.time.shape[1]
        wider.time[line, :number] = lines.time[line, stands]
        wider.event[line, :number] = lines.event[line, stands]
        wider.ends[line, NUMBER] = number
    return wider


@inner
def put_in(queue: EventQueue, at: float, what: int) -> None:
    """Add an event to the heap; there must be room."""
    time, event, count = queue
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


@inner
def drop_first(queue: EventQueue) -> None:
    """Remove the first event of the heap, at index 0; there must be one."""
    time, event, count = queue
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


@inner
def put_behind(queue: EventQueue, lines: EventLines, line: int, at: float, what: int) -> None:
    """Add an event at the end of a line, or to the heap if it cannot be there."""
    number, room = lines.ends[line, NUMBER], lines.time.shape[1]
    behind = lines.ends[line, FIRST] + number
    if behind >= room:
        behind -= room
    before = behind - 1 if behind > 0 else room - 1
    if number < room and (number == 0 or lines.time[line, before] <= at):
        lines.time[line, behind] = at
        lines.event[line, behind, ORDER], lines.event[line, behind, WHAT] = queue.counts[PUT_IN], what
        lines.ends[line, NUMBER] = number + 1
        queue.counts[PUT_IN] += 1
    else:
        put_in(queue, at, what)


@inner
def soonest(queue: EventQueue, lines: EventLines) -> int:
    """Return where the first event of all is: a line, `LINES` for the heap, or `NOTHING`."""
    where, at, order = NOTHING, 0.0, 0
    if queue.counts[WAITING] > 0:
        where, at, order = LINES, queue.time[0], queue.event[0, ORDER]
    for line in range(LINES):
        if lines.ends[line, NUMBER] > 0:
            first = lines.ends[line, FIRST]
            due = lines.time[line, first]
            if where < 0 or due < at or (due == at and lines.event[line, first, ORDER] < order):
                where, at, order = line, due, lines.event[line, first, ORDER]
    return where


@inner
def take(queue: EventQueue, lines: EventLines, where: int) -> tuple[float, int]:
    """Remove the first event of a line, or of the heap; return its time, and what happens."""
    if where == LINES:
        at, what = queue.time[0], queue.event[0, WHAT]
        drop_first(queue)
        return at, what
    first = lines.ends[where, FIRST]
    at, what = lines.time[where, first], lines.event[where, first, WHAT]
    lines.ends[where, FIRST] = first + 1 if first + 1 < lines.time.shape[1] else 0
    lines.ends[where, NUMBER] -= 1
    return at, what
