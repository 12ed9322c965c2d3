"""The screen of ``almanac today``: its size, its order of actions, and what it leaves open."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from almanac.output.json.running_jobs import today_to_json
from almanac.output.today import best_action, today_lines
from almanac.service.collectors import CommandFailed
from mapping.checks.finding import Finding, Severity
from mapping.placement.search.options import SearchOptions
from mapping.service.advising import advise_all
from mapping.service.live import traffic
from mapping.service.today import Today, read_today
from registry.fabrics.changes import Cable, Changes
from registry.ingest_runs.freshness import FAILING, Freshness
from registry.ingest_runs.runs import FAILED, RunInfo
from registry.registry import Registry
from tests.support.running_jobs import T0, save_running_jobs

HOUR = timedelta(hours=1)
ERROR = Finding(Severity.ERROR, "leaf01", "leaf01 has no cable", 1, "uplinks")
WARNING = Finding(Severity.WARNING, "leaf02:1", "the cable is missing", 1, "wiring", "missing")
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
    """Return the state of the cluster of `tests.support.running_jobs`, scanned in the last hour."""
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
        "no advice computed job 1 (ann, halo): an iteration takes 1.25 times as long as alone: "
    )
    assert ", with job 2 job 2 (bob, stream): an iteration takes 1.17 times as long as alone: " in text
    assert lines[-2:] == [
        "Best action: search better placements of the running jobs:",
        "  almanac advise jobs c",
    ]


def test_the_most_urgent_action_comes_first(
    today: Today, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a scan.txt").touch()
    lost = replace(today, changes=Changes(cables_vanished=(LOST,), hosts_vanished=("h1",)))
    failing = {"ibnetdiscover": Freshness(FAILING, "the last try failed")}
    cases = [
        (replace(today, slowed=()), None, None),
        (today, "almanac advise jobs c", "search better placements"),
        (replace(today, findings=(NOTE,)), "almanac advise jobs c", ""),
        (replace(today, findings=(WARNING,)), "almanac cluster check c --only wiring --all", "leaf02:1"),
        (replace(lost, findings=(WARNING,)), "almanac cluster changes c --from 2026-03-01T11:00:00Z",
         "cable leaf1:4 - spine2:1 vanished"),
        (replace(lost, since=T0 + HOUR), "ibnetdiscover | almanac ingest --cluster c -",
         "2026-03-01 12:00:00"),
        (replace(lost, failed=(RUN,), sources=failing), "almanac ingest --cluster c 'a scan.txt'",
         "truncated"),
        (replace(lost, failed=(replace(RUN, files=("-",)),), sources=failing),
         "almanac ingest-run list --cluster c --failed", "truncated"),
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
    assert "  host h5 vanished\n  and 1 more: almanac cluster changes c" in "\n".join(today_lines(short))


def test_the_document_has_what_the_screen_counts(today: Today) -> None:
    fields = today_to_json(replace(today, findings=(WARNING,), failed=(RUN,)))
    assert [row["job"] for row in fields["jobs"]] == ["1", "2"]
    assert [row["slowdown"] for row in fields["jobs"]] == pytest.approx([1.25, 1 + 1 / 6])
    assert [one["group"] for one in fields["findings"]] == ["missing"]
    assert fields["failed_runs"] == [{"at": T0, "files": ("a scan.txt",), "error": "truncated"}]
    assert (fields["cluster"], fields["since"], fields["changes"]) == ("c", T0 - HOUR, None)
