"""Place and evaluate with the registry: read profile, allocation and fabric, compute, save, report.

The only module of this wing that touches the database, through `registry.registry.Registry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from mapping.metrics import choose_routing, evaluate
from mapping.placing import place
from mapping.report import RANDOM_SEEDS, LoadedLink, Metrics, worst_link
from mapping.routing.routes import ALL_CONNECTED
from mapping.strategies.in_order import in_order
from mapping.strategies.random import random_placement
from registry.errors import InvalidValue
from registry.fabrics import Snapshot
from registry.model import Allocation, Bound, Evaluation, Fabric, HostOrder, Placement
from registry.placements import BaselineMetrics, PlacementRecord
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.version import code_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be placed, where, and how long to search.

    Attributes
    ----------
    profile : str
        Name or id.
    job, cluster : str or None
        A job's hosts and slots; its cluster where two have a job of that id.
    hosts : tuple of str or None
        Instead of a job: hosts of `cluster`, in launch order.
    slots : int or None
        Ranks a host takes; None: the job's, else 1.
    objective : str
        ``congestion``, ``hop-bytes`` or ``dilation``.
    routing : str or None
        None: forwarding tables where complete, else all shortest paths.
    rails : str
        How a pair's bytes are split over adapters: ``all-connected`` or ``same-rail``.
    strategies : tuple of str or None
        None: the default portfolio.
    seconds : float
    steps : int or None
        Proposals instead of seconds: then the same seed gives the same bytes.
    seed : int
    at : datetime or None
        On the fabric as of this time.
    """

    profile: str
    job: str | None = None
    cluster: str | None = None
    hosts: tuple[str, ...] | None = None
    slots: int | None = None
    objective: str = "congestion"
    routing: str | None = None
    rails: str = ALL_CONNECTED
    strategies: tuple[str, ...] | None = None
    seconds: float = 10.0
    steps: int | None = None
    seed: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """A placement that was found and saved, beside its baselines and bounds.

    Attributes
    ----------
    placement_id : str
    profile_name, cluster, snapshot : str
    routing_because : str
        Why this routing was taken.
    fabric : Fabric
    placement : Placement
    evaluation : Evaluation
        Of the placement, with bounds.
    baseline : Evaluation
        Of the ranks in order.
    random : Metrics
        Mean over `mapping.report.RANDOM_SEEDS`.
    """

    placement_id: str
    profile_name: str
    cluster: str
    snapshot: str
    routing_because: str
    fabric: Fabric
    placement: Placement
    evaluation: Evaluation
    baseline: Evaluation
    random: Metrics

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """Certified lower bounds by metric."""
        return self.evaluation.bounds

    def told(self) -> dict[str, Any]:
        """The documented JSON keys."""
        placement = self.placement
        return {
            "placement": self.placement_id,
            "profile": self.profile_name,
            "cluster": self.cluster,
            "snapshot": self.snapshot,
            "ranks": placement.ranks,
            "hosts": len(placement.allocation),
            "objective": placement.objective,
            "routing": placement.routing,
            "strategy": placement.strategy,
            "seed": placement.seed,
            "seconds": placement.seconds,
            "steps": placement.steps,
            "complete": placement.complete,
            "code_version": self.evaluation.code_version,
            "in_order": Metrics.of(self.baseline).told(),
            "random": self.random.told(),
            "placed": Metrics.of(self.evaluation).told(),
            "lower_bound": bounds_told(self.bounds),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judgement:
    """What a given placement costs on a cluster's fabric.

    Attributes
    ----------
    profile_name, cluster, snapshot, placement_name : str
    routing_because : str
    fabric : Fabric
    evaluation : Evaluation
        With bounds for the placement's own hosts and slots.
    """

    profile_name: str
    cluster: str
    snapshot: str
    placement_name: str
    routing_because: str
    fabric: Fabric
    placement: Placement
    evaluation: Evaluation

    def told(self) -> dict[str, Any]:
        """The documented JSON keys."""
        found = self.evaluation
        return {
            "placement": self.placement_name,
            "profile": self.profile_name,
            "cluster": self.cluster,
            "snapshot": self.snapshot,
            "ranks": self.placement.ranks,
            "hosts": len(np.unique(self.placement.host_of_rank)),
            "routing": found.routing,
            "rails": found.rails,
            "bytes": found.total_bytes,
            **Metrics.of(found).told(),
            "max_dilation": found.max_dilation,
            "worst_link": _link_told(worst_link(self.fabric, found)),
            "worst_network_link": _link_told(worst_link(self.fabric, found, network=True)),
            "lower_bound": bounds_told(found.bounds),
            "code_version": found.code_version,
        }


def answer(registry: Registry, question: Question, progress: Progress = silent) -> Answer:
    """Find a placement, evaluate it beside its baselines, save it.

    Raises
    ------
    UnknownName
        No such profile, job, cluster, host, routing or strategy; with the closest names.
    InfeasibleAllocation, DisconnectedAllocation, UnreachablePair
    """
    stored = registry.profiles.read(question.profile)
    profile = stored.profile
    snapshot, allocation, job = _where(registry, question)
    fabric = snapshot.fabric
    allocation.require(profile.ranks)
    routing, because = _routing(fabric, question.routing)
    placement = place(
        fabric,
        profile,
        allocation,
        objective=question.objective,
        routing=routing,
        rails=question.rails,
        strategies=question.strategies,
        seconds=question.seconds,
        steps=question.steps,
        seed=question.seed,
        progress=progress,
    )
    judged = partial(evaluate, fabric, profile, routing=routing, rails=question.rails)
    evaluation = judged(placement, bounds=True)
    baseline = judged(in_order(profile.ranks, allocation))
    at_random = [random_placement(profile.ranks, allocation, seed) for seed in RANDOM_SEEDS]
    randomly = Metrics.mean([Metrics.of(judged(one)) for one in at_random])
    record = PlacementRecord(
        cluster=snapshot.cluster,
        content=snapshot.id,
        routing=snapshot.routing,
        profile=stored.id,
        job=job,
        placement=placement,
        evaluation=evaluation,
        in_order=BaselineMetrics(**Metrics.of(baseline).told()),
        random=BaselineMetrics(**randomly.told()),
        code_version=code_version(),
    )
    return Answer(
        placement_id=registry.placements.save(record),
        profile_name=profile.name,
        cluster=snapshot.cluster,
        snapshot=snapshot.id,
        routing_because=because,
        fabric=fabric,
        placement=placement,
        evaluation=evaluation,
        baseline=baseline,
        random=randomly,
    )


def judge(
    registry: Registry,
    profile: str,
    cluster: str,
    given: str | HostOrder,
    *,
    routing: str | None = None,
    rails: str = ALL_CONNECTED,
    at: datetime | None = None,
) -> Judgement:
    """Evaluate a placement, saved (its id) or given by hosts, on a cluster as of a time; saves nothing.

    Raises
    ------
    UnknownName
    InvalidPlacement
        The placement has another number of ranks than the profile.
    DisconnectedAllocation, UnreachablePair
    """
    stored = registry.profiles.read(profile)
    snapshot = registry.fabrics.read(cluster, at)
    fabric = snapshot.fabric
    placement, name = _given(registry, given, snapshot)
    name_of_routing, because = _routing(fabric, routing)
    evaluation = evaluate(
        fabric, stored.profile, placement, routing=name_of_routing, rails=rails, bounds=True
    )
    return Judgement(
        profile_name=stored.profile.name,
        cluster=snapshot.cluster,
        snapshot=snapshot.id,
        placement_name=name,
        routing_because=because,
        fabric=fabric,
        placement=placement,
        evaluation=evaluation,
    )


def bounds_told(bounds: Mapping[str, Bound]) -> dict[str, float]:
    """Values of certified bounds by metric."""
    return {name: bound.value for name, bound in bounds.items()}


def _link_told(link: LoadedLink | None) -> dict[str, Any] | None:
    return None if link is None else asdict(link)


def _where(registry: Registry, question: Question) -> tuple[Snapshot, Allocation, str | None]:
    if question.job is None:
        if question.cluster is None or not question.hosts:
            raise InvalidValue("Question.hosts", "a job, or a cluster with hosts, is needed")
        snapshot = registry.fabrics.read(question.cluster, question.at)
        slots = 1 if question.slots is None else question.slots
        return snapshot, Allocation.of(snapshot.fabric, question.hosts, slots), None
    stored = registry.jobs.read(question.job, question.cluster)
    if not stored.job.hosts:
        raise InvalidValue("Question.job", f"job {question.job!r} has no hosts: it is {stored.job.state}")
    snapshot = registry.fabrics.read(stored.cluster, question.at)
    given = stored.job.slots if question.slots is None else question.slots
    return snapshot, Allocation.of(snapshot.fabric, stored.job.hosts, given), stored.job.id


def _routing(fabric: Fabric, wanted: str | None) -> tuple[str, str]:
    return choose_routing(fabric) if wanted is None else (wanted, "as asked for")


def _given(registry: Registry, given: str | HostOrder, snapshot: Snapshot) -> tuple[Placement, str]:
    """A placement on the snapshot's fabric; a saved one is carried over by its hosts' names."""
    fabric = snapshot.fabric
    if isinstance(given, HostOrder):
        return given.on(fabric), given.name or given.source
    stored = registry.placements.read(given)
    if stored.content == snapshot.id:
        return stored.placement, stored.id
    older = registry.fabrics.read_content(stored.content).fabric
    names = [older.names[host] for host in stored.placement.allocation.hosts]
    allocation = Allocation.of(fabric, names, stored.placement.allocation.slots)
    moved = replace(stored.placement, host_of_rank=fabric.vertices(stored.hosts), allocation=allocation)
    return moved, stored.id
