"""The table of all jobs: quality of their placements, blanks if a value is not known."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

from dashboard.state.viewer import Viewer
from dashboard.tables.jobs import OVER, SCATTER, WORST, jobs_table, over_bound
from mapping.traffic.fragmentation import Fragmentation
from registry.jobs.jobs import StoredJob
from registry.model import Job
from registry.pages.jobs import JobRow
from tests.dashboard.tables.test_placements import info

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def row(job: Job, *, placed: bool) -> JobRow:
    stored = StoredJob(id=f"c/{job.id}", cluster="c", job=job, profile=None, as_of=NOW)
    return JobRow(stored=stored, application="cg", placement=info() if placed else None, advice=None)


def test_unknown_values_of_a_job_are_blank() -> None:
    placed = Job(id="1", user="ann", hosts=("a", "b"), slots=(2, 3), started_at=NOW)
    rows = [row(placed, placed=True), row(Job(id="2", user="bob"), placed=False)]
    table = jobs_table(rows, [Fragmentation(groups=3, fewest=2), None], Viewer())
    assert table["hosts"].tolist() == [2, 0]
    assert table["ranks"].tolist() == [5, 0]
    assert table[WORST].iloc[0] == 2e-3
    assert table[OVER].iloc[0] == 2.0
    assert table[SCATTER].iloc[0] == 1.5
    assert table[[WORST, OVER, SCATTER]].iloc[1].isna().all()
    assert table["started (UTC)"].isna().tolist() == [False, True]


def test_the_distance_from_the_bound_needs_a_bound_above_zero() -> None:
    assert over_bound(None) is None
    assert over_bound(replace(info(), bounds={"congestion_seconds": 0.0})) is None
    assert over_bound(replace(info(), congestion_seconds=None)) is None
    assert math.isclose(over_bound(info()) or 0.0, 2.0)
