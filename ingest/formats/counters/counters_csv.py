"""Port counters of any collector: a CSV file with the columns ``guid,port`` and the registry's counters.

One row per port. The other columns are named as in `registry.model.COUNTERS`; bytes are bytes, not words. An
empty cell is an unknown counter. This format is for counters that no InfiniBand tool prints, such as the
pause frames of priority flow control.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from ingest.formats.counters.fields import LARGEST, Counters, Port, read_at
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import COUNTERS, CounterSweep

_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_NUMBER = re.compile(r"\d{1,19}")
_KEYS = ("guid", "port")


def recognise(head: str, path: str) -> bool:
    """Return True if the first line except comments names a GUID, a port and counters."""
    for line in head.splitlines():
        if line.strip() and not line.startswith("#"):
            names = {name.strip().strip('"').lower() for name in line.split(",")}
            return set(_KEYS) <= names and bool(names & set(COUNTERS))
    return False


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return one sweep of the counters of all listed ports.

    Raises
    ------
    InputError
        A missing or unknown column, a row with a wrong number of cells, a cell that is no GUID, port or
        count, a port listed twice, or no rows.
    """
    (file,) = files
    names: list[str] = []
    ports: dict[Port, Counters] = {}
    for number, line in enumerate(file.lines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in _cells(line, file.path, number)]
        if not names:
            names = _names(cells, file.path, number)
            continue
        if len(cells) != len(names):
            reason = f"{len(cells)} cells under {len(names)} columns"
            raise InputError(reason, path=file.path, line=number, text=line)
        row = dict(zip(names, cells, strict=True))
        key = _key(row, file.path, number, line)
        if key in ports:
            raise InputError("the port is listed twice", path=file.path, line=number, text=line)
        ports[key] = _counters(row, file.path, number)
    if not ports:
        raise InputError("no port counters found", path=file.path)
    return Parsed(counters=(CounterSweep.of(read_at(file, options), ports),))


def _cells(line: str, path: str, number: int) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration) as error:
        raise InputError(f"a row cannot be read: {error}", path=path, line=number, text=line) from error


def _names(cells: list[str], path: str, line: int) -> list[str]:
    names = [cell.lower() for cell in cells]
    unknown = [name for name in names if name not in COUNTERS and name not in _KEYS]
    missing = [name for name in _KEYS if name not in names]
    if unknown or missing or len(set(names)) != len(names):
        fault = f"unknown counter {unknown[0]!r}" if unknown else "a column name is repeated"
        reason = f"column {missing[0]} is missing" if missing else fault
        raise InputError(reason, path=path, line=line, text=",".join(cells))
    return names


def _key(row: dict[str, str], path: str, line: int, text: str) -> Port:
    guid, port = _GUID.fullmatch(row["guid"]), _NUMBER.fullmatch(row["port"])
    if guid is None or port is None or not int(guid[1], 16) or int(port[0]) > 254:
        raise InputError("invalid GUID or port number", path=path, line=line, text=text)
    return int(guid[1], 16), 0, int(port[0])


def _counters(row: dict[str, str], path: str, line: int) -> Counters:
    counters: Counters = {}
    for name, cell in row.items():
        if name in _KEYS or not cell:
            continue
        if not _NUMBER.fullmatch(cell) or int(cell) > LARGEST:
            raise InputError(f"{name} is not a valid count", path=path, line=line, text=cell)
        counters[name] = int(cell), False
    return counters
