"""A placement as a CSV file with the columns ``rank,host``, as `almanac export --format csv` writes it.

Further columns, such as ``slot``, are not kept. Columns may come in any order, rows too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ingest.formats.placements.orders import Seat, by_rank, head_lines
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

FORMAT = "placement-csv"
_NEEDED = ("rank", "host")
_DIGITS = 8


def recognise(head: str, path: str) -> bool:
    """Whether the first line that is no comment names the columns."""
    lines = head_lines(head)
    return bool(lines) and set(_NEEDED) <= set(_names(lines[0].split(",")))


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The hosts of the ranks of one file.

    Raises
    ------
    InputError
        A column that is missing; a row with another number of cells; a rank that is no number, twice
        or missing; a host without a name.
    """
    (file,) = files
    reader = csv.reader(io.StringIO(file.text(), newline=""))
    names: list[str] = []
    seats: dict[int, Seat] = {}
    try:
        for cells in reader:
            if not cells or (not names and cells[0].startswith("#")):
                continue
            if not names:
                names = _names(cells)
                _check_columns(names, file.path, reader.line_num)
            else:
                _seat(cells, names, seats, file.path, reader.line_num)
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", path=file.path, line=reader.line_num) from error
    return Parsed(placement=by_rank(seats, file, FORMAT))


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


def _check_columns(names: Sequence[str], path: str, line: int) -> None:
    for name in _NEEDED:
        if names.count(name) != 1:
            raise InputError(f"there is not one column {name}", path=path, line=line, text=",".join(names))


def _seat(cells: Sequence[str], names: Sequence[str], seats: dict[int, Seat], path: str, line: int) -> None:
    text = ",".join(cells)
    if len(cells) != len(names):
        reason = f"{len(cells)} cells where there are {len(names)} columns"
        raise InputError(reason, path=path, line=line, text=text)
    rank, host = (cells[names.index(name)].strip() for name in _NEEDED)
    if not (rank.isascii() and rank.isdigit() and len(rank) <= _DIGITS):
        raise InputError("rank is not a number", path=path, line=line, text=text)
    if not host:
        raise InputError("host has no name", path=path, line=line, text=text)
    if int(rank) in seats:
        raise InputError(f"rank {int(rank)} is placed twice", path=path, line=line, text=text)
    seats[int(rank)] = Seat(host, line)
