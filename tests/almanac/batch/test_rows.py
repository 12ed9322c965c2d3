"""Rows of a batch's file: the options of `map` as columns."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from almanac.batch.rows import Row, columns, read_rows
from almanac.commands.placing.map import command as map_command
from registry.errors import InputError


def rows_of(tmp_path: Path, text: str) -> tuple[Row, ...]:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return read_rows(str(path))


def test_a_row_is_the_request_of_these_options(tmp_path: Path) -> None:
    header = "profile,cluster,hosts,slots,objective,seconds,seed,seeds,strategy,pin,consecutive,"
    header += "background,routing\n"
    cells = '-wrf,c,"n[1-2,4]",2,hop-bytes,1.5,7,3,greedy random,0=n1 3=n4,,p1 p2/0.5,shortest-paths\n'
    (row,) = rows_of(tmp_path, header + cells)
    request = row.request(click.Context(map_command))
    assert (request.profile, request.cluster, request.hosts) == ("-wrf", "c", ("n1", "n2", "n4"))
    options = request.options
    assert (options.objective, options.seconds, options.steps) == ("hop-bytes", 1.5, None)
    assert (options.seed, options.seeds, options.strategies) == (7, 3, ("greedy", "random"))
    assert request.pins == {0: "n1", 3: "n4"}
    assert request.background == (("p1", None), ("p2", 0.5))
    assert (request.slots, request.costs.routing, options.consecutive) == (2, "shortest-paths", False)


def test_columns_are_all_options_of_map_that_name_a_placement() -> None:
    others = {"here", "fabric", "pareto", "layout", "export", "json", "scheduler"}
    of_map = {max(one.opts, key=len).lstrip("-") for one in map_command.params}
    assert set(columns()) == of_map - others


def test_rows_that_ask_for_the_same_have_the_same_id(tmp_path: Path) -> None:
    one, two, other = rows_of(tmp_path, "profile,job,seed\na,1,\na,1\na,1,0\n")
    again, _ = rows_of(tmp_path, "job,seed,profile\n1,,a\n2,,a\n")
    assert one.id == two.id == again.id != other.id
    assert [row.line for row in (one, two, other)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("a,1,5,,maybe", "consecutive: write yes, or nothing"),
        ("a,1,5,9,", "give either --seconds or --steps"),
        ("a,1,zero,,", "'zero' is not a valid"),
    ],
)
def test_a_bad_value_names_its_line(tmp_path: Path, cells: str, reason: str) -> None:
    (row,) = rows_of(tmp_path, f"profile,job,seconds,steps,consecutive\n{cells}\n")
    with pytest.raises(InputError, match=reason) as error:
        row.request(click.Context(map_command))
    assert (error.value.path, error.value.line) == (str(tmp_path / "rows.csv"), 2)
