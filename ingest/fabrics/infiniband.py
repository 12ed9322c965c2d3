"""From the devices of an InfiniBand scan to a `Fabric`, whichever tool printed the scan.

A host is a machine and its channel adapters are its rails; which adapters are one machine is told by
their node descriptions, see `_host_names`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from registry.errors import InputError
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Fabric, Links, format_guid

AGGREGATION_NODE = "Aggregation Node"
"""Part of the description of a switch's in-network computing (SHARP) end point: no machine."""
UNCONFIGURED_LID = 0xFFFF
"""What a port that no subnet manager has configured may print besides 0."""
_NAMELESS = re.compile(
    r"(MT\d+|Mellanox|ConnectX\S*|InfiniHost|localhost(\.localdomain\S*)?|\(none\))(\s|$)"
    r"|(HCA-\d+|mlx\d+_\d+|mthca\d+|hfi1_\d+|qib\d+|ib\w*\d+)$"
)


@dataclass(slots=True, kw_only=True)
class Port:
    """One end of a cable as a scan printed it.

    Attributes
    ----------
    number : int
    peer : int
        Node GUID of the device at the other end.
    peer_port : int
    rate : float or None
        Data bytes/s; None where the scan prints none.
    guid, lid, lmc : int
        Of an adapter's or router's own port; 0 unknown or not configured.
    line : int
        Line of the scan.
    text : str
    """

    number: int
    peer: int
    peer_port: int
    rate: float | None
    guid: int = 0
    lid: int = 0
    lmc: int = 0
    line: int
    text: str


@dataclass(slots=True, kw_only=True)
class Device:
    """A switch, a channel adapter or a router and its ports that are up.

    Attributes
    ----------
    kind : str
        ``S``, ``H`` or ``R``, as in ``"S-0002c90000100800"``.
    guid, system_guid : int
        Node GUID and system image GUID; the latter 0 where the scan prints none.
    description : str
    lid : int
        Of a switch's port 0.
    line : int
    text : str
    ports : dict of int to Port
        By number.
    """

    kind: str
    guid: int
    system_guid: int
    description: str
    lid: int = 0
    line: int
    text: str
    ports: dict[int, Port] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A fabric and what was odd about the scan."""

    fabric: Fabric
    warnings: tuple[str, ...]


def build_fabric(
    devices: Sequence[Device], *, path: str, default_rate: float, observed_at: datetime | None
) -> Built:
    """The fabric that the devices of one scan make.

    Switches forward and hosts do not. A router hosts no ranks and carries nothing between ports of its
    own subnet: it becomes a vertex of kind `SWITCH` that does not forward, so that its cables are kept
    and no path leads through it. Aggregation nodes are left out together with their links.

    Parameters
    ----------
    devices : sequence of Device
        With different GUIDs.
    path : str
        For errors.
    default_rate : float
        Data bytes/s of a cable for which neither end prints a rate.
    observed_at : datetime or None

    Raises
    ------
    InputError
        The two ends of a cable contradict each other, or only one is printed (a file cut off), or
        there are no cables at all (a scan that found only itself).
    """
    by_guid = {device.guid: device for device in devices}
    _check_both_ends(by_guid, path)
    kept = [device for device in devices if not _is_aggregation(device)]
    if not any(device.ports for device in kept):
        raise InputError(
            f"the scan found only itself: {len(devices)} device(s) and no links; was the port down?",
            path=path,
            line=devices[0].line if devices else None,
        )
    names = _vertex_names(kept, path)
    order = sorted(set(names.values()))
    vertex = {name: index for index, name in enumerate(order)}
    vertex_of = {guid: vertex[name] for guid, name in names.items()}
    adapters, adapter_of = _adapters(kept, vertex_of)
    links, warnings = _links(kept, by_guid, vertex_of, adapter_of, default_rate)
    routers = sum(device.kind == "R" for device in kept)
    if routers:
        warnings.append(f"{routers} router(s) are kept as switches that forward nothing")
    fabric = Fabric(
        names=tuple(order),
        links=links,
        adapters=adapters,
        observed_at=observed_at,
        **_vertex_columns(kept, vertex_of, len(order)),
    )
    return Built(fabric=fabric, warnings=tuple(warnings))


def _check_both_ends(devices: Mapping[int, Device], path: str) -> None:
    """Every cable is printed at both ends, and they name each other."""
    for device in devices.values():
        for port in device.ports.values():
            peer = devices.get(port.peer)
            back = peer.ports.get(port.peer_port) if peer else None
            if back is None:
                missing = "device" if peer is None else f"port {port.peer_port} of the device"
                reason = f"the {missing} at the other end is not in the file: it seems cut off"
                raise InputError(reason, path=path, line=port.line, text=port.text)
            if (back.peer, back.peer_port) != (device.guid, port.number):
                reason = f"the other end of this cable, line {back.line}, leads elsewhere"
                raise InputError(reason, path=path, line=port.line, text=port.text)


def _is_aggregation(device: Device) -> bool:
    return device.kind == "H" and AGGREGATION_NODE in device.description


def _vertex_columns(devices: Sequence[Device], vertex_of: Mapping[int, int], n: int) -> dict[str, Any]:
    """The columns of `Fabric` that have an entry a vertex."""
    kind = np.full(n, HOST, np.uint8)
    forwards = np.zeros(n, np.bool_)
    guid, lid = np.zeros(n, np.uint64), np.zeros(n, np.int32)
    for device in devices:
        if device.kind != "H":
            at = vertex_of[device.guid]
            kind[at], guid[at], lid[at] = SWITCH, device.guid, device.lid
            forwards[at] = device.kind == "S"
    slots = (kind == HOST).astype(np.int32)
    return {"kind": kind, "slots": slots, "forwards": forwards, "guid": guid, "lid": lid}


def _vertex_names(devices: Sequence[Device], path: str) -> dict[int, str]:
    """Name of the vertex of each device, by node GUID; the adapters of a host share one."""
    names = _host_names([device for device in devices if device.kind == "H"])
    others = [device for device in devices if device.kind != "H"]
    taken = Counter(set(names.values()))
    taken.update(device.description for device in others)
    used = set(names.values())
    for device in others:
        guid = format_guid(device.guid)
        name = device.description or f"guid-{guid}"
        if taken[device.description] > 1 and device.description:
            name = f"{name} [{guid}]"
        if name in used:
            reason = f"another device is already called {name!r}"
            raise InputError(reason, path=path, line=device.line, text=device.text)
        used.add(name)
        names[device.guid] = name
    return names


def _host_names(adapters: Sequence[Device]) -> dict[int, str]:
    """Name of the host of each adapter, by node GUID.

    A host's name is the description up to the first blank. An adapter without a machine's name in its
    description (its model, its own device name, ``localhost``) belongs to the machine that has a named
    adapter with the same system image GUID; failing that, to all the nameless ones with that GUID.
    """
    named: dict[int, set[str]] = {}
    names: dict[int, str] = {}
    nameless = []
    for adapter in adapters:
        if not adapter.description or _NAMELESS.match(adapter.description):
            nameless.append(adapter)
            continue
        name = adapter.description.split(maxsplit=1)[0]
        names[adapter.guid] = name
        named.setdefault(adapter.system_guid, set()).add(name)
    for adapter in nameless:
        system = adapter.system_guid
        owners = named.get(system, set()) if system else set()
        own = f"guid-{format_guid(system or adapter.guid)}"
        names[adapter.guid] = next(iter(owners)) if len(owners) == 1 else own
    return names


def _adapters(devices: Sequence[Device], vertex_of: Mapping[int, int]) -> tuple[Adapters, dict[int, int]]:
    """The adapters by host, name and GUID, and the index of each by node GUID."""
    found = [device for device in devices if device.kind == "H"]
    found.sort(key=lambda device: (vertex_of[device.guid], device.description, device.guid))
    ports = [
        (index, device.ports[number]) for index, device in enumerate(found) for number in sorted(device.ports)
    ]
    adapters = Adapters(
        names=tuple(device.description for device in found),
        guid=np.array([device.guid for device in found], np.uint64),
        system_guid=np.array([device.system_guid for device in found], np.uint64),
        host=np.array([vertex_of[device.guid] for device in found], np.int32),
        port_adapter=np.array([index for index, _ in ports], np.int32),
        port_number=np.array([port.number for _, port in ports], np.int32),
        port_guid=np.array([port.guid for _, port in ports], np.uint64),
        port_lid=np.array([port.lid for _, port in ports], np.int32),
        port_lmc=np.array([port.lmc for _, port in ports], np.int32),
    )
    return adapters, {device.guid: index for index, device in enumerate(found)}


def _links(
    devices: Sequence[Device],
    by_guid: Mapping[int, Device],
    vertex_of: Mapping[int, int],
    adapter_of: Mapping[int, int],
    default_rate: float,
) -> tuple[Links, list[str]]:
    """A row a cable and direction; and warnings about rates and loops.

    A cable runs at one rate: where its ends print different ones, the lower is taken for both
    directions.
    """
    rows: list[tuple[int, int, float, int, int, int, int]] = []
    unknown = differing = loops = 0
    for device in devices:
        for port in device.ports.values():
            if port.peer not in vertex_of:
                continue
            source, target = vertex_of[device.guid], vertex_of[port.peer]
            rates = {port.rate, by_guid[port.peer].ports[port.peer_port].rate} - {None}
            if source == target:
                loops += 1
                continue
            unknown += not rates
            differing += len(rates) > 1
            rate = min((rate for rate in rates if rate is not None), default=default_rate)
            ends = adapter_of.get(device.guid, NO_PORT), adapter_of.get(port.peer, NO_PORT)
            rows.append((source, target, rate, port.number, port.peer_port, *ends))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    warnings = [
        f"{count} cable(s) {what}"
        for count, what in (
            (unknown // 2, f"print no width and speed: {default_rate:g} bytes/s are assumed"),
            (differing // 2, "print different rates at their two ends: the lower is taken"),
            (-(-loops // 2), "lead from a device back to itself or its own host and are left out"),
        )
        if count
    ]
    links = Links.of(
        np.array(columns[0], np.int32),
        np.array(columns[1], np.int32),
        np.array(columns[2], np.float64),
        source_port=np.array(columns[3], np.int32),
        target_port=np.array(columns[4], np.int32),
        source_adapter=np.array(columns[5], np.int32),
        target_adapter=np.array(columns[6], np.int32),
    )
    return links, warnings
