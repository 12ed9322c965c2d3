"""State of a cluster: changes, findings, sources, slowed jobs and advice that still applies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mapping.placement.search.options import SearchOptions
from mapping.service.advising import advise_all
from mapping.service.live import traffic
from mapping.service.today import read_today
from registry.errors import InputError, UnknownName
from registry.fabrics.changes import summary
from registry.ingest_runs.runs import Attempt
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.running_jobs import T0
from tests.support.traffic_jobs import two_leaves

HOUR = timedelta(hours=1)


def test_jobs_that_share_the_only_uplink_slow_each_other(running: Registry) -> None:
    """Job 1 uses 16/64 of an uplink of 1 byte/s and job 2 4/8 of it: job 1 waits 32 s instead of 16 s."""
    today = read_today(running, "c", T0 - HOUR)
    assert [one.load.job for one in today.slowed] == ["1", "2"]
    assert [one.slowdown for one in today.slowed] == pytest.approx([1 + 16 / 64, 1 + (4 / 0.75 - 4) / 8])
    assert {one.link.load.seconds for one in today.slowed} == {20.0}
    assert [user.job for user in today.slowed[0].link.users] == ["1", "2"]
    assert (today.advice, today.advised) == ((), 0)
    assert (today.changes, today.scanned, today.failed) == (None, True, ())
    assert {name: one.state for name, one in today.sources.items()} == {"test": "stale"}  # observed long ago


def test_advice_counts_while_the_job_runs_with_the_placement_that_it_was_for(running: Registry) -> None:
    live = traffic(running, "c")
    list(advise_all(running, live, SearchOptions(steps=4000, workers=1)))
    today = read_today(running, "c", T0 - HOUR)
    (advice,) = today.advice
    assert advice.job == "1"
    assert advice.gain == pytest.approx(20 / 12)
    assert today.advised == 2


def test_changes_are_those_since_then_and_unknown_without_a_scan(running: Registry) -> None:
    running.save(Intake(cluster="c", fabric=two_leaves(uplinks=2), observed_at=T0 + HOUR, source="test"))
    today = read_today(running, "c", T0 + HOUR / 2)
    assert today.changes is not None
    assert summary(today.changes).startswith("1 cable appeared")
    assert today.scanned
    later = read_today(running, "c", T0 + 2 * HOUR)
    assert not later.scanned
    assert read_today(running, "c", T0 - HOUR).changes is None


def test_sources_that_fail_or_are_old_and_failed_runs(running: Registry) -> None:
    begin = datetime.now(UTC) - HOUR
    attempt = Attempt(cluster="c", started_at=datetime.now(UTC), files=("scan.txt",), formats=("test",))
    running.runs.failed(attempt, InputError("truncated", path="scan.txt"), 0.1)
    today = read_today(running, "c", begin)
    assert [run.files for run in today.failed] == [("scan.txt",)]
    assert "truncated" in today.sources["test"].words
    assert read_today(running, "c", datetime.now(UTC)).failed == ()
    with pytest.raises(UnknownName, match="nosuch"):
        read_today(running, "nosuch", begin)
