"""A graph as a plain list of edges: two vertices on each line, and perhaps a number, without column names.

    # or % begins a comment
    0 1
    0 1 7.5                 the number is the edge's weight
    0 1 {'weight': 7.5}     as networkx writes it; `Options.attribute` chooses among several

Blanks, tabs or commas separate. As a profile a line is what the first vertex sends to the second, in bytes,
and whole numbers are ranks; as a fabric (`Options.graph`) it is a cable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ingest.formats.profiles.dense_csv import DENSE_CSV
from ingest.formats.profiles.matrices import WEIGHT, Entries, matrix_profile
from ingest.formats.profiles.metis_graph import METIS_GRAPH
from ingest.formats.profiles.shared import MAX_RANKS
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError
from registry.model import Longs

_WHOLE = 60_000
"""If the head is shorter than this, in characters, it is the whole file."""
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_DATA = rf"\{{[^{{}}]*\}}|{_NUMBER}"
_NUMBERED = re.compile(rf"\s*\d{{1,18}}(?:\s+|\s*,\s*)\d{{1,18}}(?:(?:\s+|\s*,\s*)({_DATA}))?\s*", re.A)
_NAMED = re.compile(rf"\s*([^\s,]+)(?:\s+|\s*,\s*)([^\s,]+)(?:(?:\s+|\s*,\s*)({_DATA}))?\s*", re.A)
_WHOLE_NUMBER = re.compile(r"0|[1-9]\d{0,17}", re.A)
_ITEM = re.compile(rf"['\"](\w{{1,80}})['\"]\s*:\s*({_NUMBER})", re.A)


class _Edge(NamedTuple):
    source: str
    target: str
    size: float | None
    place: Place


def _recognise_edge_list(head: str, path: str) -> bool:
    """Return True if all lines are edges between whole numbers; names alone might be something else."""
    lines = [line for line in head.split("\n") if line.strip() and line[0] not in "#%"]
    if len(head) >= _WHOLE:
        lines = lines[:-1]  # possibly truncated
    if not lines or head.startswith("%%") or len({line.count(",") for line in lines if "{" not in line}) > 1:
        return False
    found = [_NUMBERED.fullmatch(line.rstrip("\r")) for line in lines]
    if None in found or len({one[1] is None for one in found if one}) > 1:
        return False
    return not METIS_GRAPH.recognise(head, path) and not DENSE_CSV.recognise(head, path)


def _parse_edge_list(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile or fabric of one file; a line that is no edge, and one without bytes, are errors."""
    (file,) = files
    edges = list(_edges(file, options.attribute or WEIGHT))
    if not edges:
        raise InputError("no edges found", path=file.path)
    if options.attribute is not None:
        default, reason = None, f"an edge without {options.attribute!r}"
    else:
        default = 1.0 if options.graph == "fabric" else options.weight
        reason = "an edge without bytes: in Python, ingest.read takes weight= or capacity= for such files"
    lacks = next((edge for edge in edges if edge.size is None), None)
    if lacks is not None and default is None:
        raise lacks.place.error(reason)
    entries, notes = _entries(edges, options, file.path)
    size = np.array([default if edge.size is None else edge.size for edge in edges], np.float64)
    entries = replace(entries, size=size, weighted=any(edge.size is not None for edge in edges))
    options = replace(options, attribute=options.attribute and WEIGHT)
    return matrix_profile(files, options, EDGE_LIST.name, entries, notes)


def _edges(file: SourceFile, attribute: str) -> Iterator[_Edge]:
    """Yield the edge of each line that is no comment."""
    for place in file.places():
        if not place.text.strip() or place.text[0] in "#%":
            continue
        found = _NAMED.fullmatch(place.text)
        if found is None:
            raise place.error("expected two vertices, and perhaps a number")
        data, size = found[3] or "", None
        if data.startswith("{"):
            text = dict(_ITEM.findall(data)).get(attribute)
            size = None if text is None else float(text)
        elif data:
            size = float(data)
        yield _Edge(found[1], found[2], size, place)


def _entries(edges: Sequence[_Edge], options: Options, path: str) -> tuple[Entries, tuple[str, ...]]:
    """Return the entries without their sizes, and a note if vertices are not the ranks 0, 1, ...

    Whole numbers of a profile are ranks, so that some may have no edge; if there is no 0, they begin at 1.
    """
    ends = [edge[:2] for edge in edges]
    if all(_WHOLE_NUMBER.fullmatch(name) for pair in ends for name in pair):
        numbers = np.array([[int(name) for name in pair] for pair in ends], np.int64)
        if options.graph != "fabric":
            return _ranks(numbers, path)
        found, index = np.unique(numbers, return_inverse=True)
        names = tuple(map(str, found.tolist()))
        notes: tuple[str, ...] = ()
    else:
        index_of = {name: at for at, name in enumerate(dict.fromkeys(name for pair in ends for name in pair))}
        names, index = tuple(index_of), np.array([index_of[name] for pair in ends for name in pair])
        notes = (f"rank 0 is {names[0]!r}, and so on in the order of the file",)
    index = index.reshape(-1, 2)
    notes = () if options.graph == "fabric" else notes
    return Entries(row=index[:, 0], column=index[:, 1], size=(), ranks=len(names), names=names), notes


def _ranks(numbers: Longs, path: str) -> tuple[Entries, tuple[str, ...]]:
    """Return the entries of whole numbers (int64[e, 2]) as ranks."""
    first, last = min(int(numbers.min()), 1), int(numbers.max())
    if last - first >= MAX_RANKS:
        raise InputError(f"vertex {last} is no rank below {MAX_RANKS}", path=path)
    notes = ("there is no vertex 0: rank 0 is vertex 1, and so on",) if first else ()
    row, column = (numbers - first).T
    return Entries(row=row, column=column, size=(), ranks=last - first + 1), notes


EDGE_LIST = Format(
    "edge-list",
    kind="profile",
    evidence="real",
    about="profile: graph as a list of edges, two numbers and bytes on each line",
    recognise=_recognise_edge_list,
    parse=_parse_edge_list,
)
