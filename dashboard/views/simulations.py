"""Tab of the page Trends: simulated runs compared by traffic over time, latencies and estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

import streamlit as st

from dashboard.figures import simulated as drawings
from dashboard.figures.style import theme_of
from dashboard.queries import door
from dashboard.queries.simulated import simulated
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.placements import METRICS, relative_change
from dashboard.tables.simulated import (
    UNITS,
    SimulatedRuns,
    facts_table,
    label,
    latencies,
    letter,
    newest_alike,
    option_text,
    over_time,
    predicted,
    replay,
    runs_table,
)
from dashboard.views import simulation_links
from dashboard.widgets.address import set_address
from dashboard.widgets.cards import card, number
from dashboard.widgets.controls import any_of, choose, named, set_value, toggle
from dashboard.widgets.messages import show_empty, show_unknown
from dashboard.widgets.states import State
from dashboard.widgets.tables import csv_text, download, keep_selected
from registry import units
from registry.errors import UnknownName
from registry.model import Simulation
from registry.registry import Registry
from registry.store.simulations import SimulationInfo

MOST = 6
"""Maximum number of compared runs."""
LISTED = 200
"""Maximum number of listed runs, the newest ones; the address may name any run."""
FEWEST = 3
"""Minimum number of placements of a replay for a chart of estimates against simulation."""
DELIVERED, LATENCY = "delivered", "latency"
STATIC = "All runs of the same messages over the same network. Filled: compared runs."
_CURVES = {DELIVERED: "Delivered bytes", LATENCY: "Mean latency"}


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    view = simulated(registry, site.viewer, st.query_params.get("placement"))
    if not view.runs:
        _empty(view)
        return
    try:
        with st.popover("Choose runs", icon=":material/filter_list:", width=200):
            runs = _filtered(view)
            chosen = _chosen(view, runs) if runs else []
        if not runs:
            _none_of_placement(view)
            return
        if chosen:
            _beside(registry, view, chosen, site)
        _table(view, runs)
    except UnknownName as error:
        show_unknown(error, error.kind)


def _empty(view: SimulatedRuns) -> None:
    """Show that there are no runs, and the commands that make some."""
    if not len(view.series):
        show_empty(
            "The registry holds no placement and no simulated run yet. Find a placement, or load the "
            "demonstration; then `almanac simulate` replays its messages:",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    show_empty("The registry holds no simulated run yet. Simulate one:", _command(view, len(view.series) - 1))


def _command(view: SimulatedRuns, row: int) -> str:
    series = view.series
    profile = series.profile_name[row]
    options = f"--cluster {quote(series.cluster[row])} --placement {quote(series.id[row])}"
    return f"almanac simulate {quote(profile) if profile else 'PROFILE'} {options}"


def _filtered(view: SimulatedRuns) -> list[SimulationInfo]:
    """Draw the filters, and return the matching runs, newest first.

    Raises
    ------
    UnknownName
    """
    clusters = sorted({*view.series.cluster, *(run.cluster for run in view.runs)})
    applications = sorted(set(view.series.application) - {""})
    placements = list(dict.fromkeys(run.placement for run in view.runs))
    wanted = st.query_params.get("placement")
    if wanted in view.row_of and wanted not in placements:
        placements.append(str(wanted))
    resets = ("run", "map")
    cluster = named("cluster", clusters)
    application = any_of("application", applications, resets=resets)
    placement = any_of("placement", placements, resets=resets)
    return [
        run
        for run in view.runs
        if cluster in (None, run.cluster)
        and application in (None, view.text(run, "application"))
        and placement in (None, run.placement)
    ]


def _none_of_placement(view: SimulatedRuns) -> None:
    wanted = st.query_params.get("placement", "")
    row = view.row_of.get(wanted)
    if row is None or any(run.placement == wanted for run in view.runs):
        st.info("No run matches this choice.")
        return
    show_empty("This placement was not simulated yet. Simulate it:", _command(view, row))


def _chosen(view: SimulatedRuns, runs: Sequence[SimulationInfo]) -> list[SimulationInfo]:
    """Return the runs chosen in the address or the widget (default: the newest run and similar ones).

    Raises
    ------
    UnknownName
    """
    by_id = {run.id: run for run in view.runs}
    text = st.query_params.get("run")
    wanted = text.split(",") if text else [run.id for run in newest_alike(runs, MOST)]
    for name in wanted:
        if name not in by_id:
            raise UnknownName("run", name, by_id)
    wanted = list(dict.fromkeys(wanted))[:MOST]
    key = "choose run"
    set_value(key, wanted)
    st.multiselect(
        "Compared runs",
        list(dict.fromkeys([*wanted, *(run.id for run in runs[:LISTED])])),
        format_func=lambda name: option_text(view, by_id[name]),
        key=key,
        max_selections=MOST,
        on_change=lambda: _to_address(st.session_state[key]),
        help="The first run is A; the others are compared with it.",
    )
    return [by_id[name] for name in wanted]


def _to_address(runs: Sequence[str]) -> None:
    set_address(map=None, run=",".join(runs) or None)


def _table(view: SimulatedRuns, runs: Sequence[SimulationInfo]) -> None:
    """Draw the table of the newest runs; selected runs are compared."""
    with card("All runs"):
        shown = runs[:LISTED]

        def picked() -> None:
            rows = st.session_state["simulated runs"]["selection"]["rows"]
            _to_address([shown[row].id for row in rows if row < len(shown)][:MOST])

        keep_selected("simulated runs", [run.id for run in shown])
        st.dataframe(
            in_units(runs_table(view, shown), UNITS),
            hide_index=True,
            on_select=picked,
            selection_mode="multi-row",
            placeholder="",
            height="content" if len(shown) <= 8 else 320,
            key="simulated runs",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            download(
                "Download as CSV",
                lambda: csv_text(runs_table(view, runs)),
                "simulated-runs.csv",
                key="simulated csv",
            )
            older = (
                f"The newest {LISTED:,} of {len(runs):,}; the file has all. " if len(runs) > LISTED else ""
            )
            st.caption(
                f"{older}Costs are the estimates saved with the placement. Select up to {MOST} rows to "
                "compare these runs."
            )


def _beside(registry: Registry, view: SimulatedRuns, chosen: Sequence[SimulationInfo], site: Site) -> None:
    """Draw the chosen runs: completion, delivered bytes and latency over time, facts, and links."""
    whole = door.runs(registry, [run.id for run in chosen], site.viewer)
    by_label = {
        label(view, run, number): one.simulation
        for number, (run, one) in enumerate(zip(chosen, whole, strict=True))
    }
    theme = theme_of(st.context.theme.type)
    if len({replay(run) for run in chosen}) > 1:
        st.warning("These runs differ in their messages or networks: see the rows marked ≠.")
    if not all(run.complete for run in chosen):
        st.warning("An interrupted run contains only the traffic delivered until then.")
    _completions(by_label)
    left, middle, right = st.columns(3)
    with left, card("Over time"):
        curve = toggle("Over time", "curve", _CURVES, default=DELIVERED, hide_label=True)
        base = units.BYTES if curve == DELIVERED else units.SECONDS
        points = over_time(by_label)
        st.altair_chart(drawings.over_time(points, curve, _CURVES[curve], base, theme), key="over time")
    with middle, card("Latency of messages", help="Time from the generation of a message to its last byte."):
        st.altair_chart(drawings.latencies(latencies(by_label), theme), key="latencies")
    with right, card("Estimate against simulation", help=STATIC):
        _static(view, chosen, theme)
    with card("Differences"):
        st.dataframe(facts_table(view, whole), hide_index=True, height=300, key="run facts")
        by_id = {one.id: one.simulation for one in whole}
        traffic, file = "Traffic over time as CSV", "traffic-over-time.csv"
        download(traffic, lambda: csv_text(over_time(by_id)), file, key="points csv")
    with card("Link utilisation"):
        simulation_links.draw(registry, dict(zip(by_label, whole, strict=True)))


def _completions(by_label: Mapping[str, Simulation]) -> None:
    """Draw the completion time of each run, and its difference from A if both are complete."""
    first = next(iter(by_label.values()))
    columns = st.columns(max(len(by_label), 3))
    for column, (name, run) in zip(columns, by_label.items(), strict=False):
        ended = run is not first and run.complete and first.complete
        nothing = not run.completion_seconds
        before = first.completion_seconds if ended and not nothing else None
        delta, better = relative_change(run.completion_seconds, before, letter(0))
        state = None if better is None else State.OK if better else State.ACT
        with column:
            number(
                name.rpartition(" · ")[0] or name,
                units.short(run.completion_seconds, units.SECONDS),
                help="Simulated time until the last byte arrived.",
                note="no traffic between hosts" if nothing else delta or "",
                state=state,
            )


def _static(view: SimulatedRuns, chosen: Sequence[SimulationInfo], theme: str) -> None:
    """Draw estimated costs against completion times, for all runs with the messages and network of A."""
    alike = [run for run in view.runs if replay(run) == replay(chosen[0])]
    if len({run.placement for run in alike if run.complete and run.placement in view.row_of}) < FEWEST:
        st.caption(f"Needs at least {FEWEST} placements of the same messages over the same network.")
        return
    titles = {metric: about.title for metric, about in METRICS.items()}
    metric = choose("Cost", "metric", list(titles), show=titles.__getitem__, kind="metric")
    about = METRICS[metric or "congestion_seconds"]
    table = predicted(view, alike, metric or "congestion_seconds")
    chart = drawings.against_static(table, [run.id for run in chosen], about.title, about.base, theme)
    st.altair_chart(chart, key="against static")
