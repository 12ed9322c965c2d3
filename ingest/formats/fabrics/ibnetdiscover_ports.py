"""Output of ``ibnetdiscover -p``: one line per port, with both ends of its cable.

The tool prints GUIDs of ports, but neither those of adapters nor system image GUIDs. The width and speed of a
port without a cable are meaningless.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from ingest.formats.fabrics.infiniband_devices import Device, Location, Port
from ingest.formats.fabrics.rows import Rows, read_rows
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import printed_rate
from ingest.reading.source import SourceFile
from registry.model.ports import DOWN

TOOL = "ibnetdiscover -p"
_KINDS = {"CA": "H", "SW": "S", "RT": "R"}
_END = r"(CA|SW|RT)\s+(\d{1,5})\s+(\d{1,3})\s+0x([0-9a-fA-F]{1,16})"
_ROW = re.compile(
    rf"{_END}\s+(\d{{1,2}}x|\?\?)\s+(\S+)(?:\s+-\s+{_END}\s+\( '(.*)' - '(.*)' \)|\s+'(.*)')\s*"
)
_BEGINS = re.compile(r"(C|CA|S|SW|R|RT)(\s|$)")
_RECOGNISED = re.compile(rf"^{_END}\s+(\d{{1,2}}x|\?\?)\s+\S+\s+(-\s|')", re.MULTILINE)


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains a row of the ports report."""
    return _RECOGNISED.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one report.

    Raises
    ------
    InputError
        An unreadable line, a truncated file, ends of a cable that contradict each other.
    """
    (file,) = files
    rows = Rows(file.path)
    warnings = read_rows(file, TOOL, _ROW, partial(_row, rows), _BEGINS)
    return rows.build(options, warnings)


def _row(rows: Rows, match: re.Match[str], location: Location) -> None:
    """Read the row of a port."""
    kind, lid, number, guid = _KINDS[match[1]], int(match[2]), int(match[3]), int(match[4], 16)
    linked = match[7] is not None
    description = match[11] if linked else match[13]
    device: Device
    if kind == "S":
        device = rows.device(guid, kind, description, location, lid=rows.lid(lid, location))
    else:
        device = rows.adapter_of_port(guid, number, description, location, kind)
    if not linked:
        rows.note(device, number, DOWN, 0.0, location)
        return
    own = {} if kind == "S" else {"guid": guid, "lid": lid}
    rate = printed_rate(match[5], match[6])
    peer, peer_port = int(match[10], 16), int(match[9])
    rows.plug(
        device,
        Port(
            number=number,
            peer=peer,
            peer_port=peer_port,
            rate=rate,
            line=location[0],
            text=location[1],
            **own,
        ),
    )
