"""CSV with a line of column names, as edges and traces come in: which columns, and numbers checked by column.

numpy reads the rows at about a million a second but cannot tell the line of a fault; where it or a
check refuses the content, the rows are read again one by one to find the first bad line.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.formats.profiles.shared import MAX_RANKS
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Bools, Floats

LARGEST = float(1 << 53)
"""Largest whole number that is read exactly."""
RANKS = "# ranks:"
"""Beginning of the comment that tells the number of ranks."""
TIMES: Mapping[str, float] = MappingProxyType({"t_s": 1.0, "t_ms": 1e-3, "t_us": 1e-6, "t_ns": 1e-9})
"""Columns that tell when a message was sent, by their unit in seconds; with one, a row is a message."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.A)


class Table(NamedTuple):
    """A file taken apart.

    Attributes
    ----------
    names : list of str
        Of the columns, in lower case.
    header : int
        Number of the line that holds them.
    body : str
        The text behind it.
    path : str
        For errors.
    """

    names: list[str]
    header: int
    body: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What a column of finite numbers may hold.

    Attributes
    ----------
    whole : bool
        Whole numbers up to 2^53.
    signed : bool
        Numbers below zero too.
    largest : float
        Largest absolute value.
    larger : str
        What is said of one that is larger.
    """

    whole: bool = False
    signed: bool = False
    largest: float = math.inf
    larger: str = ""

    def good(self, values: Floats) -> Bools:
        """bool[n]: which numbers the column may hold."""
        size = np.abs(values)
        good: Bools = np.isfinite(values) & (size <= self.largest)
        if not self.signed:
            good &= values >= 0
        if self.whole:
            good &= (values == np.floor(values)) & (size <= LARGEST)
        return good

    def fault(self, cell: str) -> str:
        """What is wrong with a cell; empty where nothing is. The same rules as `good`."""
        if not _NUMBER.fullmatch(cell):
            return "is not a number"
        value = float(cell)
        if not math.isfinite(value):
            return "is not finite"
        if value < 0 and not self.signed:
            return "is negative"
        if self.whole and (value != math.floor(value) or abs(value) > LARGEST):
            return "is not a whole number below 2^53"
        return self.larger if abs(value) > self.largest else ""


RANK = Column(whole=True, largest=MAX_RANKS - 1, larger=f"is no rank below {MAX_RANKS}")


def head_names(head: str) -> set[str]:
    """The columns that the first line that is no comment names; never raises."""
    line = next((line for line in head.splitlines() if line.strip() and not line.startswith("#")), "")
    return set(_names(line))


def split(file: SourceFile, needed: Sequence[str]) -> Table:
    """The columns' names and the rows behind them.

    Raises
    ------
    InputError
        A column that is missing or stands twice, no line with names.
    """
    text, end, number = file.text(), 0, 0
    while end < len(text):
        start, end = end, text.find("\n", end) + 1 or len(text)
        line, number = text[start:end], number + 1
        if not line.strip() or line.startswith("#"):
            continue
        names = _names(line)
        missing = [name for name in needed if name not in names]
        if missing:
            reason = f"there is no column {' and no column '.join(missing)}"
            raise InputError(reason, path=file.path, line=number, text=line.strip())
        if len(set(names)) != len(names):
            raise InputError("a column stands twice", path=file.path, line=number, text=line.strip())
        return Table(names, number, text[end:], file.path)
    raise InputError("there is no line with the names of the columns", path=file.path)


def told_ranks(file: SourceFile, header: int) -> int:
    """The number of ranks that a comment before the names tells; 0 where none does.

    Raises
    ------
    InputError
        No number, or one outside 1 .. `MAX_RANKS`.
    """
    lines = file.data[: 1 << 16].decode("utf-8-sig", "replace").split("\n", header)[: header - 1]
    for number, line in enumerate(lines, start=1):
        if line.startswith(RANKS):
            text = line.removeprefix(RANKS).strip()
            if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MAX_RANKS):
                raise InputError("no number of ranks", path=file.path, line=number, text=line)
            return int(text)
    return 0


def read_columns(
    table: Table, columns: Mapping[str, Column], texts: Mapping[str, str] = MappingProxyType({})
) -> NDArray[np.void]:
    """The rows as a structured array, each number checked; other columns as their first letter.

    Parameters
    ----------
    table : Table
    columns : mapping of str to Column
        Of numbers: float64.
    texts : mapping of str to str
        Of text: their dtype, such as ``U12``.

    Raises
    ------
    InputError
        With the line: a row with another number of cells, a cell that its column may not hold.
    """
    names = table.names
    kinds = [
        (name or f"column {i}", "f8" if name in columns else texts.get(name, "U1"))
        for i, name in enumerate(names)
    ]
    reason = "a row cannot be read"
    try:
        body = io.StringIO(table.body)
        rows = np.loadtxt(body, np.dtype(kinds), comments=None, delimiter=",", quotechar='"', ndmin=1)
        if all(bool(columns[name].good(rows[name]).all()) for name in names if name in columns):
            return rows
    except ValueError as error:
        reason = f"a row cannot be read: {error}"
    for number, cells in numbered(table):
        fault = _fault(cells, names, columns)
        if fault:
            raise InputError(fault, path=table.path, line=number, text=",".join(cells))
    raise InputError(reason, path=table.path)


def numbered(table: Table) -> Iterator[tuple[int, list[str]]]:
    """The rows with the numbers of the lines where they begin.

    Raises
    ------
    InputError
        The text is no CSV.
    """
    reader = csv.reader(io.StringIO(table.body, newline=""))
    start = 0
    try:
        for cells in reader:
            if cells:
                yield table.header + start + 1, cells
            start = reader.line_num
    except csv.Error as error:
        line = table.header + start + 1
        raise InputError(f"not CSV: {error}", path=table.path, line=line) from error


def refused(table: Table, row: int, reason: str) -> InputError:
    """The error for a row, from 0, with its line and text."""
    number, cells = next(islice(numbered(table), row, None))
    return InputError(reason, path=table.path, line=number, text=",".join(cells))


def unread(names: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    """Says which columns are not read, where there are any."""
    others = [name for name in names if name not in known]
    if others:
        yield f"columns that are not read: {', '.join(others)}"


def _names(line: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in line.split(",")]


def _fault(cells: Sequence[str], names: Sequence[str], columns: Mapping[str, Column]) -> str:
    """What is wrong with a row; empty where nothing is."""
    if len(cells) != len(names):
        return f"{len(cells)} cells where there are {len(names)} columns"
    for name, cell in zip(names, cells, strict=True):
        fault = columns[name].fault(cell.strip()) if name in columns else ""
        if fault:
            return f"{name} {fault}"
    return ""
