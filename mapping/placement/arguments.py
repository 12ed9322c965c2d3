"""Arguments of the functions of `mapping`: checked, with stored objects replaced by what they hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from registry.errors import InvalidPlacement
from registry.model import Allocation, Fabric, HasJob, HasPlacement, Ints, Job, Longs, Placement
from registry.model.views import content


def allocation_on(fabric: Fabric, given: Allocation | Job | HasJob) -> Allocation:
    """Return an allocation, or that of a job's hosts and slots.

    Raises
    ------
    UnknownName
        The fabric lacks a host of the job.
    InvalidValue
        Neither an allocation nor a job, or a host number that the fabric lacks.
    """
    job = given if isinstance(given, Job) else getattr(given, "job", None)
    if isinstance(job, Job):
        return Allocation.of(fabric, job.hosts, job.slots)
    allocation = content(given, Allocation, "allocation")
    _require_vertices(fabric, allocation.hosts, "allocation")
    return allocation


HostsByRank = Sequence[str] | Sequence[int] | Ints | Longs
"""Host of each rank, by name or as a vertex of the fabric: what another tool found."""


def placement_or_hosts(fabric: Fabric, given: Placement | HasPlacement | HostsByRank) -> Placement:
    """Return a placement as `placement_on`, or that of a host for each rank."""
    if isinstance(given, np.ndarray | Sequence):
        return Placement.given(fabric, given)
    return placement_on(fabric, given)


def placement_on(fabric: Fabric, given: Placement | HasPlacement, label: str = "placement") -> Placement:
    """Return a placement, or that of a stored one.

    Raises
    ------
    InvalidPlacement
        A host number that the fabric lacks, or a stored placement on another state of the fabric.
    InvalidValue
        No placement.
    """
    placement = content(given, Placement, label)
    _require_vertices(fabric, placement.host_of_rank, label)
    names = getattr(given, "hosts", None)
    if names is not None and any(
        fabric.names[vertex] != name
        for vertex, name in zip(placement.host_of_rank.tolist(), names, strict=True)
    ):
        raise InvalidPlacement(
            f"{label}: it is on another state of the fabric: read that with registry.fabrics.read_content"
        )
    return placement


def _require_vertices(fabric: Fabric, vertices: Ints, label: str) -> None:
    wrong = vertices[(vertices < 0) | (vertices >= len(fabric))]
    if len(wrong):
        raise InvalidPlacement(f"{label}: vertex {wrong[0]} is not in the fabric")
