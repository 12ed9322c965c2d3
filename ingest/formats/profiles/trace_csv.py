"""All messages of a run with their times: a CSV file with the columns ``t_us,src,dst,bytes``, opt. ``tag``.

The time may be ``t_s``, ``t_ms``, ``t_us`` or ``t_ns``, from any start; columns may be in any order. Rows are
in the order of sending, including those of one time. Messages of a rank to itself are dropped and counted.
The highest rank in the file is the last one, unless a comment ``# ranks: 64`` before the names gives the
number. The profile of a trace has bytes and messages by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.formats.profiles import columns
from ingest.formats.profiles.columns import RANK, Column, Table
from ingest.formats.profiles.shared import self_edge_warnings, silent_rank_warnings, stem
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Bools, Trace

COLUMNS = ("src", "dst", "bytes", "tag")
_NEEDED = COLUMNS[:3]
_TAG = Column(whole=True, signed=True, largest=(1 << 31) - 1, larger="is not a number of 32 bits")
_TIME = Column(signed=True, largest=columns.LARGEST, larger="is more than 2^53")
_NUMBERS = {"src": RANK, "dst": RANK, "bytes": Column(whole=True), "tag": _TAG}


def _recognise_trace_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments names the columns, including one of times."""
    names = columns.head_names(head)
    return set(_NEEDED) <= names and not names.isdisjoint(columns.TIMES)


def _parse_trace_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the trace of one file, and its profile.

    A missing column, an invalid cell, a time that goes backwards, and no rows, are errors.
    """
    (file,) = files
    table = columns.split(file, _NEEDED)
    time, declared = _time(table), columns.declared_ranks(file, table.header)
    if not table.body.strip():
        raise InputError("no messages found after the column names", path=file.path, line=table.header)
    rows = columns.read_columns(table, {**_NUMBERS, time: _TIME})
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
        *columns.unread(table.names, (*COLUMNS, time)),
        *self_edge_warnings(profile),
        *silent_rank_warnings(profile, declared),
    )
    return Parsed(profiles=(replace(profile, source=TRACE_CSV.name),), traces=(trace,), warnings=warnings)


def _time(table: Table) -> str:
    """Return the column of times."""
    found = [name for name in table.names if name in columns.TIMES]
    if len(found) == 1:
        return found[0]
    reason = f"two columns of times: {' and '.join(found)}" if found else "a column of times is missing"
    known = "" if found else f": {', '.join(columns.TIMES)}"
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
        raise columns.refused(table, int(np.argmax(bad)), reason)


def _trace(rows: NDArray[np.void], time: str, ranks: int) -> Trace:
    """Return the rows as a trace that begins with its first message."""
    return Trace(
        ranks=ranks,
        at=(rows[time] - rows[time][:1]) * columns.TIMES[time],
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
