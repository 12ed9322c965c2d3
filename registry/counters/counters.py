"""Port counters of clusters: sweeps, growth between two times, rates of links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain

from registry.counters.sweeps import (
    ROLLUPS,
    SWEEPS,
    Retention,
    StoredTimes,
    roll_up,
    rolled_up,
    stored_times,
    unpack_rollup,
    unpack_sweep,
)
from registry.database.driver import Transaction
from registry.database.record_store import Store
from registry.errors import UnknownName
from registry.fabrics.observations import fabric_valid_at, lock_cluster
from registry.fabrics.timeline import time_or_latest
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

    Examples
    --------
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

        Raises
        ------
        UnknownName
            The period has no two sweeps and no roll-up.
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

        Parameters
        ----------
        over : timedelta
            Length of the period. It starts earlier if its first sweep is compared with one before it.
        at : datetime, optional
            The last sweep is that at or before this time (default: the latest).
        """

        def work(transaction: Transaction) -> CounterDeltas | None:
            times = stored_times(transaction, cluster)
            last = max(times.last(time_or_latest(at)), default=None)
            return None if last is None else _within(transaction, cluster, times, last - over, last)

        return self._database.read(work)

    def rates(self, cluster: str, at: Time | None = None, *, over: timedelta | None = None) -> LinkRates:
        """Return the rates of the links of the fabric at a time.

        Rows are those of ``registry.fabrics.read(cluster, at).fabric.links``.

        Parameters
        ----------
        at : datetime, optional
            Default: the latest sweep.
        over : timedelta, optional
            Mean over at least this time before the last sweep at or before `at` (default: since the sweep
            before it). If sweeps were rolled up: the hour or day of `at`.

        Raises
        ------
        UnknownName
            Fewer than two sweeps and no roll-up at or before the time; no fabric of the cluster.
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

        Parameters
        ----------
        now : datetime, optional
            Present time (default: the clock); sweeps with later times do not make others old.
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
