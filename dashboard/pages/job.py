"""The page of a job: how it runs, what is better, and the best possible; its links, ranks and placements."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import streamlit as st

from dashboard.pages import job_tabs, placement_search
from dashboard.pages.job_data import JobView, find_job, gauge, neighbours
from dashboard.pages.jobs import state_text
from dashboard.pages.trends import measured_number
from dashboard.shared.bar import link_to
from dashboard.shared.caching import cached_clusters
from dashboard.shared.cards import State, number, plain, show_empty, show_unknown, theme_of
from dashboard.shared.controls import tabbed
from dashboard.shared.names import JobCosts, job_costs
from dashboard.shared.placements import gains_on
from dashboard.shared.traffic import sharers_of
from dashboard.shared.viewer import Site
from mapping.traffic.measured_gain import MeasuredGain
from registry import units
from registry.errors import UnknownName
from registry.registry import Registry
from registry.store.ingest_runs import age_text
from registry.store.job_lists import JobFile
from registry.store.jobs import StoredJob
from registry.store.placements import OpenPlacement

TABS = {
    "map": "Map",
    "links": "Links",
    "ranks": "Ranks and hosts",
    "communication": "Communication",
    "runs": "Runs",
}
"""Titles of the tabs by their value in the address."""
CLOSE, FAR = 1.1, 2.0
"""Distances from the best possible up to which a job is fine, and from which it should be placed again."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    try:
        view = find_job(registry, site.viewer)
    except UnknownName as error:
        show_unknown(error, error.kind)
        return
    if view is None:
        show_empty(
            "The registry holds no jobs and no placements yet. Ingest some, or load the demonstration:",
            "scontrol show jobs -d | almanac ingest --cluster NAME -",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    subject = placement_search.subject_of(view)
    _head(registry, view, subject, site)
    if subject is not None:
        placement_search.follow(site.searches, subject.key)
    opened = view.opened
    if opened is None or opened.stored.evaluation is None:
        _not_evaluated(view.file)
        return
    gains = _measured(registry, view, opened)
    _costs(view, opened, [one for one in gains if one.run.placement == opened.stored.id])
    _tabs(view, opened, gains, site)


def _measured(registry: Registry, view: JobView, opened: OpenPlacement) -> tuple[MeasuredGain, ...]:
    """Return what the placements of the job, or the only one, gained in measured runs."""
    known = cached_clusters(registry).infos.get(opened.stored.cluster)
    placements = [opened.stored.id] if view.file is None else [one.id for one in view.file.placements]
    return () if known is None else gains_on(registry, [known], placements)


def _tabs(view: JobView, opened: OpenPlacement, gains: Sequence[MeasuredGain], site: Site) -> None:
    """Draw the tabs; only the open one is computed."""
    evaluation = opened.stored.evaluation
    assert evaluation is not None
    parts: Mapping[str, Callable[[], None]] = {
        "map": lambda: job_tabs.draw_maps(view, opened, evaluation),
        "links": lambda: job_tabs.draw_links(view, opened, evaluation),
        "ranks": lambda: job_tabs.draw_ranks(view, opened),
        "communication": lambda: job_tabs.draw_communication(opened),
        "runs": lambda: job_tabs.draw_runs(view, opened, gains, site),
    }
    with st.container(border=True), tabbed("tab", TABS) as name:
        parts[name]()


def _head(
    registry: Registry, view: JobView, subject: placement_search.SearchSubject | None, site: Site
) -> None:
    """Draw the name and state of the job, and the buttons."""
    with st.container(horizontal=True, vertical_alignment="center"):
        cluster = view.file.stored.cluster if view.file else None
        link_to(site.jobs, "Jobs", icon="arrow_back", **({"cluster": cluster} if cluster else {}))
        if view.file is None:
            assert view.opened is not None
            st.header(f"Placement {plain(view.opened.stored.id)}", anchor=False, width="content")
            st.badge("no job", icon=":material/help:", color="grey")
        else:
            _title(view.file, view.opened, site)
        st.space("stretch")
        if subject is not None:
            placement_search.draw_button(site.searches, subject)
        if view.opened is not None:
            job_tabs.menu(view.opened, view.file.stored.job.hosts if view.file else ())
    if view.file is not None:
        st.caption(_about(registry, view.file.stored, site))


def _title(file: JobFile, opened: OpenPlacement | None, site: Site) -> None:
    """Draw the title and the badges of a job."""
    job = file.stored.job
    name = file.application or job.name
    st.header(plain(f"{job.id} · {name}" if name else job.id), anchor=False, width="content")
    st.badge(plain(state_text(job.state)), color="green" if job.state == "RUNNING" else "grey")
    if job.user:
        st.badge(plain(site.viewer.name(job.user)), icon=":material/person:", color="grey")
    ranks, hosts = job.ranks or sum(job.slots), len(job.hosts)
    st.badge(f"{units.counted(ranks, 'rank')} on {units.counted(hosts, 'host')}", color="grey")
    if opened is not None:
        fabric = opened.snapshot.fabric
        found = neighbours(opened.snapshot.id, fabric).fragmentation(opened.stored.placement.allocation.hosts)
        leaves = units.counted(found.groups, "leaf", "leaves")
        more = f", {found.fewest:,} would do" if found.fewest < found.groups else ""
        st.badge(f"{leaves}{more}", color="orange" if more else "grey", icon=":material/account_tree:")


def _about(registry: Registry, stored: StoredJob, site: Site) -> str:
    """Return one line on a job: when it ran, with whom it shares links, and its name and partition."""
    job, now = stored.job, datetime.now(UTC)
    parts = []
    if job.ended_at is not None:
        parts.append(f"ended {age_text(now - job.ended_at)} ago")
    elif job.started_at is not None:
        parts.append(f"started {age_text(now - job.started_at)} ago")
        others = sharers_of(registry, cached_clusters(registry).infos, [stored], site.viewer).get(
            stored.id, []
        )
        parts.append(f"shares links with {plain(', '.join(others))}" if others else "shares no links")
    parts += [plain(text) for text in (job.name, job.partition, stored.cluster) if text]
    if stored.iteration_seconds is not None:
        time = units.short(stored.iteration_seconds, units.SECONDS)
        parts.append(f"{time} per iteration ({plain(stored.iteration_from)})")
    return " · ".join(parts)


def _costs(view: JobView, opened: OpenPlacement, gains: Sequence[MeasuredGain]) -> None:
    """Draw how the job runs, what was found, the best possible, what was measured, and all on one line."""
    found = job_costs(opened.stored, None if view.beside is None else view.beside.stored)
    columns = st.columns([2, 2, 2, 3, 4] if gains else [2, 2, 2, 6])
    with columns[0]:
        name = "Now (assumed)" if found.assumed else "Now"
        about = (
            "Time of the worst link per iteration: its bytes over its capacity, estimated from the profile."
        )
        assumed = " Nothing is known of the ranks: they are assumed in order." if found.assumed else ""
        state, note = _distance(found)
        number(name, _text(found.now), help=about + assumed, note=note, state=state)
    with columns[1]:
        change = found.change
        about = "Time of the worst link with the placement that a search found."
        if found.better is None:
            number("Better", "–", help=about, note="none found yet", state=State.UNKNOWN)
        else:
            note = "" if change is None else f"{change:+.0%}"
            good = State.OK if change is not None and change < -0.005 else State.UNKNOWN
            number("Better", _text(found.better), help=about, note=note, state=good)
    with columns[2]:
        about = "Certified lower bound: no placement on these hosts is better."
        state = State.UNKNOWN if found.best is None else State.OK
        number(
            "Best possible",
            _text(found.best),
            help=about,
            note="unknown" if found.best is None else "certified",
            state=state,
        )
    if gains:
        with columns[3]:
            measured_number(gains)
    with columns[-1], st.container(border=True, height="stretch"):
        st.caption(f"Worst link, time per iteration (estimated{_traffic(view, opened)})")
        theme = theme_of(st.context.theme.type)
        st.altair_chart(gauge(found.points(), theme), key="gauge")


def _traffic(view: JobView, opened: OpenPlacement) -> str:
    """Return a note on the traffic of other jobs in the costs; empty if they include none."""
    both = [one.stored.evaluation for one in (opened, view.beside) if one is not None]
    others = {one.background or "" for one in both if one is not None}
    if len(others) > 1:
        return "; the placements include different traffic of other jobs"
    return ", with the traffic of other jobs" if any(others) else ""


def _distance(found: JobCosts) -> tuple[State, str]:
    """Return the state of how the job runs, and its distance from the best possible as text."""
    if not found.now or not found.best:
        return State.UNKNOWN, "distance unknown"
    times = found.now / found.best
    state = State.OK if times <= CLOSE else State.LOOK if times < FAR else State.ACT
    return state, f"{times:.3g} × the best"


def _text(value: float | None) -> str:
    return "–" if value is None else units.short(value, units.SECONDS)


def _not_evaluated(file: JobFile | None) -> None:
    """Show why there are no costs, and the commands that compute them."""
    if file is None:
        show_empty(
            "This placement was not evaluated.", "almanac evaluate PROFILE --cluster NAME --placement ID"
        )
        return
    job = file.stored
    name, cluster = shlex.quote(job.job.id), shlex.quote(job.cluster)
    if not job.job.hosts:
        st.info(f"This job has no hosts yet; its state is {plain(job.job.state or 'not started')}.")
    if job.profile is None:
        show_empty(
            "This job has no evaluated placement and no profile yet. Attach a profile, then place:",
            f"almanac job attach {name} PROFILE --cluster {cluster}",
            f"almanac map PROFILE --job {name} --cluster {cluster}",
        )
        return
    show_empty(
        "This job has no evaluated placement yet. Find one:",
        f"almanac map {shlex.quote(job.profile)} --job {name} --cluster {cluster}",
    )
