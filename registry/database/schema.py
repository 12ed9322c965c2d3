"""Labels, relationships and indexes of the graph as data, and the numbered migrations that lead to them.

A database stores its version in ``(:Schema {id: 'schema', version})``. Migrations are data that `migrate`
runs.

Every label has a unique ``id``: a composed string, such as cluster and device GUID.

Pause of all writers for a moment: without one, a backup of a busy registry would never see one state.

A pause is a time on the node of the schema. Writers read it after they have locked their cluster or
application, roll back and try again until it is over. A pause ends by itself if it is not renewed, so that a
backup that was killed stops nobody. Only the server's clock counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from registry.database.driver import Database, Transaction
from registry.errors import DatabaseError, SchemaVersionError, WritersPaused


class Index(NamedTuple):
    """An index on properties of a label, and what uses it."""

    name: str
    label: str
    properties: tuple[str, ...]
    serves: str


class Relationship(NamedTuple):
    """A relationship type between two labels."""

    source: str
    type: str
    target: str


LABELS: tuple[str, ...] = (
    "Cluster",
    "Observation",
    "Content",
    "Routing",
    "ForwardingTable",
    "Device",
    "DeviceState",
    "Application",
    "Profile",
    "Rank",
    "Job",
    "Allocation",
    "Placement",
    "LinkLoads",
    "IngestRun",
    "CounterSweep",
    "CounterRollup",
    "IntendedWiring",
    "HostLayout",
    "Advice",
    "Drawing",
    "Trace",
    "Simulation",
    "Reconfiguration",
    "MeasuredRun",
)
"""Every label except ``Schema``; each has a unique ``id``, by which its nodes are found."""

RELATIONSHIPS: tuple[Relationship, ...] = tuple(
    Relationship(*parts)
    for parts in (
        ("Observation", "SAW", "Content"),
        ("Observation", "SAW", "Routing"),
        ("Content", "OF", "Cluster"),
        ("Routing", "OF", "Cluster"),
        ("Routing", "HAS_TABLE", "ForwardingTable"),
        ("Device", "HAS_STATE", "DeviceState"),
        ("Device", "LINK", "Device"),
        ("Profile", "OF", "Application"),
        ("Profile", "HAS_RANK", "Rank"),
        ("Rank", "SENDS", "Rank"),
        ("Job", "RAN_ON", "Allocation"),
        ("Allocation", "ON", "Device"),
        ("Job", "RAN", "Profile"),
        ("Job", "HAS_PLACEMENT", "Placement"),
        ("Placement", "OF", "Profile"),
        ("Placement", "IN", "Content"),
        ("Placement", "ON", "Allocation"),
        ("Placement", "HAS_LOADS", "LinkLoads"),
        ("Placement", "LOADS", "Device"),
        ("IngestRun", "RECORDED", "Observation"),
        ("IngestRun", "RECORDED", "Profile"),
        ("IngestRun", "RECORDED", "Placement"),
        ("IngestRun", "RECORDED", "CounterSweep"),
        ("IngestRun", "RECORDED", "IntendedWiring"),
        ("CounterSweep", "OF", "Cluster"),
        ("CounterRollup", "OF", "Cluster"),
        ("IntendedWiring", "OF", "Cluster"),
        ("HostLayout", "OF", "Cluster"),
        ("Job", "HAS_ADVICE", "Advice"),
        ("Advice", "OF", "Placement"),
        ("Advice", "PROPOSES", "Placement"),
        ("Drawing", "OF", "Content"),
        ("IngestRun", "RECORDED", "Trace"),
        ("Trace", "OF", "Profile"),
        ("Simulation", "OF", "Placement"),
        ("Simulation", "IN", "Content"),
        ("Simulation", "REPLAYS", "Profile"),
        ("Simulation", "REPLAYS", "Trace"),
        ("Reconfiguration", "OF", "Cluster"),
        ("Reconfiguration", "FOR", "Profile"),
        ("Reconfiguration", "FOR", "Job"),
        ("MeasuredRun", "OF", "Cluster"),
        ("MeasuredRun", "USED", "Placement"),
        ("MeasuredRun", "RAN", "Profile"),
    )
)
"""Every relationship type with the labels that it connects: what a dump contains."""

INDEXES: tuple[Index, ...] = (
    Index("device_cluster", "Device", ("cluster",), "the derived graph of a cluster"),
    Index(
        "observation_cluster",
        "Observation",
        ("cluster",),
        "the last observation at or before a time",
    ),
    Index("job_cluster", "Job", ("cluster",), "jobs of a cluster"),
    Index("job_number", "Job", ("job",), "a job by the scheduler's id, whatever the cluster"),
    Index("sweep_cluster", "CounterSweep", ("cluster",), "last sweep of counters at or before a time"),
    Index("rollup_cluster", "CounterRollup", ("cluster",), "counters of a time whose sweeps were rolled up"),
    Index("intended_cluster", "IntendedWiring", ("cluster",), "the plan that is valid at a time"),
    Index("layout_cluster", "HostLayout", ("cluster",), "layouts of all hosts at a time"),
    Index("run_cluster", "IngestRun", ("cluster",), "last and old runs of a cluster"),
    Index("run_key", "IngestRun", ("key",), "the last run with the same input"),
    Index("placement_cluster", "Placement", ("cluster",), "history and series of a cluster"),
    Index("placement_recorded", "Placement", ("recorded_at",), "the newest placements, those since a time"),
    Index("job_started", "Job", ("cluster", "started_at"), "jobs of a cluster that run at a time"),
    Index("simulation_cluster", "Simulation", ("cluster",), "simulations on a cluster"),
    Index("reconfiguration_cluster", "Reconfiguration", ("cluster",), "circuit plans of a cluster"),
    Index("reconfiguration_recorded", "Reconfiguration", ("recorded_at",), "the newest circuit plans"),
    Index("measured_cluster", "MeasuredRun", ("cluster",), "measured runs on a cluster"),
)


def constraint_statement(label: str) -> str:
    """Return the statement that makes ``id`` unique for a label."""
    return f"CREATE CONSTRAINT {label.lower()}_id IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE"


def index_statement(index: Index) -> str:
    """Return the statement that creates an index."""
    properties = ", ".join(f"n.{name}" for name in index.properties)
    return f"CREATE INDEX {index.name} IF NOT EXISTS FOR (n:{index.label}) ON ({properties})"


MIGRATE_COMMAND = "run almanac db migrate"
RESTORE_COMMAND = "run almanac db restore again with that file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A step from one schema version to the next."""

    version: int
    """Version that it reaches; versions count from 1."""
    about: str
    statements: tuple[str, ...]
    """Each runs in its own transaction and changes nothing if it was run before: an interrupted migration is
    started again."""


SCHEMA_ID = "schema"

_LABELS_1, _LABELS_2, _LABELS_3 = LABELS[:15], LABELS[15:19], LABELS[19:21]
_LABELS_4, _LABELS_5, _LABELS_6 = LABELS[21:23], LABELS[23:24], LABELS[24:]
_INDEXES_1, _INDEXES_2, _INDEXES_3 = INDEXES[:4], INDEXES[4:10], INDEXES[10:13]
_INDEXES_4, _INDEXES_5, _INDEXES_6 = INDEXES[13:14], INDEXES[14:16], INDEXES[16:]
"""Labels and indexes that each version added."""

ADD_FORMATS_TO_RUNS = """
MATCH (r:IngestRun)
WHERE r.formats IS NULL
SET r.formats = split(r.source, ', '), r.error = '', r.error_kind = '', r.key = '',
    r.snapshot = '', r.routing = '', r.profiles = []
"""

ADD_ROLES_TO_PLACEMENTS = """
MATCH (p:Placement)
WHERE p.role IS NULL
SET p.role = CASE WHEN p.strategy = 'given' THEN 'present' ELSE 'proposed' END
"""
"""Placements that no search proposed were reported or written by hand."""

ADD_SNAPSHOTS_TO_PLACEMENTS = """
MATCH (p:Placement)-[:IN]->(x:Content)
WHERE p.snapshot IS NULL
SET p.snapshot = x.id
"""

ADD_PROFILES_TO_PLACEMENTS = """
MATCH (p:Placement)-[:OF]->(f:Profile)
WHERE p.profile IS NULL
SET p.profile = f.id, p.application = f.application
"""

ADD_JOBS_TO_PLACEMENTS = """
MATCH (j:Job)-[:HAS_PLACEMENT]->(p:Placement)
WHERE p.job IS NULL
SET p.job = j.job
"""

ADD_ALLOCATIONS_TO_PLACEMENTS = """
MATCH (p:Placement)-[:ON]->(a:Allocation)
WHERE p.allocation IS NULL
SET p.allocation = a.id
"""

_TIMES = (("Placement", "recorded_at"), ("Job", "started_at"))
"""Times that version 3 added to indexes.

ArcadeDB declares a property when it is indexed, with the finest precision of the values that are stored, and
cuts later values to it, even after the index and the data are deleted. Jobs are often known to the second,
so a time to the microsecond must be stored while the index is created. A registry that an earlier program
brought to version 3 may keep these two times to the millisecond; a dump of it, loaded elsewhere, has none.
"""
ADD_PRECISE_TIMES = tuple(
    f"""
MATCH (n:{label})
WITH n LIMIT 1
MERGE (precise:{label} {{id: 'precise'}})
SET precise.{name} = datetime('2000-01-01T00:00:00.000001Z')
"""
    for label, name in _TIMES
)
DELETE_PRECISE_TIMES = tuple(f"MATCH (n:{label} {{id: 'precise'}}) DETACH DELETE n" for label, _ in _TIMES)

MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        version=1,
        about="fabrics, profiles, jobs, placements",
        statements=(
            *(constraint_statement(label) for label in ("Schema", *_LABELS_1)),
            *(index_statement(index) for index in _INDEXES_1),
        ),
    ),
    Migration(
        version=2,
        about="counters, intended wiring, layouts of hosts, and every ingest run",
        statements=(
            *(constraint_statement(label) for label in _LABELS_2),
            *(index_statement(index) for index in _INDEXES_2),
            ADD_FORMATS_TO_RUNS,
        ),
    ),
    Migration(
        version=3,
        about="advice on running jobs, drawings, and placements with their role and what they refer to",
        statements=(
            *(constraint_statement(label) for label in _LABELS_3),
            *ADD_PRECISE_TIMES,
            *(index_statement(index) for index in _INDEXES_3),
            *DELETE_PRECISE_TIMES,
            ADD_ROLES_TO_PLACEMENTS,
            ADD_SNAPSHOTS_TO_PLACEMENTS,
            ADD_PROFILES_TO_PLACEMENTS,
            ADD_JOBS_TO_PLACEMENTS,
            ADD_ALLOCATIONS_TO_PLACEMENTS,
        ),
    ),
    Migration(
        version=4,
        about="traces of profiles, and simulated runs",
        statements=(
            *(constraint_statement(label) for label in _LABELS_4),
            *(index_statement(index) for index in _INDEXES_4),
        ),
    ),
    Migration(
        version=5,
        about="configurations proposed for optical switches",
        statements=(
            *(constraint_statement(label) for label in _LABELS_5),
            *(index_statement(index) for index in _INDEXES_5),
        ),
    ),
    Migration(
        version=6,
        about="measured runs",
        statements=(
            *(constraint_statement(label) for label in _LABELS_6),
            *(index_statement(index) for index in _INDEXES_6),
        ),
    ),
)

READ_VERSION = "MATCH (s:Schema {id: $id}) RETURN s.version AS version, s.loading AS loading"
WRITE_VERSION = "MERGE (s:Schema {id: $id}) SET s.version = $version"
MARK_LOADING = "MATCH (s:Schema {id: $id}) SET s.loading = true"
MARK_LOADED = "MATCH (s:Schema {id: $id}) REMOVE s.loading"
IS_EMPTY = "MATCH (n) WHERE NOT n:Schema RETURN 1 AS one LIMIT 1"


def current_version(database: Database) -> int:
    """Return the schema version of a database; 0 if it never had one."""
    return _read_version(database)[0]


def is_half_loaded(database: Database) -> bool:
    """Return True if the restore of a backup was started in this database and not finished."""
    return _read_version(database)[1]


def _read_version(database: Database) -> tuple[int, bool]:
    """Return the schema version, 0 if there is none, and True if a restore was started and not finished."""
    rows = database.read(lambda transaction: transaction.run(READ_VERSION, id=SCHEMA_ID))
    return (int(rows[0]["version"]), bool(rows[0]["loading"])) if rows else (0, False)


def half_restored() -> DatabaseError:
    """Return the error for a database that holds a part of a backup."""
    return DatabaseError(f"a backup is being restored here, or that was interrupted: {RESTORE_COMMAND}")


def mark_loading(database: Database, loading: bool) -> None:
    """Record that a restore has started, or that it is complete."""
    _run(database, MARK_LOADING if loading else MARK_LOADED, id=SCHEMA_ID)


def is_empty(database: Database) -> bool:
    """Return True if a database has no data, though perhaps a schema whose creation was not finished."""
    return not database.read(lambda transaction: transaction.run(IS_EMPTY))


def check_version(database: Database, *, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Raise if a database has another schema version than this program, or is half loaded.

    Raises:
        SchemaVersionError
        DatabaseError: The restore of a backup was interrupted.
    """
    (found, loading), needed = _read_version(database), migrations[-1].version
    if found != needed:
        from registry.installation import upgrade_advice

        raise SchemaVersionError(found, needed, MIGRATE_COMMAND if found < needed else upgrade_advice())
    if loading:
        raise half_restored()


def require_schema(database: Database) -> None:
    """Create the schema in an empty database, and raise if another database has another version.

    Raises:
        SchemaVersionError
        DatabaseError: The restore of a backup was interrupted.
    """
    if _read_version(database) == (MIGRATIONS[-1].version, False):
        return
    if is_empty(database):
        migrate(database)
    check_version(database)


def migrate(database: Database, *, migrations: tuple[Migration, ...] = MIGRATIONS) -> tuple[int, ...]:
    """Migrate a database to the version of this program; return the versions that were reached.

    Raises:
        SchemaVersionError: The database has a newer version than this program.
        DatabaseError: The database holds a graph of another program.
    """
    found = current_version(database)
    if found > migrations[-1].version:
        from registry.installation import upgrade_advice

        raise SchemaVersionError(found, migrations[-1].version, upgrade_advice())
    if found == 0 and not is_empty(database):
        raise DatabaseError(
            f"the database at {database.uri} holds another program's graph: give an empty database"
        )
    reached = []
    for migration in migrations:
        if migration.version > found:
            _apply(database, migration)
            reached.append(migration.version)
    return tuple(reached)


def _apply(database: Database, migration: Migration) -> None:
    """Run a migration; each statement in its own transaction: Neo4j cannot change schema and data in one."""
    for statement in migration.statements:
        _run(database, statement)
    write_version(database, migration.version)


def write_version(database: Database, version: int) -> None:
    """Store the schema version of a database."""
    _run(database, WRITE_VERSION, id=SCHEMA_ID, version=version)


def _run(database: Database, statement: str, **parameters: object) -> None:
    database.write(lambda transaction: transaction.run(statement, **parameters))


PAUSE_SECONDS = 60.0
"""A pause that is not renewed ends after this time."""

_SET = """
MATCH (s:Schema {id: $id})
SET s.paused_until = timestamp() + $milliseconds
"""

_END = """
MATCH (s:Schema {id: $id})
REMOVE s.paused_until
"""

_LOCK_CLUSTERS, _LOCK_APPLICATIONS = (
    f"""
MATCH (n:{label})
SET n.taken = true
"""
    for label in ("Cluster", "Application")
)
"""Waits for writers that hold a lock (Neo4j), or makes them fail and try again (ArcadeDB)."""

_STATE = """
MATCH (s:Schema {id: $id})
RETURN s.loading AS loading, s.paused_until > timestamp() AS paused
"""


class Pause:
    """A pause of all writers, to be renewed as long as it is needed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._renewed = 0.0
        self._forgotten = False

    def renew(self) -> None:
        """Renew the pause if a third of it is over."""
        if time.monotonic() - self._renewed > PAUSE_SECONDS / 3:
            milliseconds = int(PAUSE_SECONDS * 1000)
            self._database.write(
                lambda transaction: transaction.run(_SET, id=SCHEMA_ID, milliseconds=milliseconds)
            )
            self._renewed = time.monotonic()

    def forget(self) -> None:
        """Leave the pause to end by itself, as its database is about to be replaced."""
        self._forgotten = True

    def end(self) -> None:
        """End the pause, unless it is forgotten."""
        if not self._forgotten:
            self._database.write(lambda transaction: transaction.run(_END, id=SCHEMA_ID))


@contextmanager
def writers_paused(database: Database) -> Iterator[Pause]:
    """Pause all writers during the block, after those that are at work have finished."""
    pause = Pause(database)
    pause.renew()
    try:
        for statement in (_LOCK_CLUSTERS, _LOCK_APPLICATIONS):
            database.write(partial(_run_statement, statement=statement))
        yield pause
    finally:
        pause.end()


def _run_statement(transaction: Transaction, statement: str) -> None:
    transaction.run(statement)


def require_writable(transaction: Transaction) -> None:
    """Raise if writers are paused, or a restore is at work or was interrupted; call it after locking.

    Raises:
        WritersPaused: The transaction is tried again until the pause is over.
        DatabaseError: A restore is at work or was interrupted.
    """
    for row in transaction.run(_STATE, id=SCHEMA_ID):
        if row["loading"]:
            raise half_restored()
        if row["paused"]:
            raise WritersPaused("a backup is being written: writers wait until it is done")
