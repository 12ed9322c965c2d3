"""Advice on running jobs: append-only, the newest of each job, the largest gain first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from registry.errors import UnknownName
from registry.registry import Registry
from registry.running.advice import AdviceRecord
from tests.support.busy_cluster import PROPOSED, advise, at, fill, job, place


@pytest.fixture
def placed(registry: Registry) -> Registry:
    """Three jobs, the last of which has ended."""
    return fill(registry, job("7", 2), job("8", 2), job("9", 2, 5))


def test_saved_advice_is_read_back_and_joined_to_its_job_and_placements(placed: Registry) -> None:
    present = place(placed, "7")
    proposed = place(placed, "7", role=PROPOSED, seconds=2.0)
    (before,) = placed.fabrics.clusters()
    record = advise(placed, "7", present, proposed, in_background=3, moved=2)
    advise(placed, "7", present, proposed, in_background=3, moved=2)
    (found,) = placed.advices.list()
    assert [getattr(found, name) for name in record.__slots__] == [
        getattr(record, name) for name in record.__slots__
    ]
    assert (found.gain, found.id) == (2.0, "toy/7/2026-01-01T00:10:00+00:00")
    advise(placed, "8", present, None)
    _, rows = placed.database.query(
        "MATCH (j:Job)-[:HAS_ADVICE]->(a:Advice)-[:OF]->(p:Placement) "
        "OPTIONAL MATCH (a)-[:PROPOSES]->(q:Placement) RETURN j.job, p.id, q.id, a.gain ORDER BY j.job"
    )
    assert rows == [("7", present, proposed, 2.0), ("8", present, None, 1.0)]
    (after,) = placed.fabrics.clusters()
    assert after.version > before.version


@pytest.mark.parametrize(
    ("proposed", "seconds", "gain"), [(None, 1.0, 1.0), ("p", 2.0, 2.0), ("p", 5.0, 1.0), ("p", 0.0, 1.0)]
)
def test_the_gain_is_present_over_proposed_and_never_below_one(
    proposed: str | None, seconds: float, gain: float
) -> None:
    record = AdviceRecord(
        cluster="c",
        job="7",
        at=at(0),
        present="q",
        proposed=proposed,
        present_seconds=4.0,
        proposed_seconds=seconds,
    )
    assert record.gain == gain


def test_the_newest_of_each_job_is_listed_the_largest_gain_first(placed: Registry) -> None:
    present = place(placed, "7")
    advise(placed, "7", present, present, when=at(10), proposed_seconds=0.5)
    advise(placed, "7", present, present, when=at(12), proposed_seconds=3.0)
    advise(placed, "8", present, present, when=at(11), proposed_seconds=1.0)
    advise(placed, "9", present, present, when=at(3), proposed_seconds=2.0)
    assert [(one.job, one.gain) for one in placed.advices.list("toy")] == [
        ("8", 4.0),
        ("9", 2.0),
        ("7", 4 / 3),
    ]
    assert [one.job for one in placed.advices.list("toy", limit=1)] == ["8"]
    assert [one.job for one in placed.advices.list("toy", running_at=at(20))] == ["8", "7"]
    assert placed.advices.list("two") == ()


def test_advice_on_an_unknown_job_or_placement_is_refused_and_nothing_is_saved(placed: Registry) -> None:
    present = place(placed, "7")
    unknown: list[dict[str, Any]] = [{"job": "none"}, {"present": "none"}, {"proposed": "none"}]
    good = AdviceRecord(
        cluster="toy", job="7", at=at(9), present=present, present_seconds=1.0, proposed_seconds=1.0
    )
    for changed in unknown:
        with pytest.raises(UnknownName, match="'none'"):
            placed.advices.save([good, replace(good, at=at(10), **changed)])
    assert placed.advices.list() == ()
    assert placed.advices.save([]) == ()
