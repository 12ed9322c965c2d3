"""Output of ``ibnetdiscover``: one record per device, with one line per port that is up.

The reader follows the tool's source and manual (infiniband-diags, ibnetdiscover(8)) and accepts variations of
real files: hex without leading zeros, ``H-0x..`` identifiers, tabs lost or turned into blanks, a terminal's
banner around the scan, the tool's own diagnostics between its lines, grouping (``-g``) and full (``-f``)
output, and old versions without port GUIDs or rates. Each cable is listed at both of its ends; this is
checked, so that a truncated file is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from ingest.formats.fabrics.infiniband import UNCONFIGURED_LID, build_fabric
from ingest.formats.fabrics.infiniband_devices import Device, Port
from ingest.formats.fabrics.rows import MAX_PORT
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import link_rate
from ingest.reading.source import SourceFile
from registry.errors import InputError

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
_ASIDE = re.compile(
    r"#.*|Chassis \d+.*|Non-Chassis Nodes\s*|Hostname: .*|\s*"
    r"|(?:src/)?\w+\.c:\d+; .*|ib(?:warn|panic|error)s?: .*"
)
_CHASSIS = re.compile(r"Chassis \d+")
_CUT_OFF = re.compile(r'\s*(\[\d|\[\s*$|"|Switch|Ca\b|Rt\b|\w*guid\b|vendid|devid)')
_GENERATED = re.compile(
    r"# Topology file: generated on \w{3}\s+(\w{3})\s+(\d{1,2})\s+(\d\d):(\d\d):(\d\d)\s+(\d{4})\s*"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RECOGNISED = re.compile(r'^(# Topology file: generated on |(Switch|Ca|Rt)\s*\d+\s*"[SHR]-)', re.MULTILINE)


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains the tool's first comment or the first line of a record."""
    return _RECOGNISED.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one scan.

    The time of the fabric is that of the line ``Topology file: generated on ...``. The tool prints local time
    without a zone; it is taken as UTC.

    Raises
    ------
    InputError
        An unreadable line, a truncated file, ends of a cable that contradict each other, a repeated device or
        port, or a scan that found only its own device.
    """
    (file,) = files
    scan = _Scan(file.path)
    for number, line in enumerate(file.lines(), start=1):
        scan.read(number, line)
    scan.finish()
    rate = DEFAULT_RATE if options.rate is None else options.rate
    built = build_fabric(
        list(scan.devices.values()), path=file.path, default_rate=rate, observed_at=scan.observed_at
    )
    return Parsed(fabric=built.fabric, assumed=built.assumed, warnings=(*scan.warnings(), *built.warnings))


class _Scan:
    """The devices read so far, line by line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.devices: dict[int, Device] = {}
        self.observed_at: datetime | None = None
        self._current: Device | None = None
        self._identity: dict[str, tuple[int, int, str]] = {}
        self._started = False
        self._grouped = False
        self._before = 0
        self._after: list[tuple[int, str]] = []
        self._diagnostics = 0

    def read(self, number: int, line: str) -> None:
        """Read one line."""
        if len(line) > MAX_LINE:
            raise self._error(f"longer than {MAX_LINE} characters", number, line)
        if (match := _PORT.fullmatch(line)) is not None:
            self._port(match, number, line)
        elif (match := _IDENTITY.fullmatch(line)) is not None:
            self._continue(number, line)
            self._identity[match[1]] = (int(match[2], 16), number, line)
        elif (match := _DEVICE.fullmatch(line)) is not None:
            self._device(match, number, line)
        elif _ASIDE.fullmatch(line) is not None:
            self._aside(line)
        elif line.startswith(("< ", "> ")) and self._started:
            raise self._error("output of ibnetdiscover --diff: ingest the scan itself", number, line)
        elif self._started:
            self._after.append((number, line))
        else:
            self._before += 1

    def finish(self) -> None:
        """Raise `InputError` if the text ends within a record."""
        for number, line in self._after:
            if _CUT_OFF.match(line):
                raise self._error("incomplete line of ibnetdiscover: the file seems truncated", number, line)
        if self._identity:
            _, number, line = next(iter(self._identity.values()))
            raise self._error(
                "a record without its Switch, Ca or Rt line: the file seems truncated", number, line
            )
        if not self.devices:
            raise InputError("the scan contains no devices: the file seems truncated", path=self.path)

    def warnings(self) -> list[str]:
        """Return the numbers of skipped lines."""
        return [
            f"{count} line(s) {what}"
            for count, what in (
                (self._before, "before the scan were skipped"),
                (len(self._after), "after the scan were skipped"),
                (self._diagnostics, "are the tool's own diagnostics: parts of the fabric may be missing"),
            )
            if count
        ]

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

    def _continue(self, number: int, line: str) -> None:
        """Note that a record continues; an unreadable line before is then an error."""
        self._started = True
        if self._after:
            raise self._error("not a line of ibnetdiscover", *self._after[0])

    def _device(self, match: re.Match[str], number: int, line: str) -> None:
        """Read the Switch, Ca or Rt line of a device."""
        self._continue(number, line)
        kind = {"Switch": "S", "Ca": "H", "Rt": "R"}[match[1]]
        guid = int(match[4], 16)
        printed = self._identity.get({"S": "switchguid", "H": "caguid", "R": "rtguid"}[kind])
        if kind != match[3] or guid == 0 or (printed is not None and printed[0] != guid):
            raise self._error("the record's GUIDs or kinds contradict each other", number, line)
        self._current = Device(
            kind=kind,
            guid=guid,
            system_guid=self._identity["sysimgguid"][0] if "sysimgguid" in self._identity else 0,
            description=match[5].strip(),
            lid=self._lid(match[6], number, line) if match[6] else 0,
            line=number,
            text=line,
        )
        self._identity = {}
        before = self.devices.setdefault(guid, self._current)
        # Grouped output prints the switches of a chassis twice: by slot and in a list of all.
        if before is not self._current and not self._grouped:
            raise self._error(f"the device is already in line {before.line}", number, line)

    def _port(self, match: re.Match[str], number: int, line: str) -> None:
        """Read the line of a port."""
        self._continue(number, line)
        device = self._current
        if device is None or self._identity:
            raise self._error("a port without the Switch, Ca or Rt line of its device", number, line)
        port = Port(
            number=int(match[1]),
            peer=int(match[4], 16),
            peer_port=int(match[5]),
            rate=self._rate(match[9], match[10], number, line),
            guid=int(match[2], 16) if match[2] else 0,
            lid=self._lid(match[6], number, line) if match[6] else 0,
            lmc=int(match[7]) if match[7] else 0,
            line=number,
            text=line,
        )
        if not (0 < port.number <= MAX_PORT and 0 < port.peer_port <= MAX_PORT and port.lmc < 8):
            raise self._error("a port number or LMC is out of range", number, line)
        first = self.devices[device.guid]
        before = device.ports.setdefault(port.number, port)
        printed = first.ports.get(port.number, port)
        if before is not port or (printed.peer, printed.peer_port) != (port.peer, port.peer_port):
            raise self._error(f"the port is already in line {printed.line}", number, line)

    def _rate(self, width: str | None, speed: str | None, number: int, line: str) -> float | None:
        """Return the rate; None if it is missing or printed as question marks (unknown to the tool)."""
        if width is None or speed is None or "?" in width + speed:
            return None
        try:
            return link_rate(int(width[:-1]), speed)
        except KeyError:
            raise self._error(
                f"{width}{speed} is not a width and speed of InfiniBand", number, line
            ) from None

    def _lid(self, digits: str, number: int, line: str) -> int:
        lid = int(digits)
        if lid > UNCONFIGURED_LID:
            raise self._error(f"LID {lid} is out of range", number, line)
        return 0 if lid == UNCONFIGURED_LID else lid

    def _error(self, reason: str, number: int, line: str) -> InputError:
        return InputError(reason, path=self.path, line=number, text=line)


def _time(match: re.Match[str]) -> datetime | None:
    """Return the scan's time, taken as UTC; None if it is not a time."""
    month, day, hour, minute, second, year = match.groups()
    try:
        clock = int(hour), int(minute), int(second)
        return datetime(int(year), _MONTHS.index(month) + 1, int(day), *clock, tzinfo=UTC)
    except ValueError:
        return None
