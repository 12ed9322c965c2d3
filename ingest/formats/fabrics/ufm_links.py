"""The list of links of NVIDIA UFM's REST interface: ``GET /ufmRest/resources/links``.

Based on public samples, not on UFM itself. Each cable is listed once. The list contains widths but no speeds,
no LIDs, and the owners of adapters only in their descriptions. The GUID of an adapter may be its own or that
of its port: both are found in another source of the same ingest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.fabrics.infiniband import AGGREGATION_NODE, Device, Port
from ingest.formats.fabrics.rows import Rows
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import WIDTHS
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import Place, SourceFile

LANES = tuple(str(width) for width in WIDTHS)
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_NUMBER = re.compile(r"[0-9]{1,4}")
_ADAPTER = re.compile(r"HCA-\d+/\d+")
_PORT_BEHIND = re.compile(r"(.+):(\d+|\S*/\d+)")
_RECOGNISED = re.compile(r'^\s*\[\s*\{[^{}\[\]]*"(source_guid|destination_guid)"\s*:')


def recognise(head: str, path: str) -> bool:
    """Return True if the text is a list whose first object has the GUID of an end."""
    return _RECOGNISED.match(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one list."""
    (file,) = files
    rows = Rows(file.path)
    for spot, link in Spot(file.path).objects(load_json(file)):
        source = _end(rows, link, "source", spot)
        target = _end(rows, link, "destination", spot)
        place = Place(file.path, text=str(link.get("name", "")))
        width = str(link.get("width", "")).lower().removesuffix("x")
        lanes = int(width) if width in LANES else 0
        for (device, number), (peer, peer_port) in ((source, target), (target, source)):
            known = device.ports.get(number)
            if known is None or (known.peer, known.peer_port) != (peer.guid, peer_port):
                end = Port(
                    number=number, peer=peer.guid, peer_port=peer_port, rate=None, lanes=lanes, place=place
                )
                rows.plug(device, end)
    return rows.build(options)


def _end(rows: Rows, link: dict[str, object], end: str, spot: Spot) -> tuple[Device, int]:
    """Return the device and port number of an end of a link."""
    guid = _HEX.fullmatch(_text(link, f"{end}_guid", spot))
    number = _text(link, f"{end}_port", spot)
    if guid is None or not _NUMBER.fullmatch(number):
        raise spot.error(f"{end}_guid or {end}_port is invalid")
    described = _text(link, f"{end}_port_node_description", spot)
    label = str(link.get(f"{end}_port_dname", ""))
    switch = _PORT_BEHIND.fullmatch(described)
    adapter = _ADAPTER.fullmatch(label) is not None or AGGREGATION_NODE in described or switch is None
    name = described if adapter or switch is None else _device(switch)
    place = Place(spot.path, text=described)
    return rows.device(int(guid[1], 16), "H" if adapter else "S", name, place), int(number)


def _device(match: re.Match[str]) -> str:
    """Return ``leaf`` for ``leaf:17``, and ``core:L12/U1`` for ``core:L12/U1/17``, a chip of a director."""
    name, behind = match.groups()
    return f"{name}:{behind.rpartition('/')[0]}" if "/" in behind else str(name)


def _text(link: dict[str, object], key: str, spot: Spot) -> str:
    value = link.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise spot.error(f"the text {key} is missing")
    return value.strip()
