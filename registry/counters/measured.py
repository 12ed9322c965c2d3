"""What the links of a fabric carried by the last two sweeps of counters: one statement, for pages.

`Counters.rates` gives the same, and looks further: into roll-ups, and for counters of other kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from registry.counters.sweeps import unpack_sweep
from registry.database.driver import Database, Transaction
from registry.fabrics.timeline import FOREVER
from registry.model import CounterSweep, Fabric, LinkRates, as_utc, growth, link_rates, total

PIECES = 16
"""Sweeps that are read at most: those of one moment may have come in pieces."""

Sweeps = tuple[CounterSweep, ...]
"""Of the last two moments of a cluster at which traffic was counted, by time; none where there are no two."""

_LAST_SWEEPS = """
MATCH (s:CounterSweep)
WHERE s.cluster = $cluster AND s.at <= $at AND s.traffic
WITH s ORDER BY s.at DESC, s.seq DESC LIMIT $pieces
RETURN s.at AS at, s.blob AS blob
"""


def measured(
    database: Database, cluster: str, fabric: Fabric, at: datetime | None = None
) -> LinkRates | None:
    """What each link of a fabric carried a second between the last two sweeps that counted traffic.

    Parameters
    ----------
    fabric : Fabric
        Of the cluster as of that time: rows of the rates are those of its links.
    at : datetime, optional
        Sweeps until then; until now, unless told.

    Returns
    -------
    LinkRates or None
        None where there are no two such sweeps.
    """
    until = FOREVER if at is None else as_utc(at)

    def work(transaction: Transaction) -> list[dict[str, Any]]:
        return transaction.run(_LAST_SWEEPS, cluster=cluster, at=until, pieces=PIECES)

    rows = database.read(work)
    return rates_of(fabric, sweeps_of([row["at"] for row in rows], [row["blob"] for row in rows]))


def sweeps_of(at: Sequence[datetime], blobs: Sequence[bytes]) -> Sweeps:
    """The sweeps of the last two moments, from their times and blobs, the newest first."""
    moments = sorted(set(at))[-2:]
    if len(moments) < 2:
        return ()
    told = [(moment, blob) for moment, blob in zip(at, blobs, strict=True) if moment in moments]
    return tuple(unpack_sweep(blob, moment) for moment, blob in reversed(told))


def rates_of(fabric: Fabric, sweeps: Sweeps) -> LinkRates | None:
    """What each link of the fabric carried a second between the sweeps; None where they do not tell."""
    if not sweeps:
        return None
    parts = [part for part in growth(sweeps, after=sweeps[0].at) if not part.backwards]
    if not any("xmit_bytes" in part.names for part in parts):
        return None
    return link_rates(fabric, total(parts))
