"""The paper's estimate of congestion (Hoefler and Snir 2011, Algorithm 3), and threshold accepting on it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from mapping.placement.problem import Problem, host_indices
from mapping.routing.catalog import build_routes
from registry.model import Fabric, Ints, Placement, Profile

ROUTING = "least-loaded"
INNER = 20
"""Iterations of the inner loop (section 3.5)."""
FIRST = 0.0005
"""First threshold, as part of the start's value: the default of our threshold accepting."""


def algorithm_3(fabric: Fabric, profile: Profile, placement: Placement) -> tuple[float, float]:
    """Return the worst congestion by Algorithm 3, and the mean links of an edge of the guest.

    Edges are routed in the order of senders, then of receivers.
    """
    allocation = placement.allocation
    problem = Problem(
        profile=profile, allocation=allocation, routes=build_routes(ROUTING, fabric, allocation.hosts)
    )
    return estimator(problem)(host_indices(allocation, placement.host_of_rank))


def estimator(problem: Problem) -> Callable[[Ints], tuple[float, float]]:
    """Return a function of each rank's host index: the worst congestion, and the mean links of an edge."""
    capacity = problem.routes.fabric.links.capacity

    def estimate(hosts: Ints) -> tuple[float, float]:
        load = problem.routes.load(*problem.host_traffic(hosts))
        return float((load.link_bytes / capacity).max()), float(load.hops.mean())

    return estimate


def accept_on_estimate(problem: Problem, start: Ints, seconds: float, seed: int = 0) -> tuple[Ints, int]:
    """Return the best of a run of threshold accepting on Algorithm 3, and the number of proposals.

    As in section 3.5: two random positions of the mapping are swapped, a candidate is accepted if it is
    worse by less than the threshold, and the threshold falls after every 20 proposals, here linearly with
    processor time to 0.
    """
    estimate, generator = estimator(problem), np.random.default_rng(seed)
    current = start.copy()
    value = lowest = first = estimate(current)[0]
    best, proposals, begin = current.copy(), 0, time.process_time()
    while (used := (time.process_time() - begin) / seconds) < 1.0:
        threshold = FIRST * first * (1.0 - used)
        for _ in range(INNER):
            pair = generator.choice(problem.ranks, 2, replace=False)
            candidate = current.copy()
            candidate[pair] = current[pair[::-1]]
            found = estimate(candidate)[0]
            if found < value + threshold:
                current, value = candidate, found
            if value < lowest:
                best, lowest = current.copy(), value
        proposals += INNER
    return best, proposals
