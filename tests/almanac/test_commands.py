"""All by commands: ingest, place, evaluate, export, remember; job scripts, advice, comparison, layouts."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from almanac.job_environment import read_environment
from registry.progress import Progress
from registry.upkeep import retention
from tests.almanac.conftest import PROFILE, SCAN, SLURM, TABLES, TREE, Almanac
from tests.support.dask_cluster import DaskCluster
from tests.support.paths import DATA

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
    assert (answer["hop_bytes"], answer["average_dilation"]) == (truth["hop_bytes"], truth["avg_dilation"])
    rows = csv.DictReader(io.StringIO(links.read_text()))
    found = {f"{row['source_guid'][2:]}/{row['source_port']}": int(row["bytes"]) for row in rows}
    assert found == truth["link_bytes"]


def test_a_broken_cable_is_reported_as_a_change(almanac: Almanac) -> None:
    folder = DATA / "infiniband" / "fattree2-64-broken-link"
    for name, at in (("before.ibnetdiscover", "2026-01-01"), ("ibnetdiscover.txt", "2026-01-02")):
        almanac.ok("ingest", folder / name, "--cluster", "ft", "--observed-at", f"{at}T00:00:00Z")
    answer = almanac.json("cluster", "changes", "ft")
    assert answer["hosts_vanished"] == ["node0042"]
    words = almanac("cluster", "changes", "ft").out
    assert "host node0042 vanished" in words
    assert len(answer["cables_vanished"]) == words.count("vanished") - 1 == 2
    assert almanac.json("cluster", "show", "ft", "--at", "2026-01-01T12:00:00Z")["host_count"] == 64


def test_queries_never_write_and_profiles_leave_as_they_came(loaded: Almanac, tmp_path: Path) -> None:
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


def test_the_doctor_finds_all_well_or_space_of_deleted_data(
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
        monkeypatch.setattr(retention, "file_bytes", lambda database, size=size: size)
        files = next(check for check in loaded.json("doctor") if check["check"] == "files")
        assert (files["state"], files["seen"]) == expected


def test_an_interrupted_search_keeps_what_it_found(loaded: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def impatient() -> Iterator[Progress]:
        def stop(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
            if best is not None and done > 0:
                raise KeyboardInterrupt

        yield stop

    monkeypatch.setattr("almanac.commands.map.kernel_progress_bars", impatient)
    where = ("--cluster", "ft", "--hosts", "node[0001-0016]")
    outcome = loaded("map", "cg", *where, "--steps", 1_000_000_000, "--json")
    assert (outcome.code, outcome.json["complete"]) == (130, False)
    history = loaded.json("history")
    assert [(row["placement"], row["complete"]) for row in history] == [(outcome.json["placement"], False)]


FILES = ("--fabric", SCAN, "--fabric", TABLES)
WHERE = ("--cluster", "ft", "--hosts", "node[0001-0004,0033-0036]", "--slots", 2)
RANDOM, IN_ORDER = (("--strategy", name, "--steps", 1) for name in ("random", "in-order"))


def placed(almanac: Almanac, *more: object) -> dict[str, Any]:
    return dict(almanac.json("map", "cg", *WHERE, *more))


def test_files_alone_are_placed_without_any_database(offline: Almanac, tmp_path: Path) -> None:
    rankfile = tmp_path / "rf"
    found = offline.json(
        *("map", PROFILE, *FILES, *WHERE[2:], "--steps", 4000, "--export", f"openmpi-rankfile={rankfile}")
    )
    assert (found["placement"], found["routing"], found["host_count"]) == (None, "tables", 8)
    assert len(rankfile.read_text().splitlines()) == 16
    kept = offline.json("map", PROFILE, *FILES, "--keep", rankfile, "--moves", 2, "--steps", 2000)
    assert kept["moved"] <= 2
    assert kept["curve"][0]["moved"] == 0


def test_job_scripts_use_own_hosts(loaded: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a saved fabric and profile, and with files where there is no database."""
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    answer = loaded.json("map", "cg", "--here", "--steps", 2000)
    assert (answer["cluster"], answer["host_count"]) == ("ft", 5)
    assert loaded.json("history")[0]["placement"] == answer["placement"]
    monkeypatch.setenv("ALMANAC_DB", "bolt://127.0.0.1:1")
    hostfile = tmp_path / "hosts"
    export = ("--export", f"slurm-hostfile={hostfile}")
    call = loaded.ok("map", PROFILE, "--here", *FILES, "--steps", 2000, *export, "--json")
    assert call.json["host_count"] == 5
    taken = hostfile.read_text().split()
    job = read_environment(SLURM)
    assert {host: taken.count(host) for host in taken} == dict(zip(job.hosts, job.slots, strict=True))
    assert "16 slots on 5 hosts" in call.err


def test_a_kept_placement_shows_the_gain_of_each_moved_rank(loaded: Almanac, tmp_path: Path) -> None:
    first, table = placed(loaded, *RANDOM), tmp_path / "t.csv"
    keep = ("--keep", first["placement"], "--moves", 4, "--steps", 6000, "--objective", "hop-bytes")
    answer = placed(loaded, *keep)
    moved = [point["moved"] for point in answer["curve"]]
    gained = [point["hop_bytes"] for point in answer["curve"]]
    assert (moved, moved[0], moved[-1] <= 4) == (sorted(set(moved)), 0, True)
    assert gained == sorted(gained, reverse=True)
    assert (answer["moved"], answer["placed"]["hop_bytes"]) == (moved[-1], pytest.approx(gained[-1]))
    assert answer["placement"] != first["placement"]
    pins = ("--pin", "3=node0035", "--pin", "0=node0035")
    placed(loaded, "--steps", 2000, *pins, "--export", f"csv={table}")
    hosts = [row["host"] for row in csv.DictReader(io.StringIO(table.read_text()))]
    assert (hosts[0], hosts[3]) == ("node0035", "node0035")


def test_advice_weighs_moves_and_saves_nothing(loaded: Almanac) -> None:
    first = placed(loaded, *RANDOM)
    advise = ("advise", "placement", "cg", first["placement"], "--cluster", "ft")
    answer = loaded.json(*advise, "--steps", 4000, "--rank-seconds", 1e-9, "--iterations-left", 1e9)
    assert answer["curve"][0]["congestion_seconds"] == pytest.approx(first["placed"]["congestion_seconds"])
    assert [one["moved"] for one in answer["advice"]] == [point["moved"] for point in answer["curve"][1:]]
    assert len(loaded.json("history")) == 1
    assert "pays off" in loaded(*advise, "--steps", 400).out


def test_placements_are_compared_link_by_link(loaded: Almanac, tmp_path: Path) -> None:
    first = placed(loaded, *RANDOM)
    rankfile, links = tmp_path / "rf", tmp_path / "links.csv"
    second = placed(loaded, "--steps", 4000, "--export", f"openmpi-rankfile={rankfile}")
    for other in (second["placement"], rankfile):
        answer = loaded.json("compare", first["placement"], other, "--export", f"links={links}")
        assert [p["congestion_seconds"] for p in answer["placements"]] == pytest.approx(
            [first["placed"]["congestion_seconds"], second["placed"]["congestion_seconds"]]
        )
        seconds = [row["difference_seconds"] for row in answer["links"]]
        assert seconds == sorted(seconds, reverse=True)
        rows = list(csv.DictReader(io.StringIO(links.read_text())))
        assert [float(row["difference_seconds"]) for row in rows][: len(seconds)] == seconds
    same = loaded.json("compare", first["placement"], first["placement"], first["placement"])
    assert (len(same["placements"]), same["links"]) == (3, [])
    shown = loaded("compare", first["placement"], second["placement"]).out
    assert "links with the largest difference" in shown


def test_another_jobs_load_is_shown_and_counts(loaded: Almanac) -> None:
    alone = placed(loaded, *IN_ORDER)
    added = placed(loaded, *IN_ORDER, "--background", alone["placement"])
    assert alone["background"] == ""
    assert added["background"].startswith("added")
    for name in ("congestion_seconds", "network_congestion_seconds"):
        assert added["placed"][name] == pytest.approx(2 * alone["placed"][name])
    reduced = placed(loaded, *IN_ORDER, "--background", f"{alone['placement']}/1e9")
    assert reduced["background"].startswith("reduced")
    refused = loaded.refused("map", "cg", *WHERE, "--background", f"{alone['placement']}/0")
    assert refused == "almanac: background seconds: a job's period must be above zero\n"


def test_a_pareto_set_is_saved_rails_are_passed_on_and_bounds_named(loaded: Almanac) -> None:
    found = loaded.json("map", "cg", *WHERE, "--pareto", "--steps", 3000)
    assert {row["placement"] for row in loaded.json("history")} == {one["placement"] for one in found}
    hop_bytes = [one["placed"]["hop_bytes"] for one in found]
    assert hop_bytes == sorted(hop_bytes, reverse=True)
    call = ("evaluate", "cg", "--cluster", "ft", "--placement", placed(loaded, *IN_ORDER)["placement"])
    assert loaded.json(*call, "--rails", "same-rail")["rails"] == "same-rail"
    assert loaded.error(*call, "--rails", "other")["error"] == "UnknownName"
    assert "times the best possible, certified by" in loaded(*call).out


def test_consecutive_ranks_are_placed_saved_and_exported(loaded: Almanac, tmp_path: Path) -> None:
    hosts, order, again = (tmp_path / name for name in ("hosts", "order", "again"))
    exports = ("--export", f"deepspeed-hostfile={hosts}", "--export", f"torchrun-rank-order={order}")
    refused = loaded.refused("map", "cg", *WHERE, "--strategy", "random", "--steps", 10, *exports)
    assert "almanac map --consecutive finds such placements" in refused
    found = placed(loaded, "--consecutive", "--steps", 2000, *exports)
    assert hosts.read_text() == order.read_text().replace("\n", " slots=2\n")
    assert sorted(order.read_text().split()) == [f"node{n:04}" for n in (1, 2, 3, 4, 33, 34, 35, 36)]
    assert found["placed"]["congestion_seconds"] <= found["in_order"]["congestion_seconds"]
    loaded.ok("export", found["placement"], f"torchrun-rank-order={again}")
    assert again.read_text() == order.read_text()
    keep = ("--consecutive", "--keep", found["placement"])
    loaded.refused("map", "cg", "--cluster", "ft", *keep, code=2)


LAYOUT = DATA / "hwloc" / "two_rails_v2.xml"
OF_FOUR = ("--slots", 4, "--steps", 300, "--hosts", "node[0001-0004]")
FROM_FILES = ("map", PROFILE, "--fabric", SCAN, "--fabric", TABLES, *OF_FOUR, "--strategy", "in-order")


def test_one_layout_is_that_of_all_hosts_and_cores_are_exported(loaded: Almanac, tmp_path: Path) -> None:
    table, ranks, hosts = tmp_path / "p.csv", tmp_path / "rankfile", tmp_path / "hosts"
    exports = ("--export", f"csv={table}", "--export", f"slurm-hostfile={hosts}")
    call = loaded.ok("map", "cg", "--cluster", "ft", *OF_FOUR, "--layout", LAYOUT, *exports, "--json")
    cores = call.json["cores"]
    assert (cores["host_count"], cores["without_layout"]) == (4, 0)
    assert cores["weighted_bytes"] <= cores["weighted_bytes_in_order"]
    assert "this format has no cores of ranks" in call.err
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert all(row["cpu"] for row in rows)
    # What was saved knows its cores, too.
    loaded.ok("export", call.json["placement"], f"openmpi-rankfile={ranks}")
    lines = [f"rank {row['rank']}={row['host']} slot={row['core']}" for row in rows]
    assert ranks.read_text().splitlines() == lines


def test_hosts_without_a_layout_are_reported_and_those_with_two_refused(offline: Almanac) -> None:
    one = ("--layout", f"node0002={LAYOUT}")
    shown = offline.ok(*FROM_FILES, *one).out
    assert "cross NUMA domains within hosts" in shown
    assert "3 of 4 hosts have no layout: their ranks are in order" in shown
    assert "host node0002 has more than one layout" in offline.refused(*FROM_FILES, *one, *one, code=2)
    unknown, missing = (offline(*FROM_FILES, "--layout", of) for of in (f"nobody={LAYOUT}", "nowhere.xml"))
    assert 0 not in (unknown.code, missing.code)
    assert ("nobody" in unknown.err, "HOST=FILE" in unknown.err, "nowhere.xml" in missing.err) == (True,) * 3


def test_placements_simulations_and_circuits_are_as_on_a_machine(loaded: Almanac, dask: DaskCluster) -> None:
    there = ("--scheduler", dask.address)
    search = ("map", "cg", *WHERE, "--steps", 400, "--seeds", 2, "--workers", 3, "--json")
    found, here = loaded(*search, *there), loaded(*search)
    assert (found.code, here.code) == (0, 0), found.err
    assert f"3 workers with 3 threads at {dask.address}" in found.err
    assert found.json["placement"] == here.json["placement"]

    other = loaded.json("map", "cg", *WHERE, "--strategy", "in-order", "--steps", 1)["placement"]
    both = ("--placement", found.json["placement"], "--placement", other)
    replay = ("simulate", "cg", "--cluster", "ft", *both, "--json")
    runs, again = loaded(*replay, *there), loaded(*replay)
    assert (runs.code, again.code) == (0, 0), runs.err
    fields = [[one["completion_seconds"] for one in call.json["runs"]] for call in (runs, again)]
    assert fields[0] == fields[1]

    switch = ("--nodes", 8, "--max-degree", 3, "--max-edges", 12, "--link-speed", 1e9)
    plan = ("reconfigure", "cg", *switch, "--trials", 5, "--seeds", 2, "--json")
    circuits, alone = loaded(*plan, *there), loaded(*plan)
    assert (circuits.code, alone.code) == (0, 0), circuits.err
    for name in ("seed", "throughput", "circuits"):
        assert circuits.json[name] == alone.json[name]


def test_what_cannot_run_on_a_cluster_is_an_error(offline: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = ("--scheduler", "tcp://127.0.0.1:9")
    for more, code, message in (
        (("--scheduler", "localhost:8786"), 1, "an address is of the form tcp://HOST:PORT"),
        ((*nobody, "--pareto"), 2, "--scheduler: not with --pareto or --keep"),
        (("--seeds", 2, "--keep", "p1"), 2, "--seeds: not with --pareto or --keep"),
    ):
        assert message in offline.refused("map", "cg", *WHERE, *more, code=code)

    def none(name: str) -> object:
        return None if name == "distributed" else find_spec(name)

    monkeypatch.setattr("registry.installation.find_spec", none)
    refused = offline.refused("map", "cg", *WHERE, *nobody)
    assert re.search(
        r"the optional package distributed is not installed; install it with: .*\[distributed\]", refused
    )


JOBS = (
    "JobID|JobName|User|State|Submit|Start|End|NodeList|NNodes|NTasks\n"
    "7|x|u|RUNNING|2026-01-01T00:00:00|2026-01-01T00:00:00|Unknown|node[0001-0004]|4|16\n"
)


def test_hosts_are_printed_if_there_are_more_than_needed(offline: Almanac, tmp_path: Path) -> None:
    torus, ring = tmp_path / "torus.json", tmp_path / "ring.csv"
    offline.ok("generate", "fabric", "torus", "--sides", "4x4", "--format", "node-link", "-o", torus)
    ring.write_text("src,dst,bytes\n0,1,8\n1,2,8\n2,0,8\n")
    words = ("map", ring, "--fabric", torus, "--steps", 100)
    found = offline.json(*words)
    assert len(found["hosts"]) == 3 < found["host_count"] == 16
    shown = offline(*words).out
    assert "3 of 16 hosts are used: " in shown
    assert all(name.rpartition("-")[0] in shown for name in found["hosts"])
    assert "hosts are used" not in offline(*words, "--hosts", ",".join(found["hosts"])).out


def test_another_profile_than_the_one_of_the_job_is_named(loaded: Almanac, tmp_path: Path) -> None:
    jobs, other = tmp_path / "jobs.txt", tmp_path / "other.csv"
    jobs.write_text(JOBS)
    loaded.ok("ingest", "--cluster", "ft", jobs)
    loaded.ok("job", "attach", 7, "cg")
    other.write_text("# ranks: 16\nsrc,dst,bytes\n0,1,8\n1,2,8\n")
    loaded.ok("ingest", other, "--name", "other")
    words = ("--job", 7, "--slots", 4, "--steps", 100)
    own, wrong = loaded("map", "cg", *words), loaded("map", "other", *words)
    assert "attached" not in own.err
    assert "warning: profile cg is attached to job 7, and other is placed" in wrong.err
    assert loaded.json("map", "other", *words)["job_profile"] == "cg"
    assert loaded.json("map", "cg", *words)["job_profile"] is None


FULL_NAMES = DATA / "infiniband" / "full-names"


def test_a_job_is_placed_and_its_launchers_file_has_the_jobs_names(almanac: Almanac, tmp_path: Path) -> None:
    almanac.ok("ingest", "--cluster", "hpc", FULL_NAMES / "scan.txt")
    assert "warning" not in almanac.ok("ingest", "--cluster", "hpc", FULL_NAMES / "sacct.txt").err
    almanac.ok("ingest", PROFILE, "--name", "cg")
    file, again = tmp_path / "hosts", tmp_path / "again"
    few = ("--slots", "8", "--steps", "10")
    placed = almanac.json("map", "cg", "--job", "938045", *few, "--export", f"slurm-hostfile={file}")
    assert set(file.read_text().split()) == {"node2527", "node2528"}
    almanac.ok("export", placed["placement"], f"slurm-hostfile={again}")
    assert again.read_text() == file.read_text()
    named = ("map", "cg", "--cluster", "hpc", *few)
    assert "domains" not in almanac.ok(*named, "--hosts", "node2528.cluster.example,node2527").err
    doubt = "node2527.x.org is taken as node2527.cluster.example and 1 more, though the domains differ"
    assert doubt in almanac.ok(*named, "--hosts", "node[2527-2528].x.org").err
    again.write_text((FULL_NAMES / "sacct.txt").read_text().replace("2528]", "2528].x.org"))
    assert doubt in almanac.ok("ingest", "--cluster", "hpc", again).err
    refused = almanac(*named, "--hosts", "node[002527-002528]")
    assert "there is no host 'node002527'; closest: node2527.cluster.example" in refused.err
