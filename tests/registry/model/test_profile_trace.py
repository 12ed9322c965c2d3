"""Traces and simulated runs as data types: what they refuse, and what they are turned into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidValue
from registry.model import Simulation, Trace
from registry.model.simulation import PERCENTILES
from tests.support.inputs import traffic_of


def trace(**changed: Any) -> Trace:
    """Four messages of three ranks."""
    fields: dict[str, Any] = {"ranks": 3, "at": [0.0, 1.0, 1.0, 4.0], "bytes": [8, 0, 4, 2**40]}
    fields |= {"sender": [0, 1, 0, 2], "receiver": [1, 2, 1, 0], "tag": [1, -2, 0, 7]}
    return Trace(**fields | changed)


def simulation(**changed: Any) -> Simulation:
    """A run over three links, sampled at two points."""
    fields: dict[str, Any] = {"mode": "packets", "routing": "tables", "seed": 3, "complete": True}
    fields |= {"completion_seconds": 4.0, "delivered_bytes": 100.0, "messages": 7, "packet_hops": 20}
    fields |= {"link_bytes": [60.0, 0.0, 40.0], "link_busy_seconds": [3.0, 0.0, 2.0]}
    fields |= {"delivered_at": [2.0, 4.0], "delivered": [80.0, 100.0], "latency_over_time": [0.3, 0.5]}
    fields |= {"latency_seconds": np.linspace(0.1, 1.0, len(PERCENTILES)), "mean_latency_seconds": 0.4}
    return Simulation(**fields | changed)


def test_a_traces_arrays_are_copied_typed_and_read_only() -> None:
    at = np.array([0.0, 1.0, 1.0, 4.0])
    made = trace(at=at)
    at[0] = 9.0
    assert made.at.tolist() == [0.0, 1.0, 1.0, 4.0]
    kinds = [getattr(made, name).dtype.name for name in ("at", "sender", "receiver", "bytes", "tag")]
    assert kinds == ["float64", "int32", "int32", "int64", "int32"]
    with pytest.raises(ValueError, match="read-only"):
        made.bytes[0] = 1
    assert (len(made), made.total_bytes, made.span_seconds) == (4, 12.0 + 2**40, 4.0)


@pytest.mark.parametrize(
    ("changed", "field", "reason"),
    [
        ({"receiver": [1, 3, 1, 0]}, "receiver", "3 in row 1 is no rank below 3"),
        ({"sender": [0, 1, -1, 2]}, "sender", "-1 in row 2 is no rank below 3"),
        ({"receiver": [1, 2, 1, 2]}, "receiver", "2 in row 3 is the sender itself"),
        ({"at": [0.0, 1.0, 0.5, 4.0]}, "at", "0.5 in row 2 is a time that goes backwards"),
        ({"at": [0.0, float("nan"), 1.0, 4.0]}, "at", "nan in row 1 is not finite"),
        ({"at": [0.0, 1.0, 1.0, float("inf")]}, "at", "inf in row 3 is not finite"),
        ({"at": [-1.0, 1.0, 1.0, 4.0]}, "at", "-1.0 in row 0 is before the first message"),
        ({"bytes": [8, -5, 4, 1]}, "bytes", "-5 in row 1 is negative"),
        ({"bytes": [8, 0.5, 4, 1]}, "bytes", "must be whole numbers"),
        ({"tag": [0, 0, 0]}, "tag", "has 3 entries, not 4"),
        ({"ranks": 0}, "ranks", "must be 1 or more, is 0"),
    ],
)
def test_a_bad_row_of_a_trace_is_refused_by_value(changed: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        trace(**changed)
    assert (caught.value.field, str(caught.value)) == (f"Trace.{field}", f"Trace.{field}: {reason}")


@pytest.mark.parametrize(
    "changed",
    [
        *({"mode": "letters"}, {"link_busy_seconds": [1.0]}, {"link_bytes": [1.0, -1.0, 0.0]}),
        *({"delivered": [1.0]}, {"delivered": [100.0, 80.0]}, {"delivered_at": [4.0, 2.0]}),
        *({"latency_seconds": [1.0]}, {"latency_seconds": np.linspace(1.0, 0.1, len(PERCENTILES))}),
        *({"latency_over_time": [float("nan"), 1.0]}, {"completion_seconds": float("inf")}),
        *({"mean_latency_seconds": -1.0}, {"messages": -1}),
    ],
    ids=lambda changed: "".join(changed),
)
def test_a_run_that_cannot_be_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue) as caught:
        simulation(**changed)
    assert caught.value.field == f"Simulation.{''.join(changed)}"


def test_a_profile_is_counted_from_a_trace_which_may_hold_no_messages() -> None:
    none = trace(at=[], sender=[], receiver=[], bytes=[], tag=[])
    assert (len(none), none.total_bytes, none.span_seconds) == (0, 0.0, 0.0)
    assert (none.profile().ranks, none.profile().pairs) == (3, 0)
    counted = trace().profile(name="run", self_edges=2)
    assert (counted.name, counted.self_edges, counted.ranks) == ("run", 2, 3)
    assert traffic_of(counted) == {(0, 1): (12.0, 2), (1, 2): (0.0, 1), (2, 0): (2.0**40, 1)}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 1000)), max_size=40))
def test_a_profile_has_the_bytes_and_messages_of_each_pair(rows: list[tuple[int, int, int]]) -> None:
    rows = [row for row in rows if row[0] != row[1]]
    sender, receiver, size = np.array(rows, np.int64).reshape(-1, 3).T
    columns = {"sender": sender, "receiver": receiver, "bytes": size, "tag": np.zeros(len(rows))}
    counted = trace(ranks=5, at=np.arange(len(rows)), **columns).profile()
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for one, other, more in rows:
        total, count = expected.get((one, other), (0, 0))
        expected[one, other] = (total + more, count + 1)
    assert traffic_of(counted) == expected


def test_a_scaled_trace_is_sent_so_many_times_as_fast_and_the_first_messages_keep_the_ranks() -> None:
    faster = trace().scaled(4.0)
    assert faster.at.tolist() == [0.0, 0.25, 0.25, 1.0]
    assert faster.bytes.tolist() == trace().bytes.tolist()
    for factor in (0.0, -1.0, float("nan"), float("inf"), 1e-320):
        with pytest.raises(InvalidValue):
            trace().scaled(factor)
    some = trace().first(2)
    assert (len(some), some.ranks, some.sender.tolist()) == (2, 3, [0, 1])
    assert len(trace().first(99)) == 4
    with pytest.raises(InvalidValue):
        trace().first(-1)


def test_throughput_utilisation_and_percentiles_of_a_run() -> None:
    run = simulation()
    assert run.throughput == 25.0
    assert run.link_utilisation.tolist() == [0.75, 0.0, 0.5]
    assert (run.latency(0), run.latency(100)) == (0.1, 1.0)
    with pytest.raises(InvalidValue, match="the percentile 42 is not stored"):
        run.latency(42)
    at_once = simulation(completion_seconds=0.0, delivered_bytes=0.0)
    assert (at_once.throughput, at_once.link_utilisation.tolist()) == (0.0, [0.0, 0.0, 0.0])
    plain = simulation(messages=np.int64(5), completion_seconds=np.float64(2), complete=np.bool_(False))
    values = (plain.messages, plain.completion_seconds, plain.complete)
    assert [type(value) for value in values] == [int, float, bool]
