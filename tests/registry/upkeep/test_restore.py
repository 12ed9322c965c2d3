"""Backups of every earlier schema version: restored and migrated, they read as what was ingested then.

The values are those of the files that were ingested, see tests/data/dumps/README.md. Migrations run on both
servers in test_schema.py, restoring does in test_backup.py. At the end: how much one transaction of a restore
holds in memory, the compaction of the embedded server's files, and backups with a digest that fits and
content that does not, which are refused before a database is touched.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from registry.database.driver import Database, Transaction
from registry.database.embedded_server import ensure_server, stop
from registry.database.schema import MIGRATIONS, check_version, current_version, migrate, require_writable
from registry.errors import DatabaseError, InputError, UnknownName
from registry.model import Job, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.circuit_plans import circuit_plan_id
from registry.store.placements import placement_id
from registry.store.profiles import profile_id, trace_id
from registry.store.simulations import simulation_id
from registry.store.snapshots import content_hash
from registry.upkeep import backup as backup_file
from registry.upkeep import restore as module
from registry.upkeep.backup import Header, backup, encode, writing
from registry.upkeep.restore import _batches, check_backup, compact, restore
from registry.upkeep.verify import require_intact, verify
from tests.support import paths

DUMPS = paths.DATA / "dumps"
VERSIONS = range(1, 5)
HOSTS = tuple(f"n0{number}" for number in range(1, 9))
NODES_OF_JOB = ("n01", "n02", "n03", "n06")


def hour(number: int) -> datetime:
    return datetime(2025, 11, 1, number, tzinfo=UTC)


@pytest.fixture
def server_kind() -> str:
    return "embedded"


def test_a_backup_of_every_earlier_version_is_tested() -> None:
    assert MIGRATIONS[-1].version - 1 in (VERSIONS[-1], 5)  # schema-5.dump has tests of its own
    assert all((DUMPS / f"schema-{version}.dump").exists() for version in range(1, 6))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_earlier_backup_reads_as_what_was_ingested_then(registry: Registry, version: int) -> None:
    path = DUMPS / f"schema-{version}.dump"
    restore(registry.database, path, check=lambda some: require_intact(some, str(path)))
    assert current_version(registry.database) == MIGRATIONS[-1].version
    check_version(registry.database)
    found = verify(registry.database)
    assert not found.damaged, found.findings
    assert {one.label for one in found.findings} <= {"Placement"}
    assert (found.checked["Content"], found.checked["ForwardingTable"]) == (2, 4)
    check_fabrics(registry)
    check_runs_and_jobs(registry, version)
    check_placements(registry, version)
    check_counters_and_plan(registry, version)
    advice = [one.job for one in registry.advices.list("hpc1")]
    assert advice == (["78"] if version >= 3 else [])
    traces, simulations = registry.traces.list(), registry.simulations.list()
    assert [(one.messages, one.bytes) for one in traces] == ([(4, 14000.0)] if version >= 4 else [])
    assert [one.delivered_bytes for one in simulations] == ([14000.0] if version >= 4 else [])
    check_writing(registry)


def check_fabrics(earlier: Registry) -> None:
    (cluster,) = earlier.fabrics.clusters()
    assert (cluster.name, cluster.observations, cluster.cables, cluster.hosts) == ("hpc1", 2, 15, 8)
    assert (cluster.first_observed_at, cluster.last_observed_at) == (hour(0), hour(12))
    before, after = earlier.fabrics.read("hpc1", hour(11)), earlier.fabrics.read("hpc1")
    assert (before.fabric.cable_count, after.fabric.cable_count) == (16, 15)
    assert {before.fabric.names[v] for v in before.fabric.hosts} == set(HOSTS)
    for snapshot in (before, after):
        assert snapshot.id == f"hpc1/{content_hash(snapshot.fabric)}"
        assert snapshot.fabric.tables is not None
        guids = [0xA000000000000001, 0xA000000000000002, 0xB000000000000001, 0xB000000000000002]
        assert snapshot.fabric.tables.switch_guid.tolist() == guids
    (lost,) = earlier.fabrics.changes("hpc1", hour(0)).cables_vanished
    assert {(lost.source, lost.source_port), (lost.target, lost.target_port)} == {("leaf2", 8), ("spine2", 4)}
    assert earlier.fabrics.subgraph("hpc1", HOSTS, hour(3)).cable_count == 16
    assert earlier.fabrics.subgraph("hpc1", HOSTS).cable_count == 15
    graph = derived(earlier.database)
    earlier.fabrics.rebuild("hpc1")
    assert derived(earlier.database) == graph


def check_runs_and_jobs(earlier: Registry, version: int) -> None:
    stored = earlier.profiles.read("ring")
    assert stored.profile.bytes.tolist() == [1000.0 * (rank + 1) for rank in range(8)]
    job = earlier.jobs.read("77")
    assert (job.job.hosts, job.job.started_at, job.profile) == (NODES_OF_JOB, hour(6), stored.id)
    formats = {name for run in earlier.runs.list() for name in run.formats}
    assert formats >= {"ibnetdiscover", "opensm-lfts", "edge-csv", "slurm-scontrol"}
    assert (version < 2) == (not {"counters-csv", "ndt"} & formats)


def check_placements(earlier: Registry, version: int) -> None:
    (row,) = [one for one in earlier.placements.history() if (one.strategy, one.job) == ("greedy", "77")]
    assert (row.role, row.profile, row.application, row.ranks) == ("proposed", "ring", "ring", 8)
    # by hand: two ranks on each of four hosts; 7,000 bytes leave the host of ranks 5 and 6 at 12.5 GB/s
    assert row.congestion_seconds == pytest.approx(7000 / 12.5e9)
    assert row.snapshot == earlier.fabrics.read("hpc1", hour(8)).id
    stored = earlier.placements.read(row.id)
    assert sorted(stored.hosts) == sorted(NODES_OF_JOB * 2)
    roles = {one.role for one in earlier.placements.history()}
    assert roles == ({"proposed"} if version < 3 else {"proposed", "present"})


def derived(database: Database) -> list[list[Any]]:
    known = "s.id, s.name, s.lids, s.valid_from, s.valid_to"
    states = f"MATCH (d:Device)-[:HAS_STATE]->(s) RETURN d.name, {known}"
    links = "MATCH (a:Device)-[l:LINK]->(b) RETURN a.id, b.id, l.key, l.capacity, l.valid_from, l.valid_to"
    return [sorted(database.query(text)[1], key=repr) for text in (states, links)]


def check_counters_and_plan(earlier: Registry, version: int) -> None:
    if version < 2:
        with pytest.raises(UnknownName):
            earlier.counters.rates("hpc1")
        return
    rates = earlier.counters.rates("hpc1", hour(9))
    fabric = earlier.fabrics.read("hpc1", hour(9)).fabric
    names, links = fabric.names, fabric.links
    known = {
        (names[links.source[row]], names[links.target[row]]): value
        for row, value in enumerate(rates.bytes_per_second.tolist())
        if np.isfinite(value)
    }
    # in 600 s port 1 sent 600,000 bytes and received none, port 2 sent none and received 1,200,000
    silent = {("n01", "leaf1"): 0.0, ("leaf1", "n02"): 0.0}
    assert known == {("leaf1", "n01"): 1000.0, ("n02", "leaf1"): 2000.0, **silent}
    plan = earlier.intended.read("hpc1", hour(10)).wiring
    assert plan.source == ("leaf1", "leaf1", "leaf2")


def check_writing(earlier: Registry) -> None:
    before = earlier.fabrics.read("hpc1", hour(3)).fabric
    known = earlier.profiles.read("ring").profile
    names = {"name": "ring", "application": "ring", "messages": known.messages}
    again = Profile.from_edges(range(8), [*range(1, 8), 0], known.bytes, **names)  # type: ignore[arg-type]
    time = datetime(2025, 11, 1, 13, 0, 0, 123456, tzinfo=UTC)
    job = Job(id="79", hosts=("n08",), slots=(1,), state="RUNNING", started_at=time)
    intake = Intake(cluster="hpc1", observed_at=hour(13), fabric=before, profiles=(again,), jobs=(job,))
    receipt = earlier.save(intake)
    assert (receipt.new_content, receipt.new_observation, receipt.links_opened) == (False, True, 2)
    assert receipt.ids("profiles") == (earlier.profiles.read("ring").id,)
    assert earlier.jobs.read("79").job.started_at == time
    assert earlier.fabrics.subgraph("hpc1", HOSTS).cable_count == 16


def test_what_the_version_before_wrote_keeps_its_ids_and_bytes(registry: Registry, tmp_path: Path) -> None:
    latest = DUMPS / "schema-5.dump"
    restore(registry.database, latest, check=lambda some: require_intact(some, str(latest)))
    assert not verify(registry.database).damaged
    backup(registry.database, tmp_path / "again")
    first, second = (lines_of(path) for path in (latest, tmp_path / "again"))
    assert second[1:-1] == first[1:-1]  # without the header's version and the digest
    counts = [json.loads(lines[0])["counts"] for lines in (first, second)]
    assert counts[1] == {**dict.fromkeys(counts[1], 0), **counts[0]}
    nodes = registry.database.query("MATCH (n) RETURN count(n)")[1]
    profiles = [registry.profiles.read(one.id) for one in registry.profiles.list()]
    assert [profile_id(one.profile) for one in profiles] == [one.id for one in profiles]
    traces = [registry.traces.read(one.id) for one in registry.traces.list()]
    assert [trace_id(one.profile, one.trace) for one in traces] == [one.id for one in traces]
    placements = [registry.placements.read(one.id) for one in registry.placements.history()]
    assert [placement_id(one) for one in placements] == [one.id for one in placements]
    simulations = [registry.simulations.read(one.id) for one in registry.simulations.list()]
    assert [simulation_id(one) for one in simulations] == [one.id for one in simulations]
    plans = [registry.circuit_plans.read(one.id) for one in registry.circuit_plans.list()]
    assert [circuit_plan_id(one) for one in plans] == [one.id for one in plans]
    counted = (len(profiles), len(traces), len(placements), len(simulations), len(plans))
    assert counted == (4, 1, 9, 4, 1)
    assert registry.placements.save_many(placements) == tuple(one.id for one in placements)
    assert [registry.simulations.save(one) for one in simulations] == [one.id for one in simulations]
    assert [registry.circuit_plans.save(one) for one in plans] == [one.id for one in plans]
    assert registry.database.query("MATCH (n) RETURN count(n)")[1] == nodes


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a dump without those that begin a section: later versions have more, here empty."""
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [line for line in lines if not line.startswith(b'{"section":')]


HEADER = Header(schema=6, counts={})


def test_large_nodes_and_their_relationships_are_written_a_few_at_a_time(tmp_path: Path) -> None:
    """A backup of 30 sweeps of 768 KiB each and of 30 small runs, all joined to other nodes."""
    file = tmp_path / "file"
    with writing(file, HEADER) as writer:
        for label, blob in (("Cluster", b""), ("IngestRun", b""), ("CounterSweep", bytes(3 << 18))):
            writer.section(label)
            for number in range(30):
                writer.record(encode({"id": f"{label} {number}", "blob": blob}))
        for source, section, target in (
            ("CounterSweep", "CounterSweep-OF->Cluster", "Cluster"),
            ("IngestRun", "IngestRun-RECORDED->CounterSweep", "CounterSweep"),
        ):
            writer.section(section)
            for number in range(30):
                writer.record(encode([f"{source} {number}", f"{target} {number}", {}]))
    found = batches(file)
    assert found["Cluster"] == [30]
    for section in ("CounterSweep", "CounterSweep-OF->Cluster", "IngestRun-RECORDED->CounterSweep"):
        assert found[section] == [7, 7, 7, 7, 2]


def batches(file: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, rows in _batches(file):
        found.setdefault(name, []).append(len(rows))
    return found


def test_relationships_of_one_node_count_it_once(tmp_path: Path) -> None:
    with writing(tmp_path / "file", HEADER) as writer:
        writer.section("Placement")
        writer.record(encode({"id": "p", "host_of_rank": bytes(3 << 20)}))
        writer.section("Device")
        writer.record(encode({"id": "d"}))
        writer.section("Placement-LOADS->Device")
        for number in range(500):
            writer.record(encode(["p", "d", {"port": number}]))
    assert batches(tmp_path / "file")["Placement-LOADS->Device"] == [500]


SWEEP_BYTES = 400_000
ADD = "CREATE (s:CounterSweep {id: $id, cluster: 'hpc1', blob: $blob})"
KEEP_ONE = "MATCH (s:CounterSweep) WHERE s.id <> 'sweep 0' DETACH DELETE s"
IDS = "MATCH (s:CounterSweep) RETURN collect(s.id) AS ids"


@pytest.fixture(scope="module")
def home(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder whose server holds one sweep and the space of nine deleted ones."""
    folder = tmp_path_factory.mktemp("compact")
    with ensure_server(folder, idle_seconds=300).connect() as database:
        migrate(database)
        for number in range(10):
            add(database, number)
        database.write(lambda transaction: transaction.run(KEEP_ONE))
    yield folder
    stop(folder)


def add(database: Database, number: int) -> None:
    blob = bytes([number]) * SWEEP_BYTES
    database.write(lambda transaction: transaction.run(ADD, id=f"sweep {number}", blob=blob))


def ids_in(home: Path) -> list[str]:
    with ensure_server(home).connect() as database:
        found: list[str] = database.query(IDS)[1][0][0]
        return found


def test_a_failure_leaves_the_registry_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DatabaseError("no space left")

    before = ids_in(home)
    monkeypatch.setattr(module, "restore", fail)
    with pytest.raises(DatabaseError, match="no space left"):
        compact(home)
    assert ids_in(home) == before != []
    assert sorted(path.name for path in home.iterdir()) == ["graph", "server"]


def test_writers_of_which_the_pause_ended_are_not_lost(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_meanwhile(fresh: Database, *_: object) -> None:
        with ensure_server(home).connect() as database:
            database.write(lambda transaction: transaction.run("CREATE (:Cluster {id: 'new', seq: 1})"))

    monkeypatch.setattr(module, "restore", write_meanwhile)
    with pytest.raises(DatabaseError, match="written to meanwhile"):
        compact(home)
    with ensure_server(home).connect() as database:
        assert ("new",) in database.query("MATCH (c:Cluster) RETURN c.id")[1]


def test_the_files_become_smaller_and_hold_the_same(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "compact").mkdir()
    (home / "compact" / "registry.backup").write_bytes(b"half, of an interrupted call")
    with ensure_server(home).connect() as database, ThreadPoolExecutor(1) as pool:
        waiting = Event()

        def write(transaction: Transaction) -> None:
            waiting.set()
            require_writable(transaction)
            transaction.run("CREATE (:Cluster {id: 'later', seq: 1})")

        def begin(*arguments: Any, **options: Any) -> Any:
            writer.append(pool.submit(database.write, write))
            assert waiting.wait(60)
            return restore(*arguments, **options)

        writer = list[Any]()
        monkeypatch.setattr(module, "restore", begin)
        done = compact(home)
        writer[0].result(60)  # it was tried again until the server was there again
        assert database.query("MATCH (c:Cluster {id: 'later'}) RETURN count(c)")[1] == [(1,)]
    assert done.after < done.before - 8 * SWEEP_BYTES
    with ensure_server(home).connect() as database:
        rows = database.query("MATCH (s:CounterSweep) RETURN s.id, s.blob")[1]
        assert rows == [("sweep 0", bytes(SWEEP_BYTES))]
        assert current_version(database) > 0
        add(database, 11)  # writers need not wait any more
    assert sorted(path.name for path in home.iterdir()) == ["graph", "server"]


OF_TWO = {"format": "fabric-almanac-dump", "version": 1, "schema": 6, "counts": {"Cluster": 1, "Content": 1}}
CLUSTER: list[Any] = [{"section": "Cluster"}, {"id": "c", "name": "c"}]
CONTENT: list[Any] = [{"section": "Content"}, {"id": "c/1", "cluster": "c"}]
OF: list[Any] = [{"section": "Content-OF->Cluster"}, ["c/1", "c", {}]]
SCHEMAS: list[Any] = [0, -5, "6", 6.0, True, None, [6], 7]
COUNTS: list[Any] = [[], "x", None, {"Cluster": "1"}, {"Cluster": -1}, {"Cluster": 1.0}]
DEEP = "[" * 100_000 + "]" * 100_000


def written_lines(path: Path, lines: list[Any]) -> Path:
    """Write lines, as JSON unless they are text, with the end that fits them."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    body = "".join(f"{text}\n" for text in texts).encode()
    end = {"end": {"lines": len(lines), "sha256": hashlib.sha256(body).hexdigest()}}
    path.write_bytes(gzip.compress(body + json.dumps(end, separators=(",", ":")).encode() + b"\n"))
    return path


@pytest.mark.parametrize(
    "changed",
    [
        *({"schema": schema} for schema in SCHEMAS),
        *({"counts": counts} for counts in COUNTS),
        {"counts": {"Cluster": 2, "Content": 1}},
        {"counts": {"Cluster": 1}},
        *({"counts": {**OF_TWO["counts"], "Stranger": n}} for n in (0, 1)),  # type: ignore[dict-item]
        {"version": True},
        {"version": 1.0},
        {"version": "1"},
        {"format": 5},
        {"more": 1},
    ],
    ids=str,
)
def test_a_changed_header_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = written_lines(tmp_path / "x", [{**OF_TWO, **changed}, *CLUSTER, *CONTENT])
    with pytest.raises(InputError) as caught:
        check_backup(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("line", [0, 2], ids=["header", "record"])
@pytest.mark.parametrize("text", [DEEP, "1e999", "[1", '{"id":' + "9" * 5000 + "}"], ids=lambda one: one[:9])
def test_json_that_cannot_be_read_is_refused(tmp_path: Path, line: int, text: str) -> None:
    lines = [OF_TWO, *CLUSTER, *CONTENT]
    lines[line] = text
    with pytest.raises(InputError) as caught:
        check_backup(written_lines(tmp_path / "x", lines))
    assert caught.value.line == line + 1
    assert len(str(caught.value)) < 2000


RECORDS: dict[str, tuple[list[Any], int]] = {
    "no id": ([*CLUSTER[:1], {"name": "c"}, *CONTENT], 3),
    "id is a number": ([*CLUSTER[:1], {"id": 7}, *CONTENT], 3),
    "id twice": ([*CLUSTER, *CONTENT, CONTENT[1]], 6),
    "end is missing": ([*CLUSTER, *CONTENT, OF[0], ["c/2", "c", {}]], 7),
    "relationship first": ([*CLUSTER, *OF, *CONTENT], 5),
    "map in a property": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": {"y": 1}}], 5),
    "list of lists": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": [[1]]}], 5),
    "list of two types": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": [1, "1"]}], 5),
    "too large": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": 1 << 63}], 5),
    "half a character": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": "\ud800"}], 5),
    "before a section": ([CLUSTER[1], *CLUSTER[:1], *CONTENT], 2),
    "time out of range": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": {"$time": "0001-01-01T00:00+14:00"}}], 5),
}


@pytest.mark.parametrize("what", RECORDS)
def test_a_record_that_cannot_be_stored_is_refused_with_its_line(tmp_path: Path, what: str) -> None:
    lines, number = RECORDS[what]
    with pytest.raises(InputError) as caught:
        check_backup(written_lines(tmp_path / "x", [OF_TWO, *lines]))
    assert caught.value.line == number


def test_a_whole_backup_is_accepted(tmp_path: Path) -> None:
    counts = {**OF_TWO["counts"], "Content-OF->Cluster": 1}  # type: ignore[dict-item]
    path = written_lines(tmp_path / "x", [{**OF_TWO, "counts": counts}, *CLUSTER, *CONTENT, *OF])
    taken: list[str] = []
    assert check_backup(path, lambda found: taken.append(next(found)[0])).counts == counts
    assert taken == ["Cluster"]


def test_what_is_refused_deletes_nothing(embedded_database: Database, tmp_path: Path) -> None:
    path = written_lines(tmp_path / "x", [{**OF_TWO, "schema": 0}, *CLUSTER, *CONTENT])
    embedded_database.write(lambda transaction: transaction.run("MERGE (:Cluster {id: 'mine'})"))
    clusters = "MATCH (c:Cluster) RETURN c.id ORDER BY c.id"
    before = embedded_database.query(clusters)
    with pytest.raises(InputError, match="no schema version"):
        restore(embedded_database, path, replace=True)
    check_version(embedded_database)
    assert ("mine",) in before[1]
    assert embedded_database.query(clusters) == before
    assert not tmp_path.joinpath("x.previous").exists()
    embedded_database.write(lambda transaction: transaction.run("MATCH (c:Cluster {id: 'mine'}) DELETE c"))


def test_a_line_is_limited_when_it_is_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written_lines(tmp_path / "x", [OF_TWO, *CLUSTER, CONTENT[0], {"id": "x" * 500}])
    assert backup_file.LINE_BYTES == 300_000_000
    monkeypatch.setattr(backup_file, "LINE_BYTES", 400)
    with pytest.raises(InputError, match="too long") as caught:
        check_backup(path)
    assert caught.value.line == 5
    header = backup_file.Header(schema=6, counts={"Cluster": 1})
    with (
        pytest.raises(DatabaseError, match="more than 400 bytes"),
        backup_file.writing(tmp_path / "y", header) as sink,
    ):
        sink.record(backup_file.encode({"id": "x" * 500}))
    assert not (tmp_path / "y").exists()
