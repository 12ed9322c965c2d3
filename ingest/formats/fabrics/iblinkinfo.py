"""InfiniBand links: output of ``iblinkinfo``, and the list of links of NVIDIA UFM."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ingest.formats.fabrics.infiniband import AGGREGATION_NODE, WIDTHS, Device, Port, printed_rate
from ingest.formats.fabrics.rows import GIVE_A_SCAN, Rows, lid_of, read_lines
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import Place, SourceFile
from ingest.reading.text import Spot, load_json
from registry.model.links import ACTIVE, ARMED, DISABLED, DOWN, INITIALIZE, TRAINING

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
    """Text within the brackets of the arrow; width and speed are empty if the port is down."""

    width: str
    speed: str
    logical: str
    physical: str


class _Cable(NamedTuple):
    """A device's end of a cable, without its peer, and the other end as printed.

    GUIDs are those of ports, 0 if they are not printed.
    """

    device: Device
    port: Port
    far_guid: int
    far_lid: int
    far_description: str

    @property
    def far_key(self) -> int:
        """Number that identifies the other end: its GUID, or its LID below zero."""
        return self.far_guid or -self.far_lid


def _recognise_iblinkinfo(head: str, path: str) -> bool:
    """Return True if the text contains the row of a port."""
    # Cheap tests first: the pattern would backtrack over long blanks.
    return any(_is_row(line) for line in head.split("\n") if ")==>" in line)


def _parse_iblinkinfo(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one report; LIDs that do not identify the other end of a cable are an error."""
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
    """Return the GUIDs with several ports in a report of lines: those of switches."""
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

    def read(self, place: Place) -> bool:
        """Read one line; return True if it is one of the tool's."""
        line = place.text
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
        lid = lid_of(int(match[4]), place)
        guid = int(match[1] or match[3] or "0", 16)
        device = self._owner(match, guid, lid, place)
        self._port(device, int(match[5]), (guid, lid), link, far, place)
        return True

    def _owner(self, match: re.Match[str], guid: int, lid: int, place: Place) -> Device:
        """Return the device of a row; in a report of lines the row itself contains it."""
        number = int(match[5])
        if match[1]:
            self._head = None
            switch, description = guid in self._switches, match[2]
            if not switch:
                device = self.rows.adapter_of_port(guid, number, description, place)
            else:
                device = self.rows.device(guid, "S", description, place, lid=lid)
        elif self._head is None:
            raise place.error("a port without the CA, Switch or Router line of its device")
        else:
            device = self._of_block(self._head, guid, lid, place)
        self._lids[lid][device.guid] = device
        return device

    def _of_block(self, head: tuple[str, str, int], guid: int, lid: int, place: Place) -> Device:
        word, description, switch_guid = head
        if self._device is None:
            known = switch_guid or guid
            if known in self.rows.devices:
                raise place.error("the device is already in the file")
            self._device = self.rows.device(known, _KINDS[word], description, place, lid=lid)
            self._device.anonymous = word != "Switch"
        if word == "Switch" and self._device.lid != lid:
            raise place.error("a switch with two LIDs")
        return self._device

    def _port(
        self,
        device: Device,
        number: int,
        own: tuple[int, int],
        link: _Link,
        far: re.Match[str],
        place: Place,
    ) -> None:
        """Add a port's state and its cable."""
        width, speed = link.width, link.speed
        state = _LOGICAL.get(link.logical, _PHYSICAL.get(link.physical, DOWN))
        rate = printed_rate(width, speed)
        could_be = _could_be(width, speed, far[5] or "")
        if state != ACTIVE or could_be > (rate or 0.0) or far[6]:
            self.rows.note(device, number, state, could_be, place)
        if far[6]:
            return
        guid, lid = (0, 0) if device.kind == "S" else own
        end = Port(number=number, peer=0, peer_port=int(far[3]), rate=rate, guid=guid, lid=lid, place=place)
        far_guid, far_lid = int(far[1] or "0", 16), lid_of(int(far[2]), place)
        self.cables.append(_Cable(device, end, far_guid, far_lid, far[4].strip()))

    def join(self) -> None:
        """Add the cables to the devices' ports, and adapters that a report of switches omits.

        Raises:
            InputError: The other end of a cable is not in the file, or its LID is ambiguous.
        """
        ends: dict[int, set[int]] = defaultdict(set)
        for cable in self.cables:
            ends[cable.far_key].add(cable.port.peer_port)
        whole = any(device.kind != "S" for device in self.rows.devices.values())
        owners = dict(self.rows.devices)
        owners |= {cable.port.guid: cable.device for cable in self.cables if cable.port.guid}
        for cable in self.cables:
            peer = owners.get(cable.far_guid) if cable.far_guid else self._by_lid(cable)
            if peer is None and (whole or len(ends[cable.far_key]) > 1):
                reason = (
                    "the device at the other end is not in the file: it is truncated, or lists only adapters"
                )
                raise cable.port.place.error(reason)
            cable.port.peer = (peer or self._adapter(cable)).guid
            self.rows.plug(cable.device, cable.port)

    def _by_lid(self, cable: _Cable) -> Device | None:
        found = list(self._lids[cable.far_lid].values()) if cable.far_lid else []
        if len(found) > 1:
            found = [device for device in found if device.description == cable.far_description]
        if not cable.far_lid or len(found) > 1:
            reason = "the LID does not identify the other end: use iblinkinfo -l or ibnetdiscover"
            raise cable.port.place.error(reason)
        return found[0] if found else None

    def _adapter(self, cable: _Cable) -> Device:
        """Return the adapter at the far end, in a report with only switches."""
        port = cable.port
        adapter = self.rows.device(cable.far_key, "H", cable.far_description, port.place)
        adapter.anonymous = True
        end = replace(
            port,
            number=port.peer_port,
            peer=cable.device.guid,
            peer_port=port.number,
            guid=cable.far_guid,
            lid=cable.far_lid,
        )
        self.rows.plug(adapter, end)
        return adapter


def _link(text: str) -> _Link | None:
    """Return the parts of ``4X  53.125 Gbps Active/  LinkUp`` or ``Down/ Polling``."""
    logical, slash, physical = text.rpartition("/")
    words = logical.split()
    if not slash or not words or not words[-1].isalpha():
        return None
    speed = " ".join(words[1:-1]).removesuffix(" Gbps")
    if "FDR10" in speed:
        speed = "FDR10"
    width = words[0] if len(words) > 1 else ""
    return _Link(width=width, speed=speed, logical=words[-1], physical=physical.strip())


def _could_be(width: str, speed: str, hint: str) -> float:
    """Return the data bytes/s that both ends support according to the tool's hint; 0 without one."""
    wider, faster = _WIDER.search(hint), _FASTER.search(_WIDER.sub("", hint))
    if wider is None and faster is None:
        return 0.0
    best = (faster[1] or faster[2]) if faster else speed
    return printed_rate(wider[1] if wider else width, best) or 0.0


IBLINKINFO = Format(
    "iblinkinfo",
    kind="fabric",
    evidence="real",
    about="InfiniBand links and down ports: output of `iblinkinfo`, with or without -l",
    recognise=_recognise_iblinkinfo,
    parse=_parse_iblinkinfo,
)
"""Output of ``iblinkinfo``: one block per device or, with ``-l``, one line per port; possibly only switches.

The report includes ports that are down, and the speed and width that both ends of a slow link support. Blocks
identify the other end of a cable by its LID and port. ``-l`` prints GUIDs of ports instead, but not which
devices are switches: those have several ports with one GUID. GUIDs of adapters are not printed.
"""


LANES = tuple(str(width) for width in WIDTHS)
_HEX_NUMBER = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_NUMBER = re.compile(r"[0-9]{1,4}")
_ADAPTER = re.compile(r"HCA-\d+/\d+")
_PORT_BEHIND = re.compile(r"(.+):(\d+(?:/\d+)*+|\S*/\d+)")
_LABEL = re.compile(r"\d+(?:/\d+)*+")
"""Label of a switch's port: its number, or cage and port as on the box (``1/3/1``)."""
_CHIP = re.compile(r"[A-Z]\d+/U\d+/\d+")
"""Label of a port of a chip of a director: ``L12/U1/17``."""
_BEGINNING = re.compile(r'\s*(?:\{[^\[{]{0,2000}?"links"\s*:\s*)?\[\s*\{')
_KEYS = [re.compile(rf'"{key}"\s*:') for key in ("source_guid", "source_port", "destination_guid")]


def _recognise_ufm_links(head: str, path: str) -> bool:
    """Return True if the text is a list of objects with the GUIDs of two ends, in any order of keys.

    The list may be the value of ``links`` in an object, as tools that save it make it.
    """
    return _BEGINNING.match(head) is not None and all(key.search(head) for key in _KEYS)


def _parse_ufm_links(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one list."""
    (file,) = files
    rows, ends, names = Rows(file.path), list[tuple[_End, _End, int, Place]](), dict[int, str]()
    whole, value = Spot(file.path), load_json(file)
    if isinstance(value, dict):
        whole, value = whole.at("links"), value.get("links")
    for spot, link in whole.objects(value):
        source, target = _end(link, "source", spot), _end(link, "destination", spot)
        width = str(link.get("width", "")).lower().removeprefix("ib_").removesuffix("x")
        place = Place(file.path, text=str(link.get("name", "")))
        ends.append((source, target, int(width) if width in LANES else 0, place))
        names |= {end.guid: end.name for end in (target, source) if end.name and end.guid not in names}
    for source, target, lanes, place in ends:
        for end, other in ((source, target), (target, source)):
            device = rows.device(end.guid, end.kind, end.name or names.get(end.guid, ""), end.place)
            known = device.ports.get(end.port)
            if known is None or (known.peer, known.peer_port) != (other.guid, other.port):
                port = Port(
                    number=end.port,
                    peer=other.guid,
                    peer_port=other.port,
                    rate=None,
                    lanes=lanes,
                    place=place,
                )
                rows.plug(device, port)
    return rows.build(options)


class _End(NamedTuple):
    """An end of a link; `kind` and `name` are those of its device."""

    guid: int
    port: int
    kind: str
    name: str
    place: Place


def _end(link: dict[str, object], end: str, spot: Spot) -> _End:
    """Return an end of a link."""
    guid = _HEX_NUMBER.fullmatch(_text(link, f"{end}_guid", spot))
    number = _text(link, f"{end}_port", spot)
    if guid is None or not _NUMBER.fullmatch(number):
        raise spot.error(f"{end}_guid or {end}_port is invalid")
    label = str(link.get(f"{end}_port_dname") or "").strip()
    described = str(link.get(f"{end}_port_node_description") or "").strip()
    kind, name = _device(described, label)
    if not kind:
        raise spot.error(f"neither {end}_port_node_description nor {end}_port_dname shows the kind of device")
    return _End(int(guid[1], 16), int(number), kind, name, Place(spot.path, text=described or label))


def _device(described: str, label: str) -> tuple[str, str]:
    """Return the kind and name of the device of a port: ``S`` or ``H``, or empty if unknown.

    Switches have the label of the port behind a colon: ``leaf:17`` and ``leaf:1/3/1`` are of ``leaf``, and
    ``core:L12/U1/17`` of ``core:L12/U1``, a chip of a director. Without a description the name is empty.
    """
    behind = _PORT_BEHIND.fullmatch(described)
    if _ADAPTER.fullmatch(label) or AGGREGATION_NODE in described:
        return "H", described
    if behind is None:
        switch = _LABEL.fullmatch(label) or _CHIP.fullmatch(label)
        return "S" if switch else "H" if described else "", described
    name, port = behind.groups()
    chip = port.rpartition("/")[0] if not _LABEL.fullmatch(port) else ""
    return "S", f"{name}:{chip}" if chip else name


def _text(link: dict[str, object], key: str, spot: Spot) -> str:
    value = link.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise spot.error(f"the text {key} is missing")
    return value.strip()


UFM_LINKS = Format(
    "ufm-links",
    kind="fabric",
    evidence="public",
    about="InfiniBand links: JSON of UFM's /ufmRest/resources/links",
    recognise=_recognise_ufm_links,
    parse=_parse_ufm_links,
)
"""The list of links of NVIDIA UFM's REST interface: ``GET /ufmRest/resources/links``.

Based on public samples, not on UFM itself. Each cable is listed once. The list contains widths but no speeds,
no LIDs, and the owners of adapters only in their descriptions. The GUID of an adapter may be its own or that
of its port: both are found in another source of the same ingest. Older versions have no descriptions: the
label of a port (``dname``) then shows whether it is an adapter. Other keys, such as ``cable_info``, may be
anywhere and are ignored.
"""
