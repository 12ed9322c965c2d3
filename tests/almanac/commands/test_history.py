"""``almanac history``: its rows, regressions with an exit code for cron, and reports of how jobs run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from almanac.commands.cluster import EXIT_PROBLEMS
from almanac.commands.history import COLUMNS, series_rows
from registry.model.intake import Intake
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support.busy_cluster import PROPOSED, RING, fill, job, place, record

ASKED: tuple[dict[str, str], ...] = ({}, {"cluster": "toy"}, {"application": "cg"})


@pytest.fixture
def placed(registry: Registry) -> Registry:
    """Placements of a job and of none, of a profile and of none, evaluated and not."""
    fill(registry, job("7", 2))
    fill(registry, cluster="two")
    place(registry, "7")
    place(registry, "7", role=PROPOSED, seconds=2.0, strategy="greedy", seed=3)
    place(registry, "7", ranks=(0, 1), profile="pair", evaluated=False)
    place(registry, None, cluster="two")
    registry.placements.save(replace(record(registry, None), profile=None, routing=None))
    return registry


def test_rows_of_columns_are_those_of_the_placements(placed: Registry) -> None:
    """Recorded one after another, and all in one moment."""
    moment = placed.placements.history()[0].recorded_at
    for together in (False, True):
        if together:
            placed.database.write(lambda tx: tx.run("MATCH (p:Placement) SET p.recorded_at = $at", at=moment))
        for asked in ASKED:
            infos = placed.placements.history(**asked)  # type: ignore[arg-type]
            rows = series_rows(placed.placements.series(**asked))
            assert rows == [[getattr(info, column) for column in COLUMNS] for info in infos]
            assert infos


def test_the_table_is_the_same_whichever_way_it_is_read(placed: Registry, almanac: Almanac) -> None:
    assert placed.placements.count() == len(placed.placements.history()) == 5
    whole, some = almanac("history").out, almanac("history", "--top", 5).out
    assert whole == some
    assert len(whole.splitlines()) > 5


def test_unknown_names_are_errors_instead_of_an_empty_list(placed: Registry, almanac: Almanac) -> None:
    for options, reason in (
        (("--job", "77"), "there is no job '77'; closest: 7"),
        (("--job", "7", "--cluster", "two"), "there is no job '7'; it is in cluster toy"),
        (("--application", "gc"), "there is no application 'gc'; closest: cg"),
        (("--cluster", "tow"), "there is no cluster 'tow'; closest: two"),
    ):
        for listed in ("placements", "regressions", "simulations", "circuits", "measured"):
            missing = almanac("history", listed, *options)
            assert (missing.code, missing.out) == (1, ""), (listed, options)
            assert reason in missing.err
    assert "there is no cluster 'tow'" in almanac.refused("history", "--cluster", "tow", "--json")


@pytest.fixture
def drifting(almanac: Almanac, registry: Registry) -> Almanac:
    """Six placements of one application, the last of which is twice as bad; on a cluster ``toy``."""
    fill(registry, job("7", 2))
    for number, seconds in enumerate([4.0, 4.0, 4.1, 4.0, 4.0]):
        registry.placements.save(record(registry, "7", seconds=seconds, seed=number))
    worse = record(registry, "7", seconds=8.0, ranks=(0, 1, 0))
    registry.placements.save(replace(worse, code_version="2"))
    return almanac


def test_regressions_are_reported_with_what_changed_exit_4_and_lists_are_limited(
    drifting: Almanac, registry: Registry
) -> None:
    history = drifting.json("history")
    outcome = drifting("history", "regressions", "--json")
    assert outcome.code == EXIT_PROBLEMS == 4
    (answer,) = outcome.json
    assert (answer["placement"], answer["last_good"]) == (history[0]["placement"], history[1]["placement"])
    assert (answer["ratio"], answer["centre"]) == (8.0, 4.0)
    assert answer["changed"] == ["order of ranks", "program"]
    names = ("profile", "application", "job", "role")
    assert [answer[name] for name in names] == ["ring", "cg", "7", "present"]
    shown = drifting("history", "regressions")
    assert shown.code == 4
    assert answer["placement"] in shown.out
    fill(registry, job("8", 2), cluster="two")
    registry.save(Intake(profiles=(replace(RING, application="ft"),)))
    for asked in (
        *(("--since", "2100-01-01"), ("--application", "ft")),
        *(("--job", "8"), ("--cluster", "two")),
    ):
        assert drifting.ok("history", "regressions", *asked).out == "no regressions\n"
        assert drifting.json("history", "regressions", *asked) == []
    drifting.refused("history", "regressions", "--since", "2020-01-01", code=EXIT_PROBLEMS)
    drifting.refused("history", "--since", "2020-01-01", code=2)
    whole = drifting.json("history")
    assert drifting.json("history", "--top", "2") == whole[:2]
    assert {row["role"] for row in whole} == {"present"}


def test_a_report_of_ranks_is_how_its_job_runs(almanac: Almanac, registry: Registry, tmp_path: Path) -> None:
    fill(registry, job("7", 2))
    report = tmp_path / "rankfile"
    report.write_text("rank 0=node03 slot=0\nrank 1=node00 slot=0\nrank 2=node03 slot=1\n")
    almanac.ok("ingest", report, "--cluster", "toy", "--job", "7", "--json")
    (row,) = almanac.json("history", "--job", "7")
    assert row["role"] == "present"
    assert registry.placements.read(row["placement"]).hosts == ("node03", "node00", "node03")
    assert "there is no job '70'" in almanac.refused("ingest", report, "--cluster", "toy", "--job", "70")
