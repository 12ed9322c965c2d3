"""The registry: one database with fabrics, profiles, jobs, placements and other results."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from registry.database.driver import Database
from registry.database.embedded_files import damage_text
from registry.database.embedded_server import IDLE_SECONDS, ensure_server
from registry.database.schema import require_schema
from registry.errors import DatabaseError, DatabaseUnavailable, UnknownName
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from registry.model import Time
    from registry.model.intake import Intake, Receipt
    from registry.model.views import Rows
    from registry.store.circuit_plans import CircuitPlans, OpticalSwitches
    from registry.store.counters import Counters
    from registry.store.fabrics import Fabrics, Snapshot
    from registry.store.ingest_runs import Attempt, RunInfo, Runs
    from registry.store.intended import Intended
    from registry.store.job_lists import JobPages
    from registry.store.jobs import Jobs
    from registry.store.layouts import Drawings, Layouts
    from registry.store.measured_runs import MeasuredRuns
    from registry.store.placements import Placements
    from registry.store.profiles import Profiles, Traces
    from registry.store.running_jobs import Advices, Running
    from registry.store.simulations import Simulations

_STORES = {
    "fabrics": "store.fabrics:Fabrics",
    "profiles": "store.profiles:Profiles",
    "jobs": "store.jobs:Jobs",
    "placements": "store.placements:Placements",
    "counters": "store.counters:Counters",
    "intended": "store.intended:Intended",
    "layouts": "store.layouts:Layouts",
    "runs": "store.ingest_runs:Runs",
    "advices": "store.running_jobs:Advices",
    "drawings": "store.layouts:Drawings",
    "job_pages": "store.job_lists:JobPages",
    "traces": "store.profiles:Traces",
    "simulations": "store.simulations:Simulations",
    "circuit_plans": "store.circuit_plans:CircuitPlans",
    "measured_runs": "store.measured_runs:MeasuredRuns",
    "optical": "store.circuit_plans:OpticalSwitches",
}
"""Module and class of each kind of stored data, imported when it is first used: a command needs few."""


class Registry:
    """An open registry; a context manager that closes its connections."""

    fabrics: Fabrics
    profiles: Profiles
    jobs: Jobs
    placements: Placements
    counters: Counters
    intended: Intended
    layouts: Layouts
    runs: Runs
    advices: Advices
    drawings: Drawings
    job_pages: JobPages
    traces: Traces
    simulations: Simulations
    circuit_plans: CircuitPlans
    measured_runs: MeasuredRuns
    optical: OpticalSwitches

    def __init__(self, database: Database) -> None:
        self.database = database

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a kind of stored data when it is first used."""
            if name not in _STORES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            module, _, kind = _STORES[name].partition(":")
            store = getattr(import_module(f"registry.{module}"), kind)(self.database)
            setattr(self, name, store)
            return store

    @classmethod
    def open(
        cls,
        uri: str | None = None,
        *,
        user: str | None = None,
        password: str | None = None,
        name: str | None = None,
        wait_seconds: float = 0.0,
        home: Path | None = None,
        idle_seconds: float | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Connect to a server, and create the schema if the database is empty.

        Args:
            uri: Bolt address of a server (default: the local server of this user, started on demand).
            user, password, name: Credentials and database of a server named by `uri`.
            wait_seconds: How long a transaction is repeated if the server named by `uri` restarts.
            home: Data folder of the local server (default: `default_home`).
            idle_seconds: Time without use after which the local server stops, if this call starts it.

        Raises:
            DatabaseUnavailable
            SchemaVersionError: The database has a schema of another version.
        """
        if uri is None:
            database = ensure_server(
                default_home() if home is None else home,
                idle_seconds=IDLE_SECONDS if idle_seconds is None else idle_seconds,
                progress=progress,
            ).connect()
        else:
            database = Database.connect(
                uri, user=user, password=password, name=name, wait_seconds=wait_seconds
            )
        try:
            require_schema(database)
        except BaseException as error:
            database.close()
            damaged = damage_text(database.folder)
            is_refusal = isinstance(error, DatabaseError) and not isinstance(error, DatabaseUnavailable)
            if is_refusal and damaged and damaged not in str(error):
                raise DatabaseError(f"{error}; {damaged}") from error
            raise
        return cls(database)

    def save(self, intake: Intake, progress: Progress = silent) -> Receipt:
        """Save an intake in one transaction; very many jobs in several (`registry.store.saving`).

        Data that are stored already add nothing. An intake that was read from files is recorded in `runs`,
        also if nothing changed or the call failed.

        Raises:
            UnknownName: No host or device of the jobs, placements, layouts or counters is in the fabric, or
                not every one and `Intake.strict` is set; tables of a cluster without an earlier fabric. With
                the closest names.
        """
        from registry.store.observations import draft_observation, restore_identities
        from registry.store.saving import attempt_of, save_intake

        started_at = intake.started_at or datetime.now(UTC)
        try:
            intake = restore_identities(self.database, intake)
            draft = draft_observation(intake)
            return save_intake(self.database, intake, draft, progress)
        except Exception as error:
            if intake.files:
                self.failed(attempt_of(intake, started_at), error)
            raise

    def query(self, statement: str, /, **parameters: object) -> Rows:
        """Return the rows of a statement in Cypher, which may only read; `Rows.to_pandas` makes a DataFrame.

        The labels and properties are those of ``docs/reference/cookbook.md``.

        Raises:
            WriteRefused: The statement would write.
            DatabaseError: The server does not accept the statement.

        Examples:
            Count the hosts of a cluster::

                with Registry.open() as registry:
                    rows = registry.query("MATCH (d:Device {cluster: $c}) RETURN count(d) AS n", c="hpc1")
        """
        from registry.model.views import Rows

        columns, rows = self.database.query(statement, **parameters)
        return Rows(dict(zip(columns, row, strict=True)) for row in rows)

    def running(self, cluster: str, at: Time | None = None) -> Running:
        """Return the jobs that run on a cluster at a time, with their fabric."""
        from registry.store.running_jobs import running

        return running(self.database, cluster, at)

    def last_seen(self, cluster: str, at: Time) -> Snapshot | None:
        """Return the fabric of a cluster at a time without tables, or None if none had been seen by then."""
        try:
            return self.fabrics.read(cluster, at, tables=False)
        except UnknownName:
            return None

    def nearest_seen(self, cluster: str, at: Time) -> Snapshot | None:
        """Return the fabric at a time, or the first one if none was seen before; None if there is none."""
        seen = self.last_seen(cluster, at)
        if seen is None and cluster in (known := {one.name: one for one in self.fabrics.clusters()}):
            seen = self.last_seen(cluster, known[cluster].first_observed_at)
        return seen

    def largest_seen(self, cluster: str) -> Snapshot | None:
        """Return the fabric with most devices of all times, or None if the cluster has none."""
        return self.fabrics.largest(cluster)

    def same(self, key: str) -> RunInfo | None:
        """Return the last good run with the same input; see `Runs.same`."""
        return self.runs.same(key)

    def unchanged(self, attempt: Attempt, known: RunInfo) -> None:
        """Record a run that changes nothing; see `Runs.unchanged`."""
        self.runs.unchanged(attempt, known)

    def failed(self, attempt: Attempt, error: BaseException) -> None:
        """Record that a call failed; never raises, as the error itself is more important."""
        self.runs.failed(attempt, error, attempt.seconds)

    def close(self) -> None:
        """Close the connections; a local server runs on until it is idle."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def default_home() -> Path:
    """Return the data folder of this user's local server: ALMANAC_HOME, or else in the XDG data folder."""
    from platformdirs import user_data_path

    home = os.environ.get("ALMANAC_HOME")
    return Path(home).expanduser() if home else user_data_path("almanac")
