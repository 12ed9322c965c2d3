"""``mapping.pareto``: placements that trade congestion against hop-bytes, none worse in both than another.

A search on hop-bytes gives one end of the set. From there, searches on congestion of different lengths lead
to the other end: a short one stops where hop-bytes have hardly grown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mapping.deadline import Deadline
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import LINKS
from mapping.placement.case import IN_ORDER, PlacementCase
from mapping.placement.problem.objective import SAME, Score, better, parse_objective
from mapping.placement.problem.problem import Problem
from mapping.placement.search.consecutive import group_ranks, place_ranks
from mapping.placement.search.members import Features, default_members, pareto_members
from mapping.placement.search.options import SearchOptions, search_options
from mapping.placement.search.portfolio import Portfolio
from mapping.placement.search.workers import Member, MemberResult, load_kernels
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

    Parameters
    ----------
    options : SearchOptions, optional
        Limit, seed and threads; default: 30 seconds.
    fabric, profile, allocation, costs, pins, progress, **search
        As in `mapping.place`.
    present : Placement, optional
        No result is worse than this placement in both.

    Returns
    -------
    tuple of Placement
        None is dominated by another in congestion (the worst link, then the worst network link) and
        hop-bytes. The least congestion first; ``parameters`` hold both values.

    Raises
    ------
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
