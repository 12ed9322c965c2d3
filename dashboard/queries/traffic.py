"""Traffic of the running jobs, and which ranks load a link; cached for all sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import streamlit as st

from dashboard.queries.caching import KEYS
from dashboard.state.viewer import Viewer
from dashboard.tables.sharing import sharers
from mapping.distances.cost_model import CostModel
from mapping.questions.live import Live, pairs_on, traffic, with_measured_iterations
from mapping.traffic.job_loads import RankPairs, rank_pairs
from mapping.traffic.shared_load import Interference, interference
from registry.pages.fabric import read_fabric_history
from registry.pages.placements import OpenPlacement
from registry.registry import Registry
from registry.store.counters import rates_of
from registry.store.fabrics import ClusterInfo
from registry.store.jobs import StoredJob

TRAFFICS_CACHED = 4
"""Number of clusters and times whose traffic is cached."""
PAIRS_CACHED = 256
"""Number of links and jobs whose rank pairs are cached."""
FRESH = timedelta(minutes=5)
"""Lifetime of a cache entry: jobs with a known end time end without a change in the registry."""


@st.cache_resource(
    max_entries=TRAFFICS_CACHED,
    ttl=FRESH,
    show_spinner="Adding up the traffic of the running jobs ...",
    hash_funcs=KEYS,
)
def cached_traffic(registry: Registry, cluster: ClusterInfo, time: datetime | None) -> Live:
    """Return the traffic of the jobs that run on a cluster: three statements, none if it is cached.

    Parameters
    ----------
    cluster : ClusterInfo
        The cluster; entries cached for an older version of it are not used.
    time : datetime or None
        None for now.

    Raises
    ------
    UnknownName
        No observation of the cluster until then.
    """
    return traffic(registry, cluster.name, time)


@st.cache_resource(max_entries=TRAFFICS_CACHED, ttl=FRESH, show_spinner=False, hash_funcs=KEYS)
def cached_sharing(
    registry: Registry, cluster: ClusterInfo, time: datetime | None
) -> tuple[Live, Interference]:
    """Return the traffic of running jobs with measured times of iterations, and what sharing costs each job.

    One statement more than `cached_traffic`, which also describes parameters and errors.
    """
    live = cached_traffic(registry, cluster, time)
    read = read_fabric_history(registry.database, cluster.name, live.running.at, counters=True)
    live = with_measured_iterations(live, rates_of(live.fabric, read.sweeps))
    return live, interference(live.shared)


def sharers_of(
    registry: Registry, clusters: Mapping[str, ClusterInfo], jobs: Sequence[StoredJob], viewer: Viewer
) -> dict[str, list[str]]:
    """Return for each running job the jobs on its links, with the statements of `cached_traffic`."""
    found: dict[str, list[str]] = {}
    running = {one.cluster for one in jobs if one.job.started_at is not None and not one.job.has_ended}
    for cluster in sorted(running & clusters.keys()):
        shared = cached_traffic(registry, clusters[cluster], None).shared
        found |= {f"{cluster}/{job}": others for job, others in sharers(shared, viewer).items()}
    return found


@st.cache_resource(max_entries=PAIRS_CACHED, show_spinner=False, hash_funcs=KEYS)
def cached_rank_pairs(
    registry: Registry, cluster: ClusterInfo, live: Live, job: str, row: int, most: int
) -> RankPairs:
    """Return the rank pairs of a running job that load a link: one statement, none if they are cached.

    Raises
    ------
    UnknownName
        The job has no traffic.
    """
    return pairs_on(registry, live, job, row, most=most)


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
        CostModel(routing=evaluation.routing, rails=evaluation.rails),
        most=most,
    )
