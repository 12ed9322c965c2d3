"""``almanac history --circuits``: configurations proposed for optical switches, the newest first."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from almanac.commands.common import must_know
from almanac.output import print_json, print_table

if TYPE_CHECKING:
    from almanac.commands.placing.history import HistoryFilter as Asked
    from registry.records.circuit_plans import CircuitPlanInfo
    from registry.registry import Registry

COLUMNS = (
    *("id", "recorded at", "cluster", "for", "throughput", "before", "upper bound", "gain"),
    *("to move", "pays after (s)", "applied at", "complete"),
)


def show(registry: Registry, asked: Asked) -> None:
    """Print those that fit what is given.

    Raises
    ------
    UnknownName
        No such cluster.
    """
    infos = _found(registry, asked)[: asked.limit]
    if asked.as_json:
        print_json([dataclasses.asdict(info) for info in infos])
    else:
        print_table("", COLUMNS, [_row(info) for info in infos])


def _found(registry: Registry, asked: Asked) -> list[CircuitPlanInfo]:
    infos = registry.circuit_plans.list(asked.cluster, limit=asked.cluster_limit)
    if not infos:
        must_know(registry, asked.cluster)
    return [
        info
        for info in infos
        if (asked.application is None or asked.application in info.applications)
        and (asked.job is None or asked.job in info.jobs)
    ]


def _row(info: CircuitPlanInfo) -> list[Any]:
    jobs = f"{len(info.jobs)} jobs: " if info.jobs else ""
    moved = None if info.removed is None else f"{info.removed} away, {info.inserted} in"
    return [
        info.id,
        info.recorded_at,
        info.cluster,
        jobs + ", ".join(info.profile_names),
        info.throughput,
        info.present_throughput,
        info.upper_bound,
        info.gain,
        moved,
        info.break_even_seconds,
        info.applied_at,
        info.complete,
    ]
