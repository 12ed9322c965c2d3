"""Damage of each kind, done by Cypher: found, named, repaired, and nothing else touched."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from registry.database.driver import Database
from registry.errors import InputError
from registry.registry import Registry
from registry.upkeep.backup import backup, read_section, records
from registry.upkeep.clusters import rename_cluster
from registry.upkeep.deletion import delete_job, delete_observation, delete_profile
from registry.upkeep.restore import restore
from registry.upkeep.verify import (
    FILE,
    GRAPH,
    ORPHAN,
    UNREADABLE,
    WRONG_ID,
    Finding,
    repair,
    require_intact,
    verify,
)
from tests.conftest import empty
from tests.registry.upkeep.test_restore import hour
from tests.support import paths

DUMPS = paths.DATA / "dumps"
DAMAGED: dict[str, set[str]] = {
    "Profile": {"Rank", "Placement", "Simulation", "Advice", "LinkLoads", "Application"},
    "Trace": {"Simulation"},
    "Simulation CounterSweep IntendedWiring LinkLoads": set(),
}
"""Labels with bytes, and labels of which something depends on the first record of these."""


@pytest.fixture
def server_kind() -> str:
    return "embedded"


@pytest.fixture
def stored(registry: Registry) -> Registry:
    """A registry with data of nearly every kind."""
    restore(registry.database, DUMPS / "schema-4.dump")
    return registry


def run(database: Database, statement: str, **parameters: Any) -> None:
    database.write(lambda transaction: transaction.run(statement, **parameters))


def damaged(database: Database) -> list[Finding]:
    return [one for one in verify(database).findings if not one.harmless]


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


@pytest.mark.parametrize("labels", DAMAGED)
def test_what_cannot_be_read_is_found_and_deleted_with_its_dependents(stored: Registry, labels: str) -> None:
    database = stored.database
    for label in labels.split():
        identity = database.query(f"MATCH (n:{label}) RETURN n.id ORDER BY n.id LIMIT 1")[1][0][0]
        flip(database, label, identity)
        (found,) = damaged(database)
        assert (found.problem, found.label, found.id) == (UNREADABLE, label, identity)
        assert "damaged" in found.reason
        before = verify(database).checked
        done = repair(database, [found])
        assert identity in done.deleted[label]
        assert set(done.deleted) == {label, *DAMAGED[labels]}
        assert (done.restored, done.joined, done.rebuilt) == ((), (), ())
        assert damaged(database) == []
        assert before[label] - verify(database).checked.get(label, 0) == len(done.deleted[label])


def test_a_damaged_snapshot_is_restored_from_the_derived_graph(stored: Registry) -> None:
    database = stored.database
    before = contents(database)
    for cables in (15, 16):
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
ONE_LINK = "MATCH (:Device {name: 'leaf2'})-[l:LINK {src_port: 8}]->()"
SECOND_LINK = """
MATCH (a:Device {name: 'leaf1'}), (b:Device {name: 'leaf2'})
CREATE (a)-[:LINK {key: 'x', src_port: 1, dst_port: 1, src_guid: '', dst_guid: '', twin: 0,
                   capacity: 1.0, cables: 1, valid_from: $at, valid_to: $at}]->(b)
"""
STATE = "1 states of devices that are missing or have another time: n01 since"
DERIVED = {
    f"{ONE_LINK} DELETE l": LINK,
    f"{ONE_LINK} SET l.valid_to = $at": LINK,
    f"{ONE_LINK} SET l.capacity = 1.0": LINK,
    SECOND_LINK: "1 links that no observation gives: leaf1:1 to leaf2",
    "MATCH (s:DeviceState {name: 'n01'}) SET s.slots = 99": STATE,
    "MATCH (d:Device {name: 'n01'}) SET d.name = 'x'": "1 devices that are missing or have another name",
}
"""Damage, and its description."""


def test_a_derived_graph_that_differs_is_rebuilt(stored: Registry) -> None:
    database = stored.database
    before = contents(database)
    for statement, reason in DERIVED.items():
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


def test_an_orphan_is_deleted_or_joined_again(stored: Registry) -> None:
    database = stored.database
    before = contents(database)
    blob = database.query("MATCH (n:Profile) RETURN n.blob LIMIT 1")[1][0][0]
    for label, statement in ORPHANS.items():
        run(database, statement, at=hour(3), blob=blob)
        (found,) = damaged(database)
        assert (found.problem, found.label, found.id) == (ORPHAN, label, "x")
        assert repair(database, [found]).deleted == {label: ("x",)}
        assert contents(database) == before
    run(database, "MATCH (:CounterSweep)-[o:OF]->(:Cluster) DELETE o")
    orphans = damaged(database)
    assert [(one.problem, one.label) for one in orphans] == [(ORPHAN, "CounterSweep")] * 2
    assert repair(database, orphans).joined == tuple(sorted(one.id for one in orphans))
    assert contents(database) == before


WRONG = {
    "Content": "MATCH (n:Content) WHERE n.cables = 15 SET n.blob = $blob",
    "Profile": "MATCH (n:Profile {name: 'ring'}) SET n.application = 'other'",
    "Observation": "MATCH (n:Observation) WHERE n.at = $at SET n.at = $other",
    "Routing": "MATCH (:Routing)-[h:HAS_TABLE]->(:ForwardingTable) WITH h LIMIT 1 DELETE h",
    "CounterSweep": "MATCH (n:CounterSweep) WHERE n.at = $at SET n.at = $other",
    "Allocation": "MATCH (n:Allocation {hosts: ['n01', 'n02', 'n03', 'n06']}) SET n.slots = [1, 1, 1, 1]",
}


def test_content_that_gives_another_id_is_found(stored: Registry) -> None:
    database = stored.database
    run(database, "MATCH (n:Placement {strategy: 'greedy'}) SET n.seed = 99")
    harmless = verify(database)
    assert not harmless.damaged
    assert [(one.problem, one.label) for one in harmless.findings] == [(WRONG_ID, "Placement")]
    assert repair(database, harmless.findings).deleted == {}
    blob = database.query("MATCH (n:Content) WHERE n.cables = 16 RETURN n.blob")[1][0][0]
    known: set[tuple[str, str]] = {(GRAPH, "Cluster"), (ORPHAN, "ForwardingTable")}
    for label, statement in WRONG.items():
        time = hour(8) if label == "CounterSweep" else hour(12)
        run(database, statement, blob=blob, at=time, other=hour(13))
        found = {(one.problem, one.label) for one in damaged(database)}
        assert found - known == {(WRONG_ID, label)}
        known |= found


def test_a_backup_of_a_damaged_registry_is_restored_on_demand_only(stored: Registry, tmp_path: Path) -> None:
    database = stored.database
    identity = database.query("MATCH (n:Trace) RETURN n.id")[1][0][0]
    flip(database, "Trace", identity)
    backup(database, tmp_path / "x")
    empty(database)
    with pytest.raises(InputError, match=f"trace.*{identity}.*--accept-damaged") as caught:
        restore(database, tmp_path / "x", check=lambda some: require_intact(some, "x"))
    lines = {line: value for _, line, _, value in records(tmp_path / "x") if isinstance(value, dict)}
    assert lines[caught.value.line or 0]["id"] == identity
    assert database.query("MATCH (n) WHERE NOT n:Schema RETURN n")[1] == []
    restore(database, tmp_path / "x")
    assert [one.id for one in damaged(database)] == [identity]


def test_a_record_that_is_counted_but_not_read_is_found(
    stored: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_but_one_job(database: Database, section: str) -> list[Any]:
        found = list(read_section(database, section))
        return found[1:] if section == "Job" else found

    monkeypatch.setattr("registry.upkeep.verify.read_section", all_but_one_job)
    (lost,) = (one.reason for one in damaged(stored.database) if one.problem == FILE)
    counted, read = (int(word.replace(",", "")) for word in lost.split() if word[0].isdigit())
    assert counted == read + 1


def test_what_other_commands_leave_is_no_damage(stored: Registry) -> None:
    database = stored.database
    rename_cluster(database, "hpc1", "hpc2")
    found = verify(database)
    assert not found.damaged, found.findings
    assert {one.label for one in found.findings} == {"Placement", "Simulation"}
    first = stored.fabrics.observations("hpc2")[0].id
    for delete, name in ((delete_job, "78"), (delete_observation, first), (delete_profile, "ring")):
        delete(database, name, with_dependents=True)
        assert not verify(database).damaged
