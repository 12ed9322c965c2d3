"""Numbered migrations that bring a database to the labels, keys and indexes of `registry.database.labels`.

A database stores its version in ``(:Schema {id: 'schema', version})``. Migrations are data that `migrate`
runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from registry.database.driver import Database
from registry.database.labels import INDEXES, LABELS, constraint_statement, index_statement
from registry.errors import DatabaseError, SchemaVersionError

MIGRATE_COMMAND = "run almanac db migrate"
RESTORE_COMMAND = "run almanac db restore again with that file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A step from one schema version to the next.

    Attributes
    ----------
    version : int
        Version that it reaches; versions count from 1.
    statements : tuple of str
        Each runs in its own transaction and changes nothing if it was run before: an interrupted migration
        is started again.
    """

    version: int
    about: str
    statements: tuple[str, ...]


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

    Raises
    ------
    SchemaVersionError
    DatabaseError
        The restore of a backup was interrupted.
    """
    (found, loading), needed = _read_version(database), migrations[-1].version
    if found != needed:
        from registry.installation import upgrade_advice

        raise SchemaVersionError(found, needed, MIGRATE_COMMAND if found < needed else upgrade_advice())
    if loading:
        raise half_restored()


def require_schema(database: Database) -> None:
    """Create the schema in an empty database, and raise if another database has another version.

    Raises
    ------
    SchemaVersionError
    DatabaseError
        The restore of a backup was interrupted.
    """
    if _read_version(database) == (MIGRATIONS[-1].version, False):
        return
    if is_empty(database):
        migrate(database)
    check_version(database)


def migrate(database: Database, *, migrations: tuple[Migration, ...] = MIGRATIONS) -> tuple[int, ...]:
    """Migrate a database to the version of this program; return the versions that were reached.

    Raises
    ------
    SchemaVersionError
        The database has a newer version than this program.
    DatabaseError
        The database holds a graph of another program.
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
