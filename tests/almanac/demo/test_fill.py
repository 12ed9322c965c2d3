"""The demonstration saves its generated data once, relative to one moment, and can be deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from almanac.demo.fill import (
    CLUSTER,
    ON_CIRCUITS,
    OPTICAL,
    _save_optical_cluster,
    delete_demonstration,
    stored_moment,
)
from almanac.demo.generated_data import SOURCE
from almanac.demo.history import MONTH
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.infiniband_data import infiniband

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


def test_the_optical_cluster_is_saved_once_and_deleted(registry: Registry) -> None:
    for _ in range(2):
        _save_optical_cluster(registry, MOMENT)
    assert registry.optical.read(OPTICAL).max_edges == 32
    assert {stored.job.id for stored in registry.jobs.list(OPTICAL)} == set(ON_CIRCUITS)
    (info,) = registry.fabrics.clusters()
    assert (info.name, info.observations, info.hosts) == (OPTICAL, 1, 16)
    for _ in range(2):
        delete_demonstration(registry)
    assert not registry.fabrics.clusters()
    assert not registry.jobs.list(OPTICAL)


def test_the_moment_is_that_of_the_first_made_scan(registry: Registry) -> None:
    fabric = infiniband("torus-4x4x4-dor")
    assert stored_moment(registry) is None
    scans = ((timedelta(days=400), "ibnetdiscover"), (timedelta(hours=1), SOURCE))
    for age, source in scans:
        registry.save(Intake(cluster=CLUSTER, observed_at=MOMENT - age, fabric=fabric, source=source))
    assert stored_moment(registry) == MOMENT - timedelta(hours=1) + MONTH
    registry.save(Intake(cluster=CLUSTER, observed_at=MOMENT - MONTH, fabric=fabric, source=SOURCE))
    assert stored_moment(registry) == MOMENT
