"""``almanac history regressions``, for cron, with an exit code of its own; and reports of how jobs run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from almanac.commands.cluster.check import EXIT_PROBLEMS
from registry.database.driver import Database
from registry.model.intake import Intake
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support.busy_cluster import RING, at, fill, job, record


@pytest.fixture
def drifting(almanac: Almanac, database: Database) -> Almanac:
    """Six placements of one application, the last of which is twice as bad; on a cluster ``toy``."""
    registry = fill(Registry(database), job("7", 2))
    for number, seconds in enumerate([4.0, 4.0, 4.1, 4.0, 4.0]):
        registry.placements.save(record(registry, "7", seconds=seconds, seed=number))
    worse = record(registry, "7", seconds=8.0, ranks=(0, 1, 0))
    registry.placements.save(replace(worse, code_version="2"))
    return almanac


def test_a_regression_is_reported_with_what_changed_and_exits_4(drifting: Almanac) -> None:
    history = drifting("history", "--json").json
    outcome = drifting("history", "regressions", "--json")
    assert outcome.code == EXIT_PROBLEMS == 4
    (answer,) = outcome.json
    assert answer["placement"] == history[0]["placement"]
    assert answer["last_good"] == history[1]["placement"]
    assert (answer["ratio"], answer["centre"]) == (8.0, 4.0)
    assert answer["changed"] == ["order of ranks", "program"]
    assert (answer["profile"], answer["application"], answer["job"], answer["role"]) == (
        "ring",
        "cg",
        "7",
        "present",
    )
    shown = drifting("history", "regressions")
    assert shown.code == 4
    assert answer["placement"] in shown.out


@pytest.mark.parametrize(
    "asked", [("--since", "2100-01-01"), ("--application", "ft"), ("--job", "8"), ("--cluster", "two")]
)
def test_no_regression_matches(drifting: Almanac, database: Database, asked: tuple[str, str]) -> None:
    registry = fill(Registry(database), job("8", 2), cluster="two")
    registry.save(Intake(profiles=(replace(RING, application="ft"),)))
    outcome = drifting("history", "regressions", *asked)
    assert outcome.code == 0
    assert outcome.out == "no regressions\n"
    assert drifting("history", "regressions", "--json", *asked).json == []


def test_since_keeps_what_came_later_and_judges_by_what_was_before(drifting: Almanac) -> None:
    assert drifting("history", "regressions", "--since", "2020-01-01").code == 4


def test_a_cluster_that_there_is_not_is_an_error(drifting: Almanac) -> None:
    outcome = drifting("history", "regressions", "--cluster", "toi")
    assert outcome.code == 1
    assert "closest: toy" in outcome.err


def test_since_goes_with_regressions_only(drifting: Almanac) -> None:
    assert drifting("history", "--since", "2020-01-01").code == 2


def test_the_history_is_limited(drifting: Almanac) -> None:
    whole = drifting("history", "--json").json
    assert drifting("history", "--json", "--top", "2").json == whole[:2]
    assert {row["role"] for row in whole} == {"present"}


def test_a_report_of_rank_and_host_is_how_its_job_runs(
    almanac: Almanac, database: Database, tmp_path: Path
) -> None:
    registry = fill(Registry(database), job("7", 2))
    report = tmp_path / "rankfile"
    report.write_text("rank 0=node03 slot=0\nrank 1=node00 slot=0\nrank 2=node03 slot=1\n")
    outcome = almanac("ingest", report, "--cluster", "toy", "--job", "7", "--json")
    assert outcome.code == 0, outcome.err
    (found,) = registry.running("toy", at(5)).jobs
    assert found.present is not None
    assert found.present.placement is not None
    names = registry.running("toy", at(5)).snapshot.fabric.names
    assert [names[host] for host in found.present.placement.host_of_rank] == ["node03", "node00", "node03"]
    assert almanac("history", "--job", "7", "--json").json[0]["role"] == "present"
    refused = almanac("ingest", report, "--cluster", "toy", "--job", "70")
    assert refused.code == 1
    assert "there is no job '70'" in refused.err
