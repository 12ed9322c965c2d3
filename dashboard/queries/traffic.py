"""Traffic of the running jobs, and which ranks load a link; cached for all sessions."""

from __future__ import annotations

from datetime import datetime, timedelta

import streamlit as st

from mapping.service import Live, pairs_on, traffic
from mapping.traffic.rank_pairs import RankPairs, rank_pairs
from registry.fabrics.fabrics import ClusterInfo
from registry.pages.placements import OpenPlacement
from registry.registry import Registry

TRAFFICS_CACHED = 4
"""Number of clusters and times whose traffic is cached."""
FRESH = timedelta(minutes=5)
"""Lifetime of a cache entry: jobs with a known end time end without a change in the registry."""


def cached_traffic(registry: Registry, cluster: ClusterInfo, at: datetime | None = None) -> Live:
    """Return the traffic of the jobs that run on a cluster: three statements, none if it is cached.

    Parameters
    ----------
    cluster : ClusterInfo
        The cluster; entries cached for an older version of it are not used.
    at : datetime, optional
        Time (default: now).

    Raises
    ------
    UnknownName
        No observation of the cluster until then.
    """
    return _live(registry, registry.database.uri, cluster.name, cluster.version, at)


@st.cache_resource(
    max_entries=TRAFFICS_CACHED, ttl=FRESH, show_spinner="Adding up the traffic of the running jobs ..."
)
def _live(_registry: Registry, uri: str, cluster: str, version: int, at: datetime | None) -> Live:
    return traffic(_registry, cluster, at)


PAIRS_CACHED = 256
"""Number of links and jobs whose rank pairs are cached."""


def cached_rank_pairs(
    registry: Registry, cluster: ClusterInfo, at: datetime | None, live: Live, job: str, row: int, most: int
) -> RankPairs:
    """Return the rank pairs of a running job that load a link: one statement, none if they are cached.

    Raises
    ------
    UnknownName
        The job has no traffic.
    """
    version = f"{registry.database.uri} {cluster.name} {cluster.version} {live.running.at.isoformat()}"
    return _pairs(registry, live, version, job, row, most)


def pairs_of_placement(opened: OpenPlacement, row: int, most: int) -> RankPairs | None:
    """Return the rank pairs of a placement that load a link, or None if its profile is not known.

    Raises
    ------
    InvalidPlacement, DisconnectedAllocation, UnreachablePair
    """
    evaluation = opened.stored.evaluation
    if opened.profile is None or evaluation is None:
        return None
    return rank_pairs(
        opened.snapshot.fabric,
        opened.profile.profile,
        opened.stored.placement,
        row,
        routing=evaluation.routing,
        rails=evaluation.rails,
        most=most,
    )


@st.cache_resource(max_entries=PAIRS_CACHED, show_spinner=False)
def _pairs(_registry: Registry, _live: Live, version: str, job: str, row: int, most: int) -> RankPairs:
    return pairs_on(_registry, _live, job, row, most=most)


def clusters(registry: Registry) -> dict[str, ClusterInfo]:
    """Return all clusters by name: one statement."""
    return {info.name: info for info in registry.fabrics.clusters()}
