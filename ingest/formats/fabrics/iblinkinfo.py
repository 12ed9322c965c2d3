"""What ``iblinkinfo`` prints, in blocks a device or, with ``-l``, one line a port; also of switches alone.

It lists ports that are down, and by how much a link is slower than both its ends could be. Blocks tell the
other end of a cable by its LID and port; ``-l`` tells GUIDs of ports there too, but not what is a switch:
that is what has several ports under one GUID. GUIDs of adapters are not printed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ingest.formats.fabrics.infiniband_devices import Device
from ingest.formats.fabrics.rows import GIVE_A_SCAN, Rows, read_lines
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import told_rate
from ingest.reading.source import SourceFile
from registry.model.ports import ACTIVE, ARMED, DISABLED, DOWN, INITIALIZE, TRAINING

TOOL = "iblinkinfo"
_KINDS = {"CA": "H", "Switch": "S", "Router": "R"}
_LOGICAL = {"Initialize": INITIALIZE, "Init": INITIALIZE, "Armed": ARMED, "Active": ACTIVE}
_PHYSICAL = {"Disabled": DISABLED, "PortConfigurationTraining": TRAINING, "LinkErrorRecovery": TRAINING}
_HEAD = re.compile(r"(CA|Switch|Router): (?:0x([0-9a-fA-F]{16}) )?(.*):\s*")
_HEX = "0x([0-9a-fA-F]{16})"
_ROW = re.compile(
    rf'(?:{_HEX} "(.*?)" +| +(?:{_HEX} +)?)(\d{{1,5}}) +(\d{{1,3}})\[[ \d]{{0,6}}\] '
    r"==\((.*?)\)(?: \(HOQ:\d+ VL_Stall:\d+\))?==> +(.*)"
)
_FAR = re.compile(
    rf'(?:{_HEX} +)?(\d{{1,5}}) +(\d{{1,3}})\[[ \d]{{0,6}}\] "(.*)" \(([^"]*)\) *'
    r'|(\[ {0,6}\] "" \( {0,6}\)|"Port not available") *'
)
_WIDER = re.compile(r"Could be (\d{1,2})X")
_FASTER = re.compile(r"Could be ([\d.]+)(?: Gbps)?|Could be (FDR10)")
_BEGINS = re.compile(r"(CA|Switch|Router):|0x[0-9a-fA-F]*|\s{3,}(0x|\d)|\s+\d+\s+\d+\[")
_BEFORE_ARROW = re.compile(r"\d\[[ \d]{0,6}\] ==\(")


class _Link(NamedTuple):
    """What stands between the arrow's brackets; no width and speed where the port is down."""

    width: str
    speed: str
    logical: str
    physical: str


class _Cable(NamedTuple):
    """One end of a cable as printed; GUIDs are of ports, 0 where they are not printed."""

    near: int
    number: int
    guid: int
    lid: int
    rate: float | None
    far_guid: int
    far_lid: int
    far_number: int
    far_description: str
    at: tuple[int, str]


def recognise(head: str, path: str) -> bool:
    """Whether the text holds the row of a port."""
    # Line by line and by plain words first: blanks without end must not be tried in every way.
    return any(_is_row(line) for line in head.split("\n") if ")==>" in line)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one report.

    Raises
    ------
    InputError
        A line that cannot be read, a cut-off file, ends of a cable that contradict each other, LIDs that
        do not tell the other end of a cable.
    """
    (file,) = files
    lines = file.lines()
    report = _Report(file.path, _switches(lines))
    warnings = read_lines(file, TOOL, report.read, _BEGINS)
    report.join()
    incomplete = "" if report.cables else f"iblinkinfo lists no links here (-d prints none): {GIVE_A_SCAN}"
    return report.rows.build(options, warnings, incomplete=incomplete)


def _is_row(line: str) -> bool:
    begins = line[:1].isspace() or (line.startswith("0x") and line[18:20] == ' "')
    return begins and not line.lstrip().startswith("Link info") and _BEFORE_ARROW.search(line) is not None


def _switches(lines: Sequence[str]) -> set[int]:
    """GUIDs that stand before several ports in a report of lines: those of switches."""
    ports: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        match = _ROW.fullmatch(line) if line.startswith("0x") else None
        if match is not None:
            ports[match[1]].add(match[5])
    return {int(guid, 16) for guid, numbers in ports.items() if len(numbers) > 1}


class _Report:
    """The devices and ends of cables read so far."""

    def __init__(self, path: str, switches: set[int]) -> None:
        self.rows = Rows(path)
        self.cables: list[_Cable] = []
        self._switches = switches
        self._head: tuple[str, str, int] | None = None
        self._device: Device | None = None
        self._lids: dict[int, dict[int, Device]] = defaultdict(dict)  # by LID, then GUID

    def read(self, number: int, line: str) -> bool:
        """Take one line; whether it is one of the tool's."""
        at = number, line
        head = _HEAD.fullmatch(line)
        if head is not None:
            self._head = head[1], head[3], int(head[2] or "0", 16)
            self._device = None
            return True
        match = _ROW.fullmatch(line)
        link = _link(match[6]) if match else None
        far = _FAR.fullmatch(match[7]) if match else None
        if match is None or link is None or far is None:
            return False
        lid = self.rows.lid(int(match[4]), at)
        guid = int(match[1] or match[3] or "0", 16)
        device = self._owner(match, guid, lid, at)
        self._port(device, int(match[5]), (guid, lid), link, far, at)
        return True

    def _owner(self, match: re.Match[str], guid: int, lid: int, at: tuple[int, str]) -> Device:
        """The device of a row, which in a report of lines is told in the row itself."""
        number = int(match[5])
        if match[1]:
            self._head = None
            switch, description = guid in self._switches, match[2]
            if not switch:
                device = self.rows.adapter_of_port(guid, number, description, at)
            else:
                device = self.rows.device(guid, "S", description, at, lid=lid)
        elif self._head is None:
            raise self.rows.error("a port without the CA, Switch or Router line of its device", *at)
        else:
            device = self._of_block(self._head, guid, lid, at)
        self._lids[lid][device.guid] = device
        return device

    def _of_block(self, head: tuple[str, str, int], guid: int, lid: int, at: tuple[int, str]) -> Device:
        word, description, switch_guid = head
        if self._device is None:
            known = switch_guid or guid
            if known in self.rows.devices:
                raise self.rows.error("the device stands in the file already", *at)
            self._device = self.rows.device(known, _KINDS[word], description, at, lid=lid)
            self._device.anonymous = word != "Switch"
        if word == "Switch" and self._device.lid != lid:
            raise self.rows.error("a switch with two LIDs", *at)
        return self._device

    def _port(
        self,
        device: Device,
        number: int,
        own: tuple[int, int],
        link: _Link,
        far: re.Match[str],
        at: tuple[int, str],
    ) -> None:
        width, speed = link.width, link.speed
        state = _LOGICAL.get(link.logical, _PHYSICAL.get(link.physical, DOWN))
        rate = told_rate(width, speed)
        could_be = _could_be(width, speed, far[5] or "")
        if state != ACTIVE or could_be > (rate or 0.0) or far[6]:
            self.rows.note(device, number, state, could_be, at)
        if far[6]:
            return
        guid, lid = (0, 0) if device.kind == "S" else own
        self.cables.append(
            _Cable(
                near=device.guid,
                number=number,
                guid=guid,
                lid=lid,
                rate=rate,
                far_guid=int(far[1] or "0", 16),
                far_lid=self.rows.lid(int(far[2]), at),
                far_number=int(far[3]),
                far_description=far[4].strip(),
                at=at,
            )
        )

    def join(self) -> None:
        """Put the cables into the devices' ports; adapters that a report of switches leaves out are made.

        Raises
        ------
        InputError
            The other end of a cable is not in the file, or not told by its LID.
        """
        ends: dict[int, set[int]] = defaultdict(set)
        for cable in self.cables:
            ends[cable.far_guid or -cable.far_lid].add(cable.far_number)
        whole = any(device.kind != "S" for device in self.rows.devices.values())
        owners = {port: device for device in self.rows.devices.values() for port in (device.guid,)}
        owners |= {cable.guid: owners[cable.near] for cable in self.cables if cable.guid}
        for cable in self.cables:
            device = self.rows.devices[cable.near]
            peer = owners.get(cable.far_guid) if cable.far_guid else self._by_lid(cable)
            if peer is None and (whole or len(ends[cable.far_guid or -cable.far_lid]) > 1):
                reason = (
                    "the device at the other end is not in the file: it was cut off, or is of adapters alone"
                )
                raise self.rows.error(reason, *cable.at)
            peer = peer or self._adapter(cable)
            number, far = cable.number, cable.far_number
            own = {"guid": cable.guid, "lid": cable.lid}
            self.rows.plug(device, number, peer.guid, far, cable.rate, cable.at, **own)

    def _by_lid(self, cable: _Cable) -> Device | None:
        found = list(self._lids[cable.far_lid].values()) if cable.far_lid else []
        if len(found) > 1:
            found = [device for device in found if device.description == cable.far_description]
        if not cable.far_lid or len(found) > 1:
            reason = "the LID does not tell the other end: give iblinkinfo -l or ibnetdiscover"
            raise self.rows.error(reason, *cable.at)
        return found[0] if found else None

    def _adapter(self, cable: _Cable) -> Device:
        """The adapter at the far end, in a report of switches alone."""
        key = cable.far_guid or -cable.far_lid
        device = self.rows.device(key, "H", cable.far_description, cable.at)
        device.anonymous = True
        ends = cable.far_number, cable.near, cable.number, cable.rate, cable.at
        self.rows.plug(device, *ends, guid=cable.far_guid, lid=cable.far_lid)
        return device


def _link(text: str) -> _Link | None:
    """``4X  53.125 Gbps Active/  LinkUp`` or ``Down/ Polling``."""
    told, slash, physical = text.rpartition("/")
    words = told.split()
    if not slash or not words or not words[-1].isalpha():
        return None
    speed = " ".join(words[1:-1]).removesuffix(" Gbps")
    if "FDR10" in speed:
        speed = "FDR10"
    width = words[0] if len(words) > 1 else ""
    return _Link(width=width, speed=speed, logical=words[-1], physical=physical.strip())


def _could_be(width: str, speed: str, told: str) -> float:
    """Data bytes/s of the best that the tool says both ends could do; 0 where it says nothing."""
    wider, faster = _WIDER.search(told), _FASTER.search(_WIDER.sub("", told))
    if wider is None and faster is None:
        return 0.0
    best = (faster[1] or faster[2]) if faster else speed
    return told_rate(wider[1] if wider else width, best) or 0.0
