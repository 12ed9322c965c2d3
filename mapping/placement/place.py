"""``mapping.place`` and ``mapping.pareto``: find one placement, or placements that trade two metrics.

``mapping.pareto``: placements that trade congestion against hop-bytes, none worse in both than another.

A search on hop-bytes gives one end of the set. From there, searches on congestion of different lengths lead
to the other end: a short one stops where hop-bytes have hardly grown.

Consecutive ranks on each host, as torchrun and DeepSpeed start them: only the order of hosts is searched.

A group of ranks takes the place of a rank, and a host the place of a slot. Traffic within a group stays on
its host, so that both placements load the same links with the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mapping.deadline import Deadline
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import LINKS
from mapping.placement.case import GIVEN, IN_ORDER, PlacementCase
from mapping.placement.objective import SAME, Score, better, parse_objective
from mapping.placement.problem import Problem
from mapping.placement.search import (
    Features,
    Portfolio,
    SearchOptions,
    default_members,
    pareto_members,
    search_options,
)
from mapping.placement.workers import Member, MemberResult, SearchResult, load_kernels
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import (
    Allocation,
    Fabric,
    HasFabric,
    HasJob,
    HasPlacement,
    HasProfile,
    Ints,
    Job,
    Placement,
    Profile,
)
from registry.progress import Progress, silent

OPTION = "consecutive"
"""Name of the option, and of the parameter of placements that holds the number of ranks per host."""


def group_ranks(case: PlacementCase) -> PlacementCase:
    """Return a case in which a rank is a group of consecutive ranks that fills a host.

    Raises:
        InvalidValue: Hosts with different numbers of slots, or ranks that do not fill whole hosts.
        InvalidPlacement: Ranks of one group pinned to several hosts, or a present placement whose ranks are
            not consecutive.
    """
    hosts, profile = case.allocation.hosts, case.profile
    each = _ranks_per_host(case)
    case.allocation.require(profile.ranks)
    groups = Profile.from_edges(
        profile.sender // each,
        profile.partner // each,
        profile.bytes,
        ranks=profile.ranks // each,
        messages=profile.messages,
        name=profile.name,
        application=profile.application,
    )
    allocation = Allocation(hosts=hosts, slots=np.ones(len(hosts), np.int32))
    pinned = _of_groups(case.pinned_hosts(), each, "pinned")
    present = case.present
    if present is not None:
        of_groups = hosts[_of_groups(case.host_indices(present), each, "now")]
        present = replace(
            present, host_of_rank=of_groups, allocation=allocation, core_of_rank=None, cpu_of_rank=None
        )
    return replace(
        case,
        profile=groups,
        allocation=allocation,
        options=replace(case.options, consecutive=False),
        ungrouped=case,
        pins={group: int(hosts[host]) for group, host in enumerate(pinned.tolist()) if host >= 0},
        present=present,
    )


def place_ranks(placement: Placement, case: PlacementCase) -> Placement:
    """Return the placement of a case's ranks, given that of its groups."""
    each = _ranks_per_host(case)
    return replace(
        placement,
        host_of_rank=np.repeat(placement.host_of_rank, each),
        allocation=case.allocation,
        parameters={**placement.parameters, **case.parameters, OPTION: each},
    )


def _ranks_per_host(case: PlacementCase) -> int:
    slots, names = case.allocation.slots, case.fabric.names
    each, ranks = int(slots[0]), case.profile.ranks
    other = np.flatnonzero(slots != each)
    if len(other):
        first, host = names[case.allocation.hosts[0]], names[case.allocation.hosts[other[0]]]
        raise InvalidValue(
            OPTION, f"host {host} has {slots[other[0]]} slots and {first} has {each}: all must have the same"
        )
    if ranks % each:
        raise InvalidValue(OPTION, f"{ranks} ranks do not fill whole hosts of {each} slots")
    return each


def _of_groups(host_of_rank: Ints, each: int, when: str) -> Ints:
    """Return the host of each group; -1 if no rank of it has one."""
    rows = host_of_rank.reshape(-1, each)
    found: Ints = rows.max(axis=1)
    wrong = np.flatnonzero(((rows != found[:, None]) & (rows >= 0)).any(axis=1))
    if len(wrong):
        first = int(wrong[0]) * each
        raise InvalidPlacement(
            f"ranks {first} to {first + each - 1} are {when} on several hosts: with consecutive ranks they "
            "share one"
        )
    return found


CONGESTION, HOP_BYTES = "congestion", "hop-bytes"
LEVELS = "congestion,network-congestion"
"""One of the two axes: the worst link, then the worst network link."""
PARETO = "pareto"
"""Name in placements instead of an objective."""
SECONDS = 30.0
"""Default time of `pareto`."""


def pareto(
    fabric: Fabric | HasFabric,
    profile: Profile | HasProfile,
    allocation: Allocation | Job | HasJob,
    options: SearchOptions | None = None,
    costs: CostModel | None = None,
    *,
    present: Placement | HasPlacement | None = None,
    pins: Mapping[int, str | int] | None = None,
    progress: Progress = silent,
    **search: Any,
) -> tuple[Placement, ...]:
    """Find placements that trade congestion against hop-bytes.

    Args:
        options: Limit, seed and threads; default: 30 seconds.
        fabric, profile, allocation, costs, pins, progress, search: As in `mapping.place`.
        present: No result is worse than this placement in both.

    Returns:
        None is dominated by another in congestion (the worst link, then the worst network link) and
        hop-bytes. The least congestion first; ``parameters`` hold both values.

    Raises:
        InfeasibleAllocation, InvalidPlacement, DisconnectedAllocation, UnreachablePair
        InvalidValue, UnknownName
    """
    options = search_options(options, search, SearchOptions(seconds=SECONDS))
    case = PlacementCase.of(fabric, profile, allocation, options, costs, pins, present)
    return find_pareto_set(case, progress)


def find_pareto_set(case: PlacementCase, progress: Progress = silent) -> tuple[Placement, ...]:
    """Find placements of a case that trade congestion against hop-bytes; as `pareto`."""
    options = case.options
    if options.consecutive:
        return tuple(place_ranks(one, case) for one in find_pareto_set(group_ranks(case), progress))
    deadline, objective = options.start_clock(), parse_objective(HOP_BYTES)
    with deadline.without_compilation():
        problem, baselines = case.problem(LINKS), case.baselines()
        features = Features.of(problem)
        near, calm = default_members(objective, features), pareto_members(features)
        load_kernels(problem, near + calm, deadline.workers)
    found, complete = _search(problem, baselines, near, calm, deadline, options.seed, progress)
    parameters = {"workers": deadline.workers, **case.parameters}
    return tuple(
        Placement(
            host_of_rank=problem.allocation.hosts[one.host_of_rank],
            allocation=problem.allocation,
            strategy=one.chain,
            objective=PARETO,
            routing=problem.routes.name,
            parameters={**_both_values(one), **parameters},
            seed=options.seed,
            seconds=deadline.elapsed,
            complete=complete,
        )
        for one in not_dominated(found)
    )


def not_dominated(results: Sequence[MemberResult]) -> tuple[MemberResult, ...]:
    """Return those that no other beats in congestion and in hop-bytes, the least congested first."""
    front: list[tuple[MemberResult, Score]] = []
    scored = [(one, one.score) for one in results if one.score is not None]
    for one, found in sorted(scored, key=lambda pair: (pair[1].hop_bytes, pair[1][:2])):
        if front and not better(LEVELS, found, front[-1][1]):
            continue
        if front and math.isclose(front[-1][1].hop_bytes, found.hop_bytes, rel_tol=SAME):
            front.pop()  # as many hop-bytes, but for rounding
        front.append((one, found))
    return tuple(one for one, _ in reversed(front))


def _search(
    problem: Problem,
    baselines: dict[str, Ints],
    near: tuple[Member, ...],
    calm: tuple[Member, ...],
    deadline: Deadline,
    seed: int,
    progress: Progress,
) -> tuple[list[MemberResult], bool]:
    """Search on hop-bytes (`near`) for a third of the limit, then from there on congestion (`calm`)."""
    seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
    objective, stage = parse_objective(HOP_BYTES), deadline.stage(1 / 3, 1 / 3)
    first = Portfolio(problem, objective, baselines, stage, progress).run(near, seeds[0], guards=baselines)
    if not first.complete:
        return list(first.members), False
    start = {first.chain: first.host_of_rank, IN_ORDER: baselines[IN_ORDER]}
    objective, stage = parse_objective(CONGESTION), deadline.stage(1.0, 1.0, taken=first.steps)
    second = Portfolio(problem, objective, start, stage, progress).run(calm, seeds[1], guards=start)
    return [*first.members, *second.members], second.complete


def _both_values(result: MemberResult) -> dict[str, float]:
    assert result.score is not None
    return {
        "congestion_seconds": result.score.congestion_seconds,
        "network_congestion_seconds": result.score.network_congestion_seconds,
        "hop_bytes": result.score.hop_bytes,
    }


def place(
    fabric: Fabric | HasFabric,
    profile: Profile | HasProfile,
    allocation: Allocation | Job | HasJob,
    options: SearchOptions | None = None,
    costs: CostModel | None = None,
    *,
    present: Placement | HasPlacement | None = None,
    pins: Mapping[int, str | int] | None = None,
    progress: Progress = silent,
    **search: Any,
) -> Placement:
    """Find a placement of a profile's ranks on an allocation's hosts.

    Args:
        fabric, profile, allocation: What the registry returns is accepted too: a `Snapshot`, a
            `StoredProfile`, a `StoredJob` (whose hosts and slots are the allocation).
        options: Objective, strategies, limit, seed and threads; default: congestion in 10 seconds.
        costs: Routing, rails, distances and load of other jobs.
        pins: Rank -> the host that it must be on, by name or as a vertex of the fabric.
        present: Present placement: the result is never worse.
        progress: Called with the seconds (or steps) done and the best value of the objective.
        **search: Fields of `options` by name, such as ``seconds=2`` or ``strategies=["greedy"]``.

    Returns:
        After a KeyboardInterrupt the best so far, with ``complete=False``.

    Raises:
        InfeasibleAllocation: More ranks than slots.
        DisconnectedAllocation, UnreachablePair: Two hosts of the allocation are not connected.
        InvalidPlacement: A present placement or a pin that does not fit the profile or the allocation.
        InvalidValue: Seconds, steps, workers, an option or a table of distances out of range, or a routing by
            forwarding tables that the fabric does not have.
        UnknownName: An unknown objective, routing, rails rule, distance, strategy or option, with the closest
            names.
    """
    options = search_options(options, search)
    return find_placement(
        PlacementCase.of(fabric, profile, allocation, options, costs, pins, present), progress
    )


def find_placement(
    case: PlacementCase, progress: Progress = silent, bounds: Mapping[str, float] | None = None
) -> Placement:
    """Find a placement of a case that is never worse than the present one; as `place`.

    Args:
        bounds: Certified lower bounds by field of `Score`; the search ends as soon as a placement meets them.
    """
    options = case.options
    if options.consecutive:
        return place_ranks(find_placement(group_ranks(case), progress, bounds), case)
    objective = parse_objective(options.objective)
    if bounds is not None:
        objective = objective.bounded_by(bounds)
    members = tuple(Member(chain=chain) for chain in options.chains())
    deadline = options.start_clock()
    baselines = case.baselines()
    first, hosts = next(iter(baselines.items()))
    result, routing = (
        SearchResult((MemberResult(-1, hosts, first, None),), 0, False),
        case.costs.routing or "",
    )
    with deadline.interruptible():
        progress("loading kernels (compiled once, which takes half a minute)", 0)
        with deadline.without_compilation():
            problem = case.problem()
            members = members or default_members(objective, Features.of(problem))
            members *= options.repeats(len(members))
            routing = problem.routes.name
            load_kernels(problem, members, deadline.workers)
        portfolio = Portfolio(problem, objective, baselines, deadline, progress, options.executor)
        guards = [GIVEN] if options.strategies else baselines
        result = portfolio.run(members, options.seed, guards=guards)
    return Placement(
        host_of_rank=case.allocation.hosts[result.host_of_rank],
        allocation=case.allocation,
        strategy=result.chain,
        objective=options.objective,
        routing=routing,
        parameters={
            "strategies": " ".join(str(member.chain) for member in members),
            "workers": deadline.workers,
            **case.parameters,
            **options.limit,
        },
        seed=options.seed,
        seconds=deadline.elapsed,
        steps=result.steps,
        complete=result.complete,
    )
