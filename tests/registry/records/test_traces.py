"""Traces in the graph: each linked to the profile that was counted from it, once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.pipeline import ingest
from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.model import Trace
from registry.model.intake import Intake
from registry.records import traces
from registry.registry import Registry
from tests.conftest import empty
from tests.registry.model.test_trace import trace

TEXT = "t_us,src,dst,bytes,tag\n5,0,1,8,1\n7,2,0,16,2\n7,0,1,4,-3\n"
COLUMNS = ("at", "sender", "receiver", "bytes", "tag")


def save(registry: Registry, saved: Trace, name: str = "run") -> str:
    profile = saved.profile(name=name, application="cg")
    return registry.save(Intake(profiles=(profile,), traces=(saved,))).ids("traces")[0]


def same(one: Trace, other: Trace) -> bool:
    assert one.ranks == other.ranks
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


def test_a_saved_trace_is_read_back(registry: Registry) -> None:
    identity = save(registry, trace())
    stored = registry.traces.read(identity)
    assert (stored.id, stored.profile) == (identity, registry.profiles.read("run").id)
    assert same(stored.trace, trace())
    assert stored.recorded_at == registry.profiles.read("run").recorded_at


def test_a_trace_without_messages_is_read_back(registry: Registry) -> None:
    none = trace().first(0)
    assert same(registry.traces.read(save(registry, none)).trace, none)


def test_a_trace_is_joined_to_its_profile(registry: Registry) -> None:
    identity = save(registry, trace())
    _, rows = registry.database.query("MATCH (t:Trace)-[:OF]->(p:Profile) RETURN t.id, t.messages, p.name")
    assert rows == [(identity, 4, "run")]


def test_the_same_trace_again_adds_nothing(registry: Registry) -> None:
    identity = save(registry, trace())
    before = registry.database.query("MATCH (n) RETURN count(n)")[1]
    receipt = registry.save(
        Intake(profiles=(trace().profile(name="run", application="cg"),), traces=(trace(),))
    )
    assert (receipt.ids("traces"), receipt.new("traces")) == ((identity,), 0)
    assert registry.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_other_times_are_another_trace_of_the_same_profile(registry: Registry) -> None:
    first, second = save(registry, trace()), save(registry, trace().scaled(2.0))
    profile = registry.profiles.read("run").id
    assert [info.id for info in registry.traces.list(profile)] == [second, first]
    assert len(registry.profiles.list()) == 1
    assert [(info.messages, info.span_seconds) for info in registry.traces.list()] == [(4, 2.0), (4, 4.0)]


def test_a_list_has_only_the_traces_of_a_profile(registry: Registry) -> None:
    save(registry, trace())
    other = save(registry, trace().first(2), name="short")
    (info,) = registry.traces.list(registry.profiles.read("short").id)
    assert (info.id, info.ranks, info.messages, info.bytes) == (other, 3, 2, 8.0)
    assert registry.traces.list("none") == ()


def test_a_trace_is_found_by_a_beginning_of_its_id(registry: Registry) -> None:
    identity = save(registry, trace())
    assert registry.traces.read(identity[:6]).id == identity
    save(registry, trace().scaled(2.0))
    for name in ("t", "", "x"):
        with pytest.raises(UnknownName):
            registry.traces.read(name)


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


def test_traces_go_with_their_profiles() -> None:
    with pytest.raises(InvalidValue, match="1 traces for 0 profiles"):
        Intake(traces=(trace(),))


def test_a_trace_of_too_many_messages_is_refused_and_nothing_is_saved(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "MAX_MESSAGES", 3)
    with pytest.raises(InvalidValue, match="has 4 messages, at most 3 can be stored"):
        save(registry, trace())
    assert registry.profiles.list() == ()


def test_a_damaged_trace_is_an_error(registry: Registry) -> None:
    identity = save(registry, trace())
    registry.database.write(lambda t: t.run("MATCH (t:Trace) SET t.blob = $blob", blob=b"FABA"))
    with pytest.raises(DatabaseError, match="damaged"):
        registry.traces.read(identity)
    registry.database.write(lambda t: t.run("MATCH (t:Trace) SET t.ranks = 1, t.blob = $blob", blob=_blob()))
    with pytest.raises(DatabaseError, match=f"the stored trace {identity} is damaged"):
        registry.traces.read(identity)


def _blob() -> bytes:
    from registry.database import codec

    return codec.pack({name: getattr(trace(), name) for name in COLUMNS})


def test_an_ingested_file_gives_a_profile_with_its_trace_once(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "cg.csv"
    path.write_text(TEXT, "utf-8")
    receipt = ingest(registry, [path]).receipt
    assert receipt is not None
    assert (receipt.new("profiles"), receipt.new("traces")) == (1, 1)
    (info,) = registry.traces.list(registry.profiles.read("cg").id)
    assert registry.traces.read(info.id).trace.bytes.tolist() == [8, 16, 4]
    _, rows = registry.database.query("MATCH (:IngestRun)-[:RECORDED]->(t:Trace) RETURN t.id")
    assert rows == [(info.id,)]
    again = ingest(registry, [path])
    assert again.same_as is not None
    path.write_text(f"# another file\n{TEXT}", "utf-8")
    changed = ingest(registry, [path]).receipt
    assert changed is not None
    assert (changed.new("profiles"), changed.new("traces")) == (0, 0)


def test_times_alone_make_a_new_run_of_a_known_profile(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "cg.csv"
    path.write_text(TEXT, "utf-8")
    ingest(registry, [path])
    path.write_text(TEXT.replace("t_us", "t_ns"), "utf-8")
    receipt = ingest(registry, [path]).receipt
    assert receipt is not None
    assert (receipt.new("profiles"), receipt.new("traces")) == (0, 1)
    assert [run.outcome for run in registry.runs.list()] == ["saved", "saved"]


def test_a_dump_carries_traces(database: Database, registry: Registry, tmp_path: Path) -> None:
    identity = save(registry, replace(trace(), tag=np.arange(4, dtype=np.int32)))
    backup(database, tmp_path / "x")
    empty(database)
    restore(database, tmp_path / "x")
    assert same(registry.traces.read(identity).trace, replace(trace(), tag=np.arange(4, dtype=np.int32)))
