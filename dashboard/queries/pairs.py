"""Which ranks load a link, kept."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from mapping.service import Live, pairs_on
from mapping.traffic.rank_pairs import RankPairs, rank_pairs
from registry.fabrics.fabrics import ClusterInfo
from registry.pages.placements import OpenPlacement
from registry.registry import Registry

KEPT = 256
"""Links and jobs whose ranks are kept in memory."""


def pairs_kept(
    registry: Registry, cluster: ClusterInfo, at: datetime | None, live: Live, job: str, row: int, most: int
) -> RankPairs:
    """Which pairs of a running job's ranks load a link: one statement, and none when it is asked for again.

    Raises
    ------
    UnknownName
        The job has no traffic.
    """
    version = f"{registry.database.uri} {cluster.name} {cluster.version} {live.running.at.isoformat()}"
    return _pairs(registry, live, version, job, row, most)


def pairs_of_placement(opened: OpenPlacement, row: int, most: int) -> RankPairs | None:
    """Which pairs of a placement's ranks load a link; None where its profile is not known.

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


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _pairs(_registry: Registry, _live: Live, version: str, job: str, row: int, most: int) -> RankPairs:
    return pairs_on(_registry, _live, job, row, most=most)
