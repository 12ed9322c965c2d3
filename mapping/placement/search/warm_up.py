"""Compile the kernels of a search, or read them from disk, before its clock starts."""

from __future__ import annotations

from functools import cache

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.catalog import Chain
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.routing.catalog import DEFAULTS, build_routes, choose_routing
from registry.model import HOST, SWITCH, Adapters, Allocation, Fabric, ForwardingTables, Links, Profile


@cache
def warm_up(routing: str, chains: tuple[str, ...], workers: int) -> None:
    """Run chains for a few proposals on two hosts, one with two rails; once per process.

    Parameters
    ----------
    routing : str
        Routing; one with options or a file counts as all shortest paths, which have the same kernels.
    chains : tuple of str
    workers : int
        Number of threads of a refiner.
    """
    profile = Profile.from_edges([0, 1], [1, 0], [1.0, 2.0])
    fabric = _two_hosts()
    allocation = Allocation.of(fabric, [0, 1])
    choose_routing(fabric)
    known = routing if routing in DEFAULTS else DEFAULTS[-1]
    routes = build_routes(known, fabric, allocation.hosts)
    routes.require_connected()
    problem = Problem(profile=profile, allocation=allocation, routes=routes)
    parsed = [Chain.parse(text) for text in chains]
    for first in dict.fromkeys(chain.strategy for chain in parsed if chain.strategy is not None):
        first.strategy()(problem, np.random.default_rng(0))
    for link in dict.fromkeys(link for chain in parsed for link in chain.refiners):
        deadline = Deadline(steps=2, workers=workers)
        list(link.refiner()(problem, problem.slot_host.copy(), deadline, np.random.default_rng(0)))
    score(problem, problem.slot_host)


def _two_hosts() -> Fabric:
    """Return two hosts on one switch, with forwarding tables; the first has two adapters."""
    adapters = Adapters(
        names=("a1", "a2", "b"),
        guid=np.array([1, 2, 3], np.uint64),
        system_guid=np.array([1, 1, 3], np.uint64),
        host=np.array([0, 0, 1]),
        port_adapter=np.array([0, 1, 2]),
        port_number=np.array([1, 1, 1]),
        port_guid=np.array([1, 2, 3], np.uint64),
        port_lid=np.array([1, 2, 3]),
        port_lmc=np.array([0, 0, 0]),
    )
    links = Links.of(
        [0, 0, 1, 2, 2, 2], [2, 2, 2, 0, 0, 1], 1.0,
        source_port=[1, 1, 1, 1, 2, 3], target_port=[1, 2, 3, 1, 1, 1],
        source_adapter=[0, 1, 2, -1, -1, -1], target_adapter=[-1, -1, -1, 0, 1, 2],
    )  # fmt: skip
    tables = ForwardingTables(
        switch_guid=np.array([4], np.uint64),
        ports=np.array([[255, 1, 2, 3]]),
        lid_guid=np.array([0, 1, 2, 3], np.uint64),
    )
    return Fabric(
        names=("a", "b", "s"),
        kind=np.array([HOST, HOST, SWITCH]),
        slots=np.array([1, 1, 0]),
        forwards=np.array([False, False, True]),
        guid=np.array([0, 0, 4], np.uint64),
        lid=np.zeros(3, np.int32),
        links=links,
        adapters=adapters,
        tables=tables,
    )
