"""A placement with its cost and provenance: to be saved, as stored, and as a row of the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from registry.model import Evaluation, Metrics, Placement
from registry.model.views import one_line

PRESENT, PROPOSED = ROLES = ("present", "proposed")
"""Roles of placements: how a job runs, as reported; what a search proposed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementRecord:
    """A placement to be saved.

    Attributes
    ----------
    content : str
        Id of the snapshot: the placement's vertices and the evaluation's links are those of its fabric.
    routing : str or None
        Id of the forwarding tables that were used.
    profile, job : str or None
        Id of the profile; the scheduler's id of the job.
    in_order, random : Metrics or None
        Metrics of the same ranks in order, and placed at random (mean).
    role : str
        `PRESENT` or `PROPOSED`.
    """

    cluster: str
    content: str
    routing: str | None = None
    profile: str | None = None
    job: str | None = None
    placement: Placement
    evaluation: Evaluation | None = None
    in_order: Metrics | None = None
    random: Metrics | None = None
    code_version: str = ""
    role: str = PROPOSED

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredPlacement(PlacementRecord):
    """A placement as it was saved.

    Attributes
    ----------
    hosts : tuple of str
        Host of each rank, by name.
    recorded_at : datetime
        UTC.
    """

    id: str
    hosts: tuple[str, ...]
    recorded_at: datetime

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlacementInfo:
    """A row of the history. Metrics are None if the placement was not evaluated.

    Attributes
    ----------
    snapshot : str
        Id of the snapshot.
    profile, profile_id, application, job : str or None
        Name, id and application of the profile; the scheduler's id of the job.
    role : str
        `PRESENT` or `PROPOSED`.
    bounds : mapping of str to float
        Certified lower bounds by metric.
    """

    id: str
    recorded_at: datetime
    cluster: str
    snapshot: str
    application: str | None
    profile: str | None
    profile_id: str | None
    job: str | None
    ranks: int
    strategy: str
    objective: str
    routing: str
    seed: int | None
    seconds: float
    steps: int
    complete: bool
    code_version: str
    congestion_seconds: float | None
    network_congestion_seconds: float | None
    hop_bytes: float | None
    average_dilation: float | None
    role: str = PROPOSED
    bounds: Mapping[str, float] = field(default_factory=dict)
    in_order: Metrics | None = None
    random: Metrics | None = None
