"""The history page: quality of placements over time, regressions and their causes, comparisons."""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.figures import history as drawings
from dashboard.figures.style import theme_of
from dashboard.queries.history import History, history
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.history import panels, placements_table, points
from dashboard.tables.placements import METRICS
from dashboard.views.history_pairs import PLACEMENTS, compare
from dashboard.widgets.controls import any_of, page_start, pager, toggle
from dashboard.widgets.messages import plain, show_empty, show_unknown
from dashboard.widgets.navigation import Row, link_to, linked_rows
from dashboard.widgets.tables import csv_text, download
from registry import units
from registry.errors import UnknownName
from registry.model import Longs
from registry.registry import Registry

ACROSS = 3
"""Charts in a row."""
CHARTS = 6
"""Charts on a page."""
LISTED = 100
"""Maximum rows of the table, the newest placements."""
FLAGGED = 8
"""Maximum number of listed regressions, the newest ones."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("History")
    view = history(registry, site.viewer)
    if not len(view.series):
        show_empty(
            "The registry holds no evaluated placement yet. Find one, or load the demonstration:",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    try:
        rows, metric = _choose(view)
        compare(registry, view, site)
        _regressions(view, rows, site)
        _charts(view, rows, metric)
        _table(view, rows, site)
    except UnknownName as error:
        show_unknown(error, error.kind)


def _choose(view: History) -> tuple[Longs, str]:
    """Draw the filters, and return the matching rows of the series and the chosen cost.

    Raises
    ------
    UnknownName
    """
    series = view.series
    columns = st.columns([2, 2, 5])
    with columns[0]:
        cluster = any_of("cluster", sorted(set(series.cluster)), resets=("page",))
    with columns[1]:
        names = sorted(set(series.application))
        application = any_of("application", names, resets=("page",))
    with columns[2]:
        titles = {metric: about.title for metric, about in METRICS.items()}
        metric = toggle("Cost", "metric", titles, default="congestion_seconds")
    wanted = zip(series.cluster, series.application, strict=True)
    keep = [cluster in (None, here) and application in (None, name) for here, name in wanted]
    return np.flatnonzero(keep).astype(np.int64), metric


def _regressions(view: History, rows: Longs, site: Site) -> None:
    """List the regressions, newest first, with what had changed; a click compares."""
    shown = set(rows.tolist())
    found = [one for one in view.regressions if one.row in shown]
    if not found:
        return
    st.subheader("Regressions")
    st.caption(
        "Placements whose worst link, relative to its certified lower bound, exceeds the control limit of "
        "the placements before. A click compares with the last good placement."
    )
    listed = [
        Row(
            f"{one.application} on {one.cluster}, {units.moment_text(one.recorded_at)}",
            (f"{one.ratio:.3g} ×", f"{one.limit:.3g} ×", ", ".join(one.changed) or "nothing recorded"),
            {"compare": PLACEMENTS, "a": one.last_good, "b": one.id},
        )
        for one in found[:FLAGGED]
    ]
    heads = ("Placement", "Distance from best", "Limit", "Changed since last good")
    linked_rows(site.history, heads, (5, 1.2, 1.2, 4), listed)
    if len(found) > FLAGGED:
        st.caption(f"and {len(found) - FLAGGED:,} older regressions; the charts mark them with ▲")


def _charts(view: History, rows: Longs, metric: str) -> None:
    """Draw a chart for each application on each cluster, each with its own scale."""
    st.subheader("Charts by application")
    st.caption(drawings.KEY)
    theme = theme_of(st.context.theme.type)
    every = panels(view.series, view.quality, rows)
    first = page_start(CHARTS, "page")
    columns: list[DeltaGenerator] = []
    for number, panel in enumerate(every[first : first + CHARTS]):
        if number % ACROSS == 0:
            columns = st.columns(ACROSS)
        table = points(view.series, view.quality, panel.rows, metric)
        unit = units.unit_for(table["value"].tolist(), METRICS[metric].base)
        label = f"{METRICS[metric].title} ({unit.name})"
        drawn = drawings.small_multiple(table, panel.title, label, unit.size, theme)
        columns[number % ACROSS].vega_lite_chart(drawn.rows, drawn.spec, key=f"history {number}")
    if len(every) > CHARTS:
        pager(len(every), CHARTS, "page", "charts")


def _table(view: History, rows: Longs, site: Site) -> None:
    """Draw the newest placements; a selected one can be opened, two can be compared."""
    st.subheader("Placements")
    newest = rows[::-1]
    table = placements_table(view.series, view.quality, newest[:LISTED])
    bases = {about.title: about.base for about in METRICS.values()}
    event = st.dataframe(
        in_units(table, bases),
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        key="placements",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        download(
            "Download as CSV",
            lambda: csv_text(placements_table(view.series, view.quality, newest)),
            "placements.csv",
            key="placements csv",
        )
        older = f"The newest {LISTED:,} of {len(rows):,}; the file has all. " if len(rows) > LISTED else ""
        st.caption(f"{older}Select a row to open its job, or two rows to compare them.")
    picked = [str(table["placement"].iloc[row]) for row in event["selection"]["rows"]]
    if len(picked) == 1:
        link_to(site.job, f"Open {plain(picked[0])}", placement=picked[0])
    elif len(picked) >= 2:
        link_to(
            site.history,
            f"Compare {plain(picked[0])} and {plain(picked[1])}",
            icon="compare",
            compare=PLACEMENTS,
            a=picked[0],
            b=picked[1],
        )
