"""``mapping.place``: find a placement, under a budget of seconds or of steps.

Not in a module called ``place``: importing that would put the module in the function's place.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mapping.distances.background import Background
from mapping.kernels.compiling import Compiling
from mapping.placement.catalog import Chain
from mapping.placement.problem.objective import Objective, parse_objective
from mapping.placement.problem.pins import pins_on
from mapping.placement.problem.problem import Problem
from mapping.placement.search.executors import THREADS, Executor, default_workers
from mapping.placement.search.lanes import Member
from mapping.placement.search.portfolio import Limits, Portfolio, Result
from mapping.placement.search.posing import GIVEN, Setting, baselines, check_budget
from mapping.placement.search.schedule import Features, default_members
from mapping.placement.search.warm_up import warm_up
from mapping.routing.routes import ALL_CONNECTED
from registry.errors import InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from registry.progress import Progress, silent


def place(
    fabric: Fabric,
    profile: Profile,
    allocation: Allocation,
    *,
    objective: str = "congestion",
    routing: str | None = None,
    rails: str = ALL_CONNECTED,
    distance: str | None = None,
    table: Any = None,
    background: Background | None = None,
    pins: Mapping[int, str | int] | None = None,
    strategies: Sequence[str] | None = None,
    seconds: float = 10.0,
    steps: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: str | Executor = THREADS,
    start: Placement | None = None,
    progress: Progress = silent,
) -> Placement:
    """Find a placement of a profile's ranks on an allocation's hosts.

    Parameters
    ----------
    objective : str
        ``congestion`` (worst link; among equals worst network link; among equals hop-bytes),
        ``hop-bytes``, ``dilation`` (average dilation: the same order as hop-bytes),
        ``mapping-coefficient``, or levels of weighted sums such as ``2*congestion+hop-bytes,max-dilation``
        (`mapping.placement.problem.objective`).
    routing, rails, distance, table, background, pins
        As in `mapping.placement.search.posing.Setting`.
    strategies : sequence of str, optional
        Unless told, a portfolio whose result is never worse than in order. Otherwise just these: a name
        of a strategy (``greedy``), a chain of it and refiners (``greedy:starts=8+pair-exchange``), or
        refiners alone (``congestion-descent``), which work on `start`, else on ranks in order. The best
        of all wins. A strategy is run to its end whatever the limit.
    seconds : float
        Wall seconds, set-up counted; the compilation of kernels that no earlier run has kept on disk
        is not.
    steps : int, optional
        Proposals in all, instead of `seconds`; then the same seed and workers give the same placement.
    seed : int
    workers : int, optional
        Threads (processes) to use at a time; unless told, as many as there are processors for this
        process, or 2 under a number of steps.
    executor : str or Executor
        ``threads``, ``processes``, or an executor of one's own (`mapping.placement.search.executors`).
    start : Placement, optional
        The result is never worse than this.
    progress : Progress
        Told seconds (or steps) done, and the best value of the objective.

    Returns
    -------
    Placement
        After a KeyboardInterrupt the best so far, with ``complete=False``.

    Raises
    ------
    InfeasibleAllocation
        More ranks than slots.
    DisconnectedAllocation, UnreachablePair
        Two hosts of the allocation are not joined.
    InvalidPlacement
        A start or a pin that does not fit the profile or the allocation.
    InvalidValue
        Seconds, steps, workers, an option or a table of distances that makes no sense, or forwarding
        tables asked for that the fabric does not have.
    UnknownName
        An objective, routing, rails rule, distance, strategy or option that there is not; with the closest.
    """
    setting = Setting(
        routing=routing, rails=rails, distance=distance, table=table, background=background, pins=pins or {}
    )
    return place_in(
        setting,
        fabric,
        profile,
        allocation,
        objective=objective,
        strategies=strategies,
        seconds=seconds,
        steps=steps,
        seed=seed,
        workers=workers,
        executor=executor,
        start=start,
        progress=progress,
    )


def place_in(
    setting: Setting,
    fabric: Fabric,
    profile: Profile,
    allocation: Allocation,
    *,
    objective: str = "congestion",
    strategies: Sequence[str] | None = None,
    seconds: float = 10.0,
    steps: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: str | Executor = THREADS,
    start: Placement | None = None,
    progress: Progress = silent,
) -> Placement:
    """`place`, with how placements are routed and measured taken together; routes may be built already."""
    wanted, asked = parse_objective(objective), _members(strategies)
    check_budget(seconds, steps)
    workers = choose_workers(workers, steps)
    fixed = pins_on(setting.pins, profile.ranks, allocation, fabric)
    known = baselines(profile, allocation, start, fixed)
    limits = Limits(begin=time.perf_counter(), seconds=seconds, steps=steps, workers=workers)
    members, name = asked or (), setting.routing or ""
    try:
        progress("loading kernels (compiled once, which takes half a minute)", 0)
        with Compiling() as compiling:
            problem = setting.problem(fabric, profile, allocation, wanted)
            members, name = asked or _default(wanted, problem), problem.routes.name
            warm_up(name, tuple(str(member.chain) for member in members), workers)
        limits = limits.later(compiling.seconds)
        run = Portfolio(problem, wanted, known, limits, progress, executor)
        result = run.run(members, seed, guards=[GIVEN] if strategies else known)
    except KeyboardInterrupt:
        first, hosts = next(iter(known.items()))
        result = Result(host_of_rank=hosts, chain=first, steps=0, complete=False)
    told = {
        "strategies": " ".join(str(member.chain) for member in members),
        "workers": workers,
        **setting.told(fabric),
        **({"limit_seconds": seconds} if steps is None else {"limit_steps": steps}),
    }
    found = _placement(allocation, result, told, time.perf_counter() - limits.begin)
    return replace(found, objective=objective, routing=name, seed=seed)


def _placement(
    allocation: Allocation, result: Result, told: Mapping[str, str | int | float], seconds: float
) -> Placement:
    return Placement(
        host_of_rank=allocation.hosts[result.host_of_rank],
        allocation=allocation,
        strategy=result.chain,
        parameters=told,
        seconds=seconds,
        steps=result.steps,
        complete=result.complete,
    )


def _default(objective: Objective, problem: Problem) -> tuple[Member, ...]:
    return default_members(objective, Features.of(problem))


def _members(strategies: Sequence[str] | None) -> tuple[Member, ...] | None:
    if strategies is None:
        return None
    if isinstance(strategies, str) or not strategies:
        raise InvalidValue("place.strategies", "must be a sequence of at least one name")
    return tuple(Member(chain=Chain.parse(text)) for text in strategies)


def choose_workers(workers: int | None, steps: int | None) -> int:
    """Threads to use; raises `InvalidValue` for fewer than one."""
    if workers is None:
        return default_workers(steps)
    if workers < 1:
        raise InvalidValue("place.workers", "must be at least 1")
    return workers
