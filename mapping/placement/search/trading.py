"""``mapping.pareto``: congestion against hop-bytes, placements of which none is worse in both than another.

A search on hop-bytes gives one end of the set. From there, searches on congestion of different lengths lead
to the other: a short one stops where hop-bytes have hardly grown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mapping.kernels.compiling import Compiling
from mapping.placement.problem.objective import SAME, Score, better, parse_objective
from mapping.placement.problem.problem import Problem
from mapping.placement.search.lanes import Tried
from mapping.placement.search.placing import choose_workers
from mapping.placement.search.portfolio import Limits, Portfolio
from mapping.placement.search.posing import IN_ORDER, Setting, baselines, check_budget
from mapping.placement.search.schedule import Features, default_members, pareto_members
from mapping.placement.search.warm_up import warm_up
from registry.model import Allocation, Fabric, Ints, Placement, Profile
from registry.progress import Progress, silent

CONGESTION, HOP_BYTES = "congestion", "hop-bytes"
LEVELS = "congestion,network-congestion"
"""The one axis: the worst link, then the worst network link."""


def pareto(
    fabric: Fabric,
    profile: Profile,
    allocation: Allocation,
    *,
    setting: Setting | None = None,
    seconds: float = 30.0,
    steps: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    start: Placement | None = None,
    progress: Progress = silent,
) -> tuple[Placement, ...]:
    """Placements that trade congestion against hop-bytes.

    Parameters
    ----------
    setting : Setting, optional
        Routing, distances, background and pins.
    start : Placement, optional
        One more that nothing returned is worse than in both.
    seconds, steps, seed, workers, progress
        As in `mapping.place`.

    Returns
    -------
    tuple of Placement
        None dominated by another: by congestion (the worst link, among equals the worst network link)
        and by hop-bytes. The least congestion first; ``parameters`` tell both values.

    Raises
    ------
    InfeasibleAllocation, InvalidPlacement, DisconnectedAllocation, UnreachablePair
    InvalidValue, UnknownName
    """
    check_budget(seconds, steps)
    setting, objective = setting or Setting(), parse_objective(HOP_BYTES)
    limits = Limits(
        begin=time.perf_counter(), seconds=seconds, steps=steps, workers=choose_workers(workers, steps)
    )
    with Compiling() as compiling:
        problem = setting.problem(fabric, profile, allocation, objective)
        known = baselines(profile, allocation, start, problem.pins)
        features = Features.of(problem)
        first = default_members(objective, features)
        chains = tuple(str(member.chain) for member in (*first, *pareto_members(features)))
        warm_up(problem.routes.name, chains, limits.workers)
    limits = limits.later(compiling.seconds)
    tried, complete = _search(problem, known, limits, seed, progress)
    told = setting.told(fabric)
    return tuple(_placement(problem, one, told, seed, limits, complete) for one in not_dominated(tried))


def not_dominated(tried: Sequence[Tried]) -> tuple[Tried, ...]:
    """Those that no other beats in congestion and in hop-bytes, the least congested first."""
    kept: list[tuple[Tried, Score]] = []
    judged = [(one, one.score) for one in tried if one.score is not None]
    for one, found in sorted(judged, key=lambda pair: (pair[1].hop_bytes, pair[1][:2])):
        if kept and not better(LEVELS, found, kept[-1][1]):
            continue
        if kept and math.isclose(kept[-1][1].hop_bytes, found.hop_bytes, rel_tol=SAME):
            kept.pop()  # as many hop-bytes, but for rounding
        kept.append((one, found))
    return tuple(one for one, _ in reversed(kept))


def _search(
    problem: Problem, known: dict[str, Ints], limits: Limits, seed: int, progress: Progress
) -> tuple[list[Tried], bool]:
    """A third of the budget on hop-bytes, the rest from there on congestion."""
    features, begin = Features.of(problem), limits.begin
    seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
    objective = parse_objective(HOP_BYTES)
    part = _part(limits, 1 / 3, begin)
    near = Portfolio(problem, objective, known, part, progress).run(
        default_members(objective, features), seeds[0], guards=known
    )
    if not near.complete:
        return list(near.tried), False
    rest = _part(limits, 1.0, begin, done=near.steps)
    start = {f"{near.chain}": near.host_of_rank, IN_ORDER: known[IN_ORDER]}
    calm = Portfolio(problem, parse_objective(CONGESTION), start, rest, progress).run(
        pareto_members(features), seeds[1], guards=start
    )
    return [*near.tried, *calm.tried], calm.complete


def _part(limits: Limits, until: float, begin: float, *, done: int = 0) -> Limits:
    now = time.perf_counter()
    if limits.steps is not None:
        return replace(limits, steps=max(round(limits.steps * until) - done, 0))
    return replace(limits, begin=now, seconds=max(begin + limits.seconds * until - now, 0.0))


def _placement(
    problem: Problem, one: Tried, told: dict[str, str | int], seed: int, limits: Limits, complete: bool
) -> Placement:
    assert one.score is not None
    return Placement(
        host_of_rank=problem.allocation.hosts[one.host_of_rank],
        allocation=problem.allocation,
        strategy=one.chain,
        objective="pareto",
        routing=problem.routes.name,
        parameters={
            "congestion_seconds": one.score.congestion_seconds,
            "network_congestion_seconds": one.score.network_congestion_seconds,
            "hop_bytes": one.score.hop_bytes,
            "workers": limits.workers,
            **told,
        },
        seed=seed,
        seconds=time.perf_counter() - limits.begin,
        complete=complete,
    )
