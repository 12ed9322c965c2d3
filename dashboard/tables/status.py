"""Tables of the data sources and of the ingest runs. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd

from dashboard.state.viewer import Viewer
from dashboard.tables.columns import in_utc
from registry.ingest_runs.freshness import FAILING, FRESH, NEVER, OLD, age_text, freshness
from registry.ingest_runs.runs import RunInfo, SourceState

SIGNS = {FRESH: "●", OLD: "◔", FAILING: "▲", NEVER: "▲"}
"""Signs of the states of a source: shapes, so that no colour is needed."""


def sources_table(sources: Sequence[SourceState], now: datetime, viewer: Viewer) -> pd.DataFrame:
    """Return all sources with the age of their data, stale and failing ones first.

    Returns
    -------
    DataFrame
        Columns ``state``, ``cluster``, ``source``, ``last good``, ``last good (UTC)``, ``last try (UTC)``
        and ``what is wrong``.
    """
    rows = []
    for source in sources:
        state, _ = freshness(source, now)
        good = source.last_good_at
        rows.append(
            {
                "state": f"{SIGNS[state]} {state}",
                "cluster": source.cluster,
                "source": source.format or "unknown format",
                "last good": "never" if good is None else f"{age_text(now - good)} ago",
                "last good (UTC)": good,
                "last try (UTC)": source.last_at,
                "what is wrong": viewer.message(source.error),
                "fresh": state == FRESH,
            }
        )
    table = pd.DataFrame(rows)
    if not rows:
        return table
    table["last good (UTC)"] = in_utc(source.last_good_at for source in sources)
    table["last try (UTC)"] = in_utc(source.last_at for source in sources)
    return table.sort_values("fresh", kind="stable", ignore_index=True).drop(columns="fresh")


def runs_table(runs: Sequence[RunInfo], viewer: Viewer) -> pd.DataFrame:
    """Return ingest runs, one row each.

    Returns
    -------
    DataFrame
        Columns ``began (UTC)``, ``cluster``, ``formats``, ``outcome``, ``duration (s)``, ``files``,
        ``warnings`` (counts), ``error`` and ``run``.
    """
    table = pd.DataFrame(
        [
            {
                "began (UTC)": None,
                "cluster": run.cluster,
                "formats": ", ".join(run.formats) or "unknown",
                "outcome": run.outcome,
                "duration (s)": float(f"{run.seconds:.4g}"),
                "files": len(run.files),
                "warnings": len(run.warnings),
                "error": viewer.message(run.error),
                "run": run.id,
            }
            for run in runs
        ]
    )
    table["began (UTC)"] = in_utc(run.at for run in runs)
    return table
