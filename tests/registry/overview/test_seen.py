from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from registry.database.driver import Database
from registry.errors import UnknownName
from registry.fabrics.between import timeline
from registry.model import Fabric
from registry.model.intake import Intake
from registry.overview.seen import seen
from registry.registry import Registry

AT = datetime(2026, 1, 1, tzinfo=UTC)


def fabric(capacity: float) -> Fabric:
    return Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], capacity)


def test_an_empty_registry_has_seen_nothing(database: Database) -> None:
    found = seen(database, None)
    assert (found.clusters, found.timeline, found.sweeps) == ({}, None, ())
    assert seen(database, "one").clusters == {}


def test_all_of_it_is_as_it_is_told_piece_by_piece(database: Database) -> None:
    registry = Registry(database)
    for cluster, hours, capacity in (("two", 0, 1.0), ("one", 1, 1.0), ("one", 2, 2.0), ("one", 3, 1.0)):
        registry.save(
            Intake(
                cluster=cluster, fabric=fabric(capacity), observed_at=AT + timedelta(hours=hours), source="s"
            )
        )
    found = seen(database, None, counters=True)
    assert tuple(found.clusters.values()) == registry.fabrics.clusters()
    assert found.timeline == timeline(database, "one")
    assert found.timeline is not None
    assert [state.at.hour for state in found.timeline.states] == [1, 2, 3]
    assert seen(database, "two").timeline == timeline(database, "two")
    with pytest.raises(UnknownName) as told:
        seen(database, "on")
    assert told.value.close == ("one",)
