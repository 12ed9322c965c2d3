"""``almanac simulate``: what it tells, what it saves, and what it refuses."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from registry.database.driver import Database
from registry.model import Simulation
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA
FABRIC = DATA / "infiniband" / "fattree2-64-traffic"
TRACE = """t_us,src,dst,bytes,tag
0,0,1,100000,1
1,1,2,200000,1
1,2,0,3000,2
5,3,0,50000,1
9,0,1,70000,1
9,3,3,8,1
20,2,1,0,1
"""
HOSTS = ("node0001", "node0017", "node0033", "node0049")
"""Below four leaf switches: all traffic crosses cables."""


@pytest.fixture
def cluster(embedded: Almanac, tmp_path: Path) -> Almanac:
    """The fabric with its tables, and a trace of four ranks."""
    given = (FABRIC / "ibnetdiscover.txt", FABRIC / "opensm-lfts.dump")
    assert embedded("ingest", *given, "--cluster", "ft").code == 0
    path = tmp_path / "four.csv"
    path.write_text(TRACE, "utf-8")
    outcome = embedded("ingest", path, "--json")
    assert outcome.code == 0, outcome.err
    assert (outcome.json["trace_count"], outcome.json["new_traces"]) == (1, 1)
    return embedded


def placed(cluster: Almanac, steps: int = 10, profile: str = "four") -> str:
    """Id of a saved placement on those hosts."""
    search = ("--steps", steps, "--workers", 1, "--json")
    outcome = cluster("map", profile, "--cluster", "ft", "--hosts", ",".join(HOSTS), *search)
    assert outcome.code == 0, outcome.err
    return str(outcome.json["placement"])


def order(tmp_path: Path, hosts: tuple[str, ...] = HOSTS) -> Path:
    path = tmp_path / "hostfile"
    path.write_text("".join(f"{host}\n" for host in hosts), "utf-8")
    return path


def simulate(cluster: Almanac, *arguments: object, profile: str = "four") -> Any:
    outcome = cluster("simulate", profile, "--cluster", "ft", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return outcome.json


def test_a_saved_placements_run_is_printed_and_saved(cluster: Almanac, embedded_database: Database) -> None:
    placement = placed(cluster)
    answer = simulate(cluster, "--placement", placement, "--seed", 5)
    registry = Registry(embedded_database)
    (info,) = registry.simulations.list("ft")
    (trace,) = registry.traces.list()
    assert (answer["profile"], answer["cluster"], answer["snapshot"]) == ("four", "ft", info.snapshot)
    assert (answer["trace"], answer["mode"], answer["routing"], answer["seed"]) == (
        trace.id,
        "packets",
        "tables",
        5,
    )
    assert (answer["complete"], answer["parameters"]["scale"]) == (True, 1.0)
    (run,) = answer["runs"]
    assert (run["placement"], run["simulation"]) == (placement, info.id)
    assert (run["messages"], run["delivered_bytes"]) == (6, 423_000.0)
    # the last message is sent after 20 us
    assert run["completion_seconds"] >= 20e-6
    assert run["bytes_per_second"] == pytest.approx(run["delivered_bytes"] / run["completion_seconds"])
    assert list(run["latency_seconds"]) == ["0", "1", "5", "25", "50", "75", "95", "99", "99.9", "100"]
    stored = registry.simulations.read(info.id)
    assert (stored.placement, stored.trace, stored.parameters) == (placement, trace.id, answer["parameters"])
    assert stored.simulation.completion_seconds == run["completion_seconds"]


def test_links_carry_the_load_of_the_exact_congestion_model(cluster: Almanac, tmp_path: Path) -> None:
    placement, ours, exact = placed(cluster), tmp_path / "ours.csv", tmp_path / "exact.csv"
    simulate(cluster, "--placement", placement, "--export", f"links={ours}")
    asked = ("--cluster", "ft", "--placement", placement, "--export", f"links={exact}")
    assert cluster("evaluate", "four", *asked).code == 0
    ends = ("source", "source_guid", "source_port", "target", "target_guid", "target_port")
    mine, theirs = (
        {
            tuple(row[end] for end in ends): float(row["bytes"])
            for row in csv.DictReader(path.read_text("utf-8").splitlines())
        }
        for path in (ours, exact)
    )
    assert mine == theirs
    for row in csv.DictReader(ours.read_text("utf-8").splitlines()):
        assert row["placement"] == placement
        assert 0.0 < float(row["utilisation"]) <= 1.0


def test_several_placements_are_compared(cluster: Almanac, tmp_path: Path) -> None:
    placement, path = placed(cluster), order(tmp_path)
    answer = simulate(cluster, "--placement", path, "--placement", placement)
    assert [run["placement"] for run in answer["runs"]] == [str(path), placement]
    assert [run["simulation"] is None for run in answer["runs"]] == [True, False]
    shown = cluster("simulate", "four", "--cluster", "ft", "--placement", path, "--placement", placement)
    assert shown.code == 0
    assert "relative" in shown.out
    assert "not saved" in shown.out
    assert f"saved as {answer['runs'][1]['simulation']}" in shown.out


def test_the_same_run_again_is_the_same_to_the_byte_and_adds_nothing(
    cluster: Almanac, embedded_database: Database
) -> None:
    placement = placed(cluster)
    first, second = (simulate(cluster, "--placement", placement, "--seed", 3) for _ in range(2))
    for answer in (first, second):
        del answer["runs"][0]["wall_seconds"]
    assert first == second
    assert len(Registry(embedded_database).simulations.list()) == 1


def test_a_trace_is_sent_faster_and_cut_by_options(cluster: Almanac) -> None:
    placement = placed(cluster)
    slow = simulate(cluster, "--placement", placement)["runs"][0]
    fast = simulate(cluster, "--placement", placement, "--scale", "inf")
    assert fast["parameters"]["scale"] == "inf"
    assert fast["runs"][0]["completion_seconds"] < slow["completion_seconds"]
    saturated = simulate(cluster, "--placement", placement, "--scale", "saturate")
    assert saturated["parameters"]["scale"] == pytest.approx(20e-6 / fast["runs"][0]["completion_seconds"])
    cut = simulate(cluster, "--placement", placement, "--first", 2)
    assert (cut["parameters"]["first"], cut["runs"][0]["delivered_bytes"]) == (2, 300_000.0)


def test_a_profile_is_sent_in_rounds_without_a_trace_or_on_request(cluster: Almanac, tmp_path: Path) -> None:
    placement = placed(cluster)
    answer = simulate(cluster, "--placement", placement, "--rounds", 3)
    assert (answer["trace"], answer["parameters"]["rounds"]) == (None, 3)
    assert answer["runs"][0]["delivered_bytes"] == 423_000.0
    path = tmp_path / "edges.csv"
    path.write_text("src,dst,bytes\n0,1,500\n3,2,9000\n", "utf-8")
    assert cluster("ingest", path).code == 0
    answer = simulate(cluster, "--placement", placed(cluster, profile="edges"), profile="edges")
    assert (answer["trace"], answer["parameters"]["rounds"], answer["runs"][0]["messages"]) == (None, 1, 2)


def test_flits_are_sent_too(cluster: Almanac) -> None:
    answer = simulate(
        cluster, "--placement", placed(cluster), "--mode", "flits", "--first", 3, "--flit-bytes", 64
    )
    assert (answer["mode"], answer["parameters"]["flit_bytes"]) == ("flits", 64)
    assert answer["runs"][0]["delivered_bytes"] == 303_000.0


def test_the_traffic_over_time_is_written(cluster: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    answer = simulate(cluster, "--placement", placed(cluster), "--export", f"points={path}")
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    points = answer["runs"][0]["points"]
    assert [float(row["delivered_bytes"]) for row in rows] == [point["delivered_bytes"] for point in points]


def test_an_interrupted_run_is_reported_and_saved_and_no_further_one_begun(
    cluster: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedded_database: Database
) -> None:
    from mapping.simulation import simulate as module

    real = module.simulate

    def interrupted(*arguments: Any, **options: Any) -> Simulation:
        return replace(real(*arguments, **options), complete=False)

    monkeypatch.setattr(module, "simulate", interrupted)
    asked = ("--placement", placed(cluster), "--placement", order(tmp_path))
    outcome = cluster("simulate", "four", "--cluster", "ft", *asked, "--json")
    assert outcome.code == 130
    assert (outcome.json["complete"], len(outcome.json["runs"])) == (False, 1)
    (info,) = Registry(embedded_database).simulations.list()
    assert info.complete is False
    assert "interrupted" in cluster("simulate", "four", "--cluster", "ft", *asked).out


def test_an_interrupt_before_a_later_run_reports_the_earlier_ones(
    cluster: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mapping.simulation import simulate as module

    real, calls = module.simulate, []

    def interrupted(*arguments: Any, **options: Any) -> Simulation:
        calls.append(arguments)
        if len(calls) % 2 == 0:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(module, "simulate", interrupted)
    asked = ("--placement", order(tmp_path), "--placement", placed(cluster))
    outcome = cluster("simulate", "four", "--cluster", "ft", *asked, "--json")
    assert outcome.code == 130
    assert (outcome.json["complete"], len(outcome.json["runs"])) == (False, 1)
    assert outcome.json["runs"][0]["complete"] is True
    assert (
        "not simulated because of the interrupt" in cluster("simulate", "four", "--cluster", "ft", *asked).out
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--placement", "p", "--placement", "p"),
        ("--placement", "p", "--rounds", 2, "--scale", 3),
        ("--placement", "p", "--rounds", 2, "--first", 3),
        ("--placement", "p", "--rounds", 0),
        ("--placement", "p", "--scale", 0),
        ("--placement", "p", "--scale", "soon"),
        ("--placement", "p", "--mode", "letters"),
        ("--placement", "p", "--packet-bytes", 0),
        ("--placement", "p", "--seed", 1 << 64),
    ],
    ids=str,
)
def test_a_wrong_call_is_a_usage_error(offline: Almanac, arguments: tuple[object, ...]) -> None:
    assert offline("simulate", "four", "--cluster", "ft", *arguments).code == 2


def test_unknown_names_are_reported_with_the_closest_and_nothing_is_saved(
    cluster: Almanac, tmp_path: Path, embedded_database: Database
) -> None:
    placement = placed(cluster)
    calls = {
        "profile": ("fuor", "--placement", placement),
        "placement": ("four", "--placement", "p0"),
        "trace": ("four", "--placement", placement, "--trace", "t0"),
        "host": ("four", "--placement", order(tmp_path, ("node0001", "node9999", "node0033", "node0049"))),
    }
    for kind, (profile, *rest) in calls.items():
        outcome = cluster("simulate", profile, "--cluster", "ft", *rest, "--json")
        assert outcome.code == 1
        assert (outcome.error["error"], kind in outcome.error["reason"]) == ("UnknownName", True)
    assert Registry(embedded_database).simulations.list() == ()


def test_a_trace_of_another_profile_is_refused(cluster: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text(TRACE.replace("100000", "9"), "utf-8")
    assert cluster("ingest", path).code == 0
    (trace,) = cluster("profile", "show", "other", "--json").json["traces"]
    outcome = cluster(
        "simulate", "four", "--cluster", "ft", "--placement", placed(cluster), "--trace", trace, "--json"
    )
    assert outcome.code == 1
    assert "it is not of four" in outcome.error["reason"]


def test_a_placement_of_other_ranks_is_refused(cluster: Almanac, tmp_path: Path) -> None:
    path = order(tmp_path, HOSTS[:3])
    outcome = cluster("simulate", "four", "--cluster", "ft", "--placement", path, "--json")
    assert outcome.code == 1
    assert outcome.error["reason"] == "3 ranks are placed, the profile has 4"
    assert outcome.error["path"] == str(path)


def test_scale_needs_a_trace(cluster: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("# ranks: 4\nsrc,dst,bytes\n0,1,500\n", "utf-8")
    assert cluster("ingest", path).code == 0
    asked = ("--placement", order(tmp_path), "--scale", 2, "--json")
    outcome = cluster("simulate", "edges", "--cluster", "ft", *asked)
    assert outcome.code == 1
    assert "the profile has none" in outcome.error["reason"]


FILES = ("--fabric", FABRIC / "ibnetdiscover.txt", "--fabric", FABRIC / "opensm-lfts.dump")
EDGES = "# ranks: 4\nsrc,dst,bytes\n0,1,500\n3,2,9000\n"


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def test_files_alone_give_what_the_database_gives(cluster: Almanac, tmp_path: Path) -> None:
    path, placement = written(tmp_path, "again.csv", TRACE), order(tmp_path)
    saved = simulate(cluster, "--placement", placement, "--scale", 2)
    asked = ("--trace-file", path, "--placement", placement, "--scale", 2)
    outcome = cluster("simulate", *FILES, *asked, "--json")
    assert outcome.code == 0, outcome.err
    answer = outcome.json
    for document in (saved, answer):
        del document["runs"][0]["wall_seconds"]
    assert answer["runs"] == saved["runs"]
    same = ("mode", "routing", "seed", "parameters", "code_version", "complete")
    assert {name: answer[name] for name in same} == {name: saved[name] for name in same}


def test_files_alone_need_no_database(offline: Almanac, tmp_path: Path) -> None:
    path, links = written(tmp_path, "four.csv", TRACE), tmp_path / "links.csv"
    asked = ("--trace-file", path, "--placement", order(tmp_path), "--first", 2, "--export", f"links={links}")
    answer = offline("simulate", *FILES, *asked, "--json")
    assert answer.code == 0, answer.err
    assert (answer.json["snapshot"], answer.json["observed_at"]) == (None, None)
    assert (answer.json["profile"], answer.json["cluster"]) == ("four.csv", "ibnetdiscover.txt")
    assert (answer.json["trace"], answer.json["routing"]) == (str(path), "tables")
    (run,) = answer.json["runs"]
    assert (run["simulation"], run["delivered_bytes"]) == (None, 300_000.0)
    assert links.read_text("utf-8").count("\n") > 1
    shown = offline("simulate", *FILES, *asked, "--cluster", "ft")
    assert "four.csv on ft: trace" in shown.out
    assert "not saved" in shown.out


def test_a_profiles_file_is_sent_in_rounds_even_a_traces(offline: Almanac, tmp_path: Path) -> None:
    placement = order(tmp_path)
    for name, text, messages in (("edges.csv", EDGES, 4), ("four.csv", TRACE, 9)):
        asked = (written(tmp_path, name, text), "--placement", placement, "--rounds", 2)
        answer = offline("simulate", *FILES, *asked, "--json")
        assert answer.code == 0, answer.err
        assert (answer.json["trace"], answer.json["parameters"]["rounds"]) == (None, 2)
        assert answer.json["runs"][0]["messages"] == messages


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--placement", "HOSTS"), "give either PROFILE or --trace-file"),
        (("four", "--trace-file", "t", "--placement", "HOSTS"), "give either PROFILE or"),
        (("--trace-file", "t", "--placement", "HOSTS"), "--trace-file goes with --fabric"),
        (("four", "--placement", "HOSTS"), "give --cluster, or --fabric FILE"),
        (("--trace-file", "t", "--fabric", "f", "--placement", "p3f2"), "there is no file 'p3f2'"),
        (("--trace-file", "t", "--fabric", "f", "--placement", "HOSTS", "--trace", "x"), "--trace needs the"),
        (("--trace-file", "t", "--fabric", "f", "--placement", "HOSTS", "--at", "2026-01-01"), "--at needs"),
        (("--trace-file", "t", "--fabric", "f", "--placement", "HOSTS", "--rounds", 2), "not with --rounds"),
        (("p", "--fabric", "f", "--placement", "HOSTS", "--scale", 2), "give --trace-file"),
        (("p", "--fabric", "f", "--placement", "HOSTS", "--first", 2), "give --trace-file"),
    ],
    ids=str,
)
def test_files_and_the_database_do_not_mix(
    offline: Almanac, tmp_path: Path, arguments: tuple[object, ...], reason: str
) -> None:
    placement = order(tmp_path)
    given = [placement if word == "HOSTS" else word for word in arguments]
    outcome = offline("simulate", *given, "--json")
    assert outcome.code == 2
    assert reason in outcome.error["reason"]


def test_missing_data_is_reported_with_the_file(offline: Almanac, tmp_path: Path) -> None:
    edges, trace = written(tmp_path, "edges.csv", EDGES), written(tmp_path, "four.csv", TRACE)
    backwards = written(tmp_path, "back.csv", TRACE.replace("20,2,1,0,1", "2,2,1,0,1"))
    unknown = written(tmp_path, "other.csv", "# ranks: 4\n" + TRACE.replace("20,2,1,0,1", "20,2,9,0,1"))
    fewer, calls = tmp_path / "fewer", []
    fewer.mkdir()
    calls.append((edges, order(tmp_path), "contains no messages with their times"))
    calls.append((trace, order(fewer, HOSTS[:3]), "3 ranks are placed, the profile has 4"))
    calls.append((backwards, order(tmp_path), "goes backwards, from 9 to 2"))
    calls.append((unknown, order(tmp_path), "dst is not a rank below 4"))
    for path, placement, reason in calls:
        asked = ("--trace-file", path, "--placement", placement)
        outcome = offline("simulate", *FILES, *asked, "--json")
        assert outcome.code == 1
        assert reason in outcome.error["reason"]
        assert outcome.error["path"] == str(placement if "ranks are" in reason else path)


def test_the_history_lists_simulated_runs_the_newest_first(cluster: Almanac) -> None:
    first, second = placed(cluster), placed(cluster, steps=400)
    runs = [simulate(cluster, "--placement", first, "--seed", seed) for seed in (1, 2)]
    runs.append(simulate(cluster, "--placement", second))
    answer = cluster("history", "simulations", "--json").json
    assert [row["simulation"] for row in answer] == [run["runs"][0]["simulation"] for run in reversed(runs)]
    assert answer[0]["bytes_per_second"] == runs[2]["runs"][0]["bytes_per_second"]
    assert answer[1]["parameters"] == runs[1]["parameters"]
    of_second = [row for row in answer if row["placement"] == second]
    for asked in (("--placement", second), ("--placement", second[:8], "--application", "four")):
        assert cluster("history", "simulations", *asked, "--json").json == (
            answer if first == second else of_second
        )
    assert len(cluster("history", "simulations", "--cluster", "ft", "--top", 2, "--json").json) == 2
    shown = cluster("history", "simulations").out
    assert first in shown
    assert "throughput" in shown


def test_the_history_of_runs_of_what_there_is_not_is_an_error(cluster: Almanac) -> None:
    for asked, kind in ((("--cluster", "tf"), "cluster"), (("--placement", "p0"), "placement")):
        outcome = cluster("history", "simulations", *asked, "--json")
        assert outcome.code == 1
        assert f"there is no {kind}" in outcome.error["reason"]
    for wrong in (("--placement", "p0"), ("regressions", "--placement", "p0")):
        assert cluster("history", *wrong).code == 2
