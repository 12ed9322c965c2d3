"""``almanac cluster check``: from the database and from files, with an exit code for cron."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.almanac.conftest import SCAN, TABLES, Almanac
from tests.support import paths

DATA = paths.DATA / "infiniband"
TORUS = DATA / "torus-4x4x4-dor"


def check(almanac: Almanac, *words: object, code: int = 0) -> list[dict[str, Any]]:
    outcome = almanac("cluster", "check", *words, "--json")
    assert outcome.code == code, outcome.err
    return list(outcome.json["findings"])


def test_files_are_checked_without_a_database(offline: Almanac, tmp_path: Path) -> None:
    files = ["--fabric", TORUS / "ibnetdiscover.txt", "--fabric", TORUS / "opensm-lfts.dump.gz"]
    findings = check(offline, *files)
    assert {(one["check"], one["severity"]) for one in findings} == {("credit-loops", "warning")}
    for more, code in ((("warning",), 4), (("warning", "--only", "rails"), 0), (("never",), 0)):
        check(offline, *files, "--fail-on", *more, code=code)
    broken = tmp_path / "opensm-lfts.dump"
    lines = TABLES.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith("0x") and "Channel Adapter" in line)
    broken.write_text("".join(lines[:at] + lines[at + 1 :]))
    lost = ["--fabric", SCAN, "--fabric", broken]
    (finding,) = check(offline, *lost, code=4)
    # the first table is that of the leaf that the host hangs on: none of the 8 leaves gets there
    assert (finding["severity"], finding["count"]) == ("error", 8)
    assert "has no entry for the destination; for example the route from" in finding["text"]
    assert "reachability" in offline("cluster", "check", *lost).out
    offline.refused("cluster", "check", code=2)
    offline.refused("cluster", "check", "ft", "--fabric", SCAN, code=2)
    assert "rails" in offline.refused("cluster", "check", "--fabric", SCAN, "--only", "rail")


def test_a_cluster_is_checked_as_it_was_at_a_time_and_doctor_reports_its_sources(
    almanac: Almanac, tmp_path: Path
) -> None:
    for name, moment in (("fattree2-64-traffic", "2025-01-01"), ("fattree2-64-dead-spine", "2025-01-02")):
        files = [DATA / name / "ibnetdiscover.txt", DATA / name / "opensm-lfts.dump"]
        almanac.ok("ingest", *files, "--cluster", "ft", "--observed-at", moment)
    for moment in ("2025-01-01T12:00", "2025-01-03"):
        shown = almanac.ok("cluster", "check", "ft", "--at", moment).out
        assert shown.strip() == "no problems found"
    cut = tmp_path / "scan.txt"
    cut.write_text(SCAN.read_text()[:3000])
    almanac.refused("ingest", cut, "--cluster", "ft")
    states = {row["check"]: row for row in almanac("doctor", "--json").json}
    answer = states["source ft ibnetdiscover"]
    assert answer["state"] == "warning"
    assert answer["seen"].startswith("observed ")
    assert " ago; the last try failed: " in answer["seen"]
    assert "incomplete line of ibnetdiscover" in answer["seen"]


def test_a_plan_among_the_files_is_compared(offline: Almanac, tmp_path: Path) -> None:
    plan = tmp_path / "fabric.ndt"
    plan.write_text(
        "#StartDevice,StartPort,EndDevice,EndPort,LinkType\n"
        '"leaf01","Port 9","spine01","Port 1","LINK"\n"leaf01","Port 10","spine09","Port 2","LINK"\n'
    )
    files = ["--fabric", SCAN, "--fabric", plan, "--only", "wiring"]
    findings = check(offline, *files)
    (moved,) = [one for one in findings if one["severity"] == "warning"]
    assert moved["group"] == "wrong port"
    assert moved["text"].startswith("in the wrong port: leaf01:10 - ")
    assert moved["text"].endswith(" instead of leaf01:10 - spine09 Port 2")
    (note,) = [one for one in findings if one["severity"] == "note"]
    assert (note["group"], note["count"]) == ("plan", 10 + 7)  # cables of leaf01 and spine01 to others


def test_findings_are_listed_by_group_and_a_foreign_plan_fails(offline: Almanac, tmp_path: Path) -> None:
    whole = (paths.DATA / "formats/fabric.ndt").read_text()
    hosts, switches = tmp_path / "hosts.ndt", tmp_path / "switches.ndt"
    hosts.write_text(whole.replace(",node00", ",node09", 12))
    switches.write_text("#StartDevice,StartPort,EndDevice,EndPort\nleaf01,Port 20,spine01,Port 20\n")
    files = [option for path in (SCAN, hosts, switches) for option in ("--fabric", path)]
    wiring = ("cluster", "check", *files, "--only", "wiring")
    shown = offline.ok(*wiring).out
    assert "wiring: missing" in shown
    assert "wiring: wrong port" in shown
    assert "and 2 more: --all" in shown
    assert "more: --all" not in offline(*wiring, "--all").out
    assert shown.rstrip().endswith("compared with the intended wiring of 97 cables")
    hosts.write_text(whole.replace("node00", "knot00"))
    foreign = offline(*wiring)
    assert foreign.code == 4
    assert "the fabric has 12 of the 76 devices" in " ".join(foreign.out.split())


def test_errors_that_grow_between_two_sweeps_and_a_link_that_goes_down_are_found(
    almanac: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = paths.DATA / "counters" / "ibnetdiscover.txt"
    almanac.ok("ingest", scan, "--cluster", "ft", "--observed-at", "2025-01-01")
    for minute, symbols, downs in ((0, 4711, 2), (5, 94711, 12), (10, 94711, 12)):
        sweep = tmp_path / f"{minute}.csv"
        sweep.write_text(f"guid,port,symbol_errors,link_downed\n0x2c90000100100,1,{symbols},{downs}\n")
        moment = f"2025-01-02T12:{minute:02}"
        almanac.ok("ingest", sweep, "--cluster", "ft", "--observed-at", moment)
    found = {one["check"]: one for one in check(almanac, "ft", "--fail-on", "warning", code=4)}
    assert found["link-errors"]["subject"] == "leaf01:1"
    assert "90,000 symbol errors (limit 10)" in found["link-errors"]["text"]
    assert found["flapping-links"]["subject"] == "leaf01:1 - node0001:1"
    assert found["flapping-links"]["count"] == 10
    assert check(almanac, "ft", "--at", "2025-01-02T12:04") == []
    monkeypatch.setenv("ALMANAC_ERROR_LIMITS", "symbol_errors=inf,link_downed=10")
    assert check(almanac, "ft") == []
