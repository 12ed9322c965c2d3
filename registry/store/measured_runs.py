"""Measured runs, each joined to its cluster, and to its placement and its profile if it has them.

The id of a run is a hash of what was measured: saving the same run again adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from registry.database.driver import Transaction
from registry.database.stored_kinds import OF_CLUSTER, Join, NewRecord, RecordKind, Records, known_ids
from registry.errors import UnknownName
from registry.model import as_utc
from registry.model.job import NOT_ENDED, MeasuredRun, StoredMeasuredRun
from registry.store.profile_names import ranks_of_profiles
from registry.store.timeline import require_cluster

_USED, _RAN = Join("USED", "Placement"), Join("RAN", "Profile")
MEASURED_RUN = RecordKind(
    name="measured run", label="MeasuredRun", letter="m", joins=(OF_CLUSTER, _USED, _RAN)
)
_FIELDS = tuple(field.name for field in fields(MeasuredRun))
_LISTS = ("hosts", "slots", "other_jobs")

_OTHER_JOBS = f"""
MATCH (j:Job)
WHERE j.cluster = $cluster AND j.started_at < $end AND (j.ended_at > $start OR {NOT_ENDED})
      AND j.job <> $job
RETURN collect(j.job) AS jobs
"""


_PLACED = {
    "rank_order": "coalesce(p.rank_order, '')",
    "congestion_seconds": "p.congestion_seconds",
    "in_order_congestion_seconds": "p.in_order_congestion_seconds",
}
_LIST, _LIST_OF_CLUSTER = (
    MEASURED_RUN.list_statement(
        StoredMeasuredRun,
        f"{condition}($application IS NULL OR n.application = $application)",
        then="OPTIONAL MATCH (n)-[:USED]->(p:Placement)\nWITH n, "
        + ", ".join(f"{value} AS {name}" for name, value in _PLACED.items())
        + "\n",
        computed=tuple(_PLACED),
    )
    for condition in ("", "n.cluster = $cluster AND ")
)
_VERIFIED = """
MATCH (n:MeasuredRun)
WHERE n.cluster = $cluster AND n.launcher = $launcher AND n.verified IS NOT NULL
RETURN n.verified AS verified, n.started_at AS at
ORDER BY at DESC LIMIT 1
"""


class MeasuredRuns(Records[StoredMeasuredRun]):
    """Stored measured runs."""

    kind = MEASURED_RUN

    def save(self, run: MeasuredRun, other_load: float | None = None) -> str:
        """Save a run, with the other jobs that ran meanwhile, and return its id.

        Args:
            other_load: Load of these jobs, see `StoredMeasuredRun`.

        Raises:
            UnknownName: No such cluster, profile or placement.
        """
        from registry.store.observations import lock_cluster  # numpy, which reading does without

        identity = measured_run_id(run)

        def work(transaction: Transaction) -> None:
            require_cluster(transaction, run.cluster)
            lock_cluster(transaction, run.cluster)
            if MEASURED_RUN.known(transaction, [identity]):
                return
            _check(transaction, run)
            joined = {
                OF_CLUSTER: [run.cluster],
                _USED: [] if run.placement is None else [run.placement],
                _RAN: [] if run.profile is None else [run.profile],
            }
            properties = _properties(run, _other_jobs(transaction, run)) | {"other_load": other_load}
            MEASURED_RUN.create(transaction, [NewRecord(identity, properties, joined=joined)])

        self._database.write(work)
        return identity

    def list(
        self, cluster: str | None = None, application: str | None = None, *, limit: int | None = None
    ) -> tuple[StoredMeasuredRun, ...]:
        """Return the runs that match, the newest first; one statement.

        Args:
            cluster, application: Only runs on this cluster, of this application.
            limit: At most so many.
        """
        if cluster is None:
            rows = self._rows(_LIST, limit, application=application)
        else:
            rows = self._rows(_LIST_OF_CLUSTER, limit, cluster=cluster, application=application)
        return tuple(stored_measured_run(row) for row in rows)

    def other_jobs(self, run: MeasuredRun) -> tuple[str, ...]:
        """Return the scheduler's ids of the jobs that ran on the cluster during a run, but for its own."""
        return tuple(self._database.read(lambda transaction: _other_jobs(transaction, run)))

    def verified(self, cluster: str, launcher: str) -> tuple[bool, datetime] | None:
        """Return whether a launcher started ranks where an order had them, as last tried, and when.

        Args:
            launcher: Name and version.

        Returns:
            None if it was never tried on this cluster.
        """
        rows = self._database.read(
            lambda transaction: transaction.run(_VERIFIED, cluster=cluster, launcher=launcher)
        )
        return (rows[0]["verified"], rows[0]["at"]) if rows else None

    def _stored(self, row: dict[str, Any]) -> StoredMeasuredRun:
        return stored_measured_run(row["node"])


def measured_run_id(run: MeasuredRun) -> str:
    """Return the id of a run: ``m`` and 12 hexadecimal digits, a hash of what was measured."""
    values = {name: getattr(run, name) for name in _FIELDS}
    return MEASURED_RUN.identity({}, {**values, "started_at": as_utc(run.started_at).isoformat()})


def stored_measured_run(node: Mapping[str, Any]) -> StoredMeasuredRun:
    """Return the run of the properties of its node, or of a row of a list."""
    with MEASURED_RUN.reading(node["id"]):
        given = {one.name: node[one.name] for one in fields(StoredMeasuredRun) if one.name in node}
        return StoredMeasuredRun(**given | {name: tuple(given[name]) for name in _LISTS})


def _other_jobs(transaction: Transaction, run: MeasuredRun) -> list[str]:
    end = run.started_at + timedelta(seconds=run.wall_seconds)
    found = transaction.run(
        _OTHER_JOBS, cluster=run.cluster, start=run.started_at, end=end, job=run.job or ""
    )
    return sorted(found[0]["jobs"])


def _check(transaction: Transaction, run: MeasuredRun) -> None:
    """Raise `UnknownName` for a profile or placement that is not stored."""
    if run.profile is not None and not ranks_of_profiles(transaction, [run.profile]):
        raise UnknownName("profile", run.profile)
    if run.placement is not None and not known_ids(transaction, "Placement", [run.placement]):
        raise UnknownName("placement", run.placement)


def _properties(run: MeasuredRun, other_jobs: list[str]) -> dict[str, Any]:
    lists = {"hosts": list(run.hosts), "slots": list(run.slots), "other_jobs": other_jobs}
    return {**asdict(run), **lists, "started_at": as_utc(run.started_at), "recorded_at": datetime.now(UTC)}
