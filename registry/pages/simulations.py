"""Reads for the simulations page: simulations, each with its fabric; one statement.

`Simulations.read` and `Fabrics.read_content` return the same in several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from registry.database.driver import Database, Transaction
from registry.model.views import one_line
from registry.store.fabrics import Snapshot, stored_snapshot
from registry.store.simulations import SIMULATION, StoredSimulation, stored_simulation

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

    __repr__ = one_line


def open_simulations(database: Database, simulations: Sequence[str]) -> dict[str, OpenSimulation]:
    """Return simulations by their ids, each with its fabric; one statement."""
    ids = list(dict.fromkeys(simulations))

    def work(transaction: Transaction) -> dict[str, OpenSimulation]:
        snapshots: dict[str, Snapshot] = {}
        found = {}
        for row in transaction.run(_OPEN, simulations=ids):
            stored = stored_simulation(row["node"])
            content = stored.content
            if content not in snapshots:  # a fabric that several share is unpacked once
                snapshots[content] = stored_snapshot(stored.cluster, content, row["blob"], row["observed_at"])
            found[stored.id] = OpenSimulation(stored=stored, snapshot=snapshots[content])
        SIMULATION.require_all(transaction, ids, found)
        return found

    return database.read(work)
