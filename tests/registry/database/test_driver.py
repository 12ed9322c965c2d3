"""The connection to a graph database, on both real servers; one that restarts; addresses of servers."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from neo4j._async_compat.network._bolt_socket import BoltSocketBase as BoltSocket
from neo4j.exceptions import AuthError

import registry.database.driver
from registry.database.bulk_writes import ProgressTransaction
from registry.database.driver import ELSEWHERE, MORE, Database, Transaction, fault, shown
from registry.database.embedded_server import ServerAddress
from registry.errors import DatabaseError, DatabaseUnavailable, InconsistentGraph, WriteRefused
from tests.support.forwarder import Forwarder
from tests.support.waiting import PATIENCE, SteeredClock

MOMENT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def run(database: Database, statement: str, **parameters: object) -> list[dict[str, Any]]:
    return database.write(lambda transaction: transaction.run(statement, **parameters))


def stored(database: Database, identity: str, value: object) -> Any:
    run(database, "CREATE (:Cluster {id: $id, value: $value})", id=identity, value=value)
    statement = "MATCH (c:Cluster {id: $id}) RETURN c.value AS value"
    return database.read(lambda t: t.run(statement, id=identity))[0]["value"]


PLAIN = [
    *(None, True, 7, 2**53 + 1, -(2**63), 1.0, 0.1, 1e300),
    *("", "ü – 'quoted' \\ $x", b"", bytes(range(256)) * 300),
    *([1, 2, 3], [1.0, 2.0], ["a", "b"], MOMENT, END_OF_TIME, [MOMENT, END_OF_TIME]),
]
MADE_PLAIN = [
    *((MOMENT.astimezone(timezone(timedelta(hours=-7))), MOMENT), (MOMENT.replace(tzinfo=None), MOMENT)),
    *((np.int64(3), 3), (np.float32(1.5), 1.5), (np.bool_(True), True)),
    *((np.arange(3, dtype=np.int32), [0, 1, 2]), (np.array([0.5, 1.0]), [0.5, 1.0]), ((1, 2), [1, 2])),
    ((np.int16(4), np.int16(5)), [4, 5]),
]
"""Values that are given, and what comes back."""


def test_values_come_back_as_they_went_in_but_plain(database: Database) -> None:
    for number, (given, kept) in enumerate([*zip(PLAIN, PLAIN, strict=True), *MADE_PLAIN]):
        back = stored(database, f"c{number}", given)
        assert (back, type(back)) == (kept, type(kept))
        if isinstance(kept, datetime):
            assert back.tzinfo is UTC
        if isinstance(kept, list):
            assert [type(item) for item in back] == [type(item) for item in kept]


def test_times_compare_on_the_server_to_the_microsecond(database: Database) -> None:
    run(database, "CREATE (:Cluster {id: 'c', at: $at, until: $until})", at=MOMENT, until=END_OF_TIME)
    statement = "MATCH (c:Cluster) WHERE c.at <= $now AND c.until > $now RETURN c.id AS id"

    def seen(now: datetime) -> int:
        return len(database.read(lambda t: t.run(statement, now=now)))

    assert seen(MOMENT) == 1
    assert seen(MOMENT - timedelta(microseconds=1)) == 0
    assert seen(MOMENT + timedelta(microseconds=1)) == 1
    assert seen(END_OF_TIME) == 0


def test_nodes_relationships_paths_and_maps_become_plain_values(database: Database) -> None:
    pair = "CREATE (:Cluster {id: 'a', at: $at})-[:OF {key: 1, at: $at}]->(:Cluster {id: 'b'})"
    run(database, pair, at=MOMENT)
    shown = "{at: a.at, list: [a.at, 1]} AS m, date('2024-05-06') AS d"
    columns, rows = database.query(f"MATCH p = (a)-[r:OF]->(b) RETURN a, r, p, {shown}")
    assert columns == ("a", "r", "p", "m", "d")
    first, edge = {"id": "a", "at": MOMENT}, {"key": 1, "at": MOMENT}
    path = [first, {"id": "b"}, edge]
    assert rows == [(first, edge, path, {"at": MOMENT, "list": [MOMENT, 1]}, MOMENT.date())]


CREATE_COLUMNS = """
UNWIND range(0, size($id) - 1) AS i
CREATE (:Device {id: $id[i], slots: $slots[i], since: $since[i], cluster: $cluster})
"""


def test_columns_are_written_in_batches(database: Database) -> None:
    empty: dict[str, list[Any]] = {"id": [], "slots": [], "since": []}
    database.write(lambda t: t.run_columns(CREATE_COLUMNS, empty, cluster="c"))
    assert database.query("MATCH (d:Device) RETURN d")[1] == []
    ids = [f"d{i:03}" for i in range(105)]
    since = [MOMENT + timedelta(seconds=i) for i in range(105)]
    columns: dict[str, Any] = {"id": ids, "slots": np.arange(105), "since": since}
    database.write(lambda t: t.run_columns(CREATE_COLUMNS, columns, batch=25, cluster="c"))
    _, rows = database.query("MATCH (d:Device {cluster: 'c'}) RETURN d.id, d.slots, d.since ORDER BY d.id")
    assert rows == list(zip(ids, range(105), since, strict=True))
    ragged: dict[str, list[Any]]
    for ragged in ({}, {"id": ["a"], "slots": []}):
        with pytest.raises(ValueError, match="of one length"):
            database.write(lambda t, ragged=ragged: t.run_columns(CREATE_COLUMNS, ragged))  # type: ignore[misc]


def test_a_failed_write_leaves_nothing(database: Database) -> None:
    def fail(transaction: Transaction) -> None:
        transaction.run("CREATE (:Cluster {id: 'half'})")
        raise KeyError("work failed")

    with pytest.raises(KeyError):
        database.write(fail)
    assert database.query("MATCH (c:Cluster) RETURN c")[1] == []


def concurrently(count: int, work: Callable[[int], object]) -> None:
    """Run `work` in as many threads at once; raises what one of them raised."""
    barrier = threading.Barrier(count)

    def start(number: int) -> None:
        barrier.wait(timeout=PATIENCE)
        work(number)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(start, range(count)))


def test_writers_that_conflict_lose_nothing(database: Database) -> None:
    run(database, "CREATE (:Cluster {id: 'c', count: 0})")
    step = "MATCH (c:Cluster {id: 'c'}) SET c.count = c.count + 1"
    note = "MATCH (c:Cluster {id: 'c'}) CREATE (c)<-[:OF]-(:Content {id: $id})"

    def writer(number: int) -> None:
        for turn in range(8):

            def work(transaction: Transaction, turn: int = turn) -> None:
                transaction.run(step)
                transaction.run(note, id=f"{number}-{turn}")

            database.write(work)

    concurrently(4, writer)
    counted = "MATCH (c:Cluster)<-[:OF]-(x:Content) RETURN c.count AS count, count(x) AS contents"
    assert database.query(counted)[1] == [(32, 32)]


def test_a_race_to_create_the_same_node_makes_one(database: Database) -> None:
    def writer(number: int) -> None:
        for turn in range(6):
            run(database, "MERGE (a:Application {id: $id})", id=f"app{turn}")

    concurrently(4, writer)
    assert database.query("MATCH (a:Application) RETURN count(a)")[1] == [(6,)]


def test_a_full_disk_is_named(embedded_server: ServerAddress, tmp_path: Path, monkeypatch: Any) -> None:
    server = replace(embedded_server, home=tmp_path / "not" / "there")
    with server.connect() as database, pytest.raises(DatabaseError, match="the database refused"):
        run(database, "THIS FAILS")
    usage = shutil.disk_usage(tmp_path)._replace(free=3_999_999)
    monkeypatch.setattr("registry.installation.shutil.disk_usage", lambda folder: usage)
    with server.connect() as database, pytest.raises(DatabaseError) as caught:
        run(database, "THIS FAILS")
    assert str(caught.value).startswith(f"no space left on {tmp_path}, 3 MB free: make room")


def test_conflicts_end_at_the_deadline(embedded_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """ArcadeDB reports a conflict on commit, so an inner write can provoke one each time."""
    monkeypatch.setattr(registry.database.driver, "CONFLICT_SECONDS", 0.5)
    clock = SteeredClock()
    monkeypatch.setattr(registry.database.driver, "time", clock)
    database = embedded_database
    run(database, "MERGE (:Cluster {id: 'deadline'})")
    attempts = []

    def work(transaction: Transaction) -> None:
        attempts.append(1)
        transaction.run("MATCH (c:Cluster {id: 'deadline'}) SET c.outer = $n", n=len(attempts))
        run(database, "MATCH (c:Cluster {id: 'deadline'}) SET c.inner = $n", n=len(attempts))

    with pytest.raises(DatabaseError):
        database.write(work)
    assert len(attempts) > 2
    assert clock.now <= 0.5 + 0.75 * 0.5


def test_a_user_may_read_and_pass_parameters(database: Database) -> None:
    run(database, "CREATE (:Cluster {id: 'c', slots: 3})")
    statement = "MATCH (c:Cluster) WHERE c.slots > $least RETURN c.id AS id, c.slots AS slots"
    assert database.query(statement, least=2) == (("id", "slots"), [("c", 3)])
    # ArcadeDB names columns with the first row only.
    columns = ("id", "slots") if database.kind == "neo4j" else ()
    assert database.query(statement, least=3) == (columns, [])


def nodes_and_indexes(database: Database) -> tuple[int, set[str]]:
    """Not how often indexes were read."""
    columns, rows = database.query("SHOW INDEXES")
    return database.query("MATCH (n) RETURN count(n)")[1][0][0], {row[columns.index("name")] for row in rows}


def test_a_users_writes_are_refused_and_change_nothing(database: Database) -> None:
    before = nodes_and_indexes(database)
    for statement in (
        *("CREATE (:Cluster {id: 'x'})", "MATCH (s:Schema) SET s.version = 99"),
        *("MATCH (s:Schema) DETACH DELETE s", "CALL { CREATE (:Cluster {id: 'x'}) } RETURN 1"),
        *("CREATE INDEX sneaky FOR (c:Cluster) ON (c.colour)", "DROP CONSTRAINT cluster_id"),
    ):
        with pytest.raises(WriteRefused):
            database.query(statement)
    assert nodes_and_indexes(database) == before


def test_a_write_that_slips_through_is_not_kept(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neo4j refuses it in a read transaction; ArcadeDB runs it, so it is rolled back."""
    monkeypatch.setattr(registry.database.driver, "writing_word", lambda statement: None)
    if database.kind == "neo4j":
        with pytest.raises(DatabaseError):
            database.query("CREATE (:Cluster {id: 'x'})")
    else:
        database.query("CREATE (:Cluster {id: 'x'})")
    assert database.query("MATCH (c:Cluster) RETURN c")[1] == []


def test_a_statement_that_is_no_cypher_is_an_error_with_its_text(database: Database) -> None:
    with pytest.raises(DatabaseError) as caught:
        database.query("MATCH (n RETURN n")
    assert caught.value.text == "MATCH (n RETURN n"
    assert "\n" not in str(caught.value)
    assert "yntax" in caught.value.reason or "nvalid" in caught.value.reason


def test_hints_of_the_server_are_not_shown(database: Database, caplog: Any, capfd: Any) -> None:
    with caplog.at_level(logging.INFO):
        database.query("MATCH (n:NoSuchLabel)-[:NO_SUCH_TYPE]->(m) RETURN n.no_such_property, id(n)")
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_a_server_is_known_by_its_kind(database: Database, server_kind: str) -> None:
    assert database.kind == {"neo4j": "neo4j", "embedded": "arcadedb"}[server_kind]
    assert database.version


def refused(address: ServerAddress, **changed: str) -> DatabaseUnavailable:
    wrong = replace(address, **changed)  # type: ignore[arg-type]
    with pytest.raises(DatabaseUnavailable) as caught:
        Database.connect(wrong.uri, user=wrong.user, password=wrong.password, name=wrong.name)
    assert "\n" not in str(caught.value)
    assert caught.value.uri == wrong.uri
    assert caught.value.remedy
    assert address.password not in str(caught.value)
    return caught.value


def test_a_wrong_password_or_database_name_is_an_error(server: ServerAddress) -> None:
    assert "password is refused" in refused(server, password="wrong").reason
    assert "has no database 'nosuch'" in refused(server, name="nosuch").reason


def test_an_address_that_leads_nowhere_is_an_error(embedded_server: ServerAddress) -> None:
    for uri in ("http://localhost:7474", "localhost:7687", "", "bolt://nosuch.invalid:7687"):
        refused(embedded_server, uri=uri)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = refused(embedded_server, uri=f"bolt://127.0.0.1:{taken.getsockname()[1]}")
    assert "Connection refused" in error.reason
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = threading.Thread(target=lambda: listener.accept()[0].close())
        caller.start()
        refused(embedded_server, uri=f"bolt://127.0.0.1:{listener.getsockname()[1]}")
        caller.join(10)


def test_a_torn_read_is_tried_again_and_in_the_end_an_error(database: Database) -> None:
    tries = 0

    def torn(transaction: Transaction) -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise InconsistentGraph("read from before and after another's commit")
        return tries

    assert database.write(torn) == 3
    tries = -1_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("registry.database.driver.TORN_ATTEMPTS", 2)
        with pytest.raises(InconsistentGraph):
            database.read(torn)


@pytest.mark.parametrize(
    ("first", "known"), [("", set()), ("import numpy", {"numpy"}), ("import pandas", {"numpy", "pandas"})]
)
def test_the_driver_takes_only_libraries_that_are_imported(
    processes: None, first: str, known: set[str]
) -> None:
    program = f"""
import sys
{first}
from registry.database.driver import Database
from registry.errors import DatabaseUnavailable
try:
    Database.connect("bolt://127.0.0.1:9", wait_seconds=0)
except DatabaseUnavailable:
    from neo4j._optional_deps import np, pd
    print(np is not None, "numpy" in sys.modules, pd is not None, "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(name in known) for name in ("numpy", "numpy", "pandas", "pandas")]


def test_rows_are_reported_batch_by_batch_and_all_written(database: Database) -> None:
    shown: list[tuple[str, float, float | None]] = []

    def work(transaction: Transaction) -> list[dict[str, Any]]:
        shown.clear()
        counted = ProgressTransaction(
            transaction,
            lambda phase, done, total=None, best=None: shown.append((phase, done, total)),
            "writing",
        )
        given = "{id: $id[i], seq: $seq[i], name: $name}"
        statement = f"UNWIND range(0, size($id) - 1) AS i CREATE (:Cluster {given})"
        counted.run_columns(statement, {"id": list("abcdefg"), "seq": list(range(7))}, batch=3, name="n")
        counted.run_columns(statement, {"id": [], "seq": []}, name="n")
        found = counted.run("MATCH (c:Cluster {name: 'n'}) RETURN c.id AS id, c.seq AS seq ORDER BY seq")
        counted.finish()
        return found

    assert database.write(work) == [{"id": one, "seq": number} for number, one in enumerate("abcdefg")]
    assert shown == [*(("writing", done, None) for done in (0, 3, 6, 7)), ("writing", 7, 7)]


@pytest.fixture
def forwarder(server: ServerAddress) -> Iterator[Forwarder]:
    parts = urlsplit(server.uri)
    running = Forwarder((parts.hostname or "", parts.port or 0))
    yield running
    running.stop()


def connected(server: ServerAddress, forwarder: Forwarder, seconds: float) -> Database:
    login: dict[str, Any] = {"user": server.user, "password": server.password, "name": server.name}
    return Database.connect(f"bolt://127.0.0.1:{forwarder.port}", wait_seconds=seconds, **login)


def test_a_transaction_is_repeated_when_the_server_is_back(
    server: ServerAddress, forwarder: Forwarder, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    def restart() -> None:
        monkeypatch.undo()
        forwarder.start()

    def work(transaction: Transaction) -> int:
        attempts.append(1)
        transaction.run("CREATE (:Cluster {id: 'restart'})")
        if len(attempts) == 1:
            forwarder.stop()
            monkeypatch.setattr(registry.database.driver, "time", SteeredClock(restart))
        return len(transaction.run("MATCH (c:Cluster {id: 'restart'}) RETURN c.id"))

    with connected(server, forwarder, 60.0) as through:
        assert through.write(work) == 1
        assert through.query("MATCH (c:Cluster) RETURN count(c)")[1] == [(1,)]
    assert len(attempts) == 2


def test_a_stopping_server_without_users_is_waited_for(
    server: Any, forwarder: Forwarder, database: Database
) -> None:
    """What ArcadeDB answers on open connections then; a wrong password is not tried again."""
    attempts = []

    def work(transaction: Transaction) -> int:
        attempts.append(1)
        if len(attempts) == 1:
            raise answered("The credentials of this connection are no longer valid")
        return len(transaction.run("RETURN 1"))

    def never(transaction: Transaction) -> None:
        attempts.append(1)
        raise answered("The client is unauthorized due to authentication failure.")

    with connected(server, forwarder, 60.0) as through:
        assert through.write(work) == 1
        assert len(attempts) == 2
        with pytest.raises(DatabaseUnavailable, match="the user or the password is refused"):
            through.write(never)
        assert len(attempts) == 3


def answered(message: str) -> AuthError:
    """The driver's error for an answer of a server."""
    error = AuthError._hydrate_neo4j(code="Neo.ClientError.Security.Unauthorized", message=message)
    assert isinstance(error, AuthError)
    return error


def test_the_wait_for_a_server_ends(server: Any, forwarder: Forwarder, monkeypatch: Any) -> None:
    for wait, least in ((0.0, 0.0), (1.5, 0.5)):  # pauses double, with jitter: the last may not fit
        with connected(server, forwarder, wait) as through:
            forwarder.stop()
            clock = SteeredClock()
            monkeypatch.setattr(registry.database.driver, "time", clock)
            with pytest.raises(DatabaseUnavailable):
                through.read(lambda transaction: transaction.run("RETURN 1"))
            assert least <= clock.now <= wait + 0.75  # by the jitter of the last pause
            monkeypatch.undo()
        forwarder.start()


@pytest.mark.parametrize("call", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("shape", ["many rows", "one large row"])
def test_an_interrupt_in_the_middle_of_an_answer_keeps_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, call: int, shape: str
) -> None:
    receive: Any = BoltSocket.recv_into
    calls = []

    def interrupted(self: BoltSocket, buffer: Any, size: int) -> int:
        calls.append(size)
        if len(calls) == call:
            raise KeyboardInterrupt
        return int(receive(self, buffer, min(size, 50)))

    def work(transaction: Transaction) -> None:
        transaction.run("CREATE (:Cluster {id: 'half'})")
        made = "x" if shape == "many rows" else "collect(x) AS x"
        transaction.run(f"UNWIND range(1, 3000) AS x RETURN {made}")

    with monkeypatch.context() as patch:
        patch.setattr(BoltSocket, "recv_into", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.write(work)
    assert len(calls) == call  # nothing more was read of a torn answer
    assert database.query("MATCH (c:Cluster) RETURN count(c)")[1] == [(0,)]


@pytest.mark.parametrize(
    "uri", ["bolt://localhost:7687", "neo4j+s://x.example?policy=eu", "bolt://[::1]:7687", "bolt://10.0.0.1"]
)
def test_an_address_is_used_and_shown_as_it_is(uri: str) -> None:
    assert fault(uri) == ""
    assert shown(uri) == uri


@pytest.mark.parametrize(
    "uri", ["http://x", "bolt://", "localhost", "bolt://x:port", "bolt://[::1", "", "bolt:x"]
)
def test_what_is_no_address_is_named(uri: str) -> None:
    assert "not a Bolt address" in fault(uri)
    with pytest.raises(DatabaseUnavailable, match="not a Bolt address"):
        Database.connect(uri)


@pytest.mark.parametrize(
    ("uri", "masked"),
    [
        *(
            ("bolt://user:secret@host:7687", "bolt://***@host:7687"),
            ("bolt:user:secret@host", "bolt:***@host"),
        ),
        *((f"bolt://{user}@host", "bolt://***@host") for user in ("user:se@cr/et", ":secret", "user")),
        *((f"{start}user:secret@host", f"{start}***@host") for start in ("//", "neo4j+s://")),
        ("user:secret@host", "user:***@host"),
        *((f"bolt://host?{end}", "bolt://host?***") for end in ("password=secret", "policy=eu&x=secret")),
        *((f"bolt://host:7687{mark}p=secret", f"bolt://host:7687{mark}***") for mark in ("#", ";", "/?")),
    ],
)
def test_credentials_are_refused_and_masked(uri: str, masked: str) -> None:
    assert (fault(uri), shown(uri)) == (ELSEWHERE if "@" in uri else MORE, masked)
    with pytest.raises(DatabaseUnavailable, match=r"holds a user or a password|only \?policy=NAME") as caught:
        Database.connect(uri)
    assert masked in str(caught.value)
    assert "secret" not in f"{caught.value} {caught.value.uri}"
