"""A user's own table of distances: reading, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mapping.distances.distance_tables import DistanceTable, read_distance_table
from mapping.distances.distances import distances
from registry.errors import InputError, InvalidValue, UnknownName
from tests.mapping.distances.test_distances import routes


def written(folder: Path, text: str) -> Path:
    path = folder / "distances.csv"
    path.write_text(text)
    return path


def test_a_csv_table_is_taken_by_host_name_in_any_order(tmp_path: Path) -> None:
    path = written(tmp_path, "host,c,x,b,a\na,2,9,1,0\n\nb,3,9,0,1\nx,9,0,9,9\nc,0,9,3,2\n")
    found = distances("table", routes(), table=read_distance_table(path))
    assert found.matrix().tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]


def test_a_host_that_a_table_lacks_is_named() -> None:
    table = DistanceTable(names=("a", "b"), values=np.zeros((2, 2)))
    with pytest.raises(UnknownName, match="'c'"):
        distances("table", routes(), table=table)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "empty"),
        ("host,a,a\n", 1, "a name of its own"),
        ("host,a,b\na,0\n", 2, "1 distances for 2 hosts in 'a'"),
        ("host,a,b\na,0,x\n", 2, "is not a distance in 'x'"),
        ("host,a,b\na,0,nan\n", 2, "is not a distance in 'nan'"),
        ("host,a,b\na,0,1\na,0,1\n", 3, "second row"),
        ("host,a,b\na,0,1\n", None, "no row for host 'b'"),
    ],
)
def test_a_faulty_file_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_distance_table(written(tmp_path, text))
    assert caught.value.line == line


def test_a_file_with_a_row_but_no_column_or_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'bb'"):
        read_distance_table(written(tmp_path, "host,a,b\nbb,0,1\n"))
    with pytest.raises(InputError, match="cannot read"):
        read_distance_table(tmp_path / "none.csv")


def test_a_table_of_another_shape_or_with_a_name_twice_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"\(1, 1\) for 2 hosts"):
        DistanceTable(names=("a", "b"), values=np.zeros((1, 1)))
    with pytest.raises(InvalidValue, match="'a' occurs twice"):
        DistanceTable(names=("a", "a"), values=np.zeros((2, 2)))
