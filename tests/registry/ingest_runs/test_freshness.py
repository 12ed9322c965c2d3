"""Freshness of sources: fresh, stale, failing or never read, with a description."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from registry.ingest_runs.freshness import FAILING, FRESH, NEVER, OLD, STALE, age_text, freshness
from registry.ingest_runs.runs import FAILED, SAVED, SourceState
from tests.support.fat_tree import at


def source(**changed: Any) -> SourceState:
    plain: dict[str, Any] = {
        "cluster": "toy",
        "format": "x",
        "last_at": at(0),
        "last_outcome": SAVED,
        "last_good_at": at(0),
    }
    return SourceState(**{**plain, "error": "", **changed})


@pytest.mark.parametrize(
    ("changed", "age", "state"),
    [
        ({}, STALE, FRESH),
        ({}, STALE + timedelta(seconds=1), OLD),
        ({"cluster": ""}, 10 * STALE, FRESH),
        ({"last_outcome": FAILED, "error": "cut off"}, timedelta(), FAILING),
        ({"last_outcome": FAILED, "last_good_at": None}, timedelta(), NEVER),
    ],
)
def test_a_source_is_fresh_stale_failing_or_was_never_read(
    changed: dict[str, object], age: timedelta, state: str
) -> None:
    assert freshness(source(**changed), at(0) + age).state == state


def test_the_age_counts_from_the_observation_and_not_from_the_ingest() -> None:
    words = freshness(source(last_outcome=FAILED, error="cut off"), at(120)).words
    assert words == "observed 2 hours ago; the last try failed: cut off"
    old = source(observed_at=at(0) - 10 * STALE)
    assert freshness(old, at(1)) == (OLD, "observed 70 days ago, ingested 1 minute ago")
    assert old.age(at(0)) == 10 * STALE
    assert source().age(at(0)) == timedelta()  # recorded by an earlier program: the ingest counts
    assert source(last_good_at=None, observed_at=at(0)).age(at(0)) is None


def test_an_age_is_in_the_largest_unit() -> None:
    ages = (timedelta(seconds=-5), timedelta(seconds=1), timedelta(seconds=90), timedelta(hours=23.9))
    assert [age_text(age) for age in ages] == ["0 seconds", "1 second", "1 minute", "23 hours"]
    assert age_text(timedelta(days=1200)) == "1,200 days"
