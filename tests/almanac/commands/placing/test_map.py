"""Placing in a job script, keeping a placement, advice and comparison, from the command line."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from almanac.job_environment import read_environment
from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA
FABRIC = DATA / "infiniband" / "fattree2-64-traffic"
FILES = ("--fabric", FABRIC / "ibnetdiscover.txt", "--fabric", FABRIC / "opensm-lfts.dump")
PROFILE = DATA / "openmpi" / "npb_cg_S_16.tar.gz"
SLURM = {
    "SLURM_JOB_NODELIST": "node[0001-0004,0033]",
    "SLURM_TASKS_PER_NODE": "4(x3),2(x2)",
    "SLURM_NTASKS": "16",
    "SLURM_JOB_ID": "77",
    "SLURM_CLUSTER_NAME": "ft",
}


def placed(almanac: Almanac, *more: object) -> dict[str, Any]:
    call = almanac(
        "map", "cg", "--cluster", "ft", "--hosts", "node[0001-0004,0033-0036]", "--slots", 2, *more, "--json"
    )
    assert call.code == 0, call.err
    return dict(call.json)


def test_files_alone_are_placed_without_any_database(offline: Almanac, tmp_path: Path) -> None:
    rankfile = tmp_path / "rf"
    call = offline(
        "map", PROFILE, *FILES, "--hosts", "node[0001-0004,0033-0036]", "--slots", 2,
        "--steps", 4000, "--export", f"openmpi-rankfile={rankfile}", "--json",
    )  # fmt: skip
    assert call.code == 0, call.err
    assert (call.json["placement"], call.json["routing"], call.json["host_count"]) == (None, "tables", 8)
    assert len(rankfile.read_text().splitlines()) == 16
    kept = offline("map", PROFILE, *FILES, "--keep", rankfile, "--moves", 2, "--steps", 2000, "--json")
    assert kept.code == 0, kept.err
    assert kept.json["moved"] <= 2
    assert kept.json["curve"][0]["moved"] == 0


def test_a_job_script_places_on_its_own_allocation(
    offline: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    hostfile = tmp_path / "hosts"
    call = offline(
        "map", PROFILE, "--here", *FILES, "--steps", 2000,
        "--export", f"slurm-hostfile={hostfile}", "--json",
    )  # fmt: skip
    assert call.code == 0, call.err
    assert call.json["host_count"] == 5
    taken = hostfile.read_text().split()
    assert {host: taken.count(host) for host in taken} == dict(
        zip(read_environment(SLURM).hosts, read_environment(SLURM).slots, strict=True)
    )
    assert "16 slots on 5 hosts" in call.err


def test_a_job_script_places_with_a_saved_fabric_and_profile(
    loaded: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    call = loaded("map", "cg", "--here", "--steps", 2000, "--json")
    assert call.code == 0, call.err
    assert (call.json["cluster"], call.json["host_count"]) == ("ft", 5)
    assert loaded("history", "--json").json[0]["placement"] == call.json["placement"]


def test_pinned_ranks_are_exported_where_they_are_pinned(loaded: Almanac, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    placed(loaded, "--steps", 2000, "--pin", "3=node0035", "--pin", "0=node0035", "--export", f"csv={table}")
    hosts = [row["host"] for row in csv.DictReader(io.StringIO(table.read_text()))]
    assert (hosts[0], hosts[3]) == ("node0035", "node0035")


def test_a_kept_placement_shows_the_gain_of_each_moved_rank(loaded: Almanac) -> None:
    first = placed(loaded, "--strategy", "random", "--steps", 1)
    answer = placed(
        loaded, "--keep", first["placement"], "--moves", 4, "--steps", 6000, "--objective", "hop-bytes"
    )
    moved = [point["moved"] for point in answer["curve"]]
    gained = [point["hop_bytes"] for point in answer["curve"]]
    assert moved == sorted(set(moved))
    assert moved[0] == 0
    assert moved[-1] <= 4
    assert gained == sorted(gained, reverse=True)
    assert answer["moved"] == moved[-1]
    assert answer["placed"]["hop_bytes"] == pytest.approx(gained[-1])
    assert answer["placement"] != first["placement"]


def test_advice_weighs_moves_and_saves_nothing(loaded: Almanac) -> None:
    first = placed(loaded, "--strategy", "random", "--steps", 1)
    call = loaded(
        "advise", "placement", "cg", first["placement"], "--cluster", "ft", "--steps", 4000, "--json",
        "--rank-seconds", 1e-9, "--iterations-left", 1e9,
    )  # fmt: skip
    assert call.code == 0, call.err
    answer = call.json
    assert answer["curve"][0]["congestion_seconds"] == pytest.approx(first["placed"]["congestion_seconds"])
    assert [one["moved"] for one in answer["advice"]] == [point["moved"] for point in answer["curve"][1:]]
    saving = [one for one in answer["advice"] if one["seconds_saved"] > 0]
    assert all(one["break_even_iterations"] is not None for one in saving)
    assert answer["best_moved"] in [one["moved"] for one in saving] or not saving
    assert len(loaded("history", "--json").json) == 1
    assert (
        "pays off"
        in loaded("advise", "placement", "cg", first["placement"], "--cluster", "ft", "--steps", 400).out
    )


def test_placements_are_compared_link_by_link(loaded: Almanac, tmp_path: Path) -> None:
    first = placed(loaded, "--strategy", "random", "--steps", 1)
    rankfile, links = tmp_path / "rf", tmp_path / "links.csv"
    second = placed(loaded, "--steps", 4000, "--export", f"openmpi-rankfile={rankfile}")
    for other in (second["placement"], rankfile):
        call = loaded("compare", first["placement"], other, "--export", f"links={links}", "--json")
        assert call.code == 0, call.err
        answer = call.json
        assert [p["congestion_seconds"] for p in answer["placements"]] == pytest.approx(
            [first["placed"]["congestion_seconds"], second["placed"]["congestion_seconds"]]
        )
        seconds = [row["difference_seconds"] for row in answer["links"]]
        assert seconds == sorted(seconds, reverse=True)
        for row in answer["links"]:
            assert row["difference_seconds"] == pytest.approx(
                abs(row["seconds_by_placement"][0] - row["seconds_by_placement"][1])
            )
        rows = list(csv.DictReader(io.StringIO(links.read_text())))
        assert [float(row["difference_seconds"]) for row in rows][: len(seconds)] == seconds
    same = loaded("compare", first["placement"], first["placement"], first["placement"], "--json").json
    assert (len(same["placements"]), same["links"]) == (3, [])
    assert (
        "links with the largest difference" in loaded("compare", first["placement"], second["placement"]).out
    )


def test_another_jobs_load_is_shown_and_counts(loaded: Almanac) -> None:
    other = placed(loaded, "--strategy", "in-order", "--steps", 1)
    alone = placed(loaded, "--strategy", "in-order", "--steps", 1)
    added = placed(loaded, "--strategy", "in-order", "--steps", 1, "--background", other["placement"])
    assert alone["background"] == ""
    assert added["background"].startswith("added")
    for name in ("congestion_seconds", "network_congestion_seconds"):
        assert added["placed"][name] == pytest.approx(2 * alone["placed"][name])
    reduced = placed(
        loaded, "--strategy", "in-order", "--steps", 1, "--background", f"{other['placement']}/1e9"
    )
    assert reduced["background"].startswith("reduced")


def test_a_pareto_set_is_saved_placement_by_placement(loaded: Almanac) -> None:
    call = loaded(
        "map", "cg", "--cluster", "ft", "--hosts", "node[0001-0016]", "--pareto", "--steps", 3000, "--json"
    )
    assert call.code == 0, call.err
    ids = [one["placement"] for one in call.json]
    assert {row["placement"] for row in loaded("history", "--json").json} == set(ids)
    hop_bytes = [one["placed"]["hop_bytes"] for one in call.json]
    assert hop_bytes == sorted(hop_bytes, reverse=True)


def test_rails_are_passed_on_and_bounds_are_named(loaded: Almanac, tmp_path: Path) -> None:
    placement = placed(loaded, "--steps", 100)["placement"]
    call = ("evaluate", "cg", "--cluster", "ft", "--placement", placement)
    assert loaded(*call, "--rails", "same-rail", "--json").json["rails"] == "same-rail"
    refused = loaded(*call, "--rails", "other", "--json")
    assert (refused.code, refused.error["error"]) == (1, "UnknownName")
    words = loaded(*call).out
    assert "times the best possible, certified by" in words


@pytest.mark.parametrize(
    "arguments",
    [
        ("cg",),
        ("cg", "--hosts", "a"),
        ("cg", "--job", "1", "--hosts", "a"),
        ("cg", "--here", "--job", "1"),
        ("cg", "--profile", "x", "--cluster", "c", "--hosts", "a"),
        ("--cluster", "c", "--hosts", "a"),
        ("cg", "--fabric", "x", "--job", "1"),
        ("cg", "--cluster", "c", "--hosts", "a", "--moves", "2"),
        ("cg", "--cluster", "c", "--keep", "x", "--pareto"),
        ("cg", "--cluster", "c", "--hosts", "a", "--pin", "1:b"),
        ("cg", "--cluster", "c", "--hosts", "a", "--pin", "1=b", "--pin", "01=c"),
        ("cg", "--cluster", "c", "--hosts", "a", "--background", "x/y"),
        ("cg", "--cluster", "c", "--hosts", "a", "--seconds", "1", "--steps", "1"),
    ],
)
def test_what_contradicts_itself_is_a_usage_error(offline: Almanac, arguments: tuple[str, ...]) -> None:
    assert offline("map", *arguments).code == 2


def test_consecutive_ranks_are_placed_saved_and_exported(loaded: Almanac, tmp_path: Path) -> None:
    hosts, order = tmp_path / "hosts", tmp_path / "order"
    exports = ("--export", f"deepspeed-hostfile={hosts}", "--export", f"torchrun-rank-order={order}")
    refused = loaded(
        "map", "cg", "--cluster", "ft", "--hosts", "node[0001-0004,0033-0036]", "--slots", 2,
        "--strategy", "random", "--steps", 10, *exports,
    )  # fmt: skip
    assert refused.code == 1
    assert "almanac map --consecutive finds such placements" in refused.err
    found = placed(loaded, "--consecutive", "--steps", 2000, *exports)
    assert hosts.read_text() == order.read_text().replace("\n", " slots=2\n")
    assert sorted(order.read_text().split()) == [f"node{n:04}" for n in (1, 2, 3, 4, 33, 34, 35, 36)]
    assert found["placed"]["congestion_seconds"] <= found["in_order"]["congestion_seconds"]
    again = tmp_path / "again"
    assert loaded("export", found["placement"], f"torchrun-rank-order={again}").code == 0
    assert again.read_text() == order.read_text()
    assert loaded("map", "cg", "--cluster", "ft", "--consecutive", "--keep", found["placement"]).code == 2
