"""Deletion of large clusters in steps."""

from __future__ import annotations

import pytest

from registry.errors import InputError, UnknownName
from registry.ingest_runs.runs import Attempt
from registry.maintenance import cluster_deletion
from registry.maintenance.cluster_deletion import delete_cluster
from registry.maintenance.deletion import delete_profile
from registry.registry import Registry
from tests.support.fat_tree import at
from tests.support.full_cluster import fill_all, node_counts


def test_a_large_cluster_is_deleted_in_steps(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_all(registry, "one")
    kept = node_counts(registry.database)
    fill_all(registry, "two")
    monkeypatch.setattr(cluster_deletion, "AT_ONCE", 10)
    monkeypatch.setattr(cluster_deletion, "STEP", 3)
    steps = list[float]()
    counts = delete_cluster(registry.database, "two", dry_run=True).counts
    done = delete_cluster(
        registry.database, "two", progress=lambda phase, done, total=None, best=None: steps.append(done)
    )
    assert done.counts == counts
    assert steps == sorted(steps)
    assert len(steps) > 10
    assert node_counts(registry.database) == kept


def test_an_interrupted_deletion_goes_on(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_all(registry, "one")
    monkeypatch.setattr(cluster_deletion, "AT_ONCE", 10)
    monkeypatch.setattr(cluster_deletion, "STEP", 2)
    total = sum(node_counts(registry.database).values())
    steps = list[float]()

    def interrupt(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        steps.append(done)
        if len(steps) % 5 == 0:
            raise KeyboardInterrupt

    for _ in range(total):
        try:
            delete_cluster(registry.database, "one", progress=interrupt)
        except KeyboardInterrupt:
            continue
        break
    with pytest.raises(UnknownName):
        delete_cluster(registry.database, "one")
    for profile in registry.profiles.list():
        delete_profile(registry.database, profile.id, with_dependents=True)
    assert node_counts(registry.database) == {}


def test_a_name_with_failed_runs_only_can_be_deleted(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_deletion, "AT_ONCE", 1)
    for minute in range(3):
        attempt = Attempt(started_at=at(minute), cluster="typo", formats=("x",))
        registry.failed(attempt, InputError("cut off"))
    for dry_run in (True, False):
        assert delete_cluster(registry.database, "typo", dry_run=dry_run).counts == {"ingest runs": 3}
    assert node_counts(registry.database) == {}
    with pytest.raises(UnknownName):
        delete_cluster(registry.database, "typo")
