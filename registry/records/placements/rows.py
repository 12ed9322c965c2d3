"""A placement from its row in the graph: whole, or as a row of the history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from registry.database import codec
from registry.errors import DatabaseError, InvalidValue
from registry.model import Allocation, Bound, Evaluation, Metrics, Placement
from registry.records.placements.link_loads import unpack_loads
from registry.records.placements.records import PROPOSED, StoredPlacement, StoredPlacementInfo

METRICS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "average_dilation")
BOUNDED = METRICS[:3]
"""Metrics for which lower bounds are certified."""

EVALUATED = (*METRICS, "total_bytes", "max_dilation", "rails", "wall_seconds")
EVALUATED_LATER = (
    *("mean_congestion_seconds", "total_dilation", "message_dilation", "mapping_coefficient"),
    *("distance", "counted", "background"),
)
"""Fields that placements saved by earlier versions lack."""
BASELINES = ("in_order", "random")

_TOLD = {
    **{name: f"p.{name}" for name in ("id", "recorded_at", "cluster", "snapshot", "application")},
    "profile_id": "p.profile",
    "job": "p.job",
    "role": f"coalesce(p.role, '{PROPOSED}')",
    **{name: f"p.{name}" for name in ("ranks", "strategy", "objective", "routing", "seed", "seconds")},
    **{name: f"p.{name}" for name in ("steps", "complete", "code_version", *METRICS)},
    **{name: f"p.{name}" for name in (f"bound_{metric}" for metric in BOUNDED)},
    **{name: f"p.{name}" for name in (f"{base}_{metric}" for base in BASELINES for metric in METRICS)},
}
INFO_NAMES = tuple(_TOLD)
INFO = f"[{', '.join(_TOLD.values())}]"
"""What `placement_info` needs of a placement ``p``, as a list: lists of it are read faster than rows."""


def profile_names(carried: str) -> str:
    """Adds ``profile_ids`` and ``profile_names``, of all profiles, to a single row.

    There are few of them, and following each placement to its own is slow.

    Parameters
    ----------
    carried : str
        Any variable of the row: with none, plans multiply the two.
    """
    return f"""
CALL {{
  WITH {carried}
  MATCH (f:Profile)
  RETURN collect(f.id) AS profile_ids, collect(f.name) AS profile_names
}}
"""


def stored_placement(row: dict[str, Any]) -> StoredPlacement:
    """The placement of a row with `p`, `content`, `profile`, `job` and `loads`."""
    node: dict[str, Any] = row["p"]
    vertices = codec.unpack(node["host_of_rank"])
    try:
        placement = Placement(
            host_of_rank=vertices["host_of_rank"],
            allocation=Allocation(hosts=vertices["hosts"], slots=vertices["slots"]),
            strategy=node["strategy"],
            objective=node["objective"],
            routing=node["routing"],
            parameters=json.loads(node["parameters"]),
            seed=node.get("seed"),
            seconds=node["seconds"],
            steps=node["steps"],
            complete=node["complete"],
            core_of_rank=vertices.get("core_of_rank"),
            cpu_of_rank=vertices.get("cpu_of_rank"),
        )
        evaluation = None if row["loads"] is None else _evaluation(node, row["loads"])
    except (KeyError, InvalidValue) as error:
        raise DatabaseError(f"the stored placement {node['id']} is damaged: {error}") from error
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


def _evaluation(node: dict[str, Any], loads: bytes) -> Evaluation:
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
    """The row of the history of a list of `INFO`.

    Parameters
    ----------
    names : mapping of str to str
        Name of each profile by id.
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
