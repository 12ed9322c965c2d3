"""A placement as a CSV file with the columns ``rank,host``, as written by `almanac export --format csv`.

Further columns, such as ``slot``, are ignored. Columns and rows may be in any order.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence

from ingest.formats.placements.orders import RankHost, head_lines, placement_by_rank
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.csv_text import without_guard
from registry.errors import InputError

_NEEDED = ("rank", "host")
_RANK = re.compile(r"\d{1,8}", re.A)


def _recognise_placement_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments has the column names."""
    lines = head_lines(head)
    return bool(lines) and set(_NEEDED) <= set(_names(lines[0].split(",")))


def _parse_placement_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file; a row with a wrong number of cells is an error."""
    (file,) = files
    return placement_by_rank(_rows(file), file, PLACEMENT_CSV.name)


def _rows(file: SourceFile) -> Iterator[RankHost]:
    """Yield the rank and host of each row after the column names."""
    reader = csv.reader(io.StringIO(file.text(), newline=""))
    names: list[str] = []
    try:
        for cells in reader:
            text = ",".join(cells)
            if not cells or (not names and cells[0].startswith("#")):
                continue
            if names:
                fault, row = "", dict(zip(names, (cell.strip() for cell in cells), strict=False))
                if len(cells) != len(names):
                    fault = f"{len(cells)} cells, but there are {len(names)} columns"
                elif not _RANK.fullmatch(row["rank"]):
                    fault = "rank is not a whole number of at most 8 digits"
                elif not row["host"]:
                    fault = "host has no name"
                if fault:
                    raise InputError(fault, path=file.path, line=reader.line_num, text=text)
                yield RankHost(int(row["rank"]), without_guard(row["host"]), reader.line_num, text)
                continue
            names = _names(cells)
            for name in _NEEDED:
                if names.count(name) != 1:
                    reason = f"expected one column {name}"
                    raise InputError(reason, path=file.path, line=reader.line_num, text=text)
    except csv.Error as error:
        raise InputError(f"invalid CSV: {error}", path=file.path, line=reader.line_num) from error


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


PLACEMENT_CSV = Format(
    "placement-csv",
    kind="placement",
    evidence="own",
    about="placement: CSV with columns rank,host",
    recognise=_recognise_placement_csv,
    parse=_parse_placement_csv,
)
