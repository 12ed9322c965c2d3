"""``almanac reconfigure``: circuits for a saved profile, beside a certified bound and the present ones."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

import pytest

from registry.database.driver import Database
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA
MACHINE = ("--nodes", 4, "--max-degree", 3, "--max-edges", 5, "--link-speed", 1e6)
FEW = ("--trials", 30)


@pytest.fixture
def profiles(embedded: Almanac) -> Almanac:
    assert embedded("ingest", DATA / "openmpi" / "npb_cg_S_16.tar.gz", "--name", "cg").code == 0
    return embedded


def reconfigure(profiles: Almanac, *arguments: object) -> Any:
    outcome = profiles("reconfigure", "cg", *MACHINE, *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return outcome.json


@pytest.mark.parametrize("how", [(), ("--paper", "--patience", 3)], ids=["best", "paper"])
def test_circuits_keep_the_limits_and_the_throughput_is_that_of_the_busiest(
    profiles: Almanac, how: tuple[object, ...]
) -> None:
    answer = reconfigure(profiles, *how)
    ends = [end for one in answer["circuits"] for end in (one["a"], one["b"])]
    assert len(answer["circuits"]) <= 5
    assert max(ends.count(node) for node in range(4)) <= 3
    assert len(answer["node_of_rank"]) == answer["ranks"] == 16
    assert answer["complete"] is True
    busiest = max(one["bytes"] for one in answer["circuits"])
    fullest = max(answer["node_of_rank"].count(node) for node in range(4))
    assert answer["communication_throughput"] == pytest.approx(1e6 / busiest)
    assert answer["compute_throughput"] == pytest.approx(1.0 / fullest)
    assert answer["throughput"] == min(answer["communication_throughput"], answer["compute_throughput"])
    assert answer["throughput"] <= answer["upper_bound"]["throughput"]
    assert answer["improvement"] >= 1.0
    assert [one["number"] for one in answer["trail"]] == list(range(len(answer["trail"])))


def test_the_same_seed_finds_the_same(profiles: Almanac) -> None:
    first, second = (reconfigure(profiles, *FEW, "--seed", 4) for _ in range(2))
    for answer in (first, second):
        for one in answer["trail"]:
            del one["wall_seconds"]
    assert first == second


def test_the_present_circuits_are_compared_with_those_found(profiles: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "present.csv"
    path.write_text("a,b\n0,1\n1,2\n2,3\n", "utf-8")
    answer = reconfigure(profiles, *FEW, "--present", path, "--reconfiguration-seconds", 2)
    against = answer["present"]
    assert against["gain"] == pytest.approx(answer["throughput"] / against["throughput"])
    found = {(one["a"], one["b"]) for one in answer["circuits"]}
    kept = {(0, 1), (1, 2), (2, 3)} - {tuple(pair) for pair in against["removed"]}
    assert kept | {tuple(pair) for pair in against["added"]} == found
    if against["seconds_saved"] > 0:
        assert against["break_even_profiles"] == pytest.approx(2 / against["seconds_saved"])
    shown = profiles("reconfigure", "cg", *MACHINE, *FEW, "--present", path)
    assert shown.code == 0
    assert "certified upper bound" in shown.out


def test_written_routes_load_circuits_as_reported_and_go_one_way(profiles: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "routes.csv"
    answer = reconfigure(profiles, *FEW, "--compute-seconds", 100, "--export", f"routes={path}")
    load = dict.fromkeys(((one["a"], one["b"]) for one in answer["circuits"]), 0.0)
    seen = set()
    for row in csv.DictReader(path.read_text("utf-8").splitlines()):
        one, other = int(row["one"]), int(row["other"])
        way = [int(node) for node in row["route"].split()]
        assert (way[0], way[-1]) == (answer["node_of_rank"][one], answer["node_of_rank"][other])
        assert (one, other) not in seen
        seen.add((one, other))
        for pair in itertools.pairwise(way):
            a, b = sorted(pair)
            load[a, b] += float(row["bytes"])
    assert seen
    assert load == pytest.approx({(one["a"], one["b"]): one["bytes"] for one in answer["circuits"]})


def test_ranks_compute_by_their_weights(profiles: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "weights.csv"
    weight = [7.0, *[0.5] * 15]
    path.write_text("rank,weight\n" + "".join(f"{at},{one}\n" for at, one in enumerate(weight)), "utf-8")
    answer = reconfigure(profiles, *FEW, "--compute-seconds", 2, "--weights", path)
    load = [0.0] * 4
    for rank, node in enumerate(answer["node_of_rank"]):
        load[node] += 2 * weight[rank]
    assert answer["compute_throughput"] == pytest.approx(1 / max(load))
    assert answer["upper_bound"]["throughput"] == pytest.approx(1 / 14)
    assert answer["weights"] == str(path)
    (kept,) = profiles("history", "circuits", "--json").json
    assert len(kept["parameters"]["weights"]) == 12


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rank,load\n", "columns rank,weight"),
        ("rank,weight\n0,1\n", "rank 1 has no weight"),
        ("rank,weight\n16,1\n", "expected a rank from 0 to 15"),
        ("rank,weight\n0,-1\n", "expected a rank from 0 to 15"),
        ("rank,weight\n0,nan\n", "expected a rank from 0 to 15"),
        ("rank,weight\n0,much\n", "expected a rank from 0 to 15"),
        ("rank,weight\n0,1\n\n0,2\n", "rank 0 is repeated"),
    ],
    ids=["columns", "missing", "unknown", "negative", "nan", "word", "twice"],
)
def test_weights_that_cannot_be_are_refused_with_their_line(
    profiles: Almanac, tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "weights.csv"
    path.write_text(text, "utf-8")
    outcome = profiles("reconfigure", "cg", *MACHINE, "--weights", path, "--json")
    assert outcome.code == 1
    assert reason in outcome.error["reason"]
    assert profiles("history", "circuits", "--json").json == []


def test_a_default_limit_is_named(profiles: Almanac) -> None:
    hint = "computing limits the throughput, at the default of 1 s per rank"
    fast = ("reconfigure", "cg", *MACHINE, *FEW, "--link-speed", 1e12)
    assert hint in profiles(*fast).err
    assert hint not in profiles(*fast, "--compute-seconds", 1).err


def test_written_circuits_can_be_started_from(profiles: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "circuits.csv"
    answer = reconfigure(profiles, *FEW, "--export", f"circuits={path}")
    lines = path.read_text("utf-8").splitlines()
    assert lines[1:] == [f"{one['a']},{one['b']}" for one in answer["circuits"]]
    again = reconfigure(profiles, *FEW, "--start", path, "--present", path)
    assert again["throughput"] >= again["trail"][0]["throughput"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (("--max-edges", 2), "--max-edges"),
        (("--max-degree", 1), "--max-degree"),
        (("--link-speed", 0), "--link-speed"),
        (("--compute-seconds", 0), "--compute-seconds: is 0.0, must be finite and above zero"),
        (("--start", "star"), "seed topology"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_machine_that_cannot_be_is_refused_with_its_value(
    profiles: Almanac, changed: tuple[object, ...], reason: str
) -> None:
    outcome = profiles("reconfigure", "cg", *MACHINE, *changed, "--json")
    assert outcome.code == 1
    assert reason in outcome.error["reason"]


def test_an_application_in_two_parts_is_refused_by_a_rank_of_the_other(
    profiles: Almanac, tmp_path: Path
) -> None:
    path = tmp_path / "parts.csv"
    path.write_text("src,dst,bytes\n0,1,500\n2,3,9000\n", "utf-8")
    assert profiles("ingest", path).code == 0
    outcome = profiles("reconfigure", "parts", *MACHINE, "--json")
    assert outcome.code == 1
    assert "2" in outcome.error["reason"]


@pytest.mark.parametrize("content", ["", "x,y\n0,1\n", "a,b\n0,x\n", "a,b\n0,9\n", "a,b\n1,1\n"])
def test_a_bad_file_of_circuits_is_refused(profiles: Almanac, tmp_path: Path, content: str) -> None:
    path = tmp_path / "present.csv"
    path.write_text(content, "utf-8")
    outcome = profiles("reconfigure", "cg", *MACHINE, "--present", path, "--json")
    assert outcome.code == 1
    assert (outcome.error["error"], outcome.error["path"]) == ("InputError", str(path))


def test_what_is_found_is_saved_once(profiles: Almanac, embedded_database: Database) -> None:
    answer = reconfigure(profiles, "--trials", 20, "--seed", 2)
    assert reconfigure(profiles, "--trials", 20, "--seed", 2)["circuit_plan"] == answer["circuit_plan"]
    registry = Registry(embedded_database)
    (info,) = registry.circuit_plans.list()
    assert (info.id, info.cluster, info.profile_names) == (answer["circuit_plan"], None, ("cg",))
    assert info.parameters == {"trials": 20}
    plan = registry.circuit_plans.read(info.id).plan
    assert plan.node_of_vertex.tolist() == answer["node_of_rank"]
    assert [list(pair) for pair in plan.circuits] == [[one["a"], one["b"]] for one in answer["circuits"]]
    assert plan.trail_throughput.tolist() == [one["throughput"] for one in answer["trail"]]
    assert (plan.throughput, plan.upper_bound) == (answer["throughput"], answer["upper_bound"]["throughput"])


def test_nothing_is_saved_where_the_search_fails(profiles: Almanac, embedded_database: Database) -> None:
    assert profiles("reconfigure", "cg", *MACHINE, "--start", "star").code == 1
    assert Registry(embedded_database).circuit_plans.list() == ()
