"""The stores on both servers, and a registry with a cluster that has data of every label."""

from __future__ import annotations

import pytest

from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import FullCluster, fill_all


@pytest.fixture(params=["embedded", "neo4j"])
def server_kind(request: pytest.FixtureRequest) -> str:
    """Return each server in turn."""
    return str(request.param)


@pytest.fixture
def full(registry: Registry) -> FullCluster:
    """Fill the registry; return the ids of what was saved."""
    return fill_all(registry)


@pytest.fixture
def toy(registry: Registry) -> Registry:
    """Return a registry with a fabric seen at the first minute."""
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    return registry
