"""The clusters of the registry, which every page offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import streamlit as st

from dashboard.queries.caching import KEYS, SHARED
from registry.registry import Registry
from registry.store.fabrics import ClusterInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """All clusters by name, and when they were read."""

    infos: Mapping[str, ClusterInfo]
    read_at: datetime


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_clusters(registry: Registry) -> Clusters:
    """Return all clusters: one statement for all viewers in `SHARED`."""
    read_at = datetime.now(UTC)
    return Clusters(infos={info.name: info for info in registry.fabrics.clusters()}, read_at=read_at)
