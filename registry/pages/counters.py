"""Reads for the fabric page: the growth of port counters from sweep to sweep in a period."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from registry.database.driver import Database, Transaction
from registry.model import CounterDeltas, Time, growth
from registry.store.counters import SWEEPS, rolled_up, stored_times, unpack_sweep
from registry.store.timeline import time_or_latest

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
