"""The table of all jobs: distance from the best, gain, with whom they share links; blanks if not known."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dashboard.state.viewer import Viewer
from dashboard.tables.jobs import (
    DISTANCE,
    GAIN,
    JOB,
    SHARED,
    STARTED,
    STATE,
    UNITS,
    WORST,
    jobs_file,
    jobs_table,
    over_bound,
    state_text,
)
from registry.jobs.jobs import StoredJob
from registry.model import Job
from registry.pages.jobs import JobRow
from tests.dashboard.tables.test_placements import info

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def row(job: Job, *, placed: bool) -> JobRow:
    stored = StoredJob(id=f"c/{job.id}", cluster="c", job=job, profile=None, as_of=NOW)
    return JobRow(stored=stored, application="cg", placement=info() if placed else None, advice=None)


def test_unknown_values_of_a_job_are_blank() -> None:
    placed = Job(id="1", user="ann", state="RUNNING", hosts=("a", "b"), slots=(2, 3), started_at=NOW)
    rows = [row(placed, placed=True), row(Job(id="2", user="bob"), placed=False)]
    table = jobs_table(rows, {"c/1": "7, 8"}, Viewer())
    assert table[STATE].tolist() == ["▶ running", "? unknown"]
    assert table[JOB].tolist() == ["1 · cg · ann", "2 · cg · bob"]
    assert table["hosts"].tolist() == [2, 0]
    assert table[DISTANCE].iloc[0] == 2.0
    assert table[[DISTANCE, GAIN]].iloc[1].isna().all()
    assert table[SHARED].tolist() == ["7, 8", ""]
    assert table[STARTED].isna().tolist() == [False, True]
    viewer = Viewer(key=b"k")
    assert jobs_table(rows, {}, viewer)[JOB].iloc[0] == f"1 · cg · {viewer.name('ann')}"


def test_a_file_holds_values_in_base_units() -> None:
    placed = Job(id="1", user="ann", hosts=("a", "b"), slots=(2, 3), started_at=NOW)
    (found,) = jobs_file([row(placed, placed=True)], Viewer()).to_dict("records")
    assert (found["ranks"], found[WORST], found[DISTANCE], found["cluster"]) == (5, 2e-3, 2.0, "c")
    assert UNITS == {WORST: "s"}


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("RUNNING", "▶ running"),
        ("COMPLETED", "✓ completed"),
        ("PENDING", "◌ pending"),
        ("TIMEOUT", "✕ timeout"),
    ],
)
def test_a_state_has_a_sign_and_a_word(state: str, text: str) -> None:
    assert state_text(state) == text


def test_the_distance_from_the_bound_needs_a_bound_above_zero() -> None:
    assert over_bound(None) is None
    assert over_bound(replace(info(), bounds={"congestion_seconds": 0.0})) is None
    assert over_bound(replace(info(), congestion_seconds=None)) is None
    assert math.isclose(over_bound(info()) or 0.0, 2.0)
