"""What the circuits page shows: configurations that were proposed for optical switches."""

from __future__ import annotations

from dashboard.state.viewer import Viewer
from registry.jobs.jobs import job_key
from registry.jobs.owned import jobs_of
from registry.records.reconfigurations.records import ReconfigurationInfo, StoredReconfiguration
from registry.registry import Registry


def proposals(registry: Registry, viewer: Viewer) -> tuple[ReconfigurationInfo, ...]:
    """All that may be seen, the newest first: one statement; one more for one user's.

    One user sees those that are for their jobs alone.
    """
    found = registry.reconfigurations.list()
    if viewer.only is None:
        return found
    mine = jobs_of(registry.database, viewer.only)
    return tuple(one for one in found if one.jobs and mine.issuperset(_keys(one)))


def proposal(registry: Registry, identity: str) -> StoredReconfiguration:
    """One of them, whole: one statement.

    Raises
    ------
    UnknownName
    """
    return registry.reconfigurations.read(identity)


def _keys(one: ReconfigurationInfo) -> list[str]:
    return [job_key(one.cluster or "", job) for job in one.jobs]
