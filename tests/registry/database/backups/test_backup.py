"""Backup and restore: the same graph on the other server, and no half of one anywhere."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import registry.database.backups.backup
import registry.database.backups.restore
from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.driver import Database, Transaction
from registry.database.schema import check_version, is_half_loaded, mark_loading
from registry.errors import AlmanacError, DatabaseError, InputError
from registry.fabrics.observations import lock_cluster
from registry.progress import silent
from tests.conftest import empty

MOMENT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
FOREVER = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
DEVICES = [f"c:device{i:03}" for i in range(120)]

NODES = """
CREATE (c:Cluster {id: 'c', name: 'ü "x" \\\\ $bytes'})
CREATE (x:Content {id: 'c:1', blob: $blob, empty: $none, hosts: 3})-[:OF]->(c)
CREATE (o:Observation {id: 'o', at: $at, seq: 0})-[:SAW]->(x)
CREATE (a:Allocation {id: 'a', hosts: ['n1', 'n2'], slots: [1, 2], weights: [0.5, 1.0],
                      flags: [true, false], moments: [$at, $forever], nothing: []})
CREATE (:Job {id: 'j', big: $big, negative: -1, ratio: 0.1, whole: 2.0, yes: true, text: ''})
       -[:RAN_ON {seq: 1}]->(a)
CREATE (:IngestRun {id: 'r', at: $at})-[:RECORDED]->(o)
CREATE (p:Placement {id: 'p1', cluster: 'c', role: 'present'})-[:IN]->(x)
CREATE (q:Placement {id: 'p2', cluster: 'c', role: 'proposed'})-[:IN]->(x)
CREATE (v:Advice {id: 'c/k/1', cluster: 'c', job: 'k', at: $at, gain: 2.0})-[:OF]->(p)
CREATE (v)-[:PROPOSES]->(q)
CREATE (:Job {id: 'c/k', job: 'k'})-[:HAS_ADVICE]->(v)
CREATE (:Drawing {id: 'c:1/free-1', rule: 'free-1', blob: $blob})-[:OF]->(x)
CREATE (s:Simulation {id: 's', cluster: 'c', seed: 1, complete: false, blob: $blob})-[:OF]->(p)
CREATE (s)-[:IN]->(x)
CREATE (s)-[:REPLAYS]->(:Trace {id: 't', span_seconds: 0.5, blob: $blob})-[:OF]->(:Profile {id: 'f1'})
CREATE (n:Reconfiguration {id: 'n', cluster: 'c', gain: 2.0, blob: $blob})-[:OF]->(c)
CREATE (n)-[:FOR]->(:Job {id: 'c/m', job: 'm'})
CREATE (n)-[:FOR]->(:Profile {id: 'f2'})
CREATE (m:MeasuredRun {id: 'm', cluster: 'c', started_at: $at, hosts: ['n1'], wall_seconds: 0.5})-[:OF]->(c)
CREATE (m)-[:USED]->(p)
CREATE (m)-[:RAN]->(:Profile {id: 'f3'})
"""
LINKS = """
UNWIND range(0, size($source) - 1) AS i
MATCH (a:Device {id: $source[i]})
WITH a, i
MATCH (b:Device {id: $target[i]})
CREATE (a)-[:LINK {key: $key[i], capacity: 1e9, src_port: i, valid_from: $begin, valid_to: $end}]->(b)
"""
SENDS = """
CREATE (p:Profile {id: 'p', names: ['ring']})
CREATE (p)-[:HAS_RANK]->(a:Rank {id: 'p:0', index: 0})
CREATE (p)-[:HAS_RANK]->(b:Rank {id: 'p:1', index: 1})
CREATE (a)-[:SENDS {bytes: 7}]->(b)
CREATE (b)-[:SENDS {bytes: 1, messages: 2}]->(a)
CREATE (a)-[:SENDS {bytes: 8}]->(b)
"""


def fill(database: Database) -> None:
    """All kinds of values, parallel relationships, more nodes than the first page takes."""

    def work(transaction: Transaction) -> None:
        transaction.run(
            NODES, blob=bytes(range(256)) * 99, none=b"", at=MOMENT, forever=FOREVER, big=2**62 + 1
        )
        transaction.run("UNWIND $ids AS id CREATE (:Device {id: id, cluster: 'c'})", ids=DEVICES)
        source, target = DEVICES[:-1] * 2, DEVICES[1:] * 2
        columns = {"source": source, "target": target, "key": [f"k{i}" for i in range(len(source))]}
        transaction.run_columns(LINKS, columns, begin=MOMENT, end=FOREVER)
        transaction.run(SENDS)

    database.write(work)


def graph(database: Database) -> tuple[list[Any], list[Any]]:
    """All of a database by other statements than the dump's, in an order of its own."""
    _, nodes = database.query("MATCH (n) RETURN labels(n), properties(n)")
    _, edges = database.query(
        "MATCH (a)-[r]->(b) RETURN labels(a), a.id, type(r), properties(r), labels(b), b.id"
    )
    return sorted(nodes, key=repr_sorted), sorted(edges, key=repr_sorted)


def repr_sorted(row: tuple[Any, ...]) -> str:
    return repr([sorted(item.items()) if isinstance(item, dict) else item for item in row])


@pytest.fixture
def other(request: pytest.FixtureRequest, database: Database) -> Database:
    """The server that `database` is not, empty."""
    kind = "embedded" if database.kind == "neo4j" else "neo4j"
    found = request.getfixturevalue(f"{kind}_database")
    assert isinstance(found, Database)
    empty(found)
    return found


@pytest.fixture
def dumped(embedded_database: Database, tmp_path: Path) -> Path:
    empty(embedded_database)
    fill(embedded_database)
    backup(embedded_database, tmp_path / "x.dump")
    return tmp_path / "x.dump"


def test_a_registry_moves_to_the_other_server_unchanged(
    database: Database, other: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.database.backups.backup, "PAGE_ROWS", 50)
    fill(database)
    before = graph(database)
    shown = backup(database, tmp_path / "there")
    assert (shown.nodes, shown.relationships) == (
        len(before[0]) - 1,
        len(before[1]),
    )  # without the Schema
    assert restore(other, tmp_path / "there") == shown
    assert graph(other) == before
    check_version(other)
    backup(other, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "there").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "there"]


def test_kinds_of_values_survive(database: Database, other: Database, tmp_path: Path) -> None:
    fill(database)
    backup(database, tmp_path / "x")
    restore(other, tmp_path / "x")
    _, [(job, allocation)] = other.query("MATCH (j:Job)-[:RAN_ON]->(a) RETURN j, a")
    assert (job["big"], job["whole"], type(job["whole"]), job["yes"]) == (2**62 + 1, 2.0, float, True)
    assert allocation["moments"] == [MOMENT, FOREVER]
    assert allocation["nothing"] == []
    within = "MATCH ()-[l:LINK]->() WHERE l.valid_from <= $at AND l.valid_to > $at RETURN count(l)"
    assert other.query(within, at=MOMENT)[1] == [(238,)]
    assert other.query(within, at=MOMENT - timedelta(microseconds=1))[1] == [(0,)]


def test_an_empty_registry_is_dumped_and_loaded(database: Database, other: Database, tmp_path: Path) -> None:
    assert backup(database, tmp_path / "x").nodes == 0
    assert restore(other, tmp_path / "x").nodes == 0
    check_version(other)


def test_a_database_with_content_is_not_loaded_into(database: Database, dumped: Path) -> None:
    empty(database)
    database.write(lambda t: t.run("CREATE (:Cluster {id: 'mine'})"))
    with pytest.raises(DatabaseError, match="not empty"):
        restore(database, dumped)
    assert database.query("MATCH (c:Cluster) RETURN c.id")[1] == [("mine",)]


def test_an_interrupted_load_is_noticed_and_started_again(
    database: Database, dumped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(database)
    monkeypatch.setattr(registry.database.backups.backup, "PAGE_ROWS", 20)

    def break_off(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if done > 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(database, dumped, break_off)
    assert is_half_loaded(database)
    with pytest.raises(DatabaseError, match=r"interrupted.*almanac db restore"):
        check_version(database)
    with pytest.raises(DatabaseError, match="interrupted"):
        backup(database, dumped.with_name("half"))
    shown = restore(database, dumped, silent)
    check_version(database)
    assert database.query("MATCH (n) WHERE NOT n:Schema RETURN count(n)")[1] == [(shown.nodes,)]


def test_replacing_saves_what_was_there(database: Database, dumped: Path) -> None:
    empty(database)
    database.write(lambda t: t.run("CREATE (:Cluster {id: 'mine'})"))
    shown = restore(database, dumped, replace=True)
    assert database.query("MATCH (n) WHERE NOT n:Schema RETURN count(n)")[1] == [(shown.nodes,)]
    kept = dumped.with_name("x.dump.previous")
    with pytest.raises(InputError, match="would be overwritten"):
        restore(database, dumped, replace=True)
    kept.rename(dumped.with_name("back"))
    restore(database, dumped.with_name("back"), replace=True)
    assert database.query("MATCH (n) WHERE NOT n:Schema RETURN n.id")[1] == [("mine",)]


def test_a_replacement_that_cannot_be_saved_changes_nothing(database: Database, dumped: Path) -> None:
    empty(database)
    database.write(lambda t: t.run("CREATE (:Cluster {id: 'mine'}), (:Stranger)"))
    with pytest.raises(DatabaseError, match="does not know"):
        restore(database, dumped, replace=True)
    check_version(database)
    assert database.query("MATCH (c:Cluster) RETURN c.id")[1] == [("mine",)]
    empty(database)


def test_an_interrupted_replacement_leaves_a_mark_and_the_saved_content(
    database: Database, dumped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(database)
    database.write(lambda t: t.run("CREATE (:Cluster {id: 'mine'})"))

    def break_off(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if phase.startswith("emptying"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(database, dumped, break_off, replace=True)
    with pytest.raises(DatabaseError, match="interrupted"):
        check_version(database)
    with pytest.raises(DatabaseError, match="interrupted"):
        database.write(lambda t: lock_cluster(t, "mine"))
    restore(database, dumped.with_name("x.dump.previous"))
    assert database.query("MATCH (n) WHERE NOT n:Schema RETURN n.id")[1] == [("mine",)]


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_a_flipped_byte_is_noticed(embedded_database: Database, dumped: Path, at: float) -> None:
    empty(embedded_database)
    data = bytearray(dumped.read_bytes())
    data[int(len(data) * at)] ^= 1
    dumped.write_bytes(data)
    assert_refused(embedded_database, dumped)


def test_a_mark_without_a_load_is_removed_by_the_next_load(database: Database, dumped: Path) -> None:
    empty(database)
    mark_loading(database, True)
    restore(database, dumped)
    check_version(database)


def rewritten(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(change(lines))))


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1],
        lambda lines: lines[:20],
        lambda lines: lines[:1],
        lambda lines: lines[:30] + lines[31:],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [line.replace(b'"hosts":3', b'"hosts":4') for line in lines],
        lambda lines: lines[1:],
        lambda lines: [],
    ],
    ids=["no end", "cut", "header only", "a line less", "a line more", "changed", "no header", "empty"],
)
def test_a_damaged_dump_is_refused_before_anything_is_written(
    embedded_database: Database, dumped: Path, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    empty(embedded_database)
    rewritten(dumped, change)
    assert_refused(embedded_database, dumped)


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", *(gzip.compress(text, mtime=0) for text in (b"hello\n" * 9, bytes(range(256)), b"[]\n"))],
    ids=["empty", "plain", "words", "bytes", "list"],  # packed data would name the test, by the second
)
def test_what_is_no_dump_is_refused(embedded_database: Database, tmp_path: Path, data: bytes) -> None:
    empty(embedded_database)
    (tmp_path / "x").write_bytes(data)
    assert_refused(embedded_database, tmp_path / "x")


def test_a_file_that_was_cut_is_refused(embedded_database: Database, dumped: Path) -> None:
    empty(embedded_database)
    dumped.write_bytes(dumped.read_bytes()[:-100])
    assert_refused(embedded_database, dumped)


def test_a_missing_file_is_an_error(embedded_database: Database, tmp_path: Path) -> None:
    empty(embedded_database)
    assert "No such file" in assert_refused(embedded_database, tmp_path / "none").reason


@pytest.mark.parametrize(("key", "value", "reason"), [("version", 2, "version 2"), ("schema", 99, "schema")])
def test_a_dump_of_another_version_is_refused(
    embedded_database: Database, tmp_path: Path, key: str, value: int, reason: str
) -> None:
    empty(embedded_database)
    backup(embedded_database, tmp_path / "x")

    def other_version(lines: list[bytes]) -> list[bytes]:
        header = {**json.loads(lines[0]), key: value}
        return resealed([json.dumps(header).encode() + b"\n", *lines[1:]])

    rewritten(tmp_path / "x", other_version)
    assert reason in assert_refused(embedded_database, tmp_path / "x").reason


def resealed(lines: list[bytes]) -> list[bytes]:
    """The lines with an end that fits them, as a forger would write it."""
    digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    end = {"end": {"lines": len(lines) - 1, "sha256": digest}}
    return [*lines[:-1], json.dumps(end, separators=(",", ":")).encode() + b"\n"]


def test_names_in_a_forged_dump_never_become_cypher(embedded_database: Database, dumped: Path) -> None:
    empty(embedded_database)

    def forge(lines: list[bytes]) -> list[bytes]:
        evil = b'{"id":"x","a: 1}) CREATE (:Evil {b":1}\n'
        return resealed([*lines[:2], evil, *lines[2:]])

    rewritten(dumped, forge)
    with pytest.raises(InputError) as caught:
        restore(embedded_database, dumped)
    assert caught.value.line == 3
    assert embedded_database.query("MATCH (e:Evil) RETURN e")[1] == []


@pytest.mark.parametrize(
    "statement", ["CREATE (:Stranger)", "CREATE (:Cluster {id: 'a'})-[:OF]->(:Cluster {id: 'b'})"]
)
def test_what_the_schema_does_not_know_is_not_left_out(
    database: Database, tmp_path: Path, statement: str
) -> None:
    empty(database)
    database.write(lambda transaction: transaction.run(statement))
    with pytest.raises(DatabaseError, match="does not know"):
        backup(database, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    empty(database)


def test_writes_during_every_attempt_are_noticed(database: Database, tmp_path: Path) -> None:
    fill(database)
    (tmp_path / "x").write_text("an older backup", "utf-8")
    calls = itertools.count()

    def intrude(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        database.write(lambda t: t.run("CREATE (:Cluster {id: $id})", id=f"new{next(calls)}"))

    with pytest.raises(DatabaseError, match="in every attempt"):
        backup(database, tmp_path / "x", intrude)
    assert next(calls) >= 5
    assert (tmp_path / "x").read_text("utf-8") == "an older backup"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert database.query("MATCH (s:Schema) RETURN s.paused_until")[1] == [(None,)]


@pytest.mark.parametrize("mode", [None, 0o666, 0o444])
def test_only_the_owner_can_read_a_backup(
    embedded_database: Database, tmp_path: Path, mode: int | None
) -> None:
    empty(embedded_database)
    if mode is not None:
        (tmp_path / "x").write_bytes(b"")
        (tmp_path / "x").chmod(mode)
    backup(embedded_database, tmp_path / "x")
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600


def test_what_a_killed_backup_left_is_removed(embedded_database: Database, tmp_path: Path) -> None:
    empty(embedded_database)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    (tmp_path / f".x.{ended.pid}.new").write_bytes(b"half")
    (tmp_path / f".x.{os.getppid()}.new").write_bytes(b"of another process that is at work")
    backup(embedded_database, tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".x.{os.getppid()}.new", "x"]


def test_a_file_that_cannot_be_written_is_an_error(embedded_database: Database, tmp_path: Path) -> None:
    empty(embedded_database)
    with pytest.raises(InputError, match="cannot be written: No such file") as caught:
        backup(embedded_database, tmp_path / "none" / "x")
    assert caught.value.path == str(tmp_path / "none" / "x")


def assert_refused(database: Database, path: Path) -> AlmanacError:
    with pytest.raises(InputError) as caught:
        restore(database, path)
    assert caught.value.path == str(path)
    assert "\n" not in str(caught.value)
    check_version(database)
    assert database.query("MATCH (n) RETURN count(n)")[1] == [(1,)]
    return caught.value
