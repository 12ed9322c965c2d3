"""The history page: how good placements were over time, application by application."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import figures, queries, tables
from dashboard.choices import choose, toggle
from dashboard.messages import plain, show_empty, show_unknown
from dashboard.site import Site
from registry import units
from registry.errors import UnknownName
from registry.placements import StoredPlacementInfo
from registry.registry import Registry

ACROSS = 3
"""Charts side by side."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("History")
    rows = queries.placements(registry)
    if not rows:
        show_empty(
            "The registry holds no evaluated placement yet. Find one, or look at the demo:",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    try:
        left, right = st.columns([2, 5])
        with left:
            names = sorted({row.cluster for row in rows})
            cluster = choose("Cluster", "cluster", names, kind="cluster", empty="all")
        with right:
            titles = {metric: about.title for metric, about in tables.METRICS.items()}
            metric = toggle("What", "metric", titles, default="congestion_seconds")
    except UnknownName as error:
        show_unknown(error, error.kind)
        return
    shown = [row for row in rows if cluster in (None, row.cluster)]
    _charts(shown, metric)
    _table(shown, site)


def _charts(rows: Sequence[StoredPlacementInfo], metric: str) -> None:
    """Small multiples: a chart for each application on each cluster, each with its own scale."""
    theme = figures.theme_of(st.context.theme.type)
    st.caption("○ in order · ▲ random mean · ● placed · ━ lower bound that is certified")
    columns: list[DeltaGenerator] = []
    for number, (name, part) in enumerate(tables.by_application(rows).items()):
        if number % ACROSS == 0:
            columns = st.columns(ACROSS)
        points = tables.history_points(part, metric)
        unit = units.unit_for(points["value"].tolist(), tables.METRICS[metric].base)
        points["value"] /= unit.size
        chart = figures.history_chart(points, name, f"{tables.METRICS[metric].title} ({unit.name})", theme)
        columns[number % ACROSS].altair_chart(chart, key=f"history {number}")


def _table(rows: Sequence[StoredPlacementInfo], site: Site) -> None:
    """All placements; the one that is picked can be opened."""
    st.subheader("Placements")
    table = tables.history_table(rows)
    bases = {about.title: about.base for about in tables.METRICS.values()}
    event = st.dataframe(
        tables.in_units(table, bases),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="placements",
    )
    picked = event["selection"]["rows"]
    if not picked:
        st.caption("Pick a row to open its job.")
        return
    st.page_link(
        site.job,
        label=f"Open {plain(rows[picked[0]].id)}",
        icon=":material/arrow_forward:",
        query_params={"placement": rows[picked[0]].id},
    )
