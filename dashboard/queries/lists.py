"""Short lists that several pages choose from; asked for each time."""

from __future__ import annotations

from registry.machines.fabrics import ClusterInfo
from registry.placements.placements import StoredPlacementInfo
from registry.registry import Registry


def clusters(registry: Registry) -> dict[str, ClusterInfo]:
    """All clusters by name: one statement."""
    return {info.name: info for info in registry.fabrics.clusters()}


def placements(registry: Registry, cluster: str | None = None) -> tuple[StoredPlacementInfo, ...]:
    """Evaluated placements of a cluster or of all, the newest first: one statement."""
    return tuple(p for p in registry.placements.history(cluster) if p.congestion_seconds is not None)
