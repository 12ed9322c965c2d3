"""What the parsers of InfiniBand tools share: devices made of rows that each tell a port or a cable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from ingest.formats.fabrics.infiniband import UNCONFIGURED_LID, build_fabric, mirror
from ingest.formats.fabrics.infiniband_devices import Device, Port, PortNote
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import link_rate
from ingest.reading.source import SourceFile
from registry.errors import InputError

MAX_LINE = 2048
"""Longest line that can be one of a tool's, in characters."""
MAX_PORT = 254
"""Highest port number of a device; 255 means no route in a forwarding table."""
DEFAULT_RATE = link_rate(4, "HDR")
"""Data bytes/s of a cable whose source tells no rate: 4xHDR."""
GIVE_A_SCAN = "give a source with the cables in the same call (ibnetdiscover, iblinkinfo, opensm-subnet.lst)"
NEAR = 16
"""Port GUIDs of one adapter differ by less."""

_DIAGNOSTIC = re.compile(r"(?:src/)?\w+\.c:\d+; .*|ib(?:warn|panic|error)s?: .*")
_RAN_AT = re.compile(r"# Running timestamp\s*: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")


def read_lines(
    file: SourceFile, tool: str, read: Callable[[int, str], bool], begins: re.Pattern[str]
) -> list[str]:
    """Hand the lines of a file to a parser.

    Parameters
    ----------
    read : callable
        Takes the number and text of a line; whether it is one of the tool's.
    begins : pattern
        How a row of the tool begins, be it cut.

    Returns
    -------
    list of str
        Warnings: lines before and after the tool's output, and its own diagnostics, counted.

    Raises
    ------
    InputError
        A line between others that is none of the tool's, a last one that is cut, one that is too long.
    """
    before = diagnostics = 0
    started, strange = False, list[tuple[int, str]]()
    for number, line in enumerate(file.lines(), start=1):
        if len(line) > MAX_LINE:
            raise InputError(f"longer than {MAX_LINE} characters", path=file.path, line=number, text=line)
        if not line.strip() or line.startswith("#"):
            continue
        if read(number, line):
            started = True
            if strange:
                at, text = strange[0]
                raise InputError(f"not a line of {tool}", path=file.path, line=at, text=text)
        elif _DIAGNOSTIC.fullmatch(line):
            diagnostics += 1
        elif started:
            strange.append((number, line))
        else:
            before += 1
    for number, line in strange:
        if begins.match(line):
            reason = f"not a whole line of {tool}: the file seems cut off"
            raise InputError(reason, path=file.path, line=number, text=line)
    return counted(
        (before, "line(s) before the scan were skipped"),
        (len(strange), "line(s) after the scan were skipped"),
        (diagnostics, "line(s) are the tool's own diagnostics: parts of the fabric may be missing"),
    )


def read_rows(
    file: SourceFile,
    tool: str,
    row: re.Pattern[str],
    take: Callable[[re.Match[str], tuple[int, str]], None],
    begins: re.Pattern[str],
) -> list[str]:
    """`read_lines` of a tool whose lines are all of one pattern.

    Parameters
    ----------
    take : callable
        Takes the match of a whole line, and its number and text.
    """

    def read(number: int, line: str) -> bool:
        match = row.fullmatch(line)
        if match is not None:
            take(match, (number, line))
        return match is not None

    return read_lines(file, tool, read, begins)


def counted(*counts: tuple[int, str]) -> list[str]:
    """The warnings whose count is not 0."""
    return [f"{count} {what}" for count, what in counts if count]


def ran_at(lines: Iterable[str]) -> datetime | None:
    """When ibdiagnet ran, UTC, by the comments at the head of its files."""
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
    """The devices read so far. A device is known by a GUID, its own or that of one of its ports."""

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
        at: tuple[int, str],
        *,
        system_guid: int = 0,
        lid: int = 0,
    ) -> Device:
        """The device with that node GUID; a new one the first time.

        Raises
        ------
        InputError
            GUID 0, or another kind, name or LID than before.
        """
        if guid == 0:
            raise self.error("a device without a GUID", *at)
        made = Device(
            kind=kind,
            guid=guid,
            system_guid=system_guid,
            description=description.strip(),
            lid=lid if kind == "S" else 0,
            line=at[0],
            text=at[1],
        )
        known = self.devices.setdefault(guid, made)
        if (known.kind, known.description, known.lid) != (made.kind, made.description, made.lid):
            where = f"line {known.line}" if known.line else "an entry before"
            raise self.error(f"{where} tells something else of this device", *at)
        return known

    def adapter_of_port(
        self, port_guid: int, number: int, description: str, at: tuple[int, str], kind: str = "H"
    ) -> Device:
        """The adapter (or router) with that port, for scans that print the GUIDs of ports alone.

        A port belongs to the adapter of the row before where it has the same description, another
        number and a GUID next to it; else to one of its own.
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
            device = self.device(port_guid, kind, description, at)
            device.anonymous = True
        self._owner[port_guid] = device.guid
        self._last = device
        return device

    def plug(
        self,
        device: Device,
        number: int,
        peer: int,
        peer_port: int,
        rate: float | None,
        at: tuple[int, str],
        *,
        guid: int = 0,
        lid: int = 0,
        lmc: int = 0,
        lanes: int = 0,
    ) -> None:
        """Put a cable into a port; `peer` is the GUID of the other device or, so far, of its port.

        Raises
        ------
        InputError
            A number out of range, or the port holds a cable already.
        """
        if not (0 < number <= MAX_PORT and 0 < peer_port <= MAX_PORT and 0 <= lmc < 8):
            raise self.error("a port number or LMC is out of range", *at)
        port = Port(
            number=number,
            peer=peer,
            peer_port=peer_port,
            rate=rate,
            guid=guid,
            lid=self.lid(lid, at),
            lmc=lmc,
            lanes=lanes,
            line=at[0],
            text=at[1],
        )
        before = device.ports.setdefault(number, port)
        if before is not port:
            where = f"line {before.line}" if before.line else "an entry before"
            raise self.error(f"the port stands in {where} already", *at)

    def note(self, device: Device, number: int, state: int, could_be: float, at: tuple[int, str]) -> None:
        """Keep what is told of a port beside its cable."""
        if not 0 < number <= MAX_PORT:
            raise self.error("a port number is out of range", *at)
        if any(note.number == number for note in device.notes):
            raise self.error("the port stands in the file already", *at)
        device.notes.append(PortNote(number, state, could_be))

    def lid(self, lid: int, at: tuple[int, str]) -> int:
        """The LID, 0 where none is configured."""
        if not 0 <= lid <= UNCONFIGURED_LID:
            raise self.error(f"LID {lid} is out of range", *at)
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
        """The fabric of the devices.

        Parameters
        ----------
        once : bool
            The scan prints a cable at one of its ends alone.
        incomplete : str
            Why there are no cables; empty: there must be some.

        Raises
        ------
        InputError
            What `build_fabric` raises; no device at all.
        """
        if not self.devices:
            raise InputError("there are no devices: the file seems cut off", path=self.path)
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
