"""Collection of devices for InfiniBand tools that print one row per port or cable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from ingest.formats.fabrics.infiniband import (
    MAX_PORT,
    UNCONFIGURED_LID,
    Device,
    Port,
    PortNote,
    add_second_ends,
    build_fabric,
    link_rate,
)
from ingest.options import Options
from ingest.parsed import Parse, Parsed, counted
from ingest.reading.source import DIAGNOSED, DIAGNOSTIC, Place, SourceFile
from registry.errors import InputError

MAX_LINE = 2048
"""Largest length of a line, in characters."""
DEFAULT_RATE = link_rate(4, "HDR")
"""Data bytes/s of a cable without a rate in the source: 4xHDR."""
GIVE_A_SCAN = "ingest it together with a source of the cables (ibnetdiscover, iblinkinfo, opensm-subnet.lst)"
NEAR = 16
"""Largest difference of the port GUIDs of one adapter."""

_RAN_AT = re.compile(r"# Running timestamp\s*: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")


def read_lines(
    file: SourceFile, tool: str, read: Callable[[Place], bool], begins: re.Pattern[str]
) -> list[str]:
    """Pass the lines of a file to a function, and return warnings.

    Args:
        read: Reads a line; returns True if the line is one of the tool's.
        begins: Start of a row of the tool, to recognise truncated rows.

    Returns:
        Numbers of lines before and after the tool's output, and of its own diagnostics.

    Raises:
        InputError: A foreign line between the tool's lines, a truncated last line, or one that is too long.
    """
    before = diagnostics = 0
    started, foreign = False, list[Place]()
    for place in file.places():
        line = place.text
        if len(line) > MAX_LINE:
            raise place.error(f"longer than {MAX_LINE} characters")
        if not line.strip() or line.startswith("#"):
            continue
        if read(place):
            started = True
            if foreign:
                raise foreign[0].error(f"not a line of {tool}")
        elif DIAGNOSTIC.fullmatch(line):
            diagnostics += 1
        elif started:
            foreign.append(place)
        else:
            before += 1
    for place in foreign:
        if begins.match(place.text):
            raise place.error(f"incomplete line of {tool}: the file seems truncated")
    return counted(
        (before, "line before the scan was", "lines before the scan were", "skipped"),
        (len(foreign), "line after the scan was", "lines after the scan were", "skipped"),
        (diagnostics, "line is", "lines are", DIAGNOSED),
    )


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


def lid_of(lid: int, place: Place) -> int:
    """Return the LID, 0 if none is configured; raise `InputError` if it is out of range."""
    if not 0 <= lid <= UNCONFIGURED_LID:
        raise place.error(f"LID {lid} is out of range")
    return 0 if lid == UNCONFIGURED_LID else lid


def _where(place: Place) -> str:
    return f"line {place.line}" if place.line else "an entry before"


class Rows:
    """The devices read so far, identified by their own GUID or that of one of their ports."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.devices: dict[int, Device] = {}
        self._owner: dict[int, int] = {}
        self._last: Device | None = None

    def device(
        self,
        guid: int,
        kind: str,
        description: str,
        place: Place,
        *,
        system_guid: int = 0,
        lid: int = 0,
    ) -> Device:
        """Return the device with a node GUID; it is created on first use.

        Raises:
            InputError: The GUID is 0, or kind, name or LID differ from before.
        """
        if guid == 0:
            raise place.error("a device without a GUID")
        made = Device(
            kind=kind,
            guid=guid,
            system_guid=system_guid,
            description=description.strip(),
            lid=lid if kind == "S" else 0,
            place=place,
        )
        known = self.devices.setdefault(guid, made)
        if (known.kind, known.description, known.lid) != (made.kind, made.description, made.lid):
            raise place.error(f"{_where(known.place)} contradicts this description of the device")
        return known

    def adapter_of_port(
        self, port_guid: int, number: int, description: str, place: Place, kind: str = "H"
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
            device = self.device(port_guid, kind, description, place)
            device.anonymous = True
        self._owner[port_guid] = device.guid
        self._last = device
        return device

    def plug(self, device: Device, port: Port) -> None:
        """Add a connected port to a device; until `build`, its `peer` may be the GUID of the other port.

        Raises:
            InputError: A number is out of range, or the port is already connected.
        """
        if not (0 < port.number <= MAX_PORT and 0 < port.peer_port <= MAX_PORT and 0 <= port.lmc < 8):
            raise port.place.error("a port number or LMC is out of range")
        port.lid = lid_of(port.lid, port.place)
        before = device.ports.setdefault(port.number, port)
        if before is not port:
            raise port.place.error(f"the port is already in {_where(before.place)}")

    def note(self, device: Device, number: int, state: int, could_be: float, place: Place) -> None:
        """Add the state and possible rate of a port."""
        if not 0 < number <= MAX_PORT:
            raise place.error("a port number is out of range")
        if any(note.number == number for note in device.notes):
            raise place.error("the port is already in the file")
        device.notes.append(PortNote(number, state, could_be))

    def build(
        self,
        options: Options,
        warnings: Sequence[str] = (),
        *,
        observed_at: datetime | None = None,
        once: bool = False,
        incomplete: str = "",
    ) -> Parsed:
        """Return the fabric of the devices; `once` is True if the scan prints a cable at one end only.

        Raises:
            InputError: There are no devices, or `build_fabric` raises it.
        """
        if not self.devices:
            raise InputError("there are no devices: the file seems truncated", path=self.path)
        for device in self.devices.values():
            for port in device.ports.values():
                port.peer = self._owner.get(port.peer, port.peer)
        if once:
            add_second_ends(self.devices)
        return build_fabric(
            list(self.devices.values()),
            path=self.path,
            default_rate=options.rate or DEFAULT_RATE,
            warnings=warnings,
            observed_at=observed_at,
            incomplete=incomplete,
        )


def row_parser(
    tool: str,
    row: re.Pattern[str],
    begins: re.Pattern[str],
    take: Callable[[Rows, re.Match[str], Place], None],
    *,
    incomplete: str = "",
) -> Parse:
    """Return the parser of a format whose rows match one pattern.

    Args:
        tool: Name of the tool, for errors.
        row, begins: Whole row, and the start of one, to recognise truncated rows.
        take: Adds a row to the devices; takes the devices, the match of the row and its location.
        incomplete: Reason why the format contains no cables; empty if it contains them.
    """

    def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
        (file,) = files
        rows = Rows(file.path)

        def read(place: Place) -> bool:
            match = row.fullmatch(place.text)
            if match is not None:
                take(rows, match, place)
            return match is not None

        warnings = read_lines(file, tool, read, begins)
        return rows.build(options, warnings, incomplete=incomplete)

    return parse
