"""Messages for a simulation, from traces and from profiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.simulation.messages import Messages, check_messages, from_profile, from_trace, saturating_scale
from mapping.simulation.simulate import simulate
from registry.errors import InvalidValue
from registry.model import Fabric, Profile, Simulation
from registry.model.trace import Trace
from tests.support.slow_simulation import placed
from tests.support.small_fabrics import profiles


def trace(*rows: tuple[float, int, int, int]) -> Trace:
    """A trace of (seconds, sender, receiver, bytes) of four ranks."""
    at, sender, receiver, size = zip(*rows, strict=True)
    return Trace(
        ranks=4,
        at=np.array(at),
        sender=np.array(sender),
        receiver=np.array(receiver),
        bytes=np.array(size),
        tag=np.zeros(len(at), int),
    )


SHORT = ((0.0, 2, 1, 10), (0.5, 0, 1, 20), (0.5, 2, 0, 30), (2.0, 0, 3, 40))


def test_a_trace_keeps_each_ranks_order_and_its_times_are_divided() -> None:
    found = from_trace(trace(*SHORT), 2.0)
    assert found.rank.tolist() == [0, 0, 2, 2]
    assert found.bytes.tolist() == [20, 40, 10, 30]
    assert found.ready.tolist() == [0.25, 1.0, 0.0, 0.25]
    assert not found.round.any()


def test_an_infinite_scale_sends_all_at_once() -> None:
    found = from_trace(trace(*SHORT), math.inf)
    assert not found.ready.any()
    assert found.bytes.tolist() == [20, 40, 10, 30]


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan])
def test_a_scale_that_is_not_above_zero_is_refused(scale: float) -> None:
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


def test_a_rank_begins_with_the_next_one_and_goes_around() -> None:
    profile = Profile.from_edges([1, 1, 1], [0, 2, 3], [4, 4, 4], ranks=4)
    found = from_profile(profile, 2)
    assert found.receiver.tolist() == [2, 3, 0, 2, 3, 0]
    assert found.round.tolist() == [0, 0, 0, 1, 1, 1]


def test_gaps_space_the_rounds_that_are_free() -> None:
    profile = Profile.from_edges([0], [1], [30], ranks=2)
    found = from_profile(profile, 3, barrier=False, gap_seconds=0.5)
    assert found.ready.tolist() == [0.0, 0.5, 1.0]
    assert not found.round.any()


@pytest.mark.parametrize(("rounds", "gap"), [(0, 0.0), (-1, 0.0), (1, -1.0), (1, math.inf)])
def test_rounds_out_of_range_are_refused(rounds: int, gap: float) -> None:
    with pytest.raises(InvalidValue, match="from_profile"):
        from_profile(Profile.from_edges([0], [1], [1]), rounds, gap_seconds=gap)


GOOD: dict[str, list[float]] = {
    "rank": [0, 1],
    "receiver": [1, 0],
    "bytes": [5, 5],
    "ready": [0.0, 0.0],
    "round": [0, 0],
}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("rank", [0, 2]),
        ("receiver", [-1, 0]),
        ("bytes", [5, -5]),
        ("ready", [0.0, math.nan]),
        ("ready", [-1.0, 0.0]),
        ("round", [0, -1]),
        ("bytes", [5]),
    ],
)
def test_bad_messages_are_refused_with_the_field(field: str, values: list[float]) -> None:
    columns = {name: np.array(given) for name, given in (GOOD | {field: values}).items()}
    with pytest.raises(InvalidValue, match=f"Messages.{field}"):
        check_messages(Messages(**columns), 2)


def test_a_round_that_falls_or_has_no_messages_is_refused() -> None:
    one, size = np.zeros(2, int), np.ones(2, int)
    with pytest.raises(InvalidValue, match="descends within rank 0"):
        check_messages(Messages(one, size, size, np.zeros(2), np.array([1, 0])), 2)
    with pytest.raises(InvalidValue, match="has no messages"):
        check_messages(Messages(one, size, size, np.zeros(2), np.array([0, 2])), 2)


def test_at_the_saturating_scale_a_trace_is_offered_in_the_time_that_it_needs() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1e6)
    recorded = Trace(
        ranks=2,
        at=np.linspace(0.0, 10.0, 101),
        sender=np.zeros(101, int),
        receiver=np.ones(101, int),
        bytes=np.full(101, 1000),
        tag=np.zeros(101, int),
    )

    def run(messages: Messages) -> Simulation:
        return simulate(fabric, placed(fabric, [0, 1]), messages, CostModel(routing="shortest-paths"))

    scale = saturating_scale(recorded, run)
    assert scale == pytest.approx(10.0 / 0.101, rel=1e-3)
    slack = run(from_trace(recorded, scale / 10))
    assert slack.latency(100) == pytest.approx(1e-3, rel=0.01)
    full = run(from_trace(recorded, scale * 10))
    assert full.latency(100) > 50e-3


def test_a_trace_of_no_time_has_no_saturating_scale() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1e6)
    with pytest.raises(InvalidValue, match="saturating_scale"):
        saturating_scale(
            trace((0.0, 0, 1, 10)),
            lambda messages: simulate(fabric, placed(fabric, [0, 1, 0, 1]), messages),
        )
