"""Data of the page of all jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from dashboard.queries.caching import CACHED, cached_snapshot
from mapping.traffic.fragmentation import Fragmentation, Neighbours
from registry.model import Fabric
from registry.pages.jobs import JobFilter, JobRow
from registry.registry import Registry

MOST_ROWS = 100_000
"""Maximum number of rows in a downloaded file."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobsView:
    """A part of the table of jobs.

    Attributes
    ----------
    rows : tuple of JobRow
        Jobs, newest first.
    fragmentation : tuple of Fragmentation or None
        Fragmentation of each job on the present fabric, or None if hosts are missing.
    total : int
        Number of jobs that match the filter.
    """

    rows: tuple[JobRow, ...]
    fragmentation: tuple[Fragmentation | None, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostIndex:
    """The hosts of a fabric by name, and which hosts share a switch."""

    vertex: Mapping[str, int]
    neighbours: Neighbours

    def fragmentation(self, hosts: Sequence[str]) -> Fragmentation | None:
        """Return the fragmentation of a job on these hosts, or None without hosts or if one is unknown."""
        vertices = [self.vertex.get(host, -1) for host in hosts]
        if not vertices or min(vertices) < 0:
            return None
        return self.neighbours.fragmentation(np.asarray(vertices, np.int64))


def jobs_view(
    registry: Registry, wanted: JobFilter, snapshots: Mapping[str, str], *, limit: int, offset: int = 0
) -> JobsView:
    """Return the jobs that match a filter: one statement, and one for each fabric that is not cached.

    Parameters
    ----------
    snapshots : mapping of str to str
        Id of the newest snapshot of each cluster: ``clusters`` of `JobChoices`.
    """
    page = registry.job_pages.page(wanted, limit=limit, offset=offset)
    return JobsView(
        rows=page.rows,
        fragmentation=tuple(_fragmentation(registry, snapshots, row) for row in page.rows),
        total=page.total,
    )


def _fragmentation(registry: Registry, snapshots: Mapping[str, str], row: JobRow) -> Fragmentation | None:
    snapshot = snapshots.get(row.stored.cluster, "")
    if not snapshot or not row.stored.job.hosts:
        return None
    index = host_index(snapshot, cached_snapshot(registry, snapshot).fabric)
    return index.fragmentation(row.stored.job.hosts)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def host_index(snapshot_id: str, _fabric: Fabric) -> HostIndex:
    """Return the host index of a snapshot; computed once."""
    hosts = _fabric.hosts.tolist()
    return HostIndex(vertex={_fabric.names[v]: v for v in hosts}, neighbours=Neighbours.of(_fabric))
