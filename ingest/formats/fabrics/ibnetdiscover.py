"""InfiniBand fabrics: output of ``ibnetdiscover``, also with ``-p`` or ``-l``, and ``opensm-subnet.lst``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from ingest.formats.fabrics.infiniband import (
    MAX_PORT,
    Device,
    Port,
    build_fabric,
    link_rate,
    model_of,
    printed_rate,
)
from ingest.formats.fabrics.rows import GIVE_A_SCAN, Rows, lid_of, row_parser
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains, counted
from ingest.reading.source import DIAGNOSED, DIAGNOSTIC, Place, SourceFile
from registry.errors import InputError
from registry.model.links import ACTIVE, ARMED, DOWN, INITIALIZE

DEFAULT_RATE = link_rate(4, "SDR")
"""Data bytes/s of a cable if the scan prints no rates: such files are as old as 4xSDR."""
MAX_LINE = 4096
"""Largest length of a line, in characters."""

_DEVICE = re.compile(
    r'(Switch|Ca|Rt)\s*(\d{1,5})\s*"([SHR])-(?:0x)?([0-9a-fA-F]{1,16})"\s*#\s*"(.*)"'
    r"(?:\s*(?:base|enhanced) port 0 lid (\d{1,5}) lmc (\d))?\s*(?:\(scp\)\s*)?"
)
_PORT = re.compile(
    r"\[(\d{1,3})\](?:\[ext \d+\])?\s*(?:\((?:0x)?([0-9a-fA-F]{1,16})\)\s*)?"
    r'"([SHR])-(?:0x)?([0-9a-fA-F]{1,16})"\[(\d{1,3})\](?:\[ext \d+\])?\s*'
    r"(?:\((?:0x)?[0-9a-fA-F]{1,16}\)\s*)?#\s*"
    r'(?:lid (\d{1,5}) lmc (\d)\s*)?"(.*)"(?: lid \d{1,5})?'
    r"(?: (\d{1,2}x|\?\?)([A-Z]{3}\d{0,2}|\?\?\?))?"
    r"(?: s=\d+ w=\d+ v=\d+)?(?: slot \d+| \(scp\))?\s*"
)
_IDENTITY = re.compile(
    r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)\s*=\s*(?:0x)?([0-9a-fA-F]{1,16})"
    r"(?:\((?:0x)?[0-9a-fA-F]{1,16}\))?\s*(?:#.*)?"
)
_ASIDE = re.compile(rf"#.*|Chassis \d+.*|Non-Chassis Nodes\s*|Hostname: .*|\s*|{DIAGNOSTIC.pattern}")
_CHASSIS = re.compile(r"Chassis \d+")
_CUT_OFF = re.compile(r'\s*(\[\d|\[\s*$|"|Switch|Ca\b|Rt\b|\w*guid\b|vendid|devid)')
_GENERATED = re.compile(
    r"# Topology file: generated on \w{3}\s+(\w{3})\s+(\d{1,2})\s+(\d\d):(\d\d):(\d\d)\s+(\d{4})\s*"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _parse_ibnetdiscover(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one scan; a scan that found only its own device is an error.

    The time of the fabric is that of the line ``Topology file: generated on ...``. The tool prints local time
    without a zone; it is taken as UTC.
    """
    (file,) = files
    scan = _Scan()
    for place in file.places():
        scan.read(place)
    scan.finish(file.path)
    return build_fabric(
        list(scan.devices.values()),
        path=file.path,
        default_rate=options.rate or DEFAULT_RATE,
        warnings=scan.warnings(),
        observed_at=scan.observed_at,
    )


class _Scan:
    """The devices read so far, line by line."""

    def __init__(self) -> None:
        self.devices: dict[int, Device] = {}
        self.observed_at: datetime | None = None
        self._current: Device | None = None
        self._identity: dict[str, tuple[int, Place]] = {}
        self._started = False
        self._grouped = False
        self._before = 0
        self._after: list[Place] = []
        self._diagnostics = 0

    def read(self, place: Place) -> None:
        """Read one line."""
        line = place.text
        if len(line) > MAX_LINE:
            raise place.error(f"longer than {MAX_LINE} characters")
        if (match := _PORT.fullmatch(line)) is not None:
            self._port(match, place)
        elif (match := _IDENTITY.fullmatch(line)) is not None:
            self._continue()
            self._identity[match[1]] = (int(match[2], 16), place)
        elif (match := _DEVICE.fullmatch(line)) is not None:
            self._device(match, place)
        elif _ASIDE.fullmatch(line) is not None:
            self._aside(line)
        elif line.startswith(("< ", "> ")) and self._started:
            raise place.error("output of ibnetdiscover --diff: ingest the scan itself")
        elif self._started:
            self._after.append(place)
        else:
            self._before += 1

    def finish(self, path: str) -> None:
        """Raise `InputError` if the text ends within a record."""
        for place in self._after:
            if _CUT_OFF.match(place.text):
                raise place.error("incomplete line of ibnetdiscover: the file seems truncated")
        if self._identity:
            _, place = next(iter(self._identity.values()))
            raise place.error("a record without its Switch, Ca or Rt line: the file seems truncated")
        if not self.devices:
            raise InputError("the scan contains no devices: the file seems truncated", path=path)

    def warnings(self) -> list[str]:
        """Return the numbers of skipped lines."""
        return counted(
            (self._before, "line before the scan was", "lines before the scan were", "skipped"),
            (len(self._after), "line after the scan was", "lines after the scan were", "skipped"),
            (self._diagnostics, "line is", "lines are", DIAGNOSED),
        )

    def _aside(self, line: str) -> None:
        """Read a comment, a heading, a blank line or a diagnostic."""
        generated = _GENERATED.fullmatch(line)
        if line.startswith("# Topology file:"):
            self._started = True
        if generated is not None:
            self.observed_at = _time(generated)
        elif _CHASSIS.match(line):
            self._grouped = True
        elif line.strip() and not line.startswith(("#", "Non-Chassis", "Hostname")):
            self._diagnostics += 1

    def _continue(self) -> None:
        """Note that a record continues; an unreadable line before is then an error."""
        self._started = True
        if self._after:
            raise self._after[0].error("not a line of ibnetdiscover")

    def _device(self, match: re.Match[str], place: Place) -> None:
        """Read the Switch, Ca or Rt line of a device."""
        self._continue()
        kind = {"Switch": "S", "Ca": "H", "Rt": "R"}[match[1]]
        guid = int(match[4], 16)
        printed = self._identity.get({"S": "switchguid", "H": "caguid", "R": "rtguid"}[kind])
        if kind != match[3] or guid == 0 or (printed is not None and printed[0] != guid):
            raise place.error("the record's GUIDs or kinds contradict each other")
        self._current = Device(
            kind=kind,
            guid=guid,
            system_guid=self._identity["sysimgguid"][0] if "sysimgguid" in self._identity else 0,
            description=match[5].strip(),
            lid=lid_of(int(match[6] or 0), place),
            place=place,
            model=model_of(
                *(self._identity[key][0] if key in self._identity else 0 for key in ("vendid", "devid"))
            ),
        )
        self._identity = {}
        before = self.devices.setdefault(guid, self._current)
        # Grouped output prints the switches of a chassis twice: by slot and in a list of all.
        if before is not self._current and not self._grouped:
            raise place.error(f"the device is already in line {before.place.line}")

    def _port(self, match: re.Match[str], place: Place) -> None:
        """Read the line of a port."""
        self._continue()
        device = self._current
        if device is None or self._identity:
            raise place.error("a port without the Switch, Ca or Rt line of its device")
        port = Port(
            number=int(match[1]),
            peer=int(match[4], 16),
            peer_port=int(match[5]),
            rate=_rate(match[9], match[10], place),
            guid=int(match[2] or "0", 16),
            lid=lid_of(int(match[6] or 0), place),
            lmc=int(match[7] or 0),
            place=place,
        )
        if not (0 < port.number <= MAX_PORT and 0 < port.peer_port <= MAX_PORT and port.lmc < 8):
            raise place.error("a port number or LMC is out of range")
        first = self.devices[device.guid]
        before = device.ports.setdefault(port.number, port)
        printed = first.ports.get(port.number, port)
        if before is not port or (printed.peer, printed.peer_port) != (port.peer, port.peer_port):
            raise place.error(f"the port is already in line {printed.place.line}")


def _rate(width: str | None, speed: str | None, place: Place) -> float | None:
    """Return the rate; None if it is missing or printed as question marks (unknown to the tool)."""
    if width is None or speed is None or "?" in width + speed:
        return None
    try:
        return link_rate(int(width[:-1]), speed)
    except KeyError:
        raise place.error(f"{width}{speed} is not a width and speed of InfiniBand") from None


def _time(match: re.Match[str]) -> datetime | None:
    """Return the scan's time, taken as UTC; None if it is not a time."""
    month, day, hour, minute, second, year = match.groups()
    try:
        clock = int(hour), int(minute), int(second)
        return datetime(int(year), _MONTHS.index(month) + 1, int(day), *clock, tzinfo=UTC)
    except ValueError:
        return None


IBNETDISCOVER = Format(
    "ibnetdiscover",
    kind="fabric",
    evidence="real",
    about="InfiniBand fabric: output of `ibnetdiscover`",
    recognise=contains(r'^(# Topology file: generated on |(Switch|Ca|Rt)\s*\d+\s*"[SHR]-)'),
    parse=_parse_ibnetdiscover,
)
"""Output of ``ibnetdiscover``: one record per device, with one line per port that is up.

The reader follows the tool's source and manual (infiniband-diags, ibnetdiscover(8)) and accepts variations of
real files: hex without leading zeros, ``H-0x..`` identifiers, tabs lost or turned into blanks, a terminal's
banner around the scan, the tool's own diagnostics between its lines, grouping (``-g``) and full (``-f``)
output, and old versions without port GUIDs or rates. Each cable is listed at both of its ends; this is
checked, so that a truncated file is noticed.
"""


_KINDS = {"CA": "H", "SW": "S", "SWITCH": "S", "RT": "R", "ROUTER": "R"}
_STATES = {"ACT": ACTIVE, "ARM": ARMED, "INI": INITIALIZE, "DWN": DOWN, "DOWN": DOWN}
_PORT_END = r"(CA|SW|RT)\s+(\d{1,5})\s+(\d{1,3})\s+0x([0-9a-fA-F]{1,16})"
_HEX = "([0-9a-fA-F]{1,16})"
_SUBNET_END = (
    rf"\{{ (CA|SW|Rt|RT)(?:-SM)? Ports:[0-9a-fA-F]{{1,4}} SystemGUID:{_HEX} NodeGUID:{_HEX} PortGUID:{_HEX}"
    rf" VenID:\S+ DevID:\S+ Rev:\S+ \{{(.*)\}} LID:([0-9a-fA-F]{{1,4}}) PN:([0-9a-fA-F]{{1,2}}) \}}"
)


def _node(rows: Rows, match: re.Match[str], place: Place) -> None:
    """Read the row of a node."""
    guid = int(match[2], 16)
    if guid in rows.devices:
        raise place.error(f"the device is already in line {rows.devices[guid].place.line}")
    rows.device(guid, _KINDS[match[1].upper()], match[4], place, lid=lid_of(int(match[5] or 0), place))


def _port(rows: Rows, match: re.Match[str], place: Place) -> None:
    """Read the row of a port, with the other end of its cable if it has one."""
    kind, lid, number, guid = _KINDS[match[1]], int(match[2]), int(match[3]), int(match[4], 16)
    linked = match[7] is not None
    description = match[11] if linked else match[13]
    if kind == "S":
        device = rows.device(guid, kind, description, place, lid=lid_of(lid, place))
    else:
        device = rows.adapter_of_port(guid, number, description, place, kind)
    if not linked:
        rows.note(device, number, DOWN, 0.0, place)
        return
    own = {} if kind == "S" else {"guid": guid, "lid": lid}
    rate, peer, peer_port = printed_rate(match[5], match[6]), int(match[10], 16), int(match[9])
    rows.plug(device, Port(number=number, peer=peer, peer_port=peer_port, rate=rate, place=place, **own))


def _cable(rows: Rows, match: re.Match[str], place: Place) -> None:
    """Read the row of a port and of the other end of its cable; all numbers are hexadecimal."""
    width, state, speed = match.groups()[14:]
    if state not in _STATES:
        raise place.error(f"unknown state: {state}")
    near = _subnet_device(rows, match.groups()[:7], place)
    far = _subnet_device(rows, match.groups()[7:14], place)
    own = {} if near.kind == "S" else {"guid": int(match[4], 16), "lid": int(match[6], 16)}
    rate, number, peer_port = printed_rate(width, speed), int(match[7], 16), int(match[14], 16)
    rows.plug(near, Port(number=number, peer=far.guid, peer_port=peer_port, rate=rate, place=place, **own))
    if _STATES[state] != ACTIVE:
        rows.note(near, number, _STATES[state], 0.0, place)


def _subnet_device(rows: Rows, end: Sequence[str], place: Place) -> Device:
    kind, system, guid, _, description, lid, _ = end
    system_guid, lid_number = int(system, 16), lid_of(int(lid, 16), place)
    return rows.device(
        int(guid, 16), _KINDS[kind.upper()], description, place, system_guid=system_guid, lid=lid_number
    )


IBNETDISCOVER_LIST = Format(
    "ibnetdiscover-list",
    kind="fabric",
    evidence="real",
    about="InfiniBand nodes: `ibnetdiscover -l`, `ibhosts`, `ibswitches`; no links",
    recognise=contains(r"^(Ca|Switch|Rt|Router)\s*: 0x[0-9a-fA-F]+ ports \d+ "),
    parse=row_parser(
        "ibnetdiscover -l",
        row=re.compile(
            r"(Ca|Switch|Rt|Router)\s*: 0x([0-9a-fA-F]{1,16}) ports (\d{1,3})"
            r'(?: devid 0x[0-9a-fA-F]+ vendid 0x[0-9a-fA-F]+)? "(.*)"'
            r"(?: (?:base|enhanced) port 0 lid (\d{1,5}) lmc \d)?\s*"
        ),
        begins=re.compile(r"(Ca|Switch|Rt|Router)\s*(:|$)"),
        take=_node,
        incomplete=f"a list of nodes contains no links: {GIVE_A_SCAN}",
    ),
)
"""Output of ``ibnetdiscover -l``, ``ibhosts``, ``ibswitches`` and ``ibrouters``: nodes without cables."""

IBNETDISCOVER_PORTS = Format(
    "ibnetdiscover-ports",
    kind="fabric",
    evidence="real",
    about="InfiniBand ports report: output of `ibnetdiscover -p`",
    recognise=contains(rf"^{_PORT_END}\s+(\d{{1,2}}x|\?\?)\s+\S+\s+(-\s|')"),
    parse=row_parser(
        "ibnetdiscover -p",
        row=re.compile(
            rf"{_PORT_END}\s+(\d{{1,2}}x|\?\?)\s+(\S+)"
            rf"(?:\s+-\s+{_PORT_END}\s+\( '(.*)' - '(.*)' \)|\s+'(.*)')\s*"
        ),
        begins=re.compile(r"(C|CA|S|SW|R|RT)(\s|$)"),
        take=_port,
    ),
)
"""Output of ``ibnetdiscover -p``: one row per port, with both ends of its cable.

The tool prints GUIDs of ports, but neither those of adapters nor system image GUIDs. The width and speed of a
port without a cable are meaningless.
"""

OPENSM_SUBNET = Format(
    "opensm-subnet",
    kind="fabric",
    evidence="real",
    about="InfiniBand fabric from the subnet manager: opensm-subnet.lst",
    recognise=contains(r"^\{ (CA|SW|Rt|RT)(-SM)? Ports:[0-9a-fA-F]+ SystemGUID:[0-9a-fA-F]+ NodeGUID:"),
    parse=row_parser(
        "opensm-subnet.lst",
        row=re.compile(rf"{_SUBNET_END} {_SUBNET_END} PHY=(\S+) LOG=(\S+) SPD=(\S+)\s*"),
        begins=re.compile(r"\{"),
        take=_cable,
    ),
)
"""The subnet manager's ``opensm-subnet.lst``: one row per port, with both ends of its cable.

ibdm's ``.lst`` has the same format. Port numbers are hexadecimal. Names may contain braces.
"""
