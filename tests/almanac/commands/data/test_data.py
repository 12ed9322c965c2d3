"""Observations, ingest runs, jobs and profiles are listed and deleted by command."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.almanac.conftest import Almanac
from tests.support.paths import DATA

FABRIC = DATA / "infiniband" / "fattree2-64-ftree"
BROKEN = DATA / "infiniband" / "fattree2-64-broken-link" / "ibnetdiscover.txt"


class Terminal(io.StringIO):
    """Standard input of a user who types an answer."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def filled(almanac: Almanac) -> Almanac:
    """Two observations of one cluster, and a profile."""
    for number, path in enumerate((FABRIC / "ibnetdiscover.txt", BROKEN), start=1):
        almanac.ok("ingest", path, "--cluster", "ft", "--observed-at", f"2026-01-0{number}")
    almanac.ok("generate", "profile", "ring", "--ranks", 4, "--save")
    return almanac


def test_observations_are_listed_and_deleted(filled: Almanac) -> None:
    first, second = filled.json("observation", "list", "ft")
    assert set(first) == {"observation", "cluster", "observed_at", "snapshot", "routing_id", "origin"}
    assert (first["cluster"], first["origin"]) == ("ft", "ibnetdiscover")
    assert second["observation"] in filled("observation", "list", "ft").out
    planned = filled.json("observation", "delete", second["observation"], "--dry-run")
    assert planned == {
        "dry_run": True,
        "deleted": {"observations": 1, "snapshots": 1},
        "dependents": {},
        "jobs_without_profile": [],
    }
    assert filled.json("cluster", "show", "ft")["host_count"] == 63
    assert "deleted: observations: 1" in filled("observation", "delete", second["observation"], "--yes").out
    assert filled.json("cluster", "show", "ft")["host_count"] == 64
    refused = filled.refused("observation", "delete", first["observation"], "--yes")
    assert "only one of the fabric of ft; ingest another scan first, or delete the cluster" in refused
    again = filled.json("ingest", BROKEN, "--cluster", "ft", "--observed-at", "2026-01-02")
    assert again["new_observation"]  # though the same file was read before
    assert "there is no observation 'nothing'" in filled.refused("observation", "delete", "nothing", "--yes")


def test_on_a_terminal_the_user_is_asked(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    almanac.ok("generate", "profile", "ring", "--ranks", 4, "--save")
    delete = ("profile", "delete", "ring-4")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # no terminal
    assert "add --yes" in almanac.refused(*delete, code=2)
    for answer, left, code in (("n\n", 1, 1), ("\n", 1, 1), ("y\n", 0, 0)):
        assert len(almanac.json("profile", "list")) == 1
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        asked = almanac.refused(*delete, code=code)
        assert "applications: 1, profiles: 1, ranks of profiles: 4" in asked
        assert ("nothing was changed" in asked) == bool(left)
        assert len(almanac.json("profile", "list")) == left


def test_dependents_are_listed_and_deleted_on_demand(filled: Almanac) -> None:
    where = ("--cluster", "ft", "--hosts", "node[0001-0004]")
    placement = filled.json("map", "ring-4", *where, "--steps", 10)["placement"]
    refused = filled.refused("profile", "delete", "ring-4", "--yes")
    assert "profile ring-4 is in use: placements: 1; --dry-run lists them, --with-dep" in refused
    planned = filled("profile", "delete", "ring-4", "--dry-run")
    assert f"depends on it: placement {placement}" in planned.out
    done = filled.json("profile", "delete", "ring-4", "--yes", "--with-dependents")
    assert done["dependents"] == {"placements": [placement]}
    assert filled.json("history") == []
    assert filled("ingest", DATA / "slurm" / "sacct_P.txt", "--cluster", "ft").code in (0, 5)
    jobs = filled.json("job", "list")
    filled.ok("job", "delete", jobs[0]["job"], "--yes")
    assert len(filled.json("job", "list")) == len(jobs) - 1
    filled.refused("job", "delete", jobs[0]["job"], "--yes")


SCAN = DATA / "infiniband" / "fattree2-64-ftree" / "ibnetdiscover.txt"


def test_failed_runs_are_listed_deleted_and_no_alarm_for_a_name_that_is_no_cluster(
    almanac: Almanac, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("nothing that is known\n")
    almanac.ok("ingest", SCAN, "--cluster", "ft")
    assert almanac("ingest", wrong, "--cluster", "ft").code == 1
    assert almanac("ingest", wrong, "--cluster", "typo").code == 1
    states = {row["check"]: (row["state"], row["seen"]) for row in almanac.json("doctor")}
    assert states["source ft of unknown format"][0] == "warning"
    assert states["source typo of unknown format"][0] == "ok"
    assert "no such cluster" in states["source typo of unknown format"][1]
    gauges = almanac("metrics").out
    assert 'almanac_source_failing{cluster="ft",source="unknown"} 1.0' in gauges
    assert "typo" not in gauges
    runs = almanac.json("ingest-run", "list")
    assert [(run["cluster"], run["outcome"]) for run in runs] == [
        ("typo", "failed"),
        ("ft", "failed"),
        ("ft", "saved"),
    ]
    assert runs[1]["files"] == [str(wrong)]
    assert str(wrong) in runs[1]["error"]
    assert [run["run"] for run in almanac.json("ingest-run", "list", "--failed", "--cluster", "ft")] == [
        runs[1]["run"]
    ]
    assert len(almanac.json("ingest-run", "list", "--top", 1)) == 1
    assert runs[1]["run"] in almanac("ingest-run", "list").out
    assert almanac.json("ingest-run", "delete", "--failed", "--cluster", "typo", "--yes")["deleted"] == {
        "ingest runs": 1
    }
    almanac.ok("ingest-run", "delete", runs[1]["run"], "--yes")
    assert [run["outcome"] for run in almanac.json("ingest-run", "list")] == ["saved"]
    assert "ft of unknown" not in almanac("doctor").out


def test_what_to_delete_must_be_clear(almanac: Almanac) -> None:
    for words in ([], ["abc", "--failed"], ["abc", "--cluster", "x"]):
        assert almanac("ingest-run", "delete", *words, "--yes").code == 2
    assert almanac("ingest-run", "delete", "abc", "--yes").code == 1
