"""A communication profile or the matrix of a solver in the Matrix Market format of NIST.

    %%MatrixMarket matrix coordinate real symmetric
    % comments
    rows columns entries
    row column value            from 1; no value if the field is ``pattern``

``array`` lists all values, column by column. Only the lower triangle of a ``symmetric`` matrix is in the
file; it is expanded. A row is what a rank sends unless `Options.transposed` is set. With `Options.parts` the
entries are the pattern of a sparse matrix, which METIS cuts into parts (Hoefler and Snir 2011, section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ingest.formats.profiles.matrices import (
    MAX_DENSE,
    Entries,
    matrix_profile,
    read_rows,
)
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Floats, Longs

BANNER = "%%MatrixMarket"
_FIELDS = {"real": 1, "double": 1, "integer": 1, "complex": 2, "pattern": 0}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


class _Header(NamedTuple):
    layout: str
    field: str
    symmetry: str
    rows: int
    entries: int
    lines: int
    """Number of lines up to that of the sizes."""
    end: int
    """Number of characters of these lines."""


def _recognise_matrix_market(head: str, path: str) -> bool:
    """Return True if the text begins with the banner."""
    return head[: len(BANNER)].lower() == BANNER.lower()


def _parse_matrix_market(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one file.

    An entry outside the matrix, a wrong number of entries, and a matrix that is not square, are errors.
    """
    (file,) = files
    text = file.text()
    header = _header(text, file.path)
    bare = header.field == "pattern" and (options.graph == "fabric" or options.weight is not None)
    if options.parts is None and header.field in ("complex", "pattern") and not bare:
        reason = f"a {header.field} matrix contains no bytes: use --parts P to cut it into P parts"
        raise InputError(reason, path=file.path, line=1)
    if (
        options.parts is None
        and options.graph != "fabric"
        and header.symmetry in ("skew-symmetric", "hermitian")
    ):
        raise InputError(f"a {header.symmetry} matrix cannot be bytes", path=file.path, line=1)
    row, column, value = _entries(text, header, file.path)
    if header.symmetry != "general":
        below = row != column
        row, column = np.r_[row, column[below]], np.r_[column, row[below]]
        value = np.r_[value, value[below]]
    weighted = header.field != "pattern"
    size = value if weighted else value * (options.weight or 1.0)
    entries = Entries(row=row, column=column, size=size, ranks=header.rows, first=1, weighted=weighted)
    return matrix_profile(files, options, MATRIX_MARKET.name, entries)


def _header(text: str, path: str) -> _Header:
    """Return the banner and the sizes."""
    number, end, words = 0, 0, [""]
    for number, line in enumerate(text.split("\n"), start=1):
        end += len(line) + 1
        if number == 1:
            words = line.lower().split()
        elif line.strip() and not line.startswith("%"):
            break
    else:
        raise InputError("ends before the line of sizes", path=path, line=number)
    fault = InputError("unsupported banner", path=path, line=1, text=text.split("\n")[0])
    if len(words) != 5 or words[1] != "matrix" or words[2] not in ("coordinate", "array"):
        raise fault
    layout, field, symmetry = words[2:]
    if field not in _FIELDS or symmetry not in _SYMMETRIES or (layout == "array" and field == "pattern"):
        raise fault
    sizes = line.split()
    if len(sizes) != (3 if layout == "coordinate" else 2) or not all(_is_count(size) for size in sizes):
        raise InputError("expected the line of sizes", path=path, line=number, text=line)
    rows, columns = int(sizes[0]), int(sizes[1])
    if rows != columns or rows < 1:
        raise InputError(
            f"has {rows} rows and {columns} columns, so it is not square", path=path, line=number
        )
    if layout == "array":
        if rows > MAX_DENSE:
            raise InputError(f"has {rows} rows, more than {MAX_DENSE}", path=path, line=number)
        count = rows * rows if symmetry == "general" else rows * (rows + 1) // 2
        count -= rows if symmetry == "skew-symmetric" else 0
    else:
        count = int(sizes[2])
    return _Header(layout, field, symmetry, rows, count, number, end)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15


def _entries(text: str, header: _Header, path: str) -> tuple[Longs, Longs, Floats]:
    """Return rows and columns from 0, and values (1 if the file has none)."""
    values = _FIELDS[header.field]
    places = 2 if header.layout == "coordinate" else 0
    body = text[header.end :]
    table = read_rows(body, places + values, path, first=header.lines + 1, comments="%")
    if len(table) != header.entries:
        counts = f"contains {len(table)} entries, but its sizes declare {header.entries}"
        raise InputError(f"{counts}: is it truncated?", path=path)
    value = table[:, places] if values else np.ones(len(table))
    if not places:
        return (*_dense_places(header), value)
    row, column = table[:, 0], table[:, 1]
    bad = (row != np.floor(row)) | (column != np.floor(column)) | (np.minimum(row, column) < 1)
    bad |= np.maximum(row, column) > header.rows
    if header.symmetry != "general":
        bad |= row < column
    if bool(bad.any()):
        at = int(np.flatnonzero(bad)[0])
        shown = " ".join(f"{number:.17g}" for number in table[at])
        line = _line_of(body, at) + header.lines
        reason = "an entry outside the matrix, or above the diagonal of a symmetric one"
        raise InputError(reason, path=path, line=line, text=shown)
    return row.astype(np.int64) - 1, column.astype(np.int64) - 1, value


def _line_of(body: str, entry: int) -> int:
    """Return the line of the body (from 1) of an entry (from 0)."""
    for number, line in enumerate(body.split("\n"), start=1):
        if line.partition("%")[0].strip():
            if entry == 0:
                return number
            entry -= 1
    return 0


def _dense_places(header: _Header) -> tuple[Longs, Longs]:
    """Return the places of an ``array`` column by column; for symmetric ones those below the diagonal."""
    if header.symmetry == "general":
        column, row = np.divmod(np.arange(header.rows**2), header.rows)
        return row, column
    column, row = np.triu_indices(header.rows, k=1 if header.symmetry == "skew-symmetric" else 0)
    return row, column


MATRIX_MARKET = Format(
    "matrix-market",
    kind="profile",
    evidence="real",
    about="profile: Matrix Market file of bytes, or with --parts a solver's matrix",
    recognise=_recognise_matrix_market,
    parse=_parse_matrix_market,
)
