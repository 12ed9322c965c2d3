"""``almanac cluster check``: from the database and from files, with an exit code for cron."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA / "infiniband"
TORUS = DATA / "torus-4x4x4-dor"
TREE = DATA / "fattree2-64-traffic"


def test_files_are_checked_without_a_database(almanac: Almanac, tmp_path: Path) -> None:
    files = ["--fabric", TORUS / "ibnetdiscover.txt", "--fabric", TORUS / "opensm-lfts.dump.gz"]
    outcome = almanac("cluster", "check", *files, "--json")
    assert outcome.code == 0, outcome.err
    findings = outcome.json["findings"]
    assert {(one["check"], one["severity"]) for one in findings} == {("credit-loops", "warning")}
    assert almanac("cluster", "check", *files, "--fail-on", "warning").code == 4
    assert almanac("cluster", "check", *files, "--fail-on", "warning", "--only", "rails").code == 0
    assert almanac("cluster", "check", *files, "--fail-on", "never").code == 0


def test_a_cluster_is_checked_as_it_was_at_a_time(almanac: Almanac) -> None:
    for name, moment in (("fattree2-64-traffic", "2025-01-01"), ("fattree2-64-dead-spine", "2025-01-02")):
        folder = DATA / name
        files = [folder / "ibnetdiscover.txt", folder / "opensm-lfts.dump"]
        assert almanac("ingest", *files, "--cluster", "ft", "--observed-at", moment).code == 0
    for moment in ("2025-01-01T12:00", "2025-01-03"):
        outcome = almanac("cluster", "check", "ft", "--at", moment)
        assert (outcome.code, outcome.out.strip()) == (0, "no problems found"), outcome.err


def test_lost_routes_fail_and_are_reported(almanac: Almanac, tmp_path: Path) -> None:
    tables = (TREE / "opensm-lfts.dump").read_text()
    broken = tmp_path / "opensm-lfts.dump"
    lines = tables.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith("0x") and "Channel Adapter" in line)
    broken.write_text("".join(lines[:at] + lines[at + 1 :]))
    files = ["--fabric", TREE / "ibnetdiscover.txt", "--fabric", broken]
    outcome = almanac("cluster", "check", *files, "--json")
    assert outcome.code == 4
    (finding,) = outcome.json["findings"]
    # the first table is that of the leaf that the host hangs on: none of the 8 leaves gets there
    assert (finding["severity"], finding["count"]) == ("error", 8)
    assert "has no entry for the destination; for example the route from" in finding["text"]
    assert "reachability" in almanac("cluster", "check", *files).out


def test_a_check_that_there_is_not_and_a_call_without_a_fabric_are_refused(almanac: Almanac) -> None:
    assert almanac("cluster", "check").code == 2
    assert almanac("cluster", "check", "ft", "--fabric", TREE / "ibnetdiscover.txt").code == 2
    outcome = almanac("cluster", "check", "--fabric", TREE / "ibnetdiscover.txt", "--only", "rail")
    assert outcome.code == 1
    assert "rails" in outcome.err


def test_doctor_reports_the_age_of_each_source_and_what_failed(almanac: Almanac, tmp_path: Path) -> None:
    assert almanac("ingest", TREE / "ibnetdiscover.txt", "--cluster", "ft").code == 0
    cut = tmp_path / "scan.txt"
    cut.write_text((TREE / "ibnetdiscover.txt").read_text()[:3000])
    assert almanac("ingest", cut, "--cluster", "ft").code == 1
    states = {row["check"]: row for row in almanac("doctor", "--json").json}
    answer = states["source ft ibnetdiscover"]
    assert answer["state"] == "warning"
    assert answer["seen"].startswith("observed ")
    assert " ago; the last try failed: " in answer["seen"]
    assert "incomplete line of ibnetdiscover" in answer["seen"]


def test_a_plan_among_the_files_is_compared(almanac: Almanac, tmp_path: Path) -> None:
    plan = tmp_path / "fabric.ndt"
    plan.write_text(
        "#StartDevice,StartPort,EndDevice,EndPort,LinkType\n"
        '"leaf01","Port 9","spine01","Port 1","LINK"\n"leaf01","Port 10","spine09","Port 2","LINK"\n'
    )
    files = ["--fabric", TREE / "ibnetdiscover.txt", "--fabric", plan, "--only", "wiring"]
    findings = almanac("cluster", "check", *files, "--json").json["findings"]
    (moved,) = [one for one in findings if one["severity"] == "warning"]
    assert moved["group"] == "wrong port"
    assert moved["text"].startswith("in the wrong port: leaf01:10 - ")
    assert moved["text"].endswith(" instead of leaf01:10 - spine09 Port 2")
    (note,) = [one for one in findings if one["severity"] == "note"]
    assert (note["group"], note["count"]) == ("plan", 10 + 7)  # cables of leaf01 and spine01 to others


def test_findings_are_listed_by_group_and_a_foreign_plan_fails(almanac: Almanac, tmp_path: Path) -> None:
    whole = (paths.DATA / "formats/fabric.ndt").read_text()
    hosts, switches = tmp_path / "hosts.ndt", tmp_path / "switches.ndt"
    hosts.write_text(whole.replace(",node00", ",node09", 12))
    switches.write_text("#StartDevice,StartPort,EndDevice,EndPort\nleaf01,Port 20,spine01,Port 20\n")
    files = [
        option for path in (TREE / "ibnetdiscover.txt", hosts, switches) for option in ("--fabric", path)
    ]
    outcome = almanac("cluster", "check", *files, "--only", "wiring")
    assert outcome.code == 0
    assert "wiring: missing" in outcome.out
    assert "wiring: wrong port" in outcome.out
    assert "and 2 more: --all" in outcome.out
    assert "more: --all" not in almanac("cluster", "check", *files, "--only", "wiring", "--all").out
    assert outcome.out.rstrip().endswith("compared with the intended wiring of 97 cables")
    hosts.write_text(whole.replace("node00", "knot00"))
    foreign = almanac("cluster", "check", *files, "--only", "wiring")
    assert foreign.code == 4
    assert "the fabric has 12 of the 76 devices" in " ".join(foreign.out.split())


def test_errors_that_grow_between_two_sweeps_and_a_link_that_goes_down_are_found(
    almanac: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = paths.DATA / "counters" / "ibnetdiscover.txt"
    assert almanac("ingest", scan, "--cluster", "ft", "--observed-at", "2025-01-01").code == 0
    for minute, symbols, downs in ((0, 4711, 2), (5, 94711, 12), (10, 94711, 12)):
        sweep = tmp_path / f"{minute}.csv"
        sweep.write_text(f"guid,port,symbol_errors,link_downed\n0x2c90000100100,1,{symbols},{downs}\n")
        moment = f"2025-01-02T12:{minute:02}"
        assert almanac("ingest", sweep, "--cluster", "ft", "--observed-at", moment).code == 0
    outcome = almanac("cluster", "check", "ft", "--fail-on", "warning", "--json")
    assert outcome.code == 4, outcome.err
    found = {one["check"]: one for one in outcome.json["findings"]}
    assert found["link-errors"]["subject"] == "leaf01:1"
    assert "90,000 symbol errors (limit 10)" in found["link-errors"]["text"]
    assert found["flapping-links"]["subject"] == "leaf01:1 - node0001:1"
    assert found["flapping-links"]["count"] == 10
    before = almanac("cluster", "check", "ft", "--at", "2025-01-02T12:04", "--json")
    assert before.json["findings"] == []
    monkeypatch.setenv("ALMANAC_ERROR_LIMITS", "symbol_errors=inf,link_downed=10")
    assert almanac("cluster", "check", "ft", "--json").json["findings"] == []
