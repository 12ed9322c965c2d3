"""The subnet manager's ``opensm-subnet.lst``: one line per port, with both ends of its cable.

ibdm's ``.lst`` has the same format. Port numbers are hexadecimal. Names may contain braces.
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
from registry.model.ports import ACTIVE, ARMED, DOWN, INITIALIZE

TOOL = "opensm-subnet.lst"
_KINDS = {"CA": "H", "SW": "S", "RT": "R"}
_STATES = {"ACT": ACTIVE, "ARM": ARMED, "INI": INITIALIZE, "DWN": DOWN, "DOWN": DOWN}
_HEX = "([0-9a-fA-F]{1,16})"
_END = (
    rf"\{{ (CA|SW|Rt|RT)(?:-SM)? Ports:[0-9a-fA-F]{{1,4}} SystemGUID:{_HEX} NodeGUID:{_HEX} PortGUID:{_HEX}"
    rf" VenID:\S+ DevID:\S+ Rev:\S+ \{{(.*)\}} LID:([0-9a-fA-F]{{1,4}}) PN:([0-9a-fA-F]{{1,2}}) \}}"
)
_ROW = re.compile(rf"{_END} {_END} PHY=(\S+) LOG=(\S+) SPD=(\S+)\s*")
_BEGINS = re.compile(r"\{")
_RECOGNISED = re.compile(
    r"^\{ (CA|SW|Rt|RT)(-SM)? Ports:[0-9a-fA-F]+ SystemGUID:[0-9a-fA-F]+ NodeGUID:", re.MULTILINE
)


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains the start of a row."""
    return _RECOGNISED.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one file.

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
    width, state, speed = match.groups()[14:]
    if state not in _STATES:
        raise rows.error(f"unknown state: {state}", *location)
    near = _device(rows, match.groups()[:7], location)
    far = _device(rows, match.groups()[7:14], location)
    own = {} if near.kind == "S" else {"guid": int(match[4], 16), "lid": int(match[6], 16)}
    rate = printed_rate(width, speed)
    number = int(match[7], 16)
    peer_port = int(match[14], 16)
    end = Port(
        number=number,
        peer=far.guid,
        peer_port=peer_port,
        rate=rate,
        line=location[0],
        text=location[1],
        **own,
    )
    rows.plug(near, end)
    if _STATES[state] != ACTIVE:
        rows.note(near, number, _STATES[state], 0.0, location)


def _device(rows: Rows, end: Sequence[str], location: Location) -> Device:
    kind, system, guid, _, description, lid, _ = end
    return rows.device(
        int(guid, 16),
        _KINDS[kind.upper()],
        description,
        location,
        system_guid=int(system, 16),
        lid=rows.lid(int(lid, 16), location),
    )
