"""The page Data: which sources are old or fail, why, and what to do; all ingest runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pandas as pd
import streamlit as st

from dashboard.figures.ingest import age_grid, durations
from dashboard.figures.style import theme_of
from dashboard.queries import door
from dashboard.queries.ingests import RUNS, IngestView
from dashboard.state.site import Site
from dashboard.state.viewer import Viewer
from dashboard.tables import status
from dashboard.widgets.cards import card, number
from dashboard.widgets.controls import named, toggle
from dashboard.widgets.messages import plain, show_empty, show_unknown
from dashboard.widgets.states import State, badge
from dashboard.widgets.tables import csv_text, download, keep_selected, picked_row
from registry.errors import UnknownName
from registry.pages.ingests import Ingests
from registry.registry import Registry
from registry.store.ingest_runs import (
    FAILED,
    FAILING,
    NEVER,
    OLD,
    STALE,
    RunInfo,
    SourceState,
    age_text,
    freshness,
)

ALL = "all"
DAY = timedelta(days=1)
HEIGHT = 400
"""Height in pixels of the list of sources that need attention, if there are more than `LISTED`."""
LISTED = 2
HEIGHT_OF_RUNS = 200
STATES = {FAILING: State.ACT, NEVER: State.ACT, OLD: State.LOOK}
"""State of a source that needs attention."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    view = door.ingests(registry, site.viewer)
    if not view.ingests.sources:
        show_empty(
            "The registry holds no ingest run yet. Ingest a scan, or load the demonstration:",
            "almanac ingest SCAN --cluster NAME",
            "almanac demo",
        )
        return
    try:
        names = sorted({source.cluster for source in view.ingests.sources if source.cluster})
        cluster = named("cluster", names)
        chosen = [one for one in view.ingests.sources if cluster in (None, one.cluster)]
        runs = [run for run in view.runs if cluster in (None, run.cluster)]
        _numbers(chosen, runs, view)
        grid, todo = st.columns([2, 1])
        with grid:
            _grid(chosen, view, site.viewer)
        with todo:
            _todo(chosen, runs, view, site)
        _runs(runs, site)
    except UnknownName as error:
        show_unknown(error, error.kind)


def _numbers(sources: Sequence[SourceState], runs: Sequence[RunInfo], view: IngestView) -> None:
    """Draw the number of sources and runs, and the age of the newest and the oldest data."""
    bad = [freshness(one, view.now).state for one in sources if one.known]
    failing, stale = sum(state in (FAILING, NEVER) for state in bad), bad.count(OLD)
    state = State.ACT if failing else State.LOOK if stale else State.OK
    words = ", ".join(f"{count} {what}" for count, what in ((failing, "failing"), (stale, "stale")) if count)
    aging = [(age, one) for one in _aging(sources) if (age := one.age(view.now)) is not None]
    aging.sort(key=lambda pair: pair[0])
    last = [run for run in runs if view.now - run.at <= DAY]
    failed = sum(run.outcome == FAILED for run in last)
    columns = st.columns(4)
    with columns[0]:
        number("Sources", f"{len(sources):,}", note=words or "all fresh", state=state)
    for column, label, pick in ((columns[1], "Newest data", 0), (columns[2], "Oldest data", -1)):
        with column:
            if aging:
                age, one = aging[pick]
                old = State.LOOK if age > STALE else State.OK
                number(label, age_text(age), note=status.source_text(one.cluster, one.format), state=old)
    with columns[3]:
        number(
            "Ingest runs in 24 h",
            f"{len(last):,}",
            note=f"{failed:,} failed",
            state=State.ACT if failed else State.OK,
        )


def _aging(sources: Sequence[SourceState]) -> list[SourceState]:
    """Return the sources whose data age: those of a cluster."""
    return [one for one in sources if one.cluster and one.known]


def _grid(sources: Sequence[SourceState], view: IngestView, viewer: Viewer) -> None:
    """Draw the age of each source's data on each day."""
    about = (
        "Age of the latest data at the end of each day (UTC), counted from the observation and not from the "
        "ingest. ✕: a run failed on that day. Profiles belong to no cluster and do not age."
    )
    with card("Age of data by source and day", help=about):
        found = Ingests(sources=tuple(sources), days=view.ingests.days)
        table = status.age_grid(found, view.starts, view.now)
        if table.empty:
            st.caption("No source of a cluster yet.")
            return
        st.altair_chart(age_grid(table, theme_of(st.context.theme.type)), key="ages")
        with st.expander("As a table"):
            listed = status.sources_table(sources, view.now, viewer)
            st.dataframe(listed, hide_index=True, key="sources", height="content")


def _todo(sources: Sequence[SourceState], runs: Sequence[RunInfo], view: IngestView, site: Site) -> None:
    """Draw the sources that need attention, each with its cause and the command to try."""
    found = status.attention(sources, runs, view.now, site.viewer)
    height = HEIGHT if len(found) > LISTED else None
    with card("What to do", help="Failing sources first, then those with the oldest data.", height=height):
        if not found:
            badge(State.OK, "all sources are fresh")
        for one in found:
            with st.container(gap="xsmall"):
                badge(STATES[one.state], f"{one.state}: {one.source}")
                st.text(one.cause)
                st.code(one.command, language=None, wrap_lines=True)


def _runs(runs: Sequence[RunInfo], site: Site) -> None:
    """Draw the runs as a chart and a table, and all about the selected run."""
    with card("Ingest runs", help=f"At most the newest {RUNS:,} runs."):
        outcome = toggle("Runs", "outcome", {ALL: "All", FAILED: "Failed only"}, default=ALL)
        shown = [run for run in runs if outcome in (ALL, run.outcome)]
        if not shown:
            st.info("No run matches this choice.")
            return
        table = status.runs_table(shown, site.viewer)
        points = pd.DataFrame(
            {
                "at": pd.to_datetime(table["began (UTC)"], utc=True),
                "seconds": table["duration (s)"],
                "outcome": table["outcome"],
                "source": table["formats"],
                "cluster": table["cluster"],
            }
        )
        left, right = st.columns(2)
        left.altair_chart(durations(points, theme_of(st.context.theme.type)), key="durations")
        with right:
            keep_selected("runs", [run.id for run in shown])
            event = st.dataframe(
                table,
                hide_index=True,
                on_select="rerun",
                selection_mode="single-row",
                key="runs",
                height=HEIGHT_OF_RUNS,
            )
            download("Download as CSV", lambda: csv_text(table), "ingest-runs.csv", key="runs csv")
        _run(_chosen(shown, picked_row(event, len(shown))), site)


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
