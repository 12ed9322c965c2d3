"""Ingest runs: each call that read files for the registry, what became of it, and how old its news is.

A run that saved something or found all of it known is recorded in the transaction that it ran in; a failed
one in a small transaction of its own. Runs that recorded nothing are forgotten after `KEPT`, but for the
last good one of each source.
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
"""Something was new; all was known; an error, and nothing was saved."""
KEPT = timedelta(days=30)
"""How long a run that recorded nothing is remembered."""
MAX_FILES = 1000
"""Most paths that a run lists."""
MAX_ERROR = 1000
"""Longest error text that is kept, in characters."""

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
    """A call that reads files, as far as it came.

    Attributes
    ----------
    started_at : datetime
        With a time zone.
    cluster : str or None
    formats : tuple of str
        Formats of the files as far as they were told; empty where none was.
    files : tuple of str
        Paths as they were given.
    digest : str
    key : str
        Hash of all that decides what is saved: the files' bytes, names and times, the options, the program's
        version; empty where it is not known.
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
class RunInfo:
    """A recorded run.

    Attributes
    ----------
    id : str
    cluster : str
        Empty where none was named.
    at : datetime
        When it began, UTC.
    formats, files, warnings : tuple of str
    digest : str
        SHA-256 of the files' bytes; empty where they were not all read.
    seconds : float
        How long it took.
    outcome : str
        One of `OUTCOMES`.
    error, error_kind : str
        What was wrong in one line, and the class of the error; empty where nothing was.
    snapshot, routing : str
        Ids of the fabric and the tables that were read, new or not; empty where there were none.
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
    """How a source does: the runs of one format for one cluster.

    Attributes
    ----------
    cluster, format : str
        Empty where a run named no cluster, or failed before the format was told.
    last_at : datetime
        When its last run began.
    last_outcome : str
    last_good_at : datetime or None
        When the last run began that did not fail; None: none is remembered.
    error : str
        What was wrong with the last run; empty where nothing was.
    """

    cluster: str
    format: str
    last_at: datetime
    last_outcome: str
    last_good_at: datetime | None
    error: str


class Runs:
    """What the registry knows of ingest runs.

    Examples
    --------
    Sources that brought nothing good for a day::

        with Registry.open() as registry:
            sources = registry.runs.sources("hpc1")
        day_ago = datetime.now(UTC) - timedelta(days=1)
        stale = [one.format for one in sources if one.last_good_at is None or one.last_good_at < day_ago]
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, cluster: str | None = None, limit: int = 100) -> tuple[RunInfo, ...]:
        """The last runs, the newest first; of one cluster, or of all."""
        statement = _LIST if cluster is None else _LIST_OF
        told: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
        rows = self._database.read(lambda transaction: transaction.run(statement, limit=limit, **told))
        return tuple(map(_run, rows))

    def sources(self, cluster: str | None = None) -> tuple[SourceState, ...]:
        """Each source with its last and its last good run, by cluster and format."""
        rows = self._database.read(lambda transaction: transaction.run(_SOURCES))
        return source_states(row for row in rows if cluster is None or row["cluster"] == cluster)

    def same(self, key: str) -> RunInfo | None:
        """The last good run with that `Attempt.key`: doing it again would change nothing."""
        if not key:
            return None
        rows = self._database.read(lambda transaction: transaction.run(_SAME, key=key, failed=FAILED))
        return _run(rows[0]) if rows else None

    def unchanged(self, attempt: Attempt, known: RunInfo) -> None:
        """Record a run that reads the very same as an earlier one: it changes nothing."""
        seconds = (datetime.now(UTC) - attempt.started_at).total_seconds()

        def work(transaction: Transaction) -> None:
            record_run(
                transaction,
                attempt,
                UNCHANGED,
                seconds=seconds,
                snapshot=known.snapshot,
                routing=known.routing,
                profiles=known.profiles,
            )

        self._database.write(work)

    def last_good(self, cluster: str | None = None) -> tuple[SourceState, ...]:
        """The sources of which a good run is remembered, the oldest good run first."""
        good = [one for one in self.sources(cluster) if one.last_good_at is not None]
        return tuple(sorted(good, key=lambda one: (one.last_good_at, one.cluster, one.format)))

    def failed(self, attempt: Attempt, error: BaseException, seconds: float) -> None:
        """Record a failed run in a transaction of its own; never raises, for the error itself counts more."""
        if isinstance(error, DatabaseUnavailable):
            return

        def work(transaction: Transaction) -> None:
            record_run(transaction, attempt, FAILED, seconds=seconds, error=error)

        with suppress(Exception):
            self._database.write(work)


def source_states(rows: Iterable[Mapping[str, Any]]) -> tuple[SourceState, ...]:
    """Each source by cluster and format.

    Parameters
    ----------
    rows : iterable of mapping
        `cluster`, `format`, `outcome`, and of the last run of that outcome `at` and `error`.
    """
    found: dict[tuple[str, str], list[tuple[datetime, str, str]]] = {}
    for row in rows:
        runs = found.setdefault((row["cluster"], row["format"]), [])
        runs.append((row["at"], row["outcome"], row["error"] or ""))
    return tuple(_state(key, found[key]) for key in sorted(found))


def record_run(
    transaction: Transaction,
    attempt: Attempt,
    outcome: str,
    *,
    seconds: float,
    jobs: int = 0,
    error: BaseException | None = None,
    snapshot: str = "",
    routing: str = "",
    profiles: Sequence[str] = (),
) -> str:
    """Remember a run, and forget old ones that recorded nothing; the run's id."""
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
        jobs=jobs,
        seconds=seconds,
        outcome=outcome,
        error="" if error is None else " ".join(str(error).split())[:MAX_ERROR],
        error_kind="" if error is None else type(error).__name__,
        snapshot=snapshot,
        routing=routing,
        profiles=list(profiles),
    )
    _forget(transaction, attempt.cluster or "", attempt.started_at - KEPT)
    return run


def _forget(transaction: Transaction, cluster: str, before: datetime) -> None:
    # no index on the time: ArcadeDB 26.10 then finds runs that were deleted
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
    """When the last run of each outcome began, by cluster and format."""
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
    told: dict[str, Any] = {name: tuple(row.pop(name) or ()) for name in lists}
    return RunInfo(**told, **row)
