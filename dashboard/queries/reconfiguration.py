"""What the circuits page shows: configurations that were proposed for optical switches."""

from __future__ import annotations

from dashboard.state.viewer import Viewer
from registry.jobs.jobs import job_key, jobs_of_user
from registry.records.circuit_plan_records import CircuitPlanInfo, StoredCircuitPlan
from registry.registry import Registry


def proposals(registry: Registry, viewer: Viewer) -> tuple[CircuitPlanInfo, ...]:
    """All that may be seen, the newest first: one statement; one more for one user's.

    One user sees those that are for their jobs alone.
    """
    found = registry.circuit_plans.list()
    if viewer.only is None:
        return found
    mine = jobs_of_user(registry.database, viewer.only)
    return tuple(one for one in found if one.jobs and mine.issuperset(_keys(one)))


def proposal(registry: Registry, identity: str) -> StoredCircuitPlan:
    """One of them, whole: one statement.

    Raises
    ------
    UnknownName
    """
    return registry.circuit_plans.read(identity)


def _keys(one: CircuitPlanInfo) -> list[str]:
    return [job_key(one.cluster or "", job) for job in one.jobs]
