"""The job page: what a placement costs beside another, where it hurts and by which ranks, and its files."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from dashboard.queries.job import JobView
from dashboard.queries.jobs import seats
from dashboard.state.site import Site
from dashboard.state.viewer import Viewer
from dashboard.views import job_costs, job_files, job_links, job_ranks, place_again
from dashboard.views.job_choice import choose_job
from dashboard.views.place_again import Ground
from dashboard.widgets.messages import plain, show_empty, show_unknown
from mapping.service import PlacementRequest
from registry import units
from registry.errors import UnknownName
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
            "The registry holds neither jobs nor placements yet. Bring some in, or look at the demo:",
            "scontrol show jobs -d | almanac ingest --cluster NAME -",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    if view.file is not None:
        _facts(view.file, view.opened, site.viewer)
        _advice(view.file)
    shown = None if view.opened is None else view.opened.stored.id
    ground = _ground(view)
    if ground is not None:
        place_again.draw(site.searches, ground, shown)
    if view.opened is None or view.opened.stored.evaluation is None:
        _not_evaluated(view.file)
        return
    job_costs.draw(view, view.opened.stored.evaluation)
    job_links.draw(view, view.opened, view.opened.stored.evaluation)
    job_ranks.draw(view, view.opened)
    job_files.draw(view.opened, site)
    st.page_link(
        site.runs,
        label="Simulated runs of this placement",
        icon=":material/play_circle:",
        query_params={"placement": view.opened.stored.id},
    )


def _facts(file: JobFile, opened: OpenPlacement | None, viewer: Viewer) -> None:
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
        scatter = seats(opened.snapshot.id, fabric).neighbours.fragmentation(
            opened.stored.placement.allocation.hosts
        )
        facts["leaf switches"] = f"{scatter.groups:,} ({scatter.fewest:,} would do)"
    st.dataframe(pd.DataFrame([facts]), hide_index=True, key="facts")


def _advice(file: JobFile) -> None:
    """What `almanac advise` found last."""
    advice = file.advice
    if advice is None:
        return
    at = plain(units.moment_text(advice.at))
    before, after = (
        plain(units.text(s, units.SECONDS)) for s in (advice.present_seconds, advice.proposed_seconds)
    )
    if advice.proposed is None:
        st.info(f"Nothing to gain as of {at}: worst link {before}, with the others' traffic on the links.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(
            f"Possible gain {advice.gain:.2f} times as of {at}: worst link {before}, {after} with "
            f"{advice.moved:,} ranks moved, beside the load of {advice.in_background:,} others.",
            icon=":material/trending_up:",
        )
        st.button("Show both", on_click=_show, args=(advice.proposed, advice.present), key="show advice")


def _show(placement: str, beside: str) -> None:
    st.query_params["placement"] = placement
    st.query_params["beside"] = beside


def _ground(view: JobView) -> Ground | None:
    """What a new search would place; None where nobody told what the ranks send, or where they ran."""
    if view.file is None:
        return _ground_alone(view.opened)
    stored = view.file.stored
    profile = stored.profile or (None if view.opened is None else view.opened.stored.profile)
    if profile is None or not stored.job.hosts:
        return None
    now = datetime.now(UTC)
    started, ended = stored.job.started_at, stored.job.ended_at
    present = next((info.id for info in view.file.placements if info.role == PRESENT), None)
    return Ground(
        key=stored.id,
        request=PlacementRequest(profile=profile, job=stored.job.id, cluster=stored.cluster),
        present=present,
        ranks=stored.job.ranks or sum(stored.job.slots),
        runs=started is not None and started <= now and (ended is None or ended > now),
    )


def _ground_alone(opened: OpenPlacement | None) -> Ground | None:
    if opened is None or opened.stored.profile is None:
        return None
    allocation, names = opened.stored.placement.allocation, opened.snapshot.fabric.names
    return Ground(
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
    if file is None:
        show_empty(
            "This placement was not evaluated.", "almanac evaluate PROFILE --cluster NAME --placement ID"
        )
        return
    job = file.stored
    name, cluster = shlex.quote(job.job.id), shlex.quote(job.cluster)
    if not job.job.hosts:
        st.info(f"This job has no hosts yet: it is {plain(job.job.state or 'not started')}.")
    if job.profile is None:
        show_empty(
            "No placement of this job's ranks was evaluated yet, and no profile tells what they send:",
            f"almanac job attach {name} PROFILE --cluster {cluster}",
            f"almanac map PROFILE --job {name} --cluster {cluster}",
        )
        return
    show_empty(
        "No placement of this job's ranks was evaluated yet. Find one:",
        f"almanac map {shlex.quote(job.profile)} --job {name} --cluster {cluster}",
    )
