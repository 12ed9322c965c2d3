"""Log of ingest runs: each call that read files for the registry, its outcome, and the age of its data.

A run that saved something or found everything known is recorded in its own transaction; a failed run in a
separate small transaction. Runs that saved nothing are deleted after `RETENTION`, except the last good run of
each source.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from registry.database.driver import Database, Transaction
from registry.errors import DatabaseUnavailable

SAVED, UNCHANGED, FAILED = "saved", "unchanged", "failed"
OUTCOMES = (SAVED, UNCHANGED, FAILED)
"""Outcomes: something was new; everything was known; an error, and nothing was saved."""
RETENTION = timedelta(days=30)
"""How long a run that saved nothing is stored."""
MAX_FILES = 1000
"""Most paths of a run that are stored."""
MAX_ERROR = 1000
"""Most characters of an error that are stored."""

_CREATE = """
CREATE (r:IngestRun {id: $run, cluster: $cluster, at: $at, source: $source, formats: $formats, files: $files,
                     digest: $digest, key: $key, warnings: $warnings, jobs: $jobs, seconds: $seconds,
                     outcome: $outcome, error: $error, error_kind: $error_kind,
                     snapshot: $snapshot, routing: $routing, profiles: $profiles})
"""

_RETURN = """
RETURN r.id AS id, r.cluster AS cluster, r.at AS at, r.formats AS formats, r.files AS files,
       r.digest AS digest, r.warnings AS warnings, r.seconds AS seconds, r.outcome AS outcome,
       r.error AS error, r.error_kind AS error_kind, r.snapshot AS snapshot, r.routing AS routing,
       r.profiles AS profiles
"""

_LIST = f"""
MATCH (r:IngestRun)
WITH r ORDER BY r.at DESC, r.id LIMIT $limit
{_RETURN}
"""

_LIST_OF = f"""
MATCH (r:IngestRun)
WHERE r.cluster = $cluster
WITH r ORDER BY r.at DESC, r.id LIMIT $limit
{_RETURN}
"""

_SAME = f"""
MATCH (r:IngestRun)
WHERE r.key = $key AND r.outcome <> $failed
WITH r ORDER BY r.at DESC LIMIT 1
{_RETURN}
"""

_LATEST = """
MATCH (r:IngestRun)
UNWIND r.formats AS format
WITH r.cluster AS cluster, format, r.outcome AS outcome, max(r.at) AS at
RETURN cluster, format, outcome, at
"""

_SOURCES = """
MATCH (r:IngestRun)
UNWIND r.formats AS format
WITH r, format ORDER BY r.at DESC
RETURN r.cluster AS cluster, format, r.outcome AS outcome, max(r.at) AS at, head(collect(r.error)) AS error
"""

_OLD = """
MATCH (r:IngestRun)
WHERE r.cluster = $cluster AND r.at < $before AND r.outcome <> $saved
RETURN r.id AS id, r.cluster AS cluster, r.at AS at, r.formats AS formats, r.outcome AS outcome
"""

_DELETE = """
UNWIND $runs AS id
MATCH (r:IngestRun {id: id})
DETACH DELETE r
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A call that reads files, successful or not.

    Attributes
    ----------
    started_at : datetime
        Start, with a time zone.
    cluster : str or None
    formats : tuple of str
        Formats of the files that were recognised.
    files : tuple of str
        Paths as given.
    digest : str
    key : str
        Hash of everything that decides what is saved: bytes, names and times of the files, options, version
        of the program; empty if unknown.
    warnings : tuple of str
    """

    started_at: datetime
    cluster: str | None = None
    formats: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    digest: str = ""
    key: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Result of a call that reads files.

    Attributes
    ----------
    outcome : str
        One of `OUTCOMES`.
    seconds : float
        Duration.
    jobs : int
        Number of new or changed jobs.
    error : BaseException or None
    snapshot, routing : str
        Ids of the snapshot and the forwarding tables; empty if there are none.
    profiles : sequence of str
        Ids of the profiles.
    """

    outcome: str
    seconds: float
    jobs: int = 0
    error: BaseException | None = None
    snapshot: str = ""
    routing: str = ""
    profiles: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A stored run.

    Attributes
    ----------
    id : str
    cluster : str
        Name of the cluster; empty if none was given.
    at : datetime
        Start, UTC.
    formats, files, warnings : tuple of str
    digest : str
        SHA-256 of the files' bytes; empty if not all were read.
    seconds : float
        Duration.
    outcome : str
        One of `OUTCOMES`.
    error, error_kind : str
        Message in one line and class of the error; empty without an error.
    snapshot, routing : str
        Ids of the snapshot and the forwarding tables that were read, new or not; empty if there were none.
    profiles : tuple of str
        Ids of the profiles that were read.
    """

    id: str
    cluster: str
    at: datetime
    formats: tuple[str, ...]
    files: tuple[str, ...]
    digest: str
    warnings: tuple[str, ...]
    seconds: float
    outcome: str
    error: str
    error_kind: str
    snapshot: str
    routing: str
    profiles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """State of a source: the runs of one format for one cluster.

    Attributes
    ----------
    cluster, format : str
        Empty if a run had no cluster, or failed before the format was recognised.
    last_at : datetime
        Start of its last run.
    last_outcome : str
    last_good_at : datetime or None
        Start of its last run that did not fail; None if none is stored.
    error : str
        Error of the last run; empty without an error.
    """

    cluster: str
    format: str
    last_at: datetime
    last_outcome: str
    last_good_at: datetime | None
    error: str


class Runs:
    """Stored ingest runs.

    Examples
    --------
    Find sources without a good run for a day::

        with Registry.open() as registry:
            sources = registry.runs.sources("hpc1")
        day_ago = datetime.now(UTC) - timedelta(days=1)
        stale = [one.format for one in sources if one.last_good_at is None or one.last_good_at < day_ago]
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, cluster: str | None = None, limit: int = 100) -> tuple[RunInfo, ...]:
        """Return the last runs of one cluster or of all, the newest first."""
        statement = _LIST if cluster is None else _LIST_OF
        parameters: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
        rows = self._database.read(lambda transaction: transaction.run(statement, limit=limit, **parameters))
        return tuple(map(_run, rows))

    def sources(self, cluster: str | None = None) -> tuple[SourceState, ...]:
        """Return each source with its last and its last good run, by cluster and format."""
        rows = self._database.read(lambda transaction: transaction.run(_SOURCES))
        return source_states(row for row in rows if cluster is None or row["cluster"] == cluster)

    def same(self, key: str) -> RunInfo | None:
        """Return the last good run with this `Attempt.key`, which would change nothing again, or None."""
        if not key:
            return None
        rows = self._database.read(lambda transaction: transaction.run(_SAME, key=key, failed=FAILED))
        return _run(rows[0]) if rows else None

    def unchanged(self, attempt: Attempt, known: RunInfo) -> None:
        """Record a run with the same input as an earlier one: it changes nothing."""
        seconds = (datetime.now(UTC) - attempt.started_at).total_seconds()

        def work(transaction: Transaction) -> None:
            result = RunResult(
                outcome=UNCHANGED,
                seconds=seconds,
                snapshot=known.snapshot,
                routing=known.routing,
                profiles=known.profiles,
            )
            record_run(transaction, attempt, result)

        self._database.write(work)

    def last_good(self, cluster: str | None = None) -> tuple[SourceState, ...]:
        """Return the sources with a stored good run, the oldest good run first."""
        good = [one for one in self.sources(cluster) if one.last_good_at is not None]
        return tuple(sorted(good, key=lambda one: (one.last_good_at, one.cluster, one.format)))

    def failed(self, attempt: Attempt, error: BaseException, seconds: float) -> None:
        """Record a failed run in its own transaction; never raises, as the error itself is more important."""
        if isinstance(error, DatabaseUnavailable):
            return

        def work(transaction: Transaction) -> None:
            record_run(transaction, attempt, RunResult(outcome=FAILED, seconds=seconds, error=error))

        with suppress(Exception):
            self._database.write(work)


def source_states(rows: Iterable[Mapping[str, Any]]) -> tuple[SourceState, ...]:
    """Return each source by cluster and format.

    Parameters
    ----------
    rows : iterable of mapping
        `cluster`, `format`, `outcome`, and `at` and `error` of the last run with this outcome.
    """
    found: dict[tuple[str, str], list[tuple[datetime, str, str]]] = {}
    for row in rows:
        runs = found.setdefault((row["cluster"], row["format"]), [])
        runs.append((row["at"], row["outcome"], row["error"] or ""))
    return tuple(_state(key, found[key]) for key in sorted(found))


def record_run(
    transaction: Transaction,
    attempt: Attempt,
    result: RunResult,
) -> str:
    """Save a run and delete old ones that saved nothing; return the id of the run."""
    run = uuid.uuid4().hex[:16]
    left_out = len(attempt.files) - MAX_FILES
    files = list(attempt.files[:MAX_FILES]) + ([f"... and {left_out} more"] if left_out > 0 else [])
    transaction.run(
        _CREATE,
        run=run,
        cluster=attempt.cluster or "",
        at=attempt.started_at,
        source=", ".join(attempt.formats),
        formats=list(dict.fromkeys(attempt.formats)) or [""],
        files=files,
        digest=attempt.digest,
        key=attempt.key,
        warnings=list(attempt.warnings),
        jobs=result.jobs,
        seconds=result.seconds,
        outcome=result.outcome,
        error="" if result.error is None else " ".join(str(result.error).split())[:MAX_ERROR],
        error_kind="" if result.error is None else type(result.error).__name__,
        snapshot=result.snapshot,
        routing=result.routing,
        profiles=list(result.profiles),
    )
    _delete_old(transaction, attempt.cluster or "", attempt.started_at - RETENTION)
    return run


def _delete_old(transaction: Transaction, cluster: str, before: datetime) -> None:
    # without an index on the time: with one, ArcadeDB 26.10 finds deleted runs
    old = transaction.run(_OLD, cluster=cluster, before=before, saved=SAVED)
    if not old:
        return
    latest = _latest(transaction)
    gone = [row["id"] for row in old if not _is_last_good(row, latest)]
    transaction.run(_DELETE, runs=gone)


def _is_last_good(row: dict[str, Any], latest: dict[tuple[str, str], dict[str, datetime]]) -> bool:
    if row["outcome"] == FAILED:
        return False
    states = (latest[row["cluster"], format] for format in row["formats"])
    return any(row["at"] == _last_good(state) for state in states)


def _latest(transaction: Transaction) -> dict[tuple[str, str], dict[str, datetime]]:
    """Return the start of the last run of each outcome, by cluster and format."""
    latest: dict[tuple[str, str], dict[str, datetime]] = {}
    for row in transaction.run(_LATEST):
        latest.setdefault((row["cluster"], row["format"]), {})[row["outcome"]] = row["at"]
    return latest


def _last_good(state: dict[str, datetime]) -> datetime | None:
    return max((at for outcome, at in state.items() if outcome != FAILED), default=None)


def _state(key: tuple[str, str], runs: Sequence[tuple[datetime, str, str]]) -> SourceState:
    at, outcome, error = max(runs)
    return SourceState(
        cluster=key[0],
        format=key[1],
        last_at=at,
        last_outcome=outcome,
        last_good_at=max((moment for moment, how, _ in runs if how != FAILED), default=None),
        error=error if outcome == FAILED else "",
    )


def _run(row: dict[str, Any]) -> RunInfo:
    lists = ("formats", "files", "warnings", "profiles")
    columns: dict[str, Any] = {name: tuple(row.pop(name) or ()) for name in lists}
    return RunInfo(**columns, **row)
