"""What the what-if page computes, kept."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dashboard.layouts import Drawing, redrawn
from dashboard.tables.what_if import Whole, whole
from mapping.service import Live, imagine
from mapping.traffic.what_if import Change, WhatIf
from registry.fabrics.fabrics import ClusterInfo
from registry.registry import Registry

KEPT = 4
"""Changes whose consequences are kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Imagined:
    """A change's consequences, and how the changed fabric is drawn with what is gone: at the same places."""

    what_if: WhatIf
    whole: Whole
    drawing: Drawing


def imagined_kept(
    registry: Registry, cluster: ClusterInfo, live: Live, drawing: Drawing, change: Change, rule: str
) -> Imagined:
    """What a change would do to the running jobs: one statement, and none when it is asked for again.

    Raises
    ------
    UnknownName, InvalidValue
    """
    version = f"{registry.database.uri} {cluster.name} {cluster.version} {live.running.at.isoformat()}"
    return _imagined(registry, live, drawing, version, change, rule)


@st.cache_resource(
    max_entries=KEPT, show_spinner="Routing the jobs on the changed fabric ...", hash_funcs={Change: repr}
)
def _imagined(
    _registry: Registry, _live: Live, _drawing: Drawing, version: str, change: Change, rule: str
) -> Imagined:
    found = imagine(_registry, _live, change, rule=rule)
    drawn = whole(found)
    return Imagined(what_if=found, whole=drawn, drawing=redrawn(_drawing, drawn.fabric))
