"""``almanac db verify``: exit codes, text and JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.database.driver import Database
from tests.almanac.conftest import Almanac
from tests.support import paths

EARLIER = paths.DATA / "dumps" / "schema-4.dump"
KEYS = {"checked", "findings", "restored", "joined", "rebuilt", "deleted"}


def run(database: Database, statement: str, **parameters: object) -> None:
    database.write(lambda transaction: transaction.run(statement, **parameters))


@pytest.fixture
def filled(embedded: Almanac) -> Almanac:
    assert embedded("db", "restore", EARLIER).code == 0
    return embedded


def test_an_intact_registry(filled: Almanac) -> None:
    shown = filled("db", "verify")
    assert shown.code == 0
    assert shown.out.splitlines()[-1] == "no problems found"
    assert "2 snapshots" in shown.out
    document = filled("db", "verify", "--json").json
    assert set(document) == KEYS
    assert (document["findings"], document["deleted"]) == ([], {})
    assert document["checked"]["snapshots"] == 2


def test_a_deleted_link_and_an_unreadable_sweep(filled: Almanac, embedded_database: Database) -> None:
    run(embedded_database, "MATCH (:Device {name: 'leaf2'})-[l:LINK {src_port: 8}]->() DELETE l")
    ((sweep,),) = embedded_database.query("MATCH (s:CounterSweep) RETURN s.id ORDER BY s.at LIMIT 1")[1]
    run(embedded_database, "MATCH (s:CounterSweep {id: $id}) SET s.blob = $blob", id=sweep, blob=b"FABA")
    shown = filled("db", "verify")
    assert shown.code == 4
    assert "2 problems found: almanac db verify --repair repairs them" in shown.out
    repaired = filled("db", "verify", "--repair")
    assert repaired.code == 4  # a sweep is lost
    assert "rebuilt: derived graph of hpc1" in repaired.out
    assert f"deleted: counter sweeps: {sweep}" in repaired.out
    assert repaired.out.splitlines()[-1] == "no problems are left"
    assert filled("db", "verify").code == 0


def test_a_repair_without_losses_exits_with_0(filled: Almanac, embedded_database: Database) -> None:
    run(embedded_database, "MATCH (:Device {name: 'leaf2'})-[l:LINK {src_port: 8}]->() DELETE l")
    shown = filled("db", "verify", "--repair", "--json")
    assert shown.code == 0
    assert (shown.json["rebuilt"], shown.json["deleted"]) == (["hpc1"], {})
    (finding,) = shown.json["findings"]
    assert set(finding) == {"problem", "of", "id", "cluster", "reason", "harmless", "left"}
    assert (finding["problem"], finding["left"]) == ("graph", False)


def test_a_backup_of_a_damaged_registry(filled: Almanac, embedded_database: Database, tmp_path: Path) -> None:
    run(embedded_database, "MATCH (t:Trace) SET t.ranks = 9")
    assert filled("db", "backup", tmp_path / "x").code == 0
    refused = filled("db", "restore", "--replace", tmp_path / "x")
    assert refused.code == 1
    assert "--accept-damaged" in refused.err
    assert not (tmp_path / "x.previous").exists()
    assert filled("db", "restore", "--replace", "--accept-damaged", tmp_path / "x").code == 0
    assert filled("db", "verify").code == 4
