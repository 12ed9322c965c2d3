"""A cluster with data of every label, for tests that delete, move or compare all of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from ingest.formats.hwloc_xml import read_layout
from registry.database.driver import Database
from registry.model import CounterSweep, IntendedWiring
from registry.model.intake import Intake
from registry.model.job import MeasuredRun
from registry.registry import Registry
from registry.store.counters import Retention, roll_up
from registry.store.placement_rows import PROPOSED
from registry.store.simulations import SimulationRecord
from tests.registry.model.test_circuit_plan import optical_switch, reconfiguration_record
from tests.registry.model.test_profile_trace import simulation, trace
from tests.support.busy_cluster import advise, fill, job, place
from tests.support.fat_tree import LEAF_GUID, at, fat_tree
from tests.support.inputs import file, read

HOSTS = ("node00", "node01", "node02", "node03")
DAY = 24 * 60
"""Minutes of a day, for `at`."""


@dataclass(frozen=True)
class FullCluster:
    placement: str
    proposed: str
    traced: str
    simulation: str
    plan: str
    measured: str


def fill_all(registry: Registry, cluster: str = "toy") -> FullCluster:
    """Save data of every label: tables from minute 0, job 1, profiles ``ring`` and ``traced``."""
    fill(registry, job("1", 2, hosts=("node03", "node00")), cluster=cluster)
    _ingest_other_kinds(registry, cluster)
    snapshot = registry.fabrics.read(cluster)
    placement = place(registry, "1", cluster=cluster, when=at(5))
    proposed = place(registry, "1", cluster=cluster, when=at(5), role=PROPOSED, ranks=(0, 1, 1))
    advise(registry, "1", placement, proposed, cluster=cluster)
    vertices = len(snapshot.fabric)
    registry.drawings.save(snapshot.id, "free-1", np.zeros(vertices), np.zeros(vertices), np.zeros(vertices))
    (info,) = registry.traces.list()
    traced = place(registry, "1", cluster=cluster, profile="traced", when=at(5))
    zeros = np.zeros(len(snapshot.fabric.links))
    run: dict[str, Any] = {"simulation": simulation(link_bytes=zeros, link_busy_seconds=zeros)}
    run |= {"content": snapshot.id, "tables": snapshot.routing, "profile": info.profile, "trace": info.id}
    simulated = registry.simulations.save(SimulationRecord(placement=traced, **run))
    registry.optical.save(optical_switch(cluster=cluster, hosts=HOSTS))
    ring = registry.profiles.read("ring").id
    plan = reconfiguration_record(cluster=cluster, hosts=HOSTS, profiles=(ring,), jobs=("1",))
    identity = registry.circuit_plans.save(plan)
    registry.circuit_plans.apply(identity)
    run_of = measured_run(cluster=cluster, profile=ring, placement=proposed, job="2")
    measured = registry.measured_runs.save(run_of)
    return FullCluster(placement, proposed, traced, simulated, identity, measured)


def measured_run(**changed: Any) -> MeasuredRun:
    """Return a measured run of three ranks on the hosts of job 1, from minute 5 on."""
    fields: dict[str, Any] = {
        "cluster": "toy",
        "application": "cg",
        "program": "0123456789abcdef",
        "ranks": 3,
    }
    fields |= {"hosts": ("node03", "node00"), "slots": (2, 2), "launcher": "Open MPI 4", "started_at": at(5)}
    fields |= {"wall_seconds": 60.5, "step_seconds": 0.25, "steps": 100}
    return MeasuredRun(**fields | changed)


def sweep(minute: float) -> CounterSweep:
    """Return a sweep of one port that sends 1000 bytes a minute."""
    return CounterSweep.of(at(minute), {(LEAF_GUID, 0, 1): {"xmit_bytes": (round(minute * 1000), False)}})


def _ingest_other_kinds(registry: Registry, cluster: str) -> None:
    """Save a second observation with its run, a trace, a host layout, intended wiring, and counters."""
    recorded = trace()
    profiles = (recorded.profile(name="traced", application="cg"),)
    run: dict[str, Any] = {"files": ("scan",), "source": "test", "key": f"{cluster} scan"}
    seen = Intake(cluster=cluster, observed_at=at(5), fabric=fat_tree(without=(0,)), **run)
    registry.save(replace(seen, profiles=profiles, traces=(recorded,)))
    layout = replace(read_layout(file(read("hwloc/four_cores.xml"))), name="node00")
    ends = {"source": "leaf0", "source_port": "Port 1", "target": "node00", "target_port": "mlx5_0"}
    columns: dict[str, Any] = {name: (text,) for name, text in ends.items()}
    plan = IntendedWiring(**columns, kind=("Data",), declared_at=at(6))
    registry.save(Intake(cluster=cluster, observed_at=at(6), layouts=(layout,), intended=plan))
    registry.save(Intake(cluster=cluster, counters=tuple(map(sweep, (10, 20, 30, 40 + 2 * DAY)))))
    a_day = replace(Retention(), full=timedelta(days=1))
    registry.database.write(lambda transaction: roll_up(transaction, cluster, at(40 + 2 * DAY), a_day))


def same(one: Any, other: Any) -> bool:
    """Check that two data types hold the same, arrays and nested types compared by value."""
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if is_dataclass(left):
            assert same(left, right)
            continue
        both = (np.asarray(left), np.asarray(right))
        assert np.array_equal(*both, equal_nan=both[0].dtype.kind == "f"), field.name
    return True


def counts(database: Database) -> tuple[int, int]:
    nodes = database.query("MATCH (n) RETURN count(n)")[1][0][0]
    return nodes, database.query("MATCH ()-[r]->() RETURN count(r)")[1][0][0]


def node_counts(database: Database) -> dict[str, int]:
    rows = database.query("MATCH (n) RETURN labels(n)[0] AS label, count(n) AS count")[1]
    return {label: count for label, count in rows if label != "Schema"}
