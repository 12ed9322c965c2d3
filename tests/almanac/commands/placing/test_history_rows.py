"""The table of ``almanac history`` is made from columns: its rows are those of the placements one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from almanac.commands.placing.history import COLUMNS, series_rows
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support.busy_cluster import PROPOSED, fill, job, place, record

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


@pytest.mark.parametrize("together", [False, True], ids=["one after another", "all in one moment"])
def test_rows_of_columns_are_those_of_the_placements(placed: Registry, together: bool) -> None:
    if together:
        moment = placed.placements.history()[0].recorded_at
        placed.database.write(lambda tx: tx.run("MATCH (p:Placement) SET p.recorded_at = $at", at=moment))
    for asked in ASKED:
        infos = placed.placements.history(**asked)  # type: ignore[arg-type]
        rows = series_rows(placed.placements.series(**asked))
        assert rows == [[getattr(info, column) for column in COLUMNS] for info in infos]
        assert infos


def test_placements_are_counted(placed: Registry) -> None:
    assert placed.placements.count() == len(placed.placements.history()) == 5


def test_the_table_is_the_same_whichever_way_it_is_read(placed: Registry, almanac: Almanac) -> None:
    """Before a limit rows are read, without one columns."""
    whole, some = almanac("history").out, almanac("history", "--top", 5).out
    assert whole == some
    assert len(whole.splitlines()) > 5


@pytest.mark.parametrize(
    "options", [(), ("--json",), ("regressions",), ("simulations",), ("circuits",)], ids=str
)
def test_an_unknown_cluster_is_an_error(placed: Registry, almanac: Almanac, options: tuple[str, ...]) -> None:
    missing = almanac("history", *options, "--cluster", "tow")
    assert missing.code == 1
    assert "there is no cluster 'tow'" in missing.err
    assert "two" in missing.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--job", "77"), "there is no job '77'; closest: 7"),
        (("--job", "7", "--cluster", "two"), "there is no job '7'; it is in cluster toy"),
        (("--application", "gc"), "there is no application 'gc'; closest: cg"),
    ],
)
@pytest.mark.parametrize("listed", ["placements", "regressions", "simulations", "circuits", "measured"])
def test_unknown_names_are_errors_instead_of_an_empty_list(
    placed: Registry, almanac: Almanac, listed: str, options: tuple[str, ...], reason: str
) -> None:
    missing = almanac("history", listed, *options)
    assert (missing.code, missing.out) == (1, "")
    assert reason in missing.err
