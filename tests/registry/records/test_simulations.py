"""Simulated runs: each joined to its placement, its fabric and what it replayed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from registry.errors import InvalidPlacement, InvalidValue
from registry.model.intake import Intake
from registry.records.simulations import SimulationRecord, simulation_id
from registry.registry import Registry
from tests.registry.model.test_trace import simulation, trace
from tests.registry.records.test_records import known, run_on, same, save_trace, simulation_on
from tests.support.fat_tree import at, fat_tree

__all__ = ["known"]
NAMES = ("placement", "content", "tables", "profile", "trace", "parameters", "wall_seconds", "code_version")


def test_saved_runs_are_read_back_and_joined_to_placement_fabric_and_what_they_replayed(
    known: Registry,
) -> None:
    cut = run_on(known, complete=False, delivered_at=[], delivered=[], latency_over_time=[])
    whole, rounds = simulation_on(known), simulation_on(known, trace=None, simulation=cut)
    for record in (whole, rounds):
        identity = known.simulations.save(record)
        stored = known.simulations.read(identity)
        assert [getattr(stored, name) for name in NAMES] == [getattr(record, name) for name in NAMES]
        assert (stored.id, stored.cluster) == (identity, "toy")
        assert same(stored.simulation, record.simulation)
    assert [info.complete for info in known.simulations.list()] == [False, True]
    _, rows = known.database.query(
        "MATCH (s:Simulation)-[:OF]->(p:Placement), (s)-[:IN]->(x:Content), "
        "(s)-[:REPLAYS]->(t:Trace)-[:OF]->(f:Profile) RETURN p.id, x.id, t.id, f.name"
    )
    assert rows == [(whole.placement, whole.content, whole.trace, "run")]
    _, rows = known.database.query("MATCH (:Simulation)-[:REPLAYS]->(f:Profile) RETURN f.name")
    assert rows == [("run",)]


def test_another_provenance_or_result_is_another_run() -> None:
    run = simulation()
    record = SimulationRecord(
        placement="q",
        content="toy/1",
        tables="t",
        profile="g",
        trace="t",
        simulation=run,
        parameters={"a": 1},
    )
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


def test_runs_of_a_placement_are_listed(known: Registry) -> None:
    record = simulation_on(known)
    first, second = (
        known.simulations.save(replace(record, simulation=run_on(known, seed=seed))) for seed in (1, 2)
    )
    for cluster, placement, limit, expected in (
        (None, record.placement, None, [second, first]),
        (None, record.placement, 1, [second]),
        ("toy", record.placement, None, [second, first]),
        ("other", record.placement, None, []),
        (None, "none", None, []),
    ):
        found = known.simulations.list(cluster, placement=placement, limit=limit)
        assert [info.id for info in found] == expected


def test_a_row_of_the_list_describes_the_run(known: Registry) -> None:
    record = simulation_on(known)
    known.simulations.save(record)
    (info,) = known.simulations.list()
    run = record.simulation
    for name in (
        *("mode", "routing", "seed", "completion_seconds"),
        *("delivered_bytes", "messages", "packet_hops", "throughput"),
    ):
        assert getattr(info, name) == getattr(run, name)
    assert (info.median_latency_seconds, info.latency_99_seconds) == (run.latency(50), run.latency(99))
    assert info.max_latency_seconds == run.latency(100)
    assert info.parameters == record.parameters
    assert (info.snapshot, info.trace) == (record.content, record.trace)


def test_what_does_not_fit_together_is_refused(known: Registry) -> None:
    record = simulation_on(known)
    with pytest.raises(InvalidValue, match="3 link loads for a snapshot of"):
        known.simulations.save(replace(record, simulation=simulation()))
    known.save(Intake(cluster="two", observed_at=at(1), fabric=fat_tree()))
    with pytest.raises(InvalidValue, match="is no snapshot of toy"):
        known.simulations.save(replace(record, content=known.fabrics.read("two").id))
    save_trace(known, replace(trace(), ranks=4), "larger")
    with pytest.raises(InvalidPlacement, match="3 ranks are placed, the profile has 4"):
        known.simulations.save(replace(record, profile=known.profiles.read("larger").id, trace=None))
    other = save_trace(known, trace().first(3), "shorter")
    with pytest.raises(InvalidValue, match="is of another profile"):
        known.simulations.save(replace(record, trace=other))
    assert known.simulations.list() == ()
