"""Annealed exchange of ranks on the sum over links of (load / (capacity * worst)) ** p, with p growing.

A sum of high powers is close to its largest term but, unlike that, falls with every busy link whose load
falls. Hosts' own cables and links of the network are scaled by their own worst link: if a host's own cable
limits congestion, the network goes on improving, worst link first, then worst network link, then
hop-bytes, as in the objective.

Workers search in parallel, each on its domain of the hosts and with its own copy of the loads; domains
change every round, and all loads are computed afresh after about as many examined exchanges as ranks.

With few ranks a run of this kind ends by chance at one of many placements, however long it takes. So if the
limit is enough for several runs, they begin at the start one after another, every other one hotter, and the
best of all counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mapping.deadline import Deadline
from mapping.distances.distances import Distances
from mapping.placement.candidate import Candidate
from mapping.placement.methods.cores import Team
from mapping.placement.methods.link_loads import LoadSearch, Measured, Schedule, link_grid
from mapping.placement.methods.pair_routes import routes_fit
from mapping.placement.problem import Problem
from mapping.routing import shortest_paths
from mapping.routing.shortest_paths import ShortestPaths
from mapping.routing.tori import torus_coordinates
from registry.model import Allocation, Bools, Ints

FEWEST, MOST = 256, 16_384
"""Least and most proposals that are examined in a round."""
SQUARINGS = (2, 3, 4, 5, 6)
"""Exponents of two of p, one after the other in equal parts of the limit."""
HOTTEST = 0.3
"""First temperature, as part of the mean contribution of a rank to the sum's logarithmic slope."""
COLDEST, COLDEST_TOGETHER = 0.1, 0.01
"""Last temperature of one worker, and of several, whose accepted exchanges add up on shared links."""
FROZEN = 0.97
"""Part of the limit after which the temperature is 0."""
SCREEN = 0.5
"""Hop-bytes that a proposal may lose, in bytes of the median rank times hop units."""
HOT = 40
"""Number of 100 proposals that move an end of one of the busiest pairs."""
TOGETHER = 0.5
"""Part of the limit in which hosts' cables and the network have one common worst link, if hosts take several
ranks."""
SAME = 1e-6
"""Two values closer than this, relatively, are equal: shares of flows are stored in 24 bits."""
RUN = 20_000
"""Proposals of a run for each rank, if there are several. CG of 64 ranks on 16 hosts, 10 million proposals,
six seeds: worst link 0.87 of that of a single run; LULESH of 64 ranks on 64 hosts: 1.01."""
SPEED_KNOWN = 0.01
"""Part of the limit after which the number of runs is decided by the proposals made so far."""
HOTTER = 3.0
"""First temperature of every other run, relative to the first run's."""
MOST_GROUPS = 2_400
"""Most host groups of a search on loads: 2.9 million pairs, whose routes fit in memory."""


def refine(
    problem: Problem,
    start: Ints,
    deadline: Deadline,
    generator: np.random.Generator,
    *,
    hottest: float = HOTTEST,
    coldest: float = 0.0,
    screen: float = SCREEN,
    hot: int = HOT,
) -> Iterator[Candidate]:
    """Improve a placement on congestion, in the order of the objective of that name.

    Args:
        hottest, coldest: First and last temperature, as part of the mean contribution of a rank to the sum's
            logarithmic slope; a last temperature of 0 means 0.1 with one worker and 0.01 with several.
        screen: Hop-bytes that a proposal may lose, in bytes of the median rank times hop units.
        hot: Number of 100 proposals that move an end of one of the busiest pairs.
    """
    if len(problem.bytes) == 0 or len(problem.slot_host) < 2 or bool(problem.pinned.all()):
        return
    coldest = coldest or (COLDEST if deadline.workers == 1 else COLDEST_TOGETHER)
    schedule = Schedule(SQUARINGS, hottest, coldest, FROZEN, screen, hot, TOGETHER)
    fewer = fewer_hosts(problem, start, generator)
    if fewer is None:
        yield from _descend(problem, start, deadline, generator, schedule)
        return
    for found in _descend(fewer.problem, fewer.inside(start), deadline, generator, schedule):
        yield found._replace(host_of_rank=fewer.outside(found.host_of_rank))


def has_all_routes(problem: Problem) -> bool:
    """Return True if all routes that a search needs fit in memory; else other kernels are compiled."""
    if _has_too_many_hosts(problem):
        return False
    return routes_fit(problem.routes.flows, link_grid(problem))


def _descend(
    problem: Problem, start: Ints, deadline: Deadline, generator: np.random.Generator, schedule: Schedule
) -> Iterator[Candidate]:
    """Run rounds of exchanges until the deadline; yield the best placement after each."""
    search = LoadSearch(problem, start, deadline.workers, generator)
    best = search.measure(schedule, 0.0)
    deadline.restart()
    runs = Runs(ranks=search.movable, schedule=schedule)
    wanted, since, passed = min(max(problem.ranks, FEWEST), MOST), 0, 0.1
    with Team(deadline.workers) as team:
        while proposals := deadline.claim(int(wanted / passed)):
            looked = search.round(team, proposals, runs.schedule, runs.fraction(deadline))
            since += looked
            passed = max(0.5 * (passed + looked / proposals), 0.002)
            ended = runs.fraction(deadline) >= 1.0
            if since >= wanted or ended:
                measured, since = search.measure(runs.schedule, runs.fraction(deadline)), 0
                best = measured if _is_better(problem, measured, best) else best
            yield _found(best)
            if ended and runs.next():
                search.begin(start)
                search.measure(runs.schedule, 0.0)
    if since and _is_better(problem, measured := search.worst(), best):
        yield _found(measured)


@dataclass(kw_only=True, slots=True)
class Runs:
    """Runs of equal length under one limit: how many, which is the present one, and its schedule."""

    ranks: int
    """Number of ranks that may move."""
    schedule: Schedule
    """Schedule of the present run."""
    count: int = 0
    """Number of runs; 0 while it is not known."""
    done: int = 0

    def fraction(self, deadline: Deadline) -> float:
        """Return the part of the present run that is over, 0 to 1."""
        whole = deadline.fraction
        if self.count == 0 and whole >= SPEED_KNOWN:
            self.count = max(int(deadline.taken / whole / (RUN * max(self.ranks, 1))), 1)
        return min(whole * max(self.count, 1) - self.done, 1.0)

    def next(self) -> bool:
        """Go on to the next run; return False after the last."""
        self.done += 1
        warmer = HOTTER if self.done % 2 else 1.0 / HOTTER
        self.schedule = self.schedule._replace(hottest=self.schedule.hottest * warmer)
        return self.done < self.count


def _found(measured: Measured) -> Candidate:
    return Candidate(
        measured.host_of_rank,
        "congestion_seconds",
        measured.congestion_seconds,
        measured.network_congestion_seconds,
    )


def _is_better(problem: Problem, one: Measured, other: Measured) -> bool:
    for a, b in zip(one[:2], other[:2], strict=True):
        if abs(a - b) > SAME * max(a, b):
            return a < b
    return problem.hop_bytes(one.host_of_rank) < problem.hop_bytes(other.host_of_rank)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FewerHosts:
    """A problem on some hosts of another, which has too many hosts to store all routes."""

    problem: Problem
    host: Ints
    """int32[h]: Hosts of the smaller problem, by index in the other problem, ascending."""

    def inside(self, host_of_rank: Ints) -> Ints:
        """Return int32[ranks]: a placement by host index of the smaller problem."""
        return np.searchsorted(self.host, host_of_rank).astype(np.int32)

    def outside(self, host_of_rank: Ints) -> Ints:
        """Return int32[ranks]: a placement by host index of the other problem."""
        return self.host[host_of_rank]


def fewer_hosts(problem: Problem, start: Ints, generator: np.random.Generator) -> FewerHosts | None:
    """Return the problem on the start's hosts and some random others; None if all hosts can be used.

    Args:
        start (int32[ranks]): Host indices.
    """
    if not _has_too_many_hosts(problem):
        return None
    kept = _groups(problem, start, generator)
    if kept is None:
        return None
    host = np.flatnonzero(kept[problem.distances.group]).astype(np.int32)
    return FewerHosts(problem=_on(problem, host), host=host)


def _has_too_many_hosts(problem: Problem) -> bool:
    """Return True if a search uses some hosts only; on a torus one route serves many pairs."""
    if problem.distances.groups <= MOST_GROUPS or type(problem.routes) is not ShortestPaths:
        return False
    return torus_coordinates(problem.routes.fabric) is None


def _groups(problem: Problem, start: Ints, generator: np.random.Generator) -> Bools | None:
    """Return bool[g]: host groups to use; None if the start and the pins use too many."""
    group, wanted = problem.distances.group, np.r_[start, problem.pins[problem.pinned]]
    kept = np.zeros(problem.distances.groups, np.bool_)
    kept[group[wanted]] = True
    more = MOST_GROUPS - int(np.count_nonzero(kept))
    if more < 0:
        return None
    kept[generator.choice(np.flatnonzero(~kept), more, replace=False)] = True
    return kept


def _on(problem: Problem, host: Ints) -> Problem:
    allocation, routes, own = problem.allocation, problem.routes, problem.own_distances
    if own is not None:
        group, row = np.unique(own.group[host], return_inverse=True)
        own = Distances(name=own.name, group=row.astype(np.int32), between=own.between[np.ix_(group, group)])
    return replace(
        problem,
        allocation=Allocation(hosts=allocation.hosts[host], slots=allocation.slots[host]),
        routes=shortest_paths.build(routes.fabric, allocation.hosts[host], rails=routes.rails),
        pins=np.where(problem.pinned, np.searchsorted(host, problem.pins), -1),
        own_distances=own,
    )
