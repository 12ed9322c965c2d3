"""``almanac cluster``: check, delete, rename, merge; insides of hosts; fabrics and ranks of jobs as files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from registry.exports.catalog import FORMATS
from tests.almanac.conftest import SCAN, TABLES, Almanac
from tests.support.paths import DATA

INFINIBAND = DATA / "infiniband"
TORUS = INFINIBAND / "torus-4x4x4-dor"


def check(almanac: Almanac, *words: object, code: int = 0) -> list[dict[str, Any]]:
    outcome = almanac("cluster", "check", *words, "--json")
    assert outcome.code == code, outcome.err
    return list(outcome.json["findings"])


def test_files_are_checked_without_a_database(offline: Almanac, tmp_path: Path) -> None:
    files = ["--fabric", TORUS / "ibnetdiscover.txt", "--fabric", TORUS / "opensm-lfts.dump.gz"]
    findings = check(offline, *files)
    assert {(one["check"], one["severity"]) for one in findings} == {
        ("credit-loops", "warning"),
        ("slow-links", "note"),  # cables at FDR between models of EDR
    }
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


def test_clusters_are_checked_as_of_a_time_doctor_reports_sources(almanac: Almanac, tmp_path: Path) -> None:
    for name, moment in (("fattree2-64-traffic", "2025-01-01"), ("fattree2-64-dead-spine", "2025-01-02")):
        files = [INFINIBAND / name / "ibnetdiscover.txt", INFINIBAND / name / "opensm-lfts.dump"]
        almanac.ok("ingest", *files, "--cluster", "ft", "--observed-at", moment)
    assert almanac.ok("cluster", "check", "ft", "--at", "2025-01-01T12:00").out == "no problems found\n"
    now = almanac("cluster", "check", "ft", "--at", "2025-01-03")
    assert (now.code, "switch spine02 is missing with 8 cables" in now.out) == (4, True)
    cut = tmp_path / "scan.txt"
    cut.write_text(SCAN.read_text()[:3000])
    almanac.refused("ingest", cut, "--cluster", "ft")
    states = {row["check"]: row for row in almanac("doctor", "--json").json}
    answer = states["source ft ibnetdiscover"]
    assert (answer["state"], " ago; the last try failed: " in answer["seen"]) == ("warning", True)
    assert "incomplete line of ibnetdiscover" in answer["seen"]


def test_findings_are_listed_by_group_and_a_foreign_plan_fails(offline: Almanac, tmp_path: Path) -> None:
    whole = (DATA / "formats/fabric.ndt").read_text()
    hosts, switches = tmp_path / "hosts.ndt", tmp_path / "switches.ndt"
    hosts.write_text(whole.replace(",node00", ",node09", 12))
    switches.write_text("#StartDevice,StartPort,EndDevice,EndPort\nleaf01,Port 20,spine01,Port 20\n")
    files = [option for path in (SCAN, hosts, switches) for option in ("--fabric", path)]
    wiring = ("cluster", "check", *files, "--only", "wiring")
    assert {one["group"] for one in check(offline, *files, "--only", "wiring")} >= {"missing", "wrong port"}
    shown = offline.ok(*wiring).out
    for words in ("wiring: missing", "wiring: wrong port", "and 2 more: --all"):
        assert words in shown
    assert "more: --all" not in offline(*wiring, "--all").out
    assert shown.rstrip().endswith("compared with the intended wiring of 97 cables")
    hosts.write_text(whole.replace("node00", "knot00"))
    foreign = offline(*wiring)
    assert foreign.code == 4
    assert "the fabric has 12 of the 76 devices" in " ".join(foreign.out.split())


def test_errors_that_grow_between_two_sweeps_and_a_link_that_goes_down_are_found(
    almanac: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = DATA / "counters" / "ibnetdiscover.txt"
    almanac.ok("ingest", scan, "--cluster", "ft", "--observed-at", "2025-01-01")
    for minute, symbols, downs in ((0, 4711, 2), (5, 94711, 12), (10, 94711, 12)):
        sweep = tmp_path / f"{minute}.csv"
        sweep.write_text(f"guid,port,symbol_errors,link_downed\n0x2c90000100100,1,{symbols},{downs}\n")
        moment = f"2025-01-02T12:{minute:02}"
        almanac.ok("ingest", sweep, "--cluster", "ft", "--observed-at", moment)
    found = {one["check"]: one for one in check(almanac, "ft", "--fail-on", "warning", code=4)}
    assert "90,000 symbol errors (limit 10)" in found["link-errors"]["text"]
    assert (found["link-errors"]["subject"], found["flapping-links"]["count"]) == ("leaf01:1", 10)
    assert check(almanac, "ft", "--at", "2025-01-02T12:04") == []
    monkeypatch.setenv("ALMANAC_ERROR_LIMITS", "symbol_errors=inf,link_downed=10")
    assert check(almanac, "ft") == []


def test_a_cluster_is_renamed_merged_and_deleted(almanac: Almanac) -> None:
    for cluster, name, day in (
        ("old", "fattree2-64-ftree", 1),
        ("new", "fattree2-64-broken-link", 2),
        ("torus", TORUS.name, 3),
    ):
        path = INFINIBAND / name / "ibnetdiscover.txt"
        almanac.ok("ingest", path, "--cluster", cluster, "--observed-at", f"2026-01-0{day}")
    renamed = almanac.json("cluster", "rename", "old", "hpc", "--yes")
    assert set(renamed) == {"dry_run", "moved", "already_there", "conflicts"}
    assert (renamed["moved"]["devices"], renamed["conflicts"]) == (76, [])
    assert "this cluster exists" in almanac("cluster", "rename", "hpc", "new", "--yes").err
    assert "is no name of a cluster" in almanac("cluster", "rename", "hpc", "a\x1bb", "--yes").err
    refused = almanac.refused("cluster", "merge", "torus", "hpc", "--yes")
    assert "only 72 of 192 devices are in both fabrics; --force merges them nevertheless" in refused
    planned = almanac("cluster", "merge", "new", "hpc", "--dry-run")
    assert "would move: ingest runs: 1, observations: 1, snapshots: 1" in planned.out
    assert "already there: devices: 75" in planned.out
    almanac.ok("cluster", "merge", "new", "hpc", "--yes")
    listed = almanac.json("cluster", "list")
    assert [(row["cluster"], row["observations"]) for row in listed] == [("hpc", 2), ("torus", 1)]
    assert almanac.json("cluster", "show", "hpc")["host_count"] == 63
    planned = almanac.json("cluster", "delete", "torus", "--dry-run")
    assert (planned["deleted"]["devices"], planned["deleted"]["clusters"]) == (192, 1)
    assert len(almanac.json("cluster", "list")) == 2
    assert almanac.json("cluster", "delete", "torus", "--yes") == planned | {"dry_run": False}


def test_layouts_are_listed_with_cores_and_adapters_as_of_a_time(almanac: Almanac, tmp_path: Path) -> None:
    scan, layout = tmp_path / "links.csv", DATA / "hwloc" / "two_rails_v2.xml"
    scan.write_text("source,target,capacity\nn0001,leaf,1\nn0002,leaf,1\nleaf,spine,1\n")
    almanac.ok("ingest", scan, "--cluster", "c", "--observed-at", "2026-05-01")
    assert almanac.json("cluster", "layouts", "c") == []
    assert "no host layouts of c are stored" in almanac("cluster", "layouts", "c").out
    almanac.ok("ingest", layout, "--cluster", "c", "--observed-at", "2026-05-02")
    (row,) = almanac.json("cluster", "layouts", "c")
    assert (row["host"], row["since"]) == ("n0001", "2026-05-02T00:00:00Z")
    assert sum(row["cores_per_domain"]) == row["cores"]
    assert [one["name"] for one in row["adapters"] if one["fabric"]] == ["mlx5_0", "mlx5_1"]
    assert "n0001" in almanac("cluster", "layouts", "c").out
    assert almanac.json("cluster", "layouts", "c", "--at", "2026-05-01T12:00") == []


NOT_READ = ("kubernetes-labels", "kueue-topology", "volcano-hypernodes")


@pytest.fixture
def changed(almanac: Almanac) -> Almanac:
    """Cluster ft as it was scanned in May, and in June with a spine less."""
    rest = INFINIBAND / "fattree2-64-dead-spine" / "ibnetdiscover.txt"
    for path, month in ((SCAN, 5), (rest, 6)):
        almanac.ok("ingest", path, "--cluster", "ft", "--observed-at", f"2026-0{month}-01T00:00:00Z")
    return almanac


def test_every_format_is_written_as_of_a_time_and_read_back(changed: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    for format in FORMATS.names:
        export = ("cluster", "export", "ft", "--at", "2026-05-02", f"{format}={path}")
        note = changed.ok(*export).err
        assert f"{format} of ft at 2026-05-01 00:00:00 UTC written to {path}" in note
        if format not in NOT_READ:
            back = changed.json("ingest", path, "--cluster", "again", "--dry-run")
            assert back["host_count"] == 64, format
        path.unlink()
    then, now = (changed.ok("cluster", "export", "ft", *at, "csv").out for at in (("--at", "2026-05-02"), ()))
    assert len(then.splitlines()) == 1 + 2 * 96
    assert then != now


def test_what_cannot_be_written_is_reported_and_nothing_is_written(almanac: Almanac, tmp_path: Path) -> None:
    path, ring = tmp_path / "exported", tmp_path / "ring.csv"
    ring.write_text("source,target,capacity\na,b,1\nb,c,1\nc,a,1\n")
    almanac.ok("ingest", ring, "--cluster", "ring")
    almanac.refused("cluster", "export", "ring", "cvs", code=2)
    refused = almanac.refused("cluster", "export", "ring", f"slurm-topology={path}")
    assert "a direct network has no tree of switches" in refused
    assert not path.exists()


@pytest.fixture
def busy(almanac: Almanac, tmp_path: Path) -> Almanac:
    jobs = tmp_path / "sacct.json"
    jobs.write_bytes(gzip.decompress((DATA / "slurm" / "sacct.json.gz").read_bytes()))
    almanac.ok("ingest", SCAN, "--cluster", "ft", "--observed-at", "2026-05-01")
    almanac.ok("ingest", jobs, "--cluster", "ft")
    return almanac


def test_ranks_of_a_job_are_written_as_its_distribution_put_them(busy: Almanac, tmp_path: Path) -> None:
    was = tmp_path / "was.csv"
    busy.ok("job", "export", "1", f"csv={was}")
    hosts = [f"node{1 + rank // 4:04d}" for rank in range(64)]
    assert was.read_text() == "rank,host\n" + "".join(f"{rank},{host}\n" for rank, host in enumerate(hosts))
    plane = busy("job", "export", "1", "--distribution", "plane", "--plane", 2).out.splitlines()
    assert plane[1:5] == ["0,node0001", "1,node0001", "2,node0002", "3,node0002"]
    uneven = busy.ok("job", "export", "2")
    assert "lacks the ranks per host: they are spread over its slots" in uneven.err
    assert len(uneven.out.splitlines()) == 41
    assert "the size of a plane" in busy.refused("job", "export", "1", "--distribution", "plane")
    busy.ok("ingest", was, "--cluster", "ft", "--dry-run")
    order = tmp_path / "MPICH_RANK_ORDER"
    order.write_text("1,3,0,2\n")
    assert "--hosts" in busy.refused("ingest", order, "--cluster", "ft")
    given = ("--hosts", "node[0007,0003]", "--slots", 2)
    assert len(busy.json("ingest", order, "--cluster", "ft", *given)["placement_ids"]) == 1


def test_ranks_follow_the_rule_of_the_version_of_slurm(busy: Almanac, tmp_path: Path) -> None:
    topology = tmp_path / "topology.conf"
    topology.write_text(
        "BlockName=later Nodes=node[0009-0016]\nBlockName=b Nodes=node[0001-0008]\nBlockSizes=8\n"
    )
    ranks = ("job", "export", "1", "--slurm-version")
    listed = [f"node{1 + rank // 4:04d}" for rank in range(64)]

    def hosts(*words: object) -> list[str]:
        done = busy.ok(*ranks, *words)
        return [line.split(",")[1] for line in done.out.splitlines()[1:]]

    assert hosts("26.05", "--topology", topology) == listed[32:] + listed[:32]
    assert hosts("26.05", "--topology", topology, "--distribution", "cyclic")[:2] == ["node0001", "node0002"]
    assert hosts("24.11.5", "--topology", topology) == listed
    assert hosts("26.05.5") == listed
    assert "without --topology" in busy(*ranks, "26.05.5").err
    for version, rule in (("25.11", "24.11"), ("20.11.9", "22.05"), ("27.05", "26.05")):
        messages = busy(*ranks, version, "--topology", topology).err
        assert f"Slurm {version} was not measured: the rule of {rule} is used" in messages
    assert "'new' is not a version such as 26.05" in busy.refused(*ranks, "new", code=2)
    alone = ("job", "export", "1", "--topology", topology)
    assert "--topology needs --slurm-version" in busy.refused(*alone, code=2)
    topology.write_text("BlockName=b Nodes=node[0001-0008]\nBlockSizes=8\n")
    assert "node0009 is on no switch" in busy.refused(*ranks, "26.05", "--topology", topology)
