"""Messages from traces and profiles, memory of simulations, next channels, and the queue of events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.tori import torus
from mapping.distances.cost_model import CostModel
from mapping.simulation import channels
from mapping.simulation.channels import build_channel_routes
from mapping.simulation.kernels import event_queue
from mapping.simulation.kernels.event_queue import LINES, EventLines, EventQueue
from mapping.simulation.levels import Level, new_level
from mapping.simulation.messages import Messages, check_messages, from_profile, from_trace, saturating_scale
from mapping.simulation.options import Options
from mapping.simulation.simulate import simulate
from registry.errors import InvalidValue
from registry.model import Fabric, Profile, Simulation
from registry.model.trace import Trace
from tests.support.kernels import from_python
from tests.support.slow_simulation import placed, send
from tests.support.small_fabrics import profiles


def trace(*rows: tuple[float, int, int, int]) -> Trace:
    """A trace of (seconds, sender, receiver, bytes) of four ranks."""
    at, sender, receiver, bytes = (np.array(column) for column in zip(*rows, strict=True))
    return Trace(ranks=4, at=at, sender=sender, receiver=receiver, bytes=bytes, tag=np.zeros(len(at), int))


SHORT = ((0.0, 2, 1, 10), (0.5, 0, 1, 20), (0.5, 2, 0, 30), (2.0, 0, 3, 40))


def test_a_trace_keeps_each_ranks_order_and_its_times_are_divided() -> None:
    found = from_trace(trace(*SHORT), 2.0)
    assert found.rank.tolist() == [0, 0, 2, 2]
    assert found.bytes.tolist() == [20, 40, 10, 30]
    assert found.ready.tolist() == [0.25, 1.0, 0.0, 0.25]
    assert not found.round.any()
    at_once = from_trace(trace(*SHORT), math.inf)
    assert not at_once.ready.any()
    assert at_once.bytes.tolist() == [20, 40, 10, 30]
    for scale in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidValue, match="scale"):
            from_trace(trace(*SHORT), scale)


@given(profile=profiles(), rounds=st.integers(1, 5), barrier=st.booleans())
def test_rounds_send_the_bytes_of_the_profile(profile: Profile, rounds: int, barrier: bool) -> None:
    found = check_messages(from_profile(profile, rounds, barrier=barrier), profile.ranks)
    again = Profile.from_edges(found.rank, found.receiver, found.bytes, ranks=profile.ranks)
    np.testing.assert_array_equal(again.indptr, profile.indptr)
    np.testing.assert_array_equal(again.partner, profile.partner)
    np.testing.assert_array_equal(again.bytes, profile.bytes)
    for sender, partner in zip(profile.sender, profile.partner, strict=True):
        sizes = found.bytes[(found.rank == sender) & (found.receiver == partner)]
        assert len(sizes) <= rounds
        assert len(sizes) < rounds or int(sizes.max() - sizes.min()) <= 1


def test_a_rank_begins_with_the_next_one_and_goes_around_and_gaps_space_free_rounds() -> None:
    found = from_profile(Profile.from_edges([1, 1, 1], [0, 2, 3], [4, 4, 4], ranks=4), 2)
    assert (found.receiver.tolist(), found.round.tolist()) == ([2, 3, 0] * 2, [0, 0, 0, 1, 1, 1])
    pair = Profile.from_edges([0], [1], [30], ranks=2)
    free = from_profile(pair, 3, barrier=False, gap_seconds=0.5)
    assert free.ready.tolist() == [0.0, 0.5, 1.0]
    assert not free.round.any()
    for rounds, gap in ((0, 0.0), (-1, 0.0), (1, -1.0), (1, math.inf)):
        with pytest.raises(InvalidValue, match="from_profile"):
            from_profile(pair, rounds, gap_seconds=gap)


GOOD: dict[str, list[float]] = {"rank": [0, 1], "receiver": [1, 0], "bytes": [5, 5]}
GOOD |= {"ready": [0.0, 0.0], "round": [0, 0]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rank": [0, 2]}, "Messages.rank"),
        ({"receiver": [-1, 0]}, "Messages.receiver"),
        ({"bytes": [5, -5]}, "Messages.bytes"),
        ({"ready": [0.0, math.nan]}, "Messages.ready"),
        ({"ready": [-1.0, 0.0]}, "Messages.ready"),
        ({"round": [0, -1]}, "Messages.round"),
        ({"bytes": [5]}, "Messages.bytes"),
        ({"rank": [0, 0], "round": [1, 0]}, "descends within rank 0"),
        ({"rank": [0, 0], "round": [0, 2]}, "has no messages"),
    ],
)
def test_bad_messages_are_refused_with_the_field(changed: dict[str, list[float]], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        check_messages(Messages(**{name: np.array(given) for name, given in (GOOD | changed).items()}), 2)


def test_at_the_saturating_scale_a_trace_is_offered_in_the_time_that_it_needs() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1e6, slots=2)
    recorded = trace(*((at / 10, 0, 1, 1000) for at in range(101)))

    def run(messages: Messages) -> Simulation:
        return simulate(fabric, placed(fabric, [0, 1, 0, 1]), messages, CostModel(routing="shortest-paths"))

    scale = saturating_scale(recorded, run)
    assert scale == pytest.approx(10.0 / 0.101, rel=1e-3)
    slack = run(from_trace(recorded, scale / 10))
    assert slack.latency(100) == pytest.approx(1e-3, rel=0.01)
    full = run(from_trace(recorded, scale * 10))
    assert full.latency(100) > 50e-3
    with pytest.raises(InvalidValue, match="saturating_scale"):  # a trace of no time
        saturating_scale(trace((0.0, 0, 1, 10)), run)


def level_of(messages: Messages, mode: str, options: Options) -> Level:
    """Return a simulation over a ring of three that has run to its end."""
    fabric = torus([3], capacity=1e9)
    routes = build_channel_routes("dimension-order", fabric, np.array([0, 1], np.int32))
    level = new_level(fabric, placed(fabric, [0, 1]), messages, routes, options, mode=mode, seed=0)
    while level.advance():
        pass
    assert bool(level.senders.delivered.all())
    return level


@pytest.mark.parametrize("mode", ["packets", "flits"])
def test_memory_is_that_of_packets_in_flight_however_much_is_sent(mode: str) -> None:
    short, long = (
        level_of(from_profile(Profile.from_edges([0], [1], [size], ranks=2)), mode, Options())
        for size in (2048, 3_000_000)
    )
    assert short.room == long.room < 200
    assert long.hops == -(-3_000_000 // (2048 if mode == "packets" else 8))


def test_memory_grows_where_many_small_packets_are_on_their_way() -> None:
    level = level_of(send(*[(0, 1, 0, 0.0)] * 5000), "packets", Options(latency_seconds=1.0))
    assert level.room >= level.hops == 5000


segments = st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), max_size=20)


@pytest.mark.parametrize("alike", [False, True])
@given(found=segments)
def test_segments_keep_channels_and_equal_ones_are_one_set(alike: bool, found: list[tuple[int, ...]]) -> None:
    """Also where the sums of all are equal by chance: these merge nothing."""
    first = np.r_[0, np.cumsum([len(one) for one in found], dtype=np.int64)].astype(np.int64)
    choice = np.array([channel for one in found for channel in one], np.int32)
    with pytest.MonkeyPatch.context() as patch:
        if alike:
            patch.setattr(channels, "_mixed", np.ones_like)
        set_of, ptr, kept = channels._sets(first, choice)
    assert int(ptr[-1]) == len(kept)
    assert [tuple(kept[ptr[number] : ptr[number + 1]].tolist()) for number in set_of.tolist()] == found
    if not alike:
        assert len(ptr) - 1 == len(set(found))


put_in, put_behind = from_python(event_queue.put_in), from_python(event_queue.put_behind)
soonest, take = from_python(event_queue.soonest), from_python(event_queue.take)
ROOM = 64
HEAP = LINES
"""Where an event of these tests goes: a line's number, or this."""


def put(queue: EventQueue, lines: EventLines, line: int, at: float, what: int) -> None:
    if line == HEAP:
        put_in(queue, at, what)
    else:
        put_behind(queue, lines, line, at, what)


def taken(queue: EventQueue, lines: EventLines) -> tuple[float, int] | None:
    where = soonest(queue, lines)
    return None if where == event_queue.NOTHING else take(queue, lines, where)


steps = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, LINES), st.integers(0, 4))), max_size=ROOM)
"""What is done in turn: an event is taken, or put in so much later than the last that was taken."""


@given(steps=steps, room=st.integers(1, 5))
def test_events_come_out_by_time_and_as_put_in(steps: list[tuple[int, int] | None], room: int) -> None:
    queue, lines = event_queue.new_queue(ROOM), event_queue.new_lines(room)
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
    queue, lines = event_queue.new_queue(ROOM), event_queue.new_lines(4)
    for what in range(before):  # so that the ring begins elsewhere
        put(queue, lines, 1, 0.0, what)
        assert taken(queue, lines) == (0.0, what)
    for what, later in enumerate(steps):
        put(queue, lines, 1, float(later), what)
    queue, lines = event_queue.wider_queue(queue, 2 * ROOM), event_queue.wider_lines(lines, 8)
    found = [taken(queue, lines) for _ in steps]
    assert found == sorted((float(later), what) for what, later in enumerate(steps))
    assert taken(queue, lines) is None
