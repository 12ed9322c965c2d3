"""What the page of all jobs asks of the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from dashboard.queries.caching import KEPT, content_kept
from mapping.traffic.fragmentation import Fragmentation, Neighbours
from registry.model import Fabric
from registry.pages.jobs import JobChoices, JobFilter, JobRow
from registry.registry import Registry

MOST_ROWS = 100_000
"""Rows of a file that is downloaded."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobsView:
    """Some rows of the table of jobs.

    Attributes
    ----------
    rows : tuple of JobRow
        The newest first.
    fragmentation : tuple of Fragmentation or None
        Of each row, on the fabric as it is now; None where the job has no hosts or the fabric lacks one.
    total : int
        Rows that fit the filter.
    """

    rows: tuple[JobRow, ...]
    fragmentation: tuple[Fragmentation | None, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seats:
    """The hosts of a fabric, by name and by the switches they hang on."""

    vertex: Mapping[str, int]
    neighbours: Neighbours

    def fragmentation(self, hosts: Sequence[str]) -> Fragmentation | None:
        """Of a job on these hosts; None where there are none or the fabric lacks one."""
        vertices = [self.vertex.get(host, -1) for host in hosts]
        if not vertices or min(vertices) < 0:
            return None
        return self.neighbours.fragmentation(np.asarray(vertices, np.int64))


def job_choices(registry: Registry) -> JobChoices:
    """Clusters, users, applications and states to choose from: one statement."""
    return registry.job_pages.choices()


def jobs_view(
    registry: Registry, wanted: JobFilter, contents: Mapping[str, str], *, limit: int, offset: int = 0
) -> JobsView:
    """Jobs that fit a filter: one statement, and one a fabric that was not seen before.

    Parameters
    ----------
    contents : mapping of str to str
        By cluster the id of its newest content, of `job_choices`.
    """
    page = registry.job_pages.page(wanted, limit=limit, offset=offset)
    return JobsView(
        rows=page.rows,
        fragmentation=tuple(_fragmentation(registry, contents, row) for row in page.rows),
        total=page.total,
    )


def _fragmentation(registry: Registry, contents: Mapping[str, str], row: JobRow) -> Fragmentation | None:
    content = contents.get(row.stored.cluster, "")
    if not content or not row.stored.job.hosts:
        return None
    return seats(content, content_kept(registry, content).fabric).fragmentation(row.stored.job.hosts)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def seats(content: str, _fabric: Fabric) -> Seats:
    """The hosts of a content: computed once."""
    hosts = _fabric.hosts.tolist()
    return Seats(vertex={_fabric.names[v]: v for v in hosts}, neighbours=Neighbours.of(_fabric))
