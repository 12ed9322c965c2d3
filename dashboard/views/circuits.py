"""Tab of the page Planner: circuits of an optical switch, before and after moves, and the search for them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import streamlit as st

from dashboard.figures.circuits import circuit_matrix, throughput_bars, trail_chart
from dashboard.figures.style import theme_of
from dashboard.queries import door
from dashboard.queries.circuits import visible_plans
from dashboard.queries.clusters import cached_clusters
from dashboard.state.site import Site
from dashboard.tables.circuits import (
    INSERTED,
    REMOVED,
    UNCHANGED,
    circuits_table,
    facts,
    moves_table,
    option_text,
    plans_table,
    routes_table,
    throughputs,
    trail_table,
)
from dashboard.tables.columns import in_units
from dashboard.widgets.address import set_address
from dashboard.widgets.cards import card, number
from dashboard.widgets.controls import choose, named, toggle
from dashboard.widgets.messages import plain, show_empty, show_unknown
from dashboard.widgets.navigation import link_to
from dashboard.widgets.tables import csv_text, download, keep_selected, picked_row
from registry import units
from registry.errors import UnknownName
from registry.registry import Registry
from registry.store.circuit_plans import CircuitPlanInfo, StoredCircuitPlan

BEFORE, AFTER, MORE = "before", "after", "more"
SIDES = {BEFORE: "Before", AFTER: "After", MORE: "Difference"}
WHAT = {BEFORE: (UNCHANGED, REMOVED), AFTER: (UNCHANGED, INSERTED), MORE: (REMOVED, INSERTED)}
"""What happens to the circuits that are shown."""
LISTED = 100
"""Maximum number of plans in the table, the newest ones."""
ROUTES = 5_000
"""Maximum number of flows in the table of routes, those with most bytes."""
BESIDE = 280
"""Width of what is beside the matrix, in pixels."""
DRAWN = 4_000
"""Maximum number of circuits drawn in a matrix."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    known, clusters = visible_plans(registry, site.viewer), cached_clusters(registry).infos
    try:
        cluster = _cluster(known, list(clusters))
        infos = [one for one in known if one.cluster == cluster]
        infos += [one for one in known if one.cluster is None]
        if not infos:
            _empty(cluster, {one.cluster for one in known if one.cluster is not None}, site)
            return
        named("plan", [one.id for one in infos])  # an unknown one is reported before any card is drawn
        left, right = st.columns([2, 5])
        with left, card("Circuits to move", help="As proposed by `almanac reconfigure`."):
            stored = door.plan(registry, _choose(infos), site.viewer)
            _moves(stored)
    except UnknownName as error:
        show_unknown(error, "plan" if error.kind == "configuration" else error.kind)
        return
    with right:
        _facts(stored)
        _circuits(stored)
    with card("Search"):
        _search(stored)
    with card("Routes"):
        _routes(stored)
    with card("Plans"):
        _plans(infos)


def _cluster(known: Sequence[CircuitPlanInfo], clusters: Sequence[str]) -> str | None:
    """Return the cluster in the address, that of the plan in the address, or the first cluster, if any.

    Raises
    ------
    UnknownName
    """
    of_plan = {one.id: one.cluster for one in known}.get(st.query_params.get("plan", ""))
    if "cluster" not in st.query_params and of_plan is not None:
        st.query_params["cluster"] = of_plan
        st.rerun()  # the bar shows the cluster of the address
    return named("cluster", clusters) or next(iter(clusters), None)


def _empty(cluster: str | None, others: Collection[str], site: Site) -> None:
    """Show how to compute a plan, and the clusters that have one."""
    where = "The registry holds" if cluster is None else f"Cluster {plain(cluster)} has"
    show_empty(
        f"{where} no circuit plan for an optical switch yet. Compute one for an application; "
        "or describe a cluster's switch, then --cluster computes plans for its running jobs:",
        "almanac reconfigure PROFILE --nodes 16 --max-degree 4 --max-edges 32 --link-speed 25e9",
        "almanac cluster optical NAME --max-degree 4 --max-edges 256 --link-speed 25e9",
    )
    if cluster is None:
        show_empty("Or load the demonstration:", "almanac demo")
    for other in sorted(others):
        link_to(site.planner, f"Plans of {plain(other)}", tab="circuits", cluster=other)


def _choose(infos: Sequence[CircuitPlanInfo]) -> str:
    """Return the id of the chosen plan.

    Raises
    ------
    UnknownName
    """
    by_id = {one.id: one for one in infos}
    plan = choose("Plan", "plan", list(by_id), show=lambda name: option_text(by_id[name]), kind="plan")
    return plan or infos[0].id


def _facts(stored: StoredCircuitPlan) -> None:
    """Draw the main numbers of a plan."""
    numbers = facts(stored)
    for column, (label, value) in zip(st.columns(len(numbers)), numbers.items(), strict=True):
        with column:
            number(label, value)


def _moves(stored: StoredCircuitPlan) -> None:
    """Draw the circuits to remove and to add, for the operator of the switch, and how to record that."""
    table = moves_table(stored)
    if not len(table):
        st.success("None: no better circuits than the present ones were found.")
        return
    st.dataframe(table, hide_index=True, height="content" if len(table) <= 8 else 320, key="moves")
    download("Download as CSV", lambda: csv_text(table), f"{stored.id}-moves.csv", key="moves csv")
    if stored.applied_at is not None:
        st.success(
            f"Applied to the switch at {units.moment_text(stored.applied_at)}.", icon=":material/check:"
        )
    elif stored.cluster is not None:
        with st.popover("Record that it was applied", width="stretch"):  # code takes 1.5 MB of scripts
            st.markdown("After applying the plan to the switch, record it:")
            command = f"almanac cluster optical {stored.cluster} --applied {stored.id}"
            st.code(command, language=None, wrap_lines=True)


def _circuits(stored: StoredCircuitPlan) -> None:
    """Draw the circuits before or after the moves as a matrix and as a table, and the throughput."""
    table = circuits_table(stored)
    theme = theme_of(st.context.theme.type)
    with st.container(border=True):
        side = toggle("Show", "colour", SIDES, default=MORE, hide_label=True)
        with st.container(horizontal=True):  # on a narrow screen the second is below the first
            if not table["what"].isin(WHAT[side]).any():
                st.info("No circuit changes.")
            elif len(table) <= DRAWN:
                chart = circuit_matrix(table, stored.plan.nodes, theme, WHAT[side])
                st.altair_chart(chart, width="content", key="matrix")
            else:
                st.info(f"{len(table):,} circuits are too many to draw.")
            with st.container(width=BESIDE):
                _throughput(stored, theme)
        with st.expander("As a table"):
            busy = {"busy": st.column_config.NumberColumn(format="percent")}
            listed = in_units(table.drop(columns=["a node", "b node"]), {"bytes": units.BYTES})
            st.dataframe(listed, hide_index=True, column_config=busy, key="circuits")
            file = f"{stored.id}-circuits.csv"
            download("Download as CSV", lambda: csv_text(table), file, key="circuits csv")


def _throughput(stored: StoredCircuitPlan, theme: str) -> None:
    """Draw the throughput before and after, with the upper bound and what the plan is for."""
    rows = throughputs(stored.plan)
    if len(rows):
        st.altair_chart(throughput_bars(rows, theme), key="throughput")
    else:
        st.info("Nothing is sent between hosts, so circuits limit nothing.")
    st.caption(plain(_about(stored)))


def _about(stored: StoredCircuitPlan) -> str:
    """Return where a plan is for, its limits and its bound, as text."""
    plan = stored.plan
    where = f"Optical switch of {stored.cluster}" if stored.cluster else "An optical switch"
    jobs = f"jobs {', '.join(stored.jobs)}, without moving ranks" if stored.jobs else "one application"
    limits = f"at most {units.counted(plan.max_edges, 'circuit')}, {plan.max_degree:,} per host"
    speed = units.short(plan.link_speed, units.RATE)
    return (
        f"{where}: {units.counted(plan.nodes, 'host')}, {limits}, {speed} each; for {jobs}. Upper bound by "
        f"{plan.bound}. Saved at {units.moment_text(stored.recorded_at)} as {stored.id}."
    )


def _search(stored: StoredCircuitPlan) -> None:
    """Draw the course of the search."""
    plan = stored.plan
    if not plan.complete:
        st.warning("The search was interrupted; this is its best result.")
    bound = plan.upper_bound if math.isfinite(plan.upper_bound) else None
    st.altair_chart(trail_chart(trail_table(plan), bound, theme_of(st.context.theme.type)), key="trail")


def _routes(stored: StoredCircuitPlan) -> None:
    """Draw the routes of the flows between ranks, or between hosts if the ranks stay."""
    routes = stored.plan.routes
    if routes is None:
        st.caption("Not known: this plan was saved before routes were stored.")
        return
    table = routes_table(stored, ROUTES)
    if not len(table):
        st.caption("All traffic stays within hosts.")
        return
    shown = in_units(table, {"bytes": units.BYTES})
    st.dataframe(shown, hide_index=True, height="content" if len(table) <= 16 else "auto", key="routes")
    with st.container(horizontal=True, vertical_alignment="center"):
        download("Download as CSV", lambda: csv_text(table), f"{stored.id}-routes.csv", key="routes csv")
        crossing = len(routes.crossing)
        if crossing > ROUTES:
            st.caption(f"The {ROUTES:,} flows with most bytes, of {crossing:,}.")


def _plans(infos: Sequence[CircuitPlanInfo]) -> None:
    """Draw the newest plans; a selected one is opened."""
    table = plans_table(infos[:LISTED])

    def picked() -> None:
        row = picked_row(st.session_state["plans"], len(table))
        if row is not None:
            set_address(plan=infos[row].id)

    keep_selected("plans", [one.id for one in infos[:LISTED]])
    st.dataframe(
        table, hide_index=True, on_select=picked, selection_mode="single-row", placeholder="", key="plans"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        download("Download as CSV", lambda: csv_text(plans_table(infos)), "plans.csv", key="plans csv")
        if len(infos) > LISTED:
            st.caption(f"The newest {LISTED:,} of {len(infos):,}; the file has all.")
