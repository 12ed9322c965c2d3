"""The page of simulated runs: what was delivered and when, placement beside placement, and static costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

import streamlit as st

from dashboard import figures, tables
from dashboard.figures import simulated as drawings
from dashboard.queries.simulated import simulated, whole_runs
from dashboard.state.site import Site
from dashboard.tables.csv_files import csv_text
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
from dashboard.views import simulated_links
from dashboard.widgets.choices import toggle
from dashboard.widgets.downloads import download
from dashboard.widgets.filters import any_of
from dashboard.widgets.messages import plain, show_empty, show_unknown
from registry import units
from registry.errors import UnknownName
from registry.model import Simulation
from registry.records.simulations import SimulationInfo, StoredSimulation
from registry.registry import Registry

MOST = 6
"""Runs beside each other."""
LISTED = 200
"""Runs in the table and to choose from, the newest ones; the address takes any."""
FEWEST = 3
"""Placements of one replay that a picture of costs against completion needs."""
DELIVERED, LATENCY = "delivered", "latency"
_CURVES = {DELIVERED: "Delivered bytes", LATENCY: "Mean latency"}


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Simulated runs")
    view = simulated(registry, site.viewer, st.query_params.get("placement"))
    if not view.runs:
        _empty(view)
        return
    try:
        runs = _filtered(view)
        if not runs:
            _none_of_placement(view)
            return
        chosen = _chosen(view, runs)
        if chosen:
            _beside(registry, view, chosen)
        _table(view, runs)
    except UnknownName as error:
        show_unknown(error, error.kind)


def _empty(view: SimulatedRuns) -> None:
    if not len(view.series):
        show_empty(
            "The registry holds no placement yet, and no simulated run. Find one, or look at the demo; "
            "almanac simulate then replays its messages:",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    show_empty("The registry holds no simulated run yet. Simulate one:", _command(view, len(view.series) - 1))


def _command(view: SimulatedRuns, row: int) -> str:
    series = view.series
    profile = series.profile_name[row]
    asked = f"--cluster {quote(series.cluster[row])} --placement {quote(series.id[row])}"
    return f"almanac simulate {quote(profile) if profile else 'PROFILE'} {asked}"


def _filtered(view: SimulatedRuns) -> list[SimulationInfo]:
    """Runs that fit the widgets, the newest first.

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
    left, middle, right = st.columns(3)
    resets = ("run", "map")
    with left:
        cluster = any_of("Cluster", "cluster", clusters, kind="cluster", resets=resets)
    with middle:
        application = any_of("Application", "application", applications, kind="application", resets=resets)
    with right:
        placement = any_of("Placement", "placement", placements, kind="placement", resets=resets)
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
        st.info("No run fits what is chosen.")
        return
    show_empty("No run of this placement was simulated yet. Simulate one:", _command(view, row))


def _chosen(view: SimulatedRuns, runs: Sequence[SimulationInfo]) -> list[SimulationInfo]:
    """The runs that the address or the widget names, else the newest one and those like it.

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
    st.session_state[key] = wanted
    st.multiselect(
        "Runs beside each other",
        list(dict.fromkeys([*wanted, *(run.id for run in runs[:LISTED])])),
        format_func=lambda name: option_text(view, by_id[name]),
        key=key,
        max_selections=MOST,
        on_change=_choice_to_address,
        args=(key,),
        help="The first one is A, which the others are held against.",
    )
    return [by_id[name] for name in wanted]


def _choice_to_address(key: str) -> None:
    _to_address(st.session_state[key])


def _to_address(runs: Sequence[str]) -> None:
    st.query_params.pop("map", None)
    if runs:
        st.query_params["run"] = ",".join(runs)
    else:
        st.query_params.pop("run", None)


def _table(view: SimulatedRuns, runs: Sequence[SimulationInfo]) -> None:
    """The newest runs; those that are picked stand beside each other."""
    st.subheader("All runs")
    shown = runs[:LISTED]

    def picked() -> None:
        rows = st.session_state["simulated runs"]["selection"]["rows"]
        _to_address([shown[row].id for row in rows if row < len(shown)][:MOST])

    st.dataframe(
        tables.in_units(runs_table(view, shown), UNITS),
        hide_index=True,
        on_select=picked,
        selection_mode="multi-row",
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
        older = f"The newest {LISTED:,} of {len(runs):,}; the file has all. " if len(runs) > LISTED else ""
        st.caption(
            f"{older}Costs are those saved with the placement, by its own routing. Pick rows to see up to "
            f"{MOST} runs beside each other."
        )


def _beside(registry: Registry, view: SimulatedRuns, chosen: Sequence[SimulationInfo]) -> None:
    """What the chosen runs delivered, when, how late, and over which links."""
    whole = whole_runs(registry, [run.id for run in chosen])
    by_label = {
        label(view, run, number): one.simulation
        for number, (run, one) in enumerate(zip(chosen, whole, strict=True))
    }
    theme = figures.theme_of(st.context.theme.type)
    st.subheader("Beside each other")
    if len({replay(run) for run in chosen}) > 1:
        st.warning("These runs sent different messages, or over different networks: see where they differ.")
    if not all(run.complete for run in chosen):
        st.warning("An interrupted run tells only what was delivered until then.")
    _completions(by_label)
    left, right = st.columns(2)
    with left:
        curve = toggle("Over time", "curve", _CURVES, default=DELIVERED)
        base = units.BYTES if curve == DELIVERED else units.SECONDS
        points = over_time(by_label)
        st.altair_chart(drawings.over_time(points, curve, _CURVES[curve], base, theme), key="over time")
    with right:
        st.markdown("**Latency of messages**")
        st.altair_chart(drawings.latencies(latencies(by_label), theme), key="latencies")
    st.dataframe(facts_table(view, whole), hide_index=True, height=420, key="run facts")
    _static(view, chosen, theme)
    _files(whole)
    simulated_links.draw(registry, dict(zip(by_label, whole, strict=True)))


def _completions(by_label: Mapping[str, Simulation]) -> None:
    """When each run was done, and how much sooner or later than A where both ran to their end."""
    first = next(iter(by_label.values()))
    columns = st.columns(max(len(by_label), 4))
    for column, (name, run) in zip(columns, by_label.items(), strict=False):
        ended = run is not first and run.complete and first.complete
        before = first.completion_seconds if ended else None
        delta, better = tables.change(run.completion_seconds, before, letter(0))
        column.metric(
            plain(name.rpartition(" · ")[0] or name),
            units.text(run.completion_seconds, units.SECONDS),
            delta,
            delta_color="off" if better is None else "inverse",
            delta_arrow="off" if better is None else "auto",
            help="Simulated seconds until the last byte arrived.",
        )


def _static(view: SimulatedRuns, chosen: Sequence[SimulationInfo], theme: str) -> None:
    """Static costs against completion, of all runs of the replay of A."""
    alike = [run for run in view.runs if replay(run) == replay(chosen[0])]
    if len({run.placement for run in alike if run.complete and run.placement in view.row_of}) < FEWEST:
        return
    st.subheader("What static costs foretold")
    titles = {metric: about.title for metric, about in tables.METRICS.items()}
    metric = toggle("Cost", "metric", titles, default="congestion_seconds")
    about = tables.METRICS[metric]
    table = predicted(view, alike, metric)
    chart = drawings.against_static(table, [run.id for run in chosen], about.title, about.base, theme)
    st.altair_chart(chart, key="against static")
    st.caption(f"All {len(table):,} runs of the same messages over the same network; filled: those chosen.")


def _files(whole: Sequence[StoredSimulation]) -> None:
    """The traffic over time of the chosen runs as a file."""
    runs = {one.id: one.simulation for one in whole}
    download(
        "Traffic over time as CSV",
        lambda: csv_text(over_time(runs)),
        "traffic-over-time.csv",
        key="points csv",
    )
