"""Intended wiring: the NDT file (network description table) with the planned cables of a machine.

A CSV file with one line per cable::

    #StartDevice,StartPort,EndDevice,EndPort,LinkType
    leaf08,Port 1,node0057,mlx5_0,Data
    leaf08,Port 9,spine01,Port 8,Data

Devices and ports are names of the plan; comparing it with a fabric matches them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingest.options import Options
from ingest.parsed import Parsed, counted
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError
from registry.model import IntendedWiring

COLUMNS = ("startdevice", "startport", "enddevice", "endport", "linktype")
_NEEDED = COLUMNS[:4]
_End = tuple[str, str]


def recognise(head: str, path: str) -> bool:
    """Return True if the first line names the columns."""
    first = next((line for line in head.splitlines() if line.strip()), "")
    return set(_NEEDED) <= set(_names(first))


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the intended wiring of one file, valid since the caller's time (default: the file's).

    A cable from a port to itself, a port with two cables and an empty cell are errors.
    """
    (file,) = files
    names: list[str] = []
    rows: list[tuple[_End, _End, str]] = []
    taken: dict[_End, int] = {}
    repeated = 0
    for place in file.places():
        if not place.text.strip() or (names and place.text.startswith("#")):
            continue
        cells = place.cells()
        if not names:
            names = _header(place)
            continue
        near, far, kind = _row(cells, names, place)
        if near in taken and taken.get(near) == taken.get(far):
            repeated += 1
            continue
        for end in (near, far):
            if end in taken:
                raise place.error(f"{' '.join(end)} has another cable in line {taken[end]}")
            taken[end] = place.line or 0
        rows.append((near, far, kind))
    if not rows:
        raise InputError("no cables found", path=file.path)
    warnings = counted((repeated, "cable(s) are listed twice"))
    return Parsed(intended=_wiring(rows, file, options), warnings=tuple(warnings))


def _wiring(rows: Sequence[tuple[_End, _End, str]], file: SourceFile, options: Options) -> IntendedWiring:
    return IntendedWiring(
        source=tuple(near[0] for near, _, _ in rows),
        source_port=tuple(near[1] for near, _, _ in rows),
        target=tuple(far[0] for _, far, _ in rows),
        target_port=tuple(far[1] for _, far, _ in rows),
        kind=tuple(kind for _, _, kind in rows),
        declared_at=options.time(file.modified_at),
    )


def _names(line: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in line.lstrip("# ").split(",")]


def _header(place: Place) -> list[str]:
    names = _names(place.text)
    missing = [name for name in _NEEDED if name not in names]
    if missing or len(set(names)) != len(names):
        raise place.error(f"column {missing[0]} is missing" if missing else "a column is repeated")
    return names


def _row(cells: list[str], names: list[str], place: Place) -> tuple[_End, _End, str]:
    if len(cells) != len(names):
        raise place.error(f"{len(cells)} cells, but there are {len(names)} columns")
    row = dict(zip(names, cells, strict=True))
    near, far = (row["startdevice"], row["startport"]), (row["enddevice"], row["endport"])
    if not all((*near, *far)):
        raise place.error("a device or port is empty")
    if near == far:
        raise place.error("the cable leads back to its own port")
    return near, far, row.get("linktype", "")
