"""JSON documents, CSV and tables of small results, counted by hand; today's screen; progress of compiling."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from almanac.output import printing
from almanac.output.circuits import circuit_csv, named_circuits, optical_switch_to_json, show_circuit_moves
from almanac.output.placements import bound_row, changes_text
from almanac.output.printing import kernel_progress_bars, print_table
from almanac.output.running_jobs import best_action, today_lines, today_to_json
from almanac.output.stored_data import cluster_to_json, findings_to_json, job_to_json
from mapping.checks.finding import Finding, Severity
from mapping.kernels.compiling import COMPILING
from mapping.placement.search import SearchOptions
from mapping.questions.advise import advise_all
from mapping.questions.live import traffic
from mapping.questions.today import Today, read_today
from registry.errors import CommandFailed, InputError
from registry.model import Bound, Job
from registry.progress import silent
from registry.registry import Registry
from registry.store.changes import Cable, Changes
from registry.store.circuit_plans import OpticalSwitch
from registry.store.fabrics import ClusterInfo
from registry.store.ingest_runs import FAILED, FAILING, Freshness, RunInfo
from registry.store.jobs import StoredJob
from tests.support.running_jobs import T0, save_running_jobs

NOW = datetime(2026, 1, 10, tzinfo=UTC)
HOSTS = ("h0", "h1", "h2")
SWITCH = OpticalSwitch(
    cluster="c", hosts=HOSTS, max_degree=2, max_edges=3, link_speed=1e9, circuits=((0, 1), (1, 2)), at=NOW
)


def test_numbers_and_times_have_a_text_and_no_name_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    assert [printing.finite(value) for value in (1.5, None, math.inf, math.nan)] == [1.5, None, None, None]
    assert [printing.whole(value) for value in (2.0, 2.5)] == [2, 2.5]
    assert printing.attributes(SWITCH, "max_edges", "cluster") == {"max_edges": 3, "cluster": "c"}
    printing.print_json({"at": NOW, "none": None})
    assert capsys.readouterr().out == '{\n  "at": "2026-01-10T00:00:00Z",\n  "none": null\n}\n'
    print_table("title", ["name", "number"], [["[bold]x[/bold]", 1.23456789], [None, 2]])
    out = capsys.readouterr().out
    assert "[bold]x[/bold]" in out
    assert "1.23457" in out


def test_control_characters_do_not_reach_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    red = "a\x1b[31mb\rc\x9b\u202ed\te\nf"
    safe = "a\\x1b[31mb\\rc\\x9b\\u202ed\te\nf"
    assert printing.visible(red) == safe
    printing.say(red)
    printing.note(red)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (f"{safe}\n", f"{safe}\n")
    print_table(red, [red], [[red]])
    assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(capsys.readouterr().out)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    printing.write_text(str(tmp_path / "a"), "text")
    assert (tmp_path / "a").read_text() == "text"
    with pytest.raises(InputError, match="cannot be written"):
        printing.write_text(str(tmp_path / "none" / "a"), "text")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_circuits_are_named_by_hosts_if_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert named_circuits(SWITCH.circuits, HOSTS) == [("h0", "h1"), ("h1", "h2")]
    assert named_circuits(SWITCH.circuits, ()) == [(0, 1), (1, 2)]
    assert circuit_csv(SWITCH.circuits, HOSTS) == "a,b\nh0,h1\nh1,h2\n"
    fields = optical_switch_to_json(SWITCH)
    assert (fields["circuits"], fields["circuit_plan"]) == ([("h0", "h1"), ("h1", "h2")], None)
    moves = {"seconds_saved": 0.5, "removed": [("h0", "h1")], "added": [], "gain": 1.5}
    show_circuit_moves({**moves, "break_even_profiles": 6.0, "break_even_seconds": 3.0})
    assert capsys.readouterr().out.splitlines() == [
        "removed (1): h0 - h1",
        "added (0): none",
        "1.500 times the present throughput",
        "moving the circuits pays off after 6 profiles, 3 s",
    ]
    show_circuit_moves({**moves, "seconds_saved": 0.0})
    assert capsys.readouterr().out == "keep the present circuits: no better ones were found\n"


def test_documents_of_stored_data() -> None:
    job = Job(id="1", name="wrf", user="ann", hosts=("h0",), slots=(4,), ranks=4, started_at=NOW)
    fields = job_to_json(StoredJob(id="c/1", cluster="c", job=job, profile="f", as_of=NOW))
    assert [fields[key] for key in ("hosts", "slots", "started_at", "ranks")] == [["h0"], [4], NOW, 4]
    unknown = StoredJob(id="c/2", cluster="c", job=replace(job, ranks=0), profile=None, as_of=NOW)
    assert job_to_json(unknown)["ranks"] is None
    finding = Finding(Severity.ERROR, "h0", "one cable", 2, "rails")
    assert findings_to_json([finding]) == [
        {"severity": "error", "check": "rails", "group": "", "subject": "h0", "count": 2, "text": "one cable"}
    ]
    info = ClusterInfo(
        name="c", snapshot="s", first_observed_at=NOW, last_observed_at=NOW, observations=5, contents=2,
        hosts=3, switches=1, adapters=3, cables=3,
    )  # fmt: skip
    assert cluster_to_json(info) == {"cluster": "c", "observations": 5, "snapshots": 2, "observed_at": NOW}


def test_labels_are_words_bounds_named_once_and_changes_shown_with_their_sign() -> None:
    for proof in ("cut: 4 bytes cross", "4 bytes cross"):
        row = bound_row("congestion_seconds", Bound(value=2.0, proof=proof, name="cut"))
        assert row == ["lower bound, worst link", "2 s", "cut: 4 bytes cross"]
    # Job 4712 of the demonstration: a gain of 1.04 for a third more hop-bytes
    assert printing.label("congestion_seconds") == "worst link"
    assert printing.label("default_routing_because") == "reason for it"
    assert printing.label("idle_seconds") == "idle (s)"
    assert printing.label("started_at") == "started at"
    names = ("congestion_seconds", "hop_bytes", "max_dilation", "mean_congestion_seconds")
    before, after = (
        dict(zip(names, values, strict=True)) for values in ((1.04, 300.0, 4.0, 0.0), (1.0, 399.0, 3.98, 2.0))
    )
    assert changes_text(before, after) == (
        "hop-bytes +33%, maximum dilation -0.5%, mean of loaded links above zero"
    )
    assert changes_text(before, before) == ""
    assert changes_text({"hop_bytes": 10000.0}, {"hop_bytes": 10001.0}) == ""


NAMES = ("p45069bbbaea3", "demo-training-64")
COLUMNS = ("id", "profile", "recorded at", "strategy", "remark")


def shown_at(width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what a table of one row prints on a terminal of this width, or into a pipe."""
    monkeypatch.setattr("almanac.output.printing.terminal_width", lambda: width)
    remark = "a sentence of several words that a terminal wraps between words, " * 3
    print_table("", COLUMNS, [[*NAMES, NOW, "random+congestion-descent", remark]], least=("strategy",))
    return capsys.readouterr()


def test_terminals_get_no_longer_lines_but_fewer_columns_which_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for width in (20, 40, 60, 80, 200):
        printed = shown_at(width, monkeypatch, capsys)
        assert max(map(len, printed.out.splitlines())) <= width
        assert width < 40 or all(name in printed.out for name in NAMES)
        assert width < 80 or "2026-01-10 00:00:00 UTC" in printed.out
    # Unbroken parts have 13 + 16 + 23 + 25 + 8 ("sentence") characters, borders 5 x 3 + 1: 101
    assert shown_at(101, monkeypatch, capsys).err == ""
    without_one = shown_at(100, monkeypatch, capsys)
    assert without_one.err == "1 of 5 columns need a wider terminal (strategy); --json has all\n"
    assert "remark" in without_one.out
    assert "random" not in without_one.out
    without_three = shown_at(40, monkeypatch, capsys).err
    assert without_three == (
        "3 of 5 columns need a wider terminal (recorded at, strategy, remark); --json has all\n"
    )


def test_pipes_get_all_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    printed = shown_at(None, monkeypatch, capsys)
    assert printed.err == ""
    assert len(printed.out.splitlines()) == 5
    assert "wraps between words, a sentence" in printed.out


def test_a_long_path_is_broken_before_its_column_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("almanac.output.printing.terminal_width", lambda: 70)
    print_table("", ["check", "state", "result"], [["source", "warning", "/folder" * 12]])
    printed = capsys.readouterr()
    assert printed.err == ""
    assert max(map(len, printed.out.splitlines())) <= 70
    assert "/folder/folder" in printed.out


HOUR = timedelta(hours=1)
ERROR = Finding(Severity.ERROR, "leaf01", "leaf01 has no cable", 1, "uplinks")
WARNING = Finding(Severity.WARNING, "leaf02:1", "the cable is missing", 1, "wiring", "missing")
MISSED = Finding(Severity.WARNING, "leaf1:4 - spine2:1", "it is missing", 1, "vanished", "cable")
UNDO = "almanac observation delete c-1"
PART = Finding(Severity.ERROR, "c", "only 5 of 29 are left", 24, "vanished", "scan", UNDO)
LATER = datetime(2099, 1, 1, tzinfo=UTC)
NOTE = Finding(Severity.NOTE, "leaf03", "an unplanned cable", 1, "wiring", "unexpected")
FAILURE: dict[str, Any] = {"digest": "", "seconds": 1.0, "snapshot": "", "routing": "", "profiles": ()}
RUN = RunInfo(id="r", cluster="c", at=T0, formats=("ibnetdiscover",), files=("a scan.txt",), warnings=(),
              outcome=FAILED, error="truncated", error_kind="InputError", **FAILURE)  # fmt: skip
COLLECTED = replace(
    RUN, files=("scan",), error="it ended with exit code 3", error_kind=CommandFailed.__name__
)
LOST = Cable(source="leaf1", source_guid="", source_port=4, target="spine2", target_guid="", target_port=1,
             capacity=25e9, capacity_back=25e9, cables=1)  # fmt: skip


@pytest.fixture
def today(registry: Registry) -> Today:
    save_running_jobs(registry)
    return replace(read_today(registry, "c", T0 - HOUR), findings=())


def test_the_screen_of_a_cluster_with_two_jobs_on_one_uplink(today: Today) -> None:
    lines = today_lines(today)
    assert lines[0].startswith("c at ")
    assert lines[2] == "Changed: unknown, there is no earlier scan"
    assert lines[4:6] == ["Broken: no problems found", "Data: no ingest failed, 1 source stale or failing"]
    text = " ".join(" ".join(lines[8:]).split())
    assert text.startswith(
        "Slowed jobs: 2 of 4 running jobs; nothing is known of 2 without a profile or placement; "
        "no advice computed job 1 (ann, across): an iteration takes 1.25 times as long as alone: "
    )
    assert ", with job 2 job 2 (bob, one-way): an iteration takes 1.17 times as long as alone: " in text
    assert lines[-2:] == [
        "Best action: search better placements of the running jobs:",
        "  almanac advise jobs c",
    ]


def test_slowdowns_that_are_unknown_are_not_counted_as_none(today: Today) -> None:
    for unjudged, slowed, words in (
        (2, (), "unknown for 2 of 4 running jobs; nothing is known of 2"),
        (1, today.slowed[:1], "1 of 4 running jobs, unknown for 1; nothing is known of 2"),
    ):
        text = " ".join(" ".join(today_lines(replace(today, unjudged=unjudged, slowed=slowed))).split())
        assert f"Slowed jobs: {words}" in text
        assert "almanac job attach JOB PROFILE --iteration-seconds" in text


def test_the_most_urgent_comes_first(today: Today, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a scan.txt").touch()
    lost = replace(today, changes=Changes(cables_vanished=(LOST,), hosts_vanished=("h1",)))
    failing = {"ibnetdiscover": Freshness(FAILING, "the last try failed")}
    cases = [
        (replace(today, slowed=()), None, None),
        (today, "almanac advise jobs c", "search better placements"),
        (replace(today, findings=(NOTE,)), "almanac advise jobs c", ""),
        (replace(today, findings=(WARNING,)), "almanac cluster check c --only wiring --all", "leaf02:1"),
        (replace(lost, findings=(WARNING, MISSED)), "almanac cluster check c --only vanished --all",
         "leaf1:4 - spine2:1 (vanished: cable)"),
        (replace(lost, findings=(PART,)), "almanac observation delete c-1", "only 5 of 29"),
        (replace(lost, since=T0 + HOUR), "ibnetdiscover | almanac ingest --cluster c -",
         "2026-03-01 12:00:00"),
        (replace(lost, failed=(RUN,), sources=failing), "almanac ingest --cluster c 'a scan.txt'",
         "truncated"),  # the file was changed since
        (replace(lost, failed=(replace(RUN, at=LATER),), sources=failing), "almanac ingest-run delete r",
         "repair the file"),
        (replace(lost, failed=(replace(RUN, at=LATER, error_kind="DatabaseUnavailable"),), sources=failing),
         "almanac ingest --cluster c 'a scan.txt'", "truncated"),
        (replace(lost, failed=(replace(RUN, error_kind="WrongCluster"),), sources=failing),
         "almanac ingest-run delete r", "if it is another cluster"),
        (replace(lost, failed=(replace(RUN, files=("-",)),), sources=failing),
         "almanac ingest-run delete r", "its files are gone"),
        (replace(lost, failed=(COLLECTED,), sources=failing), "almanac serve --check",
         "repair the collector scan of almanac serve: it ended"),
        (replace(today, failed=(RUN,)), "almanac advise jobs c", ""),  # read since
        (replace(lost, failed=(RUN,), sources=failing, findings=(ERROR, WARNING)),
         "almanac cluster check c --only uplinks --all", "leaf01 (uplinks)"),
    ]  # fmt: skip
    for number, (state, command, words) in enumerate(cases):
        action = best_action(state)
        assert (None if action is None else action.command) == command, number
        assert action is None or (words or "") in action.reason, number
        assert (today_to_json(state)["action"] is None) == (command is None)


def test_a_better_placement_is_exported_by_its_id(registry: Registry) -> None:
    save_running_jobs(registry)
    list(advise_all(registry, traffic(registry, "c"), SearchOptions(steps=4000, workers=1)))
    today = replace(read_today(registry, "c", T0 - HOUR), findings=(WARNING,))
    action = best_action(today)
    assert action is not None
    proposed = today.advice[0].proposed
    assert proposed is not None
    short = action.command.split()[2]
    assert action.command == f"almanac export {short} openmpi-rankfile=rankfile.1"
    assert registry.placements.read(short).id == proposed
    assert "job 1: with 2 ranks moved its worst link is 1.67 times less busy" in action.reason
    text = " ".join(" ".join(today_lines(today)).split())
    assert "no advice computed" not in text
    assert "with job 2; advice gains 1.67" in text


def test_the_screen_holds_much_trouble_in_forty_lines_of_eighty_columns(today: Today) -> None:
    long = "x" * 70 + " " + "y" * 200 + " \x1b[31m" + "z " * 200
    findings = [Finding(Severity.ERROR, long, long, 1, f"check-{k}") for k in range(30)]
    full = replace(
        today,
        changes=Changes(hosts_vanished=tuple(f"{long}{k}" for k in range(50))),
        findings=tuple(findings),
        sources={f"source-{k}": Freshness(FAILING, long) for k in range(30)},
        failed=(RUN,) * 30,
        slowed=today.slowed * 20,
    )
    lines = today_lines(full)
    assert len(lines) <= 40
    assert max(map(len, lines[:-1])) <= 80
    assert "\x1b" not in "".join(lines)
    assert "  and 26 more: almanac cluster check c" in lines
    assert "  and 48 more: almanac cluster changes c --from 2026-03-01T11:00:00Z" in lines
    short = replace(full, changes=Changes(hosts_vanished=("h1", "h2", "h3", "h4", "h5", "h6")))
    first = replace(short.changes or Changes(), start=T0 - timedelta(microseconds=5))
    assert "c --from 2026-03-01T11:59:59.999995Z" in "\n".join(today_lines(replace(full, changes=first)))
    assert "  host h5 vanished\n  and 1 more: almanac cluster changes c" in "\n".join(today_lines(short))


def test_the_document_has_what_the_screen_counts(today: Today) -> None:
    fields = today_to_json(replace(today, findings=(WARNING,), failed=(RUN,)))
    assert [row["job"] for row in fields["jobs"]] == ["1", "2"]
    assert [row["slowdown"] for row in fields["jobs"]] == pytest.approx([1.25, 1 + 1 / 6])
    assert [one["group"] for one in fields["findings"]] == ["missing"]
    assert fields["failed_runs"] == [{"at": T0, "files": ("a scan.txt",), "error": "truncated"}]
    assert (fields["cluster"], fields["since"], fields["changes"]) == ("c", T0 - HOUR, None)


KERNELS = """
from numba import njit

@njit(cache=True)
def inner(number):
    return number + 1

@njit(cache=True)
def outer(number):
    return 2 * inner(number)
"""


REPORTED = """
import json, sys
from mapping.kernels.compiling import Compiling

sys.path.append(sys.argv[1])
import counted

reports = []
with Compiling(lambda phase, done, total=None, best=None: reports.append((phase, done, total))):
    found = counted.outer(20)
counted.inner(2.0)  # compiled again, outside of the block
print(json.dumps((found, reports)))
"""


def reported(folder: Path) -> tuple[int, list[list[Any]]]:
    """Call kernels of a module ``counted`` in a process of its own; return the result and the reports.

    Other threads of this process may compile kernels meanwhile, which would be reported, too.
    """
    done = subprocess.run([sys.executable, "-c", REPORTED, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, reports = json.loads(done.stdout)
    return found, reports


def test_compiling_is_reported_once_per_machine(tmp_path: Path, processes: None) -> None:
    (tmp_path / "counted.py").write_text(KERNELS)
    assert reported(tmp_path) == (42, [[COMPILING, 0, None], [COMPILING, 1, 1]])
    assert reported(tmp_path) == (42, [])


def test_nothing_is_drawn_if_nobody_looks() -> None:
    with kernel_progress_bars() as progress:
        assert progress is silent
