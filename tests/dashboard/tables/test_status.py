"""Sources and runs as tables, links and jobs of the overview: pure functions of small records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from dashboard.state.viewer import Viewer
from dashboard.tables.status import runs_table, sources_table
from dashboard.widgets.tables import csv_text
from registry.ingest_runs.runs import FAILED, SAVED, RunInfo, SourceState

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def source(format: str, **told: Any) -> SourceState:
    plain: dict[str, Any] = {
        "cluster": "c",
        "last_at": NOW,
        "last_outcome": SAVED,
        "last_good_at": NOW,
        "error": "",
    }
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
    assert table["last good"].tolist() == ["8 days ago", "0 seconds ago", "never", "0 seconds ago"]
    assert table["last good (UTC)"].isna().tolist() == [False, False, True, False]
    assert table["last try (UTC)"].dt.tz is None
    hidden = sources_table(states, NOW, Viewer(key=b"k" * 32))
    assert hidden["what is wrong"].tolist()[1] == "x: cut off"
    assert sources_table([], NOW, Viewer()).empty


def test_runs_are_shown_with_their_counts() -> None:
    run = RunInfo(
        id="r1",
        cluster="c",
        at=NOW,
        formats=("a", "b"),
        files=("f", "g"),
        digest="",
        warnings=("odd",),
        seconds=1.23456,
        outcome=FAILED,
        error="=1+1",
        error_kind="InputError",
        snapshot="",
        routing="",
        profiles=(),
    )
    (row,) = runs_table([run], Viewer()).to_dict("records")
    assert (row["formats"], row["files"], row["warnings"], row["duration (s)"]) == ("a, b", 2, 1, 1.235)
    assert row["began (UTC)"] == pd.Timestamp("2026-01-10")
    assert "'=1+1" in csv_text(runs_table([run], Viewer()))
