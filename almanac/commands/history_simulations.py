"""``almanac history --simulations``: runs that were simulated, the newest first."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from almanac.commands.common import must_know
from almanac.output import print_json, print_table
from registry import units

if TYPE_CHECKING:
    from almanac.commands.placing.history import HistoryFilter as Asked
    from registry.records.simulations import SimulationInfo
    from registry.registry import Registry

COLUMNS = (
    *("id", "recorded at", "cluster", "placement", "mode", "routing", "completion", "throughput"),
    *("99% latency", "complete"),
)


def show(registry: Registry, asked: Asked, placement: str | None) -> None:
    """Print those that fit what is given.

    Parameters
    ----------
    placement : str or None
        Id of the placement that they are of, or a unique beginning of it.

    Raises
    ------
    UnknownName
        No such cluster or placement.
    """
    infos = _found(registry, asked, placement)[: asked.limit]
    if asked.as_json:
        print_json([told(info) for info in infos])
    else:
        print_table("", COLUMNS, [_row(info) for info in infos])


def told(info: SimulationInfo) -> dict[str, Any]:
    """The documented JSON keys."""
    return {**dataclasses.asdict(info), "throughput": info.throughput}


def _found(registry: Registry, asked: Asked, placement: str | None) -> tuple[SimulationInfo, ...]:
    cluster, application, job = asked.cluster, asked.application, asked.job
    identity = None if placement is None else registry.placements.read(placement).id
    infos = registry.simulations.list(cluster, placement=identity, limit=asked.cluster_limit)
    if not infos:
        must_know(registry, cluster)
    if application is None and job is None:
        return infos
    placed = registry.placements.history(cluster=cluster, application=application, job=job)
    kept = {info.id for info in placed}
    return tuple(info for info in infos if info.placement in kept)


def _row(info: SimulationInfo) -> list[Any]:
    return [
        info.id,
        info.recorded_at,
        info.cluster,
        info.placement,
        info.mode,
        info.routing,
        units.text(info.completion_seconds, units.SECONDS),
        units.text(info.throughput, units.RATE),
        units.text(info.latency_99_seconds, units.SECONDS),
        info.complete,
    ]
