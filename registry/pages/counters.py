"""Reads for the fabric page: the growth of port counters from sweep to sweep in a period."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from registry.counters.sweeps import ROLLUPS, SWEEPS, unpack_rollup, unpack_sweep
from registry.database.driver import Database, Transaction
from registry.fabrics.timeline import time_or_latest
from registry.model import CounterDeltas, Time, growth

MOST_SWEEPS = 48
"""Maximum number of times of sweeps that are read for a period: two an hour for a day."""

_TIMES = """
MATCH (c:Cluster {id: $cluster})
OPTIONAL MATCH (c)<-[o:OF]-(s:CounterSweep)
WITH c, CASE WHEN o.at IS NULL THEN s.at ELSE o.at END AS at,
     CASE WHEN o.traffic IS NULL THEN s.traffic ELSE o.traffic END AS traffic
WITH c, collect(at) AS times, collect(traffic) AS traffic
OPTIONAL MATCH (c)<-[o:OF]-(r:CounterRollup)
RETURN times, traffic, collect(CASE WHEN o.start IS NULL THEN r.start ELSE o.start END) AS starts,
       collect(CASE WHEN o.until IS NULL THEN r.until ELSE o.until END) AS ends
"""

_SWEEPS_AT = f"""{SWEEPS}
WHERE at IN $times
WITH s, at, seq ORDER BY at, seq
RETURN at, s.blob AS blob, s.errors_only AS errors_only
"""

_ROLLED_UP = f"""{ROLLUPS}
WHERE start < $until AND until > $start
WITH r, start, until ORDER BY start
RETURN start, until, r.pieces AS pieces, r.blob AS blob
"""


def read_growth(
    database: Database, cluster: str, over: timedelta, at: Time | None = None, most: int = MOST_SWEEPS
) -> tuple[CounterDeltas, ...]:
    """Return the growth of a cluster's counters from sweep to sweep, by time.

    Their sum is what `Counters.recent` returns if there are at most `most` times. If there are more, sweeps
    at equal distances are compared; then the growth before a reset between two of them is not counted.
    Two statements, and one more if a part of the period is rolled up.

    Parameters
    ----------
    over : timedelta
        Length of the period, which ends with the last sweep at or before `at` (default: the latest).
    """
    until = time_or_latest(at)

    def work(transaction: Transaction) -> tuple[CounterDeltas, ...]:
        found = transaction.run(_TIMES, cluster=cluster)
        if not found:
            return ()
        kinds = _times_by_kind(found[0], until)
        if not kinds:
            return ()
        end = max(times[-1] for times in kinds)
        start = end - over
        rolled = max(found[0]["ends"], default=None)
        first = start if rolled is None else max(start, rolled)
        summed: tuple[CounterDeltas, ...] = ()
        if rolled is not None and start < rolled:
            rows = transaction.run(_ROLLED_UP, cluster=cluster, start=start, until=end)
            summed = tuple(map(unpack_rollup, rows))
        wanted = sorted({time for times in kinds for time in _chosen(times, first, most)})
        rows = transaction.run(_SWEEPS_AT, cluster=cluster, times=wanted)
        grown = growth((unpack_sweep(**row) for row in rows), after=first)
        return (*summed, *(part for part in grown if not part.backwards))

    return database.read(work)


def _times_by_kind(row: dict[str, Any], until: datetime) -> list[list[datetime]]:
    """Return the times of sweeps with traffic and of those without, ascending; no empty lists."""
    kinds: dict[bool, set[datetime]] = {True: set(), False: set()}
    for time, traffic in zip(row["times"], row["traffic"], strict=True):
        if time <= until:
            kinds[bool(traffic)].add(time)
    return [sorted(times) for times in kinds.values() if times]


def _chosen(times: Sequence[datetime], first: datetime, most: int) -> list[datetime]:
    """Return the last time until `first`, and at most `most` later ones at equal distances, with the last."""
    before = [time for time in times if time <= first][-1:]
    later = [time for time in times if time > first]
    step = -(-len(later) // most)
    return before + (later[::-1][::step][::-1] if step else [])
