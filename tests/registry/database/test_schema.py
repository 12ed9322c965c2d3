"""The schema as data, and the way of a database to it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from registry.database.driver import Database
from registry.database.labels import INDEXES, LABELS
from registry.database.schema import (
    MIGRATIONS,
    SCHEMA_ID,
    WRITE_VERSION,
    Migration,
    check_version,
    current_version,
    is_empty,
    migrate,
)
from registry.errors import DatabaseError, SchemaVersionError
from registry.ingest_runs.runs import Runs
from tests.conftest import empty

NEEDED = MIGRATIONS[-1].version
NEXT = Migration(
    version=NEEDED + 1,
    about="a test's step",
    statements=("MERGE (c:Cluster {id: 'migrated'}) ON CREATE SET c.steps = 0 SET c.steps = c.steps + 1",),
)


@pytest.fixture
def bare(database: Database) -> Iterator[Database]:
    """A database without constraints, indexes, version or content."""
    for label in ("Schema", *LABELS):
        run(database, f"DROP CONSTRAINT {label.lower()}_id IF EXISTS")
    for index in INDEXES:
        run(database, f"DROP INDEX {index.name} IF EXISTS")
    run(database, "MATCH (n) DETACH DELETE n")
    yield database
    run(database, "MATCH (n) DETACH DELETE n")
    migrate(database)


def run(database: Database, statement: str, **parameters: object) -> list[dict[str, Any]]:
    return database.write(lambda transaction: transaction.run(statement, **parameters))


def set_version(database: Database, version: int) -> None:
    run(database, WRITE_VERSION, id=SCHEMA_ID, version=version)


def unique_labels(database: Database) -> set[str]:
    rows = database.read(lambda transaction: transaction.run("SHOW CONSTRAINTS"))
    return {row["labelsOrTypes"][0] for row in rows if row["properties"] == ["id"]}


def indexed(database: Database) -> set[tuple[str, tuple[str, ...]]]:
    rows = database.read(lambda transaction: transaction.run("SHOW INDEXES"))
    return {(row["labelsOrTypes"][0], tuple(row["properties"])) for row in rows if row["properties"]}


def test_an_empty_database_gets_the_whole_schema(bare: Database) -> None:
    assert is_empty(bare)
    assert current_version(bare) == 0
    assert migrate(bare) == tuple(migration.version for migration in MIGRATIONS)
    check_version(bare)
    assert unique_labels(bare) >= {"Schema", *LABELS}
    assert indexed(bare) >= {(index.label, index.properties) for index in INDEXES}


def test_migrating_again_does_nothing(database: Database) -> None:
    before = unique_labels(database), indexed(database)
    assert migrate(database) == ()
    assert (unique_labels(database), indexed(database)) == before


def test_two_that_migrate_at_once_make_one_schema(bare: Database) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(migrate, [bare, bare]))
    assert bare.query("MATCH (s:Schema) RETURN s.version")[1] == [(NEEDED,)]
    check_version(bare)


def test_an_interrupted_migration_is_started_again(bare: Database) -> None:
    broken = replace(MIGRATIONS[0], statements=(*MIGRATIONS[0].statements[:5], "THIS FAILS"))
    with pytest.raises(DatabaseError):
        migrate(bare, migrations=(broken,))
    assert current_version(bare) == 0
    assert migrate(bare)[-1] == NEEDED


def test_an_older_database_is_refused_and_brought_up_step_by_step(database: Database) -> None:
    migrations = (*MIGRATIONS, NEXT)
    with pytest.raises(SchemaVersionError) as caught:
        check_version(database, migrations=migrations)
    assert (caught.value.found, caught.value.needed) == (NEEDED, NEEDED + 1)
    assert "almanac db migrate" in caught.value.command
    assert migrate(database, migrations=migrations) == (NEEDED + 1,)
    assert migrate(database, migrations=migrations) == ()
    check_version(database, migrations=migrations)
    assert database.query("MATCH (c:Cluster) RETURN c.steps")[1] == [(1,)]


def test_a_newer_database_is_refused_and_left_as_it_is(database: Database) -> None:
    set_version(database, NEEDED + 1)
    for attempt in (check_version, migrate):
        with pytest.raises(SchemaVersionError) as caught:
            attempt(database)
        assert (caught.value.found, caught.value.needed) == (NEEDED + 1, NEEDED)
        assert "upgrade" in caught.value.command
    assert current_version(database) == NEEDED + 1


def test_a_database_without_a_version_is_refused(bare: Database) -> None:
    with pytest.raises(SchemaVersionError) as caught:
        check_version(bare)
    assert caught.value.found == 0


def test_another_programs_graph_is_not_touched(bare: Database) -> None:
    run(bare, "CREATE (:Movie {title: 'Brazil'})")
    with pytest.raises(DatabaseError, match="another program"):
        migrate(bare)
    assert not unique_labels(bare)
    assert bare.query("MATCH (n) RETURN n")[1] == [({"title": "Brazil"},)]


@pytest.mark.parametrize("label", ["Schema", *LABELS])
def test_an_id_is_there_once_a_label(database: Database, label: str) -> None:
    run(database, f"CREATE (:{label} {{id: 'x'}})")
    with pytest.raises(DatabaseError):
        run(database, f"CREATE (:{label} {{id: 'x'}})")
    empty(database)


def test_versions_count_from_one() -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_runs_of_version_1_get_their_formats(bare: Database) -> None:
    assert migrate(bare, migrations=MIGRATIONS[:1]) == (1,)
    first = unique_labels(bare)
    assert "IngestRun" in first
    assert not {"CounterSweep", "CounterRollup", "IntendedWiring"} & first
    # as version 1 of this program wrote it
    run(
        bare,
        "CREATE (:IngestRun {id: 'r', cluster: 'toy', at: $at, source: 'ibnetdiscover, opensm-lfts', "
        "files: ['a', 'b'], digest: '0f', warnings: [], jobs: 0, seconds: 1.5, outcome: 'saved'})",
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    with pytest.raises(SchemaVersionError):
        check_version(bare)
    assert migrate(bare) == (2, 3, 4, 5, 6)
    check_version(bare)
    assert unique_labels(bare) >= {"Schema", *LABELS}
    assert indexed(bare) >= {(index.label, index.properties) for index in INDEXES}
    (found,) = Runs(bare).list()
    assert (found.formats, found.error, found.seconds) == (("ibnetdiscover", "opensm-lfts"), "", 1.5)
    assert [one.format for one in Runs(bare).last_good("toy")] == ["ibnetdiscover", "opensm-lfts"]


def test_placements_of_version_2_get_their_role_and_what_they_refer_to(bare: Database) -> None:
    assert migrate(bare, migrations=MIGRATIONS[:2]) == (1, 2)
    assert not {"Advice", "Drawing"} & unique_labels(bare)
    # as version 2 of this program wrote them
    run(
        bare,
        "CREATE (x:Content {id: 'c/1'}), (f:Profile {id: 'f', name: 'ring', application: 'cg'}) "
        "CREATE (j:Job {id: 'c/7', job: '7'}), (a:Allocation {id: 'c/a'}) "
        "CREATE (p:Placement {id: 'p', cluster: 'c', strategy: 'given', recorded_at: $at})-[:IN]->(x) "
        "CREATE (p)-[:OF]->(f) CREATE (j)-[:HAS_PLACEMENT]->(p) CREATE (p)-[:ON]->(a) "
        "CREATE (:Placement {id: 'q', cluster: 'c', strategy: 'greedy', recorded_at: $at})-[:IN]->(x)",
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert migrate(bare) == (3, 4, 5, 6)
    check_version(bare)
    assert unique_labels(bare) >= {"Advice", "Drawing"}
    assert indexed(bare) >= {(index.label, index.properties) for index in INDEXES}
    read = "p.id, p.role, p.snapshot, p.profile, p.application, p.job, p.allocation"
    assert bare.query(f"MATCH (p:Placement) RETURN {read} ORDER BY p.id")[1] == [
        ("p", "present", "c/1", "f", "cg", "7", "c/a"),
        ("q", "proposed", "c/1", None, None, None, None),
    ]
    # begun again, as after an interruption
    set_version(bare, 2)
    assert migrate(bare) == (3, 4, 5, 6)


def test_times_keep_their_microseconds_after_a_migration_of_times_to_the_second(bare: Database) -> None:
    assert migrate(bare, migrations=MIGRATIONS[:2]) == (1, 2)
    second, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)
    write = "CREATE (:Placement {id: $id, recorded_at: $at}), (:Job {id: $id, cluster: 'c', started_at: $at})"
    run(bare, write, id="old", at=second)
    migrate(bare)
    run(bare, write, id="new", at=later)
    for label, name in (("Placement", "recorded_at"), ("Job", "started_at")):
        times = f"MATCH (n:{label}) RETURN n.id, n.{name} ORDER BY n.{name}"
        assert bare.query(times)[1] == [("old", second), ("new", later)]
        since = f"MATCH (n:{label}) WHERE n.{name} > $at RETURN n.id"
        assert bare.query(since, at=second)[1] == [("new",)]
        assert bare.query(since, at=later)[1] == []


def test_a_database_of_version_3_gets_traces_and_simulated_runs_and_keeps_what_it_has(bare: Database) -> None:
    assert migrate(bare, migrations=MIGRATIONS[:3]) == (1, 2, 3)
    assert not {"Trace", "Simulation"} & unique_labels(bare)
    run(
        bare,
        "CREATE (:Profile {id: 'f', name: 'ring'}), (:Placement {id: 'p', cluster: 'c', role: 'present'})",
    )
    with pytest.raises(SchemaVersionError):
        check_version(bare)
    assert migrate(bare) == (4, 5, 6)
    check_version(bare)
    assert unique_labels(bare) >= {"Schema", *LABELS}
    assert indexed(bare) >= {(index.label, index.properties) for index in INDEXES}
    assert bare.query("MATCH (f:Profile) RETURN f.id, f.name")[1] == [("f", "ring")]
    assert bare.query("MATCH (p:Placement) RETURN p.id, p.role")[1] == [("p", "present")]


def test_a_database_of_version_4_gets_configurations_of_switches_and_keeps_what_it_has(
    bare: Database,
) -> None:
    assert migrate(bare, migrations=MIGRATIONS[:4]) == (1, 2, 3, 4)
    assert "Reconfiguration" not in unique_labels(bare)
    run(bare, "CREATE (:Cluster {id: 'c', seq: 3})")
    assert migrate(bare) == (5, 6)
    check_version(bare)
    assert unique_labels(bare) >= {"Schema", *LABELS}
    assert indexed(bare) >= {(index.label, index.properties) for index in INDEXES}
    assert bare.query("MATCH (c:Cluster) RETURN c.id, c.seq")[1] == [("c", 3)]
