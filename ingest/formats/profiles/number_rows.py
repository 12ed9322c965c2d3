"""Rows of numbers: read at numpy's speed, and row by row again to find an error."""

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
    """Return the numbers of a text with one row per line.

    Parameters
    ----------
    text : str
        Lines of numbers.
    columns : int
        Numbers in each row.
    path : str
        Path of the file, for errors.
    first : int
        Line number of the text's first line.
    delimiter : str, optional
        Text between the numbers (default: blanks).
    comments : str
        Start of comment lines, which are ignored like empty lines.
        Lines that begin with this are ignored, as are empty ones.

    Returns
    -------
    float64[rows, columns]

    Raises
    ------
    InputError
        A row with too few or too many numbers, or with one that is unreadable or not finite.
    """
    reason = "unreadable row"
    if not any(line.partition(comments)[0].strip() for line in io.StringIO(text)):
        return np.zeros((0, columns))
    try:
        rows = np.loadtxt(io.StringIO(text), np.float64, comments=comments, delimiter=delimiter, ndmin=2)
        if rows.shape[1:] == (columns,) and bool(np.isfinite(rows).all()):
            return np.asarray(rows)
        if rows.size == 0:
            return np.zeros((0, columns))
    except ValueError as error:
        reason = f"unreadable row: {error}"
    _find_fault(text, columns, path, first, delimiter, comments)
    raise InputError(reason.split("\n")[0], path=path)


def _find_fault(text: str, columns: int, path: str, first: int, delimiter: str | None, comments: str) -> None:
    for number, line in enumerate(text.split("\n"), start=first):
        content = line.partition(comments)[0].strip()
        if not content:
            continue
        cells = content.split(delimiter)
        if len(cells) != columns:
            raise InputError(f"{len(cells)} numbers instead of {columns}", path=path, line=number, text=line)
        for cell in cells:
            if not _NUMBER.fullmatch(cell.strip()) or not math.isfinite(float(cell.strip())):
                raise InputError("not a finite number", path=path, line=number, text=cell)
