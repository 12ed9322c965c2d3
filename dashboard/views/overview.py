"""The overview: the state of a cluster on one screen, also for a wall display."""

from __future__ import annotations

from datetime import timedelta
from shlex import quote

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.components.fabric_map import fabric_map
from dashboard.figures import colouring, over_time
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.figures.style import theme_of
from dashboard.queries import door
from dashboard.queries.caching import drawing
from dashboard.queries.overview import (
    Overview,
    cached_findings,
    cached_overview,
    recent_counters,
    recent_regressions,
)
from dashboard.state.site import Site
from dashboard.tables.overview import (
    Event,
    busiest_links,
    changes_lines,
    events,
    health,
    jobs_to_act,
)
from dashboard.widgets.bar import time_range
from dashboard.widgets.cards import card, number, unknown
from dashboard.widgets.messages import CONVENTION, plain, show_unknown
from dashboard.widgets.navigation import Mark, Row, Share, linked_rows
from dashboard.widgets.states import State, badge
from mapping.checks.finding import Finding, Severity
from mapping.questions.live import Live, utilisation
from mapping.traffic.ports import CounterHistory
from registry import units
from registry.errors import UnknownName
from registry.model import Floats
from registry.registry import Registry
from registry.store.ingest_runs import FRESH, SourceState, age_text, freshness

JOB_SOURCES = ("slurm-s", "slurm-json", "pbs", "lsf", "flux")
"""Beginnings of the formats that hold jobs."""
SHOWN = 9
"""Largest number of links."""
JOBS, EVENTS = 7, 6
"""Largest number of jobs and of events."""
UPPER, LOWER = 332, 232
"""Heights of the two rows of cards, in pixels: all fit into a window of 1280 x 800."""
STYLE = """<style>
@media (max-width: 1000px) {
  :is(.st-key-upper-cards, .st-key-lower-cards) > * > .stHorizontalBlock > .stColumn { min-width: 100% }
  .st-key-number-cards > * > .stHorizontalBlock > .stColumn { min-width: 30% }
  :is(.st-key-upper-cards, .st-key-lower-cards, .st-key-number-cards) > * > .stHorizontalBlock {
    flex-wrap: wrap;
  }
}
</style>"""
"""Style that puts the cards below each other in a narrow window, whose content they would cut off."""
AGES = 100
"""Width of the ages of events, in pixels."""
MAP = 168
"""Height of the map in its card."""
STATES = {
    None: State.OK,
    Severity.NOTE: State.UNKNOWN,
    Severity.WARNING: State.LOOK,
    Severity.ERROR: State.ACT,
}
"""State of a page for the worst severity of its findings."""
STEPS = (
    ("1. Scan", "almanac ingest SCAN --cluster NAME", "Output of ibnetdiscover, or another scan."),
    ("2. Jobs", "scontrol show jobs -d | almanac ingest --cluster NAME -", "From cron, to stay new."),
    ("3. Profiles", "almanac job attach JOB PROFILE --cluster NAME", "Who sends how much to whom."),
    ("Or an example", "almanac demo", "A real fabric with jobs, counters and profiles."),
)
"""What fills an empty registry: title, command and explanation."""
GAIN_ABOUT = "Time of a job's worst link now over that with the better placement, with other jobs' traffic."
GAIN_SHOWN = 5.0
"""Gain whose bar is full."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    try:
        view = cached_overview(registry, st.query_params.get("cluster"))
    except UnknownName as error:
        show_unknown(error, "cluster")
        return
    if view.live is None:
        _empty()
        return
    st.html(STYLE)
    checked, peak = _numbers(view, view.live, site)
    share = utilisation(view.live, None) if view.rates is None else view.rates.share
    left, right = st.container(key="upper cards").columns(2)
    with left:
        _map(registry, view, view.live, share)
    with right:
        _links(view.live, share, site)
    left, right = st.container(key="lower cards").columns(2)
    with left:
        _jobs(view.live, site)
    # last: a fabric seen for the first time takes longest here
    findings = cached_findings(registry, view, site.limits)
    with peak:
        _peak(view, view.live, recent_counters(registry, view, time_range(), site.limits), site)
    with checked:
        _health(findings)
    with right:
        _events(registry, view, findings, site)


def _empty() -> None:
    """Show how to fill an empty registry: three steps, or the demonstration."""
    st.info("The registry holds no fabric yet: three steps fill it, or one command loads an example.")
    for column, (title, command, about) in zip(st.columns(len(STEPS)), STEPS, strict=True):
        with column, card(title):
            st.caption(about)
            st.code(command, language=None, wrap_lines=True)


def _numbers(view: Overview, live: Live, site: Site) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draw the row of numbers, and return the places for the first two."""
    columns = st.container(key="number cards").columns(5)
    with columns[2]:
        _running(view, live)
    with columns[3]:
        _gain(live, live.running.snapshot.cluster, site)
    with columns[4]:
        _age(view)
    return columns[0], columns[1]


def _health(findings: tuple[Finding, ...]) -> None:
    severity, words = health(findings)
    value = f"{sum(one.severity == severity for one in findings):,}" if findings else "OK"
    about = "Findings of `almanac cluster check` on the latest fabric."
    number("Fabric health", value, help=about, note=words, state=STATES[severity])


def _peak(view: Overview, live: Live, history: CounterHistory | None, site: Site) -> None:
    """Draw the utilisation of the busiest link, now and over time."""
    label = "Peak link"
    if view.rates is None:
        command = f"almanac ingest --cluster {quote(live.running.snapshot.cluster)} COUNTERS"
        unknown(label, command, help="At least two sweeps of port counters are needed.")
        return
    top = busiest_links(live.shared, view.rates.share, 1, site.viewer)
    value = f"{100 * top[0].part:.3g} %" if top else "0 %"
    since, until = units.moment_text(view.rates.start), units.moment_text(view.rates.end)
    about = f"Measured utilisation of the busiest link, mean from {since} to {until}."
    note = top[0].short if top else "no traffic"
    chart = None
    if history is not None and top:
        chart = over_time.sparkline(
            history.times, history.share[:, top[0].row], top[0].short, theme_of(st.context.theme.type)
        )
    number(label, value, help=about, note=note, chart=chart)


def _running(view: Overview, live: Live) -> None:
    """Draw the number of running jobs, and of those whose traffic is known."""
    cluster, jobs = live.running.snapshot.cluster, live.running.jobs
    if not jobs and not any(source.format.startswith(JOB_SOURCES) for source in _mine(view)):
        unknown("Running jobs", f"almanac ingest --cluster {quote(cluster)} JOBS")
        return
    without = len(live.without_profile) + len(live.unloaded)
    note = f"{len(live.shared):,} with known traffic" + (f", {without:,} without" if without else "")
    number("Running jobs", f"{len(jobs):,}", help=CONVENTION, note=note)


def _gain(live: Live, cluster: str, site: Site) -> None:
    """Draw the largest gain that a search found for a running job."""
    listed = jobs_to_act(live.running.jobs, site.viewer)
    searched = [one for one in listed if one.gain is not None]
    if not searched:
        if listed:
            unknown("Best possible gain", f"almanac advise jobs {quote(cluster)}", help=GAIN_ABOUT)
        else:
            number("Best possible gain", "none", help=GAIN_ABOUT, note="no job is running")
        return
    best = searched[0]
    if best.gain is None or best.gain <= 1:
        number("Best possible gain", "none", help=GAIN_ABOUT, note="no better placement found")
        return
    note = f"job {best.key.rpartition('/')[2]}, moves {units.counted(best.moves, 'rank')}"
    number("Best possible gain", f"{best.gain:.3g} ×", help=GAIN_ABOUT, note=note)


def _mine(view: Overview) -> list[SourceState]:
    """Return the sources of the chosen cluster and those without a cluster."""
    return [source for source in view.clusters.sources if source.cluster in ("", view.clusters.cluster)]


def _age(view: Overview) -> None:
    """Draw the age of the newest data, and the state of the sources."""
    mine = [source for source in _mine(view) if source.cluster]
    ages = sorted((age, source.format) for source in mine if (age := source.age(view.now)) is not None)
    bad = [source for source in mine if freshness(source, view.now).state != FRESH]
    lines = "\n".join(f"- {plain(name)}: {age_text(age)}" for age, name in ages)
    state, words = (
        (State.LOOK, units.counted(len(bad), "stale source")) if bad else (State.OK, "all sources fresh")
    )
    newest = age_text(ages[0][0]) if ages else age_text(timedelta())
    number("Age of data", newest, help=f"Since the observation:\n\n{lines}", note=words, state=state)


def _map(registry: Registry, view: Overview, live: Live, share: Floats | None) -> None:
    """Draw the fabric, coloured by load: by the utilisation of each link (`share`), or by times."""
    fabric = live.fabric
    with card("Load now", height=UPPER):
        if not len(fabric.links):
            st.info("This fabric has no cables.")
            return
        if share is not None:
            how = "Estimated by times per iteration" if view.rates is None else "Measured"
            colours = colouring.share(f"{how}, worse direction", "Share of capacity", share)
        elif live.shared.seconds.any():
            colours = colouring.load(
                "Estimated, worse direction", "Seconds per iteration", live.shared.seconds
            )
        else:
            colours = colouring.capacity(
                "Capacity: no load is known", "Each direction", fabric.links.capacity
            )
        drawn = drawing(live.running.snapshot.id, fabric, registry)
        few = len(drawn.cables) <= LINES_LIMIT
        fabric_map(link_map(fabric, drawn, colours, lines=few, height=MAP), key="overview map")


def _links(live: Live, share: Floats | None, site: Site) -> None:
    """List the busiest links by utilisation (`share`) or by time, and whose traffic they carry."""
    cluster = live.running.snapshot.cluster
    with card("Busiest links", help=CONVENTION if share is None else "", height=UPPER):
        found = busiest_links(live.shared, share, SHOWN, site.viewer)
        if not found:
            st.caption("No traffic is known.")
            return
        rows = [
            Row(
                one.short,
                (
                    units.short(one.seconds, units.SECONDS) if share is None else f"{100 * one.part:.3g} %",
                    Share(one.part),
                    one.jobs,
                ),
                {"cluster": cluster, "link": one.full},
                help=one.full,
            )
            for one in found
        ]
        heads = ("Link", "Per iteration" if share is None else "Utilisation", "", "Jobs")
        linked_rows(site.fabric, heads, (6.9, 1.4, 0.9, 1.8), rows)


def _jobs(live: Live, site: Site) -> None:
    """List the running jobs, those first that would gain most from another placement."""
    with card("Jobs to act on", height=LOWER):
        listed = jobs_to_act(live.running.jobs, site.viewer)
        if not listed:
            st.caption("No job is running.")
            return
        rows = []
        for one in listed[:JOBS]:
            if not one.profile:
                rest: tuple[str | Share | Mark, ...] = ("", "", Mark(State.UNKNOWN, "no profile"))
            elif one.gain is None or one.seconds is None:
                rest = ("", "", Mark(State.UNKNOWN, "not searched"))
            else:
                part = (one.gain - 1) / (GAIN_SHOWN - 1)
                gain = f"{one.gain:.3g} ×" if one.gain > 1 else "none found"
                rest = (units.short(one.seconds, units.SECONDS), Share(part), gain)
            distance = "" if one.distance is None else f"{one.distance:.3g} ×"
            rows.append(Row(one.label, (distance, *rest), {"job": one.key}))
        heads = ("Job", "Distance from best", "Worst link now", "Possible gain", "")
        linked_rows(site.jobs, heads, (5, 2.2, 2, 1.6, 1.8), rows)


def _events(registry: Registry, view: Overview, findings: tuple[Finding, ...], site: Site) -> None:
    """List what is wrong and what changed."""
    with card("Last 24 hours", height=LOWER):
        regressions = recent_regressions(registry, view, site.viewer.only)
        changes = [] if view.changes is None else changes_lines(view.changes, view.rerouted)
        assert view.live is not None
        scanned = view.live.running.snapshot.observed_at
        listed = events(
            findings, regressions, changes, door.sources(_mine(view), site.viewer), view.now, scanned
        )
        if not listed:
            badge(State.OK, "No findings, no changes in 24 h")
            return
        with st.container(gap="xsmall", key="rows events"):
            shown = listed if len(listed) <= EVENTS else listed[: EVENTS - 1]
            for one in shown:
                _event(one, view, site)
        if len(listed) > len(shown):
            st.caption(f"and {len(listed) - len(shown):,} more")


def _event(event: Event, view: Overview, site: Site) -> None:
    """Draw one event as a line that leads to the page which shows it."""
    cluster = view.clusters.cluster or ""
    page, tab = {
        "changes": (site.fabric, {"tab": "changes"}),
        "fabric": (site.fabric, {}),
        "trends": (site.trends, {}),
        "data": (site.data, {}),
    }[event.where]
    text = plain(site.viewer.message(event.text))
    time = "never" if event.time is None else f"{age_text(view.now - event.time)} ago"
    about = text if event.time is None else f"{units.moment_text(event.time)}: {text}"
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small"):
        st.caption(time, width=AGES)
        badge(State.UNKNOWN if event.severity is None else STATES[event.severity], event.word)
        st.page_link(page, label=text, help=about, width="stretch", query_params={"cluster": cluster, **tab})
