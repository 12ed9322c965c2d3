"""Proposed configurations and optical switches in the graph."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.model import CircuitPlan, Job, Profile
from registry.model.circuit_plan import CircuitRoutes
from registry.model.intake import Intake
from registry.records.circuit_plans import CircuitPlanRecord, circuit_plan_id
from registry.registry import Registry
from tests.conftest import empty
from tests.registry.model.test_circuit_plan import (
    circuit_plan,
    circuit_routes,
    optical_switch,
    reconfiguration_record,
)
from tests.support.busy_cluster import rows_of
from tests.support.fat_tree import at, fat_tree

HOSTS = ("node00", "node01", "node02", "node03")


@pytest.fixture
def known(registry: Registry) -> Registry:
    """A cluster of four hosts with two jobs, and a profile of three ranks that both run."""
    profile = Profile.from_edges([0, 1], [1, 2], [30.0, 10.0], ranks=3, name="run", application="cg")
    jobs = tuple(Job(id=job, hosts=HOSTS, slots=(1, 1, 1, 1), state="RUNNING") for job in ("1", "2"))
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=(profile,), jobs=jobs))
    return registry


def record_of(known: Registry, **changed: Any) -> CircuitPlanRecord:
    """A plan for both jobs on the cluster's switch."""
    profile = known.profiles.read("run").id
    record = reconfiguration_record(
        cluster="toy",
        hosts=HOSTS,
        profiles=(profile, profile),
        ranks=(3, 3),
        jobs=("1", "2"),
        plan=circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1]),
    )
    return replace(record, **changed)


def alone(known: Registry, **changed: Any) -> CircuitPlanRecord:
    """A plan for the profile, of no cluster."""
    return replace(reconfiguration_record(profiles=(known.profiles.read("run").id,)), **changed)


def same(one: CircuitPlan | CircuitRoutes, other: CircuitPlan | CircuitRoutes) -> bool:
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, CircuitRoutes):
            assert same(left, right)
            continue
        both = (np.asarray(left), np.asarray(right))
        assert np.array_equal(*both, equal_nan=both[0].dtype.kind == "f"), field.name
    return True


@pytest.mark.parametrize("made", [record_of, alone], ids=["of jobs", "of a profile"])
def test_a_saved_plan_is_read_back(known: Registry, made: Any) -> None:
    record = made(known)
    identity = known.circuit_plans.save(record)
    stored = known.circuit_plans.read(identity)
    shown = ("cluster", "hosts", "profiles", "ranks", "jobs", "parameters", "wall_seconds", "code_version")
    assert {name: getattr(stored, name) for name in shown} == {name: getattr(record, name) for name in shown}
    assert (stored.id, stored.applied_at) == (identity, None)
    assert same(stored.plan, record.plan)


def test_a_plan_without_ways_has_none(known: Registry) -> None:
    """As those that were saved before ways were kept."""
    identity = known.circuit_plans.save(alone(known, plan=circuit_plan(routes=None)))
    assert known.circuit_plans.read(identity).plan.routes is None


def test_what_is_unknown_or_without_limit_stays_so(known: Registry) -> None:
    plan = circuit_plan(
        present_source=[],
        present_target=[],
        present_throughput=math.nan,
        gain=math.nan,
        reconfiguration_seconds=math.nan,
        break_even_seconds=math.nan,
        throughput=math.inf,
        compute_throughput=math.inf,
        communication_throughput=math.inf,
        upper_bound=math.inf,
        trail_throughput=[math.inf] * 3,
        complete=False,
    )
    identity = known.circuit_plans.save(alone(known, plan=plan))
    assert same(known.circuit_plans.read(identity).plan, plan)
    (info,) = known.circuit_plans.list()
    assert (info.gain, info.throughput, info.upper_bound, info.removed, info.inserted) == (None,) * 5
    assert (info.circuits, info.complete, info.cluster) == (3, False, None)


def test_a_plan_is_joined_to_cluster_profiles_and_jobs(known: Registry) -> None:
    known.circuit_plans.save(record_of(known))
    _, rows = known.database.query(
        "MATCH (c:Cluster)<-[:OF]-(r:Reconfiguration)-[:FOR]->(f:Profile) RETURN c.id, f.name"
    )
    assert rows == [("toy", "run")]  # once, though two jobs run it
    _, rows = known.database.query("MATCH (:Reconfiguration)-[:FOR]->(j:Job) RETURN j.id ORDER BY j.id")
    assert rows == [("toy/1",), ("toy/2",)]


def test_the_same_plan_again_adds_nothing(known: Registry) -> None:
    record = record_of(known)
    identity = known.circuit_plans.save(record)
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    assert known.circuit_plans.save(replace(record, wall_seconds=9.0)) == identity
    assert known.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_another_provenance_or_result_is_another_plan() -> None:
    record = reconfiguration_record(cluster="toy", jobs=("1",))
    variants = [
        record,
        replace(record, cluster="two"),
        replace(record, jobs=("2",)),
        replace(record, profiles=("g",)),
        replace(record, hosts=HOSTS),
        replace(record, parameters={}),
        replace(record, code_version="2"),
        replace(record, plan=circuit_plan(seed=8)),
        replace(record, plan=circuit_plan(complete=False)),
        replace(record, plan=circuit_plan(link_load=[40.0, 10.0, 1.0])),
        replace(record, plan=circuit_plan(gain=math.nan)),
        replace(record, plan=circuit_plan(routes=None)),
        replace(record, plan=circuit_plan(routes=circuit_routes(circuit=[0, 0, 2]))),
    ]
    assert len({circuit_plan_id(variant) for variant in variants}) == len(variants)
    assert circuit_plan_id(replace(record, wall_seconds=3.0)) == circuit_plan_id(record)


def test_plans_are_listed_the_newest_first(known: Registry) -> None:
    first = known.circuit_plans.save(record_of(known))
    second = known.circuit_plans.save(alone(known))
    assert [info.id for info in known.circuit_plans.list()] == [second, first]
    assert [info.id for info in known.circuit_plans.list("toy")] == [first]
    assert [info.id for info in known.circuit_plans.list(limit=1)] == [second]
    assert known.circuit_plans.list("other") == ()
    (info,) = known.circuit_plans.list("toy")
    later = known.circuit_plans.list(since=info.recorded_at)
    assert first not in {one.id for one in later}


@pytest.mark.parametrize("cluster", [None, "toy"])
def test_the_database_cuts_a_list_of_plans(known: Registry, cluster: str | None) -> None:
    plans = [circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1], seed=seed) for seed in range(3)]
    saved = [known.circuit_plans.save(record_of(known, plan=plan)) for plan in plans]
    assert rows_of(known, lambda registry: registry.circuit_plans.list(cluster)) == 3
    assert rows_of(known, lambda registry: registry.circuit_plans.list(cluster, limit=2)) == 2
    newest = [info.id for info in known.circuit_plans.list(cluster, limit=2)]
    assert newest == saved[:0:-1]


def test_a_row_of_the_list_describes_the_plan(known: Registry) -> None:
    record = record_of(known)
    known.circuit_plans.save(record)
    (info,) = known.circuit_plans.list()
    plan = record.plan
    for name in ("nodes", "max_degree", "max_edges", "throughput", "gain", "break_even_seconds", "seed"):
        assert getattr(info, name) == getattr(plan, name)
    assert (info.circuits, info.removed, info.inserted) == (3, 1, 1)
    assert (info.jobs, info.profile_names, info.applications) == (("1", "2"), ("run",), ("cg",))
    assert info.parameters == record.parameters
    assert (info.method, info.complete, info.applied_at) == ("best", True, None)


def test_a_plan_is_found_by_a_beginning_of_its_id(known: Registry) -> None:
    identity = known.circuit_plans.save(record_of(known))
    assert known.circuit_plans.read(identity[:6]).id == identity
    known.circuit_plans.save(alone(known))
    for name in ("r", "", "x"):
        with pytest.raises(UnknownName) as caught:
            known.circuit_plans.read(name)
        assert caught.value.kind == "circuit plan"


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"cluster": "toys"}, "cluster"),
        ({"profiles": ("f", "f")}, "profile"),
        ({"jobs": ("1", "3")}, "job"),
    ],
)
def test_what_a_plan_names_must_be_there(known: Registry, changed: dict[str, Any], kind: str) -> None:
    with pytest.raises(UnknownName) as caught:
        known.circuit_plans.save(record_of(known, **changed))
    assert caught.value.kind == kind
    assert known.circuit_plans.list() == ()
    assert known.database.query("MATCH (c:Cluster) RETURN c.id")[1] == [("toy",)]


def test_a_profile_of_other_ranks_is_refused(known: Registry) -> None:
    profile = known.profiles.read("run").id
    wrong = reconfiguration_record(
        profiles=(profile,), ranks=(4,), plan=circuit_plan(node_of_vertex=[0, 0, 0, 0])
    )
    with pytest.raises(InvalidValue, match="has 3 ranks, not 4"):
        known.circuit_plans.save(wrong)


def test_saving_a_plan_counts_as_a_write_of_the_cluster(known: Registry) -> None:
    (before,) = known.fabrics.clusters()
    known.circuit_plans.save(record_of(known))
    (after,) = known.fabrics.clusters()
    assert after.version > before.version


def test_a_damaged_plan_is_an_error(known: Registry) -> None:
    identity = known.circuit_plans.save(record_of(known))
    known.database.write(lambda t: t.run("MATCH (r:Reconfiguration) SET r.method = 'guess'"))
    with pytest.raises(DatabaseError, match=f"the stored circuit plan {identity} is damaged"):
        known.circuit_plans.read(identity)


def test_an_applied_plan_sets_the_circuits_of_the_switch(known: Registry) -> None:
    known.optical.save(optical_switch(compute_seconds=2.0))
    identity = known.circuit_plans.save(record_of(known))
    stored = known.circuit_plans.apply(identity[:8])
    assert stored.id == identity
    assert stored.applied_at is not None
    now = known.optical.read("toy")
    assert (now.circuits, now.plan, now.at) == (stored.plan.circuits, identity, stored.applied_at)
    assert (now.max_degree, now.compute_seconds) == (2, 2.0)
    (info,) = known.circuit_plans.list()
    assert info.applied_at == stored.applied_at


def test_a_plan_that_does_not_fit_the_switch_is_not_applied(known: Registry) -> None:
    identity = known.circuit_plans.save(record_of(known))
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
    star = known.circuit_plans.save(record_of(known, plan=wide))
    with pytest.raises(InvalidValue, match="'node00' has 3, max_degree is 2"):
        known.circuit_plans.apply(star)
    assert known.optical.read("toy").circuits == optical_switch().circuits
    assert {info.applied_at for info in known.circuit_plans.list()} == {None}


def test_a_dump_carries_plans_and_switches(database: Database, known: Registry, tmp_path: Path) -> None:
    known.optical.save(optical_switch())
    record = record_of(known)
    identity = known.circuit_plans.save(record)
    switch = known.optical.read("toy")
    backup(database, tmp_path / "x")
    empty(database)
    restore(database, tmp_path / "x")
    assert same(known.circuit_plans.read(identity).plan, record.plan)
    assert known.optical.read("toy") == switch
