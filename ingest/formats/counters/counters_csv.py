"""Port counters of any collector: a CSV file with the columns ``guid,port`` and the registry's counters.

One row per port. The other columns are named as in `registry.model.COUNTERS`; bytes are bytes, not words. An
empty cell is an unknown counter. This format is for counters that no InfiniBand tool prints, such as the
pause frames of priority flow control.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.counters.fields import LARGEST, Counters, Port
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError, UnknownName
from registry.model import COUNTERS, CounterSweep

_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_NUMBER = re.compile(r"\d{1,19}", re.ASCII)
_KEYS = ("guid", "port")


def _recognise_counters_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments names a GUID, a port and counters."""
    for line in head.splitlines():
        if line.strip() and not line.startswith("#"):
            names = {name.strip().strip('"').lower() for name in line.split(",")}
            return set(_KEYS) <= names and bool(names & set(COUNTERS))
    return False


def _parse_counters_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return one sweep of the counters of all listed ports; an unknown column is an error."""
    (file,) = files
    names: list[str] = []
    ports: dict[Port, Counters] = {}
    for place in file.places():
        if not place.text.strip() or place.text.startswith("#"):
            continue
        cells = place.cells()
        if not names:
            names = _names(cells, place)
            continue
        if len(cells) != len(names):
            raise place.error(f"{len(cells)} cells under {len(names)} columns")
        row = dict(zip(names, cells, strict=True))
        key = _key(row, place)
        if key in ports:
            raise place.error("the port is listed twice")
        ports[key] = _counters(row, place)
    if not ports:
        raise InputError("no port counters found", path=file.path)
    return Parsed(counters=(CounterSweep.of(options.time(file.modified_at), ports),))


def _names(cells: list[str], place: Place) -> list[str]:
    names = [cell.lower() for cell in cells]
    unknown = [name for name in names if name not in COUNTERS and name not in _KEYS]
    missing = [name for name in _KEYS if name not in names]
    if unknown or missing or len(set(names)) != len(names):
        fault = (
            UnknownName("counter", unknown[0], COUNTERS).reason if unknown else "a column name is repeated"
        )
        raise place.error(f"column {missing[0]} is missing" if missing else fault)
    return names


def _key(row: dict[str, str], place: Place) -> Port:
    guid, port = _GUID.fullmatch(row["guid"]), _NUMBER.fullmatch(row["port"])
    if guid is None or port is None or not int(guid[1], 16) or int(port[0]) > 254:
        raise place.error("invalid GUID or port number")
    return int(guid[1], 16), 0, int(port[0])


def _counters(row: dict[str, str], place: Place) -> Counters:
    counters: Counters = {}
    for name, cell in row.items():
        if name in _KEYS or not cell:
            continue
        if not _NUMBER.fullmatch(cell) or int(cell) > LARGEST:
            raise place.error(f"{name} is not a valid count", cell)
        counters[name] = int(cell), False
    return counters


COUNTERS_CSV = Format(
    "counters-csv",
    kind="counters",
    evidence="own",
    about="port counters of any collector: CSV with columns guid,port and counters",
    recognise=_recognise_counters_csv,
    parse=_parse_counters_csv,
)
