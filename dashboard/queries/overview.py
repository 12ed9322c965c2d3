"""Data of the overview: all clusters, and the busiest links, changes and faults of one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard.queries.caching import KEYS, SHARED
from dashboard.queries.fabric import cached_counters
from dashboard.queries.history import judged
from dashboard.queries.traffic import cached_traffic
from mapping.checks.checks import check
from mapping.checks.finding import ErrorLimits, Finding, Subject
from mapping.questions.live import Live
from mapping.traffic.job_loads import Regression
from mapping.traffic.ports import CounterHistory
from registry.model import Fabric, IntendedWiring, LinkRates
from registry.pages.overview import ClusterOverview, read_overview
from registry.registry import Registry
from registry.store.changes import Changes, compare
from registry.store.counters import Sweeps, rates_of
from registry.store.fabrics import ClusterInfo, Snapshot

A_DAY = timedelta(days=1)
CACHED = 8
"""Number of fabrics whose findings, changes and rates are cached."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overview:
    """Data of the overview.

    Attributes
    ----------
    clusters : ClusterOverview
        All clusters, their sources, and the stored data of the chosen one.
    live : Live or None
        Traffic of the running jobs of the chosen cluster, or None without a cluster.
    rates : LinkRates or None
        Measured rates, or None if fewer than two counter sweeps were saved.
    changes : Changes or None
        Changes of the wiring since a day ago, or None if there is no older observation.
    rerouted : bool
        True if the forwarding tables changed since a day ago.
    now : datetime
        Present time.
    """

    clusters: ClusterOverview
    live: Live | None
    rates: LinkRates | None
    changes: Changes | None
    rerouted: bool
    now: datetime


@st.cache_resource(max_entries=CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_overview(registry: Registry, cluster: str | None) -> Overview:
    """Return the overview at this moment; all viewers share it for `SHARED`."""
    return overview(registry, cluster, datetime.now(UTC))


def overview(registry: Registry, cluster: str | None, now: datetime) -> Overview:
    """Return the overview: one statement, and three more if the cluster's traffic is not cached.

    Parameters
    ----------
    cluster : str or None
        Default: the first cluster by name.

    Raises
    ------
    UnknownName
        There are clusters, but none with that name.
    """
    found = read_overview(registry.database, cluster, now - A_DAY)
    if found.cluster is None:
        return Overview(clusters=found, live=None, rates=None, changes=None, rerouted=False, now=now)
    live = cached_traffic(registry, found.clusters[found.cluster], None)
    present, before = live.running.snapshot, found.before
    return Overview(
        clusters=found,
        live=live,
        rates=_rates(present.id, tuple(sweep.at for sweep in found.sweeps), present.fabric, found.sweeps),
        changes=None if before is None else _changes(before.id, present.id, before, present.fabric),
        rerouted=before is not None and before.routing != present.routing,
        now=now,
    )


def cached_findings(registry: Registry, view: Overview, limits: ErrorLimits) -> tuple[Finding, ...]:
    """Return the findings of `almanac cluster check`: three statements, none if nothing is new."""
    assert view.live is not None
    plan = None if view.clusters.plan is None else view.clusters.plan.wiring
    cluster = view.clusters.clusters[view.live.running.snapshot.cluster]
    return _findings(registry, cluster, view.live.running.snapshot, plan, limits)


def recent_counters(
    registry: Registry, view: Overview, over: timedelta, limits: ErrorLimits
) -> CounterHistory | None:
    """Return the port counters of a period up to now: two statements, none if nothing is new."""
    if view.live is None or view.rates is None:
        return None
    snapshot = view.live.running.snapshot
    cluster = view.clusters.clusters[snapshot.cluster]
    return cached_counters(registry, cluster, snapshot, snapshot.id, None, over, limits)


def recent_regressions(registry: Registry, view: Overview, user: str | None) -> tuple[Regression, ...]:
    """Return the regressions of a day, newest first: one statement, none if no placement is new.

    Parameters
    ----------
    user : str or None
        Only regressions of this user's jobs, which takes one more statement.
    """
    series, _, found = judged(registry, view.clusters.clusters.values(), user)
    recent = [one for one in found if one.recorded_at > view.now - A_DAY]
    here = [one for one in recent if one.cluster == view.clusters.cluster]
    return tuple(sorted(here, key=lambda one: one.recorded_at, reverse=True)) if len(series) else ()


@st.cache_resource(
    max_entries=CACHED, show_spinner="Checking the fabric ...", hash_funcs=KEYS | {ErrorLimits: repr}
)
def _findings(
    registry: Registry,
    cluster: ClusterInfo,
    _snapshot: Snapshot,
    _plan: IntendedWiring | None,
    limits: ErrorLimits,
) -> tuple[Finding, ...]:
    """Return the findings of the checks; see `cached_findings`."""
    subject = Subject(
        fabric=_snapshot.fabric,
        plan=_plan,
        counters=registry.counters.recent(cluster.name, limits.period),
        losses=registry.fabrics.losses(_snapshot, _snapshot.observed_at - limits.period),
        limits=limits,
    )
    return check(subject)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _rates(
    snapshot_id: str, swept: tuple[datetime, ...], _fabric: Fabric, _sweeps: Sweeps
) -> LinkRates | None:
    return rates_of(_fabric, _sweeps)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _changes(before: str, after: str, _before: Snapshot, _after: Fabric) -> Changes:
    found = Changes() if before == after else compare(_before.fabric, _after)
    return replace(found, start_snapshot=before, end_snapshot=after)
