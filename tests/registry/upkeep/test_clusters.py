"""Deletion, renaming and merging of clusters: the old name is gone, nothing is lost, nothing is twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from registry.database.driver import Database
from registry.errors import ChangeRefused, InputError, InvalidValue, UnknownName
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.ingest_runs import Attempt
from registry.upkeep import clusters
from registry.upkeep.clusters import KEEP_ID, delete_cluster, merge_clusters, rename_cluster
from registry.upkeep.deletion import delete_profile
from tests.conftest import empty
from tests.registry.store.test_fabrics import CONTENTS, A, B, C, derived, save
from tests.support.busy_cluster import fill, job, place
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import FullCluster, fill_all, node_counts, sweep


def ids(database: Database) -> tuple[list[Any], list[Any]]:
    """Return labels and ids of all nodes, and the ends of all relationships, that do not name a search."""
    _, nodes = database.query("MATCH (n) RETURN labels(n)[0], n.id")
    read = "MATCH (a)-[r]->(b) RETURN labels(a)[0], a.id, type(r), labels(b)[0], b.id"
    _, edges = database.query(read)
    kept = {*KEEP_ID, "LinkLoads"}
    named = sorted(row for row in nodes if row[0] not in kept)
    return named, sorted(row for row in edges if not kept & {row[0], row[3]})


def texts(database: Database) -> set[str]:
    _, rows = database.query("MATCH (n) RETURN properties(n) AS p")
    _, more = database.query("MATCH ()-[r]->() RETURN properties(r) AS p")
    values = [value for (row,) in (*rows, *more) for value in row.values()]
    listed = [item for value in values if isinstance(value, list) for item in value]
    return {value for value in (*values, *listed) if isinstance(value, str)}


def test_a_renamed_cluster_is_as_if_it_always_had_the_name(registry: Registry, full: FullCluster) -> None:
    counts = node_counts(registry.database)
    moved = rename_cluster(registry.database, "toy", "new")
    assert (moved.known, moved.conflicts) == ({}, ())
    assert node_counts(registry.database) == counts
    assert not {text for text in texts(registry.database) if text == "toy" or text.startswith("toy/")}
    found, graph = ids(registry.database), derived(registry.database, "new")
    placement = registry.placements.read(full.placement)
    assert (placement.cluster, placement.content) == ("new", registry.fabrics.read("new").id)
    assert registry.simulations.read(full.simulation).content == placement.content
    assert registry.optical.read("new").plan == full.plan
    assert registry.jobs.read("1").cluster == "new"
    # files ingested again add nothing, and the old name is free
    again = Intake(cluster="new", observed_at=at(5), fabric=fat_tree(without=(0,)), counters=(sweep(3000),))
    assert not registry.save(again).new_observation
    assert node_counts(registry.database)["Observation"] == counts["Observation"]
    assert registry.same("toy scan") is None
    with pytest.raises(UnknownName):
        registry.fabrics.read("toy")
    assert save(registry, A, 0, cluster="toy").new_observation
    assert {one.name for one in registry.fabrics.clusters()} == {"new", "toy"}
    empty(registry.database)
    fill_all(registry, "new")
    assert ids(registry.database) == found
    assert derived(registry.database, "new") == graph


def test_a_name_that_is_taken_or_impossible_is_refused(registry: Registry, full: FullCluster) -> None:
    save(registry, A, 0, cluster="other")
    before = ids(registry.database)
    with pytest.raises(ChangeRefused, match="this cluster exists"):
        rename_cluster(registry.database, "toy", "other")
    for name in ("a/b", "a\x1bb", "x" * 999):
        with pytest.raises(InvalidValue):
            rename_cluster(registry.database, "toy", name)
    with pytest.raises(UnknownName) as error:
        rename_cluster(registry.database, "toi", "free")
    assert error.value.close == ("toy",)
    assert rename_cluster(registry.database, "toy", "free", dry_run=True).moved["jobs"] == 1
    assert ids(registry.database) == before


def test_merged_clusters_are_as_if_all_had_been_one(registry: Registry) -> None:
    for minute, fabric in enumerate(CONTENTS):
        save(registry, fabric, minute, cluster="two" if minute % 2 else "one")
        save(registry, fabric, minute, cluster="all")
    for cluster in ("one", "two", "all"):
        save(registry, A, 9, cluster=cluster)
    merge_clusters(registry.database, "two", "one", force=True)
    assert derived(registry.database, "one") == derived(registry.database, "all")
    delete_cluster(registry.database, "all")
    found = ids(registry.database)
    delete_cluster(registry.database, "one")
    assert node_counts(registry.database) == {}
    for minute, fabric in [*enumerate(CONTENTS), (9, A)]:
        save(registry, fabric, minute, cluster="one")
    assert ids(registry.database) == found


def test_a_merge_moves_everything_and_stores_the_same_once(registry: Registry, full: FullCluster) -> None:
    fill(registry, job("1", 2, hosts=("node03", "node00")), job("2", 3), cluster="twin")
    save(registry, B, 8, cluster="twin")
    registry.jobs.attach("1", "pair", "twin")
    mine = place(registry, "1", cluster="twin")
    registry.save(Intake(cluster="twin", counters=(sweep(5000),)))
    counts = node_counts(registry.database)
    moved = merge_clusters(registry.database, "twin", "toy")
    assert (moved.moved["placements"], moved.moved["counter sweeps"], moved.moved["jobs"]) == (1, 1, 1)
    assert (moved.known["jobs"], moved.known["snapshots"], moved.conflicts) == (1, 1, ())
    assert registry.jobs.read("1", "toy").profile == registry.profiles.read("pair").id
    assert {one.id for one in registry.placements.history("toy", job="1")} >= {mine, full.placement}
    assert registry.placements.read(mine).content == registry.fabrics.observations("toy")[-1].snapshot
    assert not {text for text in texts(registry.database) if text == "twin" or text.startswith("twin/")}
    found = node_counts(registry.database)
    assert (found["Cluster"], found["Job"], found["Content"]) == (1, 2, counts["Content"] - 1)
    assert len(registry.fabrics.observations("toy")) == 3
    before = derived(registry.database, "toy")
    registry.fabrics.rebuild("toy")
    assert derived(registry.database, "toy") == before
    delete_cluster(registry.database, "toy")
    delete_profiles(registry)


def delete_profiles(registry: Registry) -> None:
    """Delete what only profiles keep; then nothing is left."""
    for profile in registry.profiles.list():
        delete_profile(registry.database, profile.id, with_dependents=True)
    assert node_counts(registry.database) == {}


def test_jobs_that_differ_refuse_a_merge(registry: Registry) -> None:
    fill(registry, job("1", 2), job("2", 3))
    fill(registry, job("1", 2), job("2", 4), cluster="twin")
    before = ids(registry.database)
    with pytest.raises(ChangeRefused, match="twin and toy differ: job 2; --force merges them"):
        merge_clusters(registry.database, "twin", "toy")
    assert merge_clusters(registry.database, "twin", "toy", dry_run=True).conflicts == ("job 2",)
    assert ids(registry.database) == before
    merge_clusters(registry.database, "twin", "toy", force=True)
    assert registry.jobs.read("2").job.started_at == at(3)


def test_counters_of_one_hour_that_differ_refuse_a_merge(registry: Registry) -> None:
    fill_all(registry, "one")
    fill_all(registry, "two")
    assert merge_clusters(registry.database, "two", "one", dry_run=True).conflicts == ()
    change = "MATCH (r:CounterRollup) WHERE r.cluster = 'two' SET r.pieces = r.pieces + 1"
    registry.database.write(lambda transaction: transaction.run(change))
    registry.optical.save(replace(registry.optical.read("two"), max_degree=3))
    first, second = merge_clusters(registry.database, "two", "one", dry_run=True).conflicts
    assert first.startswith("counters of one/hour/2026-01-01T00:00")
    assert second == "optical switch"


def test_other_machines_refuse_a_merge(registry: Registry) -> None:
    save(registry, C, 0, cluster="one")
    other = fat_tree(renamed={f"node{h:02}": f"n{h}" for h in range(4)}, spines=1, leaves=2)
    save(registry, other, 0, cluster="two")
    with pytest.raises(ChangeRefused, match="only 3 of 11 devices are in both fabrics"):
        merge_clusters(registry.database, "two", "one")


def test_a_cluster_made_again_has_another_version(registry: Registry) -> None:
    """Pages cache what they read under the name and the version of a cluster."""
    save(registry, A, 0)
    (first,) = registry.fabrics.clusters()
    delete_cluster(registry.database, "toy")
    save(registry, A, 0)
    (second,) = registry.fabrics.clusters()
    assert second.version != first.version


def test_a_cluster_is_deleted_while_others_ingest(registry: Registry) -> None:
    deleted = 0
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(lambda: [save(registry, CONTENTS[n % 4], n) for n in range(16)])
        while not writer.done():
            with suppress(UnknownName):
                delete_cluster(registry.database, "toy")
                deleted += 1
        assert len(writer.result()) == 16
    assert deleted
    save(registry, A, 50)
    before = derived(registry.database, "toy")
    registry.fabrics.rebuild("toy")
    assert derived(registry.database, "toy") == before
    delete_cluster(registry.database, "toy")
    assert node_counts(registry.database) == {}


def test_a_large_cluster_is_deleted_in_steps(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_all(registry, "one")
    kept = node_counts(registry.database)
    fill_all(registry, "two")
    monkeypatch.setattr(clusters, "AT_ONCE", 10)
    monkeypatch.setattr(clusters, "STEP", 3)
    steps = list[float]()
    counts = delete_cluster(registry.database, "two", dry_run=True).counts
    done = delete_cluster(registry.database, "two", progress=lambda _, done, *more: steps.append(done))
    assert done.counts == counts
    assert steps == sorted(steps)
    assert len(steps) > 10
    assert node_counts(registry.database) == kept


def test_an_interrupted_deletion_goes_on(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_all(registry, "one")
    monkeypatch.setattr(clusters, "AT_ONCE", 10)
    monkeypatch.setattr(clusters, "STEP", 2)
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
    delete_profiles(registry)


def test_a_name_with_failed_runs_only_is_deleted(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "AT_ONCE", 1)
    for minute in range(3):
        attempt = Attempt(started_at=at(minute), cluster="typo", formats=("x",))
        registry.failed(attempt, InputError("cut off"))
    for dry_run in (True, False):
        assert delete_cluster(registry.database, "typo", dry_run=dry_run).counts == {"ingest runs": 3}
    assert node_counts(registry.database) == {}
    with pytest.raises(UnknownName):
        delete_cluster(registry.database, "typo")
