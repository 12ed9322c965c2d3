"""The whole way by commands: ingest, look, place, evaluate, export, remember."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.maintenance import sizes
from registry.progress import Progress
from tests.almanac.conftest import SCAN, TABLES, TREE, Almanac
from tests.support import paths

DATA = paths.DATA
PLACED = ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "average_dilation")


def test_a_placement_is_found_saved_exported_and_evaluated_again(loaded: Almanac, tmp_path: Path) -> None:
    show = loaded.json("cluster", "show", "ft")
    assert tuple(show[f"{name}_count"] for name in ("host", "adapter", "switch", "cable")) == (64, 64, 12, 96)
    assert loaded.json("profile", "show", "cg")["missing_ranks"] == []

    rankfile, links = tmp_path / "rf", tmp_path / "links.csv"
    call = ["map", "cg", "--cluster", "ft", "--hosts", "node[0001-0004,0033-0036]", "--slots", 2]
    answer = loaded.json(*call, "--steps", 2000, "--export", f"openmpi-rankfile={rankfile}")
    names = ("ranks", "host_count", "routing", "complete")
    assert tuple(answer[name] for name in names) == (16, 8, "tables", True)
    for rival in ("in_order", "random"):
        assert answer["placed"]["congestion_seconds"] <= answer[rival]["congestion_seconds"] * (1 + 1e-9)
    for name in PLACED[:3]:
        assert answer["lower_bound"][name] <= answer["placed"][name] * (1 + 1e-9)
    assert loaded.json(*call, "--steps", 2000)["placement"] == answer["placement"]
    assert [row["placement"] for row in loaded.json("history")] == [answer["placement"]]
    for given in (rankfile, answer["placement"]):
        asked = ("--cluster", "ft", "--placement", given, "--export", f"links={links}")
        judged = loaded.json("evaluate", "cg", *asked)
        for name in PLACED:
            assert judged[name] == pytest.approx(answer["placed"][name], rel=1e-12)
    rows = list(csv.DictReader(io.StringIO(links.read_text())))
    assert max(float(row["seconds"]) for row in rows) == pytest.approx(answer["placed"]["congestion_seconds"])
    assert sum(float(row["bytes"]) for row in rows) == pytest.approx(answer["placed"]["hop_bytes"])
    assert all(row["source_guid"].startswith("0x") and row["source_port"].isdigit() for row in rows)
    table = loaded("export", answer["placement"], "csv").out.splitlines()
    assert (len(table), table[0]) == (17, "rank,host,slot")


def test_the_hosts_and_slots_of_a_job_are_used(loaded: Almanac) -> None:
    loaded.ok("ingest", DATA / "slurm" / "scontrol_show_jobs_d.txt", "--cluster", "ft")
    assert len(loaded.json("job", "list")) > 1
    loaded.ok("job", "attach", "1", "cg")
    shown = loaded.json("job", "show", "1")
    assert shown["profile_id"] == loaded.json("profile", "show", "cg")["profile_id"]
    assert (len(shown["hosts"]), set(shown["slots"])) == (16, {4})
    assert loaded.json("map", "cg", "--job", "1", "--steps", 200)["host_count"] == 16
    assert loaded.json("history", "--job", "1")[0]["job"] == "1"


def test_the_byte_counts_of_the_simulated_fabric_come_out_per_link(almanac: Almanac, tmp_path: Path) -> None:
    almanac.ok("ingest", SCAN, TABLES, "--cluster", "ft")
    truth = json.loads((TREE / "truth.json").read_text())
    edges, hosts, links = (tmp_path / name for name in ("stencil.csv.gz", "hostfile", "links.csv"))
    with gzip.open(edges, "wt") as file:
        file.write("src,dst,bytes\n" + "".join(f"{s},{t},{b}\n" for s, t, b in truth["traffic"]))
    hosts.write_text("".join(f"{name.split()[0]}\n" for name in truth["hosts"]))
    almanac.ok("ingest", edges)
    asked = ("--cluster", "ft", "--placement", hosts, "--export", f"links={links}")
    answer = almanac.json("evaluate", "stencil", *asked)
    assert answer["hop_bytes"] == truth["hop_bytes"]
    assert answer["average_dilation"] == truth["avg_dilation"]
    rows = csv.DictReader(io.StringIO(links.read_text()))
    found = {f"{row['source_guid'][2:]}/{row['source_port']}": int(row["bytes"]) for row in rows}
    assert found == truth["link_bytes"]


def test_a_broken_cable_is_reported_as_a_change(almanac: Almanac) -> None:
    folder = DATA / "infiniband" / "fattree2-64-broken-link"
    for name, at in (("before.ibnetdiscover", "2026-01-01"), ("ibnetdiscover.txt", "2026-01-02")):
        almanac.ok("ingest", folder / name, "--cluster", "ft", "--observed-at", f"{at}T00:00:00Z")
    again = almanac.json("ingest", folder / name, "--cluster", "ft", "--observed-at", f"{at}T00:00:00Z")
    assert (again["new_observation"], again["new_snapshot"], again["new_routing"]) == (False, False, False)
    answer = almanac.json("cluster", "changes", "ft")
    assert answer["hosts_vanished"] == ["node0042"]
    words = almanac("cluster", "changes", "ft").out
    assert "host node0042 vanished" in words
    assert len(answer["cables_vanished"]) == words.count("vanished") - 1 == 2
    earlier = almanac.json("cluster", "show", "ft", "--at", "2026-01-01T12:00:00Z")
    assert earlier["host_count"] == 64


def test_a_query_reads_and_never_writes_and_profiles_are_exported_as_they_came_in(
    loaded: Almanac, tmp_path: Path
) -> None:
    counted = "MATCH (s:DeviceState {kind: $kind}) RETURN count(s) AS hosts"
    assert loaded("query", "--csv", "-p", "kind=host", counted).out == "hosts\n64\n"
    (row,) = loaded.json("query", "MATCH (c:Content) RETURN c, [c] AS list LIMIT 1")
    assert row["list"] == [row["c"]]
    assert any(str(value).endswith(" bytes>") for value in row["c"].values())
    assert loaded.error("query", "MATCH (n) DETACH DELETE n")["error"] == "WriteRefused"
    assert loaded.json("cluster", "show", "ft")["host_count"] == 64
    path = tmp_path / "cg.csv"
    loaded.ok("profile", "export", "cg", f"csv={path}")
    loaded.ok("ingest", path, "--name", "again")
    first, second = (loaded.json("profile", "show", name) for name in ("cg", "again"))
    for key in ("ranks", "pairs", "bytes", "messages"):
        assert first[key] == second[key]


def test_without_a_database_the_doctor_reports_the_rest(offline: Almanac) -> None:
    outcome = offline("doctor", "--json")
    assert outcome.code == 3
    states = {finding["check"]: finding["state"] for finding in outcome.json}
    assert (states["python"], states["database"]) == ("ok", "failed")


def test_the_doctor_finds_all_well_unless_most_of_the_files_is_space_of_deleted_data(
    loaded: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = loaded("doctor", "--launchers")
    assert (outside.code, "start this command inside one" in outside.out) == (1, True)
    assert "--cluster is for --launchers" in loaded.refused("doctor", "--cluster", "a", code=2)
    states = {check["check"]: check["state"] for check in loaded.json("doctor")}
    assert "failed" not in states.values()
    assert "files" not in states
    for size, expected in (
        (900_000_000, ("ok", "900 MB")),
        (9_000_000_000, ("warning", "9 GB, most of it of deleted data: run almanac db compact")),
    ):
        # as of the server that almanac starts
        monkeypatch.setattr(sizes, "file_bytes", lambda database, size=size: size)
        files = next(check for check in loaded.json("doctor") if check["check"] == "files")
        assert (files["state"], files["seen"]) == expected


def test_an_interrupted_search_keeps_its_best_so_far_marked_incomplete(
    loaded: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def impatient() -> Iterator[Progress]:
        def stop(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
            if best is not None and done > 0:
                raise KeyboardInterrupt

        yield stop

    monkeypatch.setattr("almanac.commands.placing.map.kernel_progress_bars", impatient)
    where = ("--cluster", "ft", "--hosts", "node[0001-0016]")
    outcome = loaded("map", "cg", *where, "--steps", 1_000_000_000, "--json")
    assert (outcome.code, outcome.json["complete"]) == (130, False)
    history = loaded.json("history")
    assert [(row["placement"], row["complete"]) for row in history] == [(outcome.json["placement"], False)]
