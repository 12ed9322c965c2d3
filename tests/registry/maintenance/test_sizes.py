"""Sizes of what is stored, against lengths that are read one by one."""

from __future__ import annotations

import shutil

from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.maintenance.sizes import StoredSize, file_bytes, free_bytes, stored_sizes
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support import paths
from tests.support.fat_tree import at, fat_tree, tree_tables


def lengths(database: Database, statement: str) -> int:
    return sum(len(blob) for row in database.query(statement)[1] for blob in row if blob is not None)


STATEMENTS = {
    "placements": "MATCH (p:Placement) OPTIONAL MATCH (p)-[:HAS_LOADS]->(l) RETURN p.host_of_rank, l.blob",
    "snapshots": "MATCH (n:Content {cluster: 'hpc1'}) RETURN n.blob",
    "forwarding tables": "MATCH (:Routing {cluster: 'hpc1'})-[:HAS_TABLE]->(t) RETURN t.ports",
    "counter sweeps": "MATCH (n:CounterSweep) RETURN n.blob",
}


def test_sizes_are_those_of_the_stored_arrays(registry: Registry) -> None:
    database = registry.database
    assert stored_sizes(database) == ()
    restore(database, paths.DATA / "dumps" / "schema-4.dump")
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), tables=tree_tables()))
    found = {(one.cluster, one.kind): one for one in stored_sizes(database)}
    for (kind, statement), count in zip(STATEMENTS.items(), (4, 2, 4, 2), strict=True):
        expected = StoredSize(cluster="hpc1", kind=kind, count=count, bytes=lengths(database, statement))
        assert found["hpc1", kind] == expected
    assert {key for key in found if key[0] == "toy"} == {("toy", "snapshots"), ("toy", "forwarding tables")}


def test_space_on_the_disk_is_known_of_the_embedded_server_only(database: Database) -> None:
    free, files = free_bytes(database), file_bytes(database)
    if database.kind == "neo4j":
        assert (free, files) == (None, None)
    else:
        assert database.folder is not None
        assert free is not None
        assert files is not None
        assert abs(free - shutil.disk_usage(database.folder).free) < 1e9
        assert files > 1_000_000
