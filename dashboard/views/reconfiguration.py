"""The circuits page: what was proposed for optical switches, how it was found, and which circuits to move."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from dashboard import figures, tables
from dashboard.figures.reconfiguration import circuit_matrix, throughput_bars, trail_chart
from dashboard.queries.reconfiguration import proposal, proposals
from dashboard.state.site import Site
from dashboard.tables.csv_files import csv_text
from dashboard.tables.reconfiguration import (
    circuits_table,
    facts,
    moves_table,
    option_text,
    plans_table,
    throughputs,
    trail_table,
    ways_table,
)
from dashboard.widgets.choices import choose
from dashboard.widgets.downloads import download
from dashboard.widgets.filters import any_of
from dashboard.widgets.job_selection import picked_row
from dashboard.widgets.messages import plain, show_empty, show_unknown
from registry import units
from registry.errors import UnknownName
from registry.records.circuit_plan_records import CircuitPlanInfo, StoredCircuitPlan
from registry.registry import Registry

LISTED = 100
"""Plans in the table, the newest ones."""
WAYS = 5_000
"""Flows in the table of ways, those of most bytes."""
DRAWN = 4_000
"""Circuits of a matrix, at most."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Circuits")
    known = proposals(registry, site.viewer)
    if not known:
        show_empty(
            "The registry holds no proposed configuration of an optical switch yet. Have circuits found for "
            "an application; or tell of a cluster's switch, and --cluster finds them for what runs there:",
            "almanac reconfigure PROFILE --nodes 16 --max-degree 4 --max-edges 32 --link-speed 25e9",
            "almanac cluster optical NAME --max-degree 4 --max-edges 256 --link-speed 25e9",
        )
        if not registry.fabrics.clusters():
            show_empty("Or look at the demo first:", "almanac demo")
        return
    try:
        infos, plan = _choose(known)
        stored = proposal(registry, plan)
    except UnknownName as error:
        show_unknown(error, "plan" if error.kind == "configuration" else error.kind)
        return
    _facts(stored)
    _figures(stored)
    _moves(stored)
    _circuits(stored)
    _ways(stored)
    _plans(infos, site)


def _choose(known: Sequence[CircuitPlanInfo]) -> tuple[list[CircuitPlanInfo], str]:
    """Plans of the chosen cluster, the newest first, and the one that is shown.

    Raises
    ------
    UnknownName
    """
    left, right = st.columns([2, 7])
    with left:
        names = sorted({one.cluster for one in known if one.cluster is not None})
        cluster = None
        if names:
            cluster = any_of("Cluster", "cluster", names, kind="cluster", resets=("plan",))
    infos = [one for one in known if cluster in (None, one.cluster)]
    by_id = {one.id: one for one in infos}
    with right:
        plan = choose("Plan", "plan", list(by_id), show=lambda name: option_text(by_id[name]), kind="plan")
    return infos, plan or infos[0].id


def _facts(stored: StoredCircuitPlan) -> None:
    plan = stored.plan
    told = facts(stored)
    for column, (label, value) in zip(st.columns(len(told)), told.items(), strict=True):
        column.metric(label, value)
    if not plan.complete:
        st.warning("The search was interrupted: this is the best that it had found.")
    where = f"the optical switch of {stored.cluster}" if stored.cluster else "a switch"
    what = f"jobs {', '.join(stored.jobs)}, whose ranks stay" if stored.jobs else "one application"
    limits = f"at most {plan.max_edges:,} circuits, {plan.max_degree:,} a host"
    st.caption(
        plain(
            f"{stored.id}: {where}, {plan.nodes:,} hosts, {limits}, "
            f"{units.text(plan.link_speed, units.RATE)} each; for {what}. Upper bound by {plan.bound}. "
            f"Saved at {units.moment_text(stored.recorded_at)}."
        )
    )
    if stored.applied_at is not None:
        st.success(
            f"The switch was set so, as told at {units.moment_text(stored.applied_at)}.",
            icon=":material/check:",
        )
    elif stored.cluster is not None:
        st.markdown("Once the switch is set so, tell the registry:")
        st.code(f"almanac cluster optical {stored.cluster} --applied {stored.id}", language=None)


def _figures(stored: StoredCircuitPlan) -> None:
    theme = figures.theme_of(st.context.theme.type)
    plan = stored.plan
    bars, trail = st.columns([2, 3])
    rows = throughputs(plan)
    if len(rows):
        bars.altair_chart(throughput_bars(rows, theme), key="throughput")
    else:
        bars.info("Nothing flows between hosts: circuits limit nothing.")
    bound = plan.upper_bound if math.isfinite(plan.upper_bound) else None
    trail.altair_chart(trail_chart(trail_table(plan), bound, theme), key="trail")


def _moves(stored: StoredCircuitPlan) -> None:
    """Circuits to take away and to put in, for whoever sets the switch."""
    st.subheader("Circuits to move")
    table = moves_table(stored)
    if not len(table):
        st.success("None: no circuits that were found are better than those that there are.")
        return
    st.dataframe(table, hide_index=True, height="content" if len(table) <= 16 else "auto", key="moves")
    download("Download as CSV", csv_text(table), f"{stored.id}-moves.csv", key="moves csv")


def _circuits(stored: StoredCircuitPlan) -> None:
    st.subheader("All circuits")
    table = circuits_table(stored)
    left, right = st.columns([1, 1])
    with left:
        if len(table) <= DRAWN:
            theme = figures.theme_of(st.context.theme.type)
            chart = circuit_matrix(table, stored.plan.nodes, theme)
            st.altair_chart(chart, width="content", key="matrix")
        else:
            st.info(f"{len(table):,} circuits are too many to be drawn.")
    with right:
        shown = tables.in_units(table.drop(columns=["a node", "b node"]), {"bytes": units.BYTES})
        percent = st.column_config.NumberColumn(format="percent")
        st.dataframe(shown, hide_index=True, column_config={"busy": percent}, key="circuits")
        download("Download as CSV", csv_text(table), f"{stored.id}-circuits.csv", key="circuits csv")


def _ways(stored: StoredCircuitPlan) -> None:
    """The one way of what each two ranks, or hosts under ranks that stay, exchange."""
    st.subheader("Ways")
    routes = stored.plan.routes
    if routes is None:
        st.caption("Not known: this plan was saved before ways were kept.")
        return
    table = ways_table(stored, WAYS)
    if not len(table):
        st.caption("All that is exchanged stays within hosts.")
        return
    shown = tables.in_units(table, {"bytes": units.BYTES})
    st.dataframe(shown, hide_index=True, height="content" if len(table) <= 16 else "auto", key="ways")
    with st.container(horizontal=True, vertical_alignment="center"):
        download("Download as CSV", csv_text(table), f"{stored.id}-ways.csv", key="ways csv")
        crossing = len(routes.crossing)
        if crossing > WAYS:
            st.caption(f"The {WAYS:,} flows of most bytes, of {crossing:,}.")


def _plans(infos: Sequence[CircuitPlanInfo], site: Site) -> None:
    """The newest plans; one that is picked can be opened."""
    st.subheader("Plans")
    table = plans_table(infos[:LISTED])
    event = st.dataframe(table, hide_index=True, on_select="rerun", selection_mode="single-row", key="plans")
    with st.container(horizontal=True, vertical_alignment="center"):
        download("Download as CSV", csv_text(plans_table(infos)), "plans.csv", key="plans csv")
        if len(infos) > LISTED:
            st.caption(f"The newest {LISTED:,} of {len(infos):,}; the file has all.")
    row = picked_row(event, len(table))
    if row is not None:
        st.page_link(
            site.circuits,
            label=f"Open {plain(infos[row].id)}",
            icon=":material/arrow_forward:",
            query_params={"plan": infos[row].id},
        )
