"""A small cluster in use: jobs that run, ran and wait, and their placements, for what pages read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, cast

import numpy as np

from registry.database.driver import Database, Transaction
from registry.model import Allocation, Bound, Evaluation, Job, Placement, Profile
from registry.model.intake import Intake
from registry.records.placements.records import PRESENT, PROPOSED, PlacementRecord
from registry.registry import Registry
from registry.running.advice import AdviceRecord
from tests.support.fat_tree import at, fat_tree, tree_tables

T = TypeVar("T")

RING = Profile.from_edges([0, 1, 2], [1, 2, 0], [10.0, 20.0, 30.0], name="ring", application="cg")
PAIR = Profile.from_edges([0, 1], [1, 0], [1.0, 2.0], name="pair", application="ft")


def job(
    name: str,
    started: float | None,
    ended: float | None = None,
    hosts: tuple[str, ...] = ("node03", "node00"),
    title: str = "",
    **told: Any,
) -> Job:
    """A job by minutes of `at`."""
    return Job(
        id=name,
        name=title,
        started_at=None if started is None else at(started),
        ended_at=None if ended is None else at(ended),
        hosts=hosts,
        slots=(2,) * len(hosts),
        **told,
    )


def fill(registry: Registry, *jobs: Job, cluster: str = "toy") -> Registry:
    """The cluster with tables at minute 0, profiles ``ring`` and ``pair``, and jobs told of at minute 1."""
    registry.save(
        Intake(
            cluster=cluster,
            observed_at=at(0),
            fabric=fat_tree(),
            tables=tree_tables(),
            profiles=(RING, PAIR),
        )
    )
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
    """A placement of a job's ranks on node03 and node00 of the fabric as of a time."""
    snapshot = registry.fabrics.read(cluster, when)
    allocation = Allocation.of(snapshot.fabric, ["node03", "node00"], 2)
    loads = np.zeros(len(snapshot.fabric.links))
    loads[[2, 5]] = [10.0, seconds]
    evaluation = Evaluation(
        routing="tables",
        rails="all-connected",
        congestion_seconds=seconds,
        network_congestion_seconds=seconds / 2,
        hop_bytes=100.0,
        total_bytes=60.0,
        average_dilation=2.0,
        max_dilation=4.0,
        link_bytes=loads,
        bounds={"congestion_seconds": Bound(value=bound, proof="injection")},
    )
    return PlacementRecord(
        cluster=cluster,
        content=snapshot.id,
        routing=snapshot.routing,
        profile=registry.profiles.read(profile).id,
        job=name,
        role=role,
        placement=Placement(
            host_of_rank=allocation.hosts[list(ranks)],
            allocation=allocation,
            strategy=placed.pop("strategy", "given" if role == PRESENT else "greedy"),
            objective="congestion",
            routing="tables",
            **placed,
        ),
        evaluation=evaluation if evaluated else None,
    )


def place(registry: Registry, name: str | None, **told: Any) -> str:
    """Save a `record`; its id."""
    return registry.placements.save(record(registry, name, **told))


def advise(registry: Registry, name: str, present: str, proposed: str | None, **told: Any) -> AdviceRecord:
    """Save an advice that halves the worst link, and give it back."""
    advice = AdviceRecord(
        cluster=told.pop("cluster", "toy"),
        job=name,
        at=told.pop("when", at(10)),
        present=present,
        proposed=proposed,
        present_seconds=told.pop("present_seconds", 4.0),
        proposed_seconds=told.pop("proposed_seconds", 2.0),
        **told,
    )
    registry.advices.save([advice])
    return advice


class CountingDatabase:
    """A database that remembers the statements that it is asked to read by, and counts the rows it gave."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.statements: list[str] = []
        self.rows = 0

    def read(self, work: Callable[[Transaction], T]) -> T:
        def counted(transaction: Transaction) -> T:
            outer = self

            class Counting:
                def run(self, statement: str, /, **parameters: object) -> list[dict[str, Any]]:
                    outer.statements.append(statement)
                    found = transaction.run(statement, **parameters)
                    outer.rows += len(found)
                    return found

            return work(cast(Transaction, Counting()))

        return self.database.read(counted)


def statements_of(registry: Registry, asked: Callable[[Registry], object]) -> int:
    """How many statements something asks of the registry."""
    return len(_counted(registry, asked).statements)


def rows_of(registry: Registry, asked: Callable[[Registry], object]) -> int:
    """How many rows something gets from the database."""
    return _counted(registry, asked).rows


def _counted(registry: Registry, asked: Callable[[Registry], object]) -> CountingDatabase:
    counting = CountingDatabase(registry.database)
    asked(Registry(cast(Database, counting)))
    return counting


__all__ = [
    "PAIR",
    "PRESENT",
    "PROPOSED",
    "RING",
    "advise",
    "at",
    "fill",
    "job",
    "place",
    "record",
    "rows_of",
    "statements_of",
]
