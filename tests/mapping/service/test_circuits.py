"""Circuit plan requests: the application, the machine and the running jobs that they name."""

from __future__ import annotations

from typing import Any

import pytest

from mapping.reconfiguration.model.problem import Machine
from mapping.service.circuit_search import CircuitSearchOptions, plan_circuits, save_circuits
from mapping.service.circuits import CircuitPlanRequest, circuit_case, machine_of, topology_of
from registry.errors import InvalidValue, UnknownName
from registry.records.optical_switches import OpticalSwitch
from registry.registry import Registry

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
    machine = machine_of(SWITCH)
    assert (machine.nodes, machine.max_degree, machine.max_edges) == (4, 2, 4)
    assert (machine.compute_speed, machine.link_speed) == (2.0, 2.0)
    assert machine_of(SWITCH, 0.0).compute_speed == 1.0
    present = topology_of(SWITCH)
    assert present is not None
    assert present.pairs.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
    with pytest.raises(InvalidValue, match="compute_seconds"):
        machine_of(SWITCH, -1.0)


def test_running_jobs_are_one_application_of_the_nodes(running: Registry) -> None:
    """Job 1 is on a0, b0, a1, b1, whose pairs exchange 8 bytes each way; job 2 sends 4 from a0 to b1."""
    running.optical.save(SWITCH)
    case = circuit_case(running, CircuitPlanRequest(cluster="c"))
    graph = case.application
    flows = dict(
        zip(
            zip(graph.source.tolist(), graph.target.tolist(), strict=True), graph.weight.tolist(), strict=True
        )
    )
    assert flows == {(0, 2): 16.0, (1, 3): 16.0, (0, 3): 4.0}
    assert graph.vertex_weight.tolist() == [2.0, 1.0, 1.0, 2.0]
    assert case.node_of_rank is not None
    by_job = {"1": [0, 2, 1, 3], "2": [0, 3]}
    assert case.jobs is not None
    jobs = [one.stored.job.id for one in case.jobs.jobs]
    assert case.node_of_rank.tolist() == [node for job in jobs for node in by_job[job]]
    assert (case.compute_throughput, case.hosts) == (1.0, SWITCH.hosts)
    assert [one.job.stored.job.id for one in case.jobs.unloaded] == ["5"]
    report = save_circuits(running, plan_circuits(case, CircuitSearchOptions(trials=5)))
    stored = running.circuit_plans.read(report.record_id)
    assert (stored.cluster, sorted(stored.jobs)) == ("c", ["1", "2"])


def test_a_profile_is_planned_for_a_switch_or_for_a_machine(running: Registry) -> None:
    running.optical.save(SWITCH)
    case = circuit_case(running, CircuitPlanRequest(profile="one-way", cluster="c"))
    assert (case.application.vertices, case.compute_seconds, case.node_of_rank) == (2, 0.5, None)
    limits = Machine(nodes=3, max_degree=2, max_edges=3, compute_speed=1.0, link_speed=5.0)
    alone = circuit_case(running, CircuitPlanRequest(profile="one-way", machine=limits, compute_seconds=0.25))
    assert (alone.machine.compute_speed, alone.present, alone.hosts) == (4.0, None, ())
    assert circuit_case(running, CircuitPlanRequest(profile="one-way", machine=limits)).compute_seconds == 1.0


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({}, InvalidValue),
        ({"profile": "one-way"}, InvalidValue),
        ({"cluster": "c"}, UnknownName),
        ({"profile": "one-way", "compute_seconds": 0.0}, InvalidValue),
    ],
)
def test_what_is_missing_is_an_error(
    running: Registry, request_: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        circuit_case(running, CircuitPlanRequest(**request_))


def test_a_job_with_another_number_of_ranks_than_its_profile_is_left_out_with_the_cure(
    running: Registry,
) -> None:
    running.optical.save(SWITCH)
    running.jobs.attach("1", "one-way")
    case = circuit_case(running, CircuitPlanRequest(cluster="c"))
    assert case.jobs is not None
    reasons = {one.job.stored.job.id: one.reason for one in case.jobs.unloaded}
    assert reasons["1"].startswith("4 ranks are placed, the profile has 2: if the last ranks")
    assert "'# ranks: 4'" in reasons["1"]
    assert [one.stored.job.id for one in case.jobs.jobs] == ["2"]
