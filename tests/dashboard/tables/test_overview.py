"""Links, jobs, changes and findings of the overview."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from dashboard.state.viewer import OTHERS, Viewer
from dashboard.tables.overview import (
    NOT_ATTRIBUTED,
    busiest_links,
    changes_lines,
    events,
    health,
    jobs_to_act,
)
from mapping.checks.finding import Finding, Severity
from mapping.traffic.device_names import find_link
from mapping.traffic.shared_load import JobLoad, SharedLoad
from mapping.traffic.short_names import short_link
from registry.fabrics.changes import Changes, compare
from registry.ingest_runs.runs import SourceState
from registry.jobs.jobs import StoredJob
from registry.model import Job, Metrics
from registry.model.loaded_links import LoadedLinks
from registry.running.advice import StoredAdvice
from registry.running.running_jobs import PresentPlacement, RunningJob
from tests.support.fat_tree import fat_tree

NOW = datetime(2026, 1, 10, tzinfo=UTC)

FABRIC = fat_tree()


def loaded(job: str, user: str, row: int, size: float) -> JobLoad:
    loads = np.zeros(len(FABRIC.links))
    loads[row] = size
    return JobLoad(job=job, user=user, application="cg", loads=LoadedLinks.of(loads))


def test_busy_links_are_measured_ones_and_name_their_jobs_as_far_as_may_be_seen() -> None:
    shared = SharedLoad.of(FABRIC, [loaded("1", "ann", 5, 3.0), loaded("2", "bob", 5, 1.0)])
    share = np.full(len(FABRIC.links), np.nan)
    share[[2, 5]] = 0.25, 0.5
    first, second = busiest_links(shared, share, 10, Viewer())
    assert (first.row, first.part, first.jobs) == (5, 0.5, "1, 2")
    assert (second.row, second.part, second.jobs) == (2, 0.25, NOT_ATTRIBUTED)
    assert first.short == short_link(FABRIC, 5)
    assert find_link(FABRIC, first.full) == 5
    assert busiest_links(shared, share, 10, Viewer(only="bob"))[0].jobs == f"{OTHERS}, 2"
    shared = SharedLoad.of(FABRIC, [loaded("1", "ann", 3, 3.0), loaded("2", "bob", 4, 6.0)])
    found = busiest_links(shared, None, 10, Viewer())  # without counters: by the estimated time
    capacity = FABRIC.links.capacity
    assert capacity[3] == capacity[4]
    assert [(one.row, one.part, one.jobs) for one in found] == [(4, 1.0, "2"), (3, 0.5, "1")]
    assert found[0].seconds == 6.0 / capacity[4]


def running(job: str, user: str, gain: float | None) -> RunningJob:
    """A job, with the advice of a search unless none was made."""
    found: dict[str, Any] = {"at": NOW - timedelta(hours=2), "present": "p1", "proposed": "p2", "moved": 4}
    found |= {"present_seconds": gain, "proposed_seconds": 1.0}
    advice = StoredAdvice(id=f"a{job}", cluster="c", job=job, **found)
    stored = StoredJob(id=f"c/{job}", cluster="c", job=Job(id=job, user=user), profile="f", as_of=NOW)
    known = None if gain is None else advice
    return RunningJob(stored=stored, application="cg", present=None, advice=known)


def test_the_distance_from_best_is_that_of_how_a_job_runs() -> None:
    metrics = Metrics(**dict.fromkeys((field.name for field in fields(Metrics)), 3.0))
    nothing: dict[str, Any] = {field.name: None for field in fields(PresentPlacement)}
    present = PresentPlacement(**(nothing | {"metrics": metrics, "bound_seconds": 1.5}))
    job = replace(running("1", "ann", None), present=present)
    assert jobs_to_act([job], Viewer())[0].distance == 2.0
    for unknown in (None, replace(present, bound_seconds=None), replace(present, metrics=None)):
        assert jobs_to_act([replace(job, present=unknown)], Viewer())[0].distance is None


def test_jobs_come_by_their_gain_then_those_not_searched() -> None:
    gains = (("3", "ann", None), ("4", "ann", 1.0), ("1", "ann", 1.5), ("2", "bob", 3.0))
    jobs = [running(*one) for one in gains]
    listed = jobs_to_act(jobs, Viewer())
    assert [one.key for one in listed] == ["c/2", "c/1", "c/4", "c/3"]
    assert (listed[0].label, listed[0].gain, listed[0].moves) == ("2 · cg · bob", 3.0, 4)
    assert (listed[3].gain, listed[3].seconds) == (None, None)
    assert [one.key for one in jobs_to_act(jobs, Viewer(only="bob"))] == ["c/2"]
    assert "bob" not in jobs_to_act(jobs, Viewer(key=b"k" * 32))[0].label


def test_new_tables_are_a_change_of_their_own() -> None:
    for rerouted in (True, False):
        lines = changes_lines(compare(FABRIC, fat_tree(without=(0,))), rerouted)
        assert ("the forwarding tables changed" in lines) is rerouted
        assert lines[0].endswith(" vanished")
    assert changes_lines(Changes(), False) == []


def test_events_come_worst_first_with_the_page_that_shows_them() -> None:
    found = [
        Finding(Severity.WARNING, "a", "MF0;a:MQM9700/U1:3: one cable up", 2, "rails"),
        Finding(Severity.ERROR, "b", "b is cut off"),
    ]
    good = NOW - timedelta(days=1)
    failed: dict[str, Any] = {
        "last_at": NOW,
        "last_outcome": "failed",
        "last_good_at": good,
        "error": "cut off",
    }
    state = SourceState(cluster="c", format="perfquery", **failed)
    scanned = NOW - timedelta(minutes=3)
    listed = events(found, (), ["cable vanished"], [state], NOW, scanned)
    assert [(one.word, one.where) for one in listed] == [
        ("error", "fabric"),
        ("failing", "data"),
        ("warning", "fabric"),
        ("changed", "changes"),
    ]
    assert [one.time for one in listed] == [scanned, NOW, scanned, scanned]
    assert listed[1].text == "perfquery: cut off"
    assert listed[2].text == "a:3: one cable up"
    assert events((), (), (), (), NOW, NOW) == []


def test_health_is_the_worst_finding_and_the_numbers_of_all() -> None:
    found = [Finding(severity, "a", "a") for severity in (Severity.NOTE, Severity.WARNING, Severity.WARNING)]
    assert health(found) == (Severity.WARNING, "2 warnings, 1 note")
    assert health(()) == (None, "no findings")
