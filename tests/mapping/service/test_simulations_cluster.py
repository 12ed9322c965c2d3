"""Simulations of several placements on a real Dask cluster: the same as on one machine."""

from __future__ import annotations

import numpy as np

from mapping.cluster import open_cluster
from mapping.service.simulations import (
    SimulationOptions,
    SimulationRequest,
    simulate_placements,
    simulation_case,
)
from registry.model import HostOrder
from registry.registry import Registry
from tests.support.dask_cluster import DaskCluster

ORDERS = (("a0", "a1", "b0", "b1"), ("a0", "b0", "a1", "b1"), ("b1", "b0", "a1", "a0"))


def request(rounds: int) -> SimulationRequest:
    placements = [HostOrder(hosts=hosts, name="".join(hosts)) for hosts in ORDERS]
    options = SimulationOptions(rounds=rounds)
    return SimulationRequest(profile="across", cluster="c", placements=placements, options=options)


def test_runs_are_those_of_one_machine_in_the_order_of_the_placements(
    running: Registry, dask: DaskCluster
) -> None:
    asked = request(2)
    case = simulation_case(running, asked)
    here = simulate_placements(case, asked.options)
    with open_cluster(dask.address) as cluster:
        there = simulate_placements(case, asked.options, cluster=cluster)
    assert there.complete
    assert [run.placement for run in there.runs] == ["".join(hosts) for hosts in ORDERS]
    for one, other in zip(here.runs, there.runs, strict=True):
        np.testing.assert_array_equal(one.simulation.link_bytes, other.simulation.link_bytes)
        assert one.simulation.completion_seconds == other.simulation.completion_seconds
