"""The selected switch or host of the fabric page: ports, jobs, neighbours, errors, findings, history.

And of the selected link: utilisation over time, owners, ranks, errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from dashboard.map.layouts import hosts_below, tiers
from dashboard.map.picture import Item
from dashboard.shared import fabric as picking
from dashboard.shared.bar import job_link
from dashboard.shared.cards import (
    DARK,
    INK,
    LIGHT,
    State,
    badge,
    compact_number,
    opening_column,
    plain,
    share_bar,
    show_error,
    theme_of,
)
from dashboard.shared.controls import choose, tabbed
from dashboard.shared.fabric import FabricView, cached_device_history, cached_fabric_findings, pick_button
from dashboard.shared.traffic import (
    cached_rank_pairs,
    in_units,
    in_utc,
    jobs_on_hosts,
    pairs_of_placement,
    pairs_table,
    users_of_link,
)
from dashboard.shared.viewer import OTHERS, Site, Viewer
from mapping.checks.finding import WORDS, Finding, Severity
from mapping.questions.live import Live
from mapping.traffic.names import link_text, reverse_rows, short_link, short_name, short_port
from mapping.traffic.ports import WAIT, CounterGrowth, CounterHistory
from registry import units
from registry.errors import AlmanacError
from registry.model import HOST, Fabric, Floats, Longs, format_guid
from registry.model.fabric import end_parts, port_name
from registry.registry import Registry
from registry.store.fabric_history import RENAMED, DeviceHistory

NOT_ATTRIBUTED = "not attributed"
"""Traffic that no running job is known to cause."""
MOST_OWNERS = 6
"""Maximum number of jobs with their own part in a chart; others share one."""
OTHER_JOBS = "other jobs"
FINE, SOME, BEYOND, NOT_COUNTED = "none", "within limits", "beyond limits", "not counted"
HARMLESS = "may be harmless"
"""States of the error counters of a port; `HARMLESS`: within the bit error rate, or dropped by rule."""
_WORDS = {**WORDS, WAIT: "wait (ticks)"}


def error_state(excess: float) -> str:
    """Return the state of a port's error counters as text.

    Args:
        excess: Largest growth over its limit; NaN if not counted.
    """
    if np.isnan(excess):
        return NOT_COUNTED
    return FINE if excess == 0 else SOME if excess <= 1 else BEYOND


def device_ports(
    fabric: Fabric, vertex: int, *, share: Floats | None, seconds: Floats | None, excess: Floats | None
) -> tuple[Longs, pd.DataFrame]:
    """Return the ports of a device with their neighbours, by port.

    Args:
        share (float64[m]): Measured utilisation of each link.
        seconds (float64[m]): Estimated time of each link.
        excess (float64[m]): Errors of the sending port of each link, see `error_state`.

    Returns:
        int64[k]: Rows of ``fabric.links`` that leave the device. Columns ``port``, ``to``, ``use`` (measured
        utilisation of the busier direction) or, without it, ``time`` (estimated, s), and ``errors``.
    """
    links = fabric.links
    rows = np.flatnonzero(links.source == vertex)
    rows = rows[np.lexsort((rows, links.source_port[rows], links.source_adapter[rows]))]
    back = _reverse(fabric, vertex, rows)
    columns: dict[str, object] = {
        "port": [end_parts(fabric, row)[1].lstrip(" :") for row in rows.tolist()],
        "to": [short_port(fabric, row, "target") for row in rows.tolist()],
    }
    if share is not None:
        columns["use"] = np.fmax(_taken(share, rows), _taken(share, back))
    elif seconds is not None:
        columns["time"] = np.fmax(_taken(seconds, rows), _taken(seconds, back))
    if excess is not None:
        columns["errors"] = [error_state(value) for value in excess[rows].tolist()]
    return rows, pd.DataFrame(columns)


def growth_table(growth: Sequence[CounterGrowth]) -> pd.DataFrame:
    """Return the growth of counters: all that grew or have a limit, those that grew first."""
    shown = sorted(growth, key=lambda one: one.growth == 0)
    return pd.DataFrame(
        {
            "counter": [_WORDS[one.counter] for one in shown],
            "new": [f"{'≥ ' if one.at_least else ''}{one.growth:,}" for one in shown],
            "per hour": [float(f"{one.per_hour:.3g}") for one in shown],
            "state": [_growth_state(one) for one in shown],
        }
    )


def _growth_state(one: CounterGrowth) -> str:
    if one.counter == WAIT:
        return ""
    if one.ports:
        return BEYOND
    return HARMLESS if one.harmless else SOME if one.growth else FINE


def ports_with_errors(fabric: Fabric, history: CounterHistory, count: int) -> list[tuple[int, str, str]]:
    """Return the ports with most new errors in relation to their limits.

    Returns:
        Row of the link that leaves the port (-1 for none), port, and its errors as text.
    """
    errors = history.errors
    order = np.argsort(-errors.excess, kind="stable")[:count]
    found = []
    for port in order[errors.excess[order] > 0].tolist():
        row = int(errors.link[port])
        number = int(errors.grown.port[port])
        lone = port_name(short_name(errors.device[port]), number)
        name = short_port(fabric, row, "source") if row >= 0 else lone
        grown = history.growth(np.array([port]))
        texts = [
            f"{'at least ' if one.at_least else ''}{one.growth:,} {_WORDS[one.counter]}"
            for one in sorted(grown, key=lambda one: -one.growth)
            if one.growth and one.counter != WAIT
        ]
        found.append((row, name, ", ".join(texts)))
    return found


def findings_about(findings: Sequence[Finding], names: Sequence[str]) -> list[Finding]:
    """Return the findings that name a device or port; ports are written ``DEVICE:PORT``."""
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")
    return [finding for finding in findings if pattern.search(f"{finding.subject} {finding.text}")]


def new_errors(history: CounterHistory, ports: Longs) -> pd.DataFrame:
    """Return the new errors of some ports by time and counter: ``time`` (UTC), ``counter``, ``errors``."""
    wanted = set(ports.tolist())
    found = [one for one in history.new_errors if one.port in wanted]
    table = pd.DataFrame(
        {
            "time": in_utc(one.time for one in found),
            "counter": [_WORDS[one.counter] for one in found],
            "errors": [one.amount for one in found],
        }
    )
    return table.groupby(["time", "counter"], sort=True)["errors"].sum().reset_index()


def owners_over_time(
    history: CounterHistory, live: Live | None, row: int, viewer: Viewer, iterations_per_second: float
) -> pd.DataFrame:
    """Return the measured utilisation of a link over time, split by the jobs that cause it.

    A job's part is its estimate, at most the measured utilisation with those of the other jobs, from its
    start on. The rest is `NOT_ATTRIBUTED`.

    Args:
        iterations_per_second: Scale of the estimate, see `mapping.traffic.shared_load.AgainstCounters`; NaN
            if unknown.

    Returns:
        Columns ``time`` (UTC, end of the interval), ``owner``, ``share`` (0 to 1).
    """
    owners = _owners(live, row, viewer, iterations_per_second)
    names = [*dict.fromkeys(name for name, _, _ in owners), NOT_ATTRIBUTED]
    lines: list[tuple[datetime, str, float]] = []
    for time, share in zip(history.times, history.share[:, row].tolist(), strict=True):
        if np.isnan(share):
            continue
        parts = dict.fromkeys(names, 0.0)
        for name, start, part in owners:
            if start is None or start < time:
                parts[name] += part
        estimated = sum(parts.values())
        scale = min(1.0, share / estimated) if estimated > 0 else 0.0
        parts = {name: part * scale for name, part in parts.items()}
        parts[NOT_ATTRIBUTED] = max(share - sum(parts.values()), 0.0)
        lines += [(time, name, part) for name, part in parts.items()]
    return pd.DataFrame(
        {
            "time": in_utc(time for time, _, _ in lines),
            "owner": [name for _, name, _ in lines],
            "share": [part for _, _, part in lines],
        }
    )


def _owners(
    live: Live | None, row: int, viewer: Viewer, iterations_per_second: float
) -> list[tuple[str, datetime | None, float]]:
    """Return name, start and estimated share of the jobs on a link; hidden ones share a name."""
    if live is None or np.isnan(iterations_per_second):
        return []
    capacity = float(live.fabric.links.capacity[row])
    found = []
    for number, user in enumerate(live.shared.links([row])[0].users):
        if not viewer.sees(user.user):
            name = OTHERS
        else:
            name = f"job {user.job}" if number < MOST_OWNERS else OTHER_JOBS
        start = live.job(user.job).stored.job.started_at
        found.append((name, start, iterations_per_second * user.bytes / capacity))
    return found


def events_table(history: DeviceHistory) -> pd.DataFrame:
    """Return the changes of a device, newest first: ``time (UTC)`` and ``what changed``."""
    texts = []
    for event in history.events:
        if event.kind == RENAMED:
            texts.append(f"renamed to {event.peer}")
            continue
        near = f"port {event.port}: " if event.port >= 0 else ""
        far = f"{event.peer}:{event.peer_port}" if event.peer_port >= 0 else event.peer
        texts.append(f"{near}cable to {far} {event.kind}")
    return pd.DataFrame({"time (UTC)": in_utc(event.at for event in history.events), "what changed": texts})


def _reverse(fabric: Fabric, vertex: int, rows: Longs) -> Longs:
    """Return the other direction of each link that leaves a device; -1 if there is none."""
    links = fabric.links
    arriving = np.flatnonzero(links.target == vertex)
    far = (links.source, links.source_port, links.source_adapter)
    near = (links.target, links.target_port, links.target_adapter)
    known = {
        tuple(ends): row
        for row, ends in zip(
            arriving.tolist(), np.stack([c[arriving] for c in (*near, *far)], axis=1).tolist(), strict=True
        )
    }
    wanted = np.stack([c[rows] for c in (*far, *near)], axis=1).tolist()
    return np.asarray([known.get(tuple(ends), -1) for ends in wanted], np.int64)


def _taken(values: Floats, rows: Longs) -> Floats:
    """Return the values of some links; NaN for -1."""
    found: Floats = np.append(values, np.nan)[rows]
    return found


OWNERS = {
    LIGHT: ("#0b6e8f", "#e0a028", "#7b4fa3", "#2f8f5b", "#c2566b", "#5b6b7d", "#8a6d3b"),
    DARK: ("#4cc3ea", "#f3c04a", "#b892e0", "#6fd39b", "#f08fa0", "#a9b8c9", "#cfae78"),
}
"""Colours of owners and of counters, in the order of the legend."""
REST = {LIGHT: "#b3b9c4", DARK: "#5f6775"}
MARK = "#c2410c"
"""Colour of marks of changes, which is seen on light and dark pages."""
HEIGHT = 250
SMALL_WIDTH, SMALL_HEIGHT = 64, 36
"""Size of a line beside a number."""
_AXIS = alt.Axis(title=None, tickCount=4, format="%H:%M", labelOverlap=True, grid=False)
_TIME = alt.Tooltip("time:T", title="until (UTC)", format="%Y-%m-%d %H:%M", formatType="utc")


def _legend(theme: str) -> alt.Legend:
    """Return a flat legend below a narrow chart."""
    return alt.Legend(
        orient="bottom", title=None, columns=2, labelColor=INK[theme], offset=4, padding=0, rowPadding=1
    )


def sparkline(times: Sequence[datetime], shares: Floats, title: str, theme: str) -> alt.Chart:
    """Return a small line of utilisation over time, without axes.

    Args:
        shares (float64[k]): NaN where nothing is known.
    """
    rows = pd.DataFrame({"time": in_utc(times), "share": shares}).dropna()
    chart: alt.Chart = (
        alt.Chart(rows, description=f"{title} over time", width=SMALL_WIDTH, height=SMALL_HEIGHT, padding=0)
        .mark_line(color=OWNERS[theme][0], point={"size": 8, "color": OWNERS[theme][0]})
        .encode(
            x=alt.X("time:T", scale=alt.Scale(type="utc"), axis=None),
            y=alt.Y("share:Q", axis=None, scale=alt.Scale(domainMin=0)),
            tooltip=[_TIME, alt.Tooltip("share:Q", format=".3p", title="of capacity")],
        )
        .configure_view(strokeWidth=0)
    )
    return chart


def utilisation(rows: pd.DataFrame, title: str, theme: str) -> alt.Chart:
    """Return a stacked chart of the utilisation of a link over time.

    Args:
        rows: Result of `dashboard.pages.fabric_device.owners_over_time`.
    """
    owners = list(dict.fromkeys(rows["owner"]))
    colours = [
        REST[theme] if owner == NOT_ATTRIBUTED else OWNERS[theme][number % len(OWNERS[theme])]
        for number, owner in enumerate(owners)
    ]
    chart: alt.Chart = (
        alt.Chart(rows, title=title, description=f"{title}: the owners of the traffic, stacked, over time")
        .mark_area(interpolate="step-before", line=False)
        .encode(
            x=alt.X("time:T", scale=alt.Scale(type="utc"), axis=_AXIS),
            y=alt.Y("share:Q", title=None, stack="zero", axis=alt.Axis(format=".0%", tickCount=4)),
            color=alt.Color(
                "owner:N",
                scale=alt.Scale(domain=owners, range=colours),
                legend=_legend(theme),
            ),
            order=alt.Order("number:Q"),
            tooltip=[_TIME, "owner:N", alt.Tooltip("share:Q", format=".3p", title="of capacity")],
        )
        .transform_calculate(number=f"indexof({owners!r}, datum.owner)")
        .properties(height=HEIGHT, width="container")
    )
    return chart


def new_errors_chart(rows: pd.DataFrame, title: str, theme: str) -> alt.Chart:
    """Return a stacked chart of new errors over time.

    Args:
        rows: Result of `dashboard.pages.fabric_device.new_errors`.
    """
    counters = list(dict.fromkeys(rows["counter"]))
    colours = [OWNERS[theme][number % len(OWNERS[theme])] for number in range(len(counters))]
    chart: alt.Chart = (
        alt.Chart(rows, title=title, description=f"{title}: errors by counter, stacked, over time")
        .mark_bar(width=6)
        .encode(
            x=alt.X("time:T", scale=alt.Scale(type="utc", padding=8), axis=_AXIS),
            y=alt.Y("errors:Q", title=None, axis=alt.Axis(tickMinStep=1, tickCount=4, format="~s")),
            color=alt.Color(
                "counter:N",
                scale=alt.Scale(domain=counters, range=colours),
                legend=_legend(theme),
            ),
            tooltip=[_TIME, "counter:N", alt.Tooltip("errors:Q", format=",")],
        )
        .properties(height=HEIGHT, width="container")
    )
    return chart


def change_marks(places: Sequence[int], texts: Sequence[str]) -> alt.Chart:
    """Return marks above a slider, at the stops at which something changed.

    Args:
        places: Numbers of these stops.
        texts: Text of every stop of the slider.
    """
    rows = pd.DataFrame({"place": list(places), "what": [texts[place] for place in places]})
    about = f"Marks of {len(rows)} changes above the time slider"
    scale = alt.Scale(domain=[0, max(len(texts) - 1, 1)], nice=False)
    chart: alt.Chart = (
        alt.Chart(rows, description=about, padding={"left": 8, "right": 8, "top": 0, "bottom": 0})
        .mark_point(shape="triangle-down", filled=True, size=70, opacity=1, color=MARK)
        .encode(x=alt.X("place:Q", axis=None, scale=scale), tooltip=alt.Tooltip("what:N", title="changed"))
        .properties(width="container", height=14)
        .configure_view(strokeWidth=0)
    )
    return chart


PAIRS = 50
"""Maximum number of listed pairs of ranks."""
ROWS, ROWS_HEIGHT = 6, 248
"""Maximum number of rows that a table of counters shows at once, and its height in pixels if it has more."""
LINK_TABS = {"load": "Load", "ranks": "Ranks", "errors": "Errors"}


def draw_link(
    registry: Registry, site: Site, view: FabricView, counters: CounterHistory | None, row: int
) -> None:
    """Draw what is known of a link."""
    fabric = view.fabric
    st.header(plain(short_link(fabric, row)), anchor=False, help=plain(link_text(fabric, row)))
    back = reverse_rows(fabric, np.array([row])).tolist()[:1]
    with st.container(horizontal=True, gap="small"):
        for vertex in (int(fabric.links.source[row]), int(fabric.links.target[row])):
            name = plain(short_name(fabric.names[vertex]))
            pick_button(name, fabric, Item(vertex=vertex), key=f"end {vertex}", type="tertiary")
        for other in back:
            icon = ":material/swap_horiz:"
            pick_button(
                "Other direction", fabric, Item(link=other), key="reverse", type="tertiary", icon=icon
            )
        close(view)
    with tabbed("show", LINK_TABS) as tab:
        if tab == "load":
            _load(site, view, counters, row)
        elif tab == "ranks":
            _ranks(registry, site, view, row)
        elif counters is None:
            st.caption("No counters are known.")
        else:
            ports = [link_text(fabric, end) for end in (row, *back)]
            errors(registry, site, view, counters, counters.ports_of_links([row, *back]), ports)


def close(view: FabricView) -> None:
    """Draw a button that clears the selection."""
    pick_button("Close", view.fabric, None, key="clear pick", type="tertiary", icon=":material/close:")


def _load(site: Site, view: FabricView, counters: CounterHistory | None, row: int) -> None:
    """Draw measured and estimated load of a link, over time, and the jobs that cause it."""
    links = view.fabric.links
    first, second = st.columns(2, gap="small")
    measured = None if view.share is None or np.isnan(view.share[row]) else float(view.share[row])
    first.metric(
        "Measured", "unknown" if measured is None else f"{100 * measured:.3g} %", help=_rate_text(view, row)
    )
    estimated = view.estimated_share
    if estimated is not None:
        about = "Rates of all jobs, by their times per iteration, over the capacity."
        second.metric("Estimated", f"{100 * float(estimated[row]):.3g} %", help=about)
    elif view.seconds is not None:
        seconds = units.short(float(view.seconds[row]), units.SECONDS)
        second.metric("Estimated", seconds, help="Time of all jobs' bytes of one iteration on this link.")
    kind = "between switches" if view.fabric.network_link[row] else "host cable"
    st.caption(plain(f"{units.short(float(links.capacity[row]), units.RATE)}, {kind}"))
    if counters is not None and len(counters.times):
        against = view.against
        scale = float("nan") if against is None else against.iterations_per_second
        rows = owners_over_time(counters, view.live, row, site.viewer, scale)
        if rows.empty:
            st.caption("Not measured in the chosen time range.")
        else:
            chart = utilisation(rows, "Utilisation by job (UTC)", theme_of(st.context.theme.type))
            st.altair_chart(chart, key="utilisation")
            with st.popover("Table", width="stretch"):
                st.dataframe(rows, hide_index=True, column_config={"share": share_bar()}, key="owners")
    if view.live is not None:
        users = users_of_link(view.live, row, site.viewer)
        if users.empty:
            st.caption("No running job is known to load this direction.")
            return
        st.dataframe(
            in_units(users, {"bytes": units.BYTES}),
            hide_index=True,
            column_config={"part": share_bar()},
            column_order=("job", "user", "part"),
            height="content",
            key="users",
        )


def _rate_text(view: FabricView, row: int) -> str | None:
    """Return the measured rate of a link with its period, or None."""
    if view.rates is None or np.isnan(view.rates.share[row]):
        return None
    rate = units.short(float(view.rates.bytes_per_second[row]), units.RATE)
    return plain(f"{rate} from {units.moment_text(view.rates.start)} to {units.moment_text(view.rates.end)}")


def _ranks(registry: Registry, site: Site, view: FabricView, row: int) -> None:
    """Draw the pairs of ranks of a job, or of the shown placement, that load a link."""
    if view.opened is not None:
        try:
            found = pairs_of_placement(view.opened, row, PAIRS)
        except AlmanacError as error:
            show_error(error)
            return
        if found is None:
            st.info("The profile of this placement is not known.")
            return
        _pairs(pairs_table(view.fabric, view.opened.stored.placement, found), found.pairs)
        return
    assert view.live is not None
    users = users_of_link(view.live, row, site.viewer)
    jobs = [job for job in users["job"] if job != OTHERS]
    if not jobs:
        st.caption("No running job is known to load this direction.")
        return
    if st.query_params.get("load") not in (None, *jobs):
        st.query_params.pop("load")
    job = choose("Ranks of job", "load", jobs) or jobs[0]
    try:
        pairs = cached_rank_pairs(registry, view.cluster, view.live, job, row, PAIRS)
    except AlmanacError as error:
        show_error(error)
        return
    placement = view.live.placements[view.live.shared.index(job)]
    _pairs(pairs_table(view.fabric, placement, pairs), pairs.pairs)
    job_link(site.jobs, view.cluster.name, job)


def _pairs(table: pd.DataFrame, count: int) -> None:
    largest = f", the {len(table)} largest:" if count > len(table) else ":"
    st.caption(f"{units.counted(count, 'pair')} of ranks load it{largest}")
    shown = in_units(table, {"bytes": units.BYTES})
    st.dataframe(shown, hide_index=True, column_config={"part": share_bar()}, height=240, key="pairs")


def errors(
    registry: Registry,
    site: Site,
    view: FabricView,
    counters: CounterHistory,
    ports: Longs,
    names: list[str],
) -> None:
    """Draw findings, and the growth of the counters of some ports, in total and over time.

    Args:
        ports: Rows of ``counters.errors``.
        names: Names of the device, or of both ports of the link, that the findings are about.
    """
    found = cached_fabric_findings(
        registry, view.cluster, view.snapshot, view.snapshot.id, view.time, site.limits, counters
    )
    about = findings_about(found, names)
    for one in about:
        _finding(one)
    if not about:
        badge(State.OK, "no findings")
    grown = counters.growth(ports)
    if not grown:
        st.caption("Its error counters were not read in the chosen time range.")
        return
    table = growth_table(grown)
    st.dataframe(
        table,
        hide_index=True,
        column_config={"per hour": compact_number()},
        height="content" if len(table) <= ROWS else ROWS_HEIGHT,
        key="growth",
    )
    rows = new_errors(counters, ports)
    if not rows.empty:
        chart = new_errors_chart(rows, "New errors (UTC)", theme_of(st.context.theme.type))
        st.altair_chart(chart, key="new errors")
        with st.popover("Table", width="stretch"):
            st.dataframe(rows, hide_index=True, key="new errors table")


def _finding(finding: Finding) -> None:
    """Draw a finding with its severity."""
    state = {Severity.ERROR: State.ACT, Severity.WARNING: State.LOOK}.get(finding.severity, State.UNKNOWN)
    badge(state, f"{finding.severity}: {finding.heading}")
    st.caption(plain(finding.text))


TABS = {"ports": "Ports", "jobs": "Jobs", "errors": "Errors", "history": "History"}
TALL = 420
"""Height of long tables in pixels."""


def draw(
    registry: Registry, site: Site, view: FabricView, counters: CounterHistory | None, vertex: int
) -> None:
    """Draw what is known of a switch or host."""
    fabric = view.fabric
    name, host = fabric.names[vertex], fabric.kind[vertex] == HOST
    with st.container(horizontal=True, vertical_alignment="top"):
        short = short_name(name)
        st.header(plain(short), anchor=False, help=plain(name) if short != name else None)
        close(view)
    cables = int(fabric.links.cables[fabric.links.source == vertex].sum())
    guid = int(fabric.guid[vertex])
    facts = [
        "host" if host else "switch",
        units.counted(cables, "cable"),
        format_guid(guid) if guid else "",
    ]
    st.caption(plain(" · ".join(fact for fact in facts if fact)))
    with tabbed("show", TABS) as tab:
        if tab == "ports":
            _ports(view, counters, vertex)
        elif tab == "jobs":
            _jobs(site, view, vertex)
        elif tab == "history":
            _history(registry, view, vertex)
        elif counters is None:
            st.caption("No counters are known.")
        else:
            errors(registry, site, view, counters, counters.ports_of_device(name), [name])


def _ports(view: FabricView, counters: CounterHistory | None, vertex: int) -> None:
    """Draw the ports with their neighbours; a neighbour's name is a button that opens the link to it."""
    rows, table = device_ports(
        view.fabric,
        vertex,
        share=view.share,
        seconds=view.seconds,
        excess=None if counters is None else counters.excess,
    )
    if table.empty:
        st.caption("It has no cables.")
        return
    if "time" in table:
        table = in_units(table, {"time": units.SECONDS})

    def opened(row: int) -> None:
        picking.pick(view.fabric, Item(link=int(rows[row])))

    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "port": st.column_config.TextColumn(width=45),
            "to": opening_column(opened, rows.size, key="neighbour of the table", width=150),
            "use": st.column_config.NumberColumn(width=50, format="percent"),
        },
        height="content" if len(table) <= 11 else TALL,
        key="ports",
    )
    options = dict(zip(rows.tolist(), table["port"] + " → " + table["to"], strict=True))
    st.selectbox(
        "Open a port's link",
        list(options),
        index=None,
        format_func=options.__getitem__,
        key="port to open",
        placeholder="port",
        label_visibility="collapsed",
        on_change=lambda: picking.pick(view.fabric, Item(link=st.session_state["port to open"])),
    )


def _jobs(site: Site, view: FabricView, vertex: int) -> None:
    """Draw the running jobs on a host, or on the hosts below a switch."""
    if view.live is None:
        st.caption("The page shows one placement, not the running jobs.")
        return
    below = hosts_below(view.fabric, tiers(view.fabric), vertex)
    jobs = jobs_on_hosts(view.live, below, site.viewer)
    if jobs.empty:
        st.caption("No running job has hosts here.")
        return
    if view.fabric.kind[vertex] != HOST:
        st.caption(f"{units.counted(len(below), 'host')} below this switch")
    st.dataframe(jobs, hide_index=True, height="content" if len(jobs) <= 8 else 320, key="jobs below")
    for job in jobs["job"].tolist()[:4]:
        job_link(site.jobs, view.cluster.name, job)


def _history(registry: Registry, view: FabricView, vertex: int) -> None:
    """Draw when the cables and the name of a device changed."""
    name = view.fabric.names[vertex]
    found = cached_device_history(registry, view.cluster, view.fabric, vertex, name)
    if found.first_at is not None:
        st.caption(plain(f"First seen: {units.moment_text(found.first_at)}"))
    if not found.events:
        st.caption("Its cables and its name never changed.")
        return
    table = events_table(found)
    st.dataframe(table, hide_index=True, height="content" if len(table) <= 11 else TALL, key="device history")
