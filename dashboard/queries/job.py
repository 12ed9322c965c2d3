"""Data of the job page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard.queries import door
from dashboard.queries.caching import CACHED
from dashboard.state.viewer import Viewer
from mapping.traffic.job_loads import Neighbours
from registry.model import Fabric
from registry.pages.jobs import JobFile, JobFilter
from registry.pages.placements import OpenPlacement
from registry.registry import Registry
from registry.store.placement_rows import PRESENT, StoredPlacementInfo


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobView:
    """Data of the job page.

    Attributes
    ----------
    file : JobFile or None
        The job with its placements, or None if the placement belongs to no job.
    opened : OpenPlacement or None
        The placement that is shown, or None if there is none.
    beside : OpenPlacement or None
        The placement it is compared with, or None for ranks in order.
    """

    file: JobFile | None
    opened: OpenPlacement | None = None
    beside: OpenPlacement | None = None

    @property
    def beside_name(self) -> str:
        """Name of the compared placement, for use in a sentence."""
        if self.beside is None:
            return "in order"
        stored = self.beside.stored
        return "how it runs" if stored.role == PRESENT else stored.id


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def neighbours(snapshot_id: str, _fabric: Fabric) -> Neighbours:
    """Return which hosts of a snapshot share a switch; computed once."""
    return Neighbours.of(_fabric)


def job_file(registry: Registry, job: str, viewer: Viewer) -> JobFile:
    """Return a job with its placements, by ``CLUSTER/ID`` or by an id found in one cluster.

    Raises
    ------
    UnknownName
        No such job, a job that the viewer may not see, or jobs of that id in several clusters.
    """
    cluster, _, name = job.rpartition("/")
    return door.job(registry, name, cluster or None, viewer)


def newest(registry: Registry, viewer: Viewer) -> str | OpenPlacement | None:
    """Return what the page shows by default: a job, a placement that belongs to no job, or None.

    This is the job of the newest placement, or else the newest job: at most two statements.
    """
    if viewer.only is None:
        placements = registry.placements.history(limit=1)
        if placements:
            return key_of(placements[0]) or door.placement(registry, placements[0].id, viewer)
    rows = door.every_job(registry, JobFilter(), 1, viewer)
    return rows[0].stored.id if rows else None


def owner(registry: Registry, placement: str, viewer: Viewer) -> tuple[OpenPlacement, str | None]:
    """Return a placement by its id, and its job: one statement.

    Raises
    ------
    UnknownName
    """
    opened = door.placement(registry, placement, viewer)
    job = opened.stored.job
    return opened, None if job is None else f"{opened.stored.cluster}/{job}"


def key_of(info: StoredPlacementInfo) -> str | None:
    """Return the job of a placement as written in addresses, or None."""
    return None if info.job is None else f"{info.cluster}/{info.job}"


def shown_first(placements: Sequence[StoredPlacementInfo]) -> str | None:
    """Return the id of the placement that is shown by default; None if there are none.

    It is the best proposed one that can be compared with how the job runs, else the newest one.
    """
    fit = [
        info
        for info in placements
        if info.role != PRESENT and any(one.role == PRESENT for one in comparable(info, placements))
    ]
    best = min(fit, key=lambda info: info.congestion_seconds or math.inf, default=None)
    return best.id if best is not None else placements[0].id if placements else None


def comparable(
    shown: StoredPlacementInfo, placements: Sequence[StoredPlacementInfo]
) -> list[StoredPlacementInfo]:
    """Return the placements that can be compared with one link by link: same profile, same wiring.

    Placements with which the job actually runs come first, then the newest.
    """
    fit = [
        other
        for other in placements
        if other.id != shown.id
        and other.congestion_seconds is not None
        and (other.snapshot, other.profile_id) == (shown.snapshot, shown.profile_id)
    ]
    return sorted(fit, key=lambda other: other.role != PRESENT)
