"""Placements with their fabric and profile in one statement, against the same data read piece by piece."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ingest.options import Options
from ingest.pipeline import ingest
from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry.errors import UnknownName
from registry.pages.placements import open_placement
from registry.registry import Registry
from tests.support.paths import DATA

FIRST = datetime(2026, 1, 1, 8, 30, 15, tzinfo=UTC)
SECOND = FIRST + timedelta(hours=4)
TREE = DATA / "infiniband" / "fattree2-64-broken-link"
HOSTS = tuple(f"node{number:04}" for number in range(1, 9))


def fill(registry: Registry, *, tables: bool) -> str:
    """A fabric before and after cables were lost, and a placement on it as it is now; its id."""
    after = [TREE / "ibnetdiscover.txt", *([TREE / "opensm-lfts.dump"] if tables else [])]
    ingest(registry, [TREE / "before.ibnetdiscover"], Options(cluster="tree", observed_at=FIRST))
    ingest(registry, after, Options(cluster="tree", observed_at=SECOND))
    ingest(registry, [DATA / "edges" / "npb_cg_S_16.csv.gz"], Options(name="cg"))
    options = SearchOptions(steps=1000)
    request = PlacementRequest(profile="cg", cluster="tree", hosts=HOSTS, slots=2, options=options)
    return place(registry, request).record_id


@pytest.mark.parametrize("tables", [True, False])
def test_an_opened_placement_is_what_its_parts_are(registry: Registry, tables: bool) -> None:
    placement = fill(registry, tables=tables)
    whole = open_placement(registry.database, placement)
    stored = registry.placements.read(placement)
    snapshot = registry.fabrics.read("tree")
    assert stored.profile is not None
    profile = registry.profiles.read(stored.profile)
    assert whole.stored.hosts == stored.hosts
    assert whole.stored.content == whole.snapshot.id == snapshot.id
    assert whole.snapshot.routing == snapshot.routing
    assert whole.snapshot.fabric.names == snapshot.fabric.names
    assert whole.snapshot.observed_at == snapshot.observed_at
    assert whole.profile is not None
    assert whole.profile.id == stored.profile
    assert np.array_equal(whole.profile.profile.bytes, profile.profile.bytes)
    ours, theirs = whole.snapshot.fabric.tables, snapshot.fabric.tables
    assert (ours is None) == (theirs is None) == (not tables)
    if ours is not None and theirs is not None:
        for name in ("switch_guid", "ports", "lid_guid"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))


def test_a_fabric_is_read_as_of_a_time(registry: Registry) -> None:
    fill(registry, tables=False)
    before = registry.fabrics.read("tree", FIRST)
    after = registry.fabrics.read("tree", SECOND)
    assert before.observed_at == FIRST
    assert before.fabric.cable_count == after.fabric.cable_count + 2
    assert before.id != after.id


def test_an_unknown_name_is_an_error_with_the_closest(registry: Registry) -> None:
    placement = fill(registry, tables=False)
    with pytest.raises(UnknownName) as error:
        open_placement(registry.database, placement[:-1] + "x")
    assert error.value.close == (placement,)
    with pytest.raises(UnknownName):
        registry.fabrics.read("tree", FIRST.replace(year=2020))
    with pytest.raises(UnknownName) as error:
        registry.fabrics.read("trees", FIRST)
    assert error.value.close == ("tree",)
