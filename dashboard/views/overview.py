"""The overview: all clusters, and busy links, badly placed jobs, changes and findings of one of them."""

from __future__ import annotations

from datetime import UTC, datetime
from shlex import quote

import pandas as pd
import streamlit as st

from dashboard.queries.overview import Overview, cached_findings, overview
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.links import LOADS
from dashboard.tables.overview import (
    changes_lines,
    clusters_table,
    findings_table,
    gains_table,
    measured_links,
    predicted_links,
)
from dashboard.tables.status import sources_table
from dashboard.widgets.controls import choose
from dashboard.widgets.messages import CONVENTION, plain, show_empty, show_no_fabric, show_unknown
from dashboard.widgets.navigation import Row, link_to, linked_rows
from dashboard.widgets.tables import csv_text, download
from mapping.checks.finding import Finding, Severity
from mapping.service.live import Live
from mapping.traffic.device_names import link_text as link_name
from registry import units
from registry.errors import UnknownName
from registry.fabrics.changes import summary
from registry.ingest_runs.runs import FRESH, age_text, freshness
from registry.registry import Registry

SHOWN = 6
"""Rows of a list with links to other pages."""
LISTED = 50
"""Maximum rows of a table."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Overview")
    try:
        view = overview(registry, st.query_params.get("cluster"), datetime.now(UTC))
    except UnknownName as error:
        show_unknown(error, "cluster")
        return
    if view.live is None:
        show_no_fabric()
        return
    _clusters(view)
    _measured(view, view.live, site)
    _estimated(view.live, site)
    left, right = st.columns(2, gap="large")
    with left:
        _gains(view, view.live, site)
    with right:
        _changes(view, site)
    findings = st.container()
    _sources(view, site)
    with findings:
        _findings(cached_findings(view))


def _clusters(view: Overview) -> None:
    """Draw the table of clusters, and the choice of the cluster for the rest of the page."""
    known = view.clusters.clusters
    if len(known) > 1:
        table = clusters_table(view.clusters, view.now)
        st.dataframe(table, hide_index=True, key="clusters", height="content")
    left, right = st.columns([2, 5], vertical_alignment="bottom")
    with left:
        cluster = choose("Cluster", "cluster", list(known), default=view.clusters.cluster) or ""
    info = known[cluster]
    seen = f"last seen {age_text(view.now - info.last_observed_at)} ago"
    right.text(f"{info.hosts:,} hosts, {info.switches:,} switches, {info.cables:,} cables; {seen}")


def _measured(view: Overview, live: Live, site: Site) -> None:
    """Draw the links with the highest measured utilisation."""
    st.subheader("Busiest links (measured)")
    if view.rates is None:
        show_empty(
            "Fewer than two sweeps of port counters were ingested for this cluster. Ingest them regularly:",
            f"almanac ingest --cluster {quote(live.running.snapshot.cluster)} COUNTERS",
        )
        return
    table = measured_links(live.fabric, view.rates, LISTED)
    span = f"{units.moment_text(view.rates.start)} to {units.moment_text(view.rates.end)}"
    st.caption(f"Mean from {plain(span)}, for each direction of a cable.")
    rows = [
        Row(
            str(row["link"]),
            (
                f"{100 * row['share']:.1f}",
                *(units.text(float(row[name]), units.RATE) for name in ("rate", "peak", "capacity")),
            ),
            _link(live, int(row["row"]), "measured"),
        )
        for _, row in table.head(SHOWN).iterrows()
    ]
    heads = ("Link", "Utilisation (%)", "Mean rate", "Peak rate", "Capacity")
    linked_rows(site.fabric, heads, (6.4, 1.2, 1.1, 1.1, 1.1), rows)
    bases = {"rate": units.RATE, "peak": units.RATE, "capacity": units.RATE}
    _whole(in_units(table.drop(columns="row"), bases), "busiest links measured")


def _estimated(live: Live, site: Site) -> None:
    """Draw the links with the longest estimated time, and whose traffic they carry."""
    st.subheader("Busiest links (estimated)")
    links = live.shared.hottest(LISTED)
    cluster = live.running.snapshot.cluster
    if not links:
        _no_traffic(live)
        return
    st.caption(f"{CONVENTION} {len(live.shared.jobs):,} jobs, routes: {plain(live.routing)}.")
    table = predicted_links(live.fabric, links, site.viewer)
    rows = [
        Row(
            str(row["link"]),
            (units.text(float(row["time"]), units.SECONDS), str(row["whose traffic"])),
            _link(live, int(row["row"]), "predicted"),
        )
        for _, row in table.head(SHOWN).iterrows()
    ]
    linked_rows(site.fabric, ("Link", "Time per period", "Traffic of"), (6.2, 1.3, 3.7), rows)
    bases = {"time": units.SECONDS, **LOADS}
    _whole(in_units(table.drop(columns="row"), bases), "busiest links estimated")
    link_to(site.interference, "Shared links", cluster=cluster)


def _no_traffic(live: Live) -> None:
    """Explain why no traffic is known, with the command that changes it."""
    cluster = live.running.snapshot.cluster
    if live.without_profile:
        job = live.without_profile[0].stored.job.id
        show_empty(
            f"{_count(len(live.without_profile), 'running job')} without communication profile. Attach one:",
            f"almanac job attach {quote(job)} PROFILE --cluster {quote(cluster)}",
        )
    elif live.running.jobs:
        st.info("The running jobs send nothing between hosts.")
    else:
        show_empty(
            "No job is running. Ingest the jobs of the scheduler:",
            f"almanac ingest --cluster {quote(cluster)} JOBS",
        )


def _gains(view: Overview, live: Live, site: Site) -> None:
    """Draw the running jobs that would gain most from another placement."""
    st.subheader("Best candidates to move")
    table = gains_table(live.running.jobs, view.now, site.viewer)
    cluster = live.running.snapshot.cluster
    if table.empty:
        looked = [job for job in live.running.jobs if job.advice is not None]
        if looked:
            st.info(f"No better placement was found for the {_count(len(looked), 'job')} examined.")
        elif live.running.jobs:
            show_empty(
                "No running job was examined yet. Do so, by hand or from cron:",
                f"almanac advise jobs {quote(cluster)}",
            )
        else:
            st.info("No job is running.")
        return
    st.caption(
        "Gain: present time of the worst link over that of a better placement, with other jobs' traffic."
    )
    rows = [
        Row(
            " · ".join(part for part in (row["job"], row["application"], row["user"]) if part),
            (f"{row['gain']:.2f} ×", f"{row['ranks to move']:,}"),
            {"job": str(row["key"])},
        )
        for _, row in table.head(SHOWN).iterrows()
    ]
    linked_rows(site.job, ("Job", "Gain", "Ranks to move"), (5, 1.2, 1.8), rows)
    shown = table.drop(columns="key").head(LISTED)
    _whole(in_units(shown, {"now": units.SECONDS, "then": units.SECONDS}), "possible gains")
    link_to(site.jobs, "All jobs with a possible gain", cluster=cluster, gain="1.05")


def _changes(view: Overview, site: Site) -> None:
    """List what changed in the wiring and the forwarding tables within a day."""
    st.subheader("Changes in 24 hours")
    assert view.clusters.cluster is not None
    if view.changes is None or view.clusters.before is None:
        st.info("This cluster was first seen within the last 24 hours.")
        return
    lines = changes_lines(view.changes, view.rerouted)
    if not lines:
        st.info("No changes in the last 24 hours.")
        return
    if not view.changes.empty:
        st.caption(plain(summary(view.changes)))
    more = [f"and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
    st.text("\n".join([*lines[:SHOWN], *more]))
    link_to(
        site.changes,
        "All changes, as text and on the map",
        cluster=view.clusters.cluster,
        **{"from": view.clusters.before.observed_at.isoformat()},
    )


def _sources(view: Overview, site: Site) -> None:
    """Draw the table of data sources, stale and failing ones first."""
    st.subheader("Age of data sources")
    mine = [source for source in view.clusters.sources if source.cluster in ("", view.clusters.cluster)]
    bad = [source for source in mine if freshness(source, view.now).state != FRESH]
    table = sources_table(mine, view.now, site.viewer)
    st.dataframe(table, hide_index=True, key="sources", height="content")
    label = f"Runs and failures: {_count(len(bad), 'stale source')}" if bad else "Runs and failures"
    link_to(site.ingest, label)


def _findings(found: tuple[Finding, ...]) -> None:
    """Draw the findings of the checks; last, since they take longest on a fabric seen for the first time."""
    st.subheader("Findings of checks")
    if not found:
        st.success("The checks found no problem.", icon=":material/check:")
        return
    counts = {severity: sum(one.severity == severity for one in found) for severity in reversed(Severity)}
    st.text(", ".join(_count(count, str(severity)) for severity, count in counts.items() if count))
    table = findings_table(found)
    wide = {"what": st.column_config.TextColumn(width="large")}
    rows = min(len(table), SHOWN) + 1
    st.dataframe(table, hide_index=True, column_config=wide, key="findings", height=35 * rows + 3)


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _whole(table: pd.DataFrame, what: str) -> None:
    """Draw the complete table of a list, and its download."""
    with st.expander(f"Table of all {len(table):,}"):
        st.dataframe(table, hide_index=True, key=what)
        download("Download as CSV", csv_text(table), f"{what.replace(' ', '-')}.csv", key=f"{what} csv")


def _link(live: Live, row: int, colour: str) -> dict[str, str]:
    """Return the address parameters that show a link on the fabric page."""
    cluster = live.running.snapshot.cluster
    return {"cluster": cluster, "colour": colour, "link": link_name(live.fabric, row)}
