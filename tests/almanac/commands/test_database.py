"""``almanac db``: backup, restore, verify and prune; an earlier version's registry; damaged files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.database.driver import Database
from registry.database.embedded_files import REMEDY
from registry.database.embedded_server import ensure_server, stop
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


def test_an_interrupted_restore_is_repeated_as_asked(almanac: Almanac, embedded_database: Database) -> None:
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


DAMAGED = paths.DATA / "dumps" / "schema-4.dump"
KEYS = {"checked", "findings", "restored", "joined", "rebuilt", "deleted"}


def run(database: Database, statement: str, **parameters: object) -> None:
    database.write(lambda transaction: transaction.run(statement, **parameters))


@pytest.fixture
def restored(almanac: Almanac) -> Almanac:
    almanac.ok("db", "restore", DAMAGED)
    return almanac


def test_problems_are_shown_repaired_and_exit_with_4(restored: Almanac, embedded_database: Database) -> None:
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


def test_backups_of_damaged_content(restored: Almanac, embedded_database: Database, tmp_path: Path) -> None:
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
    (deleted,) = planned["deleted"]
    assert deleted == {"cluster": "ft", "observations": 3, "counters": 0, "placements": 0, "runs": 0}
    assert "would delete: ft: observations: 3" in almanac("db", "prune", "--dry-run").out
    assert len(almanac.json("observation", "list", "ft")) == 5
    assert almanac.json("db", "prune", "--yes") == planned | {"dry_run": False}
    listed = almanac.json("observation", "list", "ft")
    assert [row["observed_at"] for row in listed] == ["2026-01-01T02:00:00Z", "2026-01-02T05:00:00Z"]
    rows = {row["setting"]: row["value"] for row in almanac.json("config", "show")["settings"]}
    assert (rows["keep_observations"], rows["keep_runs"]) == ("daily", "all")


def test_a_rule_that_is_none_deletes_nothing(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, rule, reason in (
        ("KEEP_RUNS", "monthly", "setting keep_runs: 'monthly' is not a rule such as all, newest 1000"),
        ("KEEP_COUNTERS", "weekly", "sweeps become hourly sums after 7 days"),
    ):
        with monkeypatch.context() as only:
            only.setenv(f"ALMANAC_{key}", rule)
            refused = almanac.refused("db", "prune", "--yes")
        assert f"setting {key.lower()}: " in refused
        assert reason in refused


DUMPS = paths.DATA / "dumps"
UNTIMED: dict[str, object] = {"iteration_seconds": None, "iteration_from": None}
SINCE: dict[str, dict[str, object]] = {"job show": {"unknown_hosts": [], **UNTIMED}, "job list": UNTIMED}
"""Keys that commands print since then, with their values for that registry."""
COUNTS = {"hosts": "host_count", "adapters": "adapter_count", "switches": "switch_count"}
RENAMED: dict[str, dict[str, str]] = {
    "cluster optical": {"configuration": "circuit_plan", "told_at": "stored_at"},
    "cluster show": {**COUNTS, "cables": "cable_count", "routing": "routing_id"},
    "history": {"id": "placement", "seconds": "wall_seconds", "bounds": "lower_bound"},
    "history --circuits": {
        "id": "circuit_plan",
        "profiles": "profile_ids",
        "profile_names": "profiles",
        "jobs": "job_ids",
        "circuits": "circuit_count",
        "removed": "removed_count",
        "inserted": "added_count",
        "upper_bound": "upper_bound_throughput",
        "bound": "upper_bound_name",
    },
    "history --simulations": {"id": "simulation", "profile": "profile_id", "throughput": "bytes_per_second"},
    "job": {"profile": "profile_id", "source": "origin"},
    "profile": {"id": "profile_id", "source": "origin"},
}
"""Keys of documents and of their rows that have another name since then; the longest command that fits."""


def of_now(command: str, row: dict[str, object]) -> dict[str, object]:
    """Return an object that the earlier version printed, with the present names of its keys."""
    fitting = sorted((words for words in RENAMED if command.startswith(words)), key=len)
    names = RENAMED[fitting[-1]] if fitting else {}
    found = {names.get(key, key): value for key, value in row.items()}
    for key in ("cables_appeared", "cables_vanished"):
        if isinstance(cables := found.get(key), list):
            found[key] = [cable_of_now(cable) for cable in cables]
    return found


def cable_of_now(cable: dict[str, object]) -> dict[str, object]:
    ends = {
        end: {"name": cable[end], "guid": cable[f"{end}_guid"], "port": cable[f"{end}_port"]}
        for end in ("source", "target")
    }
    return ends | {
        "cable_count": cable["cables"],
        "capacity": cable["capacity"],
        "capacity_back": cable["capacity_back"],
    }


def test_the_history_of_an_earlier_dump_is_what_it_was(almanac: Almanac) -> None:
    almanac.ok("db", "restore", DUMPS / "schema-5.dump")
    names = {row["profile_id"]: row["profile"] for row in almanac.json("profile", "list")}
    for command, expected in json.loads((DUMPS / "schema-5.json").read_text("utf-8")).items():
        added = next((keys for words, keys in SINCE.items() if command.startswith(words)), None)
        shown = almanac.json(*command.replace("history --", "history ").split())  # recorded as it was spelt
        if command.startswith("cluster show"):
            shown["host_count"] += shown.pop("unnamed_adapter_count")
        if isinstance(expected, list):
            expected = [of_now(command, row) | (added or {}) for row in expected]
        else:
            expected = of_now(command, expected) | (added or {})
        if command.startswith("job "):
            for row in expected if isinstance(expected, list) else [expected]:
                row["profile"] = names.get(row["profile_id"])
        assert shown == expected, command


MISSING = "databases/almanac/dictionary.0.65536.v1.dict is missing"


@pytest.fixture
def home(
    offline: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: None
) -> Iterator[Path]:
    """A data folder whose server does not start, as a file is missing."""
    for name in ("ALMANAC_DB", "ALMANAC_DB_USER", "ALMANAC_DB_PASSWORD", "ALMANAC_DB_NAME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("ALMANAC_HOME", str(folder))
    ensure_server(folder)
    stop(folder)
    (folder / "graph" / MISSING.split()[0]).unlink()
    yield folder
    stop(folder)


def test_damaged_files_are_findings_and_the_remedy_is_named(home: Path, offline: Almanac) -> None:
    done = offline("db", "verify")
    assert done.code == 4
    assert "dictionary" in done.out
    assert f"--repair cannot repair as files are damaged: {REMEDY}" in " ".join(done.out.split())
    (finding,) = json.loads(offline("db", "verify", "--repair", "--json").out)["findings"]
    assert (finding["problem"], finding["of"], finding["left"]) == ("file", "files of the database", True)
    assert f"{finding['id']} {finding['reason']}" == MISSING
    done = offline("doctor", "--json")
    assert done.code in (1, 3)  # the server may start with a new file
    checks = {one["check"]: one for one in json.loads(done.out)}
    assert checks["files of the database"] == {
        "check": "files of the database",
        "state": "failed",
        "seen": f"{MISSING}: {REMEDY}",
    }
