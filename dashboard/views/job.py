"""The job page: a job's placement compared with another one, its busiest links, ranks and launcher files."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from dashboard.figures.placement import comparison_bars
from dashboard.figures.style import theme_of
from dashboard.queries.job import JobView
from dashboard.queries.jobs import host_index
from dashboard.state.site import Site
from dashboard.state.viewer import Viewer
from dashboard.tables.placements import IN_ORDER, METRICS, comparison, relative_change
from dashboard.views import job_files, job_links, job_ranks, placement_search
from dashboard.views.job_choice import choose_job
from dashboard.views.placement_search import SearchSubject
from dashboard.widgets.address import set_address
from dashboard.widgets.messages import plain, show_empty, show_metric, show_unknown
from dashboard.widgets.navigation import link_to
from mapping.service.request import PlacementRequest
from registry import units
from registry.errors import UnknownName
from registry.model import Evaluation
from registry.pages.jobs import JobFile
from registry.pages.placements import OpenPlacement
from registry.records.placements.records import PRESENT
from registry.registry import Registry


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Job")
    try:
        view = choose_job(registry, site)
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
    if view.file is not None:
        _facts(view.file, view.opened, site.viewer)
        _advice(view.file)
    shown = None if view.opened is None else view.opened.stored.id
    subject = _search_subject(view)
    if subject is not None:
        placement_search.draw(site.searches, subject, shown)
    if view.opened is None or view.opened.stored.evaluation is None:
        _not_evaluated(view.file)
        return
    _costs(view, view.opened.stored.evaluation)
    job_links.draw(view, view.opened, view.opened.stored.evaluation)
    job_ranks.draw(view, view.opened)
    job_files.draw(view.opened, site)
    link_to(
        site.runs, "Simulated runs of this placement", icon="play_circle", placement=view.opened.stored.id
    )


def _facts(file: JobFile, opened: OpenPlacement | None, viewer: Viewer) -> None:
    """Draw a table with the job's properties."""
    job = file.stored.job
    facts = {
        "job": job.id,
        "name": job.name,
        "user": viewer.name(job.user),
        "application": file.application or "",
        "partition": job.partition,
        "state": job.state,
        "hosts": len(job.hosts),
        "ranks": job.ranks or sum(job.slots),
        "started": "" if job.started_at is None else units.moment_text(job.started_at),
        "ended": "" if job.ended_at is None else units.moment_text(job.ended_at),
        "cluster": file.stored.cluster,
    }
    if opened is not None:
        fabric = opened.snapshot.fabric
        scatter = host_index(opened.snapshot.id, fabric).neighbours.fragmentation(
            opened.stored.placement.allocation.hosts
        )
        facts["leaf switches"] = f"{scatter.groups:,} (at least {scatter.fewest:,})"
    st.dataframe(pd.DataFrame([facts]), hide_index=True, key="facts")


def _advice(file: JobFile) -> None:
    """Draw the latest result of `almanac advise`."""
    advice = file.advice
    if advice is None:
        return
    at = plain(units.moment_text(advice.at))
    before, after = (
        plain(units.text(s, units.SECONDS)) for s in (advice.present_seconds, advice.proposed_seconds)
    )
    if advice.proposed is None:
        st.info(f"No better placement found at {at}: worst link {before} with the traffic of other jobs.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(
            f"Possible gain {advice.gain:.2f} times, found at {at}: worst link {before} now, {after} "
            f"after moving {advice.moved:,} ranks, with the traffic of {advice.in_background:,} other jobs.",
            icon=":material/trending_up:",
        )
        both = {"placement": advice.proposed, "beside": advice.present}
        st.button("Compare both", on_click=set_address, kwargs=both, key="show advice")


def _search_subject(view: JobView) -> SearchSubject | None:
    """Return what a new search would place, or None if the profile or the hosts are not known."""
    if view.file is None:
        return _subject_without_job(view.opened)
    stored = view.file.stored
    profile = stored.profile or (None if view.opened is None else view.opened.stored.profile)
    if profile is None or not stored.job.hosts:
        return None
    now = datetime.now(UTC)
    started, ended = stored.job.started_at, stored.job.ended_at
    present = next((info.id for info in view.file.placements if info.role == PRESENT), None)
    return SearchSubject(
        key=stored.id,
        request=PlacementRequest(profile=profile, job=stored.job.id, cluster=stored.cluster),
        present=present,
        ranks=stored.job.ranks or sum(stored.job.slots),
        runs=started is not None and started <= now and (ended is None or ended > now),
    )


def _subject_without_job(opened: OpenPlacement | None) -> SearchSubject | None:
    """Return the hosts and the profile of a placement that belongs to no job, or None without a profile."""
    if opened is None or opened.stored.profile is None:
        return None
    allocation, names = opened.stored.placement.allocation, opened.snapshot.fabric.names
    return SearchSubject(
        key=opened.stored.id,
        request=PlacementRequest(
            profile=opened.stored.profile,
            cluster=opened.stored.cluster,
            hosts=tuple(names[v] for v in allocation.hosts.tolist()),
            slots=tuple(allocation.slots.tolist()),
        ),
        present=opened.stored.id,
        ranks=opened.stored.placement.ranks,
        runs=False,
    )


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


def _costs(view: JobView, evaluation: Evaluation) -> None:
    """Draw each cost beside the compared placement, the random mean and the lower bound."""
    st.subheader("Costs")
    assert view.opened is not None
    stored = view.opened.stored
    theme = theme_of(st.context.theme.type)
    other = None if view.beside is None else view.beside.stored.evaluation
    for column, (metric, about) in zip(st.columns(len(METRICS)), METRICS.items(), strict=True):
        value, bound = float(getattr(evaluation, metric)), evaluation.bounds.get(metric)
        values = comparison(
            metric, value, stored.in_order, stored.random, None if bound is None else bound.value
        )
        before = values.get(IN_ORDER) if other is None else float(getattr(other, metric))
        delta, better = relative_change(value, before, view.beside_name)
        with column:
            show_metric(column, about.title, units.text(value, about.base), delta, better, about.about)
            st.altair_chart(comparison_bars(values, about.base, theme), key=f"costs {metric}")
            st.caption("no known lower bound" if bound is None else plain(bound.certifies(value)))
    _background(evaluation, other)


def _background(evaluation: Evaluation, other: Evaluation | None) -> None:
    """State which other traffic the costs include, and warn if the two placements differ in it."""
    if evaluation.background:
        st.caption(f"Costs of worst links include traffic of other jobs: {plain(evaluation.background)}.")
    if other is not None and other.background != evaluation.background:
        load = plain(other.background or "none")
        st.warning(
            f"The worst links cannot be compared: the other placement includes other traffic ({load})."
        )
