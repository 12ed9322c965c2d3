"""Data of the circuits page: circuit plans for optical switches."""

from __future__ import annotations

from dashboard.state.viewer import Viewer
from registry.jobs.jobs import job_key, jobs_of_user
from registry.records.circuit_plans import CircuitPlanInfo, StoredCircuitPlan
from registry.registry import Registry


def visible_plans(registry: Registry, viewer: Viewer) -> tuple[CircuitPlanInfo, ...]:
    """Return all visible circuit plans, newest first: one statement; one more if limited to a user.

    A viewer who is limited to one user sees only plans made for this user's jobs alone.
    """
    found = registry.circuit_plans.list()
    if viewer.only is None:
        return found
    mine = jobs_of_user(registry.database, viewer.only)
    return tuple(one for one in found if one.jobs and mine.issuperset(_keys(one)))


def read_plan(registry: Registry, identity: str) -> StoredCircuitPlan:
    """Return one circuit plan with all its arrays: one statement.

    Raises
    ------
    UnknownName
    """
    return registry.circuit_plans.read(identity)


def _keys(one: CircuitPlanInfo) -> list[str]:
    return [job_key(one.cluster or "", job) for job in one.jobs]
