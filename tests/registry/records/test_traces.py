"""Traces in the graph: each linked to the profile that was counted from it, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.pipeline import ingest
from registry.errors import InvalidValue
from registry.model.intake import Intake
from registry.records import traces
from registry.registry import Registry
from tests.registry.model.test_trace import trace
from tests.registry.records.test_records import same, save_trace

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
    profiles = (
        trace().profile(name="a"),
        trace().first(1).profile(name="b"),
        trace().first(2).profile(name="c"),
    )
    receipt = registry.save(Intake(profiles=profiles, traces=(trace(), None, trace().first(2))))
    assert (len(receipt.ids("profiles")), len(receipt.ids("traces")), receipt.new("traces")) == (3, 2, 2)
    of = {info.profile: info.messages for info in registry.traces.list()}
    assert of == {receipt.ids("profiles")[0]: 4, receipt.ids("profiles")[2]: 2}
    with pytest.raises(InvalidValue, match="1 traces for 0 profiles"):
        Intake(traces=(trace(),))


def test_a_trace_of_too_many_messages_is_refused_and_nothing_is_saved(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
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
