"""Labels, keys and indexes of the graph, and the numbered migrations that bring a database there.

A database records its version in one ``(:Schema {id: 'schema', version})``. Every label has a UNIQUE
``id``: a composed string, such as cluster and device GUID. What is here is data; `migrate` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from registry.database import Database, Transaction
from registry.errors import DatabaseError, SchemaVersionError

MIGRATE_COMMAND = "run almanac db migrate"
LOAD_COMMAND = "run almanac db load again with that dump"
UPGRADE_COMMAND = "upgrade this program: pip install --upgrade fabric-almanac"


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index on properties of a label.

    Attributes
    ----------
    name, label : str
    properties : tuple of str
    serves : str
        The statements that it is there for.
    """

    name: str
    label: str
    properties: tuple[str, ...]
    serves: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """A relationship type between two labels."""

    type: str
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A step from one schema version to the next.

    Attributes
    ----------
    version : int
        The version that it reaches; versions count from 1.
    about : str
    statements : tuple of str
        Each runs in a transaction of its own and does nothing where it was run before, so that an
        interrupted migration is just started again.
    """

    version: int
    about: str
    statements: tuple[str, ...]


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
)
"""Every label but ``Schema``; each has a UNIQUE ``id``, which also finds a node by its key."""

RELATIONSHIPS: tuple[Relationship, ...] = tuple(
    Relationship(type=kind, source=source, target=target)
    for source, kind, target in (
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
    )
)
"""Every relationship type, by the labels that it joins: what a dump has to carry."""

INDEXES: tuple[Index, ...] = (
    Index(
        name="device_cluster",
        label="Device",
        properties=("cluster",),
        serves="the derived graph of a cluster: as of a time, changes, rebuild",
    ),
    Index(
        name="observation_cluster",
        label="Observation",
        properties=("cluster",),
        serves="last observation of a cluster at or before a time",
    ),
    Index(
        name="job_cluster",
        label="Job",
        properties=("cluster",),
        serves="jobs of a cluster",
    ),
    Index(
        name="job_number",
        label="Job",
        properties=("job",),
        serves="a job by the scheduler's id, whatever the cluster",
    ),
    Index(
        name="sweep_cluster",
        label="CounterSweep",
        properties=("cluster",),
        serves="last sweep of counters at or before a time",
    ),
    Index(
        name="rollup_cluster",
        label="CounterRollup",
        properties=("cluster",),
        serves="counters of a time whose sweeps were rolled up",
    ),
    Index(
        name="intended_cluster",
        label="IntendedWiring",
        properties=("cluster",),
        serves="the plan that holds as of a time",
    ),
    Index(
        name="layout_cluster",
        label="HostLayout",
        properties=("cluster",),
        serves="layouts of all hosts as of a time",
    ),
    Index(
        name="run_cluster",
        label="IngestRun",
        properties=("cluster",),
        serves="runs of a cluster: the last ones, those old enough to be forgotten",
    ),
    Index(
        name="run_key",
        label="IngestRun",
        properties=("key",),
        serves="whether the very same was read before",
    ),
)

SCHEMA_ID = "schema"


def constraint_statement(label: str) -> str:
    """Statement that makes ``id`` unique on a label."""
    return f"CREATE CONSTRAINT {label.lower()}_id IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE"


def index_statement(index: Index) -> str:
    """Statement that makes an index."""
    properties = ", ".join(f"n.{name}" for name in index.properties)
    return f"CREATE INDEX {index.name} IF NOT EXISTS FOR (n:{index.label}) ON ({properties})"


_LABELS_1, _INDEXES_1 = LABELS[:15], INDEXES[:4]
"""What version 1 knew: later labels and indexes stand behind them."""

TELL_FORMATS_OF_RUNS = """
MATCH (r:IngestRun)
WHERE r.formats IS NULL
SET r.formats = split(r.source, ', '), r.error = '', r.error_kind = '', r.key = '',
    r.snapshot = '', r.routing = '', r.profiles = []
"""

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
            *(constraint_statement(label) for label in LABELS[15:]),
            *(index_statement(index) for index in INDEXES[4:]),
            TELL_FORMATS_OF_RUNS,
        ),
    ),
)

READ_VERSION = "MATCH (s:Schema {id: $id}) RETURN s.version AS version, s.loading AS loading"
WRITE_VERSION = "MERGE (s:Schema {id: $id}) SET s.version = $version"
MARK_LOADING = "MATCH (s:Schema {id: $id}) SET s.loading = true"
MARK_LOADED = "MATCH (s:Schema {id: $id}) REMOVE s.loading"
IS_EMPTY = "MATCH (n) RETURN 1 AS one LIMIT 1"


def current_version(database: Database) -> int:
    """Schema version that a database holds; 0 for one that never held any."""
    rows = database.read(lambda transaction: transaction.run(READ_VERSION, id=SCHEMA_ID))
    return int(rows[0]["version"]) if rows else 0


def is_half_loaded(database: Database) -> bool:
    """Whether a load of a dump was begun here and not brought to its end."""
    rows = database.read(lambda transaction: transaction.run(READ_VERSION, id=SCHEMA_ID))
    return bool(rows and rows[0]["loading"])


def mark_loading(database: Database, loading: bool) -> None:
    """Remember that a load has begun, or that it is complete."""
    statement = MARK_LOADING if loading else MARK_LOADED
    database.write(lambda transaction: transaction.run(statement, id=SCHEMA_ID))


def is_empty(database: Database) -> bool:
    """Whether a database has no nodes at all, not even a schema version."""
    return not database.read(lambda transaction: transaction.run(IS_EMPTY))


def check_version(database: Database, *, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Raise where a database is not of the version that this program writes, or half loaded.

    Raises
    ------
    SchemaVersionError
    DatabaseError
        The load of a dump was broken off.
    """
    found, needed = current_version(database), migrations[-1].version
    if found != needed:
        raise SchemaVersionError(found, needed, MIGRATE_COMMAND if found < needed else UPGRADE_COMMAND)
    if is_half_loaded(database):
        raise DatabaseError(f"the load of a dump was broken off here: {LOAD_COMMAND}")


def migrate(database: Database, *, migrations: tuple[Migration, ...] = MIGRATIONS) -> tuple[int, ...]:
    """Bring a database to this program's version; the versions that were reached on the way.

    Raises
    ------
    SchemaVersionError
        The database is of a newer version than this program.
    DatabaseError
        The database holds a graph that is not of this program.
    """
    found = current_version(database)
    if found > migrations[-1].version:
        raise SchemaVersionError(found, migrations[-1].version, UPGRADE_COMMAND)
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
    for statement in migration.statements:
        _run_alone(database, statement)

    def record(transaction: Transaction) -> None:
        transaction.run(WRITE_VERSION, id=SCHEMA_ID, version=migration.version)

    database.write(record)


def _run_alone(database: Database, statement: str) -> None:
    """Neo4j refuses to change the schema and data in one transaction."""

    def work(transaction: Transaction) -> None:
        transaction.run(statement)

    database.write(work)
