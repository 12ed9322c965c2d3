"""The fabric page: what is wired to what, and where a placement congests it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import figures, link_figures, queries, tables
from dashboard.choices import choose, moment, toggle
from dashboard.link_tables import hottest_links
from dashboard.messages import plain, show_empty, show_unknown
from dashboard.queries import FabricView
from dashboard.site import Site
from registry import units
from registry.errors import UnknownName
from registry.fabrics import Snapshot
from registry.placements import StoredPlacementInfo
from registry.registry import Registry

HOTTEST = 50
"""Rows of the table of links."""

CONGESTION, CAPACITY = "congestion", "capacity"
LINES, TIERS = "lines", "tiers"


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Fabric")
    known = queries.clusters(registry)
    if not known:
        show_empty(
            "The registry holds no fabric yet. Ingest a scan, or look at the demo:",
            "almanac ingest SCAN --cluster NAME",
            "almanac demo",
        )
        return
    name_column, time_column, placement_column = st.columns([2, 2, 5])
    try:
        with name_column:
            cluster = known[choose("Cluster", "cluster", list(known), resets=("placement", "at")) or ""]
        with time_column:
            at = moment(
                "As of (UTC)",
                "at",
                cluster.first_observed_at,
                cluster.last_observed_at,
                resets=("placement",),
            )
        with placement_column:
            placement = _choose_placement(queries.placements(registry, cluster.name))
        view = queries.fabric_view(registry, cluster, at, placement)
    except UnknownName as error:
        show_unknown(error, "at" if error.kind == "fabric" else error.kind)
        return
    _counts(view.snapshot)
    _figure(view)
    _hottest(view, site)


def _choose_placement(found: Sequence[StoredPlacementInfo]) -> str | None:
    by_id = {info.id: info for info in found}
    return choose(
        "Congestion by the placement",
        "placement",
        list(by_id),
        show=lambda key: tables.placement_text(by_id[key]),
        kind="placement",
        resets=("at",),
        empty="none: capacities are shown" if by_id else "there is none yet: almanac map finds them",
    )


def _counts(snapshot: Snapshot) -> None:
    fabric = snapshot.fabric
    capacity = units.text(float(fabric.links.capacity.sum()) / 2, units.RATE)
    facts = {
        "Hosts": f"{len(fabric.hosts):,}",
        "Adapters": f"{len(fabric.adapters):,}",
        "Switches": f"{len(fabric.switches):,}",
        "Cables": f"{fabric.cable_count:,}",
        "All cables, one way": capacity,
    }
    for column, (label, value) in zip(st.columns([1, 1, 1, 1, 2]), facts.items(), strict=True):
        column.metric(label, value)


def _figure(view: FabricView) -> None:
    fabric = view.snapshot.fabric
    drawing = queries.drawing(view.snapshot.id, fabric)
    if drawing.cables.empty:
        st.info("No cable of this fabric is known.")
        return
    few = len(drawing.cables) <= link_figures.LINES_LIMIT
    colour, form = CAPACITY, LINES if few else TIERS
    with st.container(horizontal=True):
        if view.link_bytes is not None:
            options = {CONGESTION: "Congestion", CAPACITY: "Capacity"}
            colour = toggle("Colour", "colour", options, default=CONGESTION)
        if few:
            form = toggle("Shape", "shape", {LINES: "Lines", TIERS: "Tiers, one cell a cable"}, default=LINES)
    seconds = None
    title = "Capacity of the cables"
    if view.link_bytes is not None and colour == CONGESTION:
        seconds = view.link_bytes / fabric.links.capacity
        title = "Congestion: the time that each link needs for its bytes, both directions the worse"
    theme = figures.theme_of(st.context.theme.type)
    chart = link_figures.links_figure(fabric, drawing, title, theme, seconds=seconds, lines=form == LINES)
    st.altair_chart(chart, width="stretch" if form == LINES else "content", key="fabric")
    seen = units.moment_text(view.snapshot.observed_at)
    st.caption(f"Snapshot {plain(view.snapshot.id)}, seen at {plain(seen)}")


def _hottest(view: FabricView, site: Site) -> None:
    if view.opened is None or view.link_bytes is None:
        return
    st.subheader("Hottest links")
    table = hottest_links(view.snapshot.fabric, view.link_bytes, HOTTEST)
    shown = tables.in_units(table, {"time": units.SECONDS, "load": units.BYTES, "capacity": units.RATE})
    bar = st.column_config.ProgressColumn("of the worst", format="percent", min_value=0, max_value=1)
    st.dataframe(shown, hide_index=True, column_config={"of the worst": bar}, key="hottest")
    st.page_link(
        site.job,
        label="Ranks, bounds and launcher files of this placement",
        icon=":material/arrow_forward:",
        query_params={"placement": view.opened.stored.id},
    )
