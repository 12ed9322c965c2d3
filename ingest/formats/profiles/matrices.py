"""Rows of numbers, and profiles from matrices: of bytes, or patterns that METIS cuts into parts."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ingest.formats.fabrics.draft import MAX_VERTICES, UNIT_RATE, attached_to_one
from ingest.formats.profiles.shared import MAX_RANKS, place, profile_of, self_edge_warnings, stem
from ingest.generate.matrices import pattern_traffic
from ingest.options import Options
from ingest.parsed import Parsed, counted
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Fabric, Floats, Links

WEIGHT = "weight"
"""Name of the number of an edge in formats that have a single one."""
MAX_DENSE = 1 << 14
"""Largest number of ranks of a dense matrix: 2 GiB as float64."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.A)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Entries of a square matrix.

    Attributes
    ----------
    row, column : int[e]
        Indices from 0. A row is what a rank sends unless `Options.transposed` is set.
    size : float[e]
        Bytes; zero means no message.
    ranks : int
        Number of rows and columns.
    messages : int[e] or None
        Number of messages, if known.
    names : tuple of str
        Names of the rows as vertices of a fabric; empty: their numbers from `first`.
    first : int
        Number of the first row in the file, 0 or 1.
    weighted : bool
        False if the file has no sizes, but edges alone.
    """

    row: ArrayLike
    column: ArrayLike
    size: ArrayLike
    ranks: int
    messages: ArrayLike | None = None
    names: tuple[str, ...] = ()
    first: int = 0
    weighted: bool = True


def matrix_profile(
    files: Sequence[SourceFile],
    options: Options,
    format: str,
    entries: Entries,
    warnings: Sequence[str] = (),
) -> Parsed:
    """Return the profile of a matrix of bytes, or with `Options.parts` of products with the matrix.

    With `Options.graph` the matrix may be that of a fabric: an entry is a cable.

    Raises
    ------
    InputError
        A negative entry, more than `MAX_RANKS` rows, more parts than rows, weights that the file lacks.
    """
    if options.attribute is not None and not (options.attribute == WEIGHT and entries.weighted):
        has = f"a number for each edge, named {WEIGHT!r}" if entries.weighted else "no weights"
        raise InputError(f"edges have no {options.attribute!r}: the file has {has}", path=place(files))
    if options.graph == "fabric":
        return _fabric(files, options, entries)
    if options.parts is not None:
        return _product(files, options, format, entries, warnings)
    row, column, messages = np.asarray(entries.row), np.asarray(entries.column), entries.messages
    source, target = (column, row) if options.transposed else (row, column)
    values = np.asarray(entries.size, np.float64)
    if entries.ranks > MAX_RANKS:
        raise InputError(f"has {entries.ranks} ranks, more than {MAX_RANKS}", path=place(files))
    if len(values) and not (bool(np.isfinite(values).all()) and values.min() >= 0):
        reason = "an entry is negative or not finite: it cannot be bytes; is this the matrix of a solver?"
        raise InputError(f"{reason} Use --parts P to cut it into P parts", path=place(files))
    kept = values > 0
    if messages is not None:
        messages = np.asarray(messages)
        kept |= messages > 0
        messages = messages[kept]
    edges = source[kept], target[kept], values[kept], messages
    profile = profile_of(edges, entries.ranks, place(files), format, options)
    return Parsed(profiles=(profile,), warnings=(*warnings, *self_edge_warnings(profile)))


def _fabric(files: Sequence[SourceFile], options: Options, entries: Entries) -> Parsed:
    """Return the fabric with a cable for each entry; a file that lists each cable once is mirrored."""
    row, column = np.asarray(entries.row, np.int64), np.asarray(entries.column, np.int64)
    size = np.asarray(entries.size, np.float64)
    kept = row != column
    notes = counted((int((~kept).sum()), "edge leads", "edges lead", "from a vertex to itself: ignored"))
    row, column, size, n = row[kept], column[kept], size[kept], entries.ranks
    if n > MAX_VERTICES:
        raise InputError(f"has {n} vertices, more than {MAX_VERTICES}", path=place(files))
    if not len(row):
        raise InputError("no edges between two vertices found", path=place(files))
    if not np.isin(row * n + column, column * n + row).any():
        row, column, size = np.r_[row, column], np.r_[column, row], np.r_[size, size]
    if options.attribute is None:
        size = np.full(len(row), options.rate or UNIT_RATE)
        if entries.weighted:
            notes.append(f"weights are ignored: capacity={WEIGHT!r} takes them as bytes/s")
    attached = attached_to_one(row, column, n)
    if bool(attached.any()):
        notes.append("vertices with one neighbour are taken as hosts, the others as switches")
    slots = attached if bool(attached.any()) else 1
    names = entries.names or tuple(map(str, range(entries.first, entries.first + n)))
    links = Links.of(row, column, size)
    bare = Fabric.from_arcs(names, [], [], [], slots=slots)
    return Parsed(fabric=replace(bare, links=links), warnings=tuple(notes))


def _product(
    files: Sequence[SourceFile], options: Options, format: str, entries: Entries, warnings: Sequence[str]
) -> Parsed:
    """Return the profile of products with the matrix, cut into parts."""
    parts, rows, name = options.parts or 1, entries.ranks, stem(place(files))
    if parts > rows:
        raise InputError(f"cannot be cut into {parts} parts: it has {rows} rows", path=place(files))
    row, column = np.asarray(entries.row), np.asarray(entries.column)
    profile = pattern_traffic(row, column, rows, parts, name=options.name or f"{name}-{parts}")
    about = (
        f"entries are not read as bytes: METIS cut the {rows} rows into {parts} parts, and ranks send what a "
        "product with a vector of doubles needs"
    )
    cut = replace(profile, source=f"{format}, cut into parts")
    return Parsed(profiles=(cut,), warnings=(*warnings, about))


def read_rows(
    text: str, columns: int, path: str, *, first: int = 1, delimiter: str | None = None, comments: str = "#"
) -> Floats:
    """Return the numbers of a text with one row per line (float64[rows, columns]).

    They are read at numpy's speed; only to find an error they are read row by row again.

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
        Start of comments, which are ignored like empty lines.

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
    """Raise `InputError` for the first row with a fault."""
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
