"""Intended wiring: the NDT file (network description table) with the planned cables of a machine.

A CSV file with one line per cable::

    #StartDevice,StartPort,EndDevice,EndPort,LinkType
    leaf08,Port 1,node0057,mlx5_0,Data
    leaf08,Port 9,spine01,Port 8,Data

The dialects differ in the line of names: ``#Fields:StartDevice``, more columns, columns without a name or
with a repeated one (``U height``), a column ``Speed``. Devices and ports are names of the plan; comparing it
with a fabric matches them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ingest.formats.fabrics.infiniband import LANE_BYTES, link_rate
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError
from registry.model import IntendedWiring
from registry.model.hosts import End, cable_key

_NEEDED = ("startdevice", "startport", "enddevice", "endport")
_NEEDED_SET = frozenset(_NEEDED)
_KIND, _SPEED = "linktype", "speed"
_NUMBER = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(g|m|t)?(?:bit|b|bps|bit/s|b/s|be)?(?:\s.*)?", re.IGNORECASE)
_PER_SECOND = {"m": 1e6 / 8, "g": 1e9 / 8, "t": 1e12 / 8}
_MEGABITS_FROM = 1000.0
"""A speed without a unit is in Mbit/s from this number on, below it in Gbit/s."""


def _recognise_ndt(head: str, path: str) -> bool:
    """Return True if the first line that is no comment, or a comment before it, names the columns."""
    for line in head.splitlines():
        if set(_names(line)) >= _NEEDED_SET:
            return True
        if line.strip() and not line.startswith("#"):
            return False
    return False


def _parse_ndt(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the intended wiring of one file, valid since the caller's time (default: the file's).

    A cable that is listed twice counts once. A line that is no cable (an end without a name, both ends in one
    port) is skipped with a warning; several cables in one port are kept, and the comparison with a fabric
    reports them. With `Options.strict` both are errors.
    """
    (file,) = files
    table = _Table(strict=options.strict)
    for place in file.places():
        table.read(place)
    if not table.rows:
        raise table.problems[0] if table.problems else InputError("no cables found", path=file.path)
    near, far, kinds, speeds = zip(*table.rows.values(), strict=True)
    plan = IntendedWiring(
        source=tuple(device for device, _ in near),
        source_port=tuple(port for _, port in near),
        target=tuple(device for device, _ in far),
        target_port=tuple(port for _, port in far),
        kind=kinds,
        speed=speeds,
        declared_at=options.time(file.modified_at),
    )
    return Parsed(intended=plan, warnings=tuple(table.warnings()))


@dataclass(slots=True, kw_only=True)
class _Table:
    """The lines of a file read so far."""

    strict: bool
    columns: dict[str, int] = field(default_factory=dict)
    """Index of each column by its name in lower case, the first one of each name; empty before the header."""
    width: int = 0
    """Number of columns."""
    rows: dict[frozenset[End], tuple[End, End, str, float]] = field(default_factory=dict)
    """Cables in the order of the file."""
    lines: dict[End, int] = field(default_factory=dict)
    """Line of the first cable of each port."""
    problems: list[InputError] = field(default_factory=list)
    repeated: int = 0
    speeds: list[str] = field(default_factory=list)

    def read(self, place: Place) -> None:
        """Read one line: the names of the columns, a comment or a cable."""
        if not place.text.strip(", \t"):
            return
        if "startdevice" in place.text.lower() and set(_names(place.text)) >= _NEEDED_SET:
            self._header(place)
        elif place.text.startswith("#"):
            return
        elif not self.columns:
            missing = next(name for name in _NEEDED if name not in _names(place.text))
            raise place.error(f"column {missing} is missing")
        else:
            self._row(place)

    def warnings(self) -> list[str]:
        """Return the numbers of lines that are not in the plan as they are in the file."""
        bad = next((f"line {one.line}: {one.reason}" for one in self.problems), "")
        unread = next(iter(self.speeds), "")
        return counted(
            (len(self.problems), "line is", "lines are", f"no cable: skipped, the first is {bad}"),
            (self.repeated, "cable is", "cables are", "listed twice"),
            (len(self.speeds), "speed is", "speeds are", f"not understood: ignored, such as {unread!r}"),
        )

    def _header(self, place: Place) -> None:
        names = _names(place.text)
        if any(names.count(name) > 1 for name in _NEEDED):
            raise place.error("a column is repeated")
        self.columns = {name: names.index(name) for name in names}
        self.width = len(names)

    def _row(self, place: Place) -> None:
        """Read the line of a cable."""
        cells = place.cells()
        if len(cells) <= max(self.columns[name] for name in _NEEDED) or any(cells[self.width :]):
            raise place.error(f"{len(cells)} cells, but there are {self.width} columns")
        row = {name: cells[index] for name, index in self.columns.items() if index < len(cells)}
        near, far = (row["startdevice"], row["startport"]), (row["enddevice"], row["endport"])
        if not all((*near, *far)):
            self._refuse(place.error("a device or port is empty"))
        elif (key := cable_key(near, far)) in self.rows:
            self.repeated += 1
        elif len(key) == 1:
            self._refuse(place.error("the cable leads back to its own port"))
        else:
            for end in (near, far):
                if end in self.lines and self.strict:
                    raise place.error(f"{' '.join(end)} has another cable in line {self.lines[end]}")
                self.lines.setdefault(end, place.line or 0)
            self.rows[key] = near, far, row.get(_KIND, ""), self._speed(row.get(_SPEED, ""))

    def _refuse(self, problem: InputError) -> None:
        if self.strict:
            raise problem
        self.problems.append(problem)

    def _speed(self, text: str) -> float:
        """Return the bytes/s of a cable; 0 if the plan has none, or none that is understood."""
        speed = _bytes_per_second(text)
        if text and speed is None:
            self.speeds.append(text)
        return speed or 0.0


def _names(line: str) -> list[str]:
    """Return the names of the columns in lower case, without blanks, marks and ``Fields:``."""
    try:
        cells = next(csv.reader([line]), [])
    except csv.Error:
        return []
    return [re.sub(r'[\s_"#]', "", cell).lower().removeprefix("fields:") for cell in cells]


def _bytes_per_second(text: str) -> float | None:
    """Return the bytes/s of ``200000`` (Mbit/s), ``200``, ``200G`` or ``HDR`` (4 lanes); None if unknown."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        name = text.upper().removeprefix("4X").strip()
        return link_rate(4, name) if name in LANE_BYTES else None
    value = float(number[1])
    unit = (number[2] or ("m" if value >= _MEGABITS_FROM else "g")).lower()
    return value * _PER_SECOND[unit]


NDT = Format(
    "ndt",
    kind="intended",
    evidence="public",
    about="intended wiring: NDT file, one line per cable",
    recognise=_recognise_ndt,
    parse=_parse_ndt,
)
