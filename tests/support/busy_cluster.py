"""A small cluster in use for tests of page reads: running, ended and waiting jobs, and their placements."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np

from registry.database.driver import Database, Transaction
from registry.model import Allocation, Bound, Evaluation, Job, Placement, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.placement_rows import PRESENT as PRESENT
from registry.store.placement_rows import PROPOSED as PROPOSED
from registry.store.placement_rows import PlacementRecord
from registry.store.running_jobs import AdviceRecord
from tests.support.fat_tree import at as at
from tests.support.fat_tree import fat_tree, tree_tables

T = TypeVar("T")

RING = Profile.from_edges([0, 1, 2], [1, 2, 0], [10.0, 20.0, 30.0], name="ring", application="cg")
PAIR = Profile.from_edges([0, 1], [1, 0], [1.0, 2.0], name="pair", application="ft")


def job(
    name: str,
    started: float | None,
    ended: float | None = None,
    hosts: tuple[str, ...] = ("node03", "node00"),
    title: str = "",
    **fields: Any,
) -> Job:
    """Return a job with times in minutes of `at`."""
    times = [None if minute is None else at(minute) for minute in (started, ended)]
    fields |= {"name": title, "hosts": hosts, "slots": (2,) * len(hosts)}
    return Job(id=name, started_at=times[0], ended_at=times[1], **fields)


def fill(registry: Registry, *jobs: Job, cluster: str = "toy") -> Registry:
    """Save a cluster: tables at minute 0, profiles ``ring`` and ``pair``, jobs reported at minute 1."""
    seen: dict[str, Any] = {"fabric": fat_tree(), "tables": tree_tables(), "profiles": (RING, PAIR)}
    registry.save(Intake(cluster=cluster, observed_at=at(0), **seen))
    if jobs:
        registry.save(Intake(cluster=cluster, observed_at=at(1), jobs=jobs))
    return registry


def record(
    registry: Registry,
    name: str | None,
    *,
    ranks: tuple[int, ...] = (0, 0, 1),
    role: str = PRESENT,
    seconds: float = 4.0,
    bound: float = 1.0,
    profile: str = "ring",
    cluster: str = "toy",
    when: datetime | None = None,
    evaluated: bool = True,
    **placed: Any,
) -> PlacementRecord:
    """Return a placement of a job's ranks on node03 and node00 of the fabric valid at a time."""
    snapshot = registry.fabrics.read(cluster, when)
    allocation = Allocation.of(snapshot.fabric, ["node03", "node00"], 2)
    loads = np.zeros(len(snapshot.fabric.links))
    loads[[2, 5]] = [10.0, seconds]
    numbers = {"congestion_seconds": seconds, "network_congestion_seconds": seconds / 2, "hop_bytes": 100.0}
    numbers |= {"total_bytes": 60.0, "average_dilation": 2.0, "max_dilation": 4.0}
    bounds = {"congestion_seconds": Bound(value=bound, proof="injection")}
    used: dict[str, Any] = {"link_bytes": loads, "bounds": bounds, "rails": "all-connected", **numbers}
    evaluation = Evaluation(routing="tables", **used) if evaluated else None
    placed = {"strategy": "given" if role == PRESENT else "greedy", "objective": "congestion", **placed}
    host_of_rank = allocation.hosts[list(ranks)]
    placement = Placement(host_of_rank=host_of_rank, allocation=allocation, routing="tables", **placed)
    about: dict[str, Any] = {
        "cluster": cluster,
        "content": snapshot.id,
        "profile": registry.profiles.read(profile).id,
    }
    about |= {"routing": snapshot.routing, "job": name, "role": role}
    return PlacementRecord(placement=placement, evaluation=evaluation, **about)


def place(registry: Registry, name: str | None, **fields: Any) -> str:
    """Save a `record` and return its id."""
    return registry.placements.save(record(registry, name, **fields))


def advise(registry: Registry, name: str, present: str, proposed: str | None, **fields: Any) -> AdviceRecord:
    """Save an advice that halves the worst link, and return it."""
    fields = {"cluster": "toy", "present_seconds": 4.0, "proposed_seconds": 2.0, **fields}
    fields |= {"present": present, "proposed": proposed}
    advice = AdviceRecord(job=name, at=fields.pop("when", at(10)), **fields)
    registry.advices.save([advice])
    return advice


class CountingDatabase:
    """A database that records the statements of reads and counts the rows that they return."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.statements: list[str] = []
        self.rows = 0

    def read(self, work: Callable[[Transaction], T]) -> T:
        def counted(transaction: Transaction) -> T:
            def run(statement: str, /, **parameters: object) -> list[dict[str, Any]]:
                self.statements.append(statement)
                found = transaction.run(statement, **parameters)
                self.rows += len(found)
                return found

            return work(cast(Transaction, SimpleNamespace(run=run)))

        return self.database.read(counted)


def statements_of(registry: Registry, asked: Callable[[Registry], object]) -> int:
    """Count the statements that a function sends to the registry."""
    return len(_counted(registry, asked).statements)


def rows_of(registry: Registry, asked: Callable[[Registry], object]) -> int:
    """Count the rows that a function receives from the database."""
    return _counted(registry, asked).rows


def _counted(registry: Registry, asked: Callable[[Registry], object]) -> CountingDatabase:
    counting = CountingDatabase(registry.database)
    asked(Registry(cast(Database, counting)))
    return counting
