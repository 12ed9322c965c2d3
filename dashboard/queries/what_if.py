"""Data of the what-if page: the consequences of a change, cached."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dashboard.layouts import Drawing, redrawn
from dashboard.queries.caching import KEYS
from dashboard.tables.what_if import ChangedFabric, changed_fabric
from mapping.service.live import Live, imagine
from mapping.traffic.what_if import Change, WhatIf
from registry.fabrics.fabrics import ClusterInfo
from registry.registry import Registry

CACHED = 4
"""Number of cached changes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consequences:
    """Consequences of a change, and the drawing of the changed fabric, removed links included."""

    what_if: WhatIf
    changed: ChangedFabric
    drawing: Drawing


@st.cache_resource(
    max_entries=CACHED,
    show_spinner="Routing the jobs on the changed fabric ...",
    hash_funcs=KEYS | {Change: repr},
)
def cached_what_if(
    registry: Registry, cluster: ClusterInfo, live: Live, _drawing: Drawing, change: Change, rule: str
) -> Consequences:
    """Return what a change would do to the running jobs: one statement, none if the result is cached.

    Raises
    ------
    UnknownName, InvalidValue
    """
    found = imagine(registry, live, change, rule=rule)
    changed = changed_fabric(found)
    return Consequences(what_if=found, changed=changed, drawing=redrawn(_drawing, changed.fabric))
