"""A placement as a CSV file with the columns ``rank,host``, as written by `almanac export --format csv`.

Further columns, such as ``slot``, are ignored. Columns and rows may be in any order.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ingest.formats.placements.orders import RankHost, by_rank, head_lines
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

FORMAT = "placement-csv"
_NEEDED = ("rank", "host")
_DIGITS = 8


def recognise(head: str, path: str) -> bool:
    """Return True if the first line except comments has the column names."""
    lines = head_lines(head)
    return bool(lines) and set(_NEEDED) <= set(_names(lines[0].split(",")))


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file.

    Raises
    ------
    InputError
        A missing column, a row with a wrong number of cells, a rank that is not a number, repeated or
        missing, or a host without a name.
    """
    (file,) = files
    reader = csv.reader(io.StringIO(file.text(), newline=""))
    names: list[str] = []
    hosts_of_ranks: dict[int, RankHost] = {}
    try:
        for cells in reader:
            if not cells or (not names and cells[0].startswith("#")):
                continue
            if not names:
                names = _names(cells)
                _check_columns(names, file.path, reader.line_num)
            else:
                _rank_host(cells, names, hosts_of_ranks, file.path, reader.line_num)
    except csv.Error as error:
        raise InputError(f"invalid CSV: {error}", path=file.path, line=reader.line_num) from error
    return Parsed(placements=(by_rank(hosts_of_ranks, file, FORMAT),))


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


def _check_columns(names: Sequence[str], path: str, line: int) -> None:
    for name in _NEEDED:
        if names.count(name) != 1:
            raise InputError(f"expected one column {name}", path=path, line=line, text=",".join(names))


def _rank_host(
    cells: Sequence[str], names: Sequence[str], hosts_of_ranks: dict[int, RankHost], path: str, line: int
) -> None:
    """Add the rank and host of a row."""
    text = ",".join(cells)
    if len(cells) != len(names):
        reason = f"{len(cells)} cells, but there are {len(names)} columns"
        raise InputError(reason, path=path, line=line, text=text)
    rank, host = (cells[names.index(name)].strip() for name in _NEEDED)
    if not (rank.isascii() and rank.isdigit() and len(rank) <= _DIGITS):
        raise InputError("rank is not a number", path=path, line=line, text=text)
    if not host:
        raise InputError("host has no name", path=path, line=line, text=text)
    if int(rank) in hosts_of_ranks:
        raise InputError(f"rank {int(rank)} is placed twice", path=path, line=line, text=text)
    hosts_of_ranks[int(rank)] = RankHost(host, line)
