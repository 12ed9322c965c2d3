"""Backups while others write: one moment, and nobody fails."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.database.local.server import ServerAddress
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support import paths
from tests.support.concurrent_writers import CONTENTS
from tests.support.fat_tree import at

OBSERVED = "MATCH (o:Observation)-[:SAW]->(:Content) RETURN o.id"


def save(registry: Registry, minute: int) -> None:
    fabric = CONTENTS[minute % len(CONTENTS)]
    registry.save(Intake(cluster="toy", observed_at=at(minute), fabric=fabric))


def test_a_backup_during_writes_is_one_moment(
    registry: Registry, server_of: ServerAddress, tmp_path: Path
) -> None:
    """Three processes write all the time; what was restored is a state that there was."""
    save(registry, 0)
    address = {name: getattr(server_of, name) for name in ("uri", "user", "password", "name")}
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.concurrent_writers", "write", str(number), "15"],
            stdin=subprocess.PIPE,
            cwd=paths.ROOT,
            text=True,
        )
        for number in (1, 2, 3)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(json.dumps(address))
        writer.stdin.close()
    wait_until_written(registry)
    backup(registry.database, tmp_path / "during")
    assert any(writer.poll() is None for writer in writers)
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    everything = set(registry.database.query(OBSERVED)[1])
    restore(registry.database, tmp_path / "during", replace=True)
    then = set(registry.database.query(OBSERVED)[1])
    assert 1 < len(then) < len(everything)
    assert then < everything
    seq = registry.database.query("MATCH (c:Cluster) RETURN c.seq")[1]
    numbers = registry.database.query("MATCH (o:Observation) RETURN max(o.seq)")[1]
    assert seq >= numbers
    before = links(registry.database)
    registry.fabrics.rebuild("toy")
    assert links(registry.database) == before


def links(database: Database) -> list[str]:
    text = "MATCH (a:Device)-[l:LINK]->(b:Device) RETURN a.id, b.id, l.key, l.valid_from, l.valid_to"
    return sorted(map(repr, database.query(text)[1]))


def wait_until_written(registry: Registry) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(registry.fabrics.observations("toy")) > 1:
            return
    raise TimeoutError
