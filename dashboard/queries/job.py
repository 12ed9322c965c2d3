"""What the page of a job asks of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.queries.caching import open_kept
from dashboard.state.viewer import Viewer
from registry.errors import UnknownName
from registry.pages.jobs import JobFile, JobFilter
from registry.pages.placements import OpenPlacement
from registry.records.placements.placements import StoredPlacementInfo
from registry.records.placements.records import PRESENT
from registry.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobView:
    """What the page of a job shows.

    Attributes
    ----------
    file : JobFile or None
        The job with its placements; None for a placement of no job.
    opened : OpenPlacement or None
        The placement that is shown.
    beside : OpenPlacement or None
        The one that it is compared with; None: ranks in order.
    """

    file: JobFile | None
    opened: OpenPlacement | None = None
    beside: OpenPlacement | None = None

    @property
    def beside_name(self) -> str:
        """What stands beside the placement, in a sentence."""
        if self.beside is None:
            return "in order"
        stored = self.beside.stored
        return "how it runs" if stored.role == PRESENT else stored.id


def job_file(registry: Registry, job: str, viewer: Viewer) -> JobFile:
    """A job, by ``CLUSTER/ID`` or by an id that one cluster has, with its placements: one statement.

    Raises
    ------
    UnknownName
        No such job, none that may be seen, or one in two clusters.
    """
    cluster, _, name = job.rpartition("/")
    try:
        found = registry.job_pages.open(name, cluster or None)
    except UnknownName as error:
        raise _hushed(error, viewer) from error
    if not viewer.sees(found.stored.job.user):
        raise UnknownName("job", job)
    return found


def newest(registry: Registry, viewer: Viewer) -> str | OpenPlacement | None:
    """What the page shows where the address names nothing: a job, a placement of no job, or None.

    The job of the newest placement, else the newest job: at most two statements.
    """
    if viewer.only is None:
        placements = registry.placements.history(limit=1)
        if placements:
            return key_of(placements[0]) or open_kept(registry, placements[0].id)
    users = None if viewer.only is None else (viewer.only,)
    rows = registry.job_pages.page(JobFilter(users=users), limit=1).rows
    return rows[0].stored.id if rows else None


def owner(registry: Registry, placement: str, viewer: Viewer) -> tuple[OpenPlacement, str | None]:
    """A placement by its id and the job that it is of: one statement.

    Raises
    ------
    UnknownName
    """
    try:
        opened = open_kept(registry, placement)
    except UnknownName as error:
        raise _hushed(error, viewer) from error
    job = opened.stored.job
    return opened, None if job is None else f"{opened.stored.cluster}/{job}"


def key_of(info: StoredPlacementInfo) -> str | None:
    """The job of a placement as the address names it."""
    return None if info.job is None else f"{info.cluster}/{info.job}"


def comparable(
    shown: StoredPlacementInfo, placements: Sequence[StoredPlacementInfo]
) -> list[StoredPlacementInfo]:
    """Placements that can stand beside one, link by link: evaluated, of the same profile and wiring.

    Those that the job really runs with come first, then the newest.
    """
    fit = [
        other
        for other in placements
        if other.id != shown.id
        and other.congestion_seconds is not None
        and (other.snapshot, other.profile_id) == (shown.snapshot, shown.profile_id)
    ]
    return sorted(fit, key=lambda other: other.role != PRESENT)


def _hushed(error: UnknownName, viewer: Viewer) -> UnknownName:
    """The error without names of what others own, where only one's own may be seen."""
    return error if viewer.only is None else UnknownName(error.kind, error.name)
