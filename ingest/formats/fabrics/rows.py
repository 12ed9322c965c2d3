"""Collection of devices for InfiniBand tools that print one row per port or cable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from ingest.formats.fabrics.infiniband import UNCONFIGURED_LID, build_fabric, mirror
from ingest.formats.fabrics.infiniband_devices import Device, Location, Port, PortNote
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import link_rate
from ingest.reading.source import SourceFile
from registry.errors import InputError

MAX_LINE = 2048
"""Largest length of a line, in characters."""
MAX_PORT = 254
"""Highest port number of a device; 255 means no route in a forwarding table."""
DEFAULT_RATE = link_rate(4, "HDR")
"""Data bytes/s of a cable without a rate in the source: 4xHDR."""
GIVE_A_SCAN = "ingest it together with a source of the cables (ibnetdiscover, iblinkinfo, opensm-subnet.lst)"
NEAR = 16
"""Largest difference of the port GUIDs of one adapter."""

_DIAGNOSTIC = re.compile(r"(?:src/)?\w+\.c:\d+; .*|ib(?:warn|panic|error)s?: .*")
_RAN_AT = re.compile(r"# Running timestamp\s*: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")


def read_lines(
    file: SourceFile, tool: str, read: Callable[[int, str], bool], begins: re.Pattern[str]
) -> list[str]:
    """Pass the lines of a file to a function, and return warnings.

    Parameters
    ----------
    read : callable
        Reads the number and text of a line; returns True if the line is one of the tool's.
    begins : pattern
        Start of a row of the tool, to recognise truncated rows.

    Returns
    -------
    list of str
        Numbers of lines before and after the tool's output, and of its own diagnostics.

    Raises
    ------
    InputError
        A foreign line between the tool's lines, a truncated last line, or one that is too long.
    """
    before = diagnostics = 0
    started, foreign = False, list[Location]()
    for number, line in enumerate(file.lines(), start=1):
        if len(line) > MAX_LINE:
            raise InputError(f"longer than {MAX_LINE} characters", path=file.path, line=number, text=line)
        if not line.strip() or line.startswith("#"):
            continue
        if read(number, line):
            started = True
            if foreign:
                index, text = foreign[0]
                raise InputError(f"not a line of {tool}", path=file.path, line=index, text=text)
        elif _DIAGNOSTIC.fullmatch(line):
            diagnostics += 1
        elif started:
            foreign.append((number, line))
        else:
            before += 1
    for number, line in foreign:
        if begins.match(line):
            reason = f"incomplete line of {tool}: the file seems truncated"
            raise InputError(reason, path=file.path, line=number, text=line)
    return counted(
        (before, "line(s) before the scan were skipped"),
        (len(foreign), "line(s) after the scan were skipped"),
        (diagnostics, "line(s) are the tool's own diagnostics: parts of the fabric may be missing"),
    )


def read_rows(
    file: SourceFile,
    tool: str,
    row: re.Pattern[str],
    take: Callable[[re.Match[str], Location], None],
    begins: re.Pattern[str],
) -> list[str]:
    """Read a file whose rows match one pattern, and return warnings as `read_lines` does.

    Parameters
    ----------
    take : callable
        Receives the match of a row, and its number and text.
    """

    def read(number: int, line: str) -> bool:
        match = row.fullmatch(line)
        if match is not None:
            take(match, (number, line))
        return match is not None

    return read_lines(file, tool, read, begins)


def counted(*counts: Location) -> list[str]:
    """Return the warnings whose count is not 0."""
    return [f"{count} {what}" for count, what in counts if count]


def ran_at(lines: Iterable[str]) -> datetime | None:
    """Return the time when ibdiagnet ran, UTC, from the comments at the start of its files."""
    for line in lines:
        if not line.startswith("#"):
            return None
        if (found := _RAN_AT.match(line)) is not None:
            try:
                return datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
            except ValueError:
                return None
    return None


class Rows:
    """The devices read so far, identified by their own GUID or that of one of their ports."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.devices: dict[int, Device] = {}
        self._owner: dict[int, int] = {}
        self._last: Device | None = None

    def error(self, reason: str, number: int, line: str) -> InputError:
        return InputError(reason, path=self.path, line=number or None, text=line)

    def device(
        self,
        guid: int,
        kind: str,
        description: str,
        location: Location,
        *,
        system_guid: int = 0,
        lid: int = 0,
    ) -> Device:
        """Return the device with a node GUID; it is created on first use.

        Raises
        ------
        InputError
            The GUID is 0, or kind, name or LID differ from before.
        """
        if guid == 0:
            raise self.error("a device without a GUID", *location)
        made = Device(
            kind=kind,
            guid=guid,
            system_guid=system_guid,
            description=description.strip(),
            lid=lid if kind == "S" else 0,
            line=location[0],
            text=location[1],
        )
        known = self.devices.setdefault(guid, made)
        if (known.kind, known.description, known.lid) != (made.kind, made.description, made.lid):
            where = f"line {known.line}" if known.line else "an entry before"
            raise self.error(f"{where} contradicts this description of the device", *location)
        return known

    def adapter_of_port(
        self, port_guid: int, number: int, description: str, location: Location, kind: str = "H"
    ) -> Device:
        """Return the adapter (or router) with a port, for scans that print only the GUIDs of ports.

        A port belongs to the adapter of the previous row if the description is the same, the number is
        another one and the GUID is close; otherwise it belongs to a new adapter.
        """
        last = self._last
        ends = [*last.ports, *(note.number for note in last.notes)] if last else []
        if port_guid in self._owner:
            device = self.devices[self._owner[port_guid]]
        elif (
            last is not None
            and (last.kind, last.description) == (kind, description.strip())
            and number not in ends
            and abs(port_guid - last.guid) < NEAR
        ):
            device = last
        else:
            device = self.device(port_guid, kind, description, location)
            device.anonymous = True
        self._owner[port_guid] = device.guid
        self._last = device
        return device

    def plug(self, device: Device, port: Port) -> None:
        """Add a connected port to a device; until `build`, its `peer` may be the GUID of the other port.

        Raises
        ------
        InputError
            A number is out of range, or the port is already connected.
        """
        location = port.line, port.text
        if not (0 < port.number <= MAX_PORT and 0 < port.peer_port <= MAX_PORT and 0 <= port.lmc < 8):
            raise self.error("a port number or LMC is out of range", *location)
        port.lid = self.lid(port.lid, location)
        before = device.ports.setdefault(port.number, port)
        if before is not port:
            where = f"line {before.line}" if before.line else "an entry before"
            raise self.error(f"the port is already in {where}", *location)

    def note(self, device: Device, number: int, state: int, could_be: float, location: Location) -> None:
        """Add the state and possible rate of a port."""
        if not 0 < number <= MAX_PORT:
            raise self.error("a port number is out of range", *location)
        if any(note.number == number for note in device.notes):
            raise self.error("the port is already in the file", *location)
        device.notes.append(PortNote(number, state, could_be))

    def lid(self, lid: int, location: Location) -> int:
        """Return the LID, 0 if none is configured."""
        if not 0 <= lid <= UNCONFIGURED_LID:
            raise self.error(f"LID {lid} is out of range", *location)
        return 0 if lid == UNCONFIGURED_LID else lid

    def build(
        self,
        options: Options,
        warnings: Iterable[str] = (),
        *,
        observed_at: datetime | None = None,
        once: bool = False,
        incomplete: str = "",
    ) -> Parsed:
        """Return the fabric of the devices.

        Parameters
        ----------
        options : Options
            Options of the ingest.
        warnings : iterable of str
            Warnings so far.
        observed_at : datetime, optional
            Time of the scan.
        once : bool
            True if the scan prints a cable at one end only.
        incomplete : str
            Reason why there are no cables; if empty, there must be some.

        Raises
        ------
        InputError
            There are no devices, or `build_fabric` raises it.
        """
        if not self.devices:
            raise InputError("there are no devices: the file seems truncated", path=self.path)
        for device in self.devices.values():
            for port in device.ports.values():
                port.peer = self._owner.get(port.peer, port.peer)
        if once:
            mirror(self.devices, self.path)
        built = build_fabric(
            list(self.devices.values()),
            path=self.path,
            default_rate=DEFAULT_RATE if options.rate is None else options.rate,
            observed_at=observed_at,
            links_needed=not incomplete,
        )
        return Parsed(
            fabric=built.fabric,
            assumed=built.assumed,
            incomplete=incomplete,
            warnings=(*warnings, *built.warnings),
        )
