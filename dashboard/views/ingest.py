"""The ingest page: age of the data sources, failed runs and their errors, durations of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from dashboard.figures.ingest import durations
from dashboard.figures.style import theme_of
from dashboard.state.site import Site
from dashboard.tables.status import runs_table, sources_table
from dashboard.widgets.controls import any_of, toggle
from dashboard.widgets.messages import plain, show_empty, show_unknown
from dashboard.widgets.tables import csv_text, download
from registry.errors import UnknownName
from registry.ingest_runs.runs import FAILED, RunInfo, SourceState
from registry.registry import Registry

ALL = "all"
RUNS = 1000
"""Maximum number of runs shown; the newest ones."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Ingest")
    try:
        sources = registry.runs.sources()
        if not sources:
            show_empty(
                "The registry holds no ingest run yet. Ingest a scan, or load the demonstration:",
                "almanac ingest SCAN --cluster NAME",
                "almanac demo",
            )
            return
        left, right = st.columns([2, 5])
        with left:
            names = sorted({source.cluster for source in sources if source.cluster})
            cluster = any_of("cluster", names, resets=("run",))
        with right:
            outcome = toggle("Runs", "outcome", {ALL: "All", FAILED: "Failed only"}, default=ALL)
        runs = [run for run in registry.runs.list(cluster, RUNS) if outcome in (ALL, run.outcome)]
        _sources([source for source in sources if cluster in (None, source.cluster)], site)
        _runs(runs, site)
    except UnknownName as error:
        show_unknown(error, error.kind)


def _sources(sources: Sequence[SourceState], site: Site) -> None:
    st.subheader("Sources")
    table = sources_table(sources, datetime.now(UTC), site.viewer)
    st.dataframe(table, hide_index=True, key="sources", height="content")


def _runs(runs: Sequence[RunInfo], site: Site) -> None:
    """Draw the runs as a chart and a table, and all about the selected run."""
    st.subheader("Runs")
    if not runs:
        st.info("No run matches this choice.")
        return
    table = runs_table(runs, site.viewer)
    theme = theme_of(st.context.theme.type)
    points = pd.DataFrame(
        {
            "at": pd.to_datetime(table["began (UTC)"], utc=True),
            "seconds": table["duration (s)"],
            "outcome": table["outcome"],
            "source": table["formats"],
            "cluster": table["cluster"],
        }
    )
    st.altair_chart(durations(points, theme), key="durations")
    event = st.dataframe(table, hide_index=True, on_select="rerun", selection_mode="single-row", key="runs")
    with st.container(horizontal=True, vertical_alignment="center"):
        download("Download as CSV", csv_text(table), "ingest-runs.csv", key="runs csv")
        st.caption(f"At most the newest {RUNS:,} runs. Select a row to see its files and warnings.")
    picked = event["selection"]["rows"]
    _run(_chosen(runs, picked[0] if picked else None), site)


def _chosen(runs: Sequence[RunInfo], picked: int | None) -> RunInfo | None:
    """Return the selected run, or the run in the address, or None.

    Raises
    ------
    UnknownName
    """
    if picked is not None:
        st.query_params["run"] = runs[picked].id
        return runs[picked]
    wanted = st.query_params.get("run")
    if wanted is None:
        return None
    by_id = {run.id: run for run in runs}
    if wanted not in by_id:
        raise UnknownName("run", wanted, by_id)
    return by_id[wanted]


def _run(run: RunInfo | None, site: Site) -> None:
    """Draw a run with its error, files, warnings and results."""
    if run is None:
        return
    st.markdown(f"**Run {plain(run.id)}**")
    if run.error:
        st.error(f"{plain(run.error_kind)}: {plain(site.viewer.message(run.error))}", icon=":material/error:")
    parts = {
        "files": [site.viewer.path(path) for path in run.files],
        "warnings": [site.viewer.message(text) for text in run.warnings],
        "profiles": run.profiles,
        "snapshot": [run.snapshot] if run.snapshot else [],
        "tables": [run.routing] if run.routing else [],
    }
    rows = [(what, text) for what, texts in parts.items() for text in texts]
    st.dataframe(pd.DataFrame(rows, columns=["kind", "value"]), hide_index=True, key="run", height="content")
