"""netloc's ``.ndat`` files (hwloc 1 and 2): the devices and edges of a network, and the routes between hosts.

``*-nodes.ndat`` has ``node_info`` (by physical id: a GUID, or a MAC address) and ``edge_info`` (directed
edges with ports, width and speed). ``*-log-paths.ndat`` has for each pair of hosts the edges of the actual
route: these become forwarding tables, so they must depend on the destination only. ``*-phy-paths.ndat`` has
the same structure but contains shortest paths computed by netloc; only the file's name differs,
and the latter is ignored. netloc was removed in hwloc 3.

The LID of a device is its logical id if that is a number (InfiniBand); otherwise hosts are numbered in the
order of their ids, for the tables only. A MAC address becomes an EUI-64, so that it differs from all GUIDs.
Tested with files of Inria's PlaFRIM published with netloc's tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ingest.formats.fabrics.infiniband import Device, Port, build_fabric, link_rate
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import SourceFile
from ingest.reading.text import Spot, load_json
from registry.errors import InputError
from registry.model import NO_PORT, NO_ROUTE, ForwardingTables

DEFAULT_RATE = link_rate(4, "SDR")
"""Bytes/s of an InfiniBand edge without width and speed."""
ETHERNET_RATE = 1.25e9
"""Bytes/s of an Ethernet edge without speed: 10 Gbit/s."""
_ETHERNET = 1
_SWITCH_TYPE, _HOST_TYPE = 1, 2
_ID = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}([0-9a-f:]*)|[0-9a-f]{4}(:[0-9a-f]{4}){3}", re.ASCII)
_PHYSICAL = "phy-paths"
_HIGHEST_LID = 0xBFFF


def _recognise_netloc(head: str, path: str) -> bool:
    """Return True if the text is a JSON object with nodes or paths of netloc."""
    begin = head.lstrip()
    if not begin.startswith("{"):
        return False
    nodes = '"node_info"' in head and ('"phy_id"' in head or '"network_info"' in head)
    return nodes or re.match(r'\{\s*"path_info"\s*:', begin) is not None


def _parse_netloc(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one network, with its routes if the file of logical paths is given.

    An edge without its opposite is an error, and so are routes that are incomplete or depend on the source.
    """
    nodes: tuple[SourceFile, dict[str, Any]] | None = None
    paths: tuple[SourceFile, dict[str, Any]] | None = None
    physical = 0
    for file in files:
        content = Spot(file.path).object(load_json(file))
        if "node_info" in content:
            if nodes is not None:
                raise InputError(f"a second file of nodes, the first is {nodes[0].path}", path=file.path)
            nodes = file, content
        elif _PHYSICAL in file.path:
            physical += 1
        elif paths is not None:
            raise InputError(f"a second file of paths, the first is {paths[0].path}", path=file.path)
        else:
            paths = file, content
    if nodes is None:
        raise InputError("paths without the file of nodes: ingest both together", path=files[0].path)
    file, content = nodes
    devices = _devices(content.get("node_info"), Spot(file.path, "node_info"))
    edges = _edges(content.get("edge_info"), devices, Spot(file.path, "edge_info"))
    network = content.get("network_info")
    ethernet = isinstance(network, dict) and network.get("network_type") == _ETHERNET
    rate = options.rate or (ETHERNET_RATE if ethernet else DEFAULT_RATE)
    parsed = build_fabric(list(devices.values()), path=file.path, default_rate=rate)
    notes = counted(
        (
            physical,
            "file of physical paths, computed by netloc, is",
            "files of physical paths, computed by netloc, are",
            "ignored",
        )
    )
    tables = None
    if paths is not None:
        spot = Spot(paths[0].path, "path_info")
        tables = _tables(spot.object(paths[1].get("path_info")), devices, edges, spot)
        if tables is None:
            notes.append("the file of paths contains no routes")
    return replace(parsed, tables=tables, warnings=(*notes, *parsed.warnings))


def _devices(value: Any, spot: Spot) -> dict[str, Device]:
    """Return the devices by physical id."""
    found: dict[str, Device] = {}
    guids: set[int] = set()
    for key, one in spot.object(value).items():
        here = spot.at(key)
        node = here.object(one)
        kind = node.get("node_type")
        if kind not in (_SWITCH_TYPE, _HOST_TYPE) or isinstance(kind, bool):
            raise here.error("node_type is neither 1 (switch) nor 2 (host)")
        guid, logical = _guid(key, here), str(node.get("log_id", ""))
        if guid in guids:
            raise here.error("the id is repeated")
        guids.add(guid)
        name = str(node.get("desc", "")).strip(" '") or logical
        lid = int(logical) if re.fullmatch(r"\d{1,5}", logical, re.ASCII) else 0
        if lid > _HIGHEST_LID:
            raise here.error("log_id is not a LID")
        found[key] = Device(
            kind="S" if kind == _SWITCH_TYPE else "H",
            guid=guid,
            description=name,
            lid=lid,
            place=here.place,
        )
    return found


def _edges(value: Any, devices: Mapping[str, Device], spot: Spot) -> dict[str, tuple[str, int, str]]:
    """Return source, source port and destination of each edge by number, and add ports to the devices."""
    found: dict[str, tuple[str, int, str]] = {}
    for key, one in spot.object(value).items():
        here = spot.at(key)
        edge = here.object(one)
        ends = [here.at(name).text(edge.get(name)) for name in ("src_node_id", "dest_node_id")]
        if missing := [end for end in ends if end not in devices]:
            raise here.error("an end is missing in the nodes of the file", missing[0])
        ports = [
            here.at(name).whole(edge.get(name), NO_PORT, NO_ROUTE - 1)
            for name in ("src_port_id", "dest_port_id")
        ]
        source, target = (devices[end] for end in ends)
        if ports[0] in source.ports:
            raise here.error(f"port {ports[0]} of {ends[0]} already has an edge")
        host = source.kind == "H"
        source.ports[ports[0]] = Port(
            number=ports[0],
            peer=target.guid,
            peer_port=ports[1],
            rate=_rate(edge, here),
            guid=source.guid if host else 0,
            lid=source.lid if host else 0,
            place=here.place,
        )
        found[key] = ends[0], ports[0], ends[1]
    return found


def _rate(edge: Mapping[str, Any], spot: Spot) -> float | None:
    """Return bytes/s; None for 1 on Ethernet, which netloc prints for unknown."""
    width, speed = str(edge.get("width", "")), str(edge.get("speed", ""))
    if re.fullmatch(r"\d{1,15}", speed, re.ASCII):
        return int(speed) / 8 if int(speed) > 1 else None
    try:
        return link_rate(int(width.removesuffix("x")), speed) if speed else None
    except (KeyError, ValueError):
        raise spot.error("width and speed are not those of InfiniBand", f"{width} {speed}") from None


def _tables(
    paths: Mapping[str, Any],
    devices: Mapping[str, Device],
    edges: Mapping[str, tuple[str, int, str]],
    spot: Spot,
) -> ForwardingTables | None:
    """Return forwarding tables that follow the paths."""
    hosts = sorted(key for key, device in devices.items() if device.kind == "H")
    numbered = all(devices[key].lid for key in hosts)
    lid = {key: devices[key].lid if numbered else at for at, key in enumerate(hosts, start=1)}
    switches = sorted((key for key in devices if key not in lid), key=lambda key: devices[key].guid)
    row = {key: at for at, key in enumerate(switches)}
    ports = np.full((len(switches), max(lid.values(), default=0) + 1), NO_ROUTE, np.uint8)
    for source, routes in paths.items():
        for target, path in spot.at(source).object(routes).items():
            here = spot.at(source).at(target)
            if source not in devices or target not in lid:
                raise here.error("an end is not a host in the file of nodes")
            at = source
            for number in here.list(path):
                edge = edges.get(str(number))
                if edge is None or edge[0] != at:
                    raise here.error("is interrupted: an edge does not begin where the last one ends", number)
                if at in row:
                    before = ports[row[at], lid[target]]
                    if before not in (NO_ROUTE, edge[1]) or edge[1] < 0:
                        raise here.error("leaves a switch by another port than other routes there do", at)
                    ports[row[at], lid[target]] = edge[1]
                at = edge[2]
            if at != target:
                raise here.error("does not lead to its end")
    if not (ports != NO_ROUTE).any():
        return None
    owner = np.zeros(ports.shape[1], np.uint64)
    for key, number in lid.items():
        if owner[number]:
            raise spot.error(f"two hosts have the LID {number}")
        owner[number] = devices[key].guid
    guids = np.array([devices[key].guid for key in switches], np.uint64)
    return ForwardingTables(switch_guid=guids, ports=ports, lid_guid=owner)


def _guid(text: str, spot: Spot) -> int:
    """Return a GUID of eight bytes, or a MAC address with ff:fe in its middle."""
    digits = text.replace(":", "")
    if _ID.fullmatch(text) is None or len(digits) not in (12, 16):
        raise spot.error("is neither a GUID nor a MAC address", text)
    guid = int(digits if len(digits) == 16 else f"{digits[:6]}fffe{digits[6:]}", 16)
    if not guid:
        raise spot.error("is zero", text)
    return guid


NETLOC = Format(
    "netloc",
    kind="fabric",
    evidence="public",
    about="network with its routes: .ndat files of netloc (hwloc 1 and 2)",
    recognise=_recognise_netloc,
    parse=_parse_netloc,
    grouped=True,
)
