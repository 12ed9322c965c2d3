"""The page Data: which sources are old or fail, why, and what to do; all ingest runs.

Tables of the data sources and of the ingest runs. Pure functions.

Age of the data of each source by days, and durations of ingest runs over time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
import streamlit as st

from dashboard.shared import door
from dashboard.shared.cards import (
    DARK,
    INK,
    LIGHT,
    State,
    badge,
    card,
    csv_text,
    download,
    keep_selected,
    layers,
    number,
    picked_row,
    plain,
    show_empty,
    show_unknown,
    theme_of,
)
from dashboard.shared.controls import named, toggle
from dashboard.shared.door import RUNS, IngestView
from dashboard.shared.traffic import in_utc
from dashboard.shared.viewer import Site, Viewer
from registry import units
from registry.errors import UnknownName
from registry.registry import Registry
from registry.store.ingest_runs import (
    FAILED,
    FAILING,
    FRESH,
    NEVER,
    NO_ALARM,
    NO_CLUSTER,
    OLD,
    OUTCOMES,
    STALE,
    Ingests,
    RunInfo,
    SourceState,
    age_text,
    freshness,
)

SIGNS = {FRESH: "●", OLD: "◔", FAILING: "▲", NEVER: "▲", NO_CLUSTER: "○"}
"""Signs of the states of a source: shapes, so that no colour is needed."""
NO_DATA = "no data"
DAY_STATES = (FRESH, OLD, FAILING, NO_DATA)
"""States of a source on a day."""
MOST_FILES = 3
"""Maximum number of files in a command that reads a source again."""


class Attention(NamedTuple):
    """A source that needs attention."""

    state: str
    """One of `registry.store.ingest_runs.STATES`."""
    source: str
    """Its format and cluster."""
    cause: str
    """What is wrong, in one line."""
    command: str
    """Command that reads it again."""


def source_text(cluster: str, format: str) -> str:
    """Return the name of a source: ``sacct · hpc1``."""
    return " · ".join(part for part in (format or "unknown format", cluster) if part)


def attention(
    sources: Sequence[SourceState], runs: Sequence[RunInfo], now: datetime, viewer: Viewer
) -> list[Attention]:
    """Return the sources that need attention, failures first, then the oldest data.

    Args:
        runs: Runs, newest first; the command names the files of the last run of the source.
    """
    found = []
    for source in sources:
        state, words = freshness(source, now)
        if state in NO_ALARM:
            continue
        last = next((run for run in runs if _is_of(run, source)), None)
        one = Attention(
            state,
            source_text(source.cluster, source.format),
            viewer.message(words),
            _again(source, last, viewer),
        )
        found.append(((state == OLD, -(source.age(now) or timedelta.max).total_seconds()), one))
    return [one for _, one in sorted(found)]


def _is_of(run: RunInfo, source: SourceState) -> bool:
    return run.cluster == source.cluster and source.format in (run.formats or ("",))


def _again(source: SourceState, last: RunInfo | None, viewer: Viewer) -> str:
    """Return the command that reads a source again, with the files of its last run if they are known."""
    known = () if last is None or viewer.only is not None else last.files
    files = [viewer.path(path) for path in known]
    named = [quote(path) for path in files[:MOST_FILES]] + (["..."] if len(files) > MOST_FILES else [])
    cluster = ["--cluster", quote(source.cluster)] if source.cluster else []
    return " ".join(["almanac", "ingest", *cluster, *(named or ["FILE"])])


def age_grid(found: Ingests, starts: Sequence[datetime], now: datetime) -> pd.DataFrame:
    """Return the state of each source of a cluster on each day, failing sources first.

    The age is that of the latest data that were observed until the end of the day (now, on the last day),
    whenever they were ingested. A failed run counts on the day on which it ran.

    Args:
        starts: Start of each day, ascending, as for `registry.store.ingest_runs.read_ingests`.
    """
    ends = [*starts[1:], now]
    days = {(one.cluster, one.format, one.day): one for one in found.days}
    listed = [one for one in found.sources if one.cluster and one.known]
    listed.sort(key=lambda one: (_urgency(one, now), one.cluster, one.format))
    rows = []
    for source in listed:
        before = days.get((source.cluster, source.format, 0))
        latest = None if before is None else before.observed_at
        for day_number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
            day = days.get((source.cluster, source.format, day_number))
            if day is not None and day.observed_at is not None:
                latest = day.observed_at if latest is None else max(latest, day.observed_at)
            failed = 0 if day is None else day.failed
            age = None if latest is None else end - latest
            only_failed = failed > 0 and (day is None or day.observed_at is None)
            now_failing = day_number == len(starts) and _urgency(source, now) < URGENT
            rows.append(
                {
                    "source": source_text(source.cluster, source.format),
                    "day": f"{start:%d}",
                    "date": f"{start:%Y-%m-%d}",
                    "state": _state_of(age, only_failed or now_failing),
                    "text": " ".join(["✕"] * bool(failed) + ([] if age is None else [short_age(age)])),
                    "observed": "never" if latest is None else units.moment_text(latest),
                    "runs": 0 if day is None else day.runs,
                    "failed": failed,
                }
            )
    columns = ["source", "day", "date", "state", "text", "observed", "runs", "failed"]
    return pd.DataFrame(rows, columns=columns)


def _urgency(source: SourceState, now: datetime) -> int:
    return [FAILING, NEVER, OLD, FRESH, NO_CLUSTER].index(freshness(source, now).state)


URGENT = 2
"""Urgency from which on a source does not fail."""


def _state_of(age: timedelta | None, failed: bool) -> str:
    """Return the state of a source on a day, by the age of its latest data and whether it failed."""
    if failed:
        return FAILING
    if age is None:
        return NO_DATA
    return OLD if age > STALE else FRESH


def short_age(age: timedelta) -> str:
    """Return an age in few characters, for squares: ``5m`` (minutes), ``3h``, ``473d``."""
    seconds = max(age.total_seconds(), 0.0)
    for name, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size):,}{name}"
    return f"{int(seconds)}s"


def sources_table(sources: Sequence[SourceState], now: datetime, viewer: Viewer) -> pd.DataFrame:
    """Return all sources with the age of their data, stale and failing ones first."""
    if not sources:
        return pd.DataFrame()
    states = {source: freshness(source, now).state for source in sources}
    listed = sorted(sources, key=lambda source: states[source] in NO_ALARM)
    return pd.DataFrame(
        {
            "state": [f"{SIGNS[states[source]]} {states[source]}" for source in listed],
            "cluster": [source.cluster for source in listed],
            "source": [source.format or "unknown format" for source in listed],
            "observed": [_ago(source.age(now)) for source in listed],
            "observed (UTC)": in_utc(source.data_at for source in listed),
            "last read (UTC)": in_utc(source.last_good_at for source in listed),
            "last try (UTC)": in_utc(source.last_at for source in listed),
            "what is wrong": [viewer.message(source.error) for source in listed],
        }
    )


def _ago(age: timedelta | None) -> str:
    return "never" if age is None else f"{age_text(age)} ago"


def runs_table(runs: Sequence[RunInfo], viewer: Viewer) -> pd.DataFrame:
    """Return ingest runs, one row each, with their numbers of files and warnings."""
    return pd.DataFrame(
        {
            "began (UTC)": in_utc(run.at for run in runs),
            "cluster": [run.cluster for run in runs],
            "formats": [", ".join(run.formats) or "unknown" for run in runs],
            "outcome": [run.outcome for run in runs],
            "duration (s)": [float(f"{run.seconds:.3g}") for run in runs],
            "files": [len(run.files) for run in runs],
            "warnings": [len(run.warnings) for run in runs],
            "error": [viewer.message(run.error) for run in runs],
            "run": [run.id for run in runs],
        }
    )


OUTCOME_COLOURS = {LIGHT: ("#0b6e8f", "#8a94a6", "#b3262d"), DARK: ("#4cc3ea", "#7d8798", "#f38b21")}
"""Colour of each of `registry.store.ingest_runs.OUTCOMES`; failures stand out."""
OUTCOME_SHAPES = ("circle", "square", "triangle-up")
"""Shape of each outcome."""

DAY_COLOURS = {
    LIGHT: ("#cfead9", "#ffe0a8", "#f4b9b4", "#e3e7ed"),
    DARK: ("#1f5138", "#6b4b10", "#78282b", "#353c47"),
}
"""Colour of each of `dashboard.pages.data.DAY_STATES`, with a text of `INK` on it."""
ROW = 30
"""Height of a row of the grid, in pixels."""
FRAME = 90
"""Height of the days and the legend of the grid, in pixels."""


def age_grid_chart(table: pd.DataFrame, theme: str) -> alt.LayerChart:
    """Return a grid of squares, a row for each source: the age of its latest data on each day.

    Args:
        table: Result of `dashboard.pages.data.age_grid`.
    """
    days, sources = (list(dict.fromkeys(table[name])) for name in ("day", "source"))
    plain: Any = {"ticks": False, "domain": False}
    across = alt.Axis(orient="top", labelAngle=0, labelOverlap=False, **plain)
    base = alt.Chart(table).encode(
        x=alt.X("day:O", sort=days, title="day (UTC)", axis=across),
        y=alt.Y("source:N", sort=sources, title=None, axis=alt.Axis(labelLimit=160, **plain)),
        tooltip=[alt.Tooltip(f"{name}:N", title=title) for name, title in _GRID_TIPS.items()],
    )
    colours = alt.Scale(domain=list(DAY_STATES), range=list(DAY_COLOURS[theme]))
    legend = alt.Legend(orient="bottom", title=None, symbolType="square")
    squares = base.mark_rect(
        cornerRadius=3,
        width=alt.RelativeBandSize(band=0.94),
        height=alt.RelativeBandSize(band=0.9),
    ).encode(color=alt.Color("state:N", scale=colours, legend=legend))
    texts = base.mark_text(fontSize=10, color=INK[theme]).encode(text=alt.Text("text:N"))
    about = (
        "A row for each source and a square for each day: the age of the latest data at the end of the day."
    )
    height = ROW * len(sources) + FRAME
    return layers(squares, texts).properties(height=height, width="container", description=about)


_GRID_TIPS = {
    "source": "source",
    "date": "day (UTC)",
    "state": "state",
    "observed": "latest data",
    "runs": "runs",
    "failed": "failed runs",
}


def durations(runs: pd.DataFrame, theme: str) -> alt.Chart:
    """Return a chart with one mark per run: start, duration and outcome.

    Args:
        runs: Columns ``at`` (UTC), ``seconds``, ``outcome``, ``source``, ``cluster``.
    """
    outcomes = list(OUTCOMES)
    chart: alt.Chart = (
        alt.Chart(runs)
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=alt.X(
                "at:T",
                title="start (UTC)",
                scale=alt.Scale(type="utc", padding=16),
                axis=alt.Axis(tickCount=8, format="%d %b %H:%M", labelOverlap=True),
            ),
            y=alt.Y("seconds:Q", title="duration (s)", scale=alt.Scale(type="symlog", constant=1, zero=True)),
            color=alt.Color(
                "outcome:N",
                scale=alt.Scale(domain=outcomes, range=list(OUTCOME_COLOURS[theme])),
                legend=alt.Legend(title="outcome", orient="top"),
            ),
            shape=alt.Shape("outcome:N", scale=alt.Scale(domain=outcomes, range=list(OUTCOME_SHAPES))),
            tooltip=[
                alt.Tooltip("at:T", format="%Y-%m-%d %H:%M:%S", title="start (UTC)", formatType="time"),
                alt.Tooltip("seconds:Q", format=".3~g", title="duration (s)"),
                *(alt.Tooltip(f"{name}:N") for name in ("outcome", "source", "cluster")),
            ],
        )
        .properties(title="Duration of runs", height=220, width="container")
    )
    return chart


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
                number(label, age_text(age), note=source_text(one.cluster, one.format), state=old)
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
        table = age_grid(found, view.starts, view.now)
        if table.empty:
            st.caption("No source of a cluster yet.")
            return
        st.altair_chart(age_grid_chart(table, theme_of(st.context.theme.type)), key="ages")
        with st.expander("As a table"):
            listed = sources_table(sources, view.now, viewer)
            st.dataframe(listed, hide_index=True, key="sources", height="content")


def _todo(sources: Sequence[SourceState], runs: Sequence[RunInfo], view: IngestView, site: Site) -> None:
    """Draw the sources that need attention, each with its cause and the command to try."""
    found = attention(sources, runs, view.now, site.viewer)
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
        table = runs_table(shown, site.viewer)
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

    Raises:
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
