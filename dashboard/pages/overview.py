"""The overview: the state of a cluster on one screen, also for a wall display."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import NamedTuple

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.map.picture import fabric_map
from dashboard.pages import fabric_device
from dashboard.shared import door
from dashboard.shared import link_map as colouring
from dashboard.shared.bar import Mark, Row, Share, linked_rows, time_range
from dashboard.shared.caching import KEYS, SHARED, drawing
from dashboard.shared.cards import (
    CONVENTION,
    State,
    badge,
    card,
    number,
    plain,
    show_unknown,
    theme_of,
    unknown,
)
from dashboard.shared.fabric import cached_counters
from dashboard.shared.link_map import LINES_LIMIT, link_map
from dashboard.shared.placements import judged
from dashboard.shared.traffic import cached_traffic
from dashboard.shared.viewer import OTHERS, Site, Viewer
from mapping.checks.checks import check
from mapping.checks.finding import ErrorLimits, Finding, Severity, Subject
from mapping.questions.live import Live, utilisation
from mapping.traffic.job_loads import Regression
from mapping.traffic.names import link_text, short_link, short_names, shortened
from mapping.traffic.ports import CounterHistory
from mapping.traffic.shared_load import HotLink, SharedLoad
from registry import units
from registry.errors import UnknownName
from registry.model import Fabric, Floats, IntendedWiring, LinkRates
from registry.registry import Registry
from registry.store.changes import Changes, compare, in_words
from registry.store.counters import Sweeps, rates_of
from registry.store.fabric_history import ClusterOverview, read_overview
from registry.store.fabrics import ClusterInfo, Snapshot
from registry.store.ingest_runs import FAILING, FRESH, NO_ALARM, SourceState, age_text, freshness
from registry.store.running_jobs import RunningJob
from registry.units import counted

A_DAY = timedelta(days=1)
CACHED = 8
"""Number of fabrics whose findings, changes and rates are cached."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overview:
    """Data of the overview."""

    clusters: ClusterOverview
    """All clusters, their sources, and the stored data of the chosen one."""
    live: Live | None
    """Traffic of the running jobs of the chosen cluster, or None without a cluster."""
    rates: LinkRates | None
    """Measured rates, or None if fewer than two counter sweeps were saved."""
    changes: Changes | None
    """Changes of the wiring since a day ago, or None if there is no older observation."""
    rerouted: bool
    """True if the forwarding tables changed since a day ago."""
    now: datetime
    """Present time."""


@st.cache_resource(max_entries=CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_overview(registry: Registry, cluster: str | None) -> Overview:
    """Return the overview at this moment; all viewers share it for `SHARED`."""
    return overview(registry, cluster, datetime.now(UTC))


def overview(registry: Registry, cluster: str | None, now: datetime) -> Overview:
    """Return the overview: one statement, and three more if the cluster's traffic is not cached.

    Args:
        cluster: Default: the first cluster by name.

    Raises:
        UnknownName: There are clusters, but none with that name.
    """
    found = read_overview(registry.database, cluster, now - A_DAY)
    if found.cluster is None:
        return Overview(clusters=found, live=None, rates=None, changes=None, rerouted=False, now=now)
    live = cached_traffic(registry, found.clusters[found.cluster], None)
    present, before = live.running.snapshot, found.before
    return Overview(
        clusters=found,
        live=live,
        rates=_rates(present.id, tuple(sweep.at for sweep in found.sweeps), present.fabric, found.sweeps),
        changes=None if before is None else _changes(before.id, present.id, before, present.fabric),
        rerouted=before is not None and before.routing != present.routing,
        now=now,
    )


def cached_findings(registry: Registry, view: Overview, limits: ErrorLimits) -> tuple[Finding, ...]:
    """Return the findings of `almanac cluster check`: three statements, none if nothing is new."""
    assert view.live is not None
    plan = None if view.clusters.plan is None else view.clusters.plan.wiring
    cluster = view.clusters.clusters[view.live.running.snapshot.cluster]
    return _findings(registry, cluster, view.live.running.snapshot, plan, limits)


def recent_counters(
    registry: Registry, view: Overview, over: timedelta, limits: ErrorLimits
) -> CounterHistory | None:
    """Return the port counters of a period up to now: two statements, none if nothing is new."""
    if view.live is None or view.rates is None:
        return None
    snapshot = view.live.running.snapshot
    cluster = view.clusters.clusters[snapshot.cluster]
    return cached_counters(registry, cluster, snapshot, snapshot.id, None, over, limits)


def recent_regressions(registry: Registry, view: Overview, user: str | None) -> tuple[Regression, ...]:
    """Return the regressions of a day, newest first: one statement, none if no placement is new.

    Args:
        user: Only regressions of this user's jobs, which takes one more statement.
    """
    series, _, found = judged(registry, view.clusters.clusters.values(), user)
    recent = [one for one in found if one.recorded_at > view.now - A_DAY]
    here = [one for one in recent if one.cluster == view.clusters.cluster]
    return tuple(sorted(here, key=lambda one: one.recorded_at, reverse=True)) if len(series) else ()


@st.cache_resource(
    max_entries=CACHED, show_spinner="Checking the fabric ...", hash_funcs=KEYS | {ErrorLimits: repr}
)
def _findings(
    registry: Registry,
    cluster: ClusterInfo,
    _snapshot: Snapshot,
    _plan: IntendedWiring | None,
    limits: ErrorLimits,
) -> tuple[Finding, ...]:
    """Return the findings of the checks; see `cached_findings`."""
    subject = Subject(
        fabric=_snapshot.fabric,
        plan=_plan,
        counters=registry.counters.recent(cluster.name, limits.period),
        losses=registry.fabrics.losses(_snapshot, _snapshot.observed_at - limits.period),
        limits=limits,
    )
    return check(subject)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _rates(
    snapshot_id: str, swept: tuple[datetime, ...], _fabric: Fabric, _sweeps: Sweeps
) -> LinkRates | None:
    return rates_of(_fabric, _sweeps)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _changes(before: str, after: str, _before: Snapshot, _after: Fabric) -> Changes:
    found = Changes() if before == after else compare(_before.fabric, _after)
    return replace(found, start_snapshot=before, end_snapshot=after)


NOT_ATTRIBUTED = "not attributed"
"""Owners of a link on which no running job is known to send."""


class BusyLink(NamedTuple):
    """A link with its load."""

    row: int
    """Row of ``fabric.links``."""
    short: str
    full: str
    """Both ends by short names; name for the address and for commands."""
    part: float
    """Utilisation if it is known, else time over that of the busiest link, 0 to 1."""
    seconds: float
    """Estimated time of the link per iteration."""
    jobs: str
    """Jobs that send over it, most bytes first."""


def busiest_links(shared: SharedLoad, share: Floats | None, count: int, viewer: Viewer) -> list[BusyLink]:
    """Return the links with the highest utilisation, or estimated time if no utilisation is given.

    Args:
        share (float64[m]): Utilisation of each link, NaN if unknown.
    """
    fabric, seconds = shared.fabric, shared.seconds
    names = short_names(fabric)
    part = seconds / max(float(seconds.max(initial=0.0)), np.finfo(float).tiny) if share is None else share
    rows = np.argsort(-np.nan_to_num(part), kind="stable")[:count]
    rows = rows[np.nan_to_num(part[rows]) > 0]
    return [
        BusyLink(
            row=link.row,
            short=short_link(fabric, link.row, names),
            full=link_text(fabric, link.row),
            part=float(part[link.row]),
            seconds=link.load.seconds,
            jobs=_owners(link, viewer),
        )
        for link in shared.links(rows)
    ]


def _owners(link: HotLink, viewer: Viewer) -> str:
    """Return the jobs of a link as text; jobs that the viewer may not see are not named."""
    names = dict.fromkeys(user.job if viewer.sees(user.user) else OTHERS for user in link.users)
    return ", ".join(names) or NOT_ATTRIBUTED


@dataclass(frozen=True, slots=True, kw_only=True)
class JobToAct:
    """A running job, and what can be gained by placing it again."""

    key: str
    """``CLUSTER/ID``."""
    label: str
    """Id, application and user."""
    seconds: float | None
    """Time of its worst link now, per iteration, with the traffic of other jobs; None if not searched."""
    gain: float | None
    """That time over the time with the better placement that was found; 1 if none was found; None if not
    searched."""
    distance: float | None
    """Time of its worst link alone over the certified lower bound for its hosts; None if unknown."""
    moves: int
    """Ranks that move to the better placement."""
    profile: bool
    """False if its traffic is not known."""


def jobs_to_act(jobs: Sequence[RunningJob], viewer: Viewer) -> list[JobToAct]:
    """Return the visible running jobs, largest gain first, then those not searched, then without profile."""
    listed = []
    for one in jobs:
        job, advice = one.stored.job, one.advice
        if not viewer.sees(job.user):
            continue
        parts = (job.id, one.application or job.name, viewer.name(job.user))
        listed.append(
            JobToAct(
                key=one.stored.id,
                label=" · ".join(part for part in parts if part),
                seconds=None if advice is None else advice.present_seconds,
                gain=None if advice is None else advice.gain,
                distance=_distance(one),
                moves=0 if advice is None else advice.moved,
                profile=one.stored.profile is not None,
            )
        )
    return sorted(listed, key=lambda one: (not one.profile, one.gain is None, -(one.gain or 0.0)))


def _distance(job: RunningJob) -> float | None:
    """Return how many times the best possible a running job's worst link takes, or None."""
    present = job.present
    if present is None or present.metrics is None or not present.bound_seconds:
        return None
    return present.metrics.congestion_seconds / present.bound_seconds


class Event(NamedTuple):
    """Something that happened or is wrong."""

    time: datetime | None
    """When it happened or was seen first; None if that is not known."""
    severity: Severity | None
    """None if nothing is wrong."""
    word: str
    text: str
    """Kind of the event, and its description."""
    where: str
    """``changes``, ``fabric``, ``trends`` or ``data``: where it is shown."""


def events(
    findings: Sequence[Finding],
    regressions: Sequence[Regression],
    changes: Sequence[str],
    sources: Sequence[SourceState],
    now: datetime,
    scanned: datetime,
) -> list[Event]:
    """Return what needs attention, worst first: failed sources, findings, regressions, changes.

    Args:
        scanned: Time of the scan that has the findings and the changes.
    """
    listed = [
        Event(scanned, one.severity, str(one.severity), shortened(one.text), "fabric")
        for one in sorted(findings, key=lambda one: -one.severity)
    ]
    for source in sources:
        state = freshness(source, now).state
        if state not in NO_ALARM:
            severity = Severity.ERROR if state == FAILING else Severity.WARNING
            text = f"{source.format or 'unknown format'}: {source.error or 'no new data'}"
            listed.append(Event(source.last_at, severity, state, text, "data"))
    for one in regressions:
        text = f"{one.application} {one.ratio / one.centre:.3g} times its usual distance from best"
        if one.changed:
            text += f": {', '.join(one.changed)}"
        listed.append(Event(one.recorded_at, Severity.WARNING, "regression", text, "trends"))
    listed += [Event(scanned, None, "changed", shortened(line), "changes") for line in changes]
    return sorted(listed, key=lambda one: -(one.severity or 0))


def changes_lines(changes: Changes, rerouted: bool) -> list[str]:
    """Return the changes as lines of text."""
    lines = in_words(changes)
    return [*lines, "the forwarding tables changed"] if rerouted and not changes.switches_rerouted else lines


def health(findings: Sequence[Finding]) -> tuple[Severity | None, str]:
    """Return the worst severity, or None without findings, and the numbers of errors and warnings."""
    count = {severity: sum(one.severity == severity for one in findings) for severity in Severity}
    named = [counted(count[one], str(one)) for one in reversed(Severity) if count[one]]
    worst = next((one for one in reversed(Severity) if count[one]), None)
    return worst, ", ".join(named) or "no findings"


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
        chart = fabric_device.sparkline(
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
