"""A cluster's optical switch, and circuits for what runs on it, from the command line."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mapping.reconfiguration.model.solution import SearchResult
from mapping.reconfiguration.search.local_search import improve
from registry.database.driver import Database
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


@pytest.fixture
def cluster(embedded: Almanac, tmp_path: Path) -> Almanac:
    """Eight hosts, and an application of four ranks of which two exchange most."""
    made = embedded("generate", "fabric", "torus", "--sides", "2,4", "--cluster", "opt")
    assert made.code == 0, made.err
    path = tmp_path / "four.csv"
    path.write_text(EDGES, "utf-8")
    assert embedded("ingest", path, "--name", "four").code == 0
    return embedded


@pytest.fixture
def hosts(cluster: Almanac, embedded_database: Database) -> tuple[str, ...]:
    fabric = Registry(embedded_database).fabrics.read("opt").fabric
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
    call = cluster("ingest", path, "--cluster", "opt")
    assert call.code == 0, call.err
    for job in ("1", "2"):
        assert cluster("job", "attach", job, "four").code == 0
    return cluster


@pytest.fixture
def switched(busy: Almanac, hosts: tuple[str, ...], tmp_path: Path) -> Almanac:
    """All hosts are on an optical switch, set as a ring."""
    path = tmp_path / "ring.csv"
    rows = [f"{one},{other}\n" for one, other in zip(hosts, (*hosts[1:], hosts[0]), strict=True)]
    path.write_text("a,b\n" + "".join(rows), "utf-8")
    call = busy("cluster", "optical", "opt", *LIMITS, "--circuits", path)
    assert call.code == 0, call.err
    return busy


def found(almanac: Almanac, *arguments: object) -> Any:
    outcome = almanac("reconfigure", "--cluster", "opt", *FEW, *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return outcome.json


def test_a_switch_is_stored_once_and_shown(switched: Almanac, hosts: tuple[str, ...]) -> None:
    answer = switched("cluster", "optical", "opt", "--json").json
    assert answer["hosts"] == list(hosts)
    assert (answer["max_degree"], answer["max_edges"], answer["link_speed"]) == (3, 12, 1e6)
    assert (answer["compute_seconds"], answer["circuit_plan"]) == (0.0, None)
    assert len(answer["circuits"]) == 8
    shown = switched("cluster", "optical", "opt")
    assert shown.code == 0
    assert f"{hosts[0]} - {hosts[1]}" in shown.out


def test_values_that_are_not_given_stay(switched: Almanac, hosts: tuple[str, ...], tmp_path: Path) -> None:
    answer = switched(
        "cluster", "optical", "opt", "--max-degree", 4, "--compute-seconds", 0.25, "--json"
    ).json
    assert (answer["max_degree"], answer["max_edges"], answer["compute_seconds"]) == (4, 12, 0.25)
    assert len(answer["circuits"]) == 8
    path = tmp_path / "out.csv"
    assert switched("cluster", "optical", "opt", "--export", f"circuits={path}").code == 0
    assert path.read_text("utf-8").splitlines()[0] == "a,b"
    assert switched("cluster", "optical", "opt", "--circuits", path).code == 0
    fewer = switched("cluster", "optical", "opt", "--hosts", ",".join(hosts[:4]), "--json").json
    assert (fewer["hosts"], fewer["circuits"]) == (list(hosts[:4]), None)


@pytest.mark.parametrize(
    ("changed", "code", "reason"),
    [
        (("--max-degree", 1), 1, "--max-degree: is 1"),
        (("--max-edges", 6), 1, "--max-edges: is 6"),
        (("--link-speed", 0), 1, "--link-speed: is 0.0"),
        (("--link-speed", "nan"), 1, "--link-speed: is nan"),
        (("--compute-seconds", -1), 1, "--compute-seconds: is -1.0"),
        (("--max-edges", 7), 1, "optical switch circuits: are 8, max_edges is 7"),
        (("--hosts", "nowhere"), 1, "there is no host 'nowhere'"),
        (("--applied", "r0"), 1, "there is no circuit plan 'r0'"),
        (("--applied", "r0", "--circuits", "x"), 2, "give either --circuits or --applied"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_switch_that_cannot_be_leaves_the_one_before(
    switched: Almanac, changed: tuple[object, ...], code: int, reason: str
) -> None:
    before = switched("cluster", "optical", "opt", "--json").json
    outcome = switched("cluster", "optical", "opt", *changed, "--json")
    assert outcome.code == code
    assert reason in outcome.error["reason"]
    assert switched("cluster", "optical", "opt", "--json").json == before


def test_an_unknown_switch_reports_what_to_give(cluster: Almanac) -> None:
    nothing = cluster("cluster", "optical", "opt")
    assert nothing.code == 1
    assert "almanac cluster optical" in nothing.err
    little = cluster("cluster", "optical", "opt", "--max-degree", 3)
    assert little.code == 2
    assert "give --max-edges, --link-speed" in little.err
    unknown = cluster("cluster", "optical", "opts", *LIMITS)
    assert (unknown.code, "opt" in unknown.err) == (1, True)


def test_circuits_that_leave_a_host_out_are_refused(
    busy: Almanac, hosts: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "circuits.csv"
    path.write_text(f"a,b\n{hosts[0]},{hosts[1]}\n", "utf-8")
    outcome = busy("cluster", "optical", "opt", *LIMITS, "--circuits", path)
    assert outcome.code == 1
    assert "no path of links connects node 2 and node 0" in outcome.err
    assert busy("cluster", "optical", "opt").code == 1


def test_the_next_circuits_suit_the_running_jobs(
    switched: Almanac, hosts: tuple[str, ...], embedded_database: Database
) -> None:
    answer = found(switched, "--reconfiguration-seconds", 2)
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
    registry = Registry(embedded_database)
    (info,) = registry.circuit_plans.list("opt")
    assert (info.id, set(info.jobs)) == (answer["circuit_plan"], {"1", "2"})
    assert registry.circuit_plans.read(info.id).hosts == hosts


def test_routes_are_written_by_hosts_if_ranks_stay(
    switched: Almanac, hosts: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "routes.csv"
    answer = found(switched, "--export", f"routes={path}")
    load = {frozenset((one["a"], one["b"])): 0.0 for one in answer["circuits"]}
    for row in csv.DictReader(path.read_text("utf-8").splitlines()):
        way = row["route"].split()
        assert (way[0], way[-1]) == (row["one"], row["other"])
        assert set(way) <= set(hosts)
        for one, other in itertools.pairwise(way):
            load[frozenset((one, other))] += float(row["bytes"])
    assert load == {frozenset((one["a"], one["b"])): one["bytes"] for one in answer["circuits"]}
    assert sum(load.values()) > 0


def test_an_applied_plan_leaves_nothing_to_gain(switched: Almanac) -> None:
    first = found(switched)
    applied = switched("cluster", "optical", "opt", "--applied", first["circuit_plan"][:8], "--json").json
    assert applied["circuit_plan"] == first["circuit_plan"]
    assert sorted(applied["circuits"]) == sorted([one["a"], one["b"]] for one in first["circuits"])
    again = found(switched)["present"]
    assert again["throughput"] == pytest.approx(first["throughput"])
    shown = switched("reconfigure", "--cluster", "opt", *FEW)
    assert shown.code == 0
    assert "whose ranks stay" in shown.out
    assert "saved as r" in shown.out
    assert "which have no profile: 3" in shown.err


def test_unknown_present_circuits_are_reported_and_may_be_given(
    busy: Almanac, hosts: tuple[str, ...], tmp_path: Path
) -> None:
    assert busy("cluster", "optical", "opt", *LIMITS).code == 0
    outcome = busy("reconfigure", "--cluster", "opt", *FEW, "--json")
    assert outcome.code == 0
    assert outcome.json["present"] is None
    assert "so the gain is unknown" in outcome.err
    path = tmp_path / "present.csv"
    rows = [f"{one},{other}\n" for one, other in itertools.pairwise(hosts)]
    path.write_text("a,b\n" + "".join(rows), "utf-8")
    assert found(busy, "--present", path)["present"]["gain"] >= 1.0


def test_computing_limits_what_can_be_gained(switched: Almanac) -> None:
    answer = found(switched, "--compute-seconds", 1000)
    assert answer["compute_throughput"] == pytest.approx(1e-3)
    assert (answer["throughput"], answer["upper_bound"]["name"]) == (pytest.approx(1e-3), "compute")
    assert answer["present"]["added"] == []


def test_jobs_beside_the_switch_are_left_out(switched: Almanac, hosts: tuple[str, ...]) -> None:
    assert switched("cluster", "optical", "opt", "--hosts", ",".join(hosts[:4])).code == 0
    answer = found(switched)
    assert [job["job"] for job in answer["jobs"]] == ["1"]
    (left,) = answer["left_out"]
    assert left["job"] == "2"
    assert f"'{hosts[4]}' is not on the optical switch" in left["reason"]


def test_nothing_on_the_switch_fails_with_a_message(cluster: Almanac) -> None:
    assert cluster("cluster", "optical", "opt", *LIMITS).code == 0
    outcome = cluster("reconfigure", "--cluster", "opt")
    assert outcome.code == 1
    assert "no running jobs known on opt" in outcome.err
    assert "no running job with a known profile" in outcome.err


def test_a_profile_is_planned_on_a_clusters_switch(
    switched: Almanac, hosts: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "circuits.csv"
    outcome = switched(
        "reconfigure", "four", "--cluster", "opt", *FEW, "--export", f"circuits={path}", "--json"
    )
    assert outcome.code == 0, outcome.err
    answer = outcome.json
    assert (answer["profile"], answer["cluster"], answer["nodes"], answer["compute_seconds"]) == (
        "four",
        "opt",
        8,
        1.0,
    )
    assert {one["a"] for one in answer["circuits"]} <= set(hosts)
    assert path.read_text("utf-8").splitlines()[1].split(",")[0] in hosts
    assert answer["present"]["throughput"] > 0


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
    outcome = offline("reconfigure", *words)
    assert outcome.code == 2
    assert answer in outcome.err


def test_an_interrupt_saves_the_best_so_far(
    switched: Almanac, embedded_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(one: Any, two: Any, start: Any, options: Any, **rest: Any) -> SearchResult:
        return replace(improve(one, two, start, replace(options, trials=5), **rest), complete=False)

    monkeypatch.setattr("mapping.reconfiguration.plan.next_circuits.improve", interrupted)
    outcome = switched("reconfigure", "--cluster", "opt", "--json")
    assert (outcome.code, outcome.json["complete"]) == (130, False)
    (info,) = Registry(embedded_database).circuit_plans.list("opt")
    assert (info.id, info.complete) == (outcome.json["circuit_plan"], False)


def test_the_history_lists_plans_beside_placements(switched: Almanac) -> None:
    plan = found(switched)["circuit_plan"]
    assert switched("reconfigure", "four", "--cluster", "opt", *FEW).code == 0
    rows = switched("history", "circuits", "--json").json
    assert [len(row["job_ids"]) for row in rows] == [0, 2]
    assert rows[1]["circuit_plan"] == plan
    (mine,) = switched("history", "circuits", "--job", 2, "--json").json
    assert (mine["circuit_plan"], mine["cluster"], mine["profiles"]) == (plan, "opt", ["four"])
    assert len(switched("history", "circuits", "--cluster", "opt", "--top", 1, "--json").json) == 1
    assert "'none'" in switched("history", "circuits", "--application", "none").err
    assert switched("history", "--json").json == []
    shown = switched("history", "circuits")
    assert plan in shown.out
    assert "closest: opt" in switched("history", "circuits", "--cluster", "opts").err
    assert switched("history", "circuits", "regressions").code == 2
