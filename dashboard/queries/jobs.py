"""Data of the list of jobs; shared by all viewers."""

from __future__ import annotations

import streamlit as st

from dashboard.queries.caching import KEYS, SHARED
from registry.pages.jobs import JobChoices, JobFilter, JobPage
from registry.registry import Registry

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
