"""Plans of circuits, records of them and optical switches as data types: their properties and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from registry.errors import InvalidValue
from registry.model import CircuitPlan
from registry.model.circuit_plan import CircuitRoutes
from registry.store.circuit_plans import CircuitPlanRecord, OpticalSwitch


def circuit_plan(**changed: Any) -> CircuitPlan:
    """Three ranks on a path of four nodes, which was another path before."""
    fields: dict[str, Any] = {"nodes": 4, "max_degree": 2, "max_edges": 4, "seed": 7, "method": "best"}
    fields |= {"compute_speed": 1.0, "link_speed": 100.0, "complete": True, "routes": circuit_routes()}
    fields |= {"node_of_vertex": [0, 1, 3], "source": [0, 0, 2], "target": [1, 3, 3]}
    fields |= {"link_load": [40.0, 10.0, 0.0], "present_source": [0, 1, 2], "present_target": [1, 2, 3]}
    fields |= {"throughput": 1.0, "compute_throughput": 1.0, "communication_throughput": 2.5}
    fields |= {"present_throughput": 0.5, "upper_bound": 1.25, "bound": "ports", "gain": 2.0}
    fields |= {"reconfiguration_seconds": 3.0, "break_even_seconds": 6.0}
    fields |= {"number": [0, 1, 2], "bottleneck": ("communication", "compute", "communication")}
    return CircuitPlan(**fields | {"trail_throughput": [0.5, 1.0, 0.75]} | changed)


def circuit_routes(**changed: Any) -> CircuitRoutes:
    """Ranks 0 and 1 over the first circuit of that plan, 1 and 2 over the first two, 0 and 2 nowhere."""
    fields: dict[str, Any] = {"of_nodes": False, "one": [0, 1, 0], "other": [1, 2, 2]}
    fields |= {"bytes": [30.0, 10.0, 0.0], "first": [0, 1, 3, 3], "circuit": [0, 0, 1]}
    return CircuitRoutes(**fields | changed)


def reconfiguration_record(**changed: Any) -> CircuitPlanRecord:
    """That plan for one profile, of no cluster."""
    fields: dict[str, Any] = {"profiles": ("f",), "ranks": (3,), "plan": circuit_plan(), "wall_seconds": 1.5}
    fields |= {"parameters": {"trials": 9, "start": "ring"}, "code_version": "1.2"}
    return CircuitPlanRecord(**fields | changed)


def optical_switch(**changed: Any) -> OpticalSwitch:
    """A switch of four hosts on a path."""
    fields: dict[str, Any] = {"cluster": "toy", "hosts": ("node00", "node01", "node02", "node03")}
    fields |= {"max_degree": 2, "max_edges": 4, "link_speed": 100.0, "circuits": ((0, 1), (1, 2), (2, 3))}
    return OpticalSwitch(**fields | changed)


def test_a_plan_lists_the_circuits_that_move() -> None:
    plan = circuit_plan()
    assert plan.circuits == ((0, 1), (0, 3), (2, 3))
    assert plan.present == ((0, 1), (1, 2), (2, 3))
    assert (plan.removed, plan.inserted) == (((1, 2),), ((0, 3),))
    assert plan.best.tolist() == [0.5, 1.0, 1.0]
    first = circuit_plan(present_source=[], present_target=[], present_throughput=math.nan, gain=math.nan)
    assert (first.removed, first.inserted) == ((), first.circuits)
    assert reconfiguration_record().node_name(2) == "2"
    assert reconfiguration_record(hosts=("a", "b", "c", "d")).node_name(2) == "c"


def test_a_plans_arrays_are_copied_typed_and_read_only() -> None:
    load = np.array([1.0, 2.0, 3.0])
    plan = circuit_plan(link_load=load)
    load[0] = 9.0
    assert plan.link_load.tolist() == [1.0, 2.0, 3.0]
    kinds = [getattr(plan, name).dtype.name for name in ("node_of_vertex", "source", "number", "link_load")]
    assert kinds == ["int32", "int32", "int32", "float64"]
    with pytest.raises(ValueError, match="read-only"):
        plan.link_load[0] = 1.0


def test_ways_lead_from_the_one_end_to_the_other() -> None:
    assert list(circuit_plan().ways()) == [(0, 1), (1, 0, 3), (0,)]
    assert list(circuit_plan().ways(np.array([1]))) == [(1, 0, 3)]
    assert list(circuit_plan(routes=None).ways()) == []
    assert circuit_routes().crossing.tolist() == [0, 1]
    of_nodes = circuit_routes(of_nodes=True, one=[3], other=[2], bytes=[5.0], first=[0, 1], circuit=[2])
    assert list(circuit_plan(routes=of_nodes).ways()) == [(3, 2)]


REFUSED: dict[Callable[..., object], list[tuple[dict[str, Any], str]]] = {
    lambda **changed: circuit_plan(routes=circuit_routes(**changed)): [
        ({"one": [0, 1]}, "other: has 3 entries, not 2"),
        ({"first": [0, 1, 3]}, "first: has 3 entries, not 4"),
        ({"first": [0, 2, 1, 3]}, "first: does not rise from 0 to 3"),
        ({"first": [0, 1, 2, 2]}, "first: does not rise from 0 to 3"),
        ({"bytes": [1.0, math.nan, 0.0]}, "bytes: must be finite"),
        ({"bytes": [1.0, -1.0, 0.0]}, "bytes: must be finite and not negative"),
        ({"other": [1, 3, 2]}, "other: outside 0 .. 2"),
        ({"circuit": [0, 0, 3]}, "circuit: outside 0 .. 2"),
        ({"of_nodes": True, "one": [0, 4, 0]}, "one: outside 0 .. 3"),
    ],
    circuit_plan: [
        *(({"nodes": 0}, "nodes: is 0"), ({"max_degree": 0}, "max_degree: is 0")),
        *(({"seed": -1}, "seed: is -1"), ({"link_speed": 0.0}, "link_speed: is 0.0")),
        ({"compute_speed": math.inf}, "compute_speed: is inf"),
        *(({"throughput": math.nan}, "throughput: is nan"), ({"gain": -1.0}, "gain: is -1.0")),
        ({"method": "guess"}, "'guess' is none of paper, best"),
        ({"node_of_vertex": [0, 4]}, "node_of_vertex: outside 0 .. 3"),
        *(({"source": [0, 3, 2]}, "row 1 joins 3 and 3"), ({"target": [1, 4, 3]}, "row 1 joins 0 and 4")),
        ({"source": [0, 2, 0], "target": [1, 3, 3]}, "circuits must ascend"),
        ({"present_source": [0, 0, 2], "present_target": [1, 1, 3]}, "circuits must ascend, each once"),
        ({"link_load": [1.0]}, "link_load: has 1 entries, not 3"),
        ({"link_load": [1.0, -1.0, 0.0]}, "link_load: must be finite and not negative"),
        ({"number": [0, 2, 2]}, "number: must ascend"),
        ({"bottleneck": ("compute",)}, "bottleneck: has 1 entries, not 3"),
        ({"trail_throughput": [0.0, math.nan, 1.0]}, "trail_throughput: must be numbers"),
    ],
    reconfiguration_record: [
        ({"profiles": (), "ranks": ()}, "needs at least one profile"),
        ({"ranks": (2,)}, "are 2 of 1 profiles, not 3 of 1"),
        ({"hosts": ("a",)}, "hosts: needs 4 entries"),
        ({"cluster": "toy", "jobs": ("1", "2")}, "jobs: needs 1 entries"),
        ({"jobs": ("1",)}, "jobs run on a cluster"),
    ],
    optical_switch: [
        ({"hosts": ("a",), "circuits": ()}, "hosts: are 1, a switch connects at least 2"),
        ({"hosts": ("a", "b", "a", "c")}, "'a' is named twice"),
        ({"max_degree": 1}, "max_degree: is 1, must be at least 2 to connect 4 hosts"),
        ({"max_edges": 2}, "max_edges: is 2, must be at least 3"),
        ({"link_speed": 0.0}, "link_speed: is 0.0"),
        ({"link_speed": math.nan}, "link_speed: is nan"),
        ({"compute_seconds": -1.0}, "compute_seconds: is -1.0"),
        ({"circuits": ((1, 0),)}, "circuits: must be pairs"),
        ({"circuits": ((0, 4),)}, "circuits: must be pairs"),
        ({"circuits": ((0, 1), (0, 1))}, "circuits: must be pairs"),
        ({"circuits": ((0, 1), (0, 2), (0, 3))}, "'node00' has 3, max_degree is 2"),
        ({"max_edges": 3, "circuits": ((0, 1), (0, 2), (1, 3), (2, 3))}, "are 4, max_edges is 3"),
    ],
}


@pytest.mark.parametrize("make", REFUSED)
def test_what_cannot_be_is_refused_by_name(make: Callable[..., object]) -> None:
    make()
    for changed, message in REFUSED[make]:
        with pytest.raises(InvalidValue, match=message):
            make(**changed)
