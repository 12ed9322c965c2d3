"""What runs on a cluster and what it puts on the links, kept for all pages and sessions alike."""

from __future__ import annotations

from datetime import datetime, timedelta

import streamlit as st

from mapping.service import Live, traffic
from registry.fabrics.fabrics import ClusterInfo
from registry.registry import Registry

LIVES = 4
"""Clusters and times whose traffic is kept in memory."""
FRESH = timedelta(minutes=5)
"""How long it is kept: jobs that end at a time that is known already do so without anything being saved."""


def live_kept(registry: Registry, cluster: ClusterInfo, at: datetime | None = None) -> Live:
    """The traffic of the jobs that run on a cluster: three statements, and none when it is asked for again.

    Parameters
    ----------
    cluster : ClusterInfo
        Of its present version: what was kept before something was saved is not taken.
    at : datetime, optional
        Now, unless told.

    Raises
    ------
    UnknownName
        Nothing of it was seen until then.
    """
    return _live(registry, registry.database.uri, cluster.name, cluster.version, at)


@st.cache_resource(max_entries=LIVES, ttl=FRESH, show_spinner="Adding up the traffic of the running jobs ...")
def _live(_registry: Registry, uri: str, cluster: str, version: int, at: datetime | None) -> Live:
    return traffic(_registry, cluster, at)
