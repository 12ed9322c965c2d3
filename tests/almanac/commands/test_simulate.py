"""``almanac simulate``: what it prints and saves, what it refuses, and its progress."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from almanac.commands import simulate as command
from almanac.output import printing
from registry.model import Simulation
from registry.registry import Registry
from tests.almanac.conftest import SCAN, TABLES, Almanac
from tests.support.paths import written

TRACE = (
    "t_us,src,dst,bytes,tag\n0,0,1,100000,1\n1,1,2,200000,1\n1,2,0,3000,2\n5,3,0,50000,1\n"
    "9,0,1,70000,1\n9,3,3,8,1\n20,2,1,0,1\n"
)
EDGES = "# ranks: 4\nsrc,dst,bytes\n0,1,500\n3,2,9000\n"
HOSTS = ("node0001", "node0017", "node0033", "node0049")
"""Below four leaf switches: all traffic crosses cables."""
FILES = ("--fabric", SCAN, "--fabric", TABLES)


@pytest.fixture
def cluster(almanac: Almanac, tmp_path: Path) -> Almanac:
    almanac.ok("ingest", SCAN, TABLES, "--cluster", "ft")
    answer = almanac.json("ingest", written(tmp_path, "four.csv", TRACE))
    assert (answer["trace_count"], answer["new_traces"]) == (1, 1)
    return almanac


def placed(cluster: Almanac, steps: int = 10, profile: str = "four") -> str:
    where = ("--cluster", "ft", "--hosts", ",".join(HOSTS))
    return str(cluster.json("map", profile, *where, "--steps", steps, "--workers", 1)["placement"])


def placed_order(tmp_path: Path, hosts: tuple[str, ...] = HOSTS) -> Path:
    return written(tmp_path, "hostfile", "".join(f"{host}\n" for host in hosts))


def simulate(cluster: Almanac, *arguments: object, profile: str = "four") -> Any:
    return cluster.json("simulate", profile, "--cluster", "ft", *arguments)


def test_a_saved_placements_run_is_printed_and_saved_once(cluster: Almanac, registry: Registry) -> None:
    placement = placed(cluster)
    answer, again = (simulate(cluster, "--placement", placement, "--seed", 5) for _ in range(2))
    (info,) = registry.simulations.list("ft")
    (trace,) = registry.traces.list()
    names = ("profile", "cluster", "snapshot", "trace", "mode", "routing", "seed", "complete")
    expected = ("four", "ft", info.snapshot, trace.id, "packets", "tables", 5, True)
    assert tuple(answer[name] for name in names) == expected
    assert answer["parameters"]["scale"] == 1.0
    (run,) = answer["runs"]
    assert (run["placement"], run["simulation"]) == (placement, info.id)
    assert (run["messages"], run["delivered_bytes"]) == (6, 423_000.0)
    assert run["completion_seconds"] >= 20e-6  # the last message is sent then
    assert list(run["latency_seconds"]) == ["0", "1", "5", "25", "50", "75", "95", "99", "99.9", "100"]
    stored = registry.simulations.read(info.id)
    assert (stored.placement, stored.parameters) == (placement, answer["parameters"])
    for document in (answer, again):
        del document["runs"][0]["wall_seconds"]
    assert answer == again


def test_loads_and_traffic_over_time_are_written_and_runs_compared(cluster: Almanac, tmp_path: Path) -> None:
    placement, points = placed(cluster), tmp_path / "points.csv"
    ours, exact = tmp_path / "ours.csv", tmp_path / "exact.csv"
    exports = ("--export", f"links={ours}", "--export", f"points={points}")
    answer = simulate(cluster, "--placement", placement, *exports)
    at = ("--cluster", "ft", "--placement", placement)
    cluster.ok("evaluate", "four", *at, "--export", f"links={exact}")  # the exact congestion model
    mine, theirs, rows = (
        list(csv.DictReader(path.read_text("utf-8").splitlines())) for path in (ours, exact, points)
    )
    ends = ("source", "source_guid", "source_port", "target", "target_guid", "target_port", "bytes")
    ours_by_end, exact_by_end = ([[row[end] for end in ends] for row in found] for found in (mine, theirs))
    assert sorted(ours_by_end) == sorted(exact_by_end)
    assert {row["placement"] for row in mine} == {placement}
    delivered = [point["delivered_bytes"] for point in answer["runs"][0]["points"]]
    assert [float(row["delivered_bytes"]) for row in rows] == delivered
    path = placed_order(tmp_path)
    asked = ("--placement", path, "--placement", placement)
    answer = simulate(cluster, *asked)
    assert [run["placement"] for run in answer["runs"]] == [str(path), placement]
    assert [run["simulation"] is None for run in answer["runs"]] == [True, False]
    shown = cluster.ok("simulate", "four", "--cluster", "ft", *asked).out
    for words in ("relative", "not saved", f"saved as {answer['runs'][1]['simulation']}"):
        assert words in shown


def test_options_decide_what_is_sent(cluster: Almanac, tmp_path: Path) -> None:
    """A trace is sent faster, cut, in flits, or in rounds of its profile, as are profiles without one."""
    placement = ("--placement", placed(cluster))
    slow = simulate(cluster, *placement)["runs"][0]
    fast = simulate(cluster, *placement, "--scale", "inf")
    assert fast["parameters"]["scale"] == "inf"
    assert fast["runs"][0]["completion_seconds"] < slow["completion_seconds"]
    saturated = simulate(cluster, *placement, "--scale", "saturate")
    assert saturated["parameters"]["scale"] == pytest.approx(20e-6 / fast["runs"][0]["completion_seconds"])
    cut = simulate(cluster, *placement, "--first", 2)
    assert (cut["parameters"]["first"], cut["runs"][0]["delivered_bytes"]) == (2, 300_000.0)
    flits = simulate(cluster, *placement, "--mode", "flits", "--first", 3, "--flit-bytes", 64)
    assert (flits["mode"], flits["parameters"]["flit_bytes"]) == ("flits", 64)
    assert flits["runs"][0]["delivered_bytes"] == 303_000.0
    rounds = simulate(cluster, *placement, "--rounds", 3)
    assert (rounds["trace"], rounds["parameters"]["rounds"]) == (None, 3)
    assert rounds["runs"][0]["delivered_bytes"] == 423_000.0
    cluster.ok("ingest", written(tmp_path, "edges.csv", EDGES))
    answer = simulate(cluster, "--placement", placed(cluster, profile="edges"), profile="edges")
    assert (answer["trace"], answer["parameters"]["rounds"], answer["runs"][0]["messages"]) == (None, 1, 2)
    asked = ("--placement", placed_order(tmp_path), "--scale", 2)
    error = cluster.error("simulate", "edges", "--cluster", "ft", *asked)
    assert "the profile has none" in error["reason"]


@pytest.mark.parametrize("at", ["within", "before"])
def test_an_interrupted_run_is_reported_and_saved_and_no_further_one_begun(
    cluster: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: Registry, at: str
) -> None:
    from mapping.simulation import simulate as module

    real, calls = module.simulate, []

    def interrupted(*arguments: Any, **options: Any) -> Simulation:
        calls.append(arguments)
        if at == "before" and len(calls) % 2 == 0:
            raise KeyboardInterrupt
        return replace(real(*arguments, **options), complete=at == "before")

    monkeypatch.setattr(module, "simulate", interrupted)
    asked = ("--placement", placed(cluster), "--placement", placed_order(tmp_path))
    outcome = cluster("simulate", "four", "--cluster", "ft", *asked, "--json")
    assert (outcome.code, outcome.json["complete"]) == (130, False)
    assert [run["complete"] for run in outcome.json["runs"]] == [at == "before"]
    assert [info.complete for info in registry.simulations.list()] == [at == "before"]
    words = "interrupted" if at == "within" else "not simulated because of the interrupt"
    assert words in cluster("simulate", "four", "--cluster", "ft", *asked).out


def test_wrong_calls_and_files_with_the_database_are_usage_errors(offline: Almanac, tmp_path: Path) -> None:
    offline.refused("simulate", "four", "--cluster", "ft", code=2)
    options = "--placement p|--rounds 2 --scale 3|--rounds 2 --first 3|--rounds 0|--scale 0|--scale soon|"
    for option in f"{options}--mode letters|--packet-bytes 0|--seed {1 << 64}".split("|"):
        given = ("--placement", "p", *option.split())
        offline.refused("simulate", "four", "--cluster", "ft", *given, code=2)
    for arguments, reason in (
        (("--placement", "HOSTS"), "give either PROFILE or --trace-file"),
        (("four", "--trace-file", "t", "--placement", "HOSTS"), "give either PROFILE or"),
        (("--trace-file", "t", "--placement", "HOSTS"), "--trace-file goes with --fabric"),
        (("four", "--placement", "HOSTS"), "give --cluster, or --fabric FILE"),
        (("--trace-file", "t", "--fabric", "f", "--placement", "p3f2"), "there is no file 'p3f2'"),
        ((*OF_FILES, "--trace", "x"), "--trace needs the"),
        ((*OF_FILES, "--at", "2026-01-01"), "--at needs"),
        ((*OF_FILES, "--rounds", 2), "not with --rounds"),
        (("p", "--fabric", "f", "--placement", "HOSTS", "--scale", 2), "give --trace-file"),
        (("p", "--fabric", "f", "--placement", "HOSTS", "--first", 2), "give --trace-file"),
    ):
        words = [placed_order(tmp_path) if word == "HOSTS" else word for word in arguments]
        assert reason in offline.error("simulate", *words, code=2)["reason"]


def test_what_does_not_fit_is_named_unsaved(cluster: Almanac, tmp_path: Path, registry: Registry) -> None:
    placement = placed(cluster)
    unknown = placed_order(tmp_path, ("node0001", "node9999", "node0033", "node0049"))
    calls = {
        "profile": ("fuor", "--placement", placement),
        "placement": ("four", "--placement", "p0"),
        "trace": ("four", "--placement", placement, "--trace", "t0"),
        "host": ("four", "--placement", unknown),
    }
    for kind, (profile, *rest) in calls.items():
        error = cluster.error("simulate", profile, "--cluster", "ft", *rest)
        assert (error["error"], kind in error["reason"]) == ("UnknownName", True)
    cluster.ok("ingest", written(tmp_path, "other.csv", TRACE.replace("100000", "9")))
    (trace,) = cluster.json("profile", "show", "other")["traces"]
    other = ("--placement", placement, "--trace", trace)
    assert "it is not of four" in cluster.error("simulate", "four", "--cluster", "ft", *other)["reason"]
    path = placed_order(tmp_path, HOSTS[:3])
    error = cluster.error("simulate", "four", "--cluster", "ft", "--placement", path)
    assert (error["reason"], error["path"]) == ("3 ranks are placed, the profile has 4", str(path))
    assert registry.simulations.list() == ()


def test_files_alone_give_the_same(cluster: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, placement, links = (
        written(tmp_path, "four.csv", TRACE),
        placed_order(tmp_path),
        tmp_path / "links.csv",
    )
    saved = simulate(cluster, "--placement", placement, "--scale", 2)
    monkeypatch.setenv("ALMANAC_DB", "bolt://127.0.0.1:1")  # which nobody serves
    asked = (*FILES, "--trace-file", path, "--placement", placement)
    answer = cluster.json("simulate", *asked, "--scale", 2, "--export", f"links={links}")
    for document in (saved, answer):
        del document["runs"][0]["wall_seconds"]
    assert answer["runs"] == saved["runs"]
    same = ("mode", "routing", "seed", "parameters", "code_version", "complete")
    assert {name: answer[name] for name in same} == {name: saved[name] for name in same}
    names = ("snapshot", "observed_at", "profile", "cluster", "trace")
    assert [answer[name] for name in names] == [None, None, "four.csv", "ibnetdiscover.txt", str(path)]
    assert links.read_text("utf-8").count("\n") > 1
    shown = cluster.ok("simulate", *asked, "--first", 2, "--cluster", "ft").out
    assert ("four.csv on ft: trace" in shown, "not saved" in shown) == (True, True)
    for name, text, messages in (("edges.csv", EDGES, 4), ("four.csv", TRACE, 9)):
        given = (written(tmp_path, name, text), "--placement", placement, "--rounds", 2)
        answer = cluster.json("simulate", *FILES, *given)
        assert (answer["trace"], answer["parameters"]["rounds"]) == (None, 2)
        assert answer["runs"][0]["messages"] == messages


OF_FILES = ("--trace-file", "t", "--fabric", "f", "--placement", "HOSTS")


def test_missing_data_is_reported_with_the_file(offline: Almanac, tmp_path: Path) -> None:
    (tmp_path / "fewer").mkdir()
    hosts, fewer = placed_order(tmp_path), placed_order(tmp_path / "fewer", HOSTS[:3])
    edges, trace = written(tmp_path, "edges.csv", EDGES), written(tmp_path, "four.csv", TRACE)
    backwards = written(tmp_path, "back.csv", TRACE.replace("20,2,1,0,1", "2,2,1,0,1"))
    unknown = written(tmp_path, "other.csv", "# ranks: 4\n" + TRACE.replace("20,2,1,0,1", "20,2,9,0,1"))
    for path, placement, reason in (
        (edges, hosts, "contains no messages with their times"),
        (trace, fewer, "3 ranks are placed, the profile has 4"),
        (backwards, hosts, "goes backwards, from 9 to 2"),
        (unknown, hosts, "dst is not a rank below 4"),
    ):
        error = offline.error("simulate", *FILES, "--trace-file", path, "--placement", placement)
        assert reason in error["reason"]
        assert error["path"] == str(placement if "ranks are" in reason else path)


def test_the_history_lists_simulated_runs_the_newest_first(cluster: Almanac) -> None:
    first, second = placed(cluster), placed(cluster, steps=400)
    runs = [simulate(cluster, "--placement", first, "--seed", seed) for seed in (1, 2)]
    runs.append(simulate(cluster, "--placement", second))
    answer = cluster.json("history", "simulations")
    assert [row["simulation"] for row in answer] == [run["runs"][0]["simulation"] for run in reversed(runs)]
    assert answer[1]["parameters"] == runs[1]["parameters"]
    of_second = [row for row in answer if row["placement"] == second]
    for asked in (("--placement", second), ("--placement", second[:8], "--application", "four")):
        assert cluster.json("history", "simulations", *asked) == of_second
    assert len(cluster.json("history", "simulations", "--cluster", "ft", "--top", 2)) == 2
    shown = cluster.ok("history", "simulations").out
    assert (first in shown, "throughput" in shown) == (True, True)
    error = cluster.error("history", "simulations", "--placement", "p0")
    assert "there is no placement" in error["reason"]
    for wrong in (("--placement", "p0"), ("regressions", "--placement", "p0")):
        cluster.refused("history", *wrong, code=2)


@pytest.fixture
def words(offline: Almanac, tmp_path: Path) -> tuple[object, ...]:
    torus, ring, order = tmp_path / "torus.json", tmp_path / "ring.csv", tmp_path / "order.txt"
    offline.ok("generate", "fabric", "torus", "--sides", "4x4", "--format", "node-link", "-o", torus)
    ring.write_text("src,dst,bytes\n0,1,80000\n1,2,8\n2,0,8\n")
    offline.ok("map", ring, "--fabric", torus, "--steps", 10, "--export", f"slurm-hostfile={order}")
    return ("simulate", ring, "--fabric", torus, "--placement", order)


def test_a_short_run_prints_nothing_more(offline: Almanac, words: tuple[object, ...]) -> None:
    assert not re.search("takes about|simulating", offline.ok(*words).err)


def test_a_long_run_is_announced_and_reported(
    offline: Almanac, words: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(printing, "LINE_SECONDS", 0.0)
    first, *rest = offline.ok(*words).err.splitlines()
    assert first == "the run takes about 0 s of computing; Ctrl-C prints what was delivered until then"
    assert any(line.startswith("simulating: 100%, 3 of 3, after ") for line in rest)


def test_lines_of_progress_are_few(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("almanac.output.printing.time.monotonic", lambda: now[0])
    with printing.progress_bars(piped=True) as progress:
        for second in range(25):
            now[0] = float(second)
            progress("simulating", 1000 * second, 25_000)
    assert capsys.readouterr().err.splitlines() == [
        "simulating: 40%, 10,000 of 25,000, after 10 s",
        "simulating: 80%, 20,000 of 25,000, after 20 s",
    ]
