"""Data of the fabric page and of the what-if page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from dashboard.layouts.drawing import Drawing, redrawn
from dashboard.queries.caching import KEYS, cached_placement
from dashboard.queries.traffic import cached_traffic
from dashboard.tables.what_if import ChangedFabric, changed_fabric
from mapping.service.live import Live, imagine
from mapping.traffic.what_if import Change, WhatIf
from registry.counters.counters import rates_of
from registry.errors import UnknownName
from registry.fabrics.fabrics import ClusterInfo, Snapshot
from registry.model import Fabric, Floats, LinkRates
from registry.pages.fabric import FabricHistory
from registry.pages.placements import OpenPlacement
from registry.registry import Registry

CHANGES_CACHED = 4
"""Number of cached changes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FabricView:
    """Data of the fabric page.

    Attributes
    ----------
    cluster : ClusterInfo
    snapshot : Snapshot
        The fabric that is shown.
    live : Live or None
        Traffic of the running jobs, or None if a placement is shown.
    opened : OpenPlacement or None
        Placement whose traffic is shown instead, on the fabric it was computed for.
    rates : LinkRates or None
        Rates measured by port counters, or None if there are none or they were not requested.
    link_bytes : float64[m] or None
        Estimated bytes per period on each link, or None if no traffic is known.
    """

    cluster: ClusterInfo
    snapshot: Snapshot
    live: Live | None
    opened: OpenPlacement | None
    rates: LinkRates | None
    link_bytes: Floats | None

    @property
    def fabric(self) -> Fabric:
        """Hosts, switches and links of the snapshot."""
        return self.snapshot.fabric


def fabric_view(
    registry: Registry, found: FabricHistory, time: datetime | None, placement: str | None
) -> FabricView:
    """Return a cluster's fabric with the traffic of the running jobs, or of a placement.

    One statement for a placement, those of `cached_traffic` for running jobs, none if it is cached.

    Raises
    ------
    UnknownName
        No observation of the cluster until then, or no such placement.
    """
    line = found.timeline
    assert line is not None
    cluster = found.clusters[line.cluster]
    opened = None if placement is None else cached_placement(registry, placement)
    if opened is not None and opened.stored.cluster != cluster.name:
        raise UnknownName(
            "placement", placement or "", remedy=f"it belongs to cluster {opened.stored.cluster}"
        )
    live = None
    if opened is not None:
        snapshot, evaluation = opened.snapshot, opened.stored.evaluation
        link_bytes = None if evaluation is None else evaluation.link_bytes
    else:
        live = cached_traffic(registry, cluster, time)
        snapshot = live.running.snapshot
        link_bytes = live.shared.link_bytes if len(live.shared) else None
    return FabricView(
        cluster=cluster,
        snapshot=snapshot,
        live=live,
        opened=opened,
        rates=rates_of(snapshot.fabric, found.sweeps),
        link_bytes=link_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consequences:
    """Consequences of a change, and the drawing of the changed fabric, removed links included."""

    what_if: WhatIf
    changed: ChangedFabric
    drawing: Drawing


@st.cache_resource(
    max_entries=CHANGES_CACHED,
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
