"""Simulated runs in the graph: append-only, each joined to its placement, its fabric and what it replayed."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.errors import DatabaseError, InvalidPlacement, InvalidValue, UnknownName
from registry.model import HostOrder, Simulation
from registry.model.intake import Intake
from registry.records.placements.records import PlacementRecord
from registry.records.simulations import SimulationRecord, simulation_id
from registry.registry import Registry
from tests.conftest import empty
from tests.registry.model.test_trace import simulation, trace
from tests.support.busy_cluster import rows_of
from tests.support.fat_tree import at, fat_tree, tree_tables

HOSTS = ("node03", "node03", "node00")


@pytest.fixture
def known(registry: Registry) -> Registry:
    """A registry that knows a fabric with tables, three ranks' profile and trace, and where they sit."""
    profile = trace().profile(name="run", application="cg")
    registry.save(
        Intake(
            cluster="toy",
            observed_at=at(0),
            fabric=fat_tree(),
            tables=tree_tables(),
            profiles=(profile,),
            traces=(trace(),),
        )
    )
    snapshot = registry.fabrics.read("toy")
    registry.placements.save(
        PlacementRecord(
            cluster="toy",
            content=snapshot.id,
            profile=registry.profiles.read("run").id,
            placement=HostOrder(hosts=HOSTS, source="test").on(snapshot.fabric),
        )
    )
    return registry


def run_on(known: Registry, **changed: Any) -> Simulation:
    """A run over the links of the fabric."""
    links = len(known.fabrics.read("toy").fabric.links)
    carried = np.zeros(links)
    carried[[1, 4]] = [60.0, 40.0]
    return simulation(**{"link_bytes": carried, "link_busy_seconds": carried / 50e9, **changed})


def record_on(known: Registry, **changed: Any) -> SimulationRecord:
    """A run of the trace, with everything filled in."""
    snapshot = known.fabrics.read("toy")
    (placement,) = known.placements.history()
    (info,) = known.traces.list()
    record = SimulationRecord(
        placement=placement.id,
        content=snapshot.id,
        tables=snapshot.routing,
        profile=info.profile,
        trace=info.id,
        simulation=run_on(known),
        parameters={"scale": 2.5, "packet_bytes": 4096, "virtual": True, "buffer": "credits"},
        wall_seconds=1.5,
        code_version="1.2",
    )
    return replace(record, **changed)


def same(one: Simulation, other: Simulation) -> bool:
    for field in fields(Simulation):
        left, right = getattr(one, field.name), getattr(other, field.name)
        assert np.array_equal(left, right), field.name
    return True


def test_a_saved_run_is_read_back(known: Registry) -> None:
    record = record_on(known)
    identity = known.simulations.save(record)
    stored = known.simulations.read(identity)
    shown = (
        "placement",
        "content",
        "tables",
        "profile",
        "trace",
        "parameters",
        "wall_seconds",
        "code_version",
    )
    assert {name: getattr(stored, name) for name in shown} == {name: getattr(record, name) for name in shown}
    assert (stored.id, stored.cluster) == (identity, "toy")
    assert same(stored.simulation, record.simulation)


def test_an_interrupted_run_stays_marked(known: Registry) -> None:
    run = run_on(known, complete=False, delivered_at=[], delivered=[], latency_over_time=[])
    identity = known.simulations.save(record_on(known, simulation=run))
    assert same(known.simulations.read(identity).simulation, run)
    assert [info.complete for info in known.simulations.list()] == [False]


def test_a_run_is_joined_to_placement_fabric_and_trace(known: Registry) -> None:
    record = record_on(known)
    known.simulations.save(record)
    _, rows = known.database.query(
        "MATCH (s:Simulation)-[:OF]->(p:Placement), (s)-[:IN]->(x:Content), "
        "(s)-[:REPLAYS]->(t:Trace)-[:OF]->(f:Profile) RETURN p.id, x.id, t.id, f.name"
    )
    assert rows == [(record.placement, record.content, record.trace, "run")]


def test_a_run_of_rounds_is_joined_to_the_profile(known: Registry) -> None:
    identity = known.simulations.save(record_on(known, trace=None))
    _, rows = known.database.query("MATCH (:Simulation)-[:REPLAYS]->(f:Profile) RETURN f.name")
    assert rows == [("run",)]
    assert known.simulations.read(identity).trace is None


def test_the_same_run_again_adds_nothing(known: Registry) -> None:
    record = record_on(known)
    identity = known.simulations.save(record)
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    assert known.simulations.save(replace(record, wall_seconds=9.0)) == identity
    assert known.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_another_provenance_or_result_is_another_run(known: Registry) -> None:
    record = record_on(known)
    run = record.simulation
    variants = [
        record,
        replace(record, placement="p"),
        replace(record, content="toy/0"),
        replace(record, tables=None),
        replace(record, profile="f"),
        replace(record, trace=None),
        replace(record, parameters={}),
        replace(record, code_version="2"),
        replace(record, simulation=replace(run, seed=4)),
        replace(record, simulation=replace(run, mode="flits")),
        replace(record, simulation=replace(run, routing="up-down")),
        replace(record, simulation=replace(run, complete=False)),
        replace(record, simulation=replace(run, link_bytes=run.link_bytes * 2)),
    ]
    assert len({simulation_id(variant) for variant in variants}) == len(variants)


def test_runs_are_listed_the_newest_first(known: Registry) -> None:
    first = known.simulations.save(record_on(known))
    second = known.simulations.save(record_on(known, simulation=run_on(known, seed=8)))
    assert [info.id for info in known.simulations.list()] == [second, first]
    assert [info.id for info in known.simulations.list("toy", limit=1)] == [second]
    assert known.simulations.list("other") == ()
    (placement,) = known.placements.history()
    assert [info.id for info in known.simulations.list(placement=placement.id)] == [second, first]
    assert [info.id for info in known.simulations.list(placement=placement.id, limit=1)] == [second]
    assert [info.id for info in known.simulations.list("toy", placement=placement.id)] == [second, first]
    assert known.simulations.list("other", placement=placement.id) == ()
    assert known.simulations.list(placement="none") == ()


@pytest.mark.parametrize("asked", [{}, {"cluster": "toy"}, {"placement": True}])
def test_the_database_cuts_a_list_of_runs(known: Registry, asked: dict[str, Any]) -> None:
    for seed in range(3):
        known.simulations.save(record_on(known, simulation=run_on(known, seed=seed)))
    if asked.get("placement"):
        asked = {"placement": known.placements.history()[0].id}
    assert rows_of(known, lambda registry: registry.simulations.list(**asked)) == 3
    assert rows_of(known, lambda registry: registry.simulations.list(**asked, limit=2)) == 2
    assert rows_of(known, lambda registry: registry.simulations.list(**asked, limit=9)) == 3


def test_a_row_of_the_list_describes_the_run(known: Registry) -> None:
    record = record_on(known)
    known.simulations.save(record)
    (info,) = known.simulations.list()
    run = record.simulation
    for name in (
        "mode",
        "routing",
        "seed",
        "completion_seconds",
        "delivered_bytes",
        "messages",
        "packet_hops",
    ):
        assert getattr(info, name) == getattr(run, name)
    assert (info.median_latency_seconds, info.max_latency_seconds) == (run.latency(50), run.latency(100))
    assert (info.latency_99_seconds, info.throughput) == (run.latency(99), run.throughput)
    assert info.parameters == record.parameters
    assert (info.snapshot, info.trace) == (record.content, record.trace)


def test_a_run_is_found_by_a_beginning_of_its_id(known: Registry) -> None:
    identity = known.simulations.save(record_on(known))
    assert known.simulations.read(identity[:6]).id == identity
    known.simulations.save(record_on(known, trace=None))
    for name in ("s", "", "x"):
        with pytest.raises(UnknownName):
            known.simulations.read(name)


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"placement": "p0"}, "placement"),
        ({"content": "toy/0"}, "snapshot"),
        ({"profile": "0"}, "profile"),
        ({"trace": "t0"}, "trace"),
    ],
)
def test_what_a_run_names_must_be_there(known: Registry, changed: dict[str, Any], kind: str) -> None:
    with pytest.raises(UnknownName) as caught:
        known.simulations.save(record_on(known, **changed))
    assert caught.value.kind == kind
    assert known.simulations.list() == ()


def test_links_of_another_fabric_are_refused(known: Registry) -> None:
    with pytest.raises(InvalidValue, match="3 link loads for a snapshot of"):
        known.simulations.save(record_on(known, simulation=simulation()))
    assert known.simulations.list() == ()


def test_a_snapshot_of_another_cluster_is_refused(known: Registry) -> None:
    known.save(Intake(cluster="two", observed_at=at(1), fabric=fat_tree()))
    with pytest.raises(InvalidValue, match="is no snapshot of toy"):
        known.simulations.save(record_on(known, content=known.fabrics.read("two").id))


def test_a_profile_of_other_ranks_or_the_trace_of_another_is_refused(known: Registry) -> None:
    larger = replace(trace(), ranks=4)
    shorter = trace().first(3)
    profiles = (larger.profile(name="larger"), shorter.profile(name="shorter"))
    known.save(Intake(profiles=profiles, traces=(larger, shorter)))
    with pytest.raises(InvalidPlacement, match="3 ranks are placed, the profile has 4"):
        known.simulations.save(record_on_first(known, profile=known.profiles.read("larger").id, trace=None))
    other = known.traces.list(known.profiles.read("shorter").id)[0].id
    with pytest.raises(InvalidValue, match="is of another profile"):
        known.simulations.save(record_on_first(known, trace=other))


def record_on_first(known: Registry, **changed: Any) -> SimulationRecord:
    """As `record_on`, where there are several traces: of the one of ``run``."""
    profile = known.profiles.read("run").id
    snapshot = known.fabrics.read("toy")
    (placement,) = known.placements.history()
    record = SimulationRecord(
        placement=placement.id, content=snapshot.id, profile=profile, simulation=run_on(known)
    )
    return replace(record, **changed)


def test_saving_a_run_counts_as_a_write_of_the_cluster(known: Registry) -> None:
    (before,) = known.fabrics.clusters()
    known.simulations.save(record_on(known))
    (after,) = known.fabrics.clusters()
    assert after.version > before.version


def test_a_damaged_run_is_an_error(known: Registry) -> None:
    identity = known.simulations.save(record_on(known))
    known.database.write(lambda t: t.run("MATCH (s:Simulation) SET s.mode = 'letters'"))
    with pytest.raises(DatabaseError, match=f"the stored simulation {identity} is damaged"):
        known.simulations.read(identity)


def test_a_dump_carries_simulated_runs(database: Database, known: Registry, tmp_path: Path) -> None:
    record = record_on(known)
    identity = known.simulations.save(record)
    backup(database, tmp_path / "x")
    empty(database)
    restore(database, tmp_path / "x")
    assert same(known.simulations.read(identity).simulation, record.simulation)
    (info,) = known.simulations.list("toy")
    assert info.id == identity
