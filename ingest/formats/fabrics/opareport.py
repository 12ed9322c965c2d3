"""Omni-Path: the XML of ``opareport -o topology -x``.

``LinkSummary`` lists each link once, with its two ports (``NodeGUID PortNum NodeType NodeDesc``), ``Nodes``
the fabric interfaces (``FIs``) and switches; the counts beside the lists show whether the file is complete. A
host is a machine and its interfaces are its rails; names follow the rules of InfiniBand scans.

Source: element names from a public converter of the report. The element ``Rate`` (``100g``) is from one
unconfirmed sample: other values count as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ingest.formats.fabrics.infiniband import Device, Port, build_fabric
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from ingest.reading.text import load_xml
from registry.errors import InputError

DEFAULT_RATE = 12.5e9
"""Bytes/s of a link of the 100 series, the only one with this form of the report."""
MAX_PORT = 255
_KINDS = {"FI": "H", "SW": "S"}
_GUID = re.compile(r"0x([0-9a-fA-F]{1,16})")
_RATE = re.compile(r"(\d{1,4}(?:\.\d)?)g", re.IGNORECASE)


def _recognise_opareport(head: str, path: str) -> bool:
    """Return True if the text is XML whose report begins with links or nodes of a fabric."""
    begin = head.lstrip()
    return begin.startswith("<") and "<Report" in begin[:4096] and ("<LinkSummary" in head or "<FIs>" in head)


def _parse_opareport(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one report; another number of links or nodes than it states is an error."""
    (file,) = files
    root = load_xml(file)
    if root.tag != "Report":
        raise InputError(f"not a report: begins with <{root.tag[:40]}>", path=file.path)
    devices: dict[int, Device] = {}
    _count(root, "Nodes/FIs", "ConnectedFICount", "Node", file)
    _count(root, "Nodes/Switches", "ConnectedSwitchCount", "Node", file)
    _count(root, "LinkSummary", "LinkCount", "Link", file)
    for node in root.iterfind("Nodes/*/Node"):
        _device(node, devices, file)
    unread = 0
    for link in root.iterfind("LinkSummary/Link"):
        ends = link.findall("Port")
        if len(ends) != 2:
            raise _error("a link without two ports", link, file)
        printed = _text(link, "Rate", file, "")
        rate = _RATE.fullmatch(printed)
        unread += bool(printed) and rate is None
        value = float(rate[1]) * 1e9 / 8 if rate and float(rate[1]) else None
        _cable([_device(end, devices, file) for end in ends], ends, value, file)
    if not devices:
        raise InputError("the report contains no nodes", path=file.path)
    return build_fabric(
        list(devices.values()),
        path=file.path,
        default_rate=options.rate or DEFAULT_RATE,
        warnings=counted((unread, "link has", "links have", "an unreadable rate")),
    )


def _count(root: Element, where: str, name: str, what: str, file: SourceFile) -> None:
    """Raise `InputError` if a list has another length than the report states."""
    for part in root.iterfind(where):
        count, found = _text(part, name, file, ""), len(part.findall(what))
        if count and count != str(found):
            reason = f"{name} is {count[:20]}, but {found} are listed: the file seems truncated"
            raise InputError(reason, path=file.path, text=where)


def _device(element: Element, devices: dict[int, Device], file: SourceFile) -> Device:
    """Return the device named by a node or a port of a link; it is created on first use."""
    match = _GUID.fullmatch(_text(element, "NodeGUID", file))
    kind = _KINDS.get(_text(element, "NodeType", file))
    guid = int(match[1], 16) if match else 0
    if not guid or kind is None:
        raise _error("NodeGUID is not a GUID, or NodeType neither FI nor SW", element, file)
    name = _text(element, "NodeDesc", file, "")
    device = devices.get(guid)
    if device is None:
        device = Device(kind=kind, guid=guid, description=name, place=Place(file.path, text=name))
        devices[guid] = device
    elif (device.kind, device.description) != (kind, name):
        raise _error(f"the node is {device.description!r} elsewhere in the file", element, file)
    return device


def _cable(ends: Sequence[Device], elements: Sequence[Element], rate: float | None, file: SourceFile) -> None:
    """Add the link between two ports."""
    numbers = [_port_number(element, file) for element in elements]
    for device, number, element, peer, peer_port in zip(
        ends, numbers, elements, ends[::-1], numbers[::-1], strict=True
    ):
        if number in device.ports:
            raise _error("the port already has a link", element, file)
        place = Place(file.path, text=element.get("id", ""))
        device.ports[number] = Port(
            number=number, peer=peer.guid, peer_port=peer_port, rate=rate, place=place
        )


def _port_number(element: Element, file: SourceFile) -> int:
    number = _text(element, "PortNum", file)
    if not re.fullmatch(r"\d{1,3}", number, re.ASCII) or not 0 < int(number) <= MAX_PORT:
        raise _error("PortNum is not a port number", element, file)
    return int(number)


def _text(element: Element, name: str, file: SourceFile, default: str | None = None) -> str:
    """Return the text of a child; raise `InputError` if it is missing and has no default."""
    found = element.findtext(name)
    if found is None and default is None:
        raise _error(f"<{name}> is missing", element, file)
    return (found if found is not None else default or "").strip()


def _error(reason: str, element: Element, file: SourceFile) -> InputError:
    attributes = [f"{key}={value}" for key, value in element.attrib.items()]
    return InputError(reason, path=file.path, text=" ".join((element.tag, *attributes)))


OPAREPORT = Format(
    "opareport",
    kind="fabric",
    evidence="public",
    about="Omni-Path fabric: XML of `opareport -o topology`",
    recognise=_recognise_opareport,
    parse=_parse_opareport,
)
