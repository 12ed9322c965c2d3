"""Deleting observations, jobs and profiles by command: refused, asked for, rehearsed, carried out."""

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
def filled(embedded: Almanac) -> Almanac:
    """Two observations of one cluster, and a profile."""
    for number, path in enumerate((FABRIC / "ibnetdiscover.txt", BROKEN), start=1):
        call = embedded("ingest", path, "--cluster", "ft", "--observed-at", f"2026-01-0{number}")
        assert call.code == 0, call.err
    assert embedded("generate", "profile", "ring", "--ranks", 4, "--save").code == 0
    return embedded


def test_observations_are_listed_and_deleted(filled: Almanac) -> None:
    first, second = filled("observation", "list", "ft", "--json").json
    assert set(first) == {"observation", "cluster", "observed_at", "snapshot", "routing_id", "origin"}
    assert (first["cluster"], first["origin"]) == ("ft", "ibnetdiscover")
    assert second["observation"] in filled("observation", "list", "ft").out
    planned = filled("observation", "delete", second["observation"], "--dry-run", "--json").json
    assert planned == {
        "dry_run": True,
        "deleted": {"observations": 1, "snapshots": 1},
        "dependents": {},
        "jobs_without_profile": [],
    }
    assert filled("cluster", "show", "ft", "--json").json["host_count"] == 63
    assert "deleted: observations: 1" in filled("observation", "delete", second["observation"], "--yes").out
    assert filled("cluster", "show", "ft", "--json").json["host_count"] == 64
    call = filled("observation", "delete", first["observation"], "--yes")
    assert call.code == 1
    assert "only one of the fabric of ft; ingest another scan first, or delete the cluster" in call.err
    call = filled("ingest", BROKEN, "--cluster", "ft", "--observed-at", "2026-01-02", "--json")
    assert call.json["new_observation"]  # though the same file was read before


def test_an_unknown_cluster_or_observation_is_an_error(filled: Almanac) -> None:
    assert "there is no cluster 'fx'" in filled("observation", "list", "fx").err
    assert "there is no observation 'nothing'" in filled("observation", "delete", "nothing", "--yes").err


def test_without_a_terminal_nothing_is_deleted_without_yes(
    filled: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    call = filled("profile", "delete", "ring-4")
    assert call.code == 2
    assert "add --yes" in call.err
    assert len(filled("profile", "list", "--json").json) == 1


@pytest.mark.parametrize(("answer", "left", "code"), [("n\n", 1, 1), ("\n", 1, 1), ("y\n", 0, 0)])
def test_on_a_terminal_the_user_is_asked(
    filled: Almanac, monkeypatch: pytest.MonkeyPatch, answer: str, left: int, code: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    call = filled("profile", "delete", "ring-4")
    assert call.code == code
    assert "applications: 1, profiles: 1, ranks of profiles: 4" in call.err
    assert ("nothing was changed" in call.err) == bool(left)
    assert len(filled("profile", "list", "--json").json) == left


def test_dependents_are_listed_and_deleted_on_demand(filled: Almanac, tmp_path: Path) -> None:
    hosts = ",".join(f"node000{n}" for n in range(1, 5))
    call = filled("map", "ring-4", "--cluster", "ft", "--hosts", hosts, "--steps", 10, "--json")
    assert call.code == 0, call.err
    placement = call.json["placement"]
    refused = filled("profile", "delete", "ring-4", "--yes")
    assert refused.code == 1
    assert "profile ring-4 is in use: placements: 1; --dry-run lists them, --with-dep" in refused.err
    planned = filled("profile", "delete", "ring-4", "--dry-run")
    assert f"depends on it: placement {placement}" in planned.out
    done = filled("profile", "delete", "ring-4", "--yes", "--with-dependents", "--json").json
    assert done["dependents"] == {"placements": [placement]}
    assert filled("history", "--json").json == []


def test_jobs_are_deleted(filled: Almanac, tmp_path: Path) -> None:
    sacct = DATA / "slurm" / "sacct_P.txt"
    assert filled("ingest", sacct, "--cluster", "ft").code in (0, 5)
    jobs = filled("job", "list", "--json").json
    assert filled("job", "delete", jobs[0]["job"], "--yes").code == 0
    assert len(filled("job", "list", "--json").json) == len(jobs) - 1
    assert filled("job", "delete", jobs[0]["job"], "--yes").code == 1
