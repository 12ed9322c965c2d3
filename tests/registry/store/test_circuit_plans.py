"""Circuit plans and the switches they are applied to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from registry.errors import InvalidValue, UnknownName
from registry.registry import Registry
from registry.store.circuit_plans import CircuitPlanRecord, circuit_plan_id
from tests.registry.model import test_circuit_plan
from tests.registry.model.test_circuit_plan import circuit_plan, optical_switch, reconfiguration_record
from tests.registry.store.test_store_records import known, plan_on
from tests.support.full_cluster import HOSTS, same

__all__ = ["known"]

NOT_KNOWN = ("present_throughput", "gain", "reconfiguration_seconds", "break_even_seconds")
ENDLESS = ("throughput", "compute_throughput", "communication_throughput", "upper_bound")
WITHOUT = {"present_source": [], "present_target": [], "trail_throughput": [math.inf] * 3, "complete": False}
UNLIMITED = circuit_plan(**WITHOUT, **dict.fromkeys(NOT_KNOWN, math.nan), **dict.fromkeys(ENDLESS, math.inf))


def alone(known: Registry, **changed: Any) -> CircuitPlanRecord:
    """A plan for the profile, of no cluster."""
    return replace(reconfiguration_record(profiles=(known.profiles.read("run").id,)), **changed)


def test_saved_plans_are_read_back_and_joined_to_what_they_are_for(known: Registry) -> None:
    records = [
        plan_on(known),
        alone(known),
        alone(known, plan=circuit_plan(routes=None)),  # as saved before ways were kept
        alone(known, plan=UNLIMITED),
    ]
    shown = ("cluster", "hosts", "profiles", "ranks", "jobs", "parameters", "wall_seconds", "code_version")
    for record in records:
        identity = known.circuit_plans.save(record)
        stored = known.circuit_plans.read(identity)
        assert [getattr(stored, name) for name in shown] == [getattr(record, name) for name in shown]
        assert (stored.id, stored.applied_at) == (identity, None)
        assert same(stored.plan, record.plan)
    joined = "MATCH (c:Cluster)<-[:OF]-(r:Reconfiguration)-[:FOR]->(f:Profile) RETURN c.id, f.name"
    assert known.database.query(joined)[1] == [("toy", "run")]  # once, though two jobs run it
    _, rows = known.database.query("MATCH (:Reconfiguration)-[:FOR]->(j:Job) RETURN j.id ORDER BY j.id")
    assert rows == [("toy/1",), ("toy/2",)]


def test_a_row_of_the_list_describes_the_plan(known: Registry) -> None:
    record = plan_on(known)
    known.circuit_plans.save(record)
    (info,) = known.circuit_plans.list()
    plan = record.plan
    for name in ("nodes", "max_degree", "max_edges", "throughput", "gain", "break_even_seconds", "seed"):
        assert getattr(info, name) == getattr(plan, name)
    assert (info.circuits, info.removed, info.inserted) == (3, 1, 1)
    assert (info.jobs, info.profile_names, info.applications) == (("1", "2"), ("run",), ("cg",))
    assert info.parameters == record.parameters
    assert (info.method, info.complete, info.applied_at) == ("best", True, None)
    known.circuit_plans.save(alone(known, plan=UNLIMITED))
    assert info.id not in {one.id for one in known.circuit_plans.list(since=info.recorded_at)}
    newest = known.circuit_plans.list()[0]
    for name in ("gain", "throughput", "upper_bound", "removed", "inserted"):
        assert getattr(newest, name) is None
    assert (newest.circuits, newest.complete, newest.cluster) == (3, False, None)


def test_another_provenance_or_result_is_another_plan() -> None:
    record = reconfiguration_record(cluster="toy", jobs=("1",))
    changes: list[dict[str, Any]] = [
        {"cluster": "two"},
        {"jobs": ("2",)},
        {"profiles": ("g",)},
        {"hosts": HOSTS},
    ]
    changes += [{"parameters": {}}, {"code_version": "2"}]
    plans: list[dict[str, Any]] = [{"seed": 8}, {"complete": False}, {"link_load": [40.0, 10.0, 1.0]}]
    plans += [
        {"gain": math.nan},
        {"routes": None},
        {"routes": test_circuit_plan.circuit_routes(circuit=[0, 0, 2])},
    ]
    variants = [record, *(replace(record, **changed) for changed in changes)]
    variants += [replace(record, plan=circuit_plan(**changed)) for changed in plans]
    assert len({circuit_plan_id(variant) for variant in variants}) == len(variants)
    assert circuit_plan_id(replace(record, wall_seconds=3.0)) == circuit_plan_id(record)


def test_a_profile_of_other_ranks_is_refused(known: Registry) -> None:
    plan = circuit_plan(node_of_vertex=[0, 0, 0, 0])
    with pytest.raises(InvalidValue, match="has 3 ranks, not 4"):
        known.circuit_plans.save(alone(known, ranks=(4,), plan=plan))


def test_an_applied_plan_sets_the_circuits_of_the_switch(known: Registry) -> None:
    known.optical.save(optical_switch(compute_seconds=2.0))
    identity = known.circuit_plans.save(plan_on(known))
    stored = known.circuit_plans.apply(identity[:8])
    assert stored.id == identity
    assert stored.applied_at is not None
    now = known.optical.read("toy")
    assert (now.circuits, now.plan, now.at) == (stored.plan.circuits, identity, stored.applied_at)
    assert (now.max_degree, now.compute_seconds) == (2, 2.0)
    (info,) = known.circuit_plans.list()
    assert info.applied_at == stored.applied_at


def test_a_plan_that_does_not_fit_the_switch_is_not_applied(known: Registry) -> None:
    identity = known.circuit_plans.save(plan_on(known))
    with pytest.raises(UnknownName, match="optical switch of cluster"):
        known.circuit_plans.apply(identity)
    known.optical.save(optical_switch(hosts=HOSTS[::-1]))
    with pytest.raises(InvalidValue, match="other hosts than the switch has now"):
        known.circuit_plans.apply(identity)
    nobody = known.circuit_plans.save(alone(known))
    with pytest.raises(InvalidValue, match="is for no cluster's switch"):
        known.circuit_plans.apply(nobody)
    known.optical.save(optical_switch())
    wide = circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1], max_degree=3, source=[0, 0, 0], target=[1, 2, 3])
    star = known.circuit_plans.save(plan_on(known, plan=wide))
    with pytest.raises(InvalidValue, match="'node00' has 3, max_degree is 2"):
        known.circuit_plans.apply(star)
    assert known.optical.read("toy").circuits == optical_switch().circuits
    assert {info.applied_at for info in known.circuit_plans.list()} == {None}


def test_a_switch_is_stored_with_its_cluster_and_replaces_the_earlier_one(known: Registry) -> None:
    with pytest.raises(UnknownName, match="almanac cluster optical"):
        known.optical.read("toy")
    with pytest.raises(UnknownName, match="closest: toy"):
        known.optical.read("toys")
    with pytest.raises(UnknownName, match="closest: toy"):
        known.optical.save(optical_switch(cluster="toys"))
    assert known.optical.list() == ()
    switch = optical_switch(compute_seconds=0.5)
    stored = known.optical.save(switch)
    assert stored == known.optical.read("toy")
    assert stored.at is not None
    assert replace(stored, at=None) == switch
    other = known.optical.save(optical_switch(hosts=HOSTS[:2], max_edges=1, circuits=()))
    assert known.optical.list() == (other,)
    assert (other.hosts, other.max_edges, other.circuits) == (HOSTS[:2], 1, ())
