"""Data of the tab Circuits: plans of all clusters, and one in full; shared by all viewers."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.queries.caching import CACHED, KEYS, SHARED, cached_jobs_of_user
from dashboard.state.viewer import Viewer
from registry.registry import Registry
from registry.store.circuit_plans import CircuitPlanInfo, StoredCircuitPlan
from registry.store.jobs import job_key


def visible_plans(registry: Registry, viewer: Viewer) -> Sequence[CircuitPlanInfo]:
    """Return all visible circuit plans, newest first: one statement; one more if limited to a user.

    A viewer who is limited to one user sees only plans made for this user's jobs alone.
    """
    found = _plans(registry)
    if viewer.only is None:
        return found
    mine = cached_jobs_of_user(registry, viewer.only)
    return [
        one for one in found if one.jobs and all(job_key(one.cluster or "", job) in mine for job in one.jobs)
    ]


@st.cache_resource(max_entries=CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_plan(registry: Registry, plan: str) -> StoredCircuitPlan:
    """Return a plan in full: one statement for all viewers in `SHARED`, since it may be applied later.

    Raises
    ------
    UnknownName
    """
    return registry.circuit_plans.read(plan)


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def _plans(registry: Registry) -> tuple[CircuitPlanInfo, ...]:
    return registry.circuit_plans.list()
