"""Short lists that several pages choose from; asked for each time."""

from __future__ import annotations

from registry.fabrics.fabrics import ClusterInfo
from registry.registry import Registry


def clusters(registry: Registry) -> dict[str, ClusterInfo]:
    """All clusters by name: one statement."""
    return {info.name: info for info in registry.fabrics.clusters()}
