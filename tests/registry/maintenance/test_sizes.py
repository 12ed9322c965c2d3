"""Sizes of what is stored, against lengths that are read one by one."""

from __future__ import annotations

import shutil
from pathlib import Path

from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.maintenance.sizes import StoredSize, file_bytes, free_bytes, stored_sizes
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support import paths
from tests.support.fat_tree import at, fat_tree, tree_tables


def lengths(database: Database, statement: str) -> int:
    return sum(len(blob) for row in database.query(statement)[1] for blob in row if blob is not None)


def test_sizes_are_those_of_the_stored_arrays(registry: Registry) -> None:
    restore(registry.database, paths.DATA / "dumps" / "schema-4.dump")
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), tables=tree_tables()))
    found = {(one.cluster, one.kind): one for one in stored_sizes(registry.database)}
    database = registry.database
    placements = "MATCH (p:Placement) OPTIONAL MATCH (p)-[:HAS_LOADS]->(l) RETURN p.host_of_rank, l.blob"
    assert found["hpc1", "placements"] == StoredSize(
        cluster="hpc1", kind="placements", count=4, bytes=lengths(database, placements)
    )
    snapshots = "MATCH (n:Content {cluster: 'hpc1'}) RETURN n.blob"
    assert found["hpc1", "snapshots"] == StoredSize(
        cluster="hpc1", kind="snapshots", count=2, bytes=lengths(database, snapshots)
    )
    tables = "MATCH (:Routing {cluster: 'hpc1'})-[:HAS_TABLE]->(t) RETURN t.ports"
    assert found["hpc1", "forwarding tables"] == StoredSize(
        cluster="hpc1", kind="forwarding tables", count=4, bytes=lengths(database, tables)
    )
    sweeps = "MATCH (n:CounterSweep) RETURN n.blob"
    assert found["hpc1", "counter sweeps"] == StoredSize(
        cluster="hpc1", kind="counter sweeps", count=2, bytes=lengths(database, sweeps)
    )
    assert {key for key in found if key[0] == "toy"} == {("toy", "snapshots"), ("toy", "forwarding tables")}


def test_an_empty_registry_has_no_sizes(database: Database) -> None:
    assert stored_sizes(database) == ()


def test_free_space_is_known_of_the_embedded_server_only(database: Database, tmp_path: Path) -> None:
    if database.kind == "neo4j":
        assert free_bytes(database) is None
    else:
        assert database.folder is not None
        free = free_bytes(database)
        assert free is not None
        assert abs(free - shutil.disk_usage(database.folder).free) < 1e9


def test_the_size_of_the_files_is_known_of_the_embedded_server_only(database: Database) -> None:
    found = file_bytes(database)
    if database.kind == "neo4j":
        assert found is None
    else:
        assert found is not None
        assert found > 1_000_000
