"""Circuit plans of several seeds: the best of them, found on one machine and on a real Dask cluster alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mapping.cluster import open_cluster
from mapping.service import circuit_seeds
from mapping.service.circuit_search import CircuitPlanReport, CircuitSearchOptions, plan_circuits
from mapping.service.circuit_seeds import plan_circuits_of_seeds
from mapping.service.circuits import CircuitPlanCase
from registry.progress import Progress, silent
from tests.support.dask_cluster import DaskCluster
from tests.support.reconfigure_problems import every_pair, machine

FEW = CircuitSearchOptions(trials=3, seed=5)
CASE = CircuitPlanCase(
    application=every_pair(7),
    machine=machine(5, max_degree=3, max_edges=6, link_speed=2.0, compute_speed=1.0),
)


def test_the_best_plan_of_several_seeds_names_its_seed(dask: DaskCluster) -> None:
    plans = [plan_circuits(CASE, replace(FEW, seed=seed)).plan for seed in (5, 6, 7, 8)]
    most = max(plan.throughput for plan in plans)
    best = next(plan for plan in plans if plan.throughput == most)
    here = plan_circuits_of_seeds(CASE, FEW, 4)
    with open_cluster(dask.address) as cluster:
        there = plan_circuits_of_seeds(CASE, FEW, 4, cluster=cluster)
    for found in (here, there):
        assert (found.plan.seed, found.options.seed, found.plan.throughput) == (best.seed, best.seed, most)
        assert found.plan.complete
        assert found.case is CASE
        np.testing.assert_array_equal(found.plan.node_of_vertex, best.node_of_vertex)
        np.testing.assert_array_equal(found.plan.circuits, best.circuits)


def test_an_interrupt_keeps_the_seeds_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(
        case: CircuitPlanCase, options: CircuitSearchOptions, progress: Progress = silent
    ) -> CircuitPlanReport:
        if options.seed == 7:
            raise KeyboardInterrupt
        return plan_circuits(case, options, progress)

    monkeypatch.setattr(circuit_seeds, "plan_circuits", plan)
    found = plan_circuits_of_seeds(CASE, FEW, 4)
    assert found.plan.seed in {5, 6}
    assert not found.plan.complete
    with pytest.raises(KeyboardInterrupt):
        plan_circuits_of_seeds(CASE, replace(FEW, seed=7), 4)
