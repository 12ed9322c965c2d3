"""The subnet manager's own picture, ``opensm-subnet.lst``: one line a port, with both ends of its cable.

The same layout is ibdm's ``.lst``. Numbers of ports are hexadecimal. A name may hold braces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from ingest.formats.fabrics.infiniband_devices import Device
from ingest.formats.fabrics.rows import Rows, read_rows
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import told_rate
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
    """Whether the text holds the begin of a row."""
    return _RECOGNISED.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one picture of a subnet.

    Raises
    ------
    InputError
        A line that cannot be read, a cut-off file, ends of a cable that contradict each other.
    """
    (file,) = files
    rows = Rows(file.path)
    warnings = read_rows(file, TOOL, _ROW, partial(_row, rows), _BEGINS)
    return rows.build(options, warnings)


def _row(rows: Rows, match: re.Match[str], at: tuple[int, str]) -> None:
    width, state, speed = match.groups()[14:]
    if state not in _STATES:
        raise rows.error(f"a state that is not known: {state}", *at)
    near = _device(rows, match.groups()[:7], at)
    far = _device(rows, match.groups()[7:14], at)
    own = {} if near.kind == "S" else {"guid": int(match[4], 16), "lid": int(match[6], 16)}
    rate = told_rate(width, speed)
    number = int(match[7], 16)
    rows.plug(near, number, far.guid, int(match[14], 16), rate, at, **own)
    if _STATES[state] != ACTIVE:
        rows.note(near, number, _STATES[state], 0.0, at)


def _device(rows: Rows, end: Sequence[str], at: tuple[int, str]) -> Device:
    kind, system, guid, _, description, lid, _ = end
    return rows.device(
        int(guid, 16),
        _KINDS[kind.upper()],
        description,
        at,
        system_guid=int(system, 16),
        lid=rows.lid(int(lid, 16), at),
    )
