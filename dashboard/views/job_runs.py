"""Part of the job page: the job's placements with their costs, and how the shown one was found."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.queries.job import JobView
from dashboard.state.site import Site
from dashboard.tables.placements import cost_table, placements_table
from dashboard.views.job_choice import draw_choice
from dashboard.views.measured import ABOUT, measured_list
from dashboard.widgets.messages import plain
from dashboard.widgets.navigation import link_to
from mapping.traffic.measured_gain import MeasuredGain
from registry import units
from registry.pages.placements import OpenPlacement


def draw(view: JobView, opened: OpenPlacement, gains: Sequence[MeasuredGain], site: Site) -> None:
    """Draw the choice of a placement, its costs, the placements, what they gained, links to other pages."""
    stored = opened.stored
    left, right = st.columns(2)
    with left:
        draw_choice(view)
        st.markdown("**Costs**")
        if stored.evaluation is not None:
            other = None if view.beside is None else view.beside.stored
            st.dataframe(cost_table(stored, other, view.beside_name), hide_index=True, key="costs")
            _background(opened, view.beside)
    with right:
        st.markdown("**Placements of this job**")
        st.dataframe(
            placements_table([] if view.file is None else view.file.placements),
            hide_index=True,
            height=260,
            placeholder="",
            key="placements",
        )
        with st.container(horizontal=True):
            link_to(site.trends, "Simulated runs", icon="play_circle", tab="simulations", placement=stored.id)
            link_to(site.trends, "Earlier runs", icon="show_chart", cluster=stored.cluster)
            link_to(site.fabric, "Show on the fabric", cluster=stored.cluster, placement=stored.id)
    if gains:
        st.markdown("**Measured gain**", help=ABOUT)
        measured_list(gains)
    with st.expander("How this placement was found"):
        facts = _provenance(opened)
        table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
        st.dataframe(table, hide_index=True, height="content", key="provenance")


def _background(opened: OpenPlacement, beside: OpenPlacement | None) -> None:
    """State which other traffic the costs include, and warn if the two placements differ in it."""
    evaluation = opened.stored.evaluation
    other = None if beside is None else beside.stored.evaluation
    if evaluation is not None and evaluation.background:
        jobs = evaluation.background.partition(" bytes of ")[2] or evaluation.background
        st.caption(f"Costs of worst links include the traffic of {plain(jobs)}.")
    if evaluation is not None and other is not None and other.background != evaluation.background:
        load = plain(other.background or "none")
        st.warning(
            f"The worst links cannot be compared: the other placement includes other traffic ({load})."
        )


def _provenance(opened: OpenPlacement) -> dict[str, str]:
    """Return how the placement was found, as texts by name."""
    stored = opened.stored
    placement, evaluation = stored.placement, stored.evaluation
    return {
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
