"""The registry as a whole: one transaction an intake, several processes at once, good plans."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import neo4j
import pytest

import registry as registry_package
from registry.database.driver import Database
from registry.database.embedded_server import ServerAddress
from registry.database.schema import LABELS, MIGRATIONS, WRITE_VERSION, current_version
from registry.database.stored_kinds import Join, RecordKind, delete_statement, known_statement
from registry.errors import InvalidValue, SchemaVersionError, UnknownName, WriteRefused
from registry.model import HostOrder, Job, Profile
from registry.model.intake import Intake
from registry.registry import Registry, default_home
from registry.store.ingest_runs import RUN
from registry.store.saving import KINDS
from registry.store.snapshots import canonical, content_hash
from tests.support import paths, servers
from tests.support.concurrent_writers import CONTENTS
from tests.support.fat_tree import at, fat_tree, tree_tables
from tests.support.full_cluster import counts

CYPHER = re.compile(
    r"\s*(MATCH|MERGE|CREATE|UNWIND|OPTIONAL|CALL)\b.*\b(RETURN|SET|CREATE|MERGE|DELETE)\b", re.DOTALL
)
"""A statement; clauses with which several statements begin neither return nor write anything."""
WHOLE_GRAPH = (
    "registry.database.schema",
    *(f"registry.upkeep.{name}" for name in ("backup", "restore")),
)
"""Modules whose work is the whole graph: making its schema, moving it."""
COUNTS_ALL = "COUNT_ALL_NODES"
"""Statement that compares the graph with its files, for verification and restoring."""

SEEN: dict[str, Any] = {"cluster": "toy", "observed_at": at(0), "fabric": fat_tree(), "tables": tree_tables()}
READ: dict[str, Any] = {
    "source": "folder",
    "files": ("a", "b"),
    "warnings": ("a line was odd",),
    "digest": "0f",
}
EVERYTHING = Intake(
    profiles=(Profile.from_edges([0, 1], [1, 0], [1.0, 2.0], name="pair"),),
    jobs=(Job(id="1", hosts=("node00",), slots=(2,), state="RUNNING"),),
    placements=(HostOrder(hosts=("node00", "node01"), source="hostfile"),),
    **SEEN | READ,
)


def statements() -> Iterator[tuple[str, str]]:
    """Every statement constant of the registry, and the statements of every kind of record."""
    kinds: dict[str, RecordKind] = {}
    for module in pkgutil.walk_packages(registry_package.__path__, "registry."):
        if module.name not in WHOLE_GRAPH:
            for constant, value in vars(importlib.import_module(module.name)).items():
                if (
                    isinstance(value, str)
                    and constant.isupper()
                    and CYPHER.match(value)
                    and constant != COUNTS_ALL
                ):
                    yield f"{module.name}.{constant}", value.replace("{label}", LABELS[0])
                if isinstance(value, RecordKind):
                    kinds[value.name] = value
    for kind in kinds.values():
        yield from ((f"{kind.name} {name}", text) for name, text in kind.statements().items())
    for label in sorted({kind.label for kind in KINDS} - {""}):
        yield f"RECORDED {label}", RUN.join_statement(Join("RECORDED", label))
    for label in LABELS:
        yield f"known {label}", known_statement(label)
        yield f"delete {label}", delete_statement(label)


def test_all_of_an_intake_is_saved_and_in_the_receipt(registry: Registry) -> None:
    shown: list[str] = []
    receipt = registry.save(EVERYTHING, lambda phase, *numbers: shown.append(phase))
    assert shown[0] == "saving the fabric"
    assert (receipt.cluster, receipt.new("jobs"), receipt.new("profiles")) == ("toy", 1, 1)
    assert (receipt.new_content, receipt.new_observation, receipt.new_routing) == (True, True, True)
    assert (len(receipt.ids("profiles")), len(receipt.ids("placements"))) == (1, 1)
    assert receipt.warnings == ("a line was odd",)
    assert receipt.seconds > 0
    assert registry.fabrics.read("toy").id == receipt.snapshot
    assert registry.profiles.read("pair").id == receipt.ids("profiles")[0]
    assert registry.jobs.read("1").job == EVERYTHING.jobs[0]
    assert registry.placements.read(receipt.ids("placements")[0]).content == receipt.snapshot
    columns = "r.files, r.digest, r.outcome, r.jobs, labels(x)[0], x.id"
    _, rows = registry.database.query(f"MATCH (r:IngestRun)-[:RECORDED]->(x) RETURN {columns}")
    assert [row[:4] for row in rows] == [(["a", "b"], "0f", "saved", 1)] * 3
    assert {label: identity for *_, label, identity in rows} == {
        "Profile": receipt.ids("profiles")[0],
        "Placement": receipt.ids("placements")[0],
        "Observation": registry.fabrics.observations("toy")[0].id,
    }
    nodes, relationships = counts(registry.database)
    again = registry.save(EVERYTHING)
    assert counts(registry.database) == (nodes + 1, relationships)  # its run
    assert (again.snapshot, again.routing) == (receipt.snapshot, receipt.routing)
    assert all(again.ids(kind) == receipt.ids(kind) for kind in ("profiles", "placements"))
    assert (again.new_observation, again.new("jobs"), again.new("profiles")) == (False, 0, 0)


def test_an_intake_that_fails_at_its_end_leaves_nothing_but_its_run(registry: Registry) -> None:
    before = counts(registry.database)
    assert registry.save(Intake()).cluster is None
    assert counts(registry.database) == before
    wrong: list[dict[str, Any]] = [{"jobs": (Job(id="1", hosts=("nodeX",), slots=(1,)),)}]
    for number, broken in enumerate((*wrong, {"placements": (HostOrder(hosts=("nodeX",)),)})):
        with pytest.raises(UnknownName, match="nodeX"):
            registry.save(replace(EVERYTHING, **broken))
        assert counts(registry.database) == (before[0] + number + 1, before[1])
    assert registry.fabrics.clusters() == ()


def test_an_intake_needs_cluster_and_time() -> None:
    wrong: list[dict[str, Any]] = [
        *({"fabric": fat_tree(), "observed_at": at(0)}, {"cluster": "toy", "tables": tree_tables()}),
        {"cluster": "toy", "fabric": fat_tree(), "observed_at": at(0).replace(tzinfo=None)},
        *({"jobs": EVERYTHING.jobs}, {"cluster": "a/b", "fabric": fat_tree(), "observed_at": at(0)}),
        *({"cluster": "a\nb"}, {"cluster": "x" * 201}),
    ]
    for given in wrong:
        with pytest.raises(InvalidValue, match="Intake"):
            Intake(**given)


def test_a_database_is_opened_with_the_schema_of_now_only(registry: Registry, server: ServerAddress) -> None:
    registry.database.write(lambda tx: tx.run("MATCH (n) DETACH DELETE n"))
    with servers.opened(server) as opened:  # an empty one gets its schema
        assert opened.fabrics.clusters() == ()

    def set_version(version: int) -> None:
        registry.database.write(lambda tx: tx.run(WRITE_VERSION, id="schema", version=version))

    set_version(2)  # its creation was cut off
    with servers.opened(server) as opened:
        assert current_version(opened.database) == MIGRATIONS[-1].version
    registry.save(EVERYTHING)
    try:
        for version, reason in ((2, "run almanac db migrate"), (99, "version 99")):
            set_version(version)
            with pytest.raises(SchemaVersionError, match=reason):
                servers.opened(server)
    finally:
        set_version(MIGRATIONS[-1].version)


def set_version(registry: Registry, version: int) -> None:
    registry.database.write(lambda tx: tx.run(WRITE_VERSION, id="schema", version=version))


def test_the_home_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path))
    assert default_home() == tmp_path
    monkeypatch.delenv("ALMANAC_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_home() == tmp_path / "almanac"


@pytest.fixture
def start(processes: None, server: ServerAddress) -> Iterator[Any]:
    """Starts processes of tests.support.concurrent_writers on the server of `database`; ends what is left."""
    address = {name: getattr(server, name) for name in ("uri", "user", "password", "name")}
    started: list[subprocess.Popen[str]] = []

    def run(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.support.concurrent_writers", *map(str, words)]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process: subprocess.Popen[str] = subprocess.Popen(command, cwd=paths.ROOT, text=True, **streams)  # type: ignore[call-overload]
        assert process.stdin is not None
        process.stdin.write(json.dumps(address))
        process.stdin.close()
        process.stdin = None
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_two_writers_and_a_reader_lose_nothing(registry: Registry, start: Any) -> None:
    rounds = 6
    processes = [start("write", 0, rounds), start("write", 1, rounds), start("read", 2 * rounds)]
    for process in processes:
        _, complaints = process.communicate(timeout=150)
        assert process.returncode == 0, complaints
    seen = registry.fabrics.observations("toy")
    assert [one.at for one in seen] == [at(minute) for minute in range(2 * rounds)]
    first = min(one.seq for one in seen)
    assert sorted(one.seq for one in seen) == list(range(first, first + 2 * rounds))
    assert len(registry.profiles.list()) == 2 * rounds
    for minute in range(2 * rounds):
        turn, number = divmod(minute, 2)
        expected = content_hash(canonical(CONTENTS[(turn + number) % len(CONTENTS)]))
        fabric = registry.fabrics.read("toy", at(minute)).fabric
        hosts = [fabric.names[v] for v in fabric.hosts]
        assert content_hash(fabric) == expected
        assert content_hash(registry.fabrics.subgraph("toy", hosts, at(minute))) == expected


@pytest.mark.parametrize("done", [0, 1], ids=["before", "after"])
def test_a_process_killed_while_it_writes_leaves_nothing(registry: Registry, start: Any, done: int) -> None:
    before = counts(registry.database)
    process = start("hang", done)
    assert process.stdout.readline() == "in the middle\n", process.stderr.read()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert counts(registry.database) == before
    receipt = registry.save(Intake(cluster="toy", observed_at=at(0), fabric=CONTENTS[0]))
    assert receipt.new_content
    assert content_hash(registry.fabrics.read("toy").fabric) == content_hash(canonical(CONTENTS[0]))


@pytest.fixture(scope="session")
def planner(neo4j_server: ServerAddress, neo4j_database: Database) -> Iterator[neo4j.Session]:
    auth = (neo4j_server.user, neo4j_server.password)
    with (
        neo4j.GraphDatabase.driver(
            neo4j_server.uri, auth=auth, notifications_min_severity="OFF", warn_notification_severity="OFF"
        ) as driver,
        driver.session(database=neo4j_server.name) as session,
    ):
        yield session


def test_no_statement_scans_the_graph_or_multiplies(planner: neo4j.Session) -> None:
    texts = dict(statements())
    assert len(texts) > 60
    for statement, text in texts.items():
        plan = planner.run("EXPLAIN " + text).consume().plan
        assert plan is not None
        operators = list(operators_of(plan))
        scans = {name for name, _ in operators} & {"AllNodesScan", "DirectedAllRelationshipsScan"}
        assert not scans, statement
        for name, leaves in operators:
            # two nodes found by their ids, one of each, are not multiplied
            single = all(leaf.startswith("NodeUniqueIndexSeek") for leaf in leaves)
            assert name != "CartesianProduct" or single, statement


def operators_of(plan: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Each operator of a plan with the leaves below it."""
    children = plan.get("children", ())
    yield plan["operatorType"].split("@")[0], [leaf for child in children for leaf in leaves_of(child)]
    for child in children:
        yield from operators_of(child)


def leaves_of(plan: dict[str, Any]) -> list[str]:
    """Names of the operators at the end of each branch."""
    children = plan.get("children", ())
    return [leaf for child in children for leaf in leaves_of(child)] or [plan["operatorType"]]


def test_a_query_returns_rows_and_refuses_to_write(registry: Registry) -> None:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    hosts = "MATCH (d:Device {cluster: $c, kind: 'host'}) RETURN d.name AS name, d.kind AS kind ORDER BY name"
    rows = registry.query(hosts, c="toy")
    assert rows[0] == {"name": "node00", "kind": "host"}
    assert rows.to_pandas()["name"].tolist() == ["node00", "node01", "node02", "node03"]
    assert registry.query(hosts, c="other") == []
    with pytest.raises(WriteRefused):
        registry.query("MATCH (d:Device) DETACH DELETE d")
    assert len(registry.query(hosts, c="toy")) == 4


def test_times_may_be_iso_text(registry: Registry) -> None:
    for hour, cables in ((0, 1), (2, 2)):
        registry.save(Intake(cluster="toy", observed_at=at(hour), fabric=fat_tree(cables=cables)))
    early, late = at(1).isoformat(), at(3).isoformat()
    assert registry.fabrics.read("toy", early).observed_at == at(0)
    assert registry.fabrics.read("toy", at(2).strftime("%Y-%m-%dT%H:%M")).observed_at == at(2)
    assert registry.fabrics.changes("toy", early, late).end == at(2)
    assert registry.fabrics.before_last_change("toy", early) == at(0)
    assert len(registry.fabrics.subgraph("toy", ["node00"], early)) == 5
    assert registry.running("toy", late).at == at(3)
    assert registry.last_seen("toy", "2001-01-01") is None
    assert registry.layouts.list("toy", early) == ()
    with pytest.raises(InvalidValue, match="time: 'soon' is no time"):
        registry.fabrics.read("toy", "soon")
