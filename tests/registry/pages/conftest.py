"""Clusters that change, for the tests of pages."""

from __future__ import annotations

from typing import Any

import pytest

from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree, tree_tables

WHOLE = fat_tree()


def see(registry: Registry, cluster: str, minute: float, **seen: Any) -> None:
    """Save an observation of a cluster."""
    registry.save(Intake(cluster=cluster, observed_at=at(minute), **seen))


@pytest.fixture
def several(registry: Registry) -> Registry:
    """A cluster that lost a cable and got it back, ingested out of order, with tables; and another."""
    see(registry, "toy", 30, fabric=WHOLE, tables=tree_tables())
    see(registry, "toy", 10, fabric=WHOLE)
    see(registry, "toy", 20, fabric=fat_tree(without=(0,)))
    see(registry, "toy", 40, fabric=WHOLE)
    see(registry, "toy", 50, fabric=fat_tree(slow=(1,)))
    see(registry, "big", 5, fabric=fat_tree(leaves=3))
    return registry
