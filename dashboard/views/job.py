"""The job page: what a placement costs beside ranks in order, where it hurts, and the files for launchers."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import figures, link_figures, queries, tables
from dashboard.choices import choose
from dashboard.link_tables import link_text
from dashboard.messages import plain, show_empty, show_unknown
from dashboard.queries import JobList
from dashboard.site import Site
from mapping.exports import catalog
from registry import units
from registry.errors import InvalidPlacement, UnknownName
from registry.jobs import StoredJob
from registry.model import Evaluation
from registry.opened import OpenPlacement
from registry.registry import Registry

NO_JOB = "none"
"""What the address says for the placements of no job."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Job")
    listing = queries.job_list(registry)
    if not listing.jobs and not listing.placements:
        show_empty(
            "The registry holds neither jobs nor placements yet. Bring some in, or look at the demo:",
            "almanac ingest SLURM_RECORD --cluster NAME",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    try:
        job, placement = _choose(listing)
        opened = None if placement is None else queries.open_kept(registry, placement)
    except UnknownName as error:
        show_unknown(error, error.kind)
        return
    if job is not None:
        _job_facts(job)
    if opened is None or opened.stored.evaluation is None:
        _not_evaluated(job)
        return
    _costs(opened, opened.stored.evaluation)
    _where(opened, opened.stored.evaluation)
    _ranks(opened)
    _files(opened)
    _provenance(opened, site)


def _choose(listing: JobList) -> tuple[StoredJob | None, str | None]:
    """The job and the placement that the address or the widgets tell."""
    _complete_address(listing)
    options = [*listing.jobs, *([NO_JOB] if listing.without_job() else [])]
    job_column, placement_column = st.columns([2, 5])
    with job_column:
        key = choose("Job", "job", options, show=lambda key: _job_text(listing, key), resets=("placement",))
    job = listing.jobs.get(key or "")
    found = {p.id: p for p in (listing.without_job() if job is None else listing.of_job(job))}
    with placement_column:
        placement = choose(
            "Placement of its ranks",
            "placement",
            list(found),
            show=lambda key: tables.placement_text(found[key]),
            kind="placement",
            empty=None if found else "none yet",
        )
    return job, placement


def _complete_address(listing: JobList) -> None:
    """Let a job's bare id or a placement alone do; without either, show the newest placement's job.

    Raises
    ------
    UnknownName
    """
    job, placement = st.query_params.get("job"), st.query_params.get("placement")
    owner = {p.id: NO_JOB if p.job is None else f"{p.cluster}/{p.job}" for p in listing.placements}
    if job is None and placement is not None:
        if placement not in owner:
            raise UnknownName("placement", placement, owner)
        job = owner[placement]
    elif job is None:
        job = next(iter(owner.values()), None)
    elif job != NO_JOB and job not in listing.jobs:
        named = [key for key, stored in listing.jobs.items() if stored.job.id == job]
        if len(named) != 1:
            error = UnknownName("job", job, [*(s.job.id for s in listing.jobs.values()), *listing.jobs])
            error.close = tuple(named) or error.close
            raise error
        job = named[0]
    if job is not None:
        st.query_params["job"] = job


def _job_text(listing: JobList, key: str) -> str:
    if key == NO_JOB:
        return "placements without a job"
    stored = listing.jobs[key]
    parts = (stored.job.id, stored.job.name, stored.job.user, stored.cluster)
    return " · ".join(part for part in parts if part)


def _job_facts(stored: StoredJob) -> None:
    job = stored.job
    facts = {
        "job": job.id,
        "name": job.name,
        "user": job.user,
        "partition": job.partition,
        "state": job.state,
        "hosts": len(job.hosts),
        "ranks": job.ranks or sum(job.slots),
        "started": "" if job.started_at is None else units.moment_text(job.started_at),
        "ended": "" if job.ended_at is None else units.moment_text(job.ended_at),
        "cluster": stored.cluster,
    }
    st.dataframe(pd.DataFrame([facts]), hide_index=True, key="facts")


def _not_evaluated(job: StoredJob | None) -> None:
    if job is None:
        show_empty(
            "This placement was not evaluated.", "almanac evaluate PROFILE --cluster NAME --placement ID"
        )
        return
    profile = "PROFILE" if job.profile is None else shlex.quote(job.profile)
    named = f"--job {shlex.quote(job.job.id)} --cluster {shlex.quote(job.cluster)}"
    show_empty(
        "No placement of this job's ranks was evaluated yet. Find one:", f"almanac map {profile} {named}"
    )


def _costs(opened: OpenPlacement, evaluation: Evaluation) -> None:
    """Each cost against ranks in order and at random, and how far it can be from the best possible."""
    stored = opened.stored
    theme = figures.theme_of(st.context.theme.type)
    for column, (metric, about) in zip(st.columns(len(tables.METRICS)), tables.METRICS.items(), strict=True):
        value, bound = float(getattr(evaluation, metric)), evaluation.bounds.get(metric)
        values = tables.comparison(
            metric, value, stored.in_order, stored.random, None if bound is None else bound.value
        )
        delta, better = tables.change(value, values.get(tables.IN_ORDER))
        with column:
            st.metric(
                about.title,
                units.text(value, about.base),
                delta,
                delta_color="off" if better is None else "inverse",
                delta_arrow="off" if better is None else "auto",
                help=about.about,
            )
            st.altair_chart(figures.comparison(values, about.base, theme), key=f"costs {metric}")
            st.caption(plain(tables.certificate(value, bound)) or "no lower bound is known")


def _where(opened: OpenPlacement, evaluation: Evaluation) -> None:
    """The links that the job loads, in order and placed, on one scale."""
    st.subheader("Where it is congested")
    fabric = opened.snapshot.fabric
    drawing = queries.drawing(opened.snapshot.id, fabric)
    both = {"In order": queries.evaluated_in_order(opened.stored.id, opened), "Placed": evaluation}
    seconds = {name: e.link_bytes / fabric.links.capacity for name, e in both.items() if e is not None}
    used = np.any([values > 0 for values in seconds.values()], axis=0)
    if not used.any():
        st.info("Its ranks send nothing between hosts: no link is loaded.")
        return
    worst = max(float(values.max()) for values in seconds.values())
    lines = int(used.sum()) <= link_figures.LINES_LIMIT
    theme = figures.theme_of(st.context.theme.type)
    for column, (name, values) in zip(st.columns(len(seconds)), seconds.items(), strict=True):
        link = int(np.argmax(values))
        with column:
            cost = units.text(float(values[link]), units.SECONDS)
            st.text(f"{name}: {cost} on {link_text(fabric, link)}")
            chart = link_figures.links_figure(
                fabric, drawing, name, theme, seconds=values, lines=lines, worst=worst, only=used
            )
            st.altair_chart(chart, width="stretch" if lines else "content", key=f"where {name}")


def _ranks(opened: OpenPlacement) -> None:
    left, right = st.columns(2)
    stored, fabric = opened.stored, opened.snapshot.fabric
    allocation = stored.placement.allocation
    in_order = allocation.host_of_slot[: stored.placement.ranks]
    with left:
        st.subheader("Ranks of each host")
        columns = {"in order": [fabric.names[v] for v in in_order], "placed": stored.hosts}
        table = tables.ranks_per_host([fabric.names[v] for v in allocation.hosts], columns)
        st.dataframe(table, hide_index=True, height=430, key="ranks")
    with right:
        st.subheader("Communication")
        if opened.profile is None:
            st.info("No profile of this placement is known.")
            return
        profile = opened.profile.profile
        theme = figures.theme_of(st.context.theme.type)
        chart = figures.communication_matrix(tables.communication(profile), profile.ranks, theme)
        st.altair_chart(chart, width="content", key="communication")


def _files(opened: OpenPlacement) -> None:
    st.subheader("Files for launchers")
    stored = opened.stored
    with st.container(horizontal=True):
        for name in catalog.FORMATS:
            try:
                content = catalog.write(name, stored.placement, opened.snapshot.fabric)
            except InvalidPlacement as error:
                st.button(name, disabled=True, help=plain(str(error)), key=f"file {name}")
                continue
            ending = "csv" if name == "csv" else "txt"
            st.download_button(
                name,
                content,
                file_name=f"{stored.id}-{name}.{ending}",
                mime="text/plain",
                on_click="ignore",
                icon=":material/download:",
                key=f"file {name}",
            )


def _provenance(opened: OpenPlacement, site: Site) -> None:
    stored = opened.stored
    placement = stored.placement
    evaluation = stored.evaluation
    facts = {
        "placement": stored.id,
        "saved at": units.moment_text(stored.recorded_at),
        "cluster": stored.cluster,
        "snapshot": stored.content,
        "profile": "" if opened.profile is None else f"{opened.profile.profile.name} ({opened.profile.id})",
        "strategy": placement.strategy,
        "objective": placement.objective,
        "routing": placement.routing
        if evaluation is None
        else f"{evaluation.routing}, rails {evaluation.rails}",
        "seed": "" if placement.seed is None else str(placement.seed),
        "search": f"{placement.seconds:.3g} s, {placement.steps:,} steps"
        + ("" if placement.complete else ", interrupted"),
        "parameters": ", ".join(f"{name} = {value}" for name, value in placement.parameters.items()),
        "code version": stored.code_version,
    }
    st.subheader("How it was found")
    table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
    st.dataframe(table, hide_index=True, height="content", key="provenance")
    st.page_link(
        site.fabric,
        label="On the whole fabric",
        icon=":material/arrow_forward:",
        query_params={"cluster": stored.cluster, "placement": stored.id},
    )
