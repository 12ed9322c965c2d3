"""Damage of each kind, done by Cypher: found, named, repaired, and nothing else touched."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from registry.database.backups.backup import backup
from registry.database.backups.backup_file import records
from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.errors import InputError
from registry.maintenance.clusters import rename_cluster
from registry.maintenance.deletion import delete_job, delete_observation, delete_profile
from registry.maintenance.integrity import GRAPH, ORPHAN, UNREADABLE, WRONG_ID, Finding
from registry.maintenance.repair import repair
from registry.maintenance.verify import require_intact, verify
from registry.registry import Registry
from tests.conftest import empty
from tests.support import paths

DUMPS = paths.DATA / "dumps"
DAMAGED: dict[str, tuple[str, set[str]]] = {
    "Profile": ("blob", {"Rank", "Placement", "Simulation", "Advice", "LinkLoads", "Application"}),
    "Trace": ("blob", {"Simulation"}),
    "Simulation": ("blob", set()),
    "CounterSweep": ("blob", set()),
    "IntendedWiring": ("blob", set()),
    "LinkLoads": ("blob", set()),
}
"""Property with the bytes of a label, and labels of which something depends on its first record."""


def hour(number: int) -> datetime:
    return datetime(2025, 11, 1, number, tzinfo=UTC)


@pytest.fixture
def stored(registry: Registry) -> Registry:
    """A registry with data of nearly every kind."""
    restore(registry.database, DUMPS / "schema-4.dump")
    return registry


def run(database: Database, statement: str, **parameters: Any) -> None:
    database.write(lambda transaction: transaction.run(statement, **parameters))


def damaged(database: Database) -> list[Finding]:
    return [one for one in verify(database).findings if not one.harmless]


@pytest.mark.parametrize("version", range(1, 6))
def test_backups_of_all_versions_are_intact(
    embedded_database: Database, version: int, tmp_path: Path
) -> None:
    empty(embedded_database)
    path = DUMPS / f"schema-{version}.dump"
    restore(embedded_database, path, check=lambda some: require_intact(some, str(path)))
    found = verify(embedded_database)
    assert [one for one in found.findings if not one.harmless] == []
    assert not found.damaged
    assert {one.label for one in found.findings} <= {"Placement"}
    assert found.checked["Content"] >= 2
    assert found.checked["ForwardingTable"] >= 4


def flip(database: Database, label: str, identity: str, name: str = "blob") -> bytes:
    """Flip a bit of the bytes of a record; return the bytes as they were."""
    blob = database.query(f"MATCH (n:{label} {{id: $id}}) RETURN n.{name}", id=identity)[1][0][0]
    flipped = bytearray(blob)
    flipped[-8] ^= 1
    run(database, f"MATCH (n:{label} {{id: $id}}) SET n.{name} = $new", id=identity, new=bytes(flipped))
    return bytes(blob)


def contents(database: Database) -> tuple[list[str], list[str]]:
    """Return all of a database, but for what every writer changes."""
    text = "MATCH (n) WHERE NOT n:Cluster AND NOT n:Schema RETURN labels(n), properties(n)"
    nodes = database.query(text)[1]
    for _, properties in nodes:
        properties.pop("key" if "formats" in properties else "", None)
    edges = database.query("MATCH (a)-[r]->(b) RETURN a.id, type(r), properties(r), b.id")[1]
    return sorted(map(sorted_text, nodes)), sorted(map(sorted_text, edges))


def sorted_text(row: tuple[Any, ...]) -> str:
    return repr([sorted(item.items()) if isinstance(item, dict) else item for item in row])


@pytest.mark.parametrize("label", DAMAGED)
def test_a_flipped_bit_is_found_and_what_cannot_be_read_deleted_with_its_dependents(
    stored: Registry, label: str
) -> None:
    name, dependents = DAMAGED[label]
    database = stored.database
    identity = database.query(f"MATCH (n:{label}) RETURN n.id ORDER BY n.id LIMIT 1")[1][0][0]
    flip(database, label, identity, name)
    (found,) = damaged(database)
    assert (found.problem, found.label, found.id) == (UNREADABLE, label, identity)
    assert "damaged" in found.reason
    before = verify(database).checked
    done = repair(database, [found])
    assert identity in done.deleted[label]
    assert set(done.deleted) == {label, *dependents}
    assert (done.restored, done.joined, done.rebuilt) == ((), (), ())
    assert damaged(database) == []
    assert before[label] - verify(database).checked[label] == len(done.deleted[label])


@pytest.mark.parametrize("cables", [15, 16])
def test_a_damaged_snapshot_is_restored_from_the_derived_graph(stored: Registry, cables: int) -> None:
    database = stored.database
    before = contents(database)
    identity = database.query("MATCH (n:Content) WHERE n.cables = $c RETURN n.id", c=cables)[1][0][0]
    blob = flip(database, "Content", identity)
    found = damaged(database)
    assert [(one.problem, one.id) for one in found] == [(UNREADABLE, identity), (GRAPH, "hpc1")]
    done = repair(database, found)
    assert (done.restored, done.rebuilt, done.deleted) == ((identity,), ("hpc1",), {})
    assert damaged(database) == []
    assert database.query("MATCH (n:Content {id: $id}) RETURN n.blob", id=identity)[1] == [(blob,)]
    assert contents(database) == before


def test_a_snapshot_that_is_nowhere_else_is_deleted_with_its_observations(stored: Registry) -> None:
    database = stored.database
    lost = stored.fabrics.read("hpc1", hour(11)).id
    left = stored.fabrics.read("hpc1", hour(12)).id
    flip(database, "Content", lost)
    run(database, "MATCH (:Device {name: 'leaf2'})-[l:LINK {src_port: 8}]->() DELETE l")
    done = repair(database, damaged(database))
    assert done.deleted["Content"] == (lost,)
    assert len(done.deleted["Observation"]) == 1
    assert {"Placement", "Simulation", "Advice", "LinkLoads"} <= set(done.deleted)
    assert damaged(database) == []
    (cluster,) = stored.fabrics.clusters()
    assert (cluster.observations, cluster.snapshot, cluster.cables) == (1, left, 15)
    assert stored.fabrics.subgraph("hpc1", ("n01", "n08")).cable_count == 9


def test_a_damaged_table_takes_the_routing_but_leaves_the_wiring(stored: Registry) -> None:
    database = stored.database
    (table,) = database.query("MATCH (n:ForwardingTable) RETURN n.id ORDER BY n.id LIMIT 1")[1][0]
    flip(database, "ForwardingTable", table, "ports")
    (found,) = damaged(database)
    assert (found.problem, found.label, found.id) == (UNREADABLE, "ForwardingTable", table)
    done = repair(database, [found])
    assert len(done.deleted["Routing"]) == 1
    assert len(done.deleted["ForwardingTable"]) == 4
    assert "Observation" not in done.deleted
    assert damaged(database) == []
    assert (stored.fabrics.read("hpc1").fabric.tables, len(stored.fabrics.observations("hpc1"))) == (None, 2)


LINK = "1 links that are missing or have another time: leaf2:8 to spine2"
DERIVED = {
    "a deleted link": (
        "MATCH (:Device {name: 'leaf2'})-[l:LINK {src_port: 8}]->() DELETE l",
        LINK,
    ),
    "a changed interval": (
        "MATCH (:Device {name: 'leaf2'})-[l:LINK {src_port: 8}]->() SET l.valid_to = $at",
        LINK,
    ),
    "a changed capacity": (
        "MATCH (:Device {name: 'leaf2'})-[l:LINK {src_port: 8}]->() SET l.capacity = 1.0",
        LINK,
    ),
    "a second link": (
        "MATCH (a:Device {name: 'leaf1'}), (b:Device {name: 'leaf2'}) "
        "CREATE (a)-[:LINK {key: 'x', src_port: 1, dst_port: 1, src_guid: '', dst_guid: '', twin: 0, "
        "capacity: 1.0, cables: 1, valid_from: $at, valid_to: $at}]->(b)",
        "1 links that no observation gives: leaf1:1 to leaf2",
    ),
    "a changed state": (
        "MATCH (s:DeviceState {name: 'n01'}) SET s.slots = 99",
        "1 states of devices that are missing or have another time: n01 since",
    ),
    "a changed name": (
        "MATCH (d:Device {name: 'n01'}) SET d.name = 'x'",
        "1 devices that are missing or have another name",
    ),
}


@pytest.mark.parametrize("damage", DERIVED)
def test_a_derived_graph_that_differs_is_rebuilt(stored: Registry, damage: str) -> None:
    database = stored.database
    before = contents(database)
    statement, reason = DERIVED[damage]
    run(database, statement, at=datetime(2025, 11, 1, 3, tzinfo=UTC))
    found = damaged(database)
    assert {(one.problem, one.id) for one in found} == {(GRAPH, "hpc1")}
    assert reason in found[0].reason
    done = repair(database, found)
    assert (done.rebuilt, done.deleted) == (("hpc1",), {})
    assert damaged(database) == []
    assert contents(database) == before


ORPHANS = {
    "DeviceState": "CREATE (:DeviceState {id: 'x', name: 'n99'})",
    "Rank": "CREATE (:Rank {id: 'x', index: 0})",
    "Drawing": "MATCH (d:Device) WITH d LIMIT 1 CREATE (:Drawing {id: 'x', cluster: 'hpc1', blob: $blob})",
    "Observation": "CREATE (:Observation {id: 'x', cluster: 'hpc1', at: $at, seq: 9})",
}


@pytest.mark.parametrize("label", ORPHANS)
def test_an_orphan_is_deleted(stored: Registry, label: str) -> None:
    database = stored.database
    before = contents(database)
    blob = database.query("MATCH (n:Profile) RETURN n.blob LIMIT 1")[1][0][0]
    run(database, ORPHANS[label], at=hour(3), blob=blob)
    (found,) = damaged(database)
    assert (found.problem, found.label, found.id) == (ORPHAN, label, "x")
    assert repair(database, [found]).deleted == {label: ("x",)}
    assert contents(database) == before


def test_a_record_without_its_cluster_is_joined_again(stored: Registry) -> None:
    database = stored.database
    before = contents(database)
    run(database, "MATCH (:CounterSweep)-[o:OF]->(:Cluster) DELETE o")
    found = damaged(database)
    assert [(one.problem, one.label) for one in found] == [(ORPHAN, "CounterSweep")] * 2
    assert repair(database, found).joined == tuple(sorted(one.id for one in found))
    assert contents(database) == before


WRONG = {
    "Content": "MATCH (n:Content) WHERE n.cables = 15 SET n.blob = $blob",
    "Profile": "MATCH (n:Profile {name: 'ring'}) SET n.application = 'other'",
    "Observation": "MATCH (n:Observation) WHERE n.at = $at SET n.at = $other",
    "Routing": "MATCH (:Routing)-[h:HAS_TABLE]->(:ForwardingTable) WITH h LIMIT 1 DELETE h",
    "CounterSweep": "MATCH (n:CounterSweep) WHERE n.at = $at SET n.at = $other",
    "Allocation": "MATCH (n:Allocation {hosts: ['n01', 'n02', 'n03', 'n06']}) SET n.slots = [1, 1, 1, 1]",
}


@pytest.mark.parametrize("label", WRONG)
def test_content_that_gives_another_id_is_found(stored: Registry, label: str) -> None:
    database = stored.database
    blob = database.query("MATCH (n:Content) WHERE n.cables = 16 RETURN n.blob")[1][0][0]
    time = hour(8) if label == "CounterSweep" else hour(12)
    run(database, WRONG[label], blob=blob, at=time, other=hour(13))
    found = {(one.problem, one.label) for one in damaged(database)}
    assert (WRONG_ID, label) in found
    assert found <= {(WRONG_ID, label), (GRAPH, "Cluster"), (ORPHAN, "ForwardingTable")}


def test_a_placement_that_gives_another_id_is_reported_but_harmless(stored: Registry) -> None:
    run(stored.database, "MATCH (n:Placement {strategy: 'greedy'}) SET n.seed = 99")
    found = verify(stored.database)
    assert not found.damaged
    assert [(one.problem, one.label) for one in found.findings] == [(WRONG_ID, "Placement")]
    assert repair(stored.database, found.findings).deleted == {}


def test_a_backup_of_a_damaged_registry_is_restored_on_demand_only(
    embedded_database: Database, tmp_path: Path
) -> None:
    empty(embedded_database)
    restore(embedded_database, DUMPS / "schema-4.dump")
    identity = embedded_database.query("MATCH (n:Trace) RETURN n.id")[1][0][0]
    flip(embedded_database, "Trace", identity)
    backup(embedded_database, tmp_path / "x")
    empty(embedded_database)
    with pytest.raises(InputError, match=f"trace.*{identity}.*--accept-damaged") as caught:
        restore(embedded_database, tmp_path / "x", check=lambda some: require_intact(some, "x"))
    assert caught.value.line == line_of(tmp_path / "x", identity)
    assert embedded_database.query("MATCH (n) WHERE NOT n:Schema RETURN n")[1] == []
    restore(embedded_database, tmp_path / "x")
    assert [one.id for one in damaged(embedded_database)] == [identity]


def line_of(path: Path, identity: str) -> int:
    return next(
        line for _, line, _, value in records(path) if isinstance(value, dict) and value["id"] == identity
    )


def test_what_other_commands_leave_is_no_damage(stored: Registry) -> None:
    database = stored.database
    rename_cluster(database, "hpc1", "hpc2")
    found = verify(database)
    assert not found.damaged, found.findings
    assert {one.label for one in found.findings} == {"Placement", "Simulation"}
    first = stored.fabrics.observations("hpc2")[0].id
    delete_job(database, "78", with_dependents=True)
    assert not verify(database).damaged
    delete_observation(database, first, with_dependents=True)
    assert not verify(database).damaged
    delete_profile(database, "ring", with_dependents=True)
    assert not verify(database).damaged
