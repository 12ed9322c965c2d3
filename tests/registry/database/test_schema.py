"""The schema as data, the way of a database to it, and pauses of writers."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from registry.database import driver, schema
from registry.database import schema as pause
from registry.database.driver import Database
from registry.database.schema import (
    INDEXES,
    LABELS,
    MIGRATIONS,
    RELATIONSHIPS,
    SCHEMA_ID,
    WRITE_VERSION,
    Migration,
    check_version,
    constraint_statement,
    current_version,
    index_statement,
    is_empty,
    migrate,
)
from registry.errors import DatabaseError, DatabaseUnavailable, SchemaVersionError
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.ingest_runs import Runs
from tests.conftest import empty
from tests.support import paths
from tests.support.concurrent_writers import CONTENTS
from tests.support.fat_tree import at
from tests.support.waiting import SteeredClock

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


def unique_labels(database: Database) -> set[str]:
    rows = database.read(lambda transaction: transaction.run("SHOW CONSTRAINTS"))
    return {row["labelsOrTypes"][0] for row in rows if row["properties"] == ["id"]}


def indexed(database: Database) -> set[tuple[str, tuple[str, ...]]]:
    rows = database.read(lambda transaction: transaction.run("SHOW INDEXES"))
    return {(row["labelsOrTypes"][0], tuple(row["properties"])) for row in rows if row["properties"]}


def test_an_empty_database_gets_the_whole_schema_once(bare: Database) -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))
    assert (is_empty(bare), current_version(bare)) == (True, 0)
    with pytest.raises(SchemaVersionError) as caught:
        check_version(bare)
    assert caught.value.found == 0
    assert migrate(bare) == tuple(migration.version for migration in MIGRATIONS)
    require_whole(bare)
    before = unique_labels(bare), indexed(bare)
    assert migrate(bare) == ()
    assert (unique_labels(bare), indexed(bare)) == before


def require_whole(database: Database) -> None:
    check_version(database)
    assert unique_labels(database) >= {"Schema", *LABELS}
    assert indexed(database) >= {(index.label, index.properties) for index in INDEXES}


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
    run(database, WRITE_VERSION, id=SCHEMA_ID, version=NEEDED + 1)
    for attempt in (check_version, migrate):
        with pytest.raises(SchemaVersionError) as caught:
            attempt(database)
        assert (caught.value.found, caught.value.needed) == (NEEDED + 1, NEEDED)
        assert "upgrade" in caught.value.command
    assert current_version(database) == NEEDED + 1


def test_another_programs_graph_is_not_touched(bare: Database) -> None:
    run(bare, "CREATE (:Movie {title: 'Brazil'})")
    with pytest.raises(DatabaseError, match="another program"):
        migrate(bare)
    assert not unique_labels(bare)
    assert bare.query("MATCH (n) RETURN n")[1] == [({"title": "Brazil"},)]


def test_an_id_is_there_once_a_label(database: Database) -> None:
    for label in ("Schema", *LABELS):
        run(database, f"CREATE (:{label} {{id: 'x'}})")
        with pytest.raises(DatabaseError, match="refused") as caught:
            run(database, f"CREATE (:{label} {{id: 'x'}})")
        assert not isinstance(caught.value, DatabaseUnavailable)
    empty(database)


SECOND = datetime(2026, 1, 1, tzinfo=UTC)
RUN_1 = """
CREATE (:IngestRun {id: 'r', cluster: 'toy', at: $at, source: 'ibnetdiscover, opensm-lfts', jobs: 0,
                    files: ['a', 'b'], digest: '0f', warnings: [], seconds: 1.5, outcome: 'saved'})
"""
PLACEMENTS_2 = """
CREATE (x:Content {id: 'c/1'}), (f:Profile {id: 'f', name: 'ring', application: 'cg'})
CREATE (j:Job {id: 'c/7', job: '7', cluster: 'c', started_at: $at}), (a:Allocation {id: 'c/a'})
CREATE (p:Placement {id: 'p', cluster: 'c', strategy: 'given', recorded_at: $at})-[:IN]->(x)
CREATE (p)-[:OF]->(f) CREATE (j)-[:HAS_PLACEMENT]->(p) CREATE (p)-[:ON]->(a)
CREATE (:Placement {id: 'q', cluster: 'c', strategy: 'greedy', recorded_at: $at})-[:IN]->(x)
"""
EARLIER: dict[int, tuple[str, set[str]]] = {
    1: (RUN_1, {"CounterSweep", "CounterRollup", "IntendedWiring"}),
    2: (PLACEMENTS_2, {"Advice", "Drawing"}),
    3: ("CREATE (:Profile {id: 'g', name: 'pair'})", {"Trace", "Simulation"}),
    4: ("CREATE (:Cluster {id: 'c', seq: 3})", {"Reconfiguration"}),
    5: ("CREATE (:Drawing {id: 'd', cluster: 'c'})", {"MeasuredRun"}),
}
"""Version: what its program wrote, and labels that it did not have."""


def test_what_earlier_versions_wrote_is_brought_up_to_now(bare: Database) -> None:
    for version, (written, later) in EARLIER.items():
        assert migrate(bare, migrations=MIGRATIONS[:version]) == (version,)
        assert not later & unique_labels(bare)
        with pytest.raises(SchemaVersionError):
            check_version(bare)
        run(bare, written, at=SECOND)
    assert migrate(bare) == (6,)
    require_whole(bare)
    (found,) = Runs(bare).list()
    assert (found.formats, found.error, found.seconds) == (("ibnetdiscover", "opensm-lfts"), "", 1.5)
    assert [one.format for one in Runs(bare).last_good("toy")] == ["ibnetdiscover", "opensm-lfts"]
    read = "p.id, p.role, p.snapshot, p.profile, p.application, p.job, p.allocation"
    assert bare.query(f"MATCH (p:Placement) RETURN {read} ORDER BY p.id")[1] == [
        ("p", "present", "c/1", "f", "cg", "7", "c/a"),
        ("q", "proposed", "c/1", None, None, None, None),
    ]
    assert bare.query("MATCH (f:Profile) RETURN f.name ORDER BY f.id")[1] == [("ring",), ("pair",)]
    assert bare.query("MATCH (c:Cluster) RETURN c.id, c.seq")[1] == [("c", 3)]
    run(bare, WRITE_VERSION, id=SCHEMA_ID, version=2)  # begun again, as after an interruption
    assert migrate(bare) == (3, 4, 5, 6)
    # times of whole seconds were there before the index: it keeps the microseconds of later ones
    later_time = SECOND + timedelta(microseconds=123456)
    write = "CREATE (:Placement {id: 'z', recorded_at: $at}), (:Job {id: 'z', cluster: 'c', started_at: $at})"
    run(bare, write, at=later_time)
    for label, name in (("Placement", "recorded_at"), ("Job", "started_at")):
        times = f"MATCH (n:{label}) RETURN n.{name} ORDER BY n.{name}"
        assert bare.query(times)[1][-2:] == [(SECOND,), (later_time,)]
        since = f"MATCH (n:{label}) WHERE n.{name} > $at RETURN n.id"
        assert bare.query(since, at=SECOND)[1] == [("z",)]
        assert bare.query(since, at=later_time)[1] == []


PAGE = (paths.ROOT / "docs" / "reference" / "schema.md").read_text("utf-8")


def documented_properties() -> dict[str, set[str]]:
    """Properties of each label on the page of the schema."""
    above = PAGE.partition("## Indexes")[0]
    rows = re.findall(r"^\| `([A-Z]\w+)` \| [^|]+ \| ([^|]+) \|$", above, re.MULTILINE)
    return {label: set(re.findall(r"`(\w+)`", cell)) for label, cell in rows}


def test_indexes_and_relationships_have_known_labels() -> None:
    assert len(set(LABELS)) == len(LABELS)
    assert {index.label for index in INDEXES} <= set(LABELS)
    assert all(index.serves for index in INDEXES)
    assert len({index.name for index in INDEXES}) == len(INDEXES)
    assert {end for one in RELATIONSHIPS for end in (one.source, one.target)} <= set(LABELS)
    assert len(set(RELATIONSHIPS)) == len(RELATIONSHIPS)


def test_statements_of_constraints_and_indexes() -> None:
    begin = "CREATE CONSTRAINT linkloads_id IF NOT EXISTS FOR (n:LinkLoads)"
    assert constraint_statement("LinkLoads") == f"{begin} REQUIRE n.id IS UNIQUE"
    statement = "CREATE INDEX job_started IF NOT EXISTS FOR (n:Job) ON (n.cluster, n.started_at)"
    assert index_statement(schema.Index("job_started", "Job", ("cluster", "started_at"), "jobs")) == statement


def test_the_page_of_the_schema_has_every_label_relationship_and_index() -> None:
    assert tuple(documented_properties()) == LABELS
    found = re.findall(r"^\| `\(:(\w+)\)-\[:(\w+)\]->\(:(\w+)\)` \|", PAGE, re.MULTILINE)
    assert found == [tuple(one) for one in RELATIONSHIPS]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", PAGE.partition("## Indexes")[2], re.MULTILINE)
    found = [(label, tuple(re.findall(r"\w+", cell)), what) for label, cell, what in rows]
    assert found == [(one.label, one.properties, one.serves) for one in INDEXES]


def test_every_documented_property_is_written_by_the_program() -> None:
    source = "\n".join(path.read_text("utf-8") for path in (paths.ROOT / "registry").rglob("*.py"))
    names = set().union(*documented_properties().values())
    names = {re.sub("^(optical|argument|proof)_", "", name) for name in names}
    assert not [name for name in sorted(names) if not re.search(rf"\b{name}\b", source)]


def save_scan(registry: Registry, minute: int) -> None:
    fabric = CONTENTS[minute % len(CONTENTS)]
    registry.save(Intake(cluster="toy", observed_at=at(minute), fabric=fabric))


def test_writers_wait_for_a_pause_but_no_reader(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    save_scan(registry, 0)
    refused = threading.Event()
    pauses = SteeredClock(refused.set)  # of the writer, which tries again
    monkeypatch.setattr(driver, "time", pauses)
    writer = threading.Thread(target=save_scan, args=(registry, 1))
    with pause.writers_paused(registry.database):
        writer.start()
        for _ in range(3):
            refused.clear()
            assert refused.wait(60)
        assert len(registry.fabrics.observations("toy")) == 1
    writer.join(60)
    assert not writer.is_alive()
    assert len(registry.fabrics.observations("toy")) == 2


def test_a_pause_that_is_not_renewed_ends(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause, "PAUSE_SECONDS", 0.2)
    left = pause.writers_paused(registry.database)
    left.__enter__()  # and never left, as in a process that was killed
    save_scan(registry, 0)
    assert len(registry.fabrics.observations("toy")) == 1
