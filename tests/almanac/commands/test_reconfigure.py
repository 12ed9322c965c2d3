"""A cluster's optical switch; circuits for what runs on it or for a profile, beside a bound and the old."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mapping.circuits.local_search import improve
from mapping.circuits.solution import SearchResult
from registry.registry import Registry
from tests.almanac.commands.test_today import shown_by_slurm
from tests.almanac.conftest import PROFILE, Almanac
from tests.support.paths import written

EDGES = "src,dst,bytes\n0,1,1000\n1,2,1000\n2,3,1000\n3,0,1000\n0,2,50000\n1,3,10\n"
LIMITS = ("--max-degree", 3, "--max-edges", 12, "--link-speed", 1e6)
FEW = ("--trials", 30)
OPTICAL = ("cluster", "optical", "opt")
Hosts = tuple[str, ...]


@pytest.fixture
def cluster(almanac: Almanac, tmp_path: Path) -> Almanac:
    """Eight hosts, and an application of four ranks of which two exchange most."""
    almanac.ok("generate", "fabric", "torus", "--sides", "2,4", "--cluster", "opt")
    almanac.ok("ingest", written(tmp_path, "four.csv", EDGES), "--name", "four")
    return almanac


@pytest.fixture
def hosts(cluster: Almanac, registry: Registry) -> Hosts:
    fabric = registry.fabrics.read("opt").fabric
    return tuple(fabric.names[vertex] for vertex in fabric.hosts.tolist())


@pytest.fixture
def busy(cluster: Almanac, hosts: Hosts, tmp_path: Path) -> Almanac:
    """Jobs 1 and 2 run that application on four hosts each; job 3 has no profile."""
    answer = [
        shown_by_slurm(job, "ann", ",".join(where), "four", nodes=len(where), tasks=4, cpus=cpus)
        for job, where, cpus in (("1", hosts[:4], "0"), ("2", hosts[4:], "0"), ("3", hosts[:1], "0-3"))
    ]
    cluster.ok("ingest", written(tmp_path, "jobs.txt", "".join(answer)), "--cluster", "opt")
    for job in ("1", "2"):
        cluster.ok("job", "attach", job, "four")
    return cluster


@pytest.fixture
def switched(busy: Almanac, hosts: Hosts, tmp_path: Path) -> Almanac:
    ring = circuits(tmp_path / "ring.csv", zip(hosts, (*hosts[1:], hosts[0]), strict=True))
    busy.ok(*OPTICAL, *LIMITS, "--circuits", ring)
    return busy


def circuits(path: Path, pairs: Iterable[tuple[str, str]]) -> Path:
    path.write_text("a,b\n" + "".join(f"{one},{other}\n" for one, other in pairs), "utf-8")
    return path


def found(almanac: Almanac, *arguments: object) -> Any:
    return almanac.json("reconfigure", "--cluster", "opt", *FEW, *arguments)


def test_a_switch_is_stored_and_other_values_stay(switched: Almanac, hosts: Hosts, tmp_path: Path) -> None:
    answer = switched.json(*OPTICAL)
    assert answer["hosts"] == list(hosts)
    assert (answer["max_degree"], answer["max_edges"], answer["link_speed"]) == (3, 12, 1e6)
    assert (answer["compute_seconds"], answer["circuit_plan"]) == (0.0, None)
    assert len(answer["circuits"]) == 8
    assert f"{hosts[0]} - {hosts[1]}" in switched.ok(*OPTICAL).out
    answer = switched.json(*OPTICAL, "--max-degree", 4, "--compute-seconds", 0.25)
    assert (answer["max_degree"], answer["max_edges"], answer["compute_seconds"]) == (4, 12, 0.25)
    assert len(answer["circuits"]) == 8
    path = tmp_path / "out.csv"
    switched.ok(*OPTICAL, "--export", f"circuits={path}")
    assert path.read_text("utf-8").splitlines()[0] == "a,b"
    switched.ok(*OPTICAL, "--circuits", path)
    fewer = switched.json(*OPTICAL, "--hosts", ",".join(hosts[:4]))
    assert (fewer["hosts"], fewer["circuits"]) == (list(hosts[:4]), None)


REFUSED: tuple[tuple[tuple[object, ...], int, str], ...] = (
    (("--max-degree", 1), 1, "--max-degree: is 1"),
    (("--link-speed", 0), 1, "--link-speed: is 0.0"),
    (("--compute-seconds", -1), 1, "--compute-seconds: is -1.0"),
    (("--max-edges", 7), 1, "optical switch circuits: are 8, max_edges is 7"),
    (("--hosts", "nowhere"), 1, "there is no host 'nowhere'"),
    (("--applied", "r0"), 1, "there is no circuit plan 'r0'"),
    (("--applied", "r0", "--circuits", "x"), 2, "give either --circuits or --applied"),
)


def test_a_switch_that_cannot_be_leaves_the_one_before(switched: Almanac) -> None:
    before = switched.json(*OPTICAL)
    for changed, code, reason in REFUSED:
        assert reason in switched.error(*OPTICAL, *changed, code=code)["reason"]
        assert switched.json(*OPTICAL) == before


def test_an_unknown_switch_says_what_to_do(cluster: Almanac, hosts: Hosts, tmp_path: Path) -> None:
    assert "almanac cluster optical" in cluster.refused(*OPTICAL)
    assert "give --max-edges, --link-speed" in cluster.refused(*OPTICAL, "--max-degree", 3, code=2)
    assert "opt" in cluster.refused("cluster", "optical", "opts", *LIMITS)
    path = circuits(tmp_path / "circuits.csv", [hosts[:2]])  # type: ignore[list-item]
    refused = cluster.refused(*OPTICAL, *LIMITS, "--circuits", path)
    assert "no path of links connects node 2 and node 0" in refused
    cluster.refused(*OPTICAL)
    cluster.ok(*OPTICAL, *LIMITS)
    idle = cluster.refused("reconfigure", "--cluster", "opt")
    assert "no running jobs known on opt" in idle
    assert "no running job with a known profile" in idle


def test_the_next_circuits_suit_the_running_jobs(
    switched: Almanac, hosts: Hosts, registry: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "routes.csv"
    answer = found(switched, "--reconfiguration-seconds", 2, "--export", f"routes={path}")
    assert {(job["job"], job["ranks"], job["user"]) for job in answer["jobs"]} == {
        (n, 4, "ann") for n in "12"
    }
    assert (answer["running_job_count"], answer["without_profile"], answer["left_out"]) == (3, ["3"], [])
    ends = [end for one in answer["circuits"] for end in (one["a"], one["b"])]
    assert set(ends) == set(hosts)
    # on the ring the two that exchange most are two circuits apart, and share them with others
    pairs = {frozenset((one["a"], one["b"])) for one in answer["circuits"]}
    assert {frozenset((hosts[0], hosts[2])), frozenset((hosts[4], hosts[6]))} <= pairs
    gain = answer["present"]["gain"]
    assert gain > 1.0
    assert answer["present"]["break_even_seconds"] == pytest.approx(2 * gain / (gain - 1))
    (info,) = registry.circuit_plans.list("opt")
    assert (info.id, set(info.jobs)) == (answer["circuit_plan"], {"1", "2"})
    assert registry.circuit_plans.read(info.id).hosts == hosts
    load = dict.fromkeys(pairs, 0.0)
    for row in csv.DictReader(path.read_text("utf-8").splitlines()):
        way = row["route"].split()
        assert (way[0], way[-1]) == (row["one"], row["other"])  # ranks stay: routes are named by hosts
        for one, other in itertools.pairwise(way):
            load[frozenset((one, other))] += float(row["bytes"])
    assert load == {frozenset((one["a"], one["b"])): one["bytes"] for one in answer["circuits"]}
    assert sum(load.values()) > 0


def test_an_applied_plan_leaves_nothing_to_gain(switched: Almanac, hosts: Hosts) -> None:
    first = found(switched)
    applied = switched.json(*OPTICAL, "--applied", first["circuit_plan"][:8])
    assert applied["circuit_plan"] == first["circuit_plan"]
    assert sorted(applied["circuits"]) == sorted([one["a"], one["b"]] for one in first["circuits"])
    assert found(switched)["present"]["throughput"] == pytest.approx(first["throughput"])
    shown = switched.ok("reconfigure", "--cluster", "opt", *FEW)
    assert ("whose ranks stay" in shown.out, "saved as r" in shown.out) == (True, True)
    assert "which have no profile: 3" in shown.err
    switched.ok(*OPTICAL, "--hosts", ",".join(hosts[:4]))
    beside = found(switched)
    (left,) = beside["left_out"]
    assert ([job["job"] for job in beside["jobs"]], left["job"]) == (["1"], "2")
    assert f"'{hosts[4]}' is not on the optical switch" in left["reason"]


def test_unknown_circuits_may_be_given(busy: Almanac, hosts: Hosts, tmp_path: Path) -> None:
    busy.ok(*OPTICAL, *LIMITS)
    outcome = busy.ok("reconfigure", "--cluster", "opt", *FEW, "--json")
    assert outcome.json["present"] is None
    assert "so the gain is unknown" in outcome.err
    path = circuits(tmp_path / "present.csv", itertools.pairwise(hosts))
    assert found(busy, "--present", path)["present"]["gain"] >= 1.0


def test_options_that_do_not_go_together_are_usage_errors(offline: Almanac) -> None:
    for words, answer in (
        ((), "give PROFILE, --cluster, or both"),
        (("cg",), "without --cluster give --nodes, --max-degree, --max-edges, --link-speed"),
        (("--cluster", "c", "--nodes", 4), "--nodes: stored with a cluster by `almanac cluster optical`"),
        (("--cluster", "c", "--start", "ring"), "--start: only with PROFILE"),
        (("--cluster", "c", "--paper"), "--paper: only with PROFILE"),
        (("cg", "--cluster", "c", "--at", "2026-01-01"), "--at is for running jobs"),
        (("cg", "--cluster", "c", "--patience", 3), "--patience: only with --paper"),
        (("cg", "--cluster", "c", "--steps", 3, "--expansion", "highest"), "only with --paper"),
        (("cg", "--cluster", "c", "--paper", "--trials", 3), "--trials is an option of our own search"),
    ):
        assert answer in offline.refused("reconfigure", *words, code=2)


def test_an_interrupt_saves_the_best(
    switched: Almanac, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(one: Any, two: Any, start: Any, options: Any, **rest: Any) -> SearchResult:
        return replace(improve(one, two, start, replace(options, trials=5), **rest), complete=False)

    monkeypatch.setattr("mapping.circuits.plan.improve", interrupted)
    outcome = switched("reconfigure", "--cluster", "opt", "--json")
    assert (outcome.code, outcome.json["complete"]) == (130, False)
    (info,) = registry.circuit_plans.list("opt")
    assert (info.id, info.complete) == (outcome.json["circuit_plan"], False)


def test_a_profile_is_planned_and_the_history_lists_it(
    switched: Almanac, hosts: Hosts, tmp_path: Path
) -> None:
    plan, path = found(switched)["circuit_plan"], tmp_path / "circuits.csv"
    answer = switched.json("reconfigure", "four", "--cluster", "opt", *FEW, "--export", f"circuits={path}")
    names = ("profile", "cluster", "nodes", "compute_seconds")
    assert tuple(answer[name] for name in names) == ("four", "opt", 8, 1.0)
    assert {one["a"] for one in answer["circuits"]} <= set(hosts)
    assert path.read_text("utf-8").splitlines()[1].split(",")[0] in hosts
    assert answer["present"]["throughput"] > 0
    rows = switched.json("history", "circuits")
    assert [len(row["job_ids"]) for row in rows] == [0, 2]
    assert rows[1]["circuit_plan"] == plan
    (mine,) = switched.json("history", "circuits", "--job", 2)
    assert (mine["circuit_plan"], mine["cluster"], mine["profiles"]) == (plan, "opt", ["four"])
    assert len(switched.json("history", "circuits", "--cluster", "opt", "--top", 1)) == 1
    assert switched.json("history") == []
    assert plan in switched.ok("history", "circuits").out
    switched.refused("history", "circuits", "regressions", code=2)


MACHINE = ("--nodes", 4, "--max-degree", 3, "--max-edges", 5, "--link-speed", 1e6)


@pytest.fixture
def profiles(almanac: Almanac) -> Almanac:
    almanac.ok("ingest", PROFILE, "--name", "cg")
    return almanac


def reconfigure(profiles: Almanac, *arguments: object) -> Any:
    return profiles.json("reconfigure", "cg", *MACHINE, *arguments)


@pytest.mark.parametrize("how", [("--trials", 400), ("--paper", "--patience", 3)], ids=["best", "paper"])
def test_circuits_keep_limits_and_the_busiest_decides(profiles: Almanac, how: tuple[object, ...]) -> None:
    answer = reconfigure(profiles, *how)
    ends = [end for one in answer["circuits"] for end in (one["a"], one["b"])]
    assert (len(answer["circuits"]) <= 5, max(map(ends.count, range(4))) <= 3) == (True, True)
    assert len(answer["node_of_rank"]) == answer["ranks"] == 16
    assert answer["complete"] is True
    busiest = max(one["bytes"] for one in answer["circuits"])
    assert answer["communication_throughput"] == pytest.approx(1e6 / busiest)
    assert answer["throughput"] == min(answer["communication_throughput"], answer["compute_throughput"])
    assert answer["throughput"] <= answer["upper_bound"]["throughput"]
    assert [one["number"] for one in answer["trail"]] == list(range(len(answer["trail"])))


def test_the_present_circuits_are_compared_with_those_found(profiles: Almanac, tmp_path: Path) -> None:
    path = written(tmp_path, "present.csv", "a,b\n0,1\n1,2\n2,3\n")
    answer = reconfigure(profiles, *FEW, "--present", path, "--reconfiguration-seconds", 2)
    found = {(one["a"], one["b"]) for one in answer["circuits"]}
    kept = {(0, 1), (1, 2), (2, 3)} - {tuple(pair) for pair in answer["present"]["removed"]}
    assert kept | {tuple(pair) for pair in answer["present"]["added"]} == found
    shown = profiles.ok("reconfigure", "cg", *MACHINE, *FEW, "--present", path)
    assert "certified upper bound" in shown.out


def test_routes_join_nodes_of_ranks_and_circuits_can_be_a_start(profiles: Almanac, tmp_path: Path) -> None:
    path, circuits = tmp_path / "routes.csv", tmp_path / "circuits.csv"
    exports = ("--export", f"routes={path}", "--export", f"circuits={circuits}")
    answer = reconfigure(profiles, *FEW, "--compute-seconds", 100, *exports)
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert len({(row["one"], row["other"]) for row in rows}) == len(rows) > 0
    for row in rows:  # ends of ranks are nodes
        way = [int(node) for node in row["route"].split()]
        assert [way[0], way[-1]] == [answer["node_of_rank"][int(row[end])] for end in ("one", "other")]
    lines = circuits.read_text("utf-8").splitlines()
    assert lines == ["a,b", *(f"{one['a']},{one['b']}" for one in answer["circuits"])]
    again = reconfigure(profiles, *FEW, "--start", circuits, "--present", circuits)
    assert again["throughput"] >= again["trail"][0]["throughput"]


def test_ranks_compute_by_their_weights(profiles: Almanac, tmp_path: Path) -> None:
    weight = [7.0, *[0.5] * 15]
    text = "rank,weight\n" + "".join(f"{at},{one}\n" for at, one in enumerate(weight))
    path = written(tmp_path, "weights.csv", text)
    answer = reconfigure(profiles, *FEW, "--compute-seconds", 2, "--weights", path)
    load = np.bincount(answer["node_of_rank"], 2 * np.array(weight))
    assert answer["compute_throughput"] == pytest.approx(1 / load.max())
    assert answer["upper_bound"]["throughput"] == pytest.approx(1 / 14)
    assert answer["weights"] == str(path)
    (kept,) = profiles.json("history", "circuits")
    assert len(kept["parameters"]["weights"]) == 12


def test_a_default_limit_is_named(profiles: Almanac) -> None:
    hint = "computing limits the throughput, at the default of 1 s per rank"
    fast = ("reconfigure", "cg", *MACHINE, *FEW, "--link-speed", 1e12)
    assert hint in profiles(*fast).err
    assert hint not in profiles(*fast, "--compute-seconds", 1).err


def test_what_cannot_be_is_refused_unsaved(profiles: Almanac, tmp_path: Path, registry: Registry) -> None:
    for changed, reason in (
        (("--max-degree", 1), "--max-degree: is 1, must be"),
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
    assert (plan.node_of_vertex.tolist(), plan.throughput) == (answer["node_of_rank"], answer["throughput"])
