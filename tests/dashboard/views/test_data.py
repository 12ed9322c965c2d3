"""The page Data: ages, failures with their cause and command, and all ingest runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.state.viewer import Access
from registry.errors import InputError
from registry.ingest_runs.runs import Attempt
from registry.model import Job
from registry.model.intake import Intake
from tests.dashboard.conftest import Connect
from tests.support.apps import captions, messages, numbers, page, seen_by, whole
from tests.support.fat_tree import fat_tree

FILE = "/home/eve/scan.txt"


@pytest.fixture
def toy(nothing: Connect) -> Connect:
    """A cluster with an old scan that failed since, and with jobs of now."""
    now = datetime.now(UTC)
    plain = Intake(cluster="toy", files=("f",), started_at=now - timedelta(hours=2))
    scan = replace(plain, source="scan", fabric=fat_tree(), observed_at=now - timedelta(days=40, hours=1))
    jobs = replace(plain, source="jobs", jobs=(Job(id="1", hosts=("node00",), slots=(1,)),), files_at=now)
    with nothing() as registry:
        registry.save(scan)
        registry.save(jobs)
        attempt = Attempt(started_at=now, cluster="toy", formats=("scan",), files=(FILE,))
        registry.failed(attempt, InputError("cut off", path=FILE))
    return nothing


def test_failures_come_first_with_their_cause_and_the_command(toy: Connect) -> None:
    app = page(toy, "data", cluster="toy")
    shown = numbers(app)
    assert (shown["Sources"], shown["Oldest data"], shown["Ingest runs in 24 h"]) == ("2", "40 days", "3")
    assert shown["Newest data"].endswith(("seconds", "second"))
    for text in ("1 failing", "1 failed", "failing: scan · toy"):
        assert text in captions(app)
    assert f"observed 40 days ago, ingested 2 hours ago; the last try failed: {FILE}: cut off" in [
        one.value for one in app.text
    ]
    assert [one.value for one in app.code] == [f"almanac ingest --cluster toy {FILE}"]
    listed = app.dataframe[0].value
    assert listed["source"].tolist() == ["scan", "jobs"]
    assert listed["observed"].tolist()[0] == "40 days ago"


def test_runs_are_listed_and_a_failed_one_is_explained(toy: Connect) -> None:
    app = page(toy, "data", cluster="toy", outcome="failed")
    (run,) = app.dataframe[1].value.to_dict("records")
    assert run["error"] == f"{FILE}: cut off"
    app = page(toy, "data", cluster="toy", run=run["run"])
    assert "cut off" in messages(app)
    assert FILE in list(app.dataframe[2].value["value"])
    hidden = seen_by(Access(key=b"k" * 32), toy, "data", cluster="toy", run=run["run"])
    assert "eve" not in whole(hidden) + "".join(one.value for one in hidden.code)
    assert "There is no run" in messages(page(toy, "data", cluster="toy", run="nothing"))


def test_fresh_sources_need_nothing(toy: Connect) -> None:
    with toy() as registry:
        now = datetime.now(UTC)
        scan = Intake(
            cluster="toy", files=("g",), started_at=now, source="scan", fabric=fat_tree(), observed_at=now
        )
        registry.save(scan)
    app = page(toy, "data", cluster="toy")
    assert any("all sources are fresh" in one.value for one in app.markdown)
    assert not app.code
