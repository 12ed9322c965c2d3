"""Reads for the simulations page: simulations, each with its fabric; one statement.

`Simulations.read` and `Fabrics.read_content` return the same in several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from registry.database.driver import Database, Transaction
from registry.fabrics.contents import unpack_fabric
from registry.fabrics.fabrics import Snapshot
from registry.records.simulations import SIMULATION, StoredSimulation, stored_simulation

_OPEN = """
UNWIND $simulations AS wanted
MATCH (s:Simulation {id: wanted})-[:IN]->(x:Content)
OPTIONAL MATCH (o:Observation)-[:SAW]->(x)
WITH s, x, max(o.at) AS observed_at
RETURN s AS node, x.id AS content, x.blob AS blob, observed_at
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenSimulation:
    """A simulation with its fabric, without forwarding tables."""

    stored: StoredSimulation
    snapshot: Snapshot


def open_simulations(database: Database, simulations: Sequence[str]) -> dict[str, OpenSimulation]:
    """Return simulations by their ids, each with its fabric; one statement.

    Raises
    ------
    UnknownName
        The first id that is not stored, with the closest ids.
    """
    ids = list(dict.fromkeys(simulations))

    def work(transaction: Transaction) -> dict[str, OpenSimulation]:
        snapshots: dict[str, Snapshot] = {}
        found = {}
        for row in transaction.run(_OPEN, simulations=ids):
            opened = _opened(row, snapshots)
            found[opened.stored.id] = opened
        SIMULATION.require_all(transaction, ids, found)
        return found

    return database.read(work)


def _opened(row: dict[str, Any], snapshots: dict[str, Snapshot]) -> OpenSimulation:
    """Return a simulation; a fabric that several share is unpacked once."""
    stored = stored_simulation(row["node"])
    if stored.content not in snapshots:
        at = row["observed_at"]
        snapshots[stored.content] = Snapshot(
            cluster=stored.cluster,
            id=stored.content,
            observed_at=at,
            routing=None,
            fabric=unpack_fabric(row["blob"], tables=None, observed_at=at),
        )
    return OpenSimulation(stored=stored, snapshot=snapshots[stored.content])
