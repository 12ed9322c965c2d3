"""Jobs with their placements, and the list of jobs; shared by all viewers, who get them from `door`."""

from __future__ import annotations

import streamlit as st

from dashboard.queries.caching import KEYS, SHARED
from registry.pages.jobs import JobChoices, JobFile, JobFilter, JobPage
from registry.registry import Registry

JOBS_CACHED = 64
"""Number of cached jobs."""
PAGES_CACHED = 64
"""Number of cached pages of the list, each with one filter."""


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_choices(registry: Registry) -> JobChoices:
    """Return what jobs can be filtered by: one statement for all viewers in `SHARED`."""
    return registry.job_pages.choices()


@st.cache_resource(
    max_entries=PAGES_CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS | {JobFilter: repr}
)
def cached_page(registry: Registry, wanted: JobFilter, limit: int, offset: int) -> JobPage:
    """Return some of the jobs that match a filter: one statement for all viewers in `SHARED`."""
    return registry.job_pages.page(wanted, limit=limit, offset=offset)


@st.cache_resource(max_entries=JOBS_CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_job(registry: Registry, job: str, cluster: str | None) -> JobFile:
    """Return a job with its placements: one statement for all viewers in `SHARED`."""
    return registry.job_pages.open(job, cluster)
