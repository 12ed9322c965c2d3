"""A communication profile as a graph in the format of METIS and Chaco (METIS manual 5.1, section 4.1.1).

    % comments
    vertices edges [fmt [constraints]]
    [size] [weight ...] neighbour [weight] neighbour [weight] ...        line k describes vertex k, from 1

``fmt`` has three digits: vertex sizes, vertex weights, edge weights. Every edge is listed at both of its ends
with one weight. It has no direction: half of the weight is sent each way, so that the sum is the weight. With
`Options.parts` the graph is the pattern of a matrix, and its weights are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ingest.formats.profiles.matrices import Entries, matrix_profile
from ingest.formats.profiles.shared import MAX_RANKS
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Longs

_HEADER = re.compile(r"\s*(\d{1,15})\s+(\d{1,15})(?:\s+([01]{1,3})(?:\s+(\d{1,2}))?)?\s*", re.A)
_NUMBERS = re.compile(r"[\d\s]*", re.A)


class _Header(NamedTuple):
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
    header = _header(lines, file.path)
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


def _header_of(found: re.Match[str], line: int) -> _Header:
    flags = (found[3] or "0").zfill(3)
    weights = int(found[4] or 1) if flags[1] == "1" else 0
    return _Header(int(found[1]), int(found[2]), int(flags[0]) + weights, flags[2] == "1", line)


def _is_row(line: str, header: _Header) -> bool:
    """Return True if a line can be that of a vertex, to exclude other formats with rows of numbers."""
    if not _NUMBERS.fullmatch(line):
        return False
    numbers = line.split()[header.skipped :]
    neighbours = numbers[::2] if header.weighted else numbers
    whole = not header.weighted or len(numbers) % 2 == 0
    return whole and all(len(text) < 16 and 1 <= int(text) <= header.vertices for text in neighbours)


def _header(lines: Sequence[str], path: str) -> _Header:
    for number, line in enumerate(lines, start=1):
        if line.startswith("%"):
            continue
        found = _HEADER.fullmatch(line.rstrip("\r"))
        if not found or not 1 <= int(found[1]) <= MAX_RANKS:
            break
        return _header_of(found, number)
    raise InputError("expected the header of a METIS graph", path=path, line=number, text=line)


def _rows(lines: Sequence[str], header: _Header, path: str) -> Iterator[tuple[int, str]]:
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


def _edges(lines: Sequence[str], header: _Header, path: str) -> tuple[Longs, Longs, Longs]:
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


def _check_both_ends(row: Longs, column: Longs, weight: Longs, header: _Header, file: SourceFile) -> None:
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
