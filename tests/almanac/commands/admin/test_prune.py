"""``almanac db prune``: the rules of the settings, and what they delete."""

from __future__ import annotations

import pytest

from tests.almanac.conftest import Almanac
from tests.support.paths import DATA

TREE = DATA / "infiniband" / "fattree2-64-ftree" / "ibnetdiscover.txt"


def test_the_settings_decide_what_is_deleted(embedded: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    for hour in range(1, 6):
        time = f"2026-01-0{hour // 3 + 1}T0{hour}:00:00Z"
        assert embedded("ingest", TREE, "--cluster", "ft", "--observed-at", time).code == 0
    kept = embedded("db", "prune", "--yes")
    assert (kept.code, kept.out) == (0, "nothing to delete\n")
    assert "the settings keep all: see keep_observations" in kept.err
    monkeypatch.setenv("ALMANAC_KEEP_OBSERVATIONS", "daily")
    planned = embedded("db", "prune", "--dry-run", "--json").json
    assert planned["rules"]["keep_observations"] == "daily"
    assert planned["deleted"] == [
        {"cluster": "ft", "observations": 3, "counters": 0, "placements": 0, "runs": 0}
    ]
    assert "would delete: ft: observations: 3" in embedded("db", "prune", "--dry-run").out
    assert len(embedded("observation", "list", "ft", "--json").json) == 5
    assert embedded("db", "prune", "--yes", "--json").json == planned | {"dry_run": False}
    listed = embedded("observation", "list", "ft", "--json").json
    assert [row["observed_at"] for row in listed] == ["2026-01-01T02:00:00Z", "2026-01-02T05:00:00Z"]
    rows = {row["setting"]: row["value"] for row in embedded("config", "show", "--json").json["settings"]}
    assert (rows["keep_observations"], rows["keep_runs"]) == ("daily", "all")


@pytest.mark.parametrize(
    ("key", "rule", "reason"),
    [
        ("KEEP_RUNS", "monthly", "setting keep_runs: 'monthly' is not a rule such as all, newest 1000"),
        ("KEEP_COUNTERS", "weekly", "sweeps become hourly sums after 7 days"),
    ],
)
def test_a_rule_that_is_none_deletes_nothing(
    embedded: Almanac, monkeypatch: pytest.MonkeyPatch, key: str, rule: str, reason: str
) -> None:
    monkeypatch.setenv(f"ALMANAC_{key}", rule)
    call = embedded("db", "prune", "--yes")
    assert call.code == 1
    assert f"setting {key.lower()}: " in call.err
    assert reason in call.err
