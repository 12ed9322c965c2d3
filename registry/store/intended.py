"""Intended wiring of clusters, stored beside the observations; each plan is valid until the next one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Transaction
from registry.database.stored_kinds import OF_CLUSTER, NewRecord, RecordKind, Store, hashed_id
from registry.database.values import reading
from registry.errors import UnknownName
from registry.model import IntendedWiring, Time, as_utc
from registry.model.hosts import cable_key
from registry.store.timeline import time_or_latest

WIRING = RecordKind(name="intended wiring", label="IntendedWiring", owner=OF_CLUSTER)
_COLUMNS = ("source", "source_port", "target", "target_port", "kind")
_SPEED = "speed"

_AS_OF = """
MATCH (w:IntendedWiring)
WHERE w.cluster = $cluster AND w.at <= $at
WITH w ORDER BY w.at DESC, w.seq DESC LIMIT 1
RETURN w.id AS id, w.content AS content, w.at AS at, w.origin AS origin, w.blob AS blob
"""

_LIST = """
MATCH (w:IntendedWiring)
WHERE w.cluster = $cluster
RETURN w.id AS id, w.at AS at, w.cables AS cables, w.origin AS origin
ORDER BY at, w.seq
"""

_CLUSTERS = """
MATCH (w:IntendedWiring)
RETURN collect(DISTINCT w.cluster) AS names
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWiring:
    """Intended wiring with its id, the time from which it is valid (UTC), and the format of its source."""

    id: str
    at: datetime
    origin: str
    wiring: IntendedWiring


@dataclass(frozen=True, slots=True, kw_only=True)
class WiringInfo:
    """A row of the list of plans."""

    id: str
    at: datetime
    cables: int
    origin: str


class Intended(Store):
    """Stored intended wiring.

    Examples:
        Find cables that differ from the plan::

            with Registry.open() as registry:
                plan = registry.intended.read("hpc1").wiring
                fabric = registry.fabrics.read("hpc1").fabric
            found = mapping.checks.wiring.compare(plan, fabric)
    """

    def read(self, cluster: str, at: Time | None = None) -> StoredWiring:
        """Return the plan that is valid at a time (default: the latest).

        Raises:
            UnknownName: The cluster has no plan, or none at that time.
        """
        moment = time_or_latest(at)

        def work(transaction: Transaction) -> StoredWiring:
            found = transaction.run(_AS_OF, cluster=cluster, at=moment)
            if not found:
                raise _no_plan(transaction, cluster)
            return stored_wiring(found[0])

        return self._database.read(work)

    def list(self, cluster: str) -> tuple[WiringInfo, ...]:
        """Return all plans of a cluster by time."""
        return tuple(WiringInfo(**row) for row in self._rows(_LIST, cluster=cluster))


def stored_wiring(row: dict[str, Any]) -> StoredWiring:
    """Return the plan of a row with `id`, `at`, `origin` and `blob`."""
    columns = codec.unpack(row["blob"])
    speed = tuple(columns[_SPEED].tolist()) if _SPEED in columns else ()
    with reading("a stored plan of the wiring"):
        wiring = IntendedWiring(
            **{name: columns[name] for name in _COLUMNS}, speed=speed, declared_at=row["at"]
        )
    return StoredWiring(id=row["id"], at=row["at"], origin=row["origin"], wiring=wiring)


def save_wiring(
    transaction: Transaction,
    cluster: str,
    wiring: IntendedWiring,
    at: datetime,
    seq: int,
    *,
    origin: str = "",
) -> tuple[str, bool]:
    """Save a plan of a locked cluster; return its id and True if it was not already valid at that time."""
    columns = codec.columns_of(wiring, _COLUMNS)
    if any(wiring.speed):  # a plan without speeds keeps the content that earlier versions stored
        columns[_SPEED] = np.array(wiring.speed, np.float64)
    moment, content = as_utc(at), codec.digest(columns)
    held = transaction.run(_AS_OF, cluster=cluster, at=moment)
    if held and held[0]["content"] == content:
        return str(held[0]["id"]), False
    identity = hashed_id(cluster, moment.isoformat(), content)
    if WIRING.known(transaction, [identity]):
        return identity, False
    properties = {
        "cluster": cluster,
        "content": content,
        "at": moment,
        "seq": seq,
        "cables": len(wiring),
        "origin": origin,
        "blob": codec.pack(columns),
    }
    WIRING.create(transaction, [NewRecord(identity, properties, owner=cluster)])
    return identity, True


def replaced_cables(
    transaction: Transaction, cluster: str, wiring: IntendedWiring, at: datetime
) -> tuple[int, int]:
    """Return the number of cables of the plan that is valid until then, and how many a new one lacks."""
    held = transaction.run(_AS_OF, cluster=cluster, at=as_utc(at))
    if not held:
        return 0, 0
    before = [cable_key(*ends) for ends in stored_wiring(held[0]).wiring.ends()]
    return len(before), len(set(before).difference(cable_key(*ends) for ends in wiring.ends()))


def _no_plan(transaction: Transaction, cluster: str) -> UnknownName:
    known = transaction.run(_CLUSTERS)[0]["names"]
    if cluster in known:
        return UnknownName("intended wiring", cluster, remedy="there is none at that time")
    return UnknownName("cluster with intended wiring", cluster, known)
