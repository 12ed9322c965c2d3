"""``almanac reconfigure``: circuits for a saved profile, beside a certified bound and the present ones."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

import pytest

from registry.registry import Registry
from tests.almanac.conftest import PROFILE, Almanac

MACHINE = ("--nodes", 4, "--max-degree", 3, "--max-edges", 5, "--link-speed", 1e6)
FEW = ("--trials", 30)


@pytest.fixture
def profiles(almanac: Almanac) -> Almanac:
    almanac.ok("ingest", PROFILE, "--name", "cg")
    return almanac


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def reconfigure(profiles: Almanac, *arguments: object) -> Any:
    return profiles.json("reconfigure", "cg", *MACHINE, *arguments)


@pytest.mark.parametrize("how", [("--trials", 400), ("--paper", "--patience", 3)], ids=["best", "paper"])
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


def test_the_present_circuits_are_compared_with_those_found(profiles: Almanac, tmp_path: Path) -> None:
    path = written(tmp_path, "present.csv", "a,b\n0,1\n1,2\n2,3\n")
    answer = reconfigure(profiles, *FEW, "--present", path, "--reconfiguration-seconds", 2)
    against = answer["present"]
    assert against["gain"] == pytest.approx(answer["throughput"] / against["throughput"])
    found = {(one["a"], one["b"]) for one in answer["circuits"]}
    kept = {(0, 1), (1, 2), (2, 3)} - {tuple(pair) for pair in against["removed"]}
    assert kept | {tuple(pair) for pair in against["added"]} == found
    if against["seconds_saved"] > 0:
        assert against["break_even_profiles"] == pytest.approx(2 / against["seconds_saved"])
    shown = profiles.ok("reconfigure", "cg", *MACHINE, *FEW, "--present", path)
    assert "certified upper bound" in shown.out


def test_written_routes_load_circuits_as_reported_and_circuits_can_be_started_from(
    profiles: Almanac, tmp_path: Path
) -> None:
    path, circuits = tmp_path / "routes.csv", tmp_path / "circuits.csv"
    exports = ("--export", f"routes={path}", "--export", f"circuits={circuits}")
    answer = reconfigure(profiles, *FEW, "--compute-seconds", 100, *exports)
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
    lines = circuits.read_text("utf-8").splitlines()
    assert lines == ["a,b", *(f"{one['a']},{one['b']}" for one in answer["circuits"])]
    again = reconfigure(profiles, *FEW, "--start", circuits, "--present", circuits)
    assert again["throughput"] >= again["trail"][0]["throughput"]


def test_ranks_compute_by_their_weights(profiles: Almanac, tmp_path: Path) -> None:
    weight = [7.0, *[0.5] * 15]
    text = "rank,weight\n" + "".join(f"{at},{one}\n" for at, one in enumerate(weight))
    path = written(tmp_path, "weights.csv", text)
    answer = reconfigure(profiles, *FEW, "--compute-seconds", 2, "--weights", path)
    load = [0.0] * 4
    for rank, node in enumerate(answer["node_of_rank"]):
        load[node] += 2 * weight[rank]
    assert answer["compute_throughput"] == pytest.approx(1 / max(load))
    assert answer["upper_bound"]["throughput"] == pytest.approx(1 / 14)
    assert answer["weights"] == str(path)
    (kept,) = profiles.json("history", "circuits")
    assert len(kept["parameters"]["weights"]) == 12


def test_a_default_limit_is_named(profiles: Almanac) -> None:
    hint = "computing limits the throughput, at the default of 1 s per rank"
    fast = ("reconfigure", "cg", *MACHINE, *FEW, "--link-speed", 1e12)
    assert hint in profiles(*fast).err
    assert hint not in profiles(*fast, "--compute-seconds", 1).err


def test_what_cannot_be_is_refused_with_its_value_and_nothing_is_saved(
    profiles: Almanac, tmp_path: Path, registry: Registry
) -> None:
    for changed, reason in (
        (("--max-edges", 2), "--max-edges"),
        (("--max-degree", 1), "--max-degree: is 1, must be"),
        (("--link-speed", 0), "--link-speed"),
        (("--compute-seconds", 0), "--compute-seconds: is 0.0, must be finite and above zero"),
        (("--start", "star"), "seed topology"),
        (("--weights", written(tmp_path, "weights.csv", "rank,load\n")), "columns rank,weight"),
    ):
        assert reason in profiles.error("reconfigure", "cg", *MACHINE, *changed)["reason"]
    path = written(tmp_path, "present.csv", "a,b\n0,x\n")
    error = profiles.error("reconfigure", "cg", *MACHINE, "--present", path)
    assert (error["error"], error["path"], error["line"]) == ("InputError", str(path), 2)
    profiles.ok("ingest", written(tmp_path, "parts.csv", "src,dst,bytes\n0,1,500\n2,3,9000\n"))
    # an application in two parts is refused by a rank of the other
    assert "2" in profiles.error("reconfigure", "parts", *MACHINE)["reason"]
    assert registry.circuit_plans.list() == ()


def test_what_is_found_is_saved_once(profiles: Almanac, registry: Registry) -> None:
    answer, again = (reconfigure(profiles, "--trials", 20, "--seed", 2) for _ in range(2))
    for one in (*answer["trail"], *again["trail"]):
        del one["wall_seconds"]
    assert answer == again
    (info,) = registry.circuit_plans.list()
    assert (info.id, info.cluster, info.profile_names) == (answer["circuit_plan"], None, ("cg",))
    assert info.parameters == {"trials": 20}
    plan = registry.circuit_plans.read(info.id).plan
    assert plan.node_of_vertex.tolist() == answer["node_of_rank"]
    assert [list(pair) for pair in plan.circuits] == [[one["a"], one["b"]] for one in answer["circuits"]]
    assert plan.trail_throughput.tolist() == [one["throughput"] for one in answer["trail"]]
    assert (plan.throughput, plan.upper_bound) == (answer["throughput"], answer["upper_bound"]["throughput"])
