"""Log of ingest runs: each call that read files for the registry, its outcome, and the age of its data.

A run that saved something or found everything known is recorded in its own transaction; a failed run in a
separate small transaction. Runs that saved nothing are deleted after `RETENTION`, by the next run of
the cluster that saves nothing, except the last good run of each source.

Freshness of the sources of a cluster: the one place that decides how old data are, and which are stale.

Reads for the page Data: the data of each source by the day of their observation; one statement.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from registry.database.driver import Database, Transaction
from registry.database.stored_kinds import NewRecord, RecordKind, Store, delete_ids
from registry.errors import DatabaseUnavailable
from registry.model import as_utc
from registry.units import counted

SAVED, UNCHANGED, FAILED = "saved", "unchanged", "failed"
OUTCOMES = (SAVED, UNCHANGED, FAILED)
"""Outcomes: something was new; everything was known; an error, and nothing was saved."""
RETENTION = timedelta(days=30)
"""How long a run that saved nothing is stored."""
MAX_FILES = 1000
"""Most paths of a run that are stored."""
MAX_ERROR = 1000
"""Most characters of an error that are stored."""

RUN = RecordKind(name="ingest run", label="IngestRun")

_SOURCES = """
MATCH (r:IngestRun)
UNWIND r.formats AS format
WITH r, format ORDER BY r.at DESC
RETURN r.cluster AS cluster, format, r.outcome AS outcome, max(r.at) AS at, head(collect(r.error)) AS error,
       max(coalesce(r.observed_at, r.at)) AS observed_at
"""

_CLUSTERS = """
MATCH (c:Cluster)
RETURN collect(c.id) AS names
"""

_OLD = """
MATCH (r:IngestRun)
WHERE r.cluster = $cluster AND r.at < $before AND r.outcome <> $saved
RETURN r.id AS id, r.cluster AS cluster, r.at AS at, r.formats AS formats, r.outcome AS outcome
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A call that reads files, successful or not."""

    started_at: datetime
    """Start, with a time zone."""
    begun: float = field(default_factory=time.monotonic)
    """The same by the clock that nobody sets (`time.monotonic`), for the duration."""
    cluster: str | None = None
    formats: tuple[str, ...] = ()
    """Formats of the files that were recognised."""
    files: tuple[str, ...] = ()
    """Paths as given."""
    digest: str = ""
    key: str = ""
    """Hash of everything that decides what is saved: bytes, names and times of the files, options, version of
    the program; empty if unknown."""
    warnings: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Duration until now."""
        return time.monotonic() - self.begun


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Result of a call that reads files."""

    outcome: str
    """One of `OUTCOMES`."""
    seconds: float
    """Duration."""
    jobs: int = 0
    """Number of new or changed jobs."""
    observed_at: datetime | None = None
    """Time at which the data were observed (`registry.model.intake.Intake.data_at`)."""
    error: BaseException | None = None
    snapshot: str = ""
    routing: str = ""
    """Ids of the snapshot and the forwarding tables; empty if there are none."""
    profiles: Sequence[str] = ()
    """Ids of the profiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A stored run."""

    id: str
    cluster: str
    """Name of the cluster; empty if none was given."""
    at: datetime
    """Start, UTC."""
    formats: tuple[str, ...]
    files: tuple[str, ...]
    digest: str
    """SHA-256 of the files' bytes; empty if not all were read."""
    warnings: tuple[str, ...]
    seconds: float
    """Duration."""
    outcome: str
    """One of `OUTCOMES`."""
    error: str
    error_kind: str
    """Message in one line and class of the error; empty without an error."""
    snapshot: str
    routing: str
    """Ids of the snapshot and the forwarding tables that were read, new or not; empty if there were none."""
    profiles: tuple[str, ...]
    """Ids of the profiles that were read."""
    observed_at: datetime | None = None
    """Time at which the data were observed; None if nothing was read or an earlier program recorded the run.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """State of a source: the runs of one format for one cluster."""

    cluster: str
    format: str
    """Empty if a run had no cluster, or failed before the format was recognised."""
    last_at: datetime
    """Start of its last run."""
    last_outcome: str
    last_good_at: datetime | None
    """Start of its last run that did not fail; None if none is stored."""
    error: str
    """Error of the last run; empty without an error."""
    known: bool = True
    """False if there is no cluster of this name: all runs failed, perhaps for a typing error."""
    observed_at: datetime | None = None
    """Time of its latest data; None if unknown: `last_good_at` counts."""

    @property
    def data_at(self) -> datetime | None:
        """Time from which the age of its data counts; None if it was never read."""
        return None if self.last_good_at is None else self.observed_at or self.last_good_at

    def age(self, now: datetime) -> timedelta | None:
        """Return the age of its data: since their observation, not since the ingest; None if never read."""
        return None if self.data_at is None else now - self.data_at


_RETURN = f"RETURN {', '.join(f'r.{field.name} AS {field.name}' for field in fields(RunInfo))}"

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

_FILES = """
MATCH (r:IngestRun)
WHERE r.cluster = $cluster AND r.outcome = $saved AND (r.snapshot <> '' OR r.routing <> '')
RETURN r.digest AS digest, r.files AS files
ORDER BY r.at
"""


class Runs(Store):
    """Stored ingest runs.

    Examples:
        Find sources without a good run for a day::

            with Registry.open() as registry:
                sources = registry.runs.sources("hpc1")
            day_ago = datetime.now(UTC) - timedelta(days=1)
            stale = [one.format for one in sources if one.last_good_at is None or one.last_good_at < day_ago]
    """

    def list(self, cluster: str | None = None, limit: int = 100) -> tuple[RunInfo, ...]:
        """Return the last runs of one cluster or of all, the newest first."""
        parameters: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
        statement = _LIST if cluster is None else _LIST_OF
        rows = self._database.read(lambda transaction: transaction.run(statement, limit=limit, **parameters))
        return tuple(map(_run, rows))

    def sources(self, cluster: str | None = None) -> tuple[SourceState, ...]:
        """Return each source with its last and its last good run, by cluster and format."""
        rows, names = self._rows(_SOURCES), self._rows(_CLUSTERS)[0]["names"]
        return source_states((row for row in rows if cluster is None or row["cluster"] == cluster), names)

    def same(self, key: str) -> RunInfo | None:
        """Return the last good run with this `Attempt.key`, which would change nothing again, or None."""
        if not key:
            return None
        rows = self._rows(_SAME, key=key, failed=FAILED)
        return _run(rows[0]) if rows else None

    def scanned_files(self, cluster: str) -> dict[str, tuple[str, ...]]:
        """Return the files of each scan or set of tables of a cluster, by the hash of their bytes.

        Of files with the same bytes the last ones count. Scans whose runs were deleted are missing.
        """
        rows = self._rows(_FILES, cluster=cluster, saved=SAVED)
        return {row["digest"]: tuple(row["files"] or ()) for row in rows}

    def unchanged(self, attempt: Attempt, known: RunInfo) -> None:
        """Record a run with the same input as an earlier one: it changes nothing."""
        seconds = attempt.seconds

        def work(transaction: Transaction) -> None:
            result = RunResult(
                outcome=UNCHANGED,
                seconds=seconds,
                snapshot=known.snapshot,
                routing=known.routing,
                profiles=known.profiles,
                observed_at=known.observed_at,
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


def source_states(rows: Iterable[Mapping[str, Any]], clusters: Collection[str]) -> tuple[SourceState, ...]:
    """Return each source by cluster and format.

    Args:
        rows: `cluster`, `format`, `outcome`, of the last run with this outcome `at` and `error`, and
            `observed_at`: the time of the latest data of all of them.
        clusters: Names of the clusters that exist.
    """
    found: dict[tuple[str, str], list[_Runs]] = {}
    for row in rows:
        runs = found.setdefault((row["cluster"], row["format"]), [])
        runs.append(_Runs(row["at"], row["outcome"], row["error"] or "", row["observed_at"]))
    known = {"", *clusters}
    return tuple(replace(_state(key, found[key]), known=key[0] in known) for key in sorted(found))


def record_run(
    transaction: Transaction,
    attempt: Attempt,
    result: RunResult,
) -> str:
    """Save a run; if it saved nothing, delete old ones that saved nothing. Return the id of the run."""
    run = uuid.uuid4().hex[:16]
    left_out = len(attempt.files) - MAX_FILES
    files = list(attempt.files[:MAX_FILES]) + ([f"... and {left_out} more"] if left_out > 0 else [])
    properties = {
        "cluster": attempt.cluster or "",
        "at": attempt.started_at,
        "source": ", ".join(attempt.formats),
        "formats": list(dict.fromkeys(attempt.formats)) or [""],
        "files": files,
        "digest": attempt.digest,
        "key": attempt.key,
        "warnings": list(attempt.warnings),
        "jobs": result.jobs,
        "seconds": result.seconds,
        "outcome": result.outcome,
        "error": "" if result.error is None else " ".join(str(result.error).split())[:MAX_ERROR],
        "error_kind": "" if result.error is None else type(result.error).__name__,
        "snapshot": result.snapshot,
        "routing": result.routing,
        "profiles": list(result.profiles),
        "observed_at": result.observed_at,
    }
    RUN.create(transaction, [NewRecord(run, properties)])
    if result.outcome != SAVED:  # it reads all runs of the cluster: too many for every sweep of counters
        _delete_old(transaction, attempt.cluster or "", attempt.started_at - RETENTION)
    return run


def _delete_old(transaction: Transaction, cluster: str, before: datetime) -> None:
    """Delete the old runs of a cluster that saved nothing and are not the last good run of a source."""
    # without an index on the time: with one, ArcadeDB 26.10 finds deleted runs
    old = transaction.run(_OLD, cluster=cluster, before=before, saved=SAVED)
    if not old:
        return
    states = source_states(transaction.run(_SOURCES), ())
    last_good = {(state.cluster, state.format): state.last_good_at for state in states}
    gone = [
        row["id"]
        for row in old
        if row["outcome"] == FAILED
        or all(row["at"] != last_good[row["cluster"], format] for format in row["formats"])
    ]
    delete_ids(transaction, RUN.label, gone)


class _Runs(NamedTuple):
    """Runs of a source with one outcome: the last one, and the time of their latest data."""

    at: datetime
    outcome: str
    error: str
    observed_at: datetime


def _state(key: tuple[str, str], runs: Sequence[_Runs]) -> SourceState:
    last, good = max(runs), [one for one in runs if one.outcome != FAILED]
    return SourceState(
        cluster=key[0],
        format=key[1],
        last_at=last.at,
        last_outcome=last.outcome,
        last_good_at=max((one.at for one in good), default=None),
        error=last.error if last.outcome == FAILED else "",
        observed_at=max((one.observed_at for one in good), default=None),
    )


def _run(row: dict[str, Any]) -> RunInfo:
    lists = ("formats", "files", "warnings", "profiles")
    columns: dict[str, Any] = {name: tuple(row.pop(name) or ()) for name in lists}
    return RunInfo(**columns, **row)


STALE = timedelta(days=7)
"""A source whose data were observed longer ago is stale. Sources without a cluster (profiles) do not age."""

FRESH, OLD, FAILING, NEVER, NO_CLUSTER = "fresh", "stale", "failing", "never read", "no such cluster"
STATES = (FRESH, OLD, FAILING, NEVER, NO_CLUSTER)
"""States of sources."""
NO_ALARM = (FRESH, NO_CLUSTER)
"""States that need no attention: a cluster that never existed is a typing error."""


class Freshness(NamedTuple):
    """Freshness of a source."""

    state: str
    """One of `STATES`."""
    words: str
    """Description in one line, with the error if there is one."""


def freshness(source: SourceState, now: datetime) -> Freshness:
    """Return the freshness of a source; failing takes precedence over stale."""
    if not source.known:
        return Freshness(NO_CLUSTER, f"no such cluster: {source.error}")
    age = source.age(now)
    if age is None or source.last_good_at is None:
        return Freshness(NEVER, f"never read: {source.error}")
    read = age_text(now - source.last_good_at)
    seen = f"observed {age_text(age)} ago" + ("" if read == age_text(age) else f", ingested {read} ago")
    if source.last_outcome == FAILED:
        return Freshness(FAILING, f"{seen}; the last try failed: {source.error}")
    return Freshness(OLD if source.cluster and age > STALE else FRESH, seen)


def age_text(age: timedelta) -> str:
    """Return an age in the largest suitable unit: ``3 minutes``, ``1 hour``, ``12 days``."""
    seconds = max(age.total_seconds(), 0.0)
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count = int(seconds // size)
        if count or name == "second":
            return counted(count, name)
    raise AssertionError


_DAYS = """
MATCH (r:IngestRun)
UNWIND r.formats AS format
WITH r, format, CASE WHEN r.outcome = $failed THEN r.at ELSE coalesce(r.observed_at, r.at) END AS moment
WITH r, format, moment, size([start IN $starts WHERE start <= moment]) AS day ORDER BY r.at DESC
RETURN r.cluster AS cluster, format, r.outcome AS outcome, day, count(r) AS runs, max(r.at) AS at,
       head(collect(r.error)) AS error, max(moment) AS observed_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDay:
    """Data of a source that were observed on one day, and its runs that failed on it."""

    cluster: str
    format: str
    day: int
    """Number of the day, from 1; 0: before the first one."""
    runs: int
    failed: int
    """Number of runs that read data of that day or failed on it, and how many failed."""
    observed_at: datetime | None
    """Time of the latest data; None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingests:
    """All sources, and their runs by days."""

    sources: tuple[SourceState, ...]
    days: tuple[SourceDay, ...]


def read_ingests(database: Database, starts: Sequence[datetime], clusters: Collection[str]) -> Ingests:
    """Return all sources and their data by days; one statement.

    Args:
        starts: Start of each day, ascending.
        clusters: Names of the clusters that exist.
    """
    moments = [as_utc(start) for start in starts]
    rows = database.read(lambda transaction: transaction.run(_DAYS, starts=moments, failed=FAILED))
    found: dict[tuple[str, str, int], SourceDay] = {}
    for row in rows:
        key = (row["cluster"], row["format"], row["day"])
        before = found.get(key)
        bad = row["outcome"] == FAILED
        times = [None if bad else row["observed_at"], None if before is None else before.observed_at]
        found[key] = SourceDay(
            cluster=key[0],
            format=key[1],
            day=key[2],
            runs=row["runs"] + (0 if before is None else before.runs),
            failed=(row["runs"] if bad else 0) + (0 if before is None else before.failed),
            observed_at=max((time for time in times if time is not None), default=None),
        )
    return Ingests(sources=source_states(rows, clusters), days=tuple(found[key] for key in sorted(found)))
