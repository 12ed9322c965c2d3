"""``mapping.place``: find a placement within a limit of seconds or steps.

Not in a module called ``place``: importing that would replace the function of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mapping.distances.cost_model import CostModel
from mapping.placement.case import GIVEN, PlacementCase
from mapping.placement.problem.objective import parse_objective
from mapping.placement.search.consecutive import group_ranks, place_ranks
from mapping.placement.search.members import Features, default_members
from mapping.placement.search.options import SearchOptions, search_options
from mapping.placement.search.portfolio import Portfolio
from mapping.placement.search.workers import Member, MemberResult, SearchResult, load_kernels
from registry.model import (
    Allocation,
    Fabric,
    HasFabric,
    HasJob,
    HasPlacement,
    HasProfile,
    Job,
    Placement,
    Profile,
)
from registry.progress import Progress, silent


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

    Parameters
    ----------
    fabric, profile, allocation
        What the registry returns is accepted too: a `Snapshot`, a `StoredProfile`, a `StoredJob` (whose hosts
        and slots are the allocation).
    options : SearchOptions, optional
        Objective, strategies, limit, seed and threads; default: congestion in 10 seconds.
    costs : CostModel, optional
        Routing, rails, distances and load of other jobs.
    pins : mapping of int to str or int, optional
        Rank -> the host that it must be on, by name or as a vertex of the fabric.
    present : Placement, optional
        Present placement: the result is never worse.
    progress : Progress
        Called with the seconds (or steps) done and the best value of the objective.
    **search
        Fields of `options` by name, such as ``seconds=2`` or ``strategies=["greedy"]``.

    Returns
    -------
    Placement
        After a KeyboardInterrupt the best so far, with ``complete=False``.

    Raises
    ------
    InfeasibleAllocation
        More ranks than slots.
    DisconnectedAllocation, UnreachablePair
        Two hosts of the allocation are not connected.
    InvalidPlacement
        A present placement or a pin that does not fit the profile or the allocation.
    InvalidValue
        Seconds, steps, workers, an option or a table of distances out of range, or a routing by forwarding
        tables that the fabric does not have.
    UnknownName
        An unknown objective, routing, rails rule, distance, strategy or option, with the closest names.
    """
    options = search_options(options, search)
    return find_placement(
        PlacementCase.of(fabric, profile, allocation, options, costs, pins, present), progress
    )


def find_placement(
    case: PlacementCase, progress: Progress = silent, bounds: Mapping[str, float] | None = None
) -> Placement:
    """Find a placement of a case that is never worse than the present one; as `place`.

    Parameters
    ----------
    bounds : mapping of str to float, optional
        Certified lower bounds by field of `Score`; the search ends as soon as a placement meets them.
    """
    options = case.options
    if options.consecutive:
        groups = group_ranks(case)
        found = place_ranks(find_placement(groups, progress, bounds), case)
        vars(case).setdefault("routes", groups.routes)  # between the same hosts
        return found
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
