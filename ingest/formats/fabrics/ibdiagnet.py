"""Fabrics in the files of ibdiagnet."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ingest.formats.fabrics.infiniband import AGGREGATION_NODE, LANE_BYTES, Device, Port, printed_rate
from ingest.formats.fabrics.rows import GIVE_A_SCAN, Rows, lid_of, ran_at, read_lines
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains
from ingest.reading.source import Place, SourceFile
from registry.model.links import ACTIVE, ARMED, DISABLED, DOWN, INITIALIZE, TRAINING

MAX_LINE = 65536
"""Largest length of a line, in characters."""
_KINDS = {"1": "H", "2": "S", "3": "R"}
_SECTION = re.compile(r"(START|END)_(\w+)\s*")
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

_NUMBER = re.compile(r"0x[0-9a-f]{1,20}|[0-9]{1,20}")


class _Row(NamedTuple):
    """Cells of a row by the names of their columns, and its location."""

    cells: Mapping[str, str]
    place: Place

    def number(self, name: str, default: int | None = None) -> int:
        """Return a number as ``0x1f`` or ``31``, below 2 ** 64; the default if there is no such column."""
        if default is not None and name not in self.cells:
            return default
        text = self.cells[name].lower()
        if _NUMBER.fullmatch(text) is None:
            raise self.place.error(f"{name} is not a number")
        value = int(text, 16 if text.startswith("0x") else 10)
        if value >= 1 << 64:
            raise self.place.error(f"{name} is out of range")
        return value

    def end(self, which: str = "") -> tuple[int, int]:
        """Return a node's GUID and the number of its port."""
        return self.number(f"nodeguid{which}"), self.number(f"portnum{which}")


_Ports = Mapping[tuple[int, int], _Row]


def _parse_ibdiagnet_db(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one database; a section without its end or a needed column is an error."""
    (file,) = files
    rows = Rows(file.path)
    found: dict[str, list[_Row]] = {}
    for section, row in _rows(file):
        found.setdefault(section, []).extend([row] if row.cells else [])
    ports = {row.end(): row for row in found.get("PORTS", ())}
    for row in found.get("NODES", ()):
        _node(rows, row, ports)
    for row in found.get("LINKS", ()):
        _link(rows, row, ports)
    for (guid, number), row in ports.items():
        _note(rows, guid, number, row, ports)
    incomplete = ""
    if "LINKS" not in found:
        incomplete = f"the file has no section LINKS: {GIVE_A_SCAN}, or ibdiagnet2.net_dump"
    return rows.build(options, observed_at=ran_at(file.lines()), once=True, incomplete=incomplete)


def _rows(file: SourceFile) -> Iterator[tuple[str, _Row]]:
    """Yield section and content of each row; an empty row at the start of each section."""
    section, names, begin = "", list[str](), Place(file.path)
    for place in file.places():
        if len(place.text) > MAX_LINE:
            raise place.error(f"longer than {MAX_LINE} characters")
        mark = _SECTION.fullmatch(place.text)
        if mark is not None:
            if (mark[1] == "END") != bool(section) or (section and mark[2] != section):
                raise place.error(f"{mark[0].strip()} within section {section or 'none'}")
            section, names, begin = ("" if section else mark[2]), [], place
        elif section in _NEEDED and place.text.strip():
            cells = place.cells(strict=False)
            if not names:
                names = [cell.lower() for cell in cells]
                missing = [name for name in _NEEDED[section] if name not in names]
                if missing:
                    raise place.error(f"section {section} has no column {missing[0]}")
                yield section, _Row({}, place)
            elif len(cells) != len(names):
                raise place.error(f"{len(cells)} cells, but section {section} has {len(names)} columns")
            else:
                yield section, _Row(dict(zip(names, cells, strict=True)), place)
    if section:
        raise begin.error(f"section {section} does not end: the file seems truncated")


def _node(rows: Rows, row: _Row, ports: _Ports) -> None:
    guid, kind = row.number("nodeguid"), row.cells["nodetype"]
    if guid in rows.devices:
        raise row.place.error(f"the device is already in line {rows.devices[guid].place.line}")
    if kind not in _KINDS:
        raise row.place.error(f"unknown type of node: {kind}")
    system, lid = row.number("systemimageguid", 0), _lid(ports.get((guid, 0)))
    rows.device(guid, _KINDS[kind], row.cells["nodedesc"], row.place, system_guid=system, lid=lid)


def _link(rows: Rows, row: _Row, ports: _Ports) -> None:
    """Add the cable to both of its ends."""
    ends = row.end("1"), row.end("2")
    for (guid, number), (peer, peer_port) in (ends, ends[::-1]):
        if guid not in rows.devices:
            raise row.place.error("a link of a device that is missing in section NODES")
        device, port = rows.devices[guid], ports.get((guid, number))
        known = device.ports.get(number)
        if known is not None and (known.peer, known.peer_port) == (peer, peer_port):
            continue  # a file may list a link at both its ends
        end = Port(number=number, peer=peer, peer_port=peer_port, rate=_rate(port), place=row.place)
        if device.kind != "S" and port is not None:
            end.guid, end.lid, end.lmc = port.number("portguid", 0), _lid(port), port.number("lmc", 0)
        rows.plug(device, end)


def _lid(port: _Row | None) -> int:
    return 0 if port is None else lid_of(port.number("lid", 0), port.place)


def _rate(port: _Row | None) -> float | None:
    """Return the data bytes/s of a port; None if the file does not contain it."""
    if port is None:
        return None
    width = _WIDTHS.get(port.number("linkwidthactv", 0))
    speed = _SPEEDS.get(port.number("linkspeedactv", 0))
    return width * LANE_BYTES[speed] if width and speed else None


def _note(rows: Rows, guid: int, number: int, row: _Row, ports: _Ports) -> None:
    """Note a port's state, and the best speed and width that both its ends support."""
    device = rows.devices.get(guid)
    if device is None:
        raise row.place.error("a port of a device that is missing in section NODES")
    if number == 0 or "portstate" not in row.cells:
        return
    state = _LOGICAL.get(row.number("portstate"), DOWN)
    if state == DOWN:
        state = _PHYSICAL.get(row.number("portphystate", 0), DOWN)
    port = device.ports.get(number)
    far = ports.get((port.peer, port.peer_port)) if port else None
    could_be = _best(row, far) if far else 0.0
    better = port is not None and port.rate is not None and could_be > port.rate * (1 + 1e-9)
    if state != ACTIVE or better:
        rows.note(device, number, state, could_be if better else 0.0, row.place)


def _best(*ends: _Row) -> float:
    """Return the highest data bytes/s that all ends support; 0 if the file does not contain it."""
    widths, speeds = -1, -1
    for row in ends:
        widths &= row.number("linkwidthsup", 0)
        speeds &= row.number("linkspeedsup", 0)
    width = max((lanes for bit, lanes in _WIDTHS.items() if bit & widths), default=0)
    speed = max((LANE_BYTES[name] for bit, name in _SPEEDS.items() if bit & speeds), default=0.0)
    return width * speed


IBDIAGNET_DB = Format(
    "ibdiagnet-db",
    kind="fabric",
    evidence="public",
    about="InfiniBand fabric: ibdiagnet2.db_csv",
    recognise=contains(r"^START_(NODES|PORTS|LINKS|INDEX_TABLE)\s*$"),
    parse=_parse_ibdiagnet_db,
)
"""ibdiagnet's ``ibdiagnet2.db_csv``: sections of CSV between ``START_X`` and ``END_X``.

Based on public samples, not on output of the tool itself. Columns are found by name, whose spelling differs
between sections and versions. The sections NODES, PORTS and LINKS are read. A file without LINKS needs
another source with links.

The numbers in PORTS are those of the architecture's PortInfo; speeds from FDR on are shifted by 8 bits.
"""


TOOL = "ibdiagnet2.net_dump"
MAX_ADAPTER_PORT = 4
"""Largest number of ports of an adapter, including planes; a neighbour with a higher one is a switch."""
_COLUMNS = 13
_STATES = {"ACT": ACTIVE, "ARM": ARMED, "INI": INITIALIZE, "INIT": INITIALIZE, "DOWN": DOWN}
_DUMPED = {"DISABLED": DISABLED, "TRAINING": TRAINING, "LINK ERROR RECOVERY": TRAINING}
_HEAD = re.compile(r'"(.*)",([^,"]*), *(?:0x)?([0-9a-fA-F]{1,16}), *LID +(\d{1,5}) *')
_TITLE = re.compile(r"\s*#\s*:\s*IB#\s*:.*Neighbor Description\s*")
_CHIP = re.compile(r"/U\d+$")
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_BEGINS = re.compile(r'"|\s+\S+\s*(:|$)')


def _parse_ibdiagnet_net(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one dump."""
    (file,) = files
    dump = _Dump(file.path)
    warnings = read_lines(file, TOOL, dump.read, _BEGINS)
    dump.join()
    return dump.rows.build(options, warnings, observed_at=ran_at(file.lines()))


class _Dump:
    """The switches read so far."""

    def __init__(self, path: str) -> None:
        self.rows = Rows(path)
        self._switch: Device | None = None
        self._far: list[tuple[int, int, str, int]] = []

    def read(self, place: Place) -> bool:
        """Read one line; return True if it is one of the tool's."""
        line = place.text
        head = _HEAD.fullmatch(line)
        if head is not None:
            guid, lid = int(head[3], 16), lid_of(int(head[4]), place)
            if guid in self.rows.devices:
                raise place.error("the switch is already in the file")
            self._switch = self.rows.device(guid, "S", head[1], place, lid=lid)
            return True
        if _TITLE.fullmatch(line):
            return True
        cells = [cell.strip() for cell in line.split(":", _COLUMNS - 1)]
        if len(cells) != _COLUMNS or cells[2] not in _STATES or not _is_number(cells[1]):
            return False
        if self._switch is None:
            raise place.error("a port without the line of its switch")
        self._port(self._switch, cells, place)
        return True

    def _port(self, switch: Device, cells: Sequence[str], place: Place) -> None:
        """Read the row of a switch's port."""
        number, state = int(cells[1]), _STATES[cells[2]]
        if state == DOWN:
            state = _DUMPED.get(cells[3], DOWN)
        if state != ACTIVE:
            self.rows.note(switch, number, state, 0.0, place)
        far = _HEX.fullmatch(cells[9])
        if not cells[9] and not cells[10]:
            return
        if far is None or not _is_number(cells[10]) or not _is_number(cells[11]):
            raise place.error("the other end of the cable is unreadable")
        if len(cells[12]) < 2 or cells[12][0] != '"' or cells[12][-1] != '"':
            raise place.error("the row is incomplete: the file seems truncated")
        peer, peer_port = int(far[1], 16), int(cells[10])
        rate = printed_rate(cells[5], cells[6])
        end = Port(number=number, peer=peer, peer_port=peer_port, rate=rate, place=place)
        self.rows.plug(switch, end)
        self._far.append((switch.guid, number, cells[12][1:-1], int(cells[11])))

    def join(self) -> None:
        """Add the adapters, which have no block; raise `InputError` for a switch without one."""
        boxes: dict[tuple[int, int], set[str]] = defaultdict(set)
        for switch, number, _, lid in self._far:
            box = _CHIP.sub("", self.rows.devices[switch].description)
            boxes[self.rows.devices[switch].ports[number].peer, lid].add(box)
        for switch, number, description, lid in self._far:
            port = self.rows.devices[switch].ports[number]
            known = self.rows.devices.get(port.peer)
            if known is not None and known.kind == "S":
                continue
            # a port of an adapter has its own LID, and all its planes belong to one box
            is_switch = port.peer_port > MAX_ADAPTER_PORT or (lid and len(boxes[port.peer, lid]) > 1)
            if is_switch and AGGREGATION_NODE not in description:
                raise port.place.error("the switch at the other end has no block: the file seems truncated")
            adapter = self.rows.device(port.peer, "H", description, port.place)
            end = replace(port, number=port.peer_port, peer=switch, peer_port=number, lid=lid)
            self.rows.plug(adapter, end)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


IBDIAGNET_NET = Format(
    "ibdiagnet-net",
    kind="fabric",
    evidence="public",
    about="InfiniBand fabric: ibdiagnet2.net_dump",
    recognise=contains(r"^[ \t]*#[ \t]*:[ \t]*IB#[ \t]*:[ \t]*Sta[ \t]*:"),
    parse=_parse_ibdiagnet_net,
)
"""ibdiagnet's ``ibdiagnet2.net_dump``: one block per switch, one row per port, including ports that are down.

Based on public samples, not on output of the tool itself. The label of a port (``1/2``, ``sw1p1``) is printed
on the box; the number is in the column ``IB#``. A switch of four ASICs (XDR) has one block per ASIC and stays
four switches: its planes. GUIDs of neighbours occur with and without leading zeros.
"""
