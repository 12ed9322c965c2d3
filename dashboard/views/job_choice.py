"""Part of the job page: the job, the placement and the one to compare it with, as the address names them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.queries import door
from dashboard.queries import job as queries
from dashboard.queries.job import JobView
from dashboard.queries.jobs import cached_job
from dashboard.state.viewer import Viewer
from dashboard.tables.placements import placement_text
from dashboard.widgets.controls import choose, named
from registry.errors import UnknownName
from registry.pages.placements import OpenPlacement
from registry.registry import Registry
from registry.store.placement_rows import PRESENT, StoredPlacementInfo

NO_JOB = "none"
"""Value of `job` in the address for a placement without a job."""
IN_ORDER = "in-order"
"""Value of `beside` in the address for a comparison with ranks in order."""


def find_job(registry: Registry, viewer: Viewer) -> JobView | None:
    """Return what the page shows: by default the job of the newest placement.

    None means that the registry holds neither jobs nor placements.

    Raises
    ------
    UnknownName
    """
    job, placement = st.query_params.get("job", "").strip(), st.query_params.get("placement")
    if not job or job == NO_JOB:
        found = _first(registry, viewer, placement)
        if found is None:
            return None
        if isinstance(found, OpenPlacement):
            return _without_job(found, viewer)
        job = found
    file = queries.job_file(registry, job, viewer)
    if placement is not None and all(info.id != placement for info in file.placements):
        cached_job.clear()  # the placement may have been saved just now
        file = queries.job_file(registry, job, viewer)
    st.query_params["job"] = file.stored.id
    infos = {info.id: info for info in file.placements}
    chosen = named("placement", list(infos)) or queries.shown_first(file.placements)
    if chosen is None:
        return JobView(file=file)
    # so that a copied link shows this placement even when there is a newer one
    st.query_params["placement"] = chosen
    options = _compared(infos[chosen], file.placements)
    beside = named("beside", options) or options[0]
    if beside == IN_ORDER:
        return JobView(file=file, opened=door.placement(registry, chosen, viewer))
    opened, other = door.pair(registry, chosen, beside, viewer)
    return JobView(file=file, opened=opened, beside=other)


def draw_choice(view: JobView) -> None:
    """Draw the choice of the placement and of the one that it is compared with."""
    if view.file is None or view.opened is None:
        return
    infos = {info.id: info for info in view.file.placements}
    chosen = view.opened.stored.id
    choose(
        "Placement",
        "placement",
        list(infos),
        show=lambda key: _text(infos[key]),
        resets=["beside"],
    )
    choose(
        "Compare with",
        "beside",
        _compared(infos[chosen], view.file.placements),
        show=lambda key: "ranks in order" if key == IN_ORDER else _text(infos[key]),
    )


def _first(registry: Registry, viewer: Viewer, placement: str | None) -> str | OpenPlacement | None:
    """Return the job, or a placement without a job, if the address does not name a job."""
    if placement is None:
        return queries.newest(registry, viewer)
    opened, job = queries.owner(registry, placement, viewer)
    return job or opened


def _without_job(opened: OpenPlacement, viewer: Viewer) -> JobView:
    """Return the view of a placement without a job, which belongs to no user.

    Raises
    ------
    UnknownName
    """
    if not viewer.sees(""):
        raise UnknownName("placement", opened.stored.id)
    st.query_params["job"] = NO_JOB
    st.query_params["placement"] = opened.stored.id
    return JobView(file=None, opened=opened)


def _compared(shown: StoredPlacementInfo, placements: Sequence[StoredPlacementInfo]) -> list[str]:
    """Return what a placement can be compared with, first the default: how the job runs, or in order."""
    fit = queries.comparable(shown, placements)
    ids = [info.id for info in fit]
    return [*ids, IN_ORDER] if any(info.role == PRESENT for info in fit) else [IN_ORDER, *ids]


def _text(info: StoredPlacementInfo) -> str:
    """Return the text of a placement in a list."""
    return f"{'as it runs' if info.role == PRESENT else 'proposed'} · {placement_text(info)}"
