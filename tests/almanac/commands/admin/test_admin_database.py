"""``almanac db``: backup, restore, verify and prune."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.database.driver import Database
from registry.database.schema import mark_loading
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.paths import DATA

EARLIER = paths.DATA / "dumps" / "schema-1.dump"


def test_a_registry_is_saved_restored_and_replaced(almanac: Almanac, tmp_path: Path) -> None:
    restored = almanac("db", "restore", EARLIER)
    assert (restored.code, restored.out) == (0, "")
    assert restored.err == f"52 nodes and 97 relationships restored from {EARLIER}\n"
    saved = almanac("db", "backup", tmp_path / "x")
    assert (saved.code, saved.out) == (0, "")
    assert saved.err == f"52 nodes and 97 relationships written to {tmp_path / 'x'}\n"
    refused = almanac.refused("db", "restore", tmp_path / "x")
    assert f"is not empty: restore with --replace, which first saves its content to {tmp_path}" in refused
    almanac.ok("db", "restore", "--replace", tmp_path / "x")
    assert (tmp_path / "x.previous").read_bytes() == (tmp_path / "x").read_bytes()
    assert [row["cluster"] for row in almanac.json("cluster", "list")] == ["hpc1"]


def test_an_interrupted_restore_is_repeated_by_the_command_that_the_error_names(
    almanac: Almanac, embedded_database: Database
) -> None:
    mark_loading(embedded_database, True)
    for command in (("cluster", "list"), ("db", "backup", "/none/x")):
        assert "run almanac db restore again with that file" in almanac.refused(*command)
    almanac.ok("db", "restore", EARLIER)
    almanac.ok("cluster", "list")


def test_a_damaged_file_is_refused(almanac: Almanac, tmp_path: Path) -> None:
    data = bytearray(EARLIER.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "x").write_bytes(data)
    assert f"almanac: {tmp_path / 'x'}" in almanac.refused("db", "restore", tmp_path / "x")
    assert almanac.json("cluster", "list") == []


def test_the_earlier_names_work_and_print_a_note_but_are_not_shown(offline: Almanac, tmp_path: Path) -> None:
    note = f"note: this spelling ends with the next version; write: almanac db restore {EARLIER}"
    assert offline.refused("db", "load", EARLIER, code=3).splitlines()[0] == note
    shown = offline("db", "--help").out
    assert "backup" in shown
    assert "dump" not in shown
    assert "load" not in shown


DAMAGED = paths.DATA / "dumps" / "schema-4.dump"
KEYS = {"checked", "findings", "restored", "joined", "rebuilt", "deleted"}


def run(database: Database, statement: str, **parameters: object) -> None:
    database.write(lambda transaction: transaction.run(statement, **parameters))


@pytest.fixture
def restored(almanac: Almanac) -> Almanac:
    almanac.ok("db", "restore", DAMAGED)
    return almanac


def test_problems_are_shown_repaired_and_decide_the_exit_code(
    restored: Almanac, embedded_database: Database
) -> None:
    shown = restored.ok("db", "verify").out
    assert shown.splitlines()[-1] == "no problems found"
    assert "2 snapshots" in shown
    document = restored.json("db", "verify")
    assert set(document) == KEYS
    assert (document["findings"], document["deleted"]) == ([], {})
    assert document["checked"]["snapshots"] == 2

    link = "MATCH (:Device {name: 'leaf2'})-[l:LINK {src_port: 8}]->() DELETE l"
    run(embedded_database, link)
    repaired = restored.json("db", "verify", "--repair")  # nothing is lost
    assert (repaired["rebuilt"], repaired["deleted"]) == (["hpc1"], {})
    (finding,) = repaired["findings"]
    assert set(finding) == {"problem", "of", "id", "cluster", "reason", "harmless", "left"}
    assert (finding["problem"], finding["left"]) == ("graph", False)

    run(embedded_database, link)
    ((sweep,),) = embedded_database.query("MATCH (s:CounterSweep) RETURN s.id ORDER BY s.at LIMIT 1")[1]
    run(embedded_database, "MATCH (s:CounterSweep {id: $id}) SET s.blob = $blob", id=sweep, blob=b"FABA")
    found = restored("db", "verify")
    assert found.code == 4
    assert "2 problems found: almanac db verify --repair repairs them" in found.out
    lost = restored("db", "verify", "--repair")
    assert lost.code == 4  # a sweep is lost
    assert "rebuilt: derived graph of hpc1" in lost.out
    assert f"deleted: counter sweeps: {sweep}" in lost.out
    assert lost.out.splitlines()[-1] == "no problems are left"
    restored.ok("db", "verify")


def test_a_backup_of_a_damaged_registry(
    restored: Almanac, embedded_database: Database, tmp_path: Path
) -> None:
    run(embedded_database, "MATCH (t:Trace) SET t.ranks = 9")
    restored.ok("db", "backup", tmp_path / "x")
    assert "--accept-damaged" in restored.refused("db", "restore", "--replace", tmp_path / "x")
    assert not (tmp_path / "x.previous").exists()
    restored.ok("db", "restore", "--replace", "--accept-damaged", tmp_path / "x")
    assert restored("db", "verify").code == 4


TREE = DATA / "infiniband" / "fattree2-64-ftree" / "ibnetdiscover.txt"


def test_the_settings_decide_what_is_deleted(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    for hour in range(1, 6):
        time = f"2026-01-0{hour // 3 + 1}T0{hour}:00:00Z"
        almanac.ok("ingest", TREE, "--cluster", "ft", "--observed-at", time)
    kept = almanac("db", "prune", "--yes")
    assert (kept.code, kept.out) == (0, "nothing to delete\n")
    assert "the settings keep all: see keep_observations" in kept.err
    monkeypatch.setenv("ALMANAC_KEEP_OBSERVATIONS", "daily")
    planned = almanac.json("db", "prune", "--dry-run")
    assert planned["rules"]["keep_observations"] == "daily"
    assert planned["deleted"] == [
        {"cluster": "ft", "observations": 3, "counters": 0, "placements": 0, "runs": 0}
    ]
    assert "would delete: ft: observations: 3" in almanac("db", "prune", "--dry-run").out
    assert len(almanac.json("observation", "list", "ft")) == 5
    assert almanac.json("db", "prune", "--yes") == planned | {"dry_run": False}
    listed = almanac.json("observation", "list", "ft")
    assert [row["observed_at"] for row in listed] == ["2026-01-01T02:00:00Z", "2026-01-02T05:00:00Z"]
    rows = {row["setting"]: row["value"] for row in almanac.json("config", "show")["settings"]}
    assert (rows["keep_observations"], rows["keep_runs"]) == ("daily", "all")


@pytest.mark.parametrize(
    ("key", "rule", "reason"),
    [
        ("KEEP_RUNS", "monthly", "setting keep_runs: 'monthly' is not a rule such as all, newest 1000"),
        ("KEEP_COUNTERS", "weekly", "sweeps become hourly sums after 7 days"),
    ],
)
def test_a_rule_that_is_none_deletes_nothing(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch, key: str, rule: str, reason: str
) -> None:
    monkeypatch.setenv(f"ALMANAC_{key}", rule)
    refused = almanac.refused("db", "prune", "--yes")
    assert f"setting {key.lower()}: " in refused
    assert reason in refused
