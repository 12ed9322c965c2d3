"""Profiles and traces as lists of edges or messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.formats.profiles import shared
from ingest.formats.profiles.matrices import DENSE_CSV, METIS_GRAPH, WEIGHT, Entries, matrix_profile
from ingest.formats.profiles.shared import (
    BYTES,
    LARGEST,
    MAX_RANKS,
    RANK,
    Column,
    Table,
    profile_of,
    self_edge_warnings,
    silent_rank_warnings,
    stem,
)
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError
from registry.model import Bools, Longs, Profile, Trace

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
"""A graph as a plain list of edges: two vertices on each line, and perhaps a number, without column names.

    # or % begins a comment
    0 1
    0 1 7.5                 the number is the edge's weight
    0 1 {'weight': 7.5}     as networkx writes it; `Options.attribute` chooses among several

Blanks, tabs or commas separate. As a profile a line is what the first vertex sends to the second, in bytes,
and whole numbers are ranks; as a fabric (`Options.graph`) it is a cable.
"""


COLUMNS = ("src", "dst", "bytes", "messages", "kind")
NOT_TRAFFIC = "coll_api"
"""Kind of rows that are not traffic."""
_NEEDED = COLUMNS[:3]
_NUMBERS = {"src": RANK, "dst": RANK, "bytes": BYTES, "messages": Column(whole=True)}
_TEXTS = {"kind": "U12"}


def _recognise_edge_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments names the columns, but no column of times."""
    names = shared.head_names(head)
    return set(_NEEDED) <= names and names.isdisjoint(shared.TIMES)


def _parse_edge_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one file; a missing column, an invalid cell, and no rows, are errors."""
    (file,) = files
    table = shared.split(file, _NEEDED)
    names, declared = table.names, shared.declared_ranks(file, table.header)
    if not table.body.strip():
        if not declared:
            raise InputError("no edges found after the column names", path=file.path, line=table.header)
        silent = profile_of(([], [], [], None), declared, file.path, EDGE_CSV.name, options)
        return Parsed(profiles=(silent,), warnings=("no rank sends anything",))
    rows = shared.read_columns(table, _NUMBERS, _TEXTS)
    ranks = int(max(rows["src"].max(), rows["dst"].max())) + 1
    if declared and declared < ranks:
        raise InputError(f"contains rank {ranks - 1}, but declares {declared} ranks", path=file.path)
    traffic = rows["kind"] != NOT_TRAFFIC if "kind" in names else np.ones(len(rows), np.bool_)
    kept = rows[traffic]
    messages = kept["messages"] if "messages" in names else None
    edges = kept["src"], kept["dst"], kept["bytes"], messages
    profile = profile_of(edges, declared or ranks, file.path, EDGE_CSV.name, options)
    warnings = (
        *_warnings(names, traffic),
        *_repeats(rows, names),
        *self_edge_warnings(profile),
        *silent_rank_warnings(profile, declared),
    )
    return Parsed(profiles=(profile,), warnings=warnings)


def csv_text(profile: Profile) -> str:
    """Return the profile as text of this format, with one row per ordered pair of ranks with traffic.

    A comment gives the number of ranks, since the highest ranks may have no traffic.
    """
    whole = bool((profile.bytes == np.floor(profile.bytes)).all()) and bool((profile.bytes <= LARGEST).all())
    sizes = profile.bytes.astype(np.int64).tolist() if whole else map(_shown, profile.bytes.tolist())
    rows = zip(
        profile.sender.tolist(), profile.partner.tolist(), sizes, profile.messages.tolist(), strict=True
    )
    lines = [f"{shared.RANKS} {profile.ranks}", "src,dst,bytes,messages"]
    lines += [f"{source},{target},{size},{count}" for source, target, size, count in rows]
    return "\n".join(lines) + "\n"


def _repeats(rows: NDArray[np.void], names: Sequence[str]) -> Iterator[str]:
    """Yield a warning if every row is repeated, as when a file was appended to itself."""
    if len(rows) < 2 or len(rows) % 2:
        return
    half = len(rows) // 2
    pairs = [name for name in names if name in COLUMNS]
    one_after_other = all(bool((rows[name][::2] == rows[name][1::2]).all()) for name in pairs)
    appended = all(bool((rows[name][:half] == rows[name][half:]).all()) for name in pairs)
    if one_after_other or appended:
        yield "every row is repeated: the file seems to contain one recording twice; --divide 2 halves it"


def _shown(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _warnings(names: Sequence[str], traffic: Bools) -> Iterator[str]:
    left_out = int((~traffic).sum())
    if left_out:
        yield f"{left_out} rows of kind {NOT_TRAFFIC} are ignored: arguments of calls, not traffic"
    yield from shared.unread(names, COLUMNS)


EDGE_CSV = Format(
    "edge-csv",
    kind="profile",
    evidence="own",
    about="profile: CSV with columns src,dst,bytes and optionally messages,kind",
    recognise=_recognise_edge_csv,
    parse=_parse_edge_csv,
)
"""A communication profile as an edge list: a CSV file with the columns ``src,dst,bytes``.

Optional columns are ``messages`` and ``kind``; columns may be in any order. Rows of one pair are summed. Rows
of kind ``coll_api`` describe the arguments of collective calls, not traffic, and are ignored. The highest
rank in the file is the last one, unless a comment ``# ranks: 64`` before the names gives the number. A file
with the time of each message is a trace (`ingest.formats.profiles.edges`).
"""


TRACE_COLUMNS = ("src", "dst", "bytes", "tag")
_TRACE_NEEDED = TRACE_COLUMNS[:3]
_TAG = Column(whole=True, signed=True, largest=(1 << 31) - 1, larger="is not a number of 32 bits")
_TIME = Column(signed=True, largest=shared.LARGEST, larger="is more than 2^53")
_TRACE_NUMBERS = {"src": RANK, "dst": RANK, "bytes": Column(whole=True), "tag": _TAG}


def _recognise_trace_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments names the columns, including one of times."""
    names = shared.head_names(head)
    return set(_TRACE_NEEDED) <= names and not names.isdisjoint(shared.TIMES)


def _parse_trace_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the trace of one file, and its profile.

    A missing column, an invalid cell, a time that goes backwards, and no rows, are errors.
    """
    (file,) = files
    table = shared.split(file, _TRACE_NEEDED)
    time, declared = _time(table), shared.declared_ranks(file, table.header)
    if not table.body.strip():
        raise InputError("no messages found after the column names", path=file.path, line=table.header)
    rows = shared.read_columns(table, {**_TRACE_NUMBERS, time: _TIME})
    ranks = declared or int(max(rows["src"].max(), rows["dst"].max())) + 1
    _check(table, rows, time, ranks)
    own = rows["src"] == rows["dst"]
    trace = _trace(rows[~own], time, ranks)
    profile = trace.profile(
        name=options.name or stem(file.path),
        application=stem(file.path),
        self_edges=int(own.sum()),
        self_bytes=float(rows["bytes"][own].sum()),
    )
    warnings = (
        *shared.unread(table.names, (*TRACE_COLUMNS, time)),
        *self_edge_warnings(profile),
        *silent_rank_warnings(profile, declared),
    )
    return Parsed(profiles=(replace(profile, source=TRACE_CSV.name),), traces=(trace,), warnings=warnings)


def _time(table: Table) -> str:
    """Return the column of times."""
    found = [name for name in table.names if name in shared.TIMES]
    if len(found) == 1:
        return found[0]
    reason = f"two columns of times: {' and '.join(found)}" if found else "a column of times is missing"
    known = "" if found else f": {', '.join(shared.TIMES)}"
    raise InputError(reason + known, path=table.path, line=table.header)


def _check(table: Table, rows: NDArray[np.void], time: str, ranks: int) -> None:
    """Raise `InputError` for the first row with an invalid rank or a time before that of the last row."""
    for name in ("src", "dst"):
        _refuse(table, rows[name] >= ranks, f"{name} is not a rank below {ranks}, the declared number")
    backwards = np.diff(rows[time], prepend=rows[time][:1]) < 0.0
    if bool(backwards.any()):
        row = int(np.argmax(backwards))
        before, after = rows[time][row - 1], rows[time][row]
        _refuse(table, backwards, f"{time} goes backwards, from {before:.17g} to {after:.17g}")


def _refuse(table: Table, bad: Bools, reason: str) -> None:
    if bool(bad.any()):
        raise shared.refused(table, int(np.argmax(bad)), reason)


def _trace(rows: NDArray[np.void], time: str, ranks: int) -> Trace:
    """Return the rows as a trace that begins with its first message."""
    return Trace(
        ranks=ranks,
        at=(rows[time] - rows[time][:1]) * shared.TIMES[time],
        sender=rows["src"],
        receiver=rows["dst"],
        bytes=rows["bytes"],
        tag=rows["tag"] if "tag" in (rows.dtype.names or ()) else np.zeros(len(rows), np.int32),
    )


TRACE_CSV = Format(
    "trace-csv",
    kind="profile",
    evidence="own",
    about="trace and its profile: CSV with columns t_us,src,dst,bytes, optionally tag",
    recognise=_recognise_trace_csv,
    parse=_parse_trace_csv,
)
"""All messages of a run with their times: a CSV file with the columns ``t_us,src,dst,bytes``, opt. ``tag``.

The time may be ``t_s``, ``t_ms``, ``t_us`` or ``t_ns``, from any start; columns may be in any order. Rows are
in the order of sending, including those of one time. Messages of a rank to itself are dropped and counted.
The highest rank in the file is the last one, unless a comment ``# ranks: 64`` before the names gives the
number. The profile of a trace has bytes and messages by pair.
"""
