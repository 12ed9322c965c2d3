"""Circuit plans of searches that place ranks, and of searches under ranks that stay."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from mapping.reconfiguration.bounds import pinned_bound, throughput_bound
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.seed_topology import ring
from mapping.service.circuit_search import GIVEN, CircuitPlanReport, CircuitSearchOptions, plan_circuits
from mapping.service.circuits import CircuitPlanCase
from registry.errors import InvalidValue, UnknownName
from tests.support.reconfigure_problems import every_pair, links_of, machine

FEW = CircuitSearchOptions(trials=20, seed=1)
LIMITS = machine(4, max_degree=3, max_edges=6, link_speed=2.0, compute_speed=1.0)


def planned(
    application: Application, machine: Machine, options: CircuitSearchOptions, **more: Any
) -> CircuitPlanReport:
    return plan_circuits(CircuitPlanCase(application=application, machine=machine, **more), options)


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


@pytest.mark.parametrize("stay", [False, True])
def test_the_ways_of_a_plan_are_what_loads_its_circuits(stay: bool) -> None:
    if stay:
        limits = machine(6, max_degree=3, max_edges=7)
        plan = planned(every_pair(6), limits, FEW, node_of_rank=np.arange(6), present=ring(6)).plan
    else:
        plan = planned(every_pair(6), LIMITS, FEW).plan
    routes = plan.routes
    assert routes is not None
    assert routes.of_nodes == stay
    load = np.zeros(len(plan.source))
    row = {pair: number for number, pair in enumerate(plan.circuits)}
    for one, other, size, way in zip(routes.one, routes.other, routes.bytes, plan.ways(), strict=True):
        ends = (one, other) if stay else (plan.node_of_vertex[one], plan.node_of_vertex[other])
        assert (way[0], way[-1]) == ends
        for pair in itertools.pairwise(way):
            load[row[min(pair), max(pair)]] += size
    assert load.tolist() == pytest.approx(plan.link_load.tolist())
    assert load.max() > 0


def test_a_plan_of_the_paper_says_so_and_has_the_options_that_were_given() -> None:
    search = CircuitSearchOptions(method="paper", start=ring(4), patience=2, skip=0.0, seed=3)
    assert planned(every_pair(5), LIMITS, search).plan.method == "paper"
    assert search.parameters == {"start": GIVEN, "patience": 2, "skip": 0.0}


def test_the_loop_of_the_paper_takes_its_steps_and_expansion() -> None:
    search = CircuitSearchOptions(method="paper", steps=3, expansion="highest")
    loop = search.loop_options(None)
    assert (loop.refinement.steps, loop.expansion) == (3, "highest")
    assert search.parameters == {"steps": 3, "expansion": "highest"}
    assert planned(every_pair(5), LIMITS, search).plan.complete
    with pytest.raises(UnknownName, match="lowest"):
        planned(every_pair(5), LIMITS, CircuitSearchOptions(method="paper", expansion="low"))


def test_a_free_plan_is_weighed_against_the_present_circuits() -> None:
    search = CircuitSearchOptions(trials=20, reconfiguration_seconds=3.0)
    plan = planned(every_pair(6), LIMITS, search, present=ring(4)).plan
    assert set(plan.present) == links_of(ring(4))
    assert plan.gain == pytest.approx(plan.throughput / plan.present_throughput)
    if plan.gain > 1.0:
        assert plan.break_even_seconds == pytest.approx(3.0 * plan.gain / (plan.gain - 1.0))
    else:
        assert plan.break_even_seconds == math.inf
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
    complete = Topology.of(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    path = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    search = CircuitSearchOptions(trials=0, start=path)
    plan = planned(every_pair(4), limits, search, present=complete).plan
    assert (plan.circuits, plan.removed, plan.inserted, plan.gain) == (plan.present, (), (), 1.0)
    assert plan.throughput == plan.present_throughput == plan.trail_throughput[-1]
    assert plan.throughput == plan.trail_throughput.max()


def test_circuits_that_carry_nothing_do_not_move() -> None:
    """All is best on one node: whatever circuits there are stay."""
    limits = machine(6, max_degree=3, max_edges=7, link_speed=1e-9)
    plan = planned(every_pair(5), limits, FEW, present=ring(6)).plan
    assert plan.link_load.tolist() == [0.0] * 6
    assert (plan.removed, plan.inserted) == ((), ())


def test_an_interrupt_while_the_present_circuits_are_judged_keeps_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("mapping.reconfiguration.search.best_partition.place_and_route", interrupted)
    found = planned(every_pair(6), LIMITS, FEW, present=ring(4)).plan
    assert not found.complete
    assert math.isnan(found.present_throughput)
    assert math.isnan(found.gain)
    assert found.throughput == planned(every_pair(6), LIMITS, FEW).plan.throughput


def test_ranks_that_stay_get_the_next_circuits() -> None:
    """Two hosts far apart on a ring of six exchange most; ranks of one host share its circuits."""
    hosts = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
    limits = machine(6, max_degree=3, max_edges=7)
    search = CircuitSearchOptions(trials=50, reconfiguration_seconds=0.01)
    found = planned(hosts, limits, search, node_of_rank=np.array([0, 0, 1, 2, 3]), present=ring(6))
    plan = found.plan
    assert (0, 3) in plan.inserted
    assert plan.node_of_vertex.tolist() == [0, 0, 1, 2, 3]
    assert plan.gain > 1.0
    assert plan.throughput == pytest.approx(plan.gain * plan.present_throughput)
    assert plan.upper_bound == pinned_bound(hosts, limits, range(6)).throughput
    assert plan.compute_throughput == math.inf
    assert math.isfinite(plan.break_even_seconds)


def test_computing_caps_what_circuits_can_give() -> None:
    hosts = Application.from_edges([0], [3], [10.0], vertices=6, connected=False)
    limits = machine(6, max_degree=3, max_edges=7)
    found = planned(hosts, limits, FEW, node_of_rank=np.array([0, 3]), present=ring(6), compute_seconds=100.0)
    plan = found.plan
    assert (plan.throughput, plan.present_throughput, plan.gain) == (0.01, 0.01, 1.0)
    assert (plan.upper_bound, plan.bound) == (0.01, "compute")
    assert plan.trail_throughput.max() <= 0.01


def test_unknown_present_circuits_leave_the_gain_unknown() -> None:
    hosts = Application.from_edges([0], [3], [10.0], vertices=6, connected=False)
    plan = planned(hosts, machine(6), FEW, node_of_rank=np.array([0, 3]), present=None).plan
    assert math.isnan(plan.gain)
    assert math.isnan(plan.present_throughput)
    assert plan.throughput == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "guess"}, "'guess' is none of paper, best"),
        ({"reconfiguration_seconds": -1.0}, "reconfiguration_seconds: is -1.0"),
        ({"reconfiguration_seconds": math.nan}, "reconfiguration_seconds: is nan"),
    ],
)
def test_a_search_that_cannot_be_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        CircuitSearchOptions(**wrong)  # type: ignore[arg-type]
