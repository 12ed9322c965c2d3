"""JSON documents, CSV and tables of small results, with values counted by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from almanac.output.circuits import circuit_csv, show_circuit_moves
from almanac.output.json.circuits import named_circuits, optical_switch_to_json
from almanac.output.json.stored_data import cluster_to_json, findings_to_json, job_to_json
from almanac.output.placements import bound_row, changes_text
from almanac.output.printing import (
    attributes,
    finite,
    label,
    note,
    print_json,
    print_table,
    say,
    visible,
    whole,
    write_text,
)
from mapping.checks.finding import Finding, Severity
from registry.errors import InputError
from registry.fabrics.fabrics import ClusterInfo
from registry.jobs.jobs import StoredJob
from registry.model import Bound, Job
from registry.records.optical_switches import OpticalSwitch

NOW = datetime(2026, 1, 10, tzinfo=UTC)
HOSTS = ("h0", "h1", "h2")
SWITCH = OpticalSwitch(
    cluster="c", hosts=HOSTS, max_degree=2, max_edges=3, link_speed=1e9, circuits=((0, 1), (1, 2)), at=NOW
)


def test_numbers_for_json_and_csv() -> None:
    assert [finite(value) for value in (1.5, None, math.inf, math.nan)] == [1.5, None, None, None]
    assert [whole(value) for value in (2.0, 2.5)] == [2, 2.5]
    assert attributes(SWITCH, "max_edges", "cluster") == {"max_edges": 3, "cluster": "c"}


def test_times_are_printed_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"at": NOW, "none": None})
    assert capsys.readouterr().out == '{\n  "at": "2026-01-10T00:00:00Z",\n  "none": null\n}\n'


def test_a_table_takes_no_name_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("title", ["name", "number"], [["[bold]x[/bold]", 1.23456789], [None, 2]])
    out = capsys.readouterr().out
    assert "[bold]x[/bold]" in out
    assert "1.23457" in out


def test_control_characters_do_not_reach_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    red = "a\x1b[31mb\rc\x9b\u202ed\te\nf"
    safe = "a\\x1b[31mb\\rc\\x9b\\u202ed\te\nf"
    assert visible(red) == safe
    say(red)
    note(red)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (f"{safe}\n", f"{safe}\n")
    print_table(red, [red], [[red]])
    assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(capsys.readouterr().out)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    write_text(str(tmp_path / "a"), "text")
    assert (tmp_path / "a").read_text() == "text"
    with pytest.raises(InputError, match="cannot be written"):
        write_text(str(tmp_path / "none" / "a"), "text")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_circuits_are_named_by_hosts_if_there_are_any() -> None:
    assert named_circuits(SWITCH.circuits, HOSTS) == [("h0", "h1"), ("h1", "h2")]
    assert named_circuits(SWITCH.circuits, ()) == [(0, 1), (1, 2)]
    assert circuit_csv(SWITCH.circuits, HOSTS) == "a,b\nh0,h1\nh1,h2\n"


def test_the_document_of_a_switch() -> None:
    fields = optical_switch_to_json(SWITCH)
    assert list(fields) == [
        *("cluster", "hosts", "max_degree", "max_edges", "link_speed", "compute_seconds", "circuits"),
        *("circuit_plan", "stored_at"),
    ]
    assert (fields["circuits"], fields["circuit_plan"]) == ([("h0", "h1"), ("h1", "h2")], None)


def test_the_circuits_to_move_are_printed_with_the_gain(capsys: pytest.CaptureFixture[str]) -> None:
    moves = {
        "seconds_saved": 0.5,
        "removed": [("h0", "h1")],
        "added": [],
        "gain": 1.5,
        "break_even_profiles": 6.0,
        "break_even_seconds": 3.0,
    }
    show_circuit_moves(moves)
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
    assert list(fields) == [
        *("job", "cluster", "name", "user", "account", "partition", "state"),
        *("submitted_at", "started_at", "ended_at", "ranks", "hosts", "slots", "distribution"),
        *("profile_id", "iteration_seconds", "iteration_from", "origin"),
    ]
    assert (fields["hosts"], fields["slots"], fields["started_at"]) == (["h0"], [4], NOW)
    assert fields["ranks"] == 4
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


def test_the_name_of_a_bound_is_printed_once() -> None:
    for proof in ("cut: 4 bytes cross", "4 bytes cross"):
        bound = Bound(value=2.0, proof=proof, name="cut")
        assert bound_row("congestion_seconds", bound) == [
            "lower bound, worst link",
            "2 s",
            "cut: 4 bytes cross",
        ]


NAMES = ("p45069bbbaea3", "demo-training-64")
COLUMNS = ("id", "profile", "recorded at", "strategy", "remark")


def shown_at(width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what a table of one row prints on a terminal of this width, or into a pipe."""
    monkeypatch.setattr("almanac.output.printing.terminal_width", lambda: width)
    remark = "a sentence of several words that a terminal wraps between words, " * 3
    print_table("", COLUMNS, [[*NAMES, NOW, "random+congestion-descent", remark]], least=("strategy",))
    return capsys.readouterr()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_terminal_never_gets_longer_lines_nor_broken_ids(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = shown_at(width, monkeypatch, capsys)
    assert max(map(len, printed.out.splitlines())) <= width
    if width >= 40:
        assert all(name in printed.out for name in NAMES)
    if width >= 80:
        assert "2026-01-10 00:00:00 UTC" in printed.out


def test_a_narrow_terminal_leaves_columns_out_and_names_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unbroken parts have 13 + 16 + 23 + 25 + 8 ("sentence") characters, borders 5 x 3 + 1: 101."""
    assert shown_at(101, monkeypatch, capsys).err == ""
    without_one = shown_at(100, monkeypatch, capsys)
    assert without_one.err == "1 of 5 columns need a wider terminal (strategy); --json has all\n"
    assert "remark" in without_one.out
    assert "random" not in without_one.out
    without_three = shown_at(40, monkeypatch, capsys).err
    assert without_three == (
        "3 of 5 columns need a wider terminal (recorded at, strategy, remark); --json has all\n"
    )


def test_a_pipe_gets_every_column_in_full_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    printed = shown_at(None, monkeypatch, capsys)
    assert printed.err == ""
    assert len(printed.out.splitlines()) == 5
    assert "wraps between words, a sentence" in printed.out


def test_labels_are_words() -> None:
    assert label("congestion_seconds") == "worst link"
    assert label("default_routing_because") == "reason for it"
    assert label("idle_seconds") == "idle (s)"
    assert label("started_at") == "started at"


def test_all_metrics_that_change_are_named_with_their_sign() -> None:
    """Job 4712 of the demonstration: a gain of 1.04 for a third more hop-bytes."""
    before = {
        "congestion_seconds": 1.04,
        "hop_bytes": 300.0,
        "max_dilation": 4.0,
        "mean_congestion_seconds": 0.0,
    }
    after = {
        "congestion_seconds": 1.0,
        "hop_bytes": 399.0,
        "max_dilation": 3.98,
        "mean_congestion_seconds": 2.0,
    }
    assert changes_text(before, after) == (
        "hop-bytes +33%, maximum dilation -0.5%, mean of loaded links above zero"
    )
    assert changes_text(before, before) == ""
    assert changes_text({"hop_bytes": 10000.0}, {"hop_bytes": 10001.0}) == ""


def test_a_long_path_is_broken_before_its_column_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("almanac.output.printing.terminal_width", lambda: 70)
    print_table("", ["check", "state", "result"], [["source", "warning", "/folder" * 12]])
    printed = capsys.readouterr()
    assert printed.err == ""
    assert max(map(len, printed.out.splitlines())) <= 70
    assert "/folder/folder" in printed.out
