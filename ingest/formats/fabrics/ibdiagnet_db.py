"""ibdiagnet's ``ibdiagnet2.db_csv``: sections of CSV between ``START_X`` and ``END_X``.

Based on public samples, not on output of the tool itself. Columns are found by name, whose spelling differs
between sections and versions. The sections NODES, PORTS and LINKS are read. A file without LINKS needs
another source with links.

The numbers in PORTS are those of the architecture's PortInfo; speeds from FDR on are shifted by 8 bits.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence

from ingest.formats.fabrics.infiniband_devices import Device, Location, Port
from ingest.formats.fabrics.rows import GIVE_A_SCAN, Rows, ran_at
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import LANE_BYTES, WIDTHS
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model.ports import ACTIVE, ARMED, DISABLED, DOWN, INITIALIZE, TRAINING

MAX_LINE = 65536
"""Largest length of a line, in characters."""
_KINDS = {"1": "H", "2": "S", "3": "R"}
_SECTION = re.compile(r"(START|END)_(\w+)\s*")
_RECOGNISED = re.compile(r"^START_(NODES|PORTS|LINKS|INDEX_TABLE)\s*$", re.MULTILINE)
_NEEDED = {
    "NODES": ("nodedesc", "nodetype", "nodeguid"),
    "LINKS": ("nodeguid1", "portnum1", "nodeguid2", "portnum2"),
    "PORTS": ("nodeguid", "portnum"),
}
_WIDTHS = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEEDS = {
    1: "SDR",
    2: "DDR",
    4: "QDR",
    1 << 8: "FDR",
    1 << 9: "EDR",
    1 << 10: "HDR",
    1 << 11: "NDR",
    1 << 12: "XDR",
    1 << 16: "FDR10",
}
_LOGICAL = {1: DOWN, 2: INITIALIZE, 3: ARMED, 4: ACTIVE}
_PHYSICAL = {3: DISABLED, 4: TRAINING, 6: TRAINING}

Row = Mapping[str, str]


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains the start of a section of such files."""
    return _RECOGNISED.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one database.

    Raises
    ------
    InputError
        A section is truncated or lacks a column, a row is unreadable, or the ends of a cable contradict each
        other.
    """
    (file,) = files
    rows = Rows(file.path)
    lines = file.lines()
    found: dict[str, list[tuple[Location, Row]]] = {"NODES": [], "PORTS": [], "LINKS": []}
    sections = set()
    for section, location, row in _rows(file.path, lines):
        sections.add(section)
        if row:
            found[section].append((location, row))
    ports = {
        _end(rows, row, "nodeguid", "portnum", location): (location, row) for location, row in found["PORTS"]
    }
    for location, row in found["NODES"]:
        _node(rows, row, location, ports)
    for location, row in found["LINKS"]:
        _link(rows, row, location, ports)
    for (guid, number), (location, row) in ports.items():
        _note(rows, guid, number, row, ports, location)
    incomplete = ""
    if "LINKS" not in sections:
        incomplete = f"the file has no section LINKS: {GIVE_A_SCAN}, or ibdiagnet2.net_dump"
    return rows.build(options, observed_at=ran_at(lines), once=True, incomplete=incomplete)


def _rows(path: str, lines: Sequence[str]) -> Iterator[tuple[str, Location, Row]]:
    """Yield section, location and cells by name of each row; an empty row at the start of each section."""
    section, names, begin = "", list[str](), (0, "")
    for number, line in enumerate(lines, start=1):
        location = number, line
        if len(line) > MAX_LINE:
            raise InputError(f"longer than {MAX_LINE} characters", path=path, line=number, text=line)
        mark = _SECTION.fullmatch(line)
        if mark is not None:
            if (mark[1] == "END") != bool(section) or (section and mark[2] != section):
                reason = f"{mark[0].strip()} within section {section or 'none'}"
                raise InputError(reason, path=path, line=number, text=line)
            section, names, begin = ("", [], location) if section else (mark[2], [], location)
        elif section in _NEEDED and line.strip():
            cells = _cells(path, location)
            if not names:
                names = [cell.strip().lower() for cell in cells]
                missing = [name for name in _NEEDED[section] if name not in names]
                if missing:
                    reason = f"section {section} has no column {missing[0]}"
                    raise InputError(reason, path=path, line=number, text=line)
                yield section, location, {}
            elif len(cells) != len(names):
                reason = f"{len(cells)} cells, but section {section} has {len(names)} columns"
                raise InputError(reason, path=path, line=number, text=line)
            else:
                yield section, location, dict(zip(names, (cell.strip() for cell in cells), strict=True))
    if section:
        reason = f"section {section} does not end: the file seems truncated"
        raise InputError(reason, path=path, line=begin[0], text=begin[1])


def _cells(path: str, location: Location) -> list[str]:
    """Return the cells of a row."""
    try:
        return next(csv.reader([location[1]]))
    except csv.Error as error:
        raise InputError(f"invalid CSV: {error}", path=path, line=location[0], text=location[1]) from error


Ports = Mapping[tuple[int, int], tuple[Location, Row]]


def _node(rows: Rows, row: Row, location: Location, ports: Ports) -> None:
    guid = _number(rows, row, "nodeguid", location)
    if guid in rows.devices:
        raise rows.error(f"the device is already in line {rows.devices[guid].line}", *location)
    if row["nodetype"] not in _KINDS:
        raise rows.error(f"unknown type of node: {row['nodetype']}", *location)
    system = _number(rows, row, "systemimageguid", location) if "systemimageguid" in row else 0
    lid = _lid(rows, ports, guid, 0)
    rows.device(guid, _KINDS[row["nodetype"]], row["nodedesc"], location, system_guid=system, lid=lid)


def _link(rows: Rows, row: Row, location: Location, ports: Ports) -> None:
    """Add the cable to both of its ends."""
    ends = (
        _end(rows, row, "nodeguid1", "portnum1", location),
        _end(rows, row, "nodeguid2", "portnum2", location),
    )
    for (guid, number), (peer, peer_port) in (ends, ends[::-1]):
        if guid not in rows.devices:
            raise rows.error("a link of a device that is missing in section NODES", *location)
        device, port = rows.devices[guid], ports.get((guid, number))
        known = device.ports.get(number)
        if known is not None and (known.peer, known.peer_port) == (peer, peer_port):
            continue  # a file may list a link at both its ends
        own, rate = _own(rows, device, number, ports), _rate(rows, port)
        end = Port(
            number=number,
            peer=peer,
            peer_port=peer_port,
            rate=rate,
            line=location[0],
            text=location[1],
            **own,
        )
        rows.plug(device, end)


def _own(rows: Rows, device: Device, number: int, ports: Ports) -> dict[str, int]:
    """Return GUID, LID and LMC of an adapter's port."""
    if device.kind == "S" or (device.guid, number) not in ports:
        return {}
    location, row = ports[device.guid, number]
    lmc = _number(rows, row, "lmc", location) if "lmc" in row else 0
    guid = _number(rows, row, "portguid", location) if "portguid" in row else 0
    return {"guid": guid, "lid": _lid(rows, ports, device.guid, number), "lmc": lmc}


def _lid(rows: Rows, ports: Ports, guid: int, number: int) -> int:
    if (guid, number) not in ports or "lid" not in ports[guid, number][1]:
        return 0
    location, row = ports[guid, number]
    return rows.lid(_number(rows, row, "lid", location), location)


def _rate(rows: Rows, port: tuple[Location, Row] | None) -> float | None:
    """Return the data bytes/s of a port; None if the file does not contain it."""
    if port is None or not {"linkwidthactv", "linkspeedactv"} <= port[1].keys():
        return None
    location, row = port
    width = _WIDTHS.get(_number(rows, row, "linkwidthactv", location))
    speed = _SPEEDS.get(_number(rows, row, "linkspeedactv", location))
    return width * LANE_BYTES[speed] if width in WIDTHS and speed else None


def _note(rows: Rows, guid: int, number: int, row: Row, ports: Ports, location: Location) -> None:
    """Note a port's state, and the best speed and width that both its ends support."""
    device = rows.devices.get(guid)
    if device is None:
        raise rows.error("a port of a device that is missing in section NODES", *location)
    if number == 0 or "portstate" not in row:
        return
    state = _LOGICAL.get(_number(rows, row, "portstate", location), DOWN)
    if state == DOWN and "portphystate" in row:
        state = _PHYSICAL.get(_number(rows, row, "portphystate", location), DOWN)
    port = device.ports.get(number)
    far = ports.get((port.peer, port.peer_port)) if port else None
    could_be = _best(rows, (location, row), far) if far else 0.0
    better = port is not None and port.rate is not None and could_be > port.rate * (1 + 1e-9)
    if state != ACTIVE or better:
        rows.note(device, number, state, could_be if better else 0.0, location)


def _best(rows: Rows, *ends: tuple[Location, Row]) -> float:
    """Return the highest data bytes/s that all ends support; 0 if the file does not contain it."""
    widths, speeds = -1, -1
    for location, row in ends:
        if not {"linkwidthsup", "linkspeedsup"} <= row.keys():
            return 0.0
        widths &= _number(rows, row, "linkwidthsup", location)
        speeds &= _number(rows, row, "linkspeedsup", location)
    width = max((lanes for bit, lanes in _WIDTHS.items() if bit & widths), default=0)
    speed = max((LANE_BYTES[name] for bit, name in _SPEEDS.items() if bit & speeds), default=0.0)
    return width * speed


def _end(rows: Rows, row: Row, guid: str, number: str, location: Location) -> tuple[int, int]:
    return _number(rows, row, guid, location), _number(rows, row, number, location)


def _number(rows: Rows, row: Row, name: str, location: Location) -> int:
    """Return a number as ``0x1f`` or ``31``, below 2 ** 64."""
    text = row[name].lower()
    hexadecimal = text.startswith("0x")
    digits = text[2:] if hexadecimal else text
    if (
        not digits
        or len(digits) > 20
        or any(c not in "0123456789abcdef"[: 16 if hexadecimal else 10] for c in digits)
    ):
        raise rows.error(f"{name} is not a number", *location)
    value = int(digits, 16 if hexadecimal else 10)
    if value >= 1 << 64:
        raise rows.error(f"{name} is out of range", *location)
    return value
