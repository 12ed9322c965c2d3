"""A problem on part of its hosts, for allocations with too many hosts to store all routes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mapping.distances.distances import Distances
from mapping.placement.problem.problem import Problem
from mapping.routing import shortest_paths
from mapping.routing.shortest_paths import ShortestPaths
from mapping.routing.torus import torus_coordinates
from registry.model import Allocation, Bools, Ints

MOST_GROUPS = 2_400
"""Most host groups of a search on loads: 2.9 million pairs, whose routes fit in memory."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FewerHosts:
    """A problem on some hosts of another.

    Attributes
    ----------
    problem : Problem
    host : int32[h]
        Hosts of the smaller problem, by index in the other problem, ascending.
    """

    problem: Problem
    host: Ints

    def inside(self, host_of_rank: Ints) -> Ints:
        """Return int32[ranks]: a placement by host index of the smaller problem."""
        return np.searchsorted(self.host, host_of_rank).astype(np.int32)

    def outside(self, host_of_rank: Ints) -> Ints:
        """Return int32[ranks]: a placement by host index of the other problem."""
        return self.host[host_of_rank]


def fewer_hosts(problem: Problem, start: Ints, generator: np.random.Generator) -> FewerHosts | None:
    """Return the problem on the start's hosts and some random others; None if all hosts can be used.

    Parameters
    ----------
    start : int32[ranks]
        Host indices.
    """
    if problem.distances.groups <= MOST_GROUPS or type(problem.routes) is not ShortestPaths:
        return None
    if torus_coordinates(problem.routes.fabric) is not None:
        return None  # on a torus one route serves all pairs the same step apart
    kept = _groups(problem, start, generator)
    if kept is None:
        return None
    host = np.flatnonzero(kept[problem.distances.group]).astype(np.int32)
    return FewerHosts(problem=_on(problem, host), host=host)


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
