"""``mapping.place``: find a placement, under a budget of seconds or of steps.

Not in a module called ``place``: importing that would put the module in the function's place.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from mapping.catalog import Chain
from mapping.objective import check_objective
from mapping.portfolio import Limits, Member, Portfolio, Result, default_members
from mapping.problem import Problem, host_indices
from mapping.routing.catalog import ROUTINGS, build_routes, choose_routing
from mapping.routing.routes import ALL_CONNECTED
from mapping.strategies.in_order import in_order
from mapping.warm_up import warm_up
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Fabric, Ints, Placement, Profile
from registry.progress import Progress, silent

GIVEN = "given"
"""Name of the start that a caller gives."""
IN_ORDER = "in-order"


def place(
    fabric: Fabric,
    profile: Profile,
    allocation: Allocation,
    *,
    objective: str = "congestion",
    routing: str | None = None,
    rails: str = ALL_CONNECTED,
    strategies: Sequence[str] | None = None,
    seconds: float = 10.0,
    steps: int | None = None,
    seed: int = 0,
    start: Placement | None = None,
    progress: Progress = silent,
) -> Placement:
    """Find a placement of a profile's ranks on an allocation's hosts.

    Parameters
    ----------
    objective : str
        ``congestion`` (worst link; among equals worst network link; among equals hop-bytes),
        ``hop-bytes``, or ``dilation`` (average dilation: the same order as hop-bytes).
    routing : str, optional
        ``tables`` or ``shortest-paths``; unless told, tables where they join all hosts.
    rails : str
        How a pair's bytes are split over adapters: ``all-connected`` or ``same-rail``.
    strategies : sequence of str, optional
        Unless told, a portfolio whose result is never worse than in order. Otherwise just these: a name
        of a strategy (``greedy``), a chain of it and refiners (``greedy+pair-exchange``), or refiners
        alone (``congestion-descent``), which work on `start`, else on ranks in order. The best of all
        wins.
    seconds : float
        Wall seconds, set-up counted; the compilation of kernels that no earlier run has kept on disk
        is not.
    steps : int, optional
        Proposals in all, instead of `seconds`; then the same seed gives the same placement.
    seed : int
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
        A start that does not fit the profile or the allocation.
    InvalidValue
        Seconds or steps below zero, or tables asked for that the fabric does not have.
    UnknownName
        An objective, routing, rails rule or strategy that there is not; with the closest names.
    """
    check_objective(objective)
    members = _members(objective, profile.ranks, strategies)
    if not seconds >= 0 or (steps is not None and steps < 0):
        raise InvalidValue("place.seconds" if steps is None else "place.steps", "must not be below zero")
    baselines = _baselines(profile.ranks, allocation, start)
    progress("loading kernels (compiled once, which takes half a minute)", 0)
    for name in ROUTINGS if routing is None else (routing,):
        warm_up(name)
    limits = Limits(begin=time.perf_counter(), seconds=seconds, steps=steps)
    try:
        routing = choose_routing(fabric)[0] if routing is None else routing
        routes = build_routes(routing, fabric, allocation.hosts, rails=rails)
        routes.require_connected()
        problem = Problem(profile=profile, allocation=allocation, routes=routes)
        run = Portfolio(problem, objective, baselines, limits, progress)
        result = run.run(members, seed, guards=[GIVEN] if strategies else baselines)
    except KeyboardInterrupt:
        name, hosts = next(iter(baselines.items()))
        result = Result(host_of_rank=hosts, chain=name, steps=0, complete=False)
    return Placement(
        host_of_rank=allocation.hosts[result.host_of_rank],
        allocation=allocation,
        strategy=result.chain,
        objective=objective,
        routing=routing or "",
        parameters={
            "strategies": " ".join(str(member.chain) for member in members),
            "rails": rails,
            **({"limit_seconds": seconds} if steps is None else {"limit_steps": steps}),
        },
        seed=seed,
        seconds=time.perf_counter() - limits.begin,
        steps=result.steps,
        complete=result.complete,
    )


def _members(objective: str, ranks: int, strategies: Sequence[str] | None) -> tuple[Member, ...]:
    if strategies is None:
        return default_members(objective, ranks)
    if isinstance(strategies, str) or not strategies:
        raise InvalidValue("place.strategies", "must be a sequence of at least one name")
    return tuple(Member(chain=Chain.parse(text)) for text in strategies)


def _baselines(ranks: int, allocation: Allocation, start: Placement | None) -> dict[str, Ints]:
    """Host indices of the start, where there is one, and of ranks in order."""
    found = {}
    if start is not None:
        if start.ranks != ranks:
            raise InvalidPlacement(f"the start has {start.ranks} ranks, the profile {ranks}")
        start = replace(start, allocation=allocation)  # checks that it fits
        found[GIVEN] = host_indices(allocation, start.host_of_rank)
    found[IN_ORDER] = host_indices(allocation, in_order(ranks, allocation).host_of_rank)
    return found
