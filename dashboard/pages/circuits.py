"""Tab of the page Planner: circuits of an optical switch, before and after moves, and the search for them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from dashboard.shared import door
from dashboard.shared.bar import link_to
from dashboard.shared.caching import cached_clusters
from dashboard.shared.cards import (
    DARK,
    INK,
    LIGHT,
    SERIES_COLOURS,
    card,
    csv_text,
    download,
    keep_selected,
    layers,
    number,
    picked_row,
    plain,
    set_address,
    show_empty,
    show_unknown,
    theme_of,
)
from dashboard.shared.controls import choose, named, toggle
from dashboard.shared.door import visible_plans
from dashboard.shared.traffic import in_units, in_utc, numbers
from dashboard.shared.viewer import Site
from registry import units
from registry.errors import UnknownName
from registry.model.circuit_plan import CircuitPlan
from registry.registry import Registry
from registry.store.circuit_plans import CircuitPlanInfo, CircuitPlanRecord, StoredCircuitPlan

UNCHANGED, REMOVED, INSERTED = STATES = ("stays", "remove", "add")
"""What happens to a circuit."""
PRESENT, PROPOSED, UPPER_BOUND = "present", "proposed", "certified upper bound"


def plans_table(infos: Sequence[CircuitPlanInfo]) -> pd.DataFrame:
    """Return plans, one row each; throughput in profiles per second, empty if unknown or unlimited."""
    return pd.DataFrame(
        {
            "plan": [one.id for one in infos],
            "saved at (UTC)": in_utc(one.recorded_at for one in infos),
            "cluster": [one.cluster or "" for one in infos],
            "for": [about(one) for one in infos],
            "hosts": [one.nodes for one in infos],
            "circuits": [one.circuits for one in infos],
            "removed": numbers(one.removed for one in infos),
            "added": numbers(one.inserted for one in infos),
            "present (1/s)": numbers(one.present_throughput for one in infos),
            "proposed (1/s)": numbers(one.throughput for one in infos),
            "upper bound (1/s)": numbers(one.upper_bound for one in infos),
            "gain (times)": numbers(one.gain for one in infos),
            "pays after (s)": numbers(one.break_even_seconds for one in infos),
            "applied at (UTC)": in_utc(one.applied_at for one in infos),
            "search": [one.method for one in infos],
            "complete": [one.complete for one in infos],
        }
    )


def about(info: CircuitPlanInfo) -> str:
    """Return the jobs or applications that a plan is made for."""
    names = ", ".join(info.profile_names)
    jobs = len(info.jobs)
    return f"{jobs} running job{'s' if jobs != 1 else ''}: {names}" if jobs else names


def option_text(info: CircuitPlanInfo) -> str:
    """Return the text of a plan in a list to choose from."""
    gain = "" if info.gain is None else f"{info.gain:.3g} ×"
    parts = (info.cluster or "", about(info), gain, units.moment_text(info.recorded_at), info.id)
    return " · ".join(part for part in parts if part)


def throughputs(plan: CircuitPlan) -> pd.DataFrame:
    """Return throughput before and after and its upper bound: columns ``series``, ``value``, ``shown``.

    Unknown and unlimited values are left out.
    """
    values = {PRESENT: plan.present_throughput, PROPOSED: plan.throughput, UPPER_BOUND: plan.upper_bound}
    rows = [
        (series, value, f"{units.figures(value)} profiles/s")
        for series, value in values.items()
        if math.isfinite(value)
    ]
    return pd.DataFrame(rows, columns=["series", "value", "shown"])


def trail_table(plan: CircuitPlan) -> pd.DataFrame:
    """Return the iterations of the search: columns ``iteration``, ``throughput``, ``best``, ``bottleneck``.

    Unlimited throughput is empty.
    """
    values, best = (np.where(np.isfinite(it), it, np.nan) for it in (plan.trail_throughput, plan.best))
    return pd.DataFrame(
        {"iteration": plan.number, "throughput": values, "best": best, "bottleneck": list(plan.bottleneck)}
    )


def circuits_table(record: CircuitPlanRecord) -> pd.DataFrame:
    """Return all proposed circuits and those to remove; busiest first, equal ones by nodes.

    ``what`` is one of `STATES`, `INSERTED` if the present circuits are not known; ``bytes`` are those of one
    profile; ``busy`` is the share of the time at the proposed throughput.
    """
    plan = record.plan
    present = set(plan.present)
    states = [UNCHANGED if pair in present else INSERTED for pair in plan.circuits]
    pairs = [*plan.circuits, *plan.removed]
    load = np.r_[plan.link_load, np.zeros(len(plan.removed))]
    busy = load * (plan.throughput / plan.link_speed) if math.isfinite(plan.throughput) else 0.0 * load
    table = pd.DataFrame(
        {
            "a": [record.node_name(a) for a, _ in pairs],
            "b": [record.node_name(b) for _, b in pairs],
            "what": [*states, *[REMOVED] * len(plan.removed)],
            "bytes": load,
            "busy": busy,
            "a node": [a for a, _ in pairs],
            "b node": [b for _, b in pairs],
        }
    )
    return table.sort_values(["bytes", "a node", "b node"], ascending=[False, True, True], ignore_index=True)


def moves_table(record: CircuitPlanRecord) -> pd.DataFrame:
    """Return the circuits to move, those to remove first: columns ``what``, ``a``, ``b``."""
    plan = record.plan
    moves = [(REMOVED, pair) for pair in plan.removed] + [(INSERTED, pair) for pair in plan.inserted]
    rows = [(what, record.node_name(a), record.node_name(b)) for what, (a, b) in moves]
    return pd.DataFrame(rows, columns=["what", "a", "b"])


def routes_table(record: CircuitPlanRecord, most: int) -> pd.DataFrame:
    """Return up to `most` flows that cross circuits, most bytes first; equal ones in the plan's order.

    The ends are ranks, or hosts if the ranks stay. Empty if routes are not known.
    """
    routes = record.plan.routes
    if routes is None:
        return pd.DataFrame({name: [] for name in ("one", "other", "bytes", "circuits", "route")})
    crossing = routes.crossing
    rows = crossing[np.argsort(-routes.bytes[crossing], kind="stable")][:most]
    ends = (routes.one[rows].tolist(), routes.other[rows].tolist())
    named = [[record.node_name(node) for node in end] if routes.of_nodes else end for end in ends]
    ways = record.plan.ways(rows)
    return pd.DataFrame(
        {
            "one": named[0],
            "other": named[1],
            "bytes": routes.bytes[rows],
            "circuits": np.diff(routes.first)[rows],
            "route": [" ".join(map(record.node_name, way)) for way in ways],
        }
    )


def facts(stored: StoredCircuitPlan) -> dict[str, str]:
    """Return the main numbers of a plan as text, by title."""
    plan = stored.plan
    known = not math.isnan(plan.present_throughput)
    moves = len(plan.removed) + len(plan.inserted) if known else len(plan.source)
    return {
        "Profiles/s": _text(plan.throughput, "", unlimited="without limit"),
        "Gain": _text(plan.gain, " ×", unlimited="without limit"),
        "Moves": f"{moves:,}",
        "Pays after": pays_after(plan),
    }


def pays_after(plan: CircuitPlan) -> str:
    """Return as text after what time moving the circuits has paid for itself."""
    if math.isnan(plan.break_even_seconds):
        return "not known"
    if math.isinf(plan.break_even_seconds):
        return "never"
    return units.short(plan.break_even_seconds, units.SECONDS)


def _text(value: float, unit: str, *, unlimited: str) -> str:
    if math.isnan(value):
        return "not known"
    return unlimited if math.isinf(value) else f"{units.figures(value)}{unit}"


SIDE = 380
"""Width and height of the matrix, in pixels."""
STATE_COLOURS = {LIGHT: ("#9aa3b2", "#e0672f", "#0b6e8f"), DARK: ("#6d7686", "#f38b21", "#4cc3ea")}
"""Colours of circuits that stay, are removed and are added."""
STATE_SHAPES = ("square", "cross", "circle")
NAMED = 20
"""Maximum number of hosts that a matrix shows by name; more are shown by number."""
_SERIES = (PRESENT, PROPOSED, UPPER_BOUND)


def throughput_bars(rows: pd.DataFrame, theme: str) -> alt.LayerChart:
    """Return bars of the throughput before and after, and of the certified upper bound.

    Args:
        rows: Result of `dashboard.pages.circuits.throughputs`.
    """
    grey, _, colour, ink = SERIES_COLOURS[theme]
    top = float(rows["value"].max()) if len(rows) else 1.0
    base = alt.Chart(rows).encode(
        x=alt.X("value:Q", axis=None, scale=alt.Scale(domain=[0, 1.9 * (top or 1.0)], nice=False)),
        y=alt.Y(
            "series:N",
            title=None,
            scale=alt.Scale(domain=list(_SERIES)),
            axis=alt.Axis(ticks=False, domain=False, labelLimit=220, labelOverlap=False),
        ),
        tooltip=[alt.Tooltip("series:N"), alt.Tooltip("shown:N")],
    )
    colours = alt.Scale(domain=list(_SERIES), range=[grey, colour, ink])
    return layers(
        base.mark_bar().encode(color=alt.Color("series:N", scale=colours, legend=None)),
        base.mark_text(align="left", dx=5, color=INK[theme]).encode(text=alt.Text("shown:N")),
    ).properties(height=46 * len(_SERIES), width="container")


def trail_chart(rows: pd.DataFrame, bound: float | None, theme: str) -> alt.LayerChart:
    """Return a chart of the throughput of each iteration, the best so far, and the certified upper bound.

    Args:
        rows: Result of `dashboard.pages.circuits.trail_table`.
        bound: Upper bound, or None if throughput is unlimited.
    """
    grey, _, colour, ink = SERIES_COLOURS[theme]
    x = alt.X("iteration:Q", title="iteration", axis=alt.Axis(tickMinStep=1, format="d"))
    tooltip: list[alt.Tooltip] = [
        alt.Tooltip("iteration:Q"),
        alt.Tooltip("throughput:Q", format=".4~g", title="profiles/s"),
        alt.Tooltip("best:Q", format=".4~g", title="best so far"),
        alt.Tooltip("bottleneck:N"),
    ]

    def along(field: str) -> alt.Chart:
        y = alt.Y(f"{field}:Q", title="profiles/s", scale=alt.Scale(zero=True))
        return alt.Chart(rows).encode(x=x, y=y, tooltip=tooltip)

    parts = [
        along("best").mark_line(interpolate="step-after", strokeWidth=2, color=colour),
        along("throughput").mark_point(filled=True, size=30, opacity=0.8, color=grey),
    ]
    if bound is not None:
        limit = pd.DataFrame({"bound": [bound]})
        rule = alt.Chart(limit).mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=ink)
        y = alt.Y("bound:Q", title="profiles/s", scale=alt.Scale(zero=True))
        parts.append(rule.encode(y=y, tooltip=[alt.Tooltip("bound:Q", format=".4~g", title="bound")]))
    title = "Search: ● iteration · ━ best so far · ╌ certified upper bound"
    return layers(*parts).properties(title=title, height=260, width="container")


def circuit_matrix(rows: pd.DataFrame, nodes: int, theme: str, what: Collection[str] = STATES) -> alt.Chart:
    """Return a matrix of the nodes that circuits connect, symmetric; colour and shape show the changes.

    Args:
        rows: Result of `dashboard.pages.circuits.circuits_table`.
        what: Which of `dashboard.pages.circuits.STATES` to draw; names of hosts come from all rows.
    """
    columns = {"a": "b", "b": "a", "a node": "b node", "b node": "a node"}
    both = pd.concat([rows, rows.rename(columns=columns)], ignore_index=True)
    both = both.rename(columns={"a node": "across", "b node": "down"})
    size = min(max((0.55 * SIDE / max(nodes, 1)) ** 2, 4.0), 400.0)
    across, down = _by_name(both, nodes) if nodes <= NAMED else _by_number(nodes)
    chart: alt.Chart = (
        alt.Chart(both[both["what"].isin(list(what))])
        .mark_point(filled=True, size=size, opacity=1)
        .encode(
            x=across,
            y=down,
            color=alt.Color(
                "what:N",
                title=None,
                scale=alt.Scale(domain=list(STATES), range=list(STATE_COLOURS[theme])),
                legend=alt.Legend(orient="top"),
            ),
            shape=alt.Shape("what:N", scale=alt.Scale(domain=list(STATES), range=list(STATE_SHAPES))),
            tooltip=[
                *(alt.Tooltip(f"{name}:N") for name in ("a", "b", "what")),
                alt.Tooltip("bytes:Q", format=".4~s", title="bytes of a profile"),
                alt.Tooltip("busy:Q", format=".1%", title="busy"),
            ],
        )
        .properties(width=SIDE, height=SIDE, description="Connected hosts, symmetric.")
    )
    return chart


def _by_name(rows: pd.DataFrame, nodes: int) -> tuple[alt.X, alt.Y]:
    """Return the axes of the matrix with the hosts' names, in the order of the nodes."""
    names = dict(enumerate(map(str, range(nodes)))) | {
        number: str(name) for number, name in zip(rows["across"], rows["a"], strict=True)
    }
    scale = alt.Scale(domain=list(names.values()))
    style: dict[str, Any] = {"grid": True, "labelLimit": 90, "labelFontSize": 10, "labelOverlap": False}
    x = alt.X("a:N", title=None, scale=scale, axis=alt.Axis(**style, labelAngle=-90))
    y = alt.Y("b:N", title=None, scale=scale, axis=alt.Axis(**style))
    return x, y


def _by_number(nodes: int) -> tuple[alt.X, alt.Y]:
    span = [-0.5, nodes - 0.5]
    axis = alt.Axis(grid=False, tickMinStep=1, format="d")
    x = alt.X("across:Q", title="node", scale=alt.Scale(domain=span, nice=False), axis=axis)
    y = alt.Y("down:Q", title="node", scale=alt.Scale(domain=span[::-1], nice=False), axis=axis)
    return x, y


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

    Raises:
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

    Raises:
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
