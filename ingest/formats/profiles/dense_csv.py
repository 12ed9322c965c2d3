"""A communication profile as a dense matrix of bytes: rows of numbers separated by commas, without names.

Row r is what rank r sends, or with `Options.transposed` what it receives; the file itself does not show
which. Semicolons and tabs are accepted as delimiters, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ingest.formats.profiles.matrices import MAX_DENSE, Entries, matrix_profile, read_rows
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

_WHOLE = 60_000
"""If the head is shorter than this, in characters, it is the whole file."""
_DELIMITERS = (",", ";", "\t")
_CELL = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.A)


def _recognise_dense_csv(head: str, path: str) -> bool:
    """Return True if the text has as many lines as numbers in each line, with repeated numbers.

    A list of ranks without repetitions may have such lines, too; a matrix repeats at least the zeros of its
    diagonal.
    """
    lines = [line.rstrip("\r") for line in head.split("\n") if line.strip() and not line.startswith("#")]
    if len(head) >= _WHOLE:
        lines = lines[:-1]  # possibly truncated
    if not lines or "\0" in head:
        return False
    delimiter = _delimiter(lines[0])
    columns = lines[0].count(delimiter) + 1
    if columns < 2 or len(lines) > columns or (len(head) < _WHOLE and len(lines) < columns):
        return False
    if not all(line.count(delimiter) == columns - 1 and _numbers(line, delimiter) for line in lines[:2]):
        return False
    cells = [cell.strip() for line in lines for cell in line.split(delimiter)]
    return len(set(cells)) < len(cells)


def _parse_dense_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one file; a matrix that is not square, and one above `MAX_DENSE`, are errors."""
    (file,) = files
    text = file.text()
    first = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    delimiter = _delimiter(first)
    ranks = first.rstrip("\r").count(delimiter) + 1
    if ranks > MAX_DENSE:
        raise InputError(f"has {ranks} columns, more than {MAX_DENSE}: write it as edges", path=file.path)
    rows = read_rows(text, ranks, file.path, delimiter=delimiter)
    if len(rows) != ranks:
        raise InputError(f"has {len(rows)} rows and {ranks} columns, so it is not square", path=file.path)
    row, column = np.nonzero(rows)
    return matrix_profile(
        files, options, DENSE_CSV.name, Entries(row=row, column=column, size=rows[row, column], ranks=ranks)
    )


def _delimiter(line: str) -> str:
    return next((sign for sign in _DELIMITERS if sign in line), ",")


def _numbers(line: str, delimiter: str) -> bool:
    return all(_CELL.fullmatch(cell) for cell in line.rstrip("\r").split(delimiter))


DENSE_CSV = Format(
    "dense-csv",
    kind="profile",
    evidence="real",
    about="profile: square matrix of bytes, row r is what rank r sends",
    recognise=_recognise_dense_csv,
    parse=_parse_dense_csv,
)
