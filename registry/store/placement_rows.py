"""Placements read back: whole, as rows of the history, or as columns.

Columns are one list each: 20,000 placements as rows take ten times as long.

A placement with its cost and provenance: to be saved, as stored, and as a row of the history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.stored_kinds import Join, RecordKind
from registry.database.values import reading
from registry.model import Allocation, Bound, Evaluation, Floats, Metrics, Placement
from registry.model.placement import LoadedLinks, Moments, PlacementSeries
from registry.model.views import one_line

PRESENT, PROPOSED = ROLES = ("present", "proposed")
"""Roles of placements: how a job runs, as reported; what a search proposed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementRecord:
    """A placement to be saved."""

    cluster: str
    content: str
    """Id of the snapshot: the placement's vertices and the evaluation's links are those of its fabric."""
    routing: str | None = None
    """Id of the forwarding tables that were used."""
    profile: str | None = None
    job: str | None = None
    """Id of the profile; the scheduler's id of the job."""
    placement: Placement
    evaluation: Evaluation | None = None
    in_order: Metrics | None = None
    random: Metrics | None = None
    """Metrics of the same ranks in order, and placed at random (mean)."""
    code_version: str = ""
    role: str = PROPOSED
    """`PRESENT` or `PROPOSED`."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredPlacement(PlacementRecord):
    """A placement as it was saved."""

    id: str
    hosts: tuple[str, ...]
    """Host of each rank, by name."""
    recorded_at: datetime
    """UTC."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlacementInfo:
    """A row of the history. Metrics are None if the placement was not evaluated.

    Attributes:
        profile, profile_id, application, job: Name, id and application of the profile; the scheduler's id of
            the job.
    """

    id: str
    recorded_at: datetime
    cluster: str
    snapshot: str
    """Id of the snapshot."""
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
    """`PRESENT` or `PROPOSED`."""
    bounds: Mapping[str, float] = field(default_factory=dict)
    """Certified lower bounds by metric."""
    in_order: Metrics | None = None
    random: Metrics | None = None


METRICS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "average_dilation")
BOUNDED = METRICS[:3]
"""Metrics with certified lower bounds."""

SEARCHED = ("strategy", "objective", "routing", "seconds", "steps", "complete")
"""Fields of a `Placement` that are properties of the same name, and always there."""
EVALUATED = (*METRICS, "total_bytes", "max_dilation", "rails", "wall_seconds")
EVALUATED_LATER = (
    *("mean_congestion_seconds", "total_dilation", "message_dilation", "mapping_coefficient"),
    *("distance", "counted", "background"),
)
"""Fields that placements of earlier versions lack."""
BASELINES = ("in_order", "random")

ON_ALLOCATION, OF_PROFILE = Join("ON", "Allocation"), Join("OF", "Profile")
OF_JOB = Join("HAS_PLACEMENT", "Job", incoming=True)
PLACEMENT = RecordKind(
    name="placement",
    label="Placement",
    letter="p",
    owner=Join("IN", "Content"),
    joins=(ON_ALLOCATION, OF_PROFILE, OF_JOB),
    read="""
UNWIND $ids AS wanted
MATCH (p:Placement {id: wanted})-[:IN]->(x:Content)
OPTIONAL MATCH (p)-[:OF]->(f:Profile)
OPTIONAL MATCH (j:Job)-[:HAS_PLACEMENT]->(p)
OPTIONAL MATCH (p)-[:HAS_LOADS]->(l:LinkLoads)
RETURN p, x.id AS content, f.id AS profile, j.job AS job, l.blob AS loads
""",
)

_INFO = {
    **{name: f"p.{name}" for name in ("id", "recorded_at", "cluster", "snapshot", "application")},
    "profile_id": "p.profile",
    "job": "p.job",
    "role": f"coalesce(p.role, '{PROPOSED}')",
    **{name: f"p.{name}" for name in ("ranks", "strategy", "objective", "routing", "seed", "seconds")},
    **{name: f"p.{name}" for name in ("steps", "complete", "code_version", *METRICS)},
    **{name: f"p.{name}" for name in (f"bound_{metric}" for metric in BOUNDED)},
    **{name: f"p.{name}" for name in (f"{base}_{metric}" for base in BASELINES for metric in METRICS)},
}
INFO_NAMES = tuple(_INFO)
INFO = f"[{', '.join(_INFO.values())}]"
"""Expression for what `placement_info` needs of a placement ``p``; lists are read faster than rows."""


def profile_names(carried: str) -> str:
    """Return the clause that adds ``profile_ids`` and ``profile_names`` of all profiles to a single row.

    Profiles are few, and following the relationship of each placement is slow.

    Args:
        carried: Any variable of the row: without one, servers multiply rows and profiles.
    """
    return f"""
CALL {{
  WITH {carried}
  MATCH (f:Profile)
  RETURN collect(f.id) AS profile_ids, collect(f.name) AS profile_names
}}
"""


BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
"""A time before anything was recorded."""

_PLAIN = ("id", "cluster", "strategy", "objective", "routing", "code_version", "ranks", "complete")
_OPTIONAL = ("application", "profile", "job", "tables", "snapshot", "allocation", "background")
_NUMBERS = (
    *METRICS,
    *(f"bound_{name}" for name in BOUNDED),
    *(f"in_order_{name}" for name in METRICS),
)
_ABSENT = -1.0
"""Marks a missing number: collected lists leave out nulls, and no metric is negative."""

_COLLECTED = ", ".join(
    (
        *(f"collect(p.{name}) AS {name}" for name in _PLAIN),
        *(f"collect(coalesce(p.{name}, '')) AS {name}" for name in _OPTIONAL),
        *(f"collect(coalesce(p.{name}, {_ABSENT})) AS {name}" for name in _NUMBERS),
        f"collect(coalesce(p.role, '{PROPOSED}')) AS role",
        "collect(coalesce(p.rank_order, '')) AS rank_order",
        "collect(toString(p.recorded_at)) AS recorded_at",  # sending a time takes longer than sending a row
    )
)
_RETURN = f"""
WITH {_COLLECTED}
{profile_names("id")}
RETURN *
"""

READ_SERIES = f"""
MATCH (p:Placement)
WHERE p.recorded_at >= $since AND ($application IS NULL OR p.application = $application)
{_RETURN}
"""

READ_SERIES_OF_CLUSTER = f"""
MATCH (p:Placement)
WHERE p.cluster = $cluster AND p.recorded_at >= $since
      AND ($application IS NULL OR p.application = $application)
{_RETURN}
"""


def placement_series(row: dict[str, Any]) -> PlacementSeries:
    """Return the series of a row of `READ_SERIES` or `READ_SERIES_OF_CLUSTER`, the oldest first."""
    names = dict(zip(row["profile_ids"], row["profile_names"], strict=True))
    columns: dict[str, Any] = {name: tuple(row[name]) for name in (*_PLAIN[:-2], *_OPTIONAL, "role")}
    for name in _NUMBERS:
        values = np.asarray(row[name], np.float64)
        columns[name] = np.where(values == _ABSENT, np.nan, values)
    series = PlacementSeries(
        **columns,
        profile_name=tuple(names.get(identity, "") for identity in row["profile"]),
        order=tuple(row["rank_order"]),
        recorded_at=_moments(row["recorded_at"]),
        ranks=np.asarray(row["ranks"], np.int32),
        complete=np.asarray(row["complete"], np.bool_),
    )
    by_id = np.asarray(sorted(range(len(series)), key=series.id.__getitem__), np.int64)
    return series.take(by_id[np.argsort(series.recorded_at[by_id], kind="stable")])


def _moments(texts: list[str]) -> Moments:
    """Return ISO texts in UTC as datetime64[us], however the server writes the zone."""
    plain = [text.partition("Z")[0].partition("+")[0][:26] for text in texts]
    return np.asarray(plain, "datetime64[us]")


def stored_placement(row: dict[str, Any]) -> StoredPlacement:
    """Return the placement of a row with `p`, `content`, `profile`, `job` and `loads`."""
    node: dict[str, Any] = row["p"]
    with PLACEMENT.reading(node["id"]):
        placement = placement_of(node, codec.unpack(node["host_of_rank"]))
        evaluation = None if row["loads"] is None else _evaluation(node, row["loads"])
    return StoredPlacement(
        id=node["id"],
        cluster=node["cluster"],
        content=row["content"],
        routing=node.get("tables"),
        profile=row["profile"],
        job=row["job"],
        placement=placement,
        evaluation=evaluation,
        in_order=_baseline(node, "in_order"),
        random=_baseline(node, "random"),
        role=node.get("role") or PROPOSED,
        code_version=node["code_version"],
        hosts=tuple(node["hosts"]),
        recorded_at=node["recorded_at"],
    )


def placement_of(node: Mapping[str, Any], vertices: Mapping[str, Any]) -> Placement:
    """Return the placement of the properties of its node.

    Args:
        vertices: ``host_of_rank``, the ``hosts`` and ``slots`` of its allocation, and cores if they were
            chosen.
    """
    return Placement(
        host_of_rank=vertices["host_of_rank"],
        allocation=Allocation(hosts=vertices["hosts"], slots=vertices["slots"]),
        parameters=json.loads(node["parameters"]),
        seed=node.get("seed"),
        core_of_rank=vertices.get("core_of_rank"),
        cpu_of_rank=vertices.get("cpu_of_rank"),
        **{name: node[name] for name in SEARCHED},
    )


def _evaluation(node: dict[str, Any], loads: bytes) -> Evaluation:
    """Return the evaluation of the properties of a placement and the blob of its link loads."""
    bounds = {
        name: Bound(
            value=node[f"bound_{name}"],
            proof=node[f"proof_{name}"],
            name=node.get(f"argument_{name}", ""),
        )
        for name in BOUNDED
        if f"bound_{name}" in node
    }
    return Evaluation(
        **{name: node[name] for name in EVALUATED},
        **{name: node[name] for name in EVALUATED_LATER if name in node},
        routing=node["routing"],
        link_bytes=unpack_loads(loads).dense(),
        bounds=bounds,
        code_version=node["code_version"],
    )


def placement_info(values: Sequence[Any], names: Mapping[str, str]) -> StoredPlacementInfo:
    """Return the row of the history of a list of `INFO`.

    Args:
        names: Name of each profile by id.
    """
    row = dict(zip(INFO_NAMES, values, strict=True))
    bounds = {name: row.pop(f"bound_{name}") for name in BOUNDED}
    in_order, random = (_baseline(row, baseline) for baseline in BASELINES)
    for baseline in BASELINES:
        for name in METRICS:
            del row[f"{baseline}_{name}"]
    certified = {name: value for name, value in bounds.items() if value is not None}
    profile = names.get(row["profile_id"])
    return StoredPlacementInfo(profile=profile, bounds=certified, in_order=in_order, random=random, **row)


def _baseline(row: Mapping[str, Any], baseline: str) -> Metrics | None:
    values: dict[str, Any] = {name: row.get(f"{baseline}_{name}") for name in METRICS}
    return None if None in values.values() else Metrics(**values)


def pack_loads(link_bytes: Floats) -> bytes:
    """Return the blob of the loads ``float64[m]`` of the links of a fabric, in bytes.

    It has only the loaded links if that is shorter: a job on some hosts loads few links, and the loads of all
    links took half a gigabyte for a thousand jobs on 10,000 hosts.
    """
    loaded = LoadedLinks.of(link_bytes)
    if loaded.link.nbytes + loaded.bytes.nbytes >= link_bytes.nbytes:
        return codec.pack({"link_bytes": link_bytes})
    links = np.array([loaded.links], np.int64)
    return codec.pack({"links": links, "link": loaded.link, "bytes": loaded.bytes})


def unpack_loads(blob: bytes) -> LoadedLinks:
    """Return the loads of a blob of either form."""
    columns = codec.unpack(blob)
    with reading("a stored load of links"):
        if "link_bytes" in columns:
            return LoadedLinks.of(columns["link_bytes"])
        return LoadedLinks(link=columns["link"], bytes=columns["bytes"], links=int(columns["links"][0]))
