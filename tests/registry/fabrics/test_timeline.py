"""Validity intervals: made at once and edited one by one they are the same."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InconsistentGraph
from registry.fabrics.timeline import FOREVER, Interval, edits, intervals

Stored = dict[str, list[Interval]]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def t(hours: int) -> datetime:
    return EPOCH + timedelta(hours=hours)


def insert(
    stored: Stored, log: list[tuple[datetime, frozenset[str]]], at: datetime, facts: frozenset[str]
) -> None:
    """What a database does with one more observation."""
    earlier = [seen for seen in log if seen[0] <= at]
    later = [seen for seen in log if seen[0] > at]
    before = earlier[-1][1] if earlier else frozenset()
    until = later[0][0] if later else FOREVER
    touching = {
        fact: [span for span in stored.get(fact, []) if span.start <= until and span.end >= at]
        for fact in before ^ facts
    }
    change = edits(sorted(before), sorted(facts), at, until, touching)
    for fact, span in change.removed:
        stored[fact].remove(span)
    for fact, span in change.moved:
        old = next(s for s in stored[fact] if s.start == span.start)
        assert old.end != span.end
        stored[fact].remove(old)
        stored[fact].append(span)
    for fact, span in change.opened:
        stored.setdefault(fact, []).append(span)
    for fact in before ^ facts:
        stored[fact].sort()
    log[:] = [*earlier, (at, facts), *later]


OBSERVATIONS = st.lists(
    st.tuples(st.integers(0, 12).map(t), st.frozensets(st.sampled_from("abcd"))), max_size=10
)


@given(seen=OBSERVATIONS)
def test_observations_in_any_order_of_arrival_give_the_intervals_of_their_order_in_time(
    seen: list[tuple[datetime, frozenset[str]]],
) -> None:
    stored: Stored = {}
    log: list[tuple[datetime, frozenset[str]]] = []
    for at, facts in seen:
        insert(stored, log, at, facts)
        assert {fact: spans for fact, spans in stored.items() if spans} == intervals(log)
    in_time = sorted(seen, key=lambda observation: observation[0])
    assert intervals(in_time) == intervals(log)


@given(seen=OBSERVATIONS, hours=st.integers(-1, 13))
def test_intervals_contain_the_facts_of_the_last_observation_and_are_maximal(
    seen: list[tuple[datetime, frozenset[str]]], hours: int
) -> None:
    log = sorted(seen, key=lambda observation: observation[0])
    earlier = [facts for at, facts in log if at <= t(hours)]
    shown = set()
    for fact, spans in intervals(log).items():
        assert all(span.start < span.end for span in spans)
        assert all(one.end < other.start for one, other in itertools.pairwise(spans))
        if any(span.start <= t(hours) < span.end for span in spans):
            shown.add(fact)
    assert shown == (earlier[-1] if earlier else frozenset())


def test_a_flapping_fact_has_two_intervals() -> None:
    seen = [(t(0), {"a"}), (t(1), {"b"}), (t(2), {"a"})]
    assert intervals(seen) == {
        "a": [Interval(t(0), t(1)), Interval(t(2), FOREVER)],
        "b": [Interval(t(1), t(2))],
    }


def test_a_late_observation_cuts_or_joins_intervals() -> None:
    change = edits(["a"], ["a"], t(1), FOREVER, {})  # like the one before
    assert (change.removed, change.moved, change.opened) == ([], [], [])
    change = edits(["a"], [], t(1), t(2), {"a": [Interval(t(0), FOREVER)]})
    assert change.moved == [("a", Interval(t(0), t(1)))]
    assert change.opened == [("a", Interval(t(2), FOREVER))]
    change = edits([], ["a"], t(1), t(2), {"a": [Interval(t(0), t(1)), Interval(t(2), FOREVER)]})
    assert change.moved == [("a", Interval(t(0), FOREVER))]
    assert change.removed == [("a", Interval(t(2), FOREVER))]
    assert change.opened == []
    with pytest.raises(InconsistentGraph, match="rebuilt"):
        edits(["a"], [], t(1), FOREVER, {})  # the graph contradicts the observations
