"""Part of the job page: which job, which of its placements, and what beside it, as the address tells."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import tables
from dashboard.queries import job as queries
from dashboard.queries.caching import both_kept, open_kept
from dashboard.queries.job import JobView
from dashboard.state.site import Site
from dashboard.widgets.choices import choose
from dashboard.widgets.filters import written
from dashboard.widgets.messages import plain
from registry.errors import UnknownName
from registry.pages.placements import OpenPlacement
from registry.records.placements.placements import StoredPlacementInfo
from registry.records.placements.records import PRESENT
from registry.registry import Registry

NO_JOB = "none"
"""What the address says for a placement of no job."""
IN_ORDER = "in-order"
"""What the address says for ranks in order beside a placement."""


def choose_job(registry: Registry, site: Site) -> JobView | None:
    """What the page shows; without a word in the address the newest placement's job; None for nothing at all.

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
            return _alone(found, site)
        job = found
    file = queries.job_file(registry, job, site.viewer)
    st.query_params["job"] = file.stored.id
    left, middle, right = st.columns([2, 4, 4])
    with left:
        written("Job", "job", hint="ID or CLUSTER/ID", resets=["placement", "beside"])
        st.page_link(site.jobs, label="All jobs", icon=":material/list:")
    found_by_id = {info.id: info for info in file.placements}
    if file.placements and placement is None:  # a link that is sent shows the same when there is a newer one
        st.query_params["placement"] = file.placements[0].id
    with middle:
        chosen = choose(
            "Placement of its ranks",
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
        return JobView(file=file, opened=open_kept(registry, chosen))
    opened, other = both_kept(registry, chosen, beside)
    return JobView(file=file, opened=opened, beside=other)


def _first(registry: Registry, site: Site, placement: str | None) -> str | OpenPlacement | None:
    """The job, or a placement of none, where the address does not name a job."""
    if placement is None:
        return queries.newest(registry, site.viewer)
    opened, job = queries.owner(registry, placement, site.viewer)
    return job or opened


def _alone(opened: OpenPlacement, site: Site) -> JobView:
    """A placement of no job, which nobody owns.

    Raises
    ------
    UnknownName
    """
    if not site.viewer.sees(""):
        raise UnknownName("placement", opened.stored.id)
    st.query_params["job"] = NO_JOB
    st.query_params["placement"] = opened.stored.id
    with st.container(horizontal=True):
        st.markdown(f"Placement {plain(opened.stored.id)}, which is of no job.")
        st.page_link(site.jobs, label="All jobs", icon=":material/list:")
    return JobView(file=None, opened=opened)


def _beside(shown: StoredPlacementInfo, placements: Sequence[StoredPlacementInfo]) -> str | None:
    """What the placement is compared with; None for ranks in order."""
    fit = {info.id: info for info in queries.comparable(shown, placements)}
    runs = any(info.role == PRESENT for info in fit.values())
    chosen = choose(
        "Beside it (same profile, same wiring)",
        "beside",
        [*fit, IN_ORDER] if runs else [IN_ORDER, *fit],
        show=lambda key: "ranks in order" if key == IN_ORDER else _text(fit[key]),
        kind="beside",
    )
    return None if chosen == IN_ORDER else chosen


def _text(info: StoredPlacementInfo) -> str:
    """A placement in a list: the job's own, or a proposed one."""
    return f"{'as it runs' if info.role == PRESENT else 'proposed'} · {tables.placement_text(info)}"
