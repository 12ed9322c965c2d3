"""Deletion of observations, jobs, profiles and runs: refused, rehearsed and carried out, on both servers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.database.schema import LABELS
from registry.errors import ChangeRefused, InputError, UnknownName
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.ingest_runs import Attempt
from registry.upkeep.clusters import delete_cluster
from registry.upkeep.deletion import delete_job, delete_observation, delete_profile, delete_runs
from tests.conftest import empty
from tests.registry.database.test_schema import documented_properties
from tests.registry.store.test_fabrics import CONTENTS, derived, save
from tests.support.busy_cluster import fill, job
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import FullCluster, node_counts


@given(seen=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=6), data=st.data())
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_some_deletions_the_graph_is_that_of_the_rest(registry: Registry, seen: Any, data: Any) -> None:
    empty(registry.database)
    for minute, index in seen:
        save(registry, CONTENTS[index], minute)
    ids = [one.id for one in registry.fabrics.observations("toy")]
    gone = data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=len(ids) - 1))
    for identity in gone:
        delete_observation(registry.database, identity)
    left = registry.fabrics.observations("toy")
    assert {one.id for one in left} == set(ids) - set(gone)
    for one in left:
        assert one.snapshot is not None
        fabric = registry.fabrics.read_content(one.snapshot).fabric
        registry.save(Intake(cluster="new", observed_at=one.at, fabric=fabric, source="test"))
    assert derived(registry.database, "toy") == derived(registry.database, "new")
    before = derived(registry.database, "toy")
    registry.fabrics.rebuild("toy")
    assert derived(registry.database, "toy") == before
    assert node_counts(registry.database)["Content"] == 2 * len({one.snapshot for one in left})


def test_a_full_cluster_has_data_of_every_label(registry: Registry, full: FullCluster) -> None:
    assert set(node_counts(registry.database)) == set(LABELS)
    documented = documented_properties()
    for label in LABELS:
        rows = registry.database.query(f"MATCH (n:{label}) UNWIND keys(n) AS name RETURN DISTINCT name")[1]
        assert {name for (name,) in rows} <= {*documented[label], "id"}, label


def test_deleting_everything_leaves_nothing(registry: Registry, full: FullCluster) -> None:
    for profile in registry.profiles.list():
        delete_profile(registry.database, profile.id, with_dependents=True)
    delete_job(registry.database, "1")
    for unknown in ("toy/x", "toy/"):  # two begin with the second
        with pytest.raises(UnknownName):
            delete_observation(registry.database, unknown)
    delete_observation(registry.database, registry.fabrics.observations("toy")[0].id)
    delete_cluster(registry.database, "toy")
    assert node_counts(registry.database) == {}


def test_what_something_else_refers_to_outlives_a_profile(registry: Registry, full: FullCluster) -> None:
    before = node_counts(registry.database)
    reason = "circuit plans: 1, measured runs: 1, placements: 2; --dry-run lists"
    with pytest.raises(ChangeRefused, match=reason):
        delete_profile(registry.database, "ring")
    assert node_counts(registry.database) == before
    deleted = delete_profile(registry.database, "ring", with_dependents=True, dry_run=True)
    assert node_counts(registry.database) == before
    assert delete_profile(registry.database, "ring", with_dependents=True) == deleted
    assert deleted.dependents == {
        "circuit plans": (full.plan,),
        "measured runs": (full.measured,),
        "placements": tuple(sorted((full.placement, full.proposed))),
    }
    gone = {"Profile": 1, "Rank": 3, "Placement": 2, "LinkLoads": 2, "Reconfiguration": 1, "Advice": 1}
    left = {label: count - (gone | {"MeasuredRun": 1}).get(label, 0) for label, count in before.items()}
    assert node_counts(registry.database) == {label: count for label, count in left.items() if count}
    assert registry.optical.read("toy").plan == ""


def test_a_job_is_deleted_with_what_was_saved_for_it(registry: Registry, full: FullCluster) -> None:
    registry.jobs.attach("1", "pair", "toy")
    with pytest.raises(ChangeRefused, match="jobs that ran it: 1"):
        delete_profile(registry.database, "pair")
    assert delete_profile(registry.database, "pair", with_dependents=True).jobs == ("toy/1",)
    assert registry.jobs.read("1").profile is None
    reason = "job 1 of toy is in use: circuit plans: 1, measured runs: 1, placements: 3"
    with pytest.raises(ChangeRefused, match=reason):
        delete_job(registry.database, "1", "toy")
    deleted = delete_job(registry.database, "1", with_dependents=True)
    assert deleted.dependents["simulations"] == (full.simulation,)
    found = node_counts(registry.database)
    assert {"Job", "Placement", "Simulation", "Advice", "Allocation", "LinkLoads"}.isdisjoint(found)
    assert found["Profile"] == 2
    with pytest.raises(UnknownName):
        delete_job(registry.database, "1")


def test_an_observation_takes_its_snapshot_and_tables_along(registry: Registry, full: FullCluster) -> None:
    first, second = registry.fabrics.observations("toy")
    before = node_counts(registry.database)
    with pytest.raises(ChangeRefused, match="measured runs: 1, placements: 3, simulations: 1"):
        delete_observation(registry.database, second.id)  # all placements are on its snapshot
    assert node_counts(registry.database) == before
    assert registry.same("toy scan") is not None
    delete_observation(registry.database, second.id, with_dependents=True)
    assert registry.same("toy scan") is None  # its files are read again
    found = node_counts(registry.database)
    assert (found["Observation"], found["Content"], found["Routing"]) == (1, 1, 1)
    assert {"Placement", "Simulation", "Drawing", "Advice"}.isdisjoint(found)
    assert registry.fabrics.read("toy").id == first.snapshot


def test_tables_that_a_placement_used_are_kept_with_it(registry: Registry, full: FullCluster) -> None:
    first, _ = registry.fabrics.observations("toy")
    with pytest.raises(ChangeRefused):
        delete_observation(registry.database, first.id)
    delete_observation(registry.database, first.id, with_dependents=True)
    assert {"Routing", "ForwardingTable", "Placement"}.isdisjoint(node_counts(registry.database))


def test_tables_shared_with_another_cluster_and_the_only_fabric_stay(registry: Registry) -> None:
    for cluster in ("one", "two"):
        fill(registry, cluster=cluster)
    tables = node_counts(registry.database)["ForwardingTable"]
    delete_cluster(registry.database, "one")
    assert node_counts(registry.database)["ForwardingTable"] == tables
    assert registry.fabrics.read("two").fabric.tables is not None
    (only,) = registry.fabrics.observations("two")
    with pytest.raises(ChangeRefused, match="only one of the fabric of two; ingest another scan first"):
        delete_observation(registry.database, only.id, with_dependents=True)


def test_a_host_of_a_job_is_unknown_without_the_only_observation_of_it(registry: Registry) -> None:
    def hosts() -> list[str]:
        _, rows = registry.database.query("MATCH (:Allocation)-[:ON]->(d:Device) RETURN d.name")
        return sorted(name for (name,) in rows)

    save(registry, fat_tree(), 0)
    save(registry, fat_tree(leaves=3), 1)
    fill(registry, job("1", 2, hosts=("node00", "node04", "node05")))
    assert hosts() == ["node00", "node04", "node05"]
    delete_observation(registry.database, registry.fabrics.observations("toy")[-1].id)
    assert hosts() == ["node00"]
    assert registry.jobs.unknown_hosts(registry.jobs.read("1")) == ("node04", "node05")
    save(registry, fat_tree(leaves=3), 2)
    assert hosts() == ["node00", "node04", "node05"]


def test_runs_are_deleted_and_what_they_saved_stays(registry: Registry, full: FullCluster) -> None:
    registry.failed(Attempt(started_at=at(7), cluster="typo", formats=("x",)), InputError("cut off"))
    (failed,) = registry.runs.list("typo")
    before = node_counts(registry.database)
    assert delete_runs(registry.database, [failed.id[:9]], dry_run=True).counts == {"ingest runs": 1}
    assert delete_runs(registry.database, [failed.id]).counts == {"ingest runs": 1}
    assert registry.runs.list("typo") == ()
    assert node_counts(registry.database) == before | {"IngestRun": before["IngestRun"] - 1}
    with pytest.raises(UnknownName):
        delete_runs(registry.database, [failed.id])
