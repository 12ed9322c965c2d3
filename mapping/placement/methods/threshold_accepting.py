"""Threshold accepting on congestion, with random swaps: the refinement of the 2011 paper.

Sources: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, section 3.5: "20 iterations in the inner optimization loop and a time limit to determine the number
of outer optimization iterations", candidates "by swapping two random positions in the mapping"; Dueck and
Scheuer, "Threshold accepting" (J. Comput. Phys. 90, 1990): a candidate is accepted if it is worse by less
than a threshold, and thresholds fall. Choices that neither fixes:

Thresholds
    ``first`` times the start's value, falling linearly with the limit to 0 at its end; lowered after
    every `inner` proposals.
Objective
    The exact congestion of the worst link on the problem's routes, the paper estimates it by its
    Algorithm 3. Among equals the worst network link, among equals hop-bytes, by the same rule; the
    threshold is then relative to the start's worst network link, or to the hop-bytes of a mean rank.
Result
    The best placement seen, not the last.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapping.deadline import Deadline
from mapping.kernels.random_numbers import state_from
from mapping.placement.candidate import Candidate
from mapping.placement.kernels import threshold_accepting as kernel
from mapping.placement.kernels.link_loads import Flows
from mapping.placement.kernels.threshold_accepting import Best, Links, Search
from mapping.placement.methods.link_loads import load_all, new_flows, new_loads, talk_of
from mapping.placement.methods.pair_routes import LinkGrid, PairRoutes, build_link_grid, build_pair_routes
from mapping.placement.problem import Problem
from registry.errors import InvalidValue
from registry.model import Ints

ROUNDS_OF = 16
"""Number of thresholds between two checks of the clock."""
REFRESH = 8
"""Proposals per rank between two exact computations of all loads."""
LEAST = 1e-9
"""Part of the largest message above which a link counts as loaded; less is rounding."""
LISTED = 256
"""Number of links of a class that are listed as its busiest: in a 12 x 12 x 12 torus, 10,368 links, an
exchange leaves some of them unchanged."""
CACHE_BYTES = 192 << 20
"""Memory for routes that are computed on first use."""


def refine(
    problem: Problem,
    start: Ints,
    deadline: Deadline,
    generator: np.random.Generator,
    *,
    first: float = 0.0005,
    inner: int = 20,
) -> Iterator[Candidate]:
    """Improve a placement on congestion: worst link, worst network link, hop-bytes.

    Args:
        first: First threshold, as part of the start's value; 0 makes it a descent.
        inner: Proposals at each threshold.
    """
    if not first >= 0 or inner < 1:
        raise InvalidValue("threshold-accepting", "first must not be below 0 nor inner below 1")
    if len(problem.bytes) == 0 or problem.hosts == 1:
        return
    search, routes = _begin(problem, start, generator)
    deadline.restart()
    unit = search.value / np.array([1.0, 1.0, problem.ranks])
    since, before, lowest = 0, 0.0, Candidate(start, "congestion_seconds", float(search.value[0]))
    while proposals := deadline.claim(inner * ROUNDS_OF):
        now = min(deadline.fraction, 1.0)
        thresholds = first * np.array([1.0 - now, (now - before) / ROUNDS_OF])
        before = now
        kernel.accept_below_thresholds(search, routes.missing, proposals, inner, thresholds, unit)
        since += proposals
        if since >= REFRESH * problem.ranks:
            _load_all(problem, search, routes, search.assignment.host_of_rank)
            since = 0
        if not np.array_equal(search.best.host_of_rank, lowest.host_of_rank):
            lowest = Candidate(
                search.best.host_of_rank.copy(), "congestion_seconds", float(search.best.value[0])
            )
        yield lowest


def _begin(problem: Problem, start: Ints, generator: np.random.Generator) -> tuple[Search, PairRoutes]:
    """Return the arrays of a run that starts from a placement, and the routes."""
    talk, grid = talk_of(problem), build_link_grid(problem, merge=False)
    routes = build_pair_routes(problem.routes.flows, grid, CACHE_BYTES)
    search = Search(
        talk=talk,
        lookup=routes.lookup,
        loads=new_loads(len(grid)),
        pending=new_flows(4 * int(np.diff(talk.indptr).max()) + 1),
        links=_links(grid, LEAST * float(problem.bytes.max())),
        assignment=problem.assign_slots(start),
        value=np.zeros(3),
        best=Best(start.astype(np.int32), np.zeros(3)),
        state=state_from(generator),
    )
    _load_all(problem, search, routes, start)
    search.best.value[:] = search.value
    return search, routes


def _links(grid: LinkGrid, least: float) -> Links:
    """Return the links of a grid without load and with empty lists of the worst ones."""
    count = len(grid)
    return Links(
        kind=grid.network.astype(np.uint8),
        scale=1.0 / grid.capacity,
        background=np.array(grid.background),
        bytes=np.zeros(count),
        seconds=np.zeros(count),
        least=least,
        limit=LISTED,
        hot=np.zeros((2, count), np.int32),
        listed=np.zeros(2, np.int64),
        floor=np.zeros(2),
        is_listed=np.zeros(count, bool),
    )


def _load_all(problem: Problem, search: Search, routes: PairRoutes, host_of_rank: Ints) -> None:
    """Compute loads, lists and value afresh, with all pairs of ranks as one change of unloaded links."""
    source, target, size = problem.host_traffic(host_of_rank)
    flows = Flows(source, target, size, np.zeros(len(size)), np.zeros(4 * len(size) + 1, np.int64))
    search.links.bytes[:] = load_all(routes, search.loads, flows)
    kernel.list_hottest(search.loads, search.links, search.value)
