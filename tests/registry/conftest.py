"""A registry with a cluster that has data of every label."""

from __future__ import annotations

import pytest

from registry.registry import Registry
from tests.support.full_cluster import FullCluster, fill_all


@pytest.fixture
def full(registry: Registry) -> FullCluster:
    """Fill the registry; return the ids of what was saved."""
    return fill_all(registry)
