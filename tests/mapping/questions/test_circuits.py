"""Circuit plan requests, searches that place ranks or leave them, and the best of several seeds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from mapping.circuits.bounds import pinned_bound, throughput_bound
from mapping.circuits.paper_seeds import ring
from mapping.circuits.problem import Application, Machine, Topology
from mapping.questions import circuits
from mapping.questions import circuits as circuit_search
from mapping.questions import circuits as circuit_seeds
from mapping.questions.circuits import (
    GIVEN,
    CircuitPlanCase,
    CircuitPlanReport,
    CircuitPlanRequest,
    CircuitSearchOptions,
    circuit_case,
    machine_of,
    plan_circuits,
    plan_circuits_of_seeds,
)
from registry.errors import InvalidValue, UnknownName
from registry.model.circuit_plan import CircuitPlan
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.circuit_plans import OpticalSwitch
from tests.support.reconfigure_problems import HEAVY, every_pair, links_of, machine
from tests.support.sure import sure

FEW = CircuitSearchOptions(trials=20, seed=1)
LIMITS = machine(4, max_degree=3, max_edges=6, link_speed=2.0, compute_speed=1.0)


def planned(
    application: Application, machine: Machine, options: CircuitSearchOptions, **more: Any
) -> CircuitPlanReport:
    return plan_circuits(CircuitPlanCase(application=application, machine=machine, **more), options)


def check_ways(plan: CircuitPlan, of_nodes: bool) -> None:
    routes = sure(plan.routes)
    assert routes.of_nodes == of_nodes
    load = np.zeros(len(plan.source))
    row = {pair: number for number, pair in enumerate(plan.circuits)}
    for one, other, size, way in zip(routes.one, routes.other, routes.bytes, plan.ways(), strict=True):
        ends = (one, other) if of_nodes else (plan.node_of_vertex[one], plan.node_of_vertex[other])
        assert (way[0], way[-1]) == ends
        for pair in itertools.pairwise(way):
            load[row[min(pair), max(pair)]] += size
    assert load.tolist() == pytest.approx(plan.link_load.tolist())
    assert load.max() > 0


def test_a_free_plan_has_circuits_nodes_and_its_bound() -> None:
    application = every_pair(6)
    found = planned(application, LIMITS, FEW)
    plan = found.plan
    assert (plan.nodes, plan.max_degree, plan.max_edges) == (4, 3, 6)
    assert len(plan.node_of_vertex) == 6
    assert plan.throughput == min(plan.compute_throughput, plan.communication_throughput)
    assert plan.communication_throughput == pytest.approx(2.0 / plan.link_load.max())
    assert plan.upper_bound == throughput_bound(application, LIMITS).throughput
    assert plan.bound == found.bound.name
    assert plan.throughput <= plan.upper_bound * (1 + 1e-9)
    assert plan.trail_throughput.max() == plan.throughput
    assert plan.number.tolist() == [one.number for one in found.trail]
    assert (plan.complete, plan.seed, plan.method, plan.present) == (True, 1, "best", ())
    assert math.isnan(plan.gain)
    check_ways(plan, of_nodes=False)


def test_a_plan_of_the_paper_has_the_options_that_were_given() -> None:
    search = CircuitSearchOptions(method="paper", start=ring(4), patience=2, skip=0.0, seed=3)
    plan = planned(every_pair(5), LIMITS, search).plan
    assert (plan.method, plan.complete) == ("paper", True)
    assert search.parameters == {"start": GIVEN, "patience": 2, "skip": 0.0}
    few = CircuitSearchOptions(method="paper", steps=3, expansion="highest")
    loop = few.loop_options(None)
    assert few.parameters == {"steps": loop.refinement.steps, "expansion": loop.expansion}
    assert few.parameters == {"steps": 3, "expansion": "highest"}
    with pytest.raises(UnknownName, match="lowest"):
        planned(every_pair(5), LIMITS, CircuitSearchOptions(method="paper", expansion="low"))


def test_a_free_plan_is_weighed_against_the_present_circuits() -> None:
    search = CircuitSearchOptions(trials=20, reconfiguration_seconds=3.0)
    plan = planned(every_pair(6), LIMITS, search, present=ring(4)).plan
    assert set(plan.present) == links_of(ring(4))
    assert plan.gain == pytest.approx(plan.throughput / plan.present_throughput)
    even = 3.0 * plan.gain / (plan.gain - 1.0) if plan.gain > 1.0 else math.inf
    assert plan.break_even_seconds == pytest.approx(even)
    with pytest.raises(InvalidValue, match=r"nodes: is 5, the machine has 4"):
        planned(every_pair(6), LIMITS, search, present=ring(5))


def clusters() -> Application:
    """Eight kernels on a path of heavy pairs: links carry the light edges between them alone."""
    return Application.from_edges(range(7), range(1, 8), [50.0, 1.0] * 3 + [50.0])


@pytest.mark.parametrize("method", ["best", "paper"])
@pytest.mark.parametrize("link_speed", [0.01, 2.0, 1e3])
def test_circuits_that_are_there_already_gain_nothing(method: str, link_speed: float) -> None:
    """What was found, set, and searched again: no circuit moves, and the throughput is the same."""
    limits = machine(4, max_degree=3, max_edges=4, link_speed=link_speed, compute_speed=1.0)
    search = CircuitSearchOptions(method=method, trials=None if method == "paper" else 40, seed=1)
    first = planned(clusters(), limits, search).plan
    present = Topology.of(4, first.circuits)
    again = planned(clusters(), limits, search, present=present).plan
    assert (again.removed, again.inserted) == ((), ())
    assert again.present_throughput >= again.throughput >= first.throughput
    assert again.gain == again.throughput / again.present_throughput
    assert again.gain == 1.0 or method == "paper"


def test_present_circuits_that_suit_better_stay() -> None:
    """A search that tries nothing finds less than the present circuits give: they are what is proposed."""
    limits = machine(4, max_degree=3, max_edges=6, link_speed=1.0, compute_speed=100.0)
    complete = Topology.of(4, [*itertools.combinations(range(4), 2)])
    search = CircuitSearchOptions(trials=0, start=Topology.of(4, [(0, 1), (1, 2), (2, 3)]))
    plan = planned(every_pair(4), limits, search, present=complete).plan
    assert (plan.circuits, plan.removed, plan.inserted, plan.gain) == (plan.present, (), (), 1.0)
    trail = plan.trail_throughput
    assert plan.throughput == plan.present_throughput == trail[-1] == trail.max()


def test_circuits_that_carry_nothing_do_not_move() -> None:
    """All is best on one node: whatever circuits there are stay."""
    limits = machine(6, max_degree=3, max_edges=7, link_speed=1e-9)
    plan = planned(every_pair(5), limits, FEW, present=ring(6)).plan
    assert (plan.link_load.tolist(), plan.removed, plan.inserted) == ([0.0] * 6, (), ())


def test_an_interrupt_as_present_circuits_are_judged_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = MagicMock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("mapping.circuits.search.place_and_route", interrupted)
    found = planned(every_pair(6), LIMITS, FEW, present=ring(4)).plan
    assert not found.complete
    assert np.isnan([found.present_throughput, found.gain]).all()
    assert found.throughput == planned(every_pair(6), LIMITS, FEW).plan.throughput


def test_ranks_that_stay_get_the_next_circuits() -> None:
    """Two hosts far apart on a ring of six exchange most; ranks of one host share its circuits."""
    limits = machine(6, max_degree=3, max_edges=7)
    search = CircuitSearchOptions(trials=50, reconfiguration_seconds=0.01)
    stay: dict[str, Any] = {"node_of_rank": np.array([0, 0, 1, 2, 3]), "present": ring(6)}
    plan = planned(HEAVY, limits, search, **stay).plan
    assert (0, 3) in plan.inserted
    assert plan.node_of_vertex.tolist() == [0, 0, 1, 2, 3]
    assert plan.gain > 1.0
    assert plan.throughput == pytest.approx(plan.gain * plan.present_throughput)
    assert plan.upper_bound == pinned_bound(HEAVY, limits, range(6)).throughput
    assert plan.compute_throughput == math.inf
    assert math.isfinite(plan.break_even_seconds)
    check_ways(plan, of_nodes=True)
    slow = planned(HEAVY, limits, FEW, **stay, compute_seconds=100.0).plan
    assert (slow.throughput, slow.present_throughput, slow.gain) == (0.01, 0.01, 1.0)
    assert (slow.upper_bound, slow.bound) == (0.01, "compute")
    assert slow.trail_throughput.max() <= 0.01


def test_a_search_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidValue, match="'guess' is none of paper, best"):
        CircuitSearchOptions(method="guess")
    for seconds in (-1.0, math.nan):
        with pytest.raises(InvalidValue, match=f"reconfiguration_seconds: is {seconds}"):
            CircuitSearchOptions(reconfiguration_seconds=seconds)


SEEDED = CircuitPlanCase(application=every_pair(7), machine=LIMITS)
TINY = CircuitSearchOptions(trials=3, seed=5)


def test_the_best_plan_of_several_seeds_names_its_seed() -> None:
    plans = [plan_circuits(SEEDED, replace(TINY, seed=seed)).plan for seed in (5, 6, 7, 8)]
    most = max(plan.throughput for plan in plans)
    best = next(plan for plan in plans if plan.throughput == most)
    found = plan_circuits_of_seeds(SEEDED, TINY, 4)
    assert (found.plan.seed, found.options.seed, found.plan.throughput) == (best.seed, best.seed, most)
    assert found.plan.complete
    assert found.case is SEEDED
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
    found = plan_circuits_of_seeds(SEEDED, TINY, 4)
    assert found.plan.seed in {5, 6}
    assert not found.plan.complete
    with pytest.raises(KeyboardInterrupt):
        plan_circuits_of_seeds(SEEDED, replace(TINY, seed=7), 4)


SWITCH = OpticalSwitch(
    cluster="c",
    hosts=("a0", "a1", "b0", "b1"),
    max_degree=2,
    max_edges=4,
    link_speed=2.0,
    compute_seconds=0.5,
    circuits=((0, 1), (0, 2), (1, 3), (2, 3)),
)


def test_a_switch_is_a_machine_with_its_present_circuits() -> None:
    speeds = {"compute_speed": 2.0, "link_speed": 2.0}
    assert machine_of(SWITCH) == Machine(nodes=4, max_degree=2, max_edges=4, **speeds)
    assert machine_of(SWITCH, 0.0).compute_speed == 1.0
    assert sure(circuits.topology_of(SWITCH)).pairs.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
    with pytest.raises(InvalidValue, match="compute_seconds"):
        machine_of(SWITCH, -1.0)


def test_running_jobs_are_one_application_and_misfits_are_left_out_with_the_cure(running: Registry) -> None:
    """Job 1 is on a0, b0, a1, b1, whose pairs exchange 8 bytes each way; job 2 sends 4 from a0 to b1."""
    running.optical.save(SWITCH)
    case = circuit_case(running, CircuitPlanRequest(cluster="c"))
    graph = case.application
    flows = set(zip(graph.source.tolist(), graph.target.tolist(), graph.weight.tolist(), strict=True))
    assert flows == {(0, 2, 16.0), (1, 3, 16.0), (0, 3, 4.0)}
    assert graph.vertex_weight.tolist() == [2.0, 1.0, 1.0, 2.0]
    by_job, jobs = {"1": [0, 2, 1, 3], "2": [0, 3]}, sure(case.jobs)
    order = [one.stored.job.id for one in jobs.jobs]
    assert sure(case.node_of_rank).tolist() == [node for job in order for node in by_job[job]]
    assert (case.compute_throughput, case.hosts) == (1.0, SWITCH.hosts)
    assert [one.job.stored.job.id for one in jobs.unloaded] == ["5"]
    report = circuit_search.save_circuits(running, plan_circuits(case, CircuitSearchOptions(trials=5)))
    stored = running.circuit_plans.read(report.record_id)
    assert (stored.cluster, sorted(stored.jobs)) == ("c", ["1", "2"])

    running.jobs.attach("1", "one-way")  # of another number of ranks
    jobs = sure(circuit_case(running, CircuitPlanRequest(cluster="c")).jobs)
    reasons = {one.job.stored.job.id: one.reason for one in jobs.unloaded}
    assert reasons["1"].startswith("4 ranks are placed, the profile has 2: if the last ranks")
    assert "'# ranks: 4'" in reasons["1"]
    assert [one.stored.job.id for one in jobs.jobs] == ["2"]


def test_a_profile_is_planned_for_a_switch_or_for_a_machine(running: Registry) -> None:
    running.optical.save(SWITCH)
    case = circuit_case(running, CircuitPlanRequest(profile="one-way", cluster="c"))
    assert (case.application.vertices, case.compute_seconds, case.node_of_rank) == (2, 0.5, None)
    limits = Machine(nodes=3, max_degree=2, max_edges=3, compute_speed=1.0, link_speed=5.0)
    alone = circuit_case(running, CircuitPlanRequest(profile="one-way", machine=limits, compute_seconds=0.25))
    assert (alone.machine.compute_speed, alone.present, alone.hosts) == (4.0, None, ())
    assert circuit_case(running, CircuitPlanRequest(profile="one-way", machine=limits)).compute_seconds == 1.0


def test_what_is_missing_is_an_error(running: Registry) -> None:
    for given in ({}, {"profile": "one-way"}, {"profile": "one-way", "compute_seconds": 0.0}):
        with pytest.raises(InvalidValue):
            circuit_case(running, CircuitPlanRequest(**given))
    with pytest.raises(UnknownName):
        circuit_case(running, CircuitPlanRequest(cluster="c"))
