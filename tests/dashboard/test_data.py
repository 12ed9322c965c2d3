"""The page Data: ages, failures with their cause and command, and all ingest runs."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from dashboard.pages.data import age_grid, attention, runs_table, short_age, sources_table
from dashboard.shared.cards import csv_text
from dashboard.shared.viewer import Access, Viewer
from registry.errors import InputError
from registry.model import Job
from registry.model.intake import Intake
from registry.store.ingest_runs import FAILED, SAVED, Attempt, Ingests, RunInfo, SourceDay, SourceState
from tests.dashboard.conftest import Connect
from tests.support.apps import captions, messages, numbers, page, seen_by, whole
from tests.support.fat_tree import fat_tree

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def source(format: str, **told: Any) -> SourceState:
    plain = {"cluster": "c", "last_at": NOW, "last_outcome": SAVED, "last_good_at": NOW, "error": ""}
    return SourceState(format=format, **{**plain, **told})


def test_sources_that_ask_for_a_look_come_first() -> None:
    error = "/home/ann/x: cut off"
    states = [
        source("fine"),
        source("old", last_good_at=NOW - timedelta(days=8)),
        source("bad", last_outcome=FAILED, error=error),
        source("never", last_good_at=None, last_outcome=FAILED, error=error),
    ]
    table = sources_table(states, NOW, Viewer())
    assert table["source"].tolist() == ["old", "bad", "never", "fine"]
    assert table["observed"].tolist() == ["8 days ago", "0 seconds ago", "never", "0 seconds ago"]
    assert table["observed (UTC)"].isna().tolist() == [False, False, True, False]
    assert table["last try (UTC)"].dt.tz is None
    hidden = sources_table(states, NOW, Viewer(key=b"k" * 32))
    assert hidden["what is wrong"].tolist()[1] == "x: cut off"
    assert sources_table([], NOW, Viewer()).empty


def test_sources_that_need_attention_name_cause_and_command() -> None:
    states = [
        source("fine"),
        source("old", observed_at=NOW - timedelta(days=9)),
        source("older", observed_at=NOW - timedelta(days=90)),
        source("bad", last_outcome=FAILED, error="/home/ann/a b.txt: cut off"),
        source("typo", known=False, last_good_at=None, last_outcome=FAILED, error="no cluster"),
    ]
    runs = [ingest_run(("bad",), ("/home/ann/a b.txt",)), ingest_run(("old", "x"), tuple("fghi"))]
    bad, older, old = attention(states, runs, NOW, Viewer())
    assert bad == (
        "failing",
        "bad · c",
        "observed 0 seconds ago; the last try failed: /home/ann/a b.txt: cut off",
        "almanac ingest --cluster c '/home/ann/a b.txt'",
    )
    assert older == ("stale", "older · c", "observed 90 days ago, ingested 0 seconds ago", older.command)
    assert older.command == "almanac ingest --cluster c FILE"
    assert old.command == "almanac ingest --cluster c f g h ..."
    hidden = attention(states, runs, NOW, Viewer(key=b"k" * 32))[0]
    assert "ann" not in hidden.cause + hidden.command


def of_day(format: str, day: int, runs: int, failed: int, hours: float | None) -> SourceDay:
    time = None if hours is None else NOW - timedelta(hours=hours)
    return SourceDay(cluster="c", format=format, day=day, runs=runs, failed=failed, observed_at=time)


def test_the_grid_has_the_age_of_the_latest_data_of_each_day() -> None:
    starts = [NOW - timedelta(days=before) for before in (3, 2, 1)]

    bad = source("scan", last_outcome=FAILED, observed_at=NOW - timedelta(hours=30), error="cut")
    plain = source("jobs", observed_at=NOW - timedelta(hours=30))
    days = (
        of_day("scan", 0, 1, 0, 400),
        of_day("scan", 2, 1, 0, 30),  # observed 30 hours ago, on the second day
        of_day("scan", 3, 3, 2, None),
        of_day("jobs", 2, 4, 1, 30),
    )
    sources = (plain, bad, source("profile", cluster=""))
    table = age_grid(Ingests(sources=sources, days=days), starts, NOW)
    assert table["source"].tolist() == ["scan · c"] * 3 + ["jobs · c"] * 3
    assert table["state"].tolist() == ["stale", "fresh", "failing", "no data", "fresh", "fresh"]
    assert table["text"].tolist() == ["14d", "6h", "✕ 1d", "", "✕ 6h", "1d"]
    assert table["day"].tolist() == ["07", "08", "09"] * 2
    assert table["failed"].tolist() == [0, 0, 2, 0, 1, 0]
    assert age_grid(Ingests(sources=(), days=()), starts, NOW).empty


def test_a_short_age_has_one_unit_and_runs_are_shown_with_their_counts() -> None:
    ages = [short_age(timedelta(seconds=seconds)) for seconds in (-3, 59, 60, 7200, 86400 * 1200)]
    assert ages == ["0s", "59s", "1m", "2h", "1,200d"]
    run = ingest_run(("a", "b"), ("f", "g"))
    (row,) = runs_table([run], Viewer()).to_dict("records")
    assert (row["formats"], row["files"], row["warnings"], row["duration (s)"]) == ("a, b", 2, 1, 1.23)
    assert row["began (UTC)"] == pd.Timestamp("2026-01-10")
    assert "'=1+1" in csv_text(runs_table([run], Viewer()))


def ingest_run(formats: tuple[str, ...], files: tuple[str, ...]) -> RunInfo:
    plain: dict[str, Any] = {field.name: "" for field in fields(RunInfo)}
    plain |= {"id": "r1", "cluster": "c", "at": NOW, "warnings": ("odd",), "seconds": 1.23456, "profiles": ()}
    plain |= {"outcome": FAILED, "error": "=1+1", "error_kind": "InputError"}
    return RunInfo(**(plain | {"formats": formats, "files": files}))


FILE = "/home/eve/scan.txt"


@pytest.fixture
def toy(nothing: Connect) -> Connect:
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


def test_failures_come_first_with_cause_and_command_and_failed_runs_are_explained(toy: Connect) -> None:
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
    assert (listed["source"].tolist(), listed["observed"].tolist()[0]) == (["scan", "jobs"], "40 days ago")
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
        scan = Intake(cluster="toy", files=("g",), source="scan", fabric=fat_tree(), observed_at=now)
        registry.save(replace(scan, started_at=now))
    app = page(toy, "data", cluster="toy")
    assert any("all sources are fresh" in one.value for one in app.markdown)
    assert not app.code
