"""Rows of numbers: read at numpy's speed, and read again row by row where one of them is bad."""

from __future__ import annotations

import io
import math
import re

import numpy as np

from registry.errors import InputError
from registry.model import Floats

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.A)


def read_rows(
    text: str, columns: int, path: str, *, first: int = 1, delimiter: str | None = None, comments: str = "#"
) -> Floats:
    """The numbers of a text, a row a line.

    Parameters
    ----------
    text : str
    columns : int
        Numbers of each row.
    path : str
        For errors.
    first : int
        Number of the text's first line in its file.
    delimiter : str, optional
        Between the numbers; any blanks unless told.
    comments : str
        Lines that begin with this are left out, as are empty ones.

    Returns
    -------
    float64[rows, columns]

    Raises
    ------
    InputError
        With the line: too few or too many numbers, one that cannot be read or is not finite.
    """
    reason = "a row cannot be read"
    if not any(line.partition(comments)[0].strip() for line in io.StringIO(text)):
        return np.zeros((0, columns))
    try:
        rows = np.loadtxt(io.StringIO(text), np.float64, comments=comments, delimiter=delimiter, ndmin=2)
        if rows.shape[1:] == (columns,) and bool(np.isfinite(rows).all()):
            return np.asarray(rows)
        if rows.size == 0:
            return np.zeros((0, columns))
    except ValueError as error:
        reason = f"a row cannot be read: {error}"
    _find_fault(text, columns, path, first, delimiter, comments)
    raise InputError(reason.split("\n")[0], path=path)


def _find_fault(text: str, columns: int, path: str, first: int, delimiter: str | None, comments: str) -> None:
    for number, line in enumerate(text.split("\n"), start=first):
        content = line.partition(comments)[0].strip()
        if not content:
            continue
        cells = content.split(delimiter)
        if len(cells) != columns:
            raise InputError(
                f"{len(cells)} numbers where {columns} belong", path=path, line=number, text=line
            )
        for cell in cells:
            if not _NUMBER.fullmatch(cell.strip()) or not math.isfinite(float(cell.strip())):
                raise InputError("not a number, or not a finite one", path=path, line=number, text=cell)
