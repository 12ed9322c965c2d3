"""Deletion of observations, jobs, profiles and ingest runs, each in one transaction.

What others saved for the deleted data (placements, simulations, traces, circuit plans, measured runs) is
deleted on demand only. The same files can be ingested again afterwards.

Which stored data depend on which, and their deletion.

With data, all is deleted that depends on them, and what they shared with other data if nothing else refers to
it any more. The tables of this module say which labels those are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from registry.database.driver import BATCH, Database, Transaction
from registry.database.stored_kinds import delete_statement
from registry.errors import ChangeRefused
from registry.store import derived
from registry.store.ingest_runs import RUN
from registry.store.jobs import find_job
from registry.store.observations import OBSERVATION, lock_cluster, read_content
from registry.store.profile_names import find_profile
from registry.store.timeline import FOREVER

NAMES = {
    "Advice": "advice",
    "Allocation": "allocations",
    "Application": "applications",
    "Cluster": "clusters",
    "Content": "snapshots",
    "CounterRollup": "summaries of counters",
    "CounterSweep": "counter sweeps",
    "Device": "devices",
    "DeviceState": "states of devices",
    "Drawing": "drawings",
    "ForwardingTable": "forwarding tables",
    "HostLayout": "host layouts",
    "IngestRun": "ingest runs",
    "IntendedWiring": "intended wirings",
    "Job": "jobs",
    "LinkLoads": "link loads",
    "MeasuredRun": "measured runs",
    "Observation": "observations",
    "Placement": "placements",
    "Profile": "profiles",
    "Rank": "ranks of profiles",
    "Reconfiguration": "circuit plans",
    "Routing": "routings",
    "Simulation": "simulations",
    "Trace": "traces",
}
"""Names of labels in messages."""


class Dependency(NamedTuple):
    """A label whose nodes cannot exist without a node of another label."""

    label: str
    dependent: str
    """The label, and the one that depends on it."""
    path: str
    """Path from a node of the label to its dependent; empty if the dependent names it as its ``tables``."""

    @property
    def statement(self) -> str:
        """Statement for the dependents of ``$ids``."""
        if not self.path:
            return f"MATCH (d:{self.dependent})\nWHERE d.tables IN $ids\nRETURN collect(d.id) AS ids\n"
        return (
            f"UNWIND $ids AS id\nMATCH (n:{self.label} {{id: id}}){self.path}(d:{self.dependent})\n"
            "RETURN collect(DISTINCT d.id) AS ids\n"
        )


class Shared(NamedTuple):
    """A label whose nodes exist as long as nodes of another label refer to them."""

    label: str
    type: str
    shared: str

    @property
    def statement(self) -> str:
        """Statement for what ``$ids`` refer to."""
        return (
            f"UNWIND $ids AS id\nMATCH (n:{self.label} {{id: id}})-[:{self.type}]->(s:{self.shared})\n"
            "RETURN collect(DISTINCT s.id) AS ids\n"
        )


DEPENDENCIES = (
    Dependency("Profile", "Rank", "-[:HAS_RANK]->"),
    Dependency("Profile", "Trace", "<-[:OF]-"),
    Dependency("Profile", "Placement", "<-[:OF]-"),
    Dependency("Profile", "Simulation", "<-[:REPLAYS]-"),
    Dependency("Profile", "Reconfiguration", "<-[:FOR]-"),
    Dependency("Job", "Placement", "-[:HAS_PLACEMENT]->"),
    Dependency("Job", "Reconfiguration", "<-[:FOR]-"),
    Dependency("Job", "Advice", "-[:HAS_ADVICE]->"),
    Dependency("Content", "Drawing", "<-[:OF]-"),
    Dependency("Content", "Placement", "<-[:IN]-"),
    Dependency("Content", "Simulation", "<-[:IN]-"),
    Dependency("Routing", "Placement", ""),
    Dependency("Routing", "Simulation", ""),
    Dependency("Trace", "Simulation", "<-[:REPLAYS]-"),
    Dependency("Placement", "Simulation", "<-[:OF]-"),
    Dependency("Placement", "Advice", "<-[:OF]-"),
    Dependency("Placement", "Advice", "<-[:PROPOSES]-"),
    Dependency("Placement", "LinkLoads", "-[:HAS_LOADS]->"),
    Dependency("Profile", "MeasuredRun", "<-[:RAN]-"),
    Dependency("Placement", "MeasuredRun", "<-[:USED]-"),
)
"""All dependencies, in an order in which one pass finds the dependents of dependents too."""

RESULTS = ("Trace", "Placement", "Simulation", "Reconfiguration", "MeasuredRun")
"""Dependents that a user saved; the others are parts of what they depend on, or computed from it."""

SHARED = (
    Shared("Observation", "SAW", "Content"),
    Shared("Observation", "SAW", "Routing"),
    Shared("Routing", "HAS_TABLE", "ForwardingTable"),
    Shared("Job", "RAN_ON", "Allocation"),
    Shared("Placement", "ON", "Allocation"),
    Shared("Profile", "OF", "Application"),
)

_UNSET_PLAN = """
MATCH (c:Cluster)
WHERE c.optical_plan IN $ids
SET c.optical_plan = ''
"""

Nodes = dict[str, set[str]]
"""Ids of nodes by label."""


class Deleted:
    """Nodes that a transaction deletes.

    Attributes:
        nodes: Ids of all deleted nodes by label.
        results: Those of `RESULTS` that were deleted because of a dependency.
    """

    def __init__(self) -> None:
        self.nodes: Nodes = {}
        self.results: Nodes = {}

    def delete(self, transaction: Transaction, label: str, ids: Collection[str]) -> None:
        """Delete nodes of a label, all that depends on them, and what nothing refers to any more."""
        doomed: Nodes = {label: set(ids)}
        for one in DEPENDENCIES:
            _add(doomed, one.dependent, _ids(transaction, one.statement, doomed.get(one.label, ())))
        shared: Nodes = {}
        for use in SHARED:
            _add(shared, use.shared, _ids(transaction, use.statement, doomed.get(use.label, ())))
        for name, gone in doomed.items():
            for batch in batches(gone):
                transaction.run(delete_statement(name), ids=batch)
            _add(self.nodes, name, gone)
            if name in RESULTS and name != label:
                _add(self.results, name, gone)
        if "Reconfiguration" in doomed:
            transaction.run(_UNSET_PLAN, ids=sorted(doomed["Reconfiguration"]))
        for name, candidates in shared.items():
            if unused := _ids(transaction, unused_statement(name), candidates):
                self.delete(transaction, name, unused)


def unused_statement(label: str) -> str:
    """Return the statement for those of ``$ids`` of a shared label that nothing refers to."""
    uses = " AND ".join(f"NOT (s)<-[:{one.type}]-(:{one.label})" for one in SHARED if one.shared == label)
    return f"UNWIND $ids AS id\nMATCH (s:{label} {{id: id}})\nWHERE {uses}\nRETURN collect(s.id) AS ids\n"


def named(nodes: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return the number of nodes by the name of their label."""
    return {NAMES[label]: len(nodes[label]) for label in sorted(nodes, key=NAMES.__getitem__)}


def count_texts(counts: Mapping[str, int]) -> list[str]:
    """Return numbers by name as texts: ``placements: 3``."""
    return [f"{name}: {count:,}" for name, count in counts.items()]


def _ids(transaction: Transaction, statement: str, ids: Collection[str]) -> set[str]:
    """Return the ids that a statement finds for some ids, batch by batch."""
    return {found for batch in batches(ids) for found in transaction.run(statement, ids=batch)[0]["ids"]}


def batches(ids: Collection[str], size: int = BATCH) -> list[list[str]]:
    """Return ids in lists of at most `size` (default: what one statement can take), in order."""
    every = sorted(ids)
    return [every[start : start + size] for start in range(0, len(every), size)]


def _add(nodes: Nodes, label: str, ids: Collection[str]) -> None:
    if ids:
        nodes.setdefault(label, set()).update(ids)


T = TypeVar("T")

REMEDY = "--dry-run lists them, --with-dependents deletes it nevertheless"
ONLY_REMEDY = "ingest another scan first, or delete the cluster: almanac cluster delete"

_LAST = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, x ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN o.id AS id, x.id AS content
"""

_NEXT = """
MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster AND o.at > $at
RETURN min(o.at) AS at
"""

_OTHERS = """
MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster
RETURN sum(CASE WHEN o.id = $id THEN 1 ELSE 0 END) AS itself, count(o) AS all
"""

_FORGET_FILES = """
MATCH (r:IngestRun)
WHERE r.cluster = $cluster AND r.key <> ''
SET r.key = ''
"""

_FORGET_FILES_OF_PROFILE = """
MATCH (r:IngestRun)
WHERE $profile IN r.profiles AND r.key <> ''
SET r.key = ''
"""

_CLUSTERS_OF_PROFILE = tuple(
    f"MATCH (:Profile {{id: $profile}})<-[:{type}]-(n:{label})\nRETURN collect(DISTINCT n.cluster) AS names\n"
    for label, type in (
        ("Placement", "OF"),
        ("Simulation", "REPLAYS"),
        ("Reconfiguration", "FOR"),
        ("MeasuredRun", "RAN"),
        ("Job", "RAN"),
    )
)

_JOBS_OF_PROFILE = """
MATCH (:Profile {id: $profile})<-[:RAN]-(j:Job)
RETURN collect(DISTINCT j.id) AS ids
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What a deletion deletes, or deleted."""

    counts: Mapping[str, int]
    """Number of deleted nodes by name of their kind (`NAMES`)."""
    dependents: Mapping[str, tuple[str, ...]]
    """Ids of the placements, simulations, traces and circuit plans that depended on the data, by kind."""
    jobs: tuple[str, ...] = ()
    """Ids of jobs that stay without their profile."""


class _Undo(Exception):
    """Rolls a transaction back and carries its result out of it."""

    def __init__(self, result: Any) -> None:
        self.result = result


def carry_out(database: Database, work: Callable[[Transaction], T], dry_run: bool) -> T:
    """Run work in one transaction; after a dry run nothing of it is stored."""

    def rehearse(transaction: Transaction) -> T:
        raise _Undo(work(transaction))

    if not dry_run:
        return database.write(work)
    try:
        return database.write(rehearse)
    except _Undo as undone:
        result: T = undone.result
        return result


def delete_observation(
    database: Database, prefix: str, *, with_dependents: bool = False, dry_run: bool = False
) -> Deletion:
    """Delete an observation, and change the derived graph as if it had never been there.

    Its snapshot and its forwarding tables are deleted if no other observation saw them; then placements and
    simulations on them depend on the observation.

    Args:
        prefix: Id of the observation, or a unique beginning of it.
        with_dependents: Delete what depends on it too.
        dry_run: Only return what would be deleted.

    Raises:
        UnknownName
        ChangeRefused: Something depends on it, or it is the cluster's only observation of a fabric.
    """

    def work(transaction: Transaction) -> Deletion:
        found = OBSERVATION.find(transaction, prefix)["node"]
        cluster = str(found["cluster"])
        lock_cluster(transaction, cluster)
        others = transaction.run(_OTHERS, cluster=cluster, id=found["id"])[0]
        if others["itself"] and others["all"] == 1:
            because = [f"it is the only one of the fabric of {cluster}"]
            raise ChangeRefused(f"observation {found['id']}", because, ONLY_REMEDY)
        deleted = Deleted()
        delete_observations(transaction, cluster, {found["id"]: found["at"]}, deleted)
        forget_files(transaction, cluster)
        return _checked(f"observation {found['id']}", deleted, with_dependents or dry_run)

    return carry_out(database, work, dry_run)


def delete_observations(
    transaction: Transaction, cluster: str, observations: Mapping[str, datetime], deleted: Deleted
) -> None:
    """Delete observations of a locked cluster one by one, and update the derived graph.

    Args:
        observations: Time of each observation by its id.
        deleted: What was deleted is added here.
    """
    for identity, at in observations.items():
        valid = transaction.run(_LAST, cluster=cluster, at=at)
        fabric = None
        if valid and valid[0]["id"] == identity:  # otherwise no part of the graph comes from it
            fabric = read_content(transaction, valid[0]["content"])
        deleted.delete(transaction, "Observation", [identity])
        if fabric is None:
            continue
        left = transaction.run(_LAST, cluster=cluster, at=at)
        until = transaction.run(_NEXT, cluster=cluster, at=at)[0]["at"] or FOREVER
        if not left or left[0]["content"] != valid[0]["content"]:
            before = read_content(transaction, left[0]["content"]) if left else None
            derived.apply(transaction, cluster, fabric, before, at, until)


def delete_job(
    database: Database,
    job: str,
    cluster: str | None = None,
    *,
    with_dependents: bool = False,
    dry_run: bool = False,
) -> Deletion:
    """Delete a job with the advice on it; placements and circuit plans of the job depend on it.

    Raises:
        UnknownName
        ChangeRefused
    """

    def work(transaction: Transaction) -> Deletion:
        found = find_job(transaction, job, cluster)
        lock_cluster(transaction, found.cluster)
        deleted = Deleted()
        deleted.delete(transaction, "Job", [found.id])
        forget_files(transaction, found.cluster)
        return _checked(f"job {job} of {found.cluster}", deleted, with_dependents or dry_run)

    return carry_out(database, work, dry_run)


def delete_profile(
    database: Database, name: str, *, with_dependents: bool = False, dry_run: bool = False
) -> Deletion:
    """Delete a profile; its traces, and placements, simulations and circuit plans with it, depend on it.

    Jobs that ran it stay, without a profile.

    Args:
        name: Name or id of the profile.

    Raises:
        UnknownName
        ChangeRefused
    """

    def work(transaction: Transaction) -> Deletion:
        profile = find_profile(transaction, name)
        names = {
            cluster
            for statement in _CLUSTERS_OF_PROFILE
            for cluster in transaction.run(statement, profile=profile)[0]["names"]
        }
        for cluster in sorted(names):
            lock_cluster(transaction, cluster)
        jobs = transaction.run(_JOBS_OF_PROFILE, profile=profile)[0]["ids"]
        deleted = Deleted()
        deleted.delete(transaction, "Profile", [profile])
        transaction.run(_FORGET_FILES_OF_PROFILE, profile=profile)
        return _checked(f"profile {name}", deleted, with_dependents or dry_run, jobs)

    return carry_out(database, work, dry_run)


def delete_runs(database: Database, ids: Collection[str], *, dry_run: bool = False) -> Deletion:
    """Delete entries of the log of ingests by id or unique beginning of it; what they saved stays.

    Raises:
        UnknownName
    """

    def work(transaction: Transaction) -> Deletion:
        deleted = Deleted()
        found = [RUN.find(transaction, one)["node"]["id"] for one in ids]
        deleted.delete(transaction, RUN.label, found)
        return _checked("", deleted, True)

    return carry_out(database, work, dry_run)


def forget_files(transaction: Transaction, cluster: str) -> None:
    """Let files that were ingested for a cluster be read again, though they were read before."""
    transaction.run(_FORGET_FILES, cluster=cluster)


def _checked(what: str, deleted: Deleted, allowed: bool, jobs: Collection[str] = ()) -> Deletion:
    """Return what was deleted, or raise if results depended on it and that is not allowed."""
    if not allowed and (deleted.results or jobs):
        because = count_texts(named(deleted.results) | ({"jobs that ran it": len(jobs)} if jobs else {}))
        raise ChangeRefused(f"{what} is in use", because, REMEDY)
    return Deletion(
        counts=named(deleted.nodes),
        dependents={NAMES[label]: tuple(sorted(ids)) for label, ids in sorted(deleted.results.items())},
        jobs=tuple(sorted(jobs)),
    )
