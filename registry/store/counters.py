"""Sweeps of port counters: one node per sweep, roll-ups of old ones, growth between times, rates of links.

Sweeps are ordered by time, those of the same time by arrival. Sweeps older than `Retention.full` are rolled
up: their growth is summed by hour, later by day, and the sweeps are deleted. Sweeps with the last value of a
counter of a port stay, as later growth is counted from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.database.stored_kinds import OF_CLUSTER, NewRecord, RecordKind, Store, delete_ids, hashed_id
from registry.database.values import reading
from registry.errors import InvalidValue, UnknownName
from registry.model import (
    CounterDeltas,
    CounterSweep,
    Fabric,
    LinkRates,
    Time,
    as_utc,
    growth,
    link_rates,
    total,
)
from registry.model.counter_deltas import have_last_values
from registry.model.counters import TRAFFIC
from registry.store.observations import fabric_valid_at, lock_cluster
from registry.store.timeline import time_or_latest

HOUR, DAY = "hour", "day"
SWEEP = RecordKind(name="sweep", label="CounterSweep", owner=OF_CLUSTER)
_GROWTH = ("guid", "port", "names", "amount", "at_least", "covered", "peak")
"""Fields of `CounterDeltas` that are stored in the blob of a roll-up."""

_SWEEP = """
MATCH (s:CounterSweep {id: $sweep})
RETURN s.blob AS blob, s.at AS at, s.errors_only AS errors_only
"""


def repeated(name: str, node: str, link: str) -> str:
    """Return the expression for a property of a sweep or roll-up that its relationship ``link`` repeats."""
    return f"(CASE WHEN {link}.{name} IS NULL THEN {node}.{name} ELSE {link}.{name} END)"


def _all_repeated(node: str, *names: str) -> str:
    return ", ".join(f"{repeated(name, node, 'o')} AS {name}" for name in names)


SWEEPS = f"""
MATCH (:Cluster {{id: $cluster}})<-[o:OF]-(s:CounterSweep)
WITH s, {_all_repeated("s", "at", "seq", "traffic")}
"""
"""Clauses for the sweeps of a cluster with their time, number of arrival and whether they count traffic.

Their relationships to the cluster repeat these: to read any property of a node ArcadeDB loads all of it, and
the counters of 12,000 ports are half a megabyte. Relationships of sweeps of earlier versions have none.
"""

ROLLUPS = f"""
MATCH (:Cluster {{id: $cluster}})<-[o:OF]-(r:CounterRollup)
WITH r, {_all_repeated("r", "start", "until", "period", "bucket")}
"""
"""Clauses for the roll-ups of a cluster with their times, in the same way."""


def last_sweeps(cluster: str, condition: str = "true") -> str:
    """Return the clauses for the newest ``$pieces`` sweeps ``s`` with traffic, or null; they carry all else.

    Args:
        cluster: Expression for the name of the cluster.
        condition: Condition on ``{at}``, the time of a sweep.
    """
    at, seq, traffic = (repeated(name, "s", "k") for name in ("at", "seq", "traffic"))
    return f"""
OPTIONAL MATCH (:Cluster {{id: {cluster}}})<-[k:OF]-(s:CounterSweep)
WHERE {traffic} AND {condition.format(at=at)}
WITH *, {at} AS sweep_time, {seq} AS sweep_seq
ORDER BY sweep_time DESC, sweep_seq DESC LIMIT $pieces
"""


_TIMES = """
MATCH (s:CounterSweep {id: $sweep})-[o:OF]->(:Cluster)
SET o.at = $at, o.seq = $seq, o.traffic = $traffic
"""

_OLDEST = f"""{SWEEPS}
RETURN min(at) AS oldest, max(at) AS newest
"""

_ROLLED_UNTIL = f"""{ROLLUPS}
RETURN max(until) AS until
"""

_STORED_TIMES = """
MATCH (c:Cluster {id: $cluster})
OPTIONAL MATCH (c)<-[o:OF]-(s:CounterSweep)
WITH c, CASE WHEN o.at IS NULL THEN s.at ELSE o.at END AS at,
     CASE WHEN o.traffic IS NULL THEN s.traffic ELSE o.traffic END AS traffic
WITH c, collect(at) AS times, collect(traffic) AS traffic
OPTIONAL MATCH (c)<-[o:OF]-(r:CounterRollup)
RETURN times, traffic, collect(CASE WHEN o.start IS NULL THEN r.start ELSE o.start END) AS starts,
       collect(CASE WHEN o.until IS NULL THEN r.until ELSE o.until END) AS ends
"""

_OVERLAPPING = f"""{ROLLUPS}
WHERE start < $until AND until > $start
WITH r, start, until ORDER BY start
RETURN start, until, r.pieces AS pieces, r.blob AS blob
"""

_SWEEPS_BEFORE = f"""{SWEEPS}
WHERE at < $before
RETURN s.id AS id, at, seq
ORDER BY at, seq
"""

_ROLLUP = """
MATCH (r:CounterRollup {id: $rollup})
RETURN r.blob AS blob, r.start AS start, r.until AS until, r.pieces AS pieces
"""

_ROLLUPS_BEFORE = f"""{ROLLUPS}
WHERE period = $period AND bucket < $before
RETURN r.id AS id, bucket, r.blob AS blob, start, until, r.pieces AS pieces
ORDER BY bucket
"""

_WRITE_ROLLUP = """
MATCH (c:Cluster {id: $cluster})
MERGE (r:CounterRollup {id: $rollup})
SET r.cluster = $cluster, r.period = $period, r.bucket = $bucket, r.start = $start, r.until = $until,
    r.pieces = $pieces, r.ports = $ports, r.blob = $blob
MERGE (r)-[o:OF]->(c)
SET o.period = $period, o.bucket = $bucket, o.start = $start, o.until = $until
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long counters are stored in which detail, before the latest sweep (or now, if earlier)."""

    full: timedelta = timedelta(days=7)
    """Period with every sweep."""
    hourly: timedelta = timedelta(days=90)
    """Period with growth by hour; at least `full`."""
    daily: timedelta | None = None
    """Period with growth by day; None: unlimited."""

    def __post_init__(self) -> None:
        if not timedelta(0) < self.full <= self.hourly <= (self.daily or self.hourly):
            raise InvalidValue("Retention.full", "needs 0 < full <= hourly <= daily")


def save_sweep(
    transaction: Transaction,
    cluster: str,
    sweep: CounterSweep,
    seq: int,
    *,
    source: str = "",
    digest: str = "",
) -> tuple[str, bool]:
    """Save a sweep of a locked cluster.

    Returns:
        id: Id of the sweep; empty if its period is already rolled up and it is left out.
        new: True if the sweep is new.

    Raises:
        InvalidValue: A device has a LID instead of a GUID: see `CounterSweep.with_guids`.
    """
    if bool(sweep.lid.any()):
        raise InvalidValue("CounterSweep.guid", "is needed for every port")
    at, identity = as_utc(sweep.at), sweep_id(cluster, sweep)
    if transaction.run(_SWEEP, sweep=identity):
        return identity, False
    rolled = rolled_until(transaction, cluster)
    if rolled is not None and at <= rolled:
        return "", False
    properties: dict[str, Any] = {
        "cluster": cluster,
        "at": at,
        "seq": seq,
        "ports": len(sweep),
        "names": list(sweep.names),
        "traffic": any(name in TRAFFIC for name in sweep.names),
        "source": source,
        "digest": digest,
        "errors_only": sweep.errors_only,
        "blob": codec.pack(_sweep_columns(sweep)),
    }
    SWEEP.create(transaction, [NewRecord(identity, properties, owner=cluster)])
    transaction.run(_TIMES, sweep=identity, **{name: properties[name] for name in ("at", "seq", "traffic")})
    return identity, True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTimes:
    """Times of the stored counters of a cluster."""

    traffic: tuple[datetime, ...] = ()
    errors: tuple[datetime, ...] = ()
    """Different times of the sweeps with traffic, and of those without; ascending."""
    rollups: tuple[tuple[datetime, datetime], ...] = ()
    """Start and end of each roll-up."""

    @property
    def rolled_until(self) -> datetime | None:
        """Time until which counters are rolled up; earlier sweeps are only the start of the count."""
        return max((end for _, end in self.rollups), default=None)

    def last(self, at: datetime) -> list[datetime]:
        """Return the time of the last sweep with traffic and of the last without until a time, if any."""
        last = (max((time for time in times if time <= at), default=None) for times in self.kinds)
        return [time for time in last if time is not None]

    @property
    def kinds(self) -> tuple[tuple[datetime, ...], ...]:
        """Times of each kind of sweeps."""
        return self.traffic, self.errors


def stored_times(transaction: Transaction, cluster: str) -> StoredTimes:
    """Return the times of all counters of a cluster; one statement."""
    rows = transaction.run(_STORED_TIMES, cluster=cluster)
    if not rows:
        return StoredTimes()
    row = rows[0]
    kinds: dict[bool, set[datetime]] = {True: set(), False: set()}
    for time, traffic in zip(row["times"], row["traffic"], strict=True):
        kinds[bool(traffic)].add(time)
    rollups = tuple(zip(row["starts"], row["ends"], strict=True))
    return StoredTimes(
        traffic=tuple(sorted(kinds[True])), errors=tuple(sorted(kinds[False])), rollups=rollups
    )


def rolled_up(
    transaction: Transaction, cluster: str, times: StoredTimes, start: datetime, until: datetime
) -> tuple[CounterDeltas, ...]:
    """Return the roll-ups that overlap a period, by time; one statement, none if there are no such ones."""
    if not any(first < until and last > start for first, last in times.rollups):
        return ()
    return tuple(map(unpack_rollup, transaction.run(_OVERLAPPING, cluster=cluster, start=start, until=until)))


def rolled_until(transaction: Transaction, cluster: str) -> datetime | None:
    """Return the time until which counters are rolled up; earlier sweeps are only the start of the count."""
    until: datetime | None = transaction.run(_ROLLED_UNTIL, cluster=cluster)[0]["until"]
    return until


def sweep_id(cluster: str, sweep: CounterSweep) -> str:
    """Return the id of a sweep: the cluster and a hash of time and counters."""
    return hashed_id(cluster, as_utc(sweep.at).isoformat(), codec.digest(_sweep_columns(sweep)))


def read_sweep(transaction: Transaction, sweep: str) -> CounterSweep | None:
    """Return the sweep with this id, or None."""
    found = transaction.run(_SWEEP, sweep=sweep)
    return unpack_sweep(**found[0]) if found else None


def roll_up(transaction: Transaction, cluster: str, now: datetime, rule: Retention) -> int:
    """Roll up old counters of a locked cluster by a rule; return the number of deleted sweeps."""
    found = transaction.run(_OLDEST, cluster=cluster)[0]
    if found["newest"] is None:
        return 0
    newest = min(found["newest"], as_utc(now))
    deleted = 0
    if found["oldest"] < (before := _floor(newest - rule.full, HOUR)):
        deleted = _sweeps_to_hours(transaction, cluster, before)
    _hours_to_days(transaction, cluster, _floor(newest - rule.hourly, DAY))
    if rule.daily is not None:
        old = transaction.run(
            _ROLLUPS_BEFORE, cluster=cluster, period=DAY, before=_floor(newest - rule.daily, DAY)
        )
        delete_ids(transaction, "CounterRollup", [row["id"] for row in old])
    return deleted


def unpack_sweep(blob: bytes, at: datetime, errors_only: bool | None = None) -> CounterSweep:
    """Return the sweep of a blob; sweeps of before lists of errors were known have no such property."""
    columns = codec.unpack(blob)
    with reading("a stored sweep of counters"):
        ports = {name: columns[name] for name in ("guid", "port", "names")}
        tables = {name: columns[name].T for name in ("values", "saturated")}
        return CounterSweep(at=at, errors_only=bool(errors_only), **ports, **tables)


def unpack_rollup(row: dict[str, Any]) -> CounterDeltas:
    """Return the deltas of a row with `blob`, `start`, `until` and `pieces`."""
    columns = codec.unpack(row["blob"])
    with reading("a stored roll-up of counters"):
        grown = {name: columns[name] for name in _GROWTH}
        return CounterDeltas(start=row["start"], end=row["until"], pieces=row["pieces"], **grown)


def _sweeps_to_hours(transaction: Transaction, cluster: str, before: datetime) -> int:
    """Roll up the sweeps before a full hour, except those from which later growth is counted."""
    rows = transaction.run(_SWEEPS_BEFORE, cluster=cluster, before=before)
    read = [read_sweep(transaction, row["id"]) for row in rows]
    sweeps = [sweep for sweep in read if sweep is not None]
    hours: dict[datetime, list[CounterDeltas]] = {}
    for part in growth(sweeps, after=rolled_until(transaction, cluster)):
        hours.setdefault(_floor(part.end, HOUR), []).append(part)
    for bucket, parts in hours.items():
        _add_rollup(transaction, cluster, HOUR, bucket, parts)
    stay = have_last_values(sweeps)
    gone = [row["id"] for row, stays in zip(rows, stay, strict=True) if not stays]
    delete_ids(transaction, SWEEP.label, gone)
    return len(gone)


def _hours_to_days(transaction: Transaction, cluster: str, before: datetime) -> None:
    old = transaction.run(_ROLLUPS_BEFORE, cluster=cluster, period=HOUR, before=before)
    days: dict[datetime, list[CounterDeltas]] = {}
    for row in old:
        days.setdefault(_floor(row["bucket"], DAY), []).append(unpack_rollup(row))
    for bucket, parts in days.items():
        _add_rollup(transaction, cluster, DAY, bucket, parts)
    delete_ids(transaction, "CounterRollup", [row["id"] for row in old])


def _add_rollup(
    transaction: Transaction, cluster: str, period: str, bucket: datetime, parts: Sequence[CounterDeltas]
) -> None:
    """Save a roll-up, or add to the stored one: late sweeps may belong to the same hour."""
    identity = f"{cluster}/{period}/{bucket.isoformat()}"
    known = transaction.run(_ROLLUP, rollup=identity)
    whole = total([*map(unpack_rollup, known), *parts])
    transaction.run(
        _WRITE_ROLLUP,
        cluster=cluster,
        rollup=identity,
        period=period,
        bucket=bucket,
        start=whole.start,
        until=whole.end,
        pieces=whole.pieces,
        ports=len(whole),
        blob=codec.pack(codec.columns_of(whole, _GROWTH)),
    )


def _sweep_columns(sweep: CounterSweep) -> dict[str, codec.Column]:
    return {
        "guid": sweep.guid,
        "port": sweep.port,
        "names": sweep.names,
        # one counter after the other: equal neighbours compress well
        "values": np.ascontiguousarray(sweep.values.T),
        "saturated": np.ascontiguousarray(sweep.saturated.T),
    }


def _floor(moment: datetime, period: str) -> datetime:
    whole = moment.replace(minute=0, second=0, microsecond=0)
    return whole if period == HOUR else whole.replace(hour=0)


_LIST = f"""{SWEEPS}
WHERE at >= $start AND at <= $until
RETURN s.id AS id, at, seq, s.ports AS ports, s.names AS names, s.source AS source
ORDER BY at, seq
"""

_LAST = f"""{SWEEPS}
WHERE at <= $at
WITH s, at, seq ORDER BY at DESC, seq DESC LIMIT 1
RETURN at, s.blob AS blob, s.errors_only AS errors_only
"""

_BLOBS = f"""{SWEEPS}
WHERE (at >= $start OR at IN $before) AND at <= $until
WITH s, at, seq ORDER BY at, seq
RETURN at, s.blob AS blob, s.errors_only AS errors_only
"""

_ROLLUP_AT = f"""{ROLLUPS}
WHERE start < $at
WITH r, start, until ORDER BY start DESC LIMIT 1
RETURN start, until, r.pieces AS pieces, r.blob AS blob
"""

_CLUSTERS = """
MATCH (c:Cluster)<-[:OF]-(:CounterSweep)
RETURN collect(DISTINCT c.id) AS names
"""


MAX_SWEEPS = 16
"""Most sweeps that a page reads: those of one time may be stored in several parts."""

Sweeps = tuple[CounterSweep, ...]
"""Sweeps of the last two times at which traffic was counted, ascending; empty if there are no two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepInfo:
    """A row of the list of sweeps: time, number of ports, counters, format of the source."""

    id: str
    at: datetime
    seq: int
    ports: int
    names: tuple[str, ...]
    source: str


class Counters(Store):
    """Stored port counters.

    A cluster without counters, at all or at that time, raises `UnknownName`.

    Examples:
        Find the busiest links at noon by utilisation::

            with Registry.open() as registry:
                fabric = registry.fabrics.read("hpc1", noon).fabric
                rates = registry.counters.rates("hpc1", noon)
                hottest = np.argsort(-np.nan_to_num(rates.share))[:10]
    """

    def list(self, cluster: str, start: Time | None = None, end: Time | None = None) -> tuple[SweepInfo, ...]:
        """Return the sweeps of a period (default: all) that are not rolled up, by time."""

        def work(transaction: Transaction) -> tuple[SweepInfo, ...]:
            rows = transaction.run(_LIST, cluster=cluster, start=_from(start), until=time_or_latest(end))
            if not rows:
                _require(transaction, cluster)
            return tuple(SweepInfo(names=tuple(row.pop("names")), **row) for row in rows)

        return self._database.read(work)

    def read(self, cluster: str, at: Time | None = None) -> CounterSweep:
        """Return the last sweep at or before a time (default: the latest)."""

        def work(transaction: Transaction) -> CounterSweep:
            found = transaction.run(_LAST, cluster=cluster, at=time_or_latest(at))
            if not found:
                raise _no_counters(transaction, cluster, "no sweep at or before that time is stored")
            return unpack_sweep(**found[0])

        return self._database.read(work)

    def between(self, cluster: str, start: Time, end: Time | None = None) -> CounterDeltas:
        """Return the growth of counters from `start` to `end` (default: the latest sweep).

        It is the sum of the growth to each sweep after `start` and up to `end` from the sweep before it.
        Roll-ups that overlap the period count as a whole.

        Raises:
            UnknownName: The period has no two sweeps and no roll-up.
        """

        def work(transaction: Transaction) -> CounterDeltas:
            times = stored_times(transaction, cluster)
            grown = _within(transaction, cluster, times, as_utc(start), time_or_latest(end))
            if grown is None:
                raise _no_counters(transaction, cluster, "there are no two sweeps in that period")
            return grown

        return self._database.read(work)

    def recent(self, cluster: str, over: timedelta, at: Time | None = None) -> CounterDeltas | None:
        """Return the growth of counters in a period that ends with the last sweep, or None if it is unknown.

        Args:
            over: Length of the period. It starts earlier if its first sweep is compared with one before it.
            at: The last sweep is that at or before this time (default: the latest).
        """

        def work(transaction: Transaction) -> CounterDeltas | None:
            times = stored_times(transaction, cluster)
            last = max(times.last(time_or_latest(at)), default=None)
            return None if last is None else _within(transaction, cluster, times, last - over, last)

        return self._database.read(work)

    def rates(self, cluster: str, at: Time | None = None, *, over: timedelta | None = None) -> LinkRates:
        """Return the rates of the links of the fabric at a time.

        Rows are those of ``registry.fabrics.read(cluster, at).fabric.links``.

        Args:
            at: Default: the latest sweep.
            over: Mean over at least this time before the last sweep at or before `at` (default: since the
                sweep before it). If sweeps were rolled up: the hour or day of `at`.

        Raises:
            UnknownName: Fewer than two sweeps and no roll-up at or before the time; no fabric of the cluster.
        """

        def work(transaction: Transaction) -> LinkRates:
            grown = _grown(transaction, cluster, time_or_latest(at), over)
            # counters may be older than the first scan of the cluster
            _, fabric = fabric_valid_at(transaction, cluster, time_or_latest(at))
            return link_rates(fabric, grown)

        return self._database.read(work)

    def roll_up(self, cluster: str, rule: Retention | None = None, now: Time | None = None) -> int:
        """Roll up sweeps older than a rule allows; return the number of deleted sweeps.

        Saving a sweep does the same with the default rule.

        Args:
            now: Present time (default: the clock); sweeps with later times do not make others old.
        """
        moment = datetime.now(UTC) if now is None else as_utc(now)

        def work(transaction: Transaction) -> int:
            lock_cluster(transaction, cluster)
            _require(transaction, cluster)
            return roll_up(transaction, cluster, moment, rule or Retention())

        return self._database.write(work)


def last_two_sweeps(times: Sequence[datetime], blobs: Sequence[bytes]) -> Sweeps:
    """Return the sweeps of the last two times, from columns of times and blobs with the newest first."""
    last = sorted(set(times))[-2:]
    if len(last) < 2:
        return ()
    pairs = [(time, blob) for time, blob in zip(times, blobs, strict=True) if time in last]
    return tuple(unpack_sweep(blob, time) for time, blob in reversed(pairs))


def rates_of(fabric: Fabric, sweeps: Sweeps) -> LinkRates | None:
    """Return the bytes/s of each link between two sweeps, or None if the sweeps do not give any.

    `Counters.rates` also uses roll-ups and other kinds of sweeps.
    """
    if not sweeps:
        return None
    parts = [part for part in growth(sweeps, after=sweeps[0].at) if not part.backwards]
    if not any("xmit_bytes" in part.names for part in parts):
        return None
    return link_rates(fabric, total(parts))


def _within(
    transaction: Transaction, cluster: str, times: StoredTimes, start: datetime, until: datetime
) -> CounterDeltas | None:
    """Return the growth in a period with the roll-ups that overlap it, or None if it is unknown."""
    rolled = rolled_up(transaction, cluster, times, start, until)
    return _summed(rolled, _added(transaction, cluster, times, start, until))


def _added(
    transaction: Transaction, cluster: str, times: StoredTimes, start: datetime, until: datetime
) -> Iterator[CounterDeltas]:
    """Yield the growth to each sweep after `start`, counted from the last sweeps before it."""
    first = start if times.rolled_until is None else max(start, times.rolled_until)
    before = times.last(first)
    # errors may have been counted long before: none of the sweeps between is needed
    begin = max(before, default=first)
    rows = transaction.run(_BLOBS, cluster=cluster, start=begin, before=before, until=until)
    sweeps = (unpack_sweep(**row) for row in rows)
    return (part for part in growth(sweeps, after=first) if not part.backwards)


def _summed(*several: Iterable[CounterDeltas]) -> CounterDeltas | None:
    """Return the sum of deltas, or None if there are none."""
    parts = chain(*several)
    first = next(parts, None)
    return None if first is None else total(chain([first], parts))


def _grown(transaction: Transaction, cluster: str, at: datetime, over: timedelta | None) -> CounterDeltas:
    """Return the growth until the last sweep at or before a time, or that of a roll-up."""
    times = stored_times(transaction, cluster)
    until = [time for time in times.traffic if time <= at]
    if until:
        back = timedelta(microseconds=1) if over is None else over
        before = [time for time in until if time <= until[-1] - back]
        if before:
            grown = _summed(_added(transaction, cluster, times, before[-1], until[-1]))
            if grown is not None and "xmit_bytes" in grown.names:
                return grown
    rolled = transaction.run(_ROLLUP_AT, cluster=cluster, at=at)
    if rolled:
        return unpack_rollup(rolled[0])
    raise _no_counters(transaction, cluster, "rates need two sweeps at or before that time")


def _require(transaction: Transaction, cluster: str) -> None:
    known = transaction.run(_CLUSTERS)[0]["names"]
    if cluster not in known:
        raise UnknownName(
            "cluster", cluster, known, reason=f"there are no port counters of cluster {cluster!r}"
        )


def _no_counters(transaction: Transaction, cluster: str, why: str) -> UnknownName:
    _require(transaction, cluster)
    return UnknownName("counters", cluster, reason=f"no counters of cluster {cluster!r}: {why}")


def _from(at: Time | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if at is None else as_utc(at)


MOST_SWEEPS = 48
"""Maximum number of times of sweeps that are read for a period: two an hour for a day."""

_SWEEPS_AT = f"""{SWEEPS}
WHERE at IN $times
WITH s, at, seq ORDER BY at, seq
RETURN at, s.blob AS blob, s.errors_only AS errors_only
"""


def read_growth(
    database: Database, cluster: str, over: timedelta, at: Time | None = None, most: int = MOST_SWEEPS
) -> tuple[CounterDeltas, ...]:
    """Return the growth of a cluster's counters from sweep to sweep, by time.

    Their sum is what `Counters.recent` returns if there are at most `most` times. If there are more, sweeps
    at equal distances are compared; then the growth before a reset between two of them is not counted.
    Two statements, and one more if a part of the period is rolled up.

    Args:
        over: Length of the period, which ends with the last sweep at or before `at` (default: the latest).
    """
    until = time_or_latest(at)

    def work(transaction: Transaction) -> tuple[CounterDeltas, ...]:
        stored = stored_times(transaction, cluster)
        kinds = [kept for times in stored.kinds if (kept := [time for time in times if time <= until])]
        if not kinds:
            return ()
        end = max(times[-1] for times in kinds)
        start = end - over
        rolled = stored.rolled_until
        first = start if rolled is None else max(start, rolled)
        summed = rolled_up(transaction, cluster, stored, start, end)
        wanted = sorted({time for times in kinds for time in _chosen(times, first, most)})
        rows = transaction.run(_SWEEPS_AT, cluster=cluster, times=wanted)
        grown = growth((unpack_sweep(**row) for row in rows), after=first)
        return (*summed, *(part for part in grown if not part.backwards))

    return database.read(work)


def _chosen(times: Sequence[datetime], first: datetime, most: int) -> list[datetime]:
    """Return the last time until `first`, and at most `most` later ones at equal distances, with the last."""
    before = [time for time in times if time <= first][-1:]
    later = [time for time in times if time > first]
    step = -(-len(later) // most)
    return before + (later[::-1][::step][::-1] if step else [])
