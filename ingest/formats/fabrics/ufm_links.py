"""The list of links of NVIDIA UFM's REST interface: ``GET /ufmRest/resources/links``.

Based on public samples, not on UFM itself. Each cable is listed once. The list contains widths but no speeds,
no LIDs, and the owners of adapters only in their descriptions. The GUID of an adapter may be its own or that
of its port: both are found in another source of the same ingest. Older versions have no descriptions: the
label of a port (``dname``) then tells an adapter from a switch. Other keys, such as ``cable_info``, may be
anywhere and are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ingest.formats.fabrics.infiniband import AGGREGATION_NODE, Port
from ingest.formats.fabrics.rows import Rows
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.rates import WIDTHS
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import Place, SourceFile

LANES = tuple(str(width) for width in WIDTHS)
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
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
    guid = _HEX.fullmatch(_text(link, f"{end}_guid", spot))
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
