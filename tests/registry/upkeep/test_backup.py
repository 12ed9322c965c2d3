"""Backup and restore: the same graph on the other server, and no half of one anywhere."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest

import registry.upkeep.backup
import registry.upkeep.restore
from registry.database.driver import Database, Transaction
from registry.database.schema import check_version, is_half_loaded, mark_loading
from registry.errors import AlmanacError, DatabaseError, InputError
from registry.model.intake import Intake
from registry.progress import silent
from registry.registry import Registry
from registry.store.observations import lock_cluster
from registry.upkeep.backup import Header, backup, encode, records, verify, writing
from registry.upkeep.restore import restore
from tests.conftest import empty
from tests.support import servers
from tests.support.concurrent_writers import CONTENTS
from tests.support.fat_tree import at
from tests.support.full_cluster import fill_all
from tests.support.waiting import comes_true

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
        blob = bytes(range(256)) * 99
        transaction.run(NODES, blob=blob, none=b"", at=MOMENT, forever=FOREVER, big=2**62 + 1)
        transaction.run("UNWIND $ids AS id CREATE (:Device {id: id, cluster: 'c'})", ids=DEVICES)
        source, target = DEVICES[:-1] * 2, DEVICES[1:] * 2
        columns = {"source": source, "target": target, "key": [f"k{i}" for i in range(len(source))]}
        transaction.run_columns(LINKS, columns, begin=MOMENT, end=FOREVER)
        transaction.run(SENDS)

    database.write(work)


def graph(database: Database) -> tuple[list[Any], list[Any]]:
    """All of a database by other statements than the dump's, in an order of its own."""
    _, nodes = database.query("MATCH (n) RETURN labels(n), properties(n)")
    read = "MATCH (a)-[r]->(b) RETURN labels(a), a.id, type(r), properties(r), labels(b), b.id"
    _, edges = database.query(read)
    return sorted(nodes, key=repr_sorted), sorted(edges, key=repr_sorted)


def repr_sorted(row: tuple[Any, ...]) -> str:
    return repr([sorted(item.items()) if isinstance(item, dict) else item for item in row])


@pytest.fixture
def server_kind() -> str:
    """Each fault once; how a registry moves between the servers is a test of its own."""
    return "embedded"


@pytest.fixture(scope="module")
def backed_up(embedded_database: Database, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    empty(embedded_database)
    fill(embedded_database)
    backup(embedded_database, path := tmp_path_factory.mktemp("backup") / "x")
    return path.read_bytes()


@pytest.fixture
def dumped(backed_up: bytes, database: Database, tmp_path: Path) -> Path:
    """The file of that backup, beside an empty database."""
    (tmp_path / "x.dump").write_bytes(backed_up)
    return tmp_path / "x.dump"


def test_a_registry_comes_back(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.upkeep.backup, "PAGE_ROWS", 50)
    assert backup(database, tmp_path / "empty").nodes == 0
    assert restore(database, tmp_path / "empty").nodes == 0
    fill_all(Registry(database))
    fill(database)
    before = graph(database)
    move(database, database, tmp_path)
    assert graph(database) == before
    (tmp_path / "empty").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "there"]


def test_a_registry_moves_to_the_other_server_and_back(
    neo4j_alone: None, database: Database, neo4j_database: Database, tmp_path: Path
) -> None:
    fill_all(Registry(database))
    fill(database)
    before = graph(database)
    empty(neo4j_database)
    move(database, neo4j_database, tmp_path)
    assert graph(neo4j_database) == before
    empty(database)
    restore(database, tmp_path / "back")
    assert graph(database) == before


def move(database: Database, other: Database, folder: Path) -> None:
    """Move a registry; check that its backup there is the same to the byte."""
    shown = backup(database, folder / "there")
    nodes, edges = graph(database)
    assert (shown.nodes, shown.relationships) == (len(nodes) - 1, len(edges))  # without the Schema
    if other is database:
        empty(database)
    assert restore(other, folder / "there") == shown
    check_version(other)
    backup(other, folder / "back")
    assert (folder / "back").read_bytes() == (folder / "there").read_bytes()
    _, [(job, allocation)] = other.query("MATCH (j:Job {id: 'j'})-[:RAN_ON]->(a) RETURN j, a")
    assert (job["big"], job["whole"], type(job["whole"]), job["yes"]) == (2**62 + 1, 2.0, float, True)
    assert (allocation["moments"], allocation["nothing"]) == ([MOMENT, FOREVER], [])
    within = "MATCH ()-[l:LINK]->() WHERE l.valid_from <= $at AND l.valid_to > $at RETURN count(l)"
    assert other.query(within, at=MOMENT)[1] == [(238,)]
    assert other.query(within, at=MOMENT - timedelta(microseconds=1))[1] == [(0,)]


def test_a_database_with_content_is_not_loaded_into(database: Database, dumped: Path) -> None:
    database.write(lambda t: t.run("CREATE (:Cluster {id: 'mine'})"))
    with pytest.raises(DatabaseError, match="not empty"):
        restore(database, dumped)
    assert database.query("MATCH (c:Cluster) RETURN c.id")[1] == [("mine",)]


def test_an_interrupted_load_is_started_again(database: Database, dumped: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(registry.upkeep.backup, "PAGE_ROWS", 20)

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
    database.write(lambda t: t.run("CREATE (:Cluster {id: 'mine'}), (:Stranger)"))
    with pytest.raises(DatabaseError, match="does not know"):
        restore(database, dumped, replace=True)
    check_version(database)
    assert database.query("MATCH (c:Cluster) RETURN c.id")[1] == [("mine",)]


def test_an_interrupted_replacement_leaves_a_mark_and_what_it_saved(database: Database, dumped: Path) -> None:
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


def flipped(data: bytes, part: float) -> bytes:
    place = int(len(data) * part)
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def header_with(lines: list[bytes], **changed: object) -> list[bytes]:
    header = {**json.loads(lines[0]), **changed}
    return resealed([json.dumps(header).encode() + b"\n", *lines[1:]])


PACKED: dict[str, Callable[[bytes], bytes]] = {
    **{f"flipped at {part}": partial(flipped, part=part) for part in (0.1, 0.5, 0.9)},
    "cut": lambda data: data[:-100],
    "empty file": lambda data: b"",
    "plain": lambda data: b"hello",
    "words": lambda data: gzip.compress(b"hello\n" * 9, mtime=0),
    "bytes": lambda data: gzip.compress(bytes(range(256)), mtime=0),
    "list": lambda data: gzip.compress(b"[]\n", mtime=0),
}
LINES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "no end": lambda lines: lines[:-1],
    "a line less": lambda lines: lines[:30] + lines[31:],
    "changed": lambda lines: [line.replace(b'"hosts":3', b'"hosts":4') for line in lines],
    "no header": lambda lines: lines[1:],
    "empty": lambda lines: [],
    "version 2": lambda lines: header_with(lines, version=2),
    "schema": lambda lines: header_with(lines, schema=99),
}


@pytest.mark.parametrize("damage", [*PACKED, *LINES])
def test_damaged_backups_are_refused_and_write_nothing(database: Database, dumped: Path, damage: str) -> None:
    if damage in PACKED:
        dumped.write_bytes(PACKED[damage](dumped.read_bytes()))
    else:
        rewritten(dumped, LINES[damage])
    reason = assert_refused(database, dumped).reason
    assert damage not in ("version 2", "schema") or damage in reason


def test_a_mark_without_a_load_is_removed_by_the_next_load(database: Database, dumped: Path) -> None:
    mark_loading(database, True)
    restore(database, dumped)
    check_version(database)


def rewritten(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(change(lines))))


def test_a_file_that_cannot_be_read_or_written_is_an_error(database: Database, tmp_path: Path) -> None:
    assert "No such file" in assert_refused(database, tmp_path / "none").reason
    with pytest.raises(InputError, match="cannot be written: No such file") as caught:
        backup(database, tmp_path / "none" / "x")
    assert caught.value.path == str(tmp_path / "none" / "x")


def resealed(lines: list[bytes]) -> list[bytes]:
    """The lines with an end that fits them, as a forger would write it."""
    digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    end = {"end": {"lines": len(lines) - 1, "sha256": digest}}
    return [*lines[:-1], json.dumps(end, separators=(",", ":")).encode() + b"\n"]


def test_names_in_a_forged_dump_never_become_cypher(database: Database, dumped: Path) -> None:
    def forge(lines: list[bytes]) -> list[bytes]:
        evil = b'{"id":"x","a: 1}) CREATE (:Evil {b":1}\n'
        return resealed([*lines[:2], evil, *lines[2:]])

    rewritten(dumped, forge)
    with pytest.raises(InputError) as caught:
        restore(database, dumped)
    assert caught.value.line == 3
    assert database.query("MATCH (e:Evil) RETURN e")[1] == []


def test_what_the_schema_does_not_know_is_not_left_out(database: Database, tmp_path: Path) -> None:
    for statement in ("(:Stranger)", "(:Cluster {id: 'a'})-[:OF]->(:Cluster {id: 'b'})"):
        empty(database)
        database.write(lambda t, statement=statement: t.run(f"CREATE {statement}"))  # type: ignore[misc]
        with pytest.raises(DatabaseError, match="does not know"):
            backup(database, tmp_path / "x")
        assert list(tmp_path.iterdir()) == []


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


def test_only_the_owner_can_read_a_backup(database: Database, tmp_path: Path) -> None:
    for mode in (None, 0o666, 0o444):
        if mode is not None:
            (tmp_path / "x").write_bytes(b"")
            (tmp_path / "x").chmod(mode)
        backup(database, tmp_path / "x")
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600


def test_what_a_killed_backup_left_is_removed(database: Database, tmp_path: Path) -> None:
    ended = next(number for number in range(2**22, 1, -1) if not psutil.pid_exists(number))
    (tmp_path / f".x.{ended}.new").write_bytes(b"half")
    (tmp_path / f".x.{os.getppid()}.new").write_bytes(b"of another process that is at work")
    backup(database, tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".x.{os.getppid()}.new", "x"]


def assert_refused(database: Database, path: Path) -> AlmanacError:
    with pytest.raises(InputError) as caught:
        restore(database, path)
    assert caught.value.path == str(path)
    assert "\n" not in str(caught.value)
    check_version(database)
    assert database.query("MATCH (n) RETURN count(n)")[1] == [(1,)]
    return caught.value


HEADER = Header(schema=5, counts={"Cluster": 1, "Content": 1})


def test_a_dump_is_read_as_it_was_written_and_values_have_one_text(tmp_path: Path) -> None:
    at = datetime(2026, 1, 2, 3, tzinfo=UTC)
    node = {"id": "x", "at": at, "blob": b"\x00\xff", "name": "\xfc"}
    with writing(tmp_path / "dump", HEADER) as writer:
        for section, value in (("Cluster", {"id": "c"}), ("Content", node)):
            writer.section(section)
            writer.record(encode(value))
    assert verify(tmp_path / "dump") == HEADER
    found = [(name, line, value) for name, line, _, value in records(tmp_path / "dump")]
    assert found == [("Cluster", 3, {"id": "c"}), ("Content", 5, node)]
    assert len(gzip.decompress((tmp_path / "dump").read_bytes()).splitlines()) == 6
    there = at.astimezone(timezone(timedelta(hours=2)))
    expected = '{"a":{"$bytes":"AA=="},"b":{"$time":"2026-01-02T03:00:00+00:00"}}'
    assert encode({"b": there, "a": b"\x00"}) == expected
    with pytest.raises(TypeError, match="cannot hold a set"):
        encode({1})


def test_an_interrupted_dump_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), writing(tmp_path / "dump", HEADER):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("server_kind", ["embedded", "neo4j"])
def test_a_backup_during_writes_has_one_moment(registry: Registry, server: Any, tmp_path: Path) -> None:
    """Three write all the time; what was restored is a state that there was."""
    enough = Event()

    def write(number: int) -> int:
        turn = 0
        with servers.opened(server) as own:
            while not enough.is_set():
                fabric = CONTENTS[(turn + number) % len(CONTENTS)]
                own.save(Intake(cluster="toy", observed_at=at(3 * turn + number), fabric=fabric))
                turn += 1
        return turn

    def observed() -> set[Any]:
        return set(registry.database.query("MATCH (o:Observation)-[:SAW]->(:Content) RETURN o.id")[1])

    def links() -> list[Any]:
        text = "MATCH (a:Device)-[l:LINK]->(b:Device) RETURN a.id, b.id, l.key, l.valid_from, l.valid_to"
        return sorted(registry.database.query(text)[1])

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, number) for number in range(3)]
        try:
            assert comes_true(lambda: len(observed()) > 1)
            backup(registry.database, tmp_path / "during")
            before = len(observed())
            assert comes_true(lambda: len(observed()) > before)
        finally:
            enough.set()
        total = sum(writer.result() for writer in writers)
    everything = observed()
    assert len(everything) == total
    restore(registry.database, tmp_path / "during", replace=True)
    then = observed()
    assert 1 < len(then) < len(everything)
    assert then < everything
    seq = registry.database.query("MATCH (c:Cluster) RETURN c.seq")[1]
    assert seq >= registry.database.query("MATCH (o:Observation) RETURN max(o.seq)")[1]
    graph = links()
    registry.fabrics.rebuild("toy")
    assert links() == graph
