"""Intended wiring: the NDT file (network description table) with the planned cables of a machine.

A CSV file with one line per cable::

    #StartDevice,StartPort,EndDevice,EndPort,LinkType
    leaf08,Port 1,node0057,mlx5_0,Data
    leaf08,Port 9,spine01,Port 8,Data

Devices and ports are names of the plan; comparing it with a fabric matches them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import IntendedWiring, as_utc

COLUMNS = ("startdevice", "startport", "enddevice", "endport", "linktype")
_NEEDED = COLUMNS[:4]
_End = tuple[str, str]


def recognise(head: str, path: str) -> bool:
    """Return True if the first line names the columns."""
    first = next((line for line in head.splitlines() if line.strip()), "")
    return set(_NEEDED) <= set(_names(first))


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the intended wiring of one file, valid since the caller's time (default: the file's).

    Raises
    ------
    InputError
        A missing column, a row with a wrong number of cells, an empty cell, a cable from a port to itself, a
        port with two cables, or no cables.
    """
    (file,) = files
    names: list[str] = []
    rows: list[tuple[_End, _End, str]] = []
    taken: dict[_End, int] = {}
    repeated = 0
    for number, line in enumerate(file.lines(), 1):
        if not line.strip() or (names and line.startswith("#")):
            continue
        cells = _cells(line, file.path, number)
        if not names:
            names = _header(line, file.path, number)
            continue
        near, far, kind = _row(cells, names, file.path, number, line)
        if near in taken and taken.get(near) == taken.get(far):
            repeated += 1
            continue
        for end in (near, far):
            if end in taken:
                reason = f"{' '.join(end)} has another cable in line {taken[end]}"
                raise InputError(reason, path=file.path, line=number, text=line)
            taken[end] = number
        rows.append((near, far, kind))
    if not rows:
        raise InputError("no cables found", path=file.path)
    warnings = (f"{repeated} cable(s) are listed twice",) if repeated else ()
    return Parsed(intended=_wiring(rows, file, options), warnings=warnings)


def _wiring(rows: Sequence[tuple[_End, _End, str]], file: SourceFile, options: Options) -> IntendedWiring:
    since = as_utc(options.observed_at) if options.observed_at is not None else file.modified_at
    return IntendedWiring(
        source=tuple(near[0] for near, _, _ in rows),
        source_port=tuple(near[1] for near, _, _ in rows),
        target=tuple(far[0] for _, far, _ in rows),
        target_port=tuple(far[1] for _, far, _ in rows),
        kind=tuple(kind for _, _, kind in rows),
        declared_at=since,
    )


def _names(line: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in line.lstrip("# ").split(",")]


def _header(line: str, path: str, number: int) -> list[str]:
    names = _names(line)
    missing = [name for name in _NEEDED if name not in names]
    if missing or len(set(names)) != len(names):
        reason = f"column {missing[0]} is missing" if missing else "a column is repeated"
        raise InputError(reason, path=path, line=number, text=line)
    return names


def _cells(line: str, path: str, number: int) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True))]
    except (csv.Error, StopIteration) as error:
        raise InputError(f"unreadable row: {error}", path=path, line=number, text=line) from error


def _row(cells: list[str], names: list[str], path: str, number: int, line: str) -> tuple[_End, _End, str]:
    if len(cells) != len(names):
        reason = f"{len(cells)} cells, but there are {len(names)} columns"
        raise InputError(reason, path=path, line=number, text=line)
    row = dict(zip(names, cells, strict=True))
    near, far = (row["startdevice"], row["startport"]), (row["enddevice"], row["endport"])
    if not all((*near, *far)):
        raise InputError("a device or port is empty", path=path, line=number, text=line)
    if near == far:
        raise InputError("the cable leads back to its own port", path=path, line=number, text=line)
    return near, far, row.get("linktype", "")
