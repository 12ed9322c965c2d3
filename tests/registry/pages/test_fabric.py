from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from registry.database.driver import Database
from registry.errors import UnknownName
from registry.model import Fabric
from registry.model.intake import Intake
from registry.pages.fabric import read_fabric_history
from registry.registry import Registry

AT = datetime(2026, 1, 1, tzinfo=UTC)


def fabric(capacity: float) -> Fabric:
    return Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], capacity)


def test_an_empty_registry_has_seen_nothing(database: Database) -> None:
    found = read_fabric_history(database, None)
    assert (found.clusters, found.timeline, found.sweeps) == ({}, None, ())
    assert read_fabric_history(database, "one").clusters == {}


def test_the_history_is_that_of_the_parts(database: Database) -> None:
    registry = Registry(database)
    for cluster, hours, capacity in (("two", 0, 1.0), ("one", 1, 1.0), ("one", 2, 2.0), ("one", 3, 1.0)):
        registry.save(
            Intake(
                cluster=cluster, fabric=fabric(capacity), observed_at=AT + timedelta(hours=hours), source="s"
            )
        )
    found = read_fabric_history(database, None, counters=True)
    assert tuple(found.clusters.values()) == registry.fabrics.clusters()
    assert found.timeline is not None
    assert [state.at.hour for state in found.timeline.states] == [1, 2, 3]
    other = read_fabric_history(database, "two").timeline
    assert other is not None
    assert [(other.cluster, state.at.hour) for state in other.states] == [("two", 0)]
    with pytest.raises(UnknownName) as shown:
        read_fabric_history(database, "on")
    assert shown.value.close == ("one",)
