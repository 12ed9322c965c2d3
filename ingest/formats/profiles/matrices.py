"""Rows of numbers, and profiles from matrices: of bytes, or patterns that METIS cuts into parts."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ingest.formats.fabrics.draft import MAX_VERTICES, UNIT_RATE, attached_to_one
from ingest.formats.profiles.shared import MAX_RANKS, place, profile_of, self_edge_warnings, stem
from ingest.generate.matrices import pattern_traffic
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Fabric, Floats, Links, Longs

WEIGHT = "weight"
"""Name of the number of an edge in formats that have a single one."""
MAX_DENSE = 1 << 14
"""Largest number of ranks of a dense matrix: 2 GiB as float64."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.A)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Entries of a square matrix."""

    row: ArrayLike
    column: ArrayLike
    """int[e]: indices from 0. A row is what a rank sends unless `Options.transposed` is set."""
    size: ArrayLike
    """float[e]: bytes; zero means no message."""
    ranks: int
    """Number of rows and columns."""
    messages: ArrayLike | None = None
    """int[e] or None: number of messages, if known."""
    names: tuple[str, ...] = ()
    """Names of the rows as vertices of a fabric; empty: their numbers from `first`."""
    first: int = 0
    """Number of the first row in the file, 0 or 1."""
    weighted: bool = True
    """False if the file has no sizes, but edges alone."""


def matrix_profile(
    files: Sequence[SourceFile],
    options: Options,
    format: str,
    entries: Entries,
    warnings: Sequence[str] = (),
) -> Parsed:
    """Return the profile of a matrix of bytes, or with `Options.parts` of products with the matrix.

    With `Options.graph` the matrix may be that of a fabric: an entry is a cable.

    Raises:
        InputError: A negative entry, more than `MAX_RANKS` rows, more parts than rows, weights that the file
            lacks.
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

    Args:
        text: Lines of numbers.
        columns: Numbers in each row.
        path: Path of the file, for errors.
        first: Line number of the text's first line.
        delimiter: Text between the numbers (default: blanks).
        comments: Start of comments, which are ignored like empty lines.

    Raises:
        InputError: A row with too few or too many numbers, or with one that is unreadable or not finite.
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
"""A communication profile as a dense matrix of bytes: rows of numbers separated by commas, without names.

Row r is what rank r sends, or with `Options.transposed` what it receives; the file itself does not show
which. Semicolons and tabs are accepted as delimiters, too.
"""


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
"""A communication profile or the matrix of a solver in the Matrix Market format of NIST.

    %%MatrixMarket matrix coordinate real symmetric
    % comments
    rows columns entries
    row column value            from 1; no value if the field is ``pattern``

``array`` lists all values, column by column. Only the lower triangle of a ``symmetric`` matrix is in the
file; it is expanded. A row is what a rank sends unless `Options.transposed` is set. With `Options.parts` the
entries are the pattern of a sparse matrix, which METIS cuts into parts (Hoefler and Snir 2011, section 5.2).
"""


_HEADER = re.compile(r"\s*(\d{1,15})\s+(\d{1,15})(?:\s+([01]{1,3})(?:\s+(\d{1,2}))?)?\s*", re.A)
_NUMBERS = re.compile(r"[\d\s]*", re.A)


class _MetisHeader(NamedTuple):
    vertices: int
    edges: int
    skipped: int
    """Number of values before the neighbours: size and weights of the vertex."""
    weighted: bool
    line: int


def _recognise_metis_graph(head: str, path: str) -> bool:
    """Return True if a header fits the following lines: their number, and their neighbours."""
    if "\0" in head or len(head) < 4:
        return False
    lines = [line for line in head.split("\n") if not line.startswith("%")]
    found = _HEADER.fullmatch(lines[0]) if lines else None
    if not found or not 1 <= int(found[1]) <= MAX_RANKS:
        return False
    header = _header_of(found, 1)
    body = lines[1:-1] if len(head) >= 60_000 else lines[1:]
    while body and len(body) > header.vertices and not body[-1].strip():
        body.pop()
    if len(body) > header.vertices or (len(head) < 60_000 and len(body) < header.vertices):
        return False
    return bool(header.edges) and all(_is_row(line, header) for line in body[:100])


def _parse_metis_graph(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one file.

    A vertex next to itself, an edge listed at one end only or with two weights, and another number of
    vertices or edges than in the header, are errors.
    """
    (file,) = files
    lines = file.lines()
    header = _metis_header(lines, file.path)
    row, column, weight = _edges(lines, header, file.path)
    _check_both_ends(row, column, weight, header, file)
    each = 2.0 if options.weight is None else options.weight
    given = header.weighted or options.parts or options.graph or options.weight
    warnings = () if given else (f"the graph has no weights: each edge counts {each:g} bytes",)
    size = weight * (1.0 if header.weighted else each)
    if options.graph != "fabric":
        size = size / 2
    entries = Entries(
        row=row, column=column, size=size, ranks=header.vertices, first=1, weighted=header.weighted
    )
    return matrix_profile(files, options, METIS_GRAPH.name, entries, warnings)


def _header_of(found: re.Match[str], line: int) -> _MetisHeader:
    flags = (found[3] or "0").zfill(3)
    weights = int(found[4] or 1) if flags[1] == "1" else 0
    return _MetisHeader(int(found[1]), int(found[2]), int(flags[0]) + weights, flags[2] == "1", line)


def _is_row(line: str, header: _MetisHeader) -> bool:
    """Return True if a line can be that of a vertex, to exclude other formats with rows of numbers."""
    if not _NUMBERS.fullmatch(line):
        return False
    numbers = line.split()[header.skipped :]
    neighbours = numbers[::2] if header.weighted else numbers
    whole = not header.weighted or len(numbers) % 2 == 0
    return whole and all(len(text) < 16 and 1 <= int(text) <= header.vertices for text in neighbours)


def _metis_header(lines: Sequence[str], path: str) -> _MetisHeader:
    for number, line in enumerate(lines, start=1):
        if line.startswith("%"):
            continue
        found = _HEADER.fullmatch(line.rstrip("\r"))
        if not found or not 1 <= int(found[1]) <= MAX_RANKS:
            break
        return _header_of(found, number)
    raise InputError("expected the header of a METIS graph", path=path, line=number, text=line)


def _rows(lines: Sequence[str], header: _MetisHeader, path: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each vertex with its number; empty lines at the end are skipped."""
    count = 0
    for number, line in enumerate(lines[header.line :], start=header.line + 1):
        if line.startswith("%"):
            continue
        if count < header.vertices:
            yield number, line
        elif line.strip():
            reason = f"more lines than the {header.vertices} vertices of the header"
            raise InputError(reason, path=path, line=number, text=line)
        count += 1
    if count < header.vertices:
        reason = f"{count} lines, but the header declares {header.vertices} vertices: is it truncated?"
        raise InputError(reason, path=path, line=len(lines))


def _edges(lines: Sequence[str], header: _MetisHeader, path: str) -> tuple[Longs, Longs, Longs]:
    """Return the neighbours and weights of all vertices."""
    rows, columns, weights = [], [], []
    for vertex, (number, line) in enumerate(_rows(lines, header, path)):
        if not _NUMBERS.fullmatch(line):
            raise InputError("expected a row of whole numbers", path=path, line=number, text=line)
        numbers = _whole(line, number, path)
        listed = numbers[header.skipped :]
        neighbours, weight = (listed[::2], listed[1::2]) if header.weighted else (listed, listed * 0 + 1)
        fault = ""
        if len(numbers) < header.skipped or len(neighbours) != len(weight):
            fault = "a weight is missing"
        elif len(neighbours) and not 1 <= neighbours.min() <= neighbours.max() <= header.vertices:
            fault = "a neighbour that does not exist"
        elif bool((neighbours == vertex + 1).any()):
            fault = "a vertex next to itself, which the format does not allow"
        if fault:
            raise InputError(fault, path=path, line=number, text=line)
        rows.append(np.full(len(neighbours), vertex))
        columns.append(neighbours - 1)
        weights.append(weight)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)


def _whole(line: str, number: int, path: str) -> Longs:
    try:
        return np.array(line.split(), np.int64)
    except (OverflowError, ValueError) as error:
        raise InputError("a number is too large", path=path, line=number, text=line) from error


def _check_both_ends(
    row: Longs, column: Longs, weight: Longs, header: _MetisHeader, file: SourceFile
) -> None:
    here = np.lexsort((weight, column, row))
    there = np.lexsort((weight, row, column))
    same = (row[here] == column[there]) & (column[here] == row[there]) & (weight[here] == weight[there])
    if not bool(same.all()):
        at = int(here[np.flatnonzero(~same)[0]])
        pair = f"{row[at] + 1} and {column[at] + 1}"
        reason = f"the edge between {pair} is listed at one end only, or with two weights"
        raise InputError(reason, path=file.path)
    if len(row) != 2 * header.edges:
        counts = f"contains {len(row)} ends of edges, but the header declares {header.edges} edges"
        raise InputError(counts, path=file.path, line=header.line)


METIS_GRAPH = Format(
    "metis-graph",
    kind="profile",
    evidence="real",
    about="profile: graph in the format of METIS and Chaco",
    recognise=_recognise_metis_graph,
    parse=_parse_metis_graph,
)
"""A communication profile as a graph in the format of METIS and Chaco (METIS manual 5.1, section 4.1.1).

    % comments
    vertices edges [fmt [constraints]]
    [size] [weight ...] neighbour [weight] neighbour [weight] ...        line k describes vertex k, from 1

``fmt`` has three digits: vertex sizes, vertex weights, edge weights. Every edge is listed at both of its ends
with one weight. It has no direction: half of the weight is sent each way, so that the sum is the weight. With
`Options.parts` the graph is the pattern of a matrix, and its weights are ignored.
"""
