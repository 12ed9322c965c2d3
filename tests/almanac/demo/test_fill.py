"""The demonstration saves its generated data once."""

from __future__ import annotations

from datetime import UTC, datetime

from almanac.demo.fill import ON_CIRCUITS, OPTICAL, _save_optical_cluster
from registry.registry import Registry


def test_the_optical_cluster_is_saved_once(registry: Registry) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(2):
        _save_optical_cluster(registry, at)
    assert registry.optical.read(OPTICAL).max_edges == 32
    assert {stored.job.id for stored in registry.jobs.list(OPTICAL)} == set(ON_CIRCUITS)
    (info,) = registry.fabrics.clusters()
    assert (info.name, info.observations, info.hosts) == (OPTICAL, 1, 16)
