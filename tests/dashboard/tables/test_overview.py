"""Links, jobs, changes and findings of the overview."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from dashboard.state.viewer import OTHERS, Viewer
from dashboard.tables.overview import (
    changes_lines,
    findings_table,
    gains_table,
    measured_links,
    predicted_links,
)
from mapping.checks.finding import Finding, Severity
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.fabrics.changes import Changes, compare
from registry.jobs.jobs import StoredJob
from registry.model import Job, LinkRates
from registry.model.loaded_links import LoadedLinks
from registry.running.advice import StoredAdvice
from registry.running.running_jobs import RunningJob
from tests.support.fat_tree import fat_tree

NOW = datetime(2026, 1, 10, tzinfo=UTC)

FABRIC = fat_tree()


def test_measured_links_are_shown_by_their_share() -> None:
    m = len(FABRIC.links)
    share = np.full(m, np.nan)
    share[[2, 5]] = 0.25, 0.5
    nothing = np.full(m, np.nan)
    rates = LinkRates(
        start=NOW - timedelta(hours=1),
        end=NOW,
        bytes_per_second=share * FABRIC.links.capacity,
        peak_bytes_per_second=nothing,
        share=share,
        at_least=np.zeros(m, bool),
        by=np.zeros(m, np.uint8),
        wait_ticks_per_second=nothing,
        ecn_marked_per_second=nothing,
        pauses_per_second=nothing,
    )
    table = measured_links(FABRIC, rates, 10)
    assert table["row"].tolist() == [5, 2]
    assert table["share"].tolist() == [0.5, 0.25]
    assert (table["rate"] == table["share"] * table["capacity"]).all()


def loaded(job: str, user: str, row: int, size: float) -> JobLoad:
    loads = np.zeros(len(FABRIC.links))
    loads[row] = size
    return JobLoad(job=job, user=user, application="cg", loads=LoadedLinks.of(loads))


def test_a_predicted_link_names_whose_traffic_it_is_as_far_as_may_be_seen() -> None:
    shared = SharedLoad.of(FABRIC, [loaded("1", "ann", 3, 3.0), loaded("2", "bob", 3, 1.0)])
    (everyone,) = predicted_links(FABRIC, shared.hottest(5), Viewer())["whose traffic"]
    assert everyone == "75% job 1 (cg, ann), 25% job 2 (cg, bob)"
    (mine,) = predicted_links(FABRIC, shared.hottest(5), Viewer(only="bob"))["whose traffic"]
    assert mine == f"75% {OTHERS}, 25% job 2 (cg, bob)"
    (hidden,) = predicted_links(FABRIC, shared.hottest(5), Viewer(key=b"k" * 32))["whose traffic"]
    assert "ann" not in hidden


def running(job: str, user: str, gain: float | None) -> RunningJob:
    advice = None
    if gain is not None:
        advice = StoredAdvice(
            id=f"a{job}",
            cluster="c",
            job=job,
            at=NOW - timedelta(hours=2),
            present="p1",
            proposed="p2",
            present_seconds=gain,
            proposed_seconds=1.0,
            moved=4,
        )
    stored = StoredJob(id=f"c/{job}", cluster="c", job=Job(id=job, user=user), profile="f", as_of=NOW)
    return RunningJob(stored=stored, application="cg", present=None, advice=advice)


def test_jobs_that_would_gain_come_in_order_of_their_gain() -> None:
    jobs = [
        running("1", "ann", 1.5),
        running("2", "bob", 3.0),
        running("3", "ann", None),
        running("4", "ann", 1.0),
    ]
    table = gains_table(jobs, NOW, Viewer())
    assert table["job"].tolist() == ["2", "1"]
    assert table["looked at"].tolist() == ["2 hours ago"] * 2
    assert table["key"].tolist() == ["c/2", "c/1"]
    assert gains_table(jobs, NOW, Viewer(only="ann"))["job"].tolist() == ["1"]
    assert gains_table(jobs[2:], NOW, Viewer()).empty


@pytest.mark.parametrize("rerouted", [True, False])
def test_new_tables_are_a_change_of_their_own(rerouted: bool) -> None:
    lines = changes_lines(compare(FABRIC, fat_tree(without=(0,))), rerouted)
    assert ("the forwarding tables changed" in lines) is rerouted
    assert lines[0].endswith(" vanished")
    assert changes_lines(Changes(), False) == []


def test_findings_are_shown_with_their_severity() -> None:
    found = [Finding(Severity.WARNING, "a", "a: one cable up", 2, "rails")]
    (row,) = findings_table(found).to_dict("records")
    assert row == {"severity": "warning", "check": "rails", "what": "a: one cable up", "count": 2}
