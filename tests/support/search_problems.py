"""Problems for tests of strategies, refiners and the search as a whole."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from bench.support.instances import Instance, read
from ingest.generate.direct import torus
from mapping.placement.problem import Problem
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support import paths
from tests.support.small_fabrics import allocations, any_fabrics, profiles, table_fabrics

SHORTEST = "shortest-paths"
Placed = tuple[Problem, Ints]
"""A problem and a placement of its ranks, by host index."""


def problem_on(fabric: Fabric, profile: Profile, allocation: Allocation, routing: str = SHORTEST) -> Problem:
    routes = build_routes(routing, fabric, allocation.hosts)
    return Problem(profile=profile, allocation=allocation, routes=routes)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw any small connected problem: several rails, one-way distances, unequal slots, tables."""
    fabric = draw(st.one_of(any_fabrics(), table_fabrics()))
    profile = draw(profiles(max_ranks=6))
    allocation = draw(allocations(fabric, profile.ranks))
    routing = draw(st.sampled_from(["tables", SHORTEST])) if fabric.tables else SHORTEST
    problem = problem_on(fabric, profile, allocation, routing)
    assume(problem.routes.connected)
    return problem


@st.composite
def placed_problems(draw: st.DrawFn) -> Placed:
    """Draw a problem and some placement for it, by host index."""
    problem = draw(problems())
    slots = draw(st.permutations(range(len(problem.slot_host))))
    return problem, problem.slot_host[np.asarray(slots[: problem.ranks])]


@st.composite
def pinned(draw: st.DrawFn) -> Placed:
    """Draw a problem with some pinned ranks, and a placement that honours them."""
    problem, start = draw(placed_problems())
    elsewhere = problem.slot_host[draw(st.permutations(range(len(problem.slot_host))))]
    held = np.array(draw(st.lists(st.booleans(), min_size=problem.ranks, max_size=problem.ranks)))
    pins = np.where(held, elsewhere[: problem.ranks], -1).astype(np.int32)
    with_pins = replace(problem, pins=pins)
    return with_pins, with_pins.apply_pins(start)


def torus8() -> Instance:
    """Return 512 ranks of a finite-element matrix on an 8 x 8 x 8 torus."""
    return read(paths.DATA / "bench", "torus8", "fem_512")


@cache
def torus8_problem() -> Problem:
    return problem_on(*torus8())


def ring(hosts: int, ranks: int, *, slots: int = 1) -> tuple[Fabric, Profile, Allocation]:
    """Return ranks that communicate in a circle, on hosts cabled in a circle but listed in mixed order."""
    at = np.arange(hosts)
    after = (at + 1) % hosts
    fabric = Fabric.from_arcs([f"n{i:02}" for i in at], np.r_[at, after], np.r_[after, at], 1.0, slots=slots)
    rank = np.arange(ranks)
    profile = Profile.from_edges(rank, (rank + 1) % ranks, np.ones(ranks), ranks=ranks)
    order = np.random.default_rng(7).permutation(hosts)
    return fabric, profile, Allocation.of(fabric, order.tolist(), slots)


def ring_problem(hosts: int, ranks: int, *, slots: int = 1) -> Problem:
    return problem_on(*ring(hosts, ranks, slots=slots))


def on_all_hosts(fabric: Fabric, profile: Profile) -> Problem:
    """Return a profile on all hosts of a fabric and all their slots, in order."""
    hosts = fabric.hosts
    return problem_on(fabric, profile, Allocation.of(fabric, hosts.tolist(), fabric.slots[hosts].tolist()))


def brute_hop_bytes(problem: Problem, host_of_rank: Ints) -> float:
    """Pair of ranks by pair of ranks."""
    profile, distances = problem.profile, problem.routes.distances
    return sum(
        float(size * distances[host_of_rank[a], host_of_rank[b]])
        for a, b, size in zip(profile.sender, profile.partner, profile.bytes, strict=True)
    )


def talking_torus(sides: tuple[int, int], *, ranks: int) -> Problem:
    """Return ranks that exchange random bytes on a torus."""
    random, fabric = np.random.default_rng(4), torus(sides)
    sender, receiver = random.integers(0, ranks, (2, 6 * ranks))
    profile = Profile.from_edges(sender, receiver, random.random(6 * ranks), ranks=ranks)
    return problem_on(fabric, profile, Allocation.of(fabric, fabric.hosts.tolist()))


def everything_on(fabric: Fabric, hosts: list[int] | None = None) -> Problem:
    """Return two ranks that exchange a byte, on all hosts of a fabric or those chosen."""
    chosen = fabric.hosts.tolist() if hosts is None else hosts
    profile = Profile.from_edges([0], [1], [1.0], ranks=2)
    return problem_on(fabric, profile, Allocation.of(fabric, chosen))


class InterruptAt:
    """Progress that ends a search at its n-th call (None: at no call) and keeps the best values reported."""

    def __init__(self, call: int | None) -> None:
        self.left = call
        self.best = [np.inf]

    def __call__(
        self, phase: str, done: float, total: float | None = None, best: float | None = None
    ) -> None:
        self.best.extend([] if best is None else [best])
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
