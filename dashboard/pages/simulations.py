"""Tab of the page Trends: simulated runs compared by traffic over time, latencies and estimates.

Charts of simulated runs: traffic and latency over time, latencies, estimate against simulation.

Part of the tab Simulations: utilisation of the links, as map and table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from dashboard.map.picture import fabric_map
from dashboard.shared import door
from dashboard.shared import link_map as colouring
from dashboard.shared.caching import cached_snapshot, drawing
from dashboard.shared.cards import (
    DARK,
    INK,
    LIGHT,
    State,
    card,
    csv_text,
    download,
    keep_selected,
    layers,
    number,
    set_address,
    share_bar,
    show_empty,
    show_unknown,
    theme_of,
)
from dashboard.shared.controls import any_of, choose, named, set_value, toggle
from dashboard.shared.link_map import LINES_LIMIT, link_map
from dashboard.shared.names import LOADS, METRICS, loaded_links, relative_change
from dashboard.shared.simulated import (
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
    simulated,
)
from dashboard.shared.traffic import in_units
from dashboard.shared.viewer import Site
from mapping.traffic.names import full_link
from registry import units
from registry.errors import UnknownName
from registry.model import Simulation
from registry.registry import Registry
from registry.store.fabrics import Snapshot
from registry.store.simulations import SimulationInfo, StoredSimulation
from registry.units import Unit

RUNS = {
    LIGHT: ("#0b6e8f", "#e0a028", "#7a4fa3", "#b3262d", "#2f8f5b", "#7a8290"),
    DARK: ("#4cc3ea", "#f3c04a", "#c39be8", "#f2767c", "#6fd39b", "#9aa3b2"),
}
"""Colours of the runs A, B, ...; their number limits the runs in a chart."""
_DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [4, 2], [12, 4])
"""Dashes of their lines, so that runs differ without colours too."""
_DOTTED = 60
"""Maximum number of point marks on a line; more would hide its dashes."""
_HEIGHT = 250


def over_time_chart(points: pd.DataFrame, what: str, title: str, base: str, theme: str) -> alt.Chart:
    """Return a chart over simulated time, one line per run.

    Args:
        points: Result of `dashboard.shared.simulated.over_time`.
        what: Column to draw: ``delivered`` or ``latency``.
        base: Unit of the column, of `registry.units`.
    """
    clock = units.unit_for(points["at"].tolist(), units.SECONDS)
    few = len(points) <= _DOTTED * max(points["run"].nunique(), 1)
    rows, unit = _in_unit(points[points[what].notna()], what, base)
    rows["at"] = rows["at"] / clock.size
    chart: alt.Chart = (
        alt.Chart(rows)
        .mark_line(point={"size": 18} if few else False)
        .encode(
            x=alt.X("at:Q", title=f"simulated time ({clock.name})"),
            y=alt.Y(f"{what}:Q", title=f"{title} ({unit.name})", scale=alt.Scale(zero=True)),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("at:Q", format=".4~g", title=f"time ({clock.name})"),
                alt.Tooltip(f"{what}:Q", format=".4~g", title=f"{title} ({unit.name})"),
            ],
            **_by_run(rows, theme),
        )
        .properties(height=_HEIGHT, width="container")
    )
    return chart


def latencies_chart(table: pd.DataFrame, theme: str) -> alt.Chart:
    """Return the latency of messages by percentile, one line per run; logarithmic if all are above zero.

    Args:
        table: Result of `dashboard.shared.simulated.latencies`.
    """
    rows, unit = _in_unit(table, "latency", units.SECONDS)
    positive = bool((rows["latency"] > 0).all())
    scale = alt.Scale(type="log") if positive else alt.Scale(zero=True)
    order = list(dict.fromkeys(rows["percentile"]))
    chart: alt.Chart = (
        alt.Chart(rows)
        .mark_line(point={"size": 30})
        .encode(
            x=alt.X("percentile:O", sort=order, title="percentile of messages", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("latency:Q", title=f"latency ({unit.name})", scale=scale),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("percentile:O"),
                alt.Tooltip("latency:Q", format=".4~g", title=f"latency ({unit.name})"),
            ],
            **_by_run(rows, theme, legend=False),
        )
        .properties(height=_HEIGHT, width="container", description="Latency of messages by percentile.")
    )
    return chart


def against_static(
    table: pd.DataFrame, chosen: Sequence[str], title: str, base: str, theme: str
) -> alt.LayerChart:
    """Return the completion time of simulated runs over an estimated cost; chosen runs filled, with letters.

    Args:
        table: Result of `dashboard.shared.simulated.predicted`.
        chosen: Ids of the chosen runs, in the order of their letters.
        title: Name of the cost.
        base: Unit of the cost.
    """
    rows, unit = _in_unit(table, "static", base)
    rows, clock = _in_unit(rows, "completion", units.SECONDS)
    mine = rows["run"].isin(list(chosen))
    letters = {run: letter(number) for number, run in enumerate(chosen)}
    rows["letter"] = [letters.get(run, "") for run in rows["run"]]

    def dots(part: pd.DataFrame) -> alt.Chart:
        return alt.Chart(part).encode(
            x=alt.X("static:Q", title=f"{title} ({unit.name})", scale=alt.Scale(zero=False)),
            y=alt.Y("completion:Q", title=f"completion ({clock.name})", scale=alt.Scale(zero=False)),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("placement:N"),
                alt.Tooltip("strategy:N"),
                alt.Tooltip("static:Q", format=".4~g", title=f"{title} ({unit.name})"),
                alt.Tooltip("completion:Q", format=".4~g", title=f"completion ({clock.name})"),
            ],
        )

    others = [dots(rows[~mine]).mark_point(filled=False, size=60, strokeWidth=1.5, color=INK[theme])]
    return layers(
        *(others if (~mine).any() else ()),  # Vega warns of layers without rows
        dots(rows[mine]).mark_point(filled=True, size=90, opacity=1, color=RUNS[theme][0]),
        dots(rows[mine])
        .mark_text(align="left", dx=9, fontWeight="bold", color=INK[theme])
        .encode(text=alt.Text("letter:N")),
    ).properties(height=_HEIGHT, width="container")


def _in_unit(table: pd.DataFrame, column: str, base: str) -> tuple[pd.DataFrame, Unit]:
    unit = units.unit_for(table[column].tolist(), base)
    scaled = table.copy()
    scaled[column] = scaled[column] / unit.size
    return scaled, unit


def _by_run(rows: pd.DataFrame, theme: str, *, legend: bool = True) -> dict[str, Any]:
    """Return colour and dashes of each run, with one legend for both or none."""
    names = list(dict.fromkeys(rows["run"]))
    shown = alt.Legend(
        orient="top",
        title=None,
        columns=2,
        labelLimit=110,
        symbolType="stroke",
        symbolSize=400,
        symbolStrokeWidth=2.5,
    )
    both = shown if legend else None
    colours = alt.Scale(domain=names, range=list(RUNS[theme][: len(names)]))
    dashes: Any = list(_DASHES[: len(names)])
    return {
        "color": alt.Color("run:N", scale=colours, legend=both),
        "strokeDash": alt.StrokeDash("run:N", scale=alt.Scale(domain=names, range=dashes), legend=both),
    }


BUSIEST = 50
"""Maximum rows of the table of links."""
HEIGHT = 420
"""Height of the map, in pixels."""


def draw_links(registry: Registry, runs: Mapping[str, StoredSimulation]) -> None:
    """Draw map and table of the links of one run.

    Args:
        runs: Runs by label, in the order of their letters.
    """
    by_id = {one.id: name for name, one in runs.items()}
    if st.query_params.get("map") not in (None, *by_id):
        st.query_params.pop("map")
    wanted = choose("Run on the map", "map", list(by_id), show=by_id.__getitem__, kind="run")
    if wanted is None:
        return
    name = by_id[wanted]
    run, snapshot = runs[name].simulation, cached_snapshot(registry, runs[name].content)
    if not run.link_bytes.any():
        st.info("The ranks sent nothing over cables, so no link was used.")
        return
    alike = {
        letter(number): one.simulation
        for number, one in enumerate(runs.values())
        if one.content == runs[name].content
    }
    _map(registry, snapshot, name, run, alike)
    _links_table(snapshot, wanted, run, alike)


def _map(
    registry: Registry, snapshot: Snapshot, name: str, run: Simulation, alike: Mapping[str, Simulation]
) -> None:
    """Draw the links that any of the runs used, coloured by their utilisation in one run."""
    fabric = snapshot.fabric
    used = np.any([one.link_bytes > 0 for one in alike.values()], axis=0)
    part = run.link_utilisation
    busiest = int(np.argmax(part))
    colours = colouring.share(name, "Share of the run spent sending", part)
    st.text(f"{name}: {100 * float(part[busiest]):.1f} % of the run on {full_link(fabric, busiest)}")
    fabric_map(
        link_map(
            fabric,
            drawing(snapshot.id, fabric, registry),
            colours,
            lines=int(used.sum()) <= LINES_LIMIT,
            only=used,
            height=HEIGHT,
        ),
        key="busy links",
    )


def _links_table(snapshot: Snapshot, run_id: str, run: Simulation, alike: Mapping[str, Simulation]) -> None:
    """Draw the links with the highest utilisation in any of the runs on this fabric."""
    parts = {which: one.link_utilisation for which, one in alike.items()}
    _, table = loaded_links(snapshot.fabric, parts, run.link_bytes, BUSIEST)
    st.dataframe(
        in_units(table, LOADS),
        hide_index=True,
        column_config=dict.fromkeys(parts, share_bar()),
        height=320,
        key="busy table",
    )
    download(
        "All used links as CSV",
        lambda: csv_text(loaded_links(snapshot.fabric, parts, run.link_bytes, None)[1], LOADS),
        f"{run_id}-links.csv",
        key="busy csv",
    )


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

    Raises:
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

    Raises:
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
        st.altair_chart(over_time_chart(points, curve, _CURVES[curve], base, theme), key="over time")
    with middle, card("Latency of messages", help="Time from the generation of a message to its last byte."):
        st.altair_chart(latencies_chart(latencies(by_label), theme), key="latencies")
    with right, card("Estimate against simulation", help=STATIC):
        _static(view, chosen, theme)
    with card("Differences"):
        st.dataframe(facts_table(view, whole), hide_index=True, height=300, key="run facts")
        by_id = {one.id: one.simulation for one in whole}
        traffic, file = "Traffic over time as CSV", "traffic-over-time.csv"
        download(traffic, lambda: csv_text(over_time(by_id)), file, key="points csv")
    with card("Link utilisation"):
        draw_links(registry, dict(zip(by_label, whole, strict=True)))


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
    chart = against_static(table, [run.id for run in chosen], about.title, about.base, theme)
    st.altair_chart(chart, key="against static")
