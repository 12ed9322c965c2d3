"""Data of the overview: all clusters, and the busiest links, changes and faults of one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import streamlit as st

from dashboard.queries.traffic import cached_traffic
from mapping.checks.catalog import check
from mapping.checks.finding import Finding, Subject
from mapping.service.live import Live
from registry.counters.counters import Sweeps, rates_of
from registry.fabrics.changes import Changes, compare
from registry.fabrics.fabrics import Snapshot
from registry.model import Fabric, LinkRates
from registry.pages.overview import ClusterOverview, read_overview
from registry.registry import Registry

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


def cached_findings(view: Overview) -> tuple[Finding, ...]:
    """Return the findings of `almanac cluster check`; cached by fabric, tables and intended wiring."""
    assert view.live is not None
    snapshot, plan = view.live.running.snapshot, view.clusters.plan
    subject = Subject(fabric=snapshot.fabric, plan=None if plan is None else plan.wiring)
    return _findings(snapshot.id, snapshot.routing, None if plan is None else plan.id, subject)


@st.cache_resource(max_entries=CACHED, show_spinner="Checking the fabric ...")
def _findings(
    snapshot_id: str, routing: str | None, plan: str | None, _subject: Subject
) -> tuple[Finding, ...]:
    return check(_subject)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _rates(
    snapshot_id: str, swept: tuple[datetime, ...], _fabric: Fabric, _sweeps: Sweeps
) -> LinkRates | None:
    return rates_of(_fabric, _sweeps)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _changes(before: str, after: str, _before: Snapshot, _after: Fabric) -> Changes:
    found = Changes() if before == after else compare(_before.fabric, _after)
    return replace(found, start_snapshot=before, end_snapshot=after)
