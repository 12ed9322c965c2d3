"""Events come out by time, and those of one time in the order in which they were put in, lines or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mapping.simulation.kernels.event_queue import (
    LINES,
    NOTHING,
    EventLines,
    EventQueue,
    new_lines,
    new_queue,
    put_behind,
    put_in,
    soonest,
    take,
    wider_lines,
    wider_queue,
)

ROOM = 64
HEAP = LINES
"""Where an event of these tests goes: a line's number, or this."""


def put(queue: EventQueue, lines: EventLines, line: int, at: float, what: int) -> None:
    """Into a line, or the heap."""
    if line == HEAP:
        put_in(queue, at, what)
    else:
        put_behind(queue, lines, line, at, what)


def taken(queue: EventQueue, lines: EventLines) -> tuple[float, int] | None:
    """Time and event that come first; None where nothing waits."""
    where = soonest(queue, lines)
    return None if where == NOTHING else take(queue, lines, where)


steps = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, LINES), st.integers(0, 4))), max_size=ROOM)
"""What is done in turn: an event is taken, or put in so much later than the last that was taken."""


@given(steps=steps, room=st.integers(1, 5))
def test_events_come_out_by_time_and_then_by_the_order_in_which_they_were_put_in(
    steps: list[tuple[int, int] | None], room: int
) -> None:
    queue, lines = new_queue(ROOM), new_lines(room)
    waiting: list[tuple[float, int]] = []
    now = 0.0
    for what, step in enumerate([*steps, *[None] * len(steps)]):
        if step is None:
            expected = min(waiting) if waiting else None
            assert taken(queue, lines) == expected
            if expected is not None:
                waiting.remove(expected)
                now = expected[0]
        else:
            line, later = step
            put(queue, lines, line, now + later, what)
            waiting.append((now + later, what))
    assert taken(queue, lines) is None


@given(before=st.integers(0, 3), steps=st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_wider_ones_hold_the_same_events(before: int, steps: list[int]) -> None:
    queue, lines = new_queue(ROOM), new_lines(4)
    for what in range(before):  # so that the ring begins elsewhere
        put(queue, lines, 1, 0.0, what)
        assert taken(queue, lines) == (0.0, what)
    for what, later in enumerate(steps):
        put(queue, lines, 1, float(later), what)
    queue, lines = wider_queue(queue, 2 * ROOM), wider_lines(lines, 8)
    found = [taken(queue, lines) for _ in steps]
    assert found == sorted((float(later), what) for what, later in enumerate(steps))
    assert taken(queue, lines) is None
