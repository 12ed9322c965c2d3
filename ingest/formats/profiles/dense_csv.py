"""Who sends how much to whom as a dense matrix of bytes: rows of numbers between commas, no names of columns.

Row r is what rank r sends; nothing in the file tells, so `Options.transposed` says where it is the other way
round. Semicolons and tabs between the numbers are read too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ingest.formats.profiles.matrices import MAX_DENSE, matrix_profile
from ingest.formats.profiles.number_rows import read_rows
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

FORMAT = "dense-csv"
_WHOLE = 60_000
"""A head shorter than this, in characters, is the whole file."""
_DELIMITERS = (",", ";", "\t")
_CELL = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.A)


def recognise(head: str, path: str) -> bool:
    """Whether lines are as many numbers between delimiters each, as many lines as numbers, some repeated.

    A list of ranks, each named once, may be cut into lines as well; in a matrix numbers repeat, if only the
    zeros of its diagonal.
    """
    lines = [line.rstrip("\r") for line in head.split("\n") if line.strip() and not line.startswith("#")]
    if len(head) >= _WHOLE:
        lines = lines[:-1]  # perhaps cut
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


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The profile of one file.

    Raises
    ------
    InputError
        With the line: a row with another number of cells, a cell that is no number. A matrix that is not
        square, an entry below zero, more than `MAX_DENSE` ranks.
    """
    (file,) = files
    text = file.text()
    first = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    delimiter = _delimiter(first)
    ranks = first.rstrip("\r").count(delimiter) + 1
    if ranks > MAX_DENSE:
        raise InputError(f"has {ranks} columns, more than {MAX_DENSE}: write it as edges", path=file.path)
    rows = read_rows(text, ranks, file.path, delimiter=delimiter)
    if len(rows) != ranks:
        raise InputError(f"has {len(rows)} rows and {ranks} columns, is not square", path=file.path)
    row, column = np.nonzero(rows)
    return matrix_profile(files, options, FORMAT, row=row, column=column, size=rows[row, column], ranks=ranks)


def _delimiter(line: str) -> str:
    return next((sign for sign in _DELIMITERS if sign in line), ",")


def _numbers(line: str, delimiter: str) -> bool:
    return all(_CELL.fullmatch(cell) for cell in line.rstrip("\r").split(delimiter))
