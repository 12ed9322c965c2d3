"""Every message of a run with its time: a CSV file with the columns ``t_us,src,dst,bytes``, perhaps ``tag``.

The time may be ``t_s``, ``t_ms``, ``t_us`` or ``t_ns``, since any moment; columns may come in any order. Rows
stand in the order in which messages were sent, those of one time too. What a rank sends to itself is dropped
and counted. The highest rank named is the last one, unless a comment ``# ranks: 64`` before the names tells
of silent ones. A trace gives its profile as well: bytes and messages by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.formats.profiles.columns import (
    LARGEST,
    RANK,
    TIMES,
    Column,
    Table,
    head_names,
    read_columns,
    refused,
    split,
    told_ranks,
    unread,
)
from ingest.formats.profiles.shared import self_edge_warnings, stem
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Bools, Trace

FORMAT = "trace-csv"
COLUMNS = ("src", "dst", "bytes", "tag")
_NEEDED = COLUMNS[:3]
_TAG = Column(whole=True, signed=True, largest=(1 << 31) - 1, larger="is no number of 32 bits")
_TIME = Column(signed=True, largest=LARGEST, larger="is more than 2^53")
_NUMBERS = {"src": RANK, "dst": RANK, "bytes": Column(whole=True), "tag": _TAG}


def recognise(head: str, path: str) -> bool:
    """Whether the first line that is no comment names the columns, one of times among them."""
    names = head_names(head)
    return set(_NEEDED) <= names and not names.isdisjoint(TIMES)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The trace of one file, and its profile.

    Raises
    ------
    InputError
        With the line: a missing column, a row with another number of cells, a cell that is no number,
        not finite, negative, or no rank; a rank above those that the file says it has; a time that goes
        backwards. No rows at all.
    """
    (file,) = files
    table = split(file, _NEEDED)
    time, told = _time(table), told_ranks(file, table.header)
    if not table.body.strip():
        raise InputError("holds no messages, only the names of columns", path=file.path, line=table.header)
    rows = read_columns(table, {**_NUMBERS, time: _TIME})
    ranks = told or int(max(rows["src"].max(), rows["dst"].max())) + 1
    _check(table, rows, time, ranks)
    own = rows["src"] == rows["dst"]
    trace = _trace(rows[~own], time, ranks)
    profile = trace.profile(
        name=options.name or stem(file.path),
        application=stem(file.path),
        self_edges=int(own.sum()),
        self_bytes=float(rows["bytes"][own].sum()),
    )
    warnings = (*unread(table.names, (*COLUMNS, time)), *self_edge_warnings(profile))
    return Parsed(profile=replace(profile, source=FORMAT), trace=trace, warnings=warnings)


def _time(table: Table) -> str:
    """The column of times."""
    found = [name for name in table.names if name in TIMES]
    if len(found) == 1:
        return found[0]
    reason = f"two columns of times: {' and '.join(found)}" if found else "there is no column of times"
    known = "" if found else f": {', '.join(TIMES)}"
    raise InputError(reason + known, path=table.path, line=table.header)


def _check(table: Table, rows: NDArray[np.void], time: str, ranks: int) -> None:
    """Raise for the first row whose rank there is not, or whose time is before that of the row above."""
    for name in ("src", "dst"):
        _refuse(
            table, rows[name] >= ranks, f"{name} is no rank below {ranks}, the number that the file tells"
        )
    backwards = np.diff(rows[time], prepend=rows[time][:1]) < 0.0
    if bool(backwards.any()):
        row = int(np.argmax(backwards))
        before, after = rows[time][row - 1], rows[time][row]
        _refuse(table, backwards, f"{time} goes backwards, from {before:.17g} to {after:.17g}")


def _refuse(table: Table, bad: Bools, reason: str) -> None:
    if bool(bad.any()):
        raise refused(table, int(np.argmax(bad)), reason)


def _trace(rows: NDArray[np.void], time: str, ranks: int) -> Trace:
    """The rows as a trace that begins with its first message."""
    return Trace(
        ranks=ranks,
        at=(rows[time] - rows[time][:1]) * TIMES[time],
        sender=rows["src"],
        receiver=rows["dst"],
        bytes=rows["bytes"],
        tag=rows["tag"] if "tag" in (rows.dtype.names or ()) else np.zeros(len(rows), np.int32),
    )
