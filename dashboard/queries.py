"""What each page asks of the registry: one object a view, at most three statements each.

What has an id made from its content never changes, so it is kept, for all sessions alike and not
copied: every array of it is read-only. Lists are asked for each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import streamlit as st

from dashboard import layouts
from dashboard.layouts import Drawing
from mapping import evaluate
from mapping.strategies.in_order import in_order
from registry.errors import DisconnectedAllocation, UnreachablePair
from registry.fabrics import ClusterInfo, Snapshot
from registry.jobs import StoredJob
from registry.model import Evaluation, Fabric, Floats
from registry.opened import OpenPlacement, open_placement, snapshot_as_of
from registry.placements import StoredPlacementInfo
from registry.registry import Registry

KEPT = 16
"""Fabrics, and placements with theirs, that are kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FabricView:
    """What the fabric page shows.

    Attributes
    ----------
    snapshot : Snapshot
        The wiring as of the time that was asked for, or the one that the placement is on.
    opened : OpenPlacement or None
        The placement whose congestion is shown.
    """

    snapshot: Snapshot
    opened: OpenPlacement | None

    @property
    def link_bytes(self) -> Floats | None:
        """float64[m]: loads of the links by the placement; None without one."""
        evaluation = None if self.opened is None else self.opened.stored.evaluation
        return None if evaluation is None else evaluation.link_bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobList:
    """What the job page can show.

    Attributes
    ----------
    jobs : dict of str to StoredJob
        By id, the latest first.
    placements : tuple of StoredPlacementInfo
        All, the newest first.
    """

    jobs: dict[str, StoredJob]
    placements: tuple[StoredPlacementInfo, ...]

    def of_job(self, job: StoredJob) -> list[StoredPlacementInfo]:
        """Placements of a job, the newest first."""
        return [p for p in self.placements if p.job == job.job.id and p.cluster == job.cluster]

    def without_job(self) -> list[StoredPlacementInfo]:
        """Placements of no job, the newest first."""
        return [p for p in self.placements if p.job is None]


def clusters(registry: Registry) -> dict[str, ClusterInfo]:
    """All clusters by name: one statement."""
    return {info.name: info for info in registry.fabrics.clusters()}


def placements(registry: Registry, cluster: str | None = None) -> tuple[StoredPlacementInfo, ...]:
    """Evaluated placements of a cluster or of all, the newest first: one statement."""
    return tuple(p for p in registry.placements.history(cluster) if p.congestion_seconds is not None)


def fabric_view(
    registry: Registry, cluster: ClusterInfo, at: datetime | None, placement: str | None
) -> FabricView:
    """The fabric page's fabric, with a placement or without: one statement.

    Raises
    ------
    UnknownName
        Nothing was seen of the cluster until then.
    """
    if placement is not None:
        opened = open_kept(registry, placement)
        return FabricView(snapshot=opened.snapshot, opened=opened)
    if at is not None:
        return FabricView(snapshot=snapshot_as_of(registry.database, cluster.name, at), opened=None)
    kept = _content(registry, registry.database.uri, cluster.snapshot)
    return FabricView(snapshot=replace(kept, observed_at=cluster.last_observed_at), opened=None)


def job_list(registry: Registry) -> JobList:
    """All jobs and placements: two statements."""
    return JobList(
        jobs={stored.id: stored for stored in registry.jobs.list()}, placements=registry.placements.history()
    )


def open_kept(registry: Registry, placement: str) -> OpenPlacement:
    """A placement with its fabric and profile: one statement, and none when it is asked for again."""
    return _opened(registry, registry.database.uri, placement)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def drawing(content: str, _fabric: Fabric) -> Drawing:
    """How the fabric of a content is drawn: computed once."""
    return layouts.draw(_fabric)


@st.cache_resource(max_entries=4 * KEPT, show_spinner="Evaluating the ranks in order ...")
def evaluated_in_order(placement: str, _opened: OpenPlacement) -> Evaluation | None:
    """What the same ranks cost in order; None where profile or routes are missing."""
    stored, profile, fabric = _opened.stored, _opened.profile, _opened.snapshot.fabric
    if profile is None or stored.evaluation is None:
        return None
    if stored.evaluation.routing == "tables" and fabric.tables is None:
        return None
    baseline = in_order(stored.placement.ranks, stored.placement.allocation)
    try:
        return evaluate(
            fabric,
            profile.profile,
            baseline,
            routing=stored.evaluation.routing,
            rails=stored.evaluation.rails,
        )
    except (DisconnectedAllocation, UnreachablePair):
        return None


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _content(_registry: Registry, uri: str, content: str) -> Snapshot:
    return _registry.fabrics.read_content(content)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _opened(_registry: Registry, uri: str, placement: str) -> OpenPlacement:
    return open_placement(_registry.database, placement)
