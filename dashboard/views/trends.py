"""The page Trends: quality of each application's placements over time, regressions and their causes."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.figures import history as drawings
from dashboard.figures.style import theme_of
from dashboard.queries.history import History, history
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.history import Panel, panels, placements_table, points
from dashboard.tables.placements import METRICS
from dashboard.views.measured import measured_card
from dashboard.views.trends_pairs import compare
from dashboard.widgets.address import set_address
from dashboard.widgets.cards import card
from dashboard.widgets.controls import any_of, choose, named, page_start, pager
from dashboard.widgets.messages import plain, show_empty, show_unknown
from dashboard.widgets.navigation import link_to
from dashboard.widgets.states import State, badge
from dashboard.widgets.tables import csv_text, download, keep_selected
from mapping.traffic.job_loads import Regression
from registry import units
from registry.errors import UnknownName
from registry.model import Longs
from registry.registry import Registry

ROWS = 4
"""Applications on a page."""
LISTED = 100
"""Maximum rows of the table, the newest placements."""
WORST_LINK = "congestion_seconds"
ABOUT = (
    "A row for each application on a cluster, newest regressions first. The band reaches from the median of "
    "the placements before to the control limit. A placement whose distance from the best possible is above "
    "the limit is a regression. " + drawings.KEY
)


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    view = history(registry, site.viewer)
    if not len(view.series):
        show_empty(
            "The registry holds no evaluated placement yet. Find one, or load the demonstration:",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    try:
        left, right = st.columns([2, 1])
        with left:
            rows = _applications(view)
        with right:
            compare(registry, view, site)
        shown = {view.series.id[row] for row in rows.tolist()}
        measured_card([one for one in view.gains if one.run.placement in shown], site)
        _table(view, rows, site)
    except UnknownName as error:
        show_unknown(error, error.kind)


def _applications(view: History) -> Longs:
    """Draw a row for each application, and return the matching rows of the series.

    Raises
    ------
    UnknownName
    """
    series = view.series
    cluster = named("cluster", sorted(set(series.cluster)))
    with card("Applications", help=ABOUT):
        left, right = st.columns(2)
        with left:
            application = any_of("application", sorted(set(series.application)), resets=("page",))
        with right:
            titles = {metric: about.title for metric, about in METRICS.items()}
            metric = (
                choose("Cost", "metric", list(titles), show=titles.__getitem__, kind="metric") or WORST_LINK
            )
        wanted = zip(series.cluster, series.application, strict=True)
        keep = [cluster in (None, here) and application in (None, name) for here, name in wanted]
        rows = np.flatnonzero(keep).astype(np.int64)
        every = panels(series, view.quality, rows)
        first = page_start(ROWS, "page")
        for number, panel in enumerate(every[first : first + ROWS]):
            _application(view, panel, metric, number)
        if len(every) > ROWS:
            pager(len(every), ROWS, "page", "applications")
    return rows


def _application(view: History, panel: Panel, metric: str, number: int) -> None:
    """Draw the row of an application: its name, its placements over time, its state with the cause."""
    name, chart, state = st.columns([3, 6, 4], vertical_alignment="center")
    with name:
        st.markdown(f"**{plain(panel.application)}**")
        st.caption(plain(f"{panel.cluster} · {units.counted(len(panel.rows), 'placement')}"))
    with chart:
        table = points(view.series, view.quality, panel.rows, metric)
        unit = units.unit_for(table["value"].tolist(), METRICS[metric].base)
        label = f"{METRICS[metric].title} ({unit.name})"
        drawn = drawings.sparkline(table, panel.title, label, unit.size, theme_of(st.context.theme.type))
        st.vega_lite_chart(drawn.rows, drawn.spec, key=f"application {number}")
    with state:
        _state(view, panel, number)


def _state(view: History, panel: Panel, number: int) -> None:
    """Draw the newest regression of an application with its cause, or its distance from the best."""
    mine = set(panel.rows.tolist())
    found = next((one for one in view.regressions if one.row in mine), None)
    if found is None:
        known = panel.rows[np.isfinite(view.quality.ratio[panel.rows])]
        if len(known):
            badge(State.OK, f"{view.quality.ratio[known[-1]]:.3g} × the best possible")
        else:
            badge(State.UNKNOWN, "no certified bound")
        return
    badge(State.ACT, f"{found.ratio:.3g} ×, limit {found.limit:.3g} ×", help=_when(found))
    st.caption(plain(f"Changed: {', '.join(found.changed) or 'nothing recorded'}"))
    st.button(
        "Compare",
        icon=":material/compare_arrows:",
        help="Compare with the last good placement",
        on_click=set_address,
        kwargs={"compare": None, "a": found.last_good, "b": found.id},
        key=f"compare {number}",
    )


def _when(found: Regression) -> str:
    return f"Regression of {units.moment_text(found.recorded_at)}: distance from the best possible"


def _table(view: History, rows: Longs, site: Site) -> None:
    """Draw the newest placements; a selected one can be opened, two are compared."""
    with card("Placements", help="Select a row to open its job, or two rows to compare them."):
        newest = rows[::-1]
        table = placements_table(view.series, view.quality, newest[:LISTED])
        bases = {about.title: about.base for about in METRICS.values()}

        def picked() -> None:
            chosen = st.session_state["placements"]["selection"]["rows"]
            names = [str(table["placement"].iloc[row]) for row in chosen if row < len(table)]
            if len(names) == 2:
                set_address(compare=None, a=names[0], b=names[1])

        keep_selected("placements", table["placement"].tolist())
        event = st.dataframe(
            in_units(table, bases),
            hide_index=True,
            on_select=picked,
            selection_mode="multi-row",
            placeholder="",
            key="placements",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            download(
                "Download as CSV",
                lambda: csv_text(placements_table(view.series, view.quality, newest)),
                "placements.csv",
                key="placements csv",
            )
            if len(rows) > LISTED:
                st.caption(f"The newest {LISTED:,} of {len(rows):,}; the file has all.")
        selected = [row for row in event["selection"]["rows"] if row < len(table)]
        if len(selected) == 1:
            name = str(table["placement"].iloc[selected[0]])
            link_to(site.jobs, f"Open {plain(name)}", placement=name)
