"""Compaction of the embedded server's files."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from registry.database.backups import compact as module
from registry.database.backups.compact import compact
from registry.database.backups.restore import restore
from registry.database.driver import Database, Transaction
from registry.database.local.server import ensure_server, stop
from registry.database.pause import require_writable
from registry.database.schema import current_version, migrate
from registry.errors import DatabaseError

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

    monkeypatch.setattr(module, "restore", fail)
    with pytest.raises(DatabaseError, match="no space left"):
        compact(home)
    assert ids_in(home) == ["sweep 0"]
    assert sorted(path.name for path in home.iterdir()) == ["graph", "server"]


def test_writers_of_which_the_pause_was_over_are_not_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_meanwhile(fresh: Database, *_: object) -> None:
        with ensure_server(home).connect() as database:
            database.write(lambda transaction: transaction.run("CREATE (:Cluster {id: 'new', seq: 1})"))

    monkeypatch.setattr(module, "restore", write_meanwhile)
    with pytest.raises(DatabaseError, match="written to meanwhile"):
        compact(home)
    with ensure_server(home).connect() as database:
        assert database.query("MATCH (c:Cluster) RETURN c.id")[1] == [("new",)]


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
