"""Data of the pages Fabric and Planner; shared by all viewers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import streamlit as st

from dashboard.layouts.drawing import Drawing, redrawn
from dashboard.queries import door
from dashboard.queries.caching import KEYS, SHARED
from dashboard.queries.traffic import cached_traffic
from dashboard.state.viewer import Viewer
from dashboard.tables.what_if import ChangedFabric, changed_fabric
from mapping.checks.checks import check
from mapping.checks.finding import ErrorLimits, Finding, Subject
from mapping.questions.live import Live, imagine, utilisation
from mapping.traffic.ports import CounterHistory
from mapping.traffic.shared_load import AgainstCounters, against_counters
from mapping.traffic.what_if import Change, WhatIf
from registry.errors import UnknownName
from registry.model import Fabric, Floats, LinkRates
from registry.pages.counters import read_growth
from registry.pages.devices import DeviceHistory, read_device_history
from registry.pages.fabric import FabricHistory, read_fabric_history
from registry.pages.placements import OpenPlacement
from registry.registry import Registry
from registry.store.counters import Sweeps, rates_of
from registry.store.fabrics import ClusterInfo, Snapshot

CHANGES_CACHED = 4
"""Number of cached changes."""
PERIODS_CACHED = 4
"""Number of clusters and periods whose counters are cached."""
SMALL_CACHED = 64
"""Number of cached results that are small."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FabricView:
    """Data of the fabric page.

    Attributes
    ----------
    cluster : ClusterInfo
    snapshot : Snapshot
        The fabric that is shown.
    time : datetime or None
        Time of the fabric, or None for now.
    live : Live or None
        Traffic of the running jobs, or None if a placement is shown.
    opened : OpenPlacement or None
        Placement whose traffic is shown instead, on the fabric it was computed for.
    rates : LinkRates or None
        Rates measured by port counters, or None if there are none or they were not requested.
    link_bytes : float64[m] or None
        Estimated bytes per iteration on each link, or None if no traffic is known.
    """

    cluster: ClusterInfo
    snapshot: Snapshot
    time: datetime | None
    live: Live | None
    opened: OpenPlacement | None
    rates: LinkRates | None
    link_bytes: Floats | None

    @property
    def fabric(self) -> Fabric:
        """Hosts, switches and links of the snapshot."""
        return self.snapshot.fabric

    @property
    def share(self) -> Floats | None:
        """Measured utilisation of each link (float64[m]), or None if nothing was measured."""
        return None if self.rates is None else self.rates.share

    @property
    def seconds(self) -> Floats | None:
        """Estimated time of each link (float64[m]), or None if no traffic is known."""
        return None if self.link_bytes is None else self.link_bytes / self.fabric.links.capacity

    @property
    def estimated_share(self) -> Floats | None:
        """Estimated utilisation of each link (float64[m]), or None unless all times are known."""
        return None if self.live is None else utilisation(self.live, self.rates)

    @property
    def against(self) -> AgainstCounters | None:
        """Estimated and measured utilisation on one scale, or None if one of them is missing."""
        if self.rates is None or self.link_bytes is None:
            return None
        found = against_counters(self.fabric, self.link_bytes, self.rates.bytes_per_second)
        return None if np.isnan(found.iterations_per_second) else found


@st.cache_resource(max_entries=SMALL_CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_fabric_history(registry: Registry, cluster: str | None, time: datetime | None) -> FabricHistory:
    """Return all clusters, with the timeline and latest counters of one: one statement for all viewers.

    Raises
    ------
    UnknownName
        No such cluster.
    """
    return read_fabric_history(registry.database, cluster, time, counters=True)


@st.cache_resource(max_entries=PERIODS_CACHED, show_spinner=False)
def _rates(
    snapshot_id: str, swept: tuple[datetime, ...], _fabric: Fabric, _sweeps: Sweeps
) -> LinkRates | None:
    return rates_of(_fabric, _sweeps)


@st.cache_resource(
    max_entries=PERIODS_CACHED,
    show_spinner="Reading the port counters ...",
    hash_funcs=KEYS | {ErrorLimits: repr},
)
def cached_counters(
    registry: Registry,
    cluster: ClusterInfo,
    _snapshot: Snapshot,
    snapshot_id: str,
    time: datetime | None,
    over: timedelta,
    limits: ErrorLimits,
) -> CounterHistory | None:
    """Return utilisation and errors over time: two statements; None without two sweeps in the period."""
    parts = read_growth(registry.database, cluster.name, over, time)
    return CounterHistory.of(_snapshot.fabric, parts, limits)


@st.cache_resource(max_entries=SMALL_CACHED, show_spinner=False, hash_funcs=KEYS)
def cached_device_history(
    registry: Registry, cluster: ClusterInfo, _fabric: Fabric, vertex: int, name: str
) -> DeviceHistory:
    """Return when the cables and the name of a device changed: one statement."""
    return read_device_history(registry.database, cluster.name, _fabric, vertex)


@st.cache_resource(
    max_entries=PERIODS_CACHED, show_spinner="Checking the fabric ...", hash_funcs=KEYS | {ErrorLimits: repr}
)
def cached_fabric_findings(
    registry: Registry,
    cluster: ClusterInfo,
    _snapshot: Snapshot,
    snapshot_id: str,
    time: datetime | None,
    limits: ErrorLimits,
    _counters: CounterHistory | None,
) -> tuple[Finding, ...]:
    """Return the findings of ``almanac cluster check`` at a time: two statements."""
    try:
        plan = registry.intended.read(cluster.name, time).wiring
    except UnknownName:
        plan = None
    start = _snapshot.observed_at - limits.period
    subject = Subject(
        fabric=_snapshot.fabric,
        plan=plan,
        counters=None if _counters is None else _counters.errors.grown,
        losses=registry.fabrics.losses(_snapshot, start, time),
        limits=limits,
    )
    return check(subject)


def fabric_view(
    registry: Registry,
    found: FabricHistory,
    time: datetime | None,
    placement: str | None,
    viewer: Viewer,
) -> FabricView:
    """Return a cluster's fabric with the traffic of the running jobs, or of a placement.

    One statement for a placement, those of `cached_traffic` for running jobs, none if it is cached.

    Raises
    ------
    UnknownName
        No observation of the cluster until then, or no such placement that the viewer may see.
    """
    line = found.timeline
    assert line is not None
    cluster = found.clusters[line.cluster]
    opened = None if placement is None else door.placement(registry, placement, viewer)
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
        time=time,
        live=live,
        opened=opened,
        rates=_rates(snapshot.id, tuple(sweep.at for sweep in found.sweeps), snapshot.fabric, found.sweeps),
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
    registry: Registry, cluster: ClusterInfo, live: Live, _drawing: Drawing, change: Change, rule: str | None
) -> Consequences:
    """Return what a change would do to the running jobs: one statement, none if the result is cached.

    Raises
    ------
    UnknownName, InvalidValue
    """
    found = imagine(registry, live, change, rule=rule)
    changed = changed_fabric(found)
    return Consequences(what_if=found, changed=changed, drawing=redrawn(_drawing, changed.fabric))
