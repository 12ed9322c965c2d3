"""The selected link of the fabric page: utilisation over time, owners, ranks, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.components.fabric_map import Item
from dashboard.figures import over_time
from dashboard.figures.style import theme_of
from dashboard.queries.fabric import FabricView, cached_fabric_findings
from dashboard.queries.traffic import cached_rank_pairs, pairs_of_placement
from dashboard.state.site import Site
from dashboard.state.viewer import OTHERS
from dashboard.tables.columns import in_units
from dashboard.tables.ports import findings_about, growth_table, new_errors, owners_over_time
from dashboard.tables.sharing import pairs_table, users_of_link
from dashboard.views.picking import pick_button
from dashboard.widgets.controls import choose, tabbed
from dashboard.widgets.messages import plain, show_error
from dashboard.widgets.navigation import job_link
from dashboard.widgets.states import State, badge
from dashboard.widgets.tables import compact_number, share_bar
from mapping.checks.finding import Finding, Severity
from mapping.traffic.names import link_text, reverse_rows, short_link, short_name
from mapping.traffic.ports import CounterHistory
from registry import units
from registry.errors import AlmanacError
from registry.model import Longs
from registry.registry import Registry

PAIRS = 50
"""Maximum number of listed pairs of ranks."""
ROWS, ROWS_HEIGHT = 6, 248
"""Maximum number of rows that a table of counters shows at once, and its height in pixels if it has more."""
TABS = {"load": "Load", "ranks": "Ranks", "errors": "Errors"}


def draw(registry: Registry, site: Site, view: FabricView, counters: CounterHistory | None, row: int) -> None:
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
    with tabbed("show", TABS) as tab:
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
            chart = over_time.utilisation(rows, "Utilisation by job (UTC)", theme_of(st.context.theme.type))
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

    Parameters
    ----------
    ports : int64
        Rows of ``counters.errors``.
    names : list of str
        Names of the device, or of both ports of the link, that the findings are about.
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
        chart = over_time.new_errors(rows, "New errors (UTC)", theme_of(st.context.theme.type))
        st.altair_chart(chart, key="new errors")
        with st.popover("Table", width="stretch"):
            st.dataframe(rows, hide_index=True, key="new errors table")


def _finding(finding: Finding) -> None:
    """Draw a finding with its severity."""
    state = {Severity.ERROR: State.ACT, Severity.WARNING: State.LOOK}.get(finding.severity, State.UNKNOWN)
    badge(state, f"{finding.severity}: {finding.heading}")
    st.caption(plain(finding.text))
