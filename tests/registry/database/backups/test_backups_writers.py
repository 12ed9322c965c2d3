"""Backups while others write: one moment, and nobody fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.database.local.server import ServerAddress
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support import servers
from tests.support.concurrent_writers import CONTENTS
from tests.support.fat_tree import at
from tests.support.waiting import comes_true

OBSERVED = "MATCH (o:Observation)-[:SAW]->(:Content) RETURN o.id"
LINKS = "MATCH (a:Device)-[l:LINK]->(b:Device) RETURN a.id, b.id, l.key, l.valid_from, l.valid_to"


def test_a_backup_during_writes_is_one_moment(
    registry: Registry, server: ServerAddress, tmp_path: Path
) -> None:
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

    def written() -> int:
        return len(registry.database.query(OBSERVED)[1])

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, number) for number in range(3)]
        try:
            assert comes_true(lambda: written() > 1)
            backup(registry.database, tmp_path / "during")
            before = written()
            assert comes_true(lambda: written() > before)
        finally:
            enough.set()
        total = sum(writer.result() for writer in writers)
    everything = set(registry.database.query(OBSERVED)[1])
    assert len(everything) == total
    restore(registry.database, tmp_path / "during", replace=True)
    then = set(registry.database.query(OBSERVED)[1])
    assert 1 < len(then) < len(everything)
    assert then < everything
    seq = registry.database.query("MATCH (c:Cluster) RETURN c.seq")[1]
    assert seq >= registry.database.query("MATCH (o:Observation) RETURN max(o.seq)")[1]
    graph = links(registry.database)
    registry.fabrics.rebuild("toy")
    assert links(registry.database) == graph


def links(database: Database) -> list[str]:
    return sorted(map(repr, database.query(LINKS)[1]))
