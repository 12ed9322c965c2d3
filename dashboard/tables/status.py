"""Tables of the data sources and of the ingest runs. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd

from dashboard.state.viewer import Viewer
from dashboard.tables.columns import in_utc
from registry.ingest_runs.runs import (
    FAILING,
    FRESH,
    NEVER,
    NO_ALARM,
    NO_CLUSTER,
    OLD,
    RunInfo,
    SourceState,
    age_text,
    freshness,
)

SIGNS = {FRESH: "●", OLD: "◔", FAILING: "▲", NEVER: "▲", NO_CLUSTER: "○"}
"""Signs of the states of a source: shapes, so that no colour is needed."""


def sources_table(sources: Sequence[SourceState], now: datetime, viewer: Viewer) -> pd.DataFrame:
    """Return all sources with the age of their data, stale and failing ones first."""
    if not sources:
        return pd.DataFrame()
    states = {source: freshness(source, now).state for source in sources}
    listed = sorted(sources, key=lambda source: states[source] in NO_ALARM)
    good = [source.last_good_at for source in listed]
    return pd.DataFrame(
        {
            "state": [f"{SIGNS[states[source]]} {states[source]}" for source in listed],
            "cluster": [source.cluster for source in listed],
            "source": [source.format or "unknown format" for source in listed],
            "last good": ["never" if time is None else f"{age_text(now - time)} ago" for time in good],
            "last good (UTC)": in_utc(good),
            "last try (UTC)": in_utc(source.last_at for source in listed),
            "what is wrong": [viewer.message(source.error) for source in listed],
        }
    )


def runs_table(runs: Sequence[RunInfo], viewer: Viewer) -> pd.DataFrame:
    """Return ingest runs, one row each, with their numbers of files and warnings."""
    return pd.DataFrame(
        {
            "began (UTC)": in_utc(run.at for run in runs),
            "cluster": [run.cluster for run in runs],
            "formats": [", ".join(run.formats) or "unknown" for run in runs],
            "outcome": [run.outcome for run in runs],
            "duration (s)": [float(f"{run.seconds:.4g}") for run in runs],
            "files": [len(run.files) for run in runs],
            "warnings": [len(run.warnings) for run in runs],
            "error": [viewer.message(run.error) for run in runs],
            "run": [run.id for run in runs],
        }
    )
