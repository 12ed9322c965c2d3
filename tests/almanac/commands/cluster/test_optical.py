"""A cluster's optical switch, and circuits for what runs on it, from the command line."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mapping.reconfiguration.model.solution import SearchResult
from mapping.reconfiguration.search.local_search import improve
from registry.registry import Registry
from tests.almanac.conftest import Almanac

EDGES = """src,dst,bytes
0,1,1000
1,2,1000
2,3,1000
3,0,1000
0,2,50000
1,3,10
"""
JOB = """JobId={job} JobName={name}
   UserId={user}(1000) GroupId=x(1000) Account=x
   JobState=RUNNING Reason=None
   SubmitTime=2025-08-06T16:00:00 StartTime=2025-08-06T16:20:05 EndTime=Unknown
   Partition=batch NodeList={hosts}
   NumNodes={count} NumCPUs=4 NumTasks=4 CPUs/Task=1
     Nodes={hosts} CPU_IDs={cpus} Mem=0 GRES=

"""
LIMITS = ("--max-degree", 3, "--max-edges", 12, "--link-speed", 1e6)
FEW = ("--trials", 30)
OPTICAL = ("cluster", "optical", "opt")


@pytest.fixture
def cluster(almanac: Almanac, tmp_path: Path) -> Almanac:
    """Eight hosts, and an application of four ranks of which two exchange most."""
    almanac.ok("generate", "fabric", "torus", "--sides", "2,4", "--cluster", "opt")
    path = tmp_path / "four.csv"
    path.write_text(EDGES, "utf-8")
    almanac.ok("ingest", path, "--name", "four")
    return almanac


@pytest.fixture
def hosts(cluster: Almanac, registry: Registry) -> tuple[str, ...]:
    fabric = registry.fabrics.read("opt").fabric
    return tuple(fabric.names[vertex] for vertex in fabric.hosts.tolist())


@pytest.fixture
def busy(cluster: Almanac, hosts: tuple[str, ...], tmp_path: Path) -> Almanac:
    """Jobs 1 and 2 run that application on four hosts each; job 3 has no profile."""
    answer = [
        JOB.format(job=job, name="four", user="ann", hosts=",".join(where), count=len(where), cpus=cpus)
        for job, where, cpus in (("1", hosts[:4], "0"), ("2", hosts[4:], "0"), ("3", hosts[:1], "0-3"))
    ]
    path = tmp_path / "jobs.txt"
    path.write_text("".join(answer), "utf-8")
    cluster.ok("ingest", path, "--cluster", "opt")
    for job in ("1", "2"):
        cluster.ok("job", "attach", job, "four")
    return cluster


@pytest.fixture
def switched(busy: Almanac, hosts: tuple[str, ...], tmp_path: Path) -> Almanac:
    """All hosts are on an optical switch, set as a ring."""
    ring = circuits(tmp_path / "ring.csv", zip(hosts, (*hosts[1:], hosts[0]), strict=True))
    busy.ok(*OPTICAL, *LIMITS, "--circuits", ring)
    return busy


def circuits(path: Path, pairs: Iterable[tuple[str, str]]) -> Path:
    path.write_text("a,b\n" + "".join(f"{one},{other}\n" for one, other in pairs), "utf-8")
    return path


def found(almanac: Almanac, *arguments: object) -> Any:
    return almanac.json("reconfigure", "--cluster", "opt", *FEW, *arguments)


def test_a_switch_is_stored_and_shown_and_values_that_are_not_given_stay(
    switched: Almanac, hosts: tuple[str, ...], tmp_path: Path
) -> None:
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
    (("--max-edges", 6), 1, "--max-edges: is 6"),
    (("--link-speed", 0), 1, "--link-speed: is 0.0"),
    (("--link-speed", "nan"), 1, "--link-speed: is nan"),
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


def test_an_unknown_switch_reports_what_to_give(
    cluster: Almanac, hosts: tuple[str, ...], tmp_path: Path
) -> None:
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
    switched: Almanac, hosts: tuple[str, ...], registry: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "routes.csv"
    answer = found(switched, "--reconfiguration-seconds", 2, "--export", f"routes={path}")
    assert {(job["job"], job["ranks"], job["user"]) for job in answer["jobs"]} == {
        ("1", 4, "ann"),
        ("2", 4, "ann"),
    }
    assert (answer["running_job_count"], answer["without_profile"], answer["left_out"]) == (3, ["3"], [])
    ends = [end for one in answer["circuits"] for end in (one["a"], one["b"])]
    assert set(ends) == set(hosts)
    assert max(ends.count(host) for host in hosts) <= 3
    # on the ring the two that exchange most are two circuits apart, and share them with others
    pairs = {frozenset((one["a"], one["b"])) for one in answer["circuits"]}
    assert {frozenset((hosts[0], hosts[2])), frozenset((hosts[4], hosts[6]))} <= pairs
    present = answer["present"]
    assert present["gain"] == pytest.approx(answer["throughput"] / present["throughput"])
    assert present["gain"] > 1.0
    assert present["break_even_seconds"] == pytest.approx(2 * present["gain"] / (present["gain"] - 1))
    assert answer["throughput"] <= answer["upper_bound"]["throughput"] * (1 + 1e-9)
    assert len(answer["node_of_rank"]) == 8
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


def test_an_applied_plan_leaves_nothing_to_gain(switched: Almanac, hosts: tuple[str, ...]) -> None:
    first = found(switched)
    applied = switched.json(*OPTICAL, "--applied", first["circuit_plan"][:8])
    assert applied["circuit_plan"] == first["circuit_plan"]
    assert sorted(applied["circuits"]) == sorted([one["a"], one["b"]] for one in first["circuits"])
    again = found(switched)["present"]
    assert again["throughput"] == pytest.approx(first["throughput"])
    shown = switched.ok("reconfigure", "--cluster", "opt", *FEW)
    assert "whose ranks stay" in shown.out
    assert "saved as r" in shown.out
    assert "which have no profile: 3" in shown.err
    computing = found(switched, "--compute-seconds", 1000)
    assert (computing["throughput"], computing["upper_bound"]["name"]) == (pytest.approx(1e-3), "compute")
    switched.ok(*OPTICAL, "--hosts", ",".join(hosts[:4]))
    beside = found(switched)
    assert [job["job"] for job in beside["jobs"]] == ["1"]
    (left,) = beside["left_out"]
    assert left["job"] == "2"
    assert f"'{hosts[4]}' is not on the optical switch" in left["reason"]


def test_unknown_present_circuits_are_reported_and_may_be_given(
    busy: Almanac, hosts: tuple[str, ...], tmp_path: Path
) -> None:
    busy.ok(*OPTICAL, *LIMITS)
    outcome = busy.ok("reconfigure", "--cluster", "opt", *FEW, "--json")
    assert outcome.json["present"] is None
    assert "so the gain is unknown" in outcome.err
    path = circuits(tmp_path / "present.csv", itertools.pairwise(hosts))
    assert found(busy, "--present", path)["present"]["gain"] >= 1.0


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ((), "give PROFILE, --cluster, or both"),
        (("cg",), "without --cluster give --nodes, --max-degree, --max-edges, --link-speed"),
        (("--cluster", "c", "--nodes", 4), "--nodes: stored with a cluster by `almanac cluster optical`"),
        (("--cluster", "c", "--start", "ring"), "--start: only with PROFILE"),
        (("--cluster", "c", "--paper"), "--paper: only with PROFILE"),
        (("cg", "--cluster", "c", "--at", "2026-01-01"), "--at is for running jobs"),
        (("cg", "--cluster", "c", "--patience", 3), "--patience: only with --paper"),
        (("cg", "--cluster", "c", "--steps", 3, "--expansion", "highest"), "only with --paper"),
        (("cg", "--cluster", "c", "--paper", "--trials", 3), "--trials is an option of our own search"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_options_that_do_not_go_together_are_usage_errors(
    offline: Almanac, words: tuple[object, ...], answer: str
) -> None:
    assert answer in offline.refused("reconfigure", *words, code=2)


def test_an_interrupt_saves_the_best_so_far(
    switched: Almanac, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(one: Any, two: Any, start: Any, options: Any, **rest: Any) -> SearchResult:
        return replace(improve(one, two, start, replace(options, trials=5), **rest), complete=False)

    monkeypatch.setattr("mapping.reconfiguration.plan.next_circuits.improve", interrupted)
    outcome = switched("reconfigure", "--cluster", "opt", "--json")
    assert (outcome.code, outcome.json["complete"]) == (130, False)
    (info,) = registry.circuit_plans.list("opt")
    assert (info.id, info.complete) == (outcome.json["circuit_plan"], False)


def test_a_profile_is_planned_on_the_switch_and_the_history_lists_all_plans(
    switched: Almanac, hosts: tuple[str, ...], tmp_path: Path
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
