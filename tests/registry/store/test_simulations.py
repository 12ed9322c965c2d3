"""Simulated runs, the traces that they replay, and measured runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.pipeline import ingest
from registry.errors import InvalidPlacement, InvalidValue
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store import profiles as traces
from registry.store.measured_runs import measured_run_id
from registry.store.simulations import SimulationRecord, simulation_id
from registry.upkeep.verify import verify
from tests.registry.model.test_profile_trace import simulation, trace
from tests.registry.store.test_store_records import known, run_on, save_trace, simulation_on
from tests.support.busy_cluster import fill, job
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import FullCluster, measured_run, same

__all__ = ["known"]
NAMES = ("placement", "content", "tables", "profile", "trace", "parameters", "wall_seconds", "code_version")


def test_saved_runs_are_read_back_and_joined_to_what_they_are_about(known: Registry) -> None:
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


Fields = dict[str, Any]


def test_another_provenance_or_result_is_another_run() -> None:
    run = simulation()
    names: dict[str, Any] = {
        "placement": "q",
        "content": "toy/1",
        "tables": "t",
        "profile": "g",
        "trace": "t",
    }
    record = SimulationRecord(**names, simulation=run, parameters={"a": 1})
    changes: list[Fields] = [
        *({"placement": "p"}, {"content": "toy/0"}, {"tables": None}, {"profile": "f"}, {"trace": None})
    ]
    changes += [{"parameters": {}}, {"code_version": "2"}]
    others: list[Fields] = [{"seed": 4}, {"mode": "flits"}, {"routing": "up-down"}, {"complete": False}]
    runs = [replace(run, **changed) for changed in (*others, {"link_bytes": run.link_bytes * 2})]
    variants = [record, *(replace(record, **changed) for changed in changes)]
    variants += [replace(record, simulation=other) for other in runs]
    assert len({simulation_id(variant) for variant in variants}) == len(variants)


def test_runs_of_a_placement_are_listed(known: Registry) -> None:
    record = simulation_on(known)
    runs = (run_on(known, seed=seed) for seed in (1, 2))
    first, second = (known.simulations.save(replace(record, simulation=run)) for run in runs)
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
    names = ("mode", "routing", "seed", "completion_seconds", "delivered_bytes", "messages", "packet_hops")
    for name in (*names, "throughput"):
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


TEXT = "t_us,src,dst,bytes,tag\n5,0,1,8,1\n7,2,0,16,2\n7,0,1,4,-3\n"


def test_saved_traces_are_read_back_and_joined_to_their_profile(registry: Registry) -> None:
    identity = save_trace(registry, trace())
    stored, profile = registry.traces.read(identity), registry.profiles.read("run")
    assert (stored.id, stored.profile, stored.recorded_at) == (identity, profile.id, profile.recorded_at)
    assert same(stored.trace, trace())
    _, rows = registry.database.query("MATCH (t:Trace)-[:OF]->(p:Profile) RETURN t.id, t.messages, p.name")
    assert rows == [(identity, 4, "run")]
    none = trace().first(0)
    assert same(registry.traces.read(save_trace(registry, none, "none")).trace, none)


def test_other_times_are_another_trace_of_the_same_profile(registry: Registry) -> None:
    first, second = save_trace(registry, trace()), save_trace(registry, trace().scaled(2.0))
    other = save_trace(registry, trace().first(2), name="short")
    profile = registry.profiles.read("run").id
    found = registry.traces.list(profile)
    assert [info.id for info in found] == [second, first]
    assert [(info.messages, info.span_seconds) for info in found] == [(4, 2.0), (4, 4.0)]
    (info,) = registry.traces.list(registry.profiles.read("short").id)
    assert (info.id, info.ranks, info.messages, info.bytes) == (other, 3, 2, 8.0)
    assert registry.traces.list("none") == ()
    assert len(registry.profiles.list()) == 2


def test_profiles_without_traces_may_be_between_those_with_one(registry: Registry) -> None:
    parts = ((4, "a"), (1, "b"), (2, "c"))
    profiles = tuple(trace().first(count).profile(name=name) for count, name in parts)
    receipt = registry.save(Intake(profiles=profiles, traces=(trace(), None, trace().first(2))))
    assert (len(receipt.ids("profiles")), len(receipt.ids("traces")), receipt.new("traces")) == (3, 2, 2)
    of = {info.profile: info.messages for info in registry.traces.list()}
    assert of == {receipt.ids("profiles")[0]: 4, receipt.ids("profiles")[2]: 2}
    with pytest.raises(InvalidValue, match="1 traces for 0 profiles"):
        Intake(traces=(trace(),))


def test_a_trace_of_too_many_messages_is_refused(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_MESSAGES", 3)
    with pytest.raises(InvalidValue, match="has 4 messages, at most 3 can be stored"):
        save_trace(registry, trace())
    assert registry.profiles.list() == ()


def test_an_ingested_file_gives_a_profile_with_its_trace_once(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "cg.csv"
    for text, new in (
        (TEXT, (1, 1)),
        (f"# another file\n{TEXT}", (0, 0)),
        (TEXT.replace("t_us", "t_ns"), (0, 1)),  # times alone make a new trace of a known profile
    ):
        path.write_text(text, "utf-8")
        receipt = ingest(registry, [path]).receipt
        assert receipt is not None
        assert (receipt.new("profiles"), receipt.new("traces")) == new
    assert ingest(registry, [path]).same_as is not None
    infos = registry.traces.list(registry.profiles.read("cg").id)
    assert registry.traces.read(infos[1].id).trace.bytes.tolist() == [8, 16, 4]
    _, rows = registry.database.query("MATCH (:IngestRun)-[:RECORDED]->(t:Trace) RETURN t.id ORDER BY t.id")
    assert rows == sorted((info.id,) for info in infos)
    assert [run.outcome for run in registry.runs.list()] == ["unchanged", "saved", "unchanged", "saved"]


def test_a_run_is_read_back(registry: Registry) -> None:
    fill(registry, job("1", 2, hosts=("node03", "node00")), job("2", 4, hosts=("node01",)))
    run = measured_run(job="1", exit_code=-15, step_seconds=None, steps=0)
    identity = registry.measured_runs.save(run)
    (found,) = registry.measured_runs.list("toy", "cg")
    assert registry.measured_runs.read(identity) == found
    assert found.id == identity == measured_run_id(found)
    assert [getattr(found, name) for name in run.__slots__] == [getattr(run, name) for name in run.__slots__]
    assert found.other_jobs == ("2",)
    assert (found.rank_order, found.congestion_seconds) == ("", None)
    assert registry.measured_runs.list("toy", "lu") == ()
    assert verify(registry.database).findings == ()


def test_the_load_of_other_jobs_is_stored_if_it_is_known(registry: Registry) -> None:
    fill(registry)
    known = registry.measured_runs.save(measured_run(), 0.25)
    unknown = registry.measured_runs.save(measured_run(wall_seconds=1.0))
    assert registry.measured_runs.read(known).other_load == 0.25
    assert {one.id: one.other_load for one in registry.measured_runs.list()} == {known: 0.25, unknown: None}


def test_other_jobs_are_those_that_ran_meanwhile(registry: Registry) -> None:
    fill(registry, job("1", 2, hosts=("node03",)), job("2", 8, hosts=("node01",)))
    identity = registry.measured_runs.save(measured_run(started_at=at(6), wall_seconds=60))
    assert registry.measured_runs.read(identity).other_jobs == ("1",)
    identity = registry.measured_runs.save(measured_run(started_at=at(6), wall_seconds=121))
    assert registry.measured_runs.read(identity).other_jobs == ("1", "2")


def test_a_placed_run_has_the_estimates_of_its_placement(registry: Registry, full: FullCluster) -> None:
    (found,) = registry.measured_runs.list()
    info = next(one for one in registry.placements.history() if one.id == full.proposed)
    assert info.congestion_seconds is not None
    assert found.placement == full.proposed
    assert found.congestion_seconds == info.congestion_seconds
    assert len(found.rank_order) == 16


@pytest.mark.parametrize("changed", [{"slots": (1,)}, {"wall_seconds": float("nan")}, {"step_seconds": -1.0}])
def test_a_run_has_possible_values(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        replace(measured_run(), **changed)
