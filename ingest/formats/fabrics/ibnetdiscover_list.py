"""Lists of nodes without links: ``ibnetdiscover -l``, ``ibhosts``, ``ibswitches``, ``ibrouters``.

They contain devices with their GUIDs but no cables, so they need another source with the cables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.fabrics.infiniband_devices import Location
from ingest.formats.fabrics.rows import GIVE_A_SCAN, Rows, read_rows
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile

TOOL = "ibnetdiscover -l"
_KINDS = {"Ca": "H", "Switch": "S", "Rt": "R", "Router": "R"}
_ROW = re.compile(
    r"(Ca|Switch|Rt|Router)\s*: 0x([0-9a-fA-F]{1,16}) ports (\d{1,3})"
    r'(?: devid 0x[0-9a-fA-F]+ vendid 0x[0-9a-fA-F]+)? "(.*)"'
    r"(?: (?:base|enhanced) port 0 lid (\d{1,5}) lmc \d)?\s*"
)
_BEGINS = re.compile(r"(Ca|Switch|Rt|Router)\s*(:|$)")
_RECOGNISED = re.compile(r"^(Ca|Switch|Rt|Router)\s*: 0x[0-9a-fA-F]+ ports \d+ ", re.MULTILINE)


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains a row of a list of nodes."""
    return _RECOGNISED.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one list.

    Raises
    ------
    InputError
        An unreadable line, a truncated file, or a repeated GUID.
    """
    (file,) = files
    rows = Rows(file.path)

    def take(match: re.Match[str], location: Location) -> None:
        guid = int(match[2], 16)
        if guid in rows.devices:
            raise rows.error(f"the device is already in line {rows.devices[guid].line}", *location)
        rows.device(guid, _KINDS[match[1]], match[4], location, lid=rows.lid(int(match[5] or 0), location))

    warnings = read_rows(file, TOOL, _ROW, take, _BEGINS)
    return rows.build(options, warnings, incomplete=f"a list of nodes contains no links: {GIVE_A_SCAN}")
