"""Part of the job page: the choice of a job, a placement, and the placement to compare it with."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.queries import job as queries
from dashboard.queries.caching import cached_pair, cached_placement
from dashboard.queries.job import JobView
from dashboard.state.site import Site
from dashboard.tables.placements import placement_text
from dashboard.widgets.controls import choose, text_field
from dashboard.widgets.messages import plain
from dashboard.widgets.navigation import link_to
from registry.errors import UnknownName
from registry.pages.placements import OpenPlacement
from registry.records.placements.records import PRESENT, StoredPlacementInfo
from registry.registry import Registry

NO_JOB = "none"
"""Value of `job` in the address for a placement without a job."""
IN_ORDER = "in-order"
"""Value of `beside` in the address for a comparison with ranks in order."""


def choose_job(registry: Registry, site: Site) -> JobView | None:
    """Draw the controls and return what the page shows: by default the job of the newest placement.

    None means that the registry holds neither jobs nor placements.

    Raises
    ------
    UnknownName
    """
    job, placement = st.query_params.get("job", "").strip(), st.query_params.get("placement")
    if not job or job == NO_JOB:
        found = _first(registry, site, placement)
        if found is None:
            return None
        if isinstance(found, OpenPlacement):
            return _without_job(found, site)
        job = found
    file = queries.job_file(registry, job, site.viewer)
    st.query_params["job"] = file.stored.id
    left, middle, right = st.columns([2, 4, 4])
    with left:
        text_field("Job", "job", hint="ID or CLUSTER/ID", resets=["placement", "beside"])
        link_to(site.jobs, "All jobs", icon="list")
    found_by_id = {info.id: info for info in file.placements}
    if (
        file.placements and placement is None
    ):  # so that a copied link shows this placement even when there is a newer one
        st.query_params["placement"] = file.placements[0].id
    with middle:
        chosen = choose(
            "Placement",
            "placement",
            list(found_by_id),
            show=lambda key: _text(found_by_id[key]),
            kind="placement",
            empty=None if found_by_id else "none yet",
            resets=["beside"],
        )
    if chosen is None:
        return JobView(file=file)
    with right:
        beside = _beside(found_by_id[chosen], file.placements)
    if beside is None:
        return JobView(file=file, opened=cached_placement(registry, chosen))
    opened, other = cached_pair(registry, chosen, beside)
    return JobView(file=file, opened=opened, beside=other)


def _first(registry: Registry, site: Site, placement: str | None) -> str | OpenPlacement | None:
    """Return the job, or a placement without a job, if the address does not name a job."""
    if placement is None:
        return queries.newest(registry, site.viewer)
    opened, job = queries.owner(registry, placement, site.viewer)
    return job or opened


def _without_job(opened: OpenPlacement, site: Site) -> JobView:
    """Return the view of a placement without a job, which belongs to no user.

    Raises
    ------
    UnknownName
    """
    if not site.viewer.sees(""):
        raise UnknownName("placement", opened.stored.id)
    st.query_params["job"] = NO_JOB
    st.query_params["placement"] = opened.stored.id
    with st.container(horizontal=True):
        st.markdown(f"Placement {plain(opened.stored.id)}, without a job.")
        link_to(site.jobs, "All jobs", icon="list")
    return JobView(file=None, opened=opened)


def _beside(shown: StoredPlacementInfo, placements: Sequence[StoredPlacementInfo]) -> str | None:
    """Draw the choice of the compared placement and return it; None means ranks in order."""
    fit = {info.id: info for info in queries.comparable(shown, placements)}
    runs = any(info.role == PRESENT for info in fit.values())
    chosen = choose(
        "Compare with",
        "beside",
        [*fit, IN_ORDER] if runs else [IN_ORDER, *fit],
        show=lambda key: "ranks in order" if key == IN_ORDER else _text(fit[key]),
        kind="beside",
    )
    return None if chosen == IN_ORDER else chosen


def _text(info: StoredPlacementInfo) -> str:
    """Return the text of a placement in a list."""
    return f"{'as it runs' if info.role == PRESENT else 'proposed'} · {placement_text(info)}"
