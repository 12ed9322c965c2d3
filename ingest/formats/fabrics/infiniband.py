"""Conversion of the devices of an InfiniBand scan to a `Fabric`, for all tools.

A host is a machine and its channel adapters are its rails. Node descriptions show which adapters belong to
one machine, see `ingest.formats.fabrics.infiniband_devices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from ingest.formats.fabrics.infiniband_devices import Device, Port, vertex_names
from registry.errors import InputError
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Bools, Fabric, Links, Ports

AGGREGATION_NODE = "Aggregation Node"
"""Part of the description of a switch's in-network computing (SHARP) end point, which is no machine."""
UNCONFIGURED_LID = 0xFFFF
"""LID printed for a port that no subnet manager has configured, besides 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A fabric and warnings about its scan; `assumed` as in `ingest.parsed.Parsed`."""

    fabric: Fabric
    warnings: tuple[str, ...]
    assumed: Bools


def build_fabric(
    devices: Sequence[Device],
    *,
    path: str,
    default_rate: float,
    observed_at: datetime | None,
    links_needed: bool = True,
) -> Built:
    """Return the fabric of the devices of one scan.

    Switches forward and hosts do not. A router has no ranks and forwards nothing between ports of its own
    subnet: it becomes a vertex of kind `SWITCH` that does not forward, so that its cables exist but no path
    leads through it. Aggregation nodes and their links are ignored.

    Parameters
    ----------
    devices : sequence of Device
        Devices with different GUIDs.
    path : str
        Path of the file, for errors.
    default_rate : float
        Data bytes/s of a cable of 4 lanes if neither end prints a rate.
    observed_at : datetime or None
    links_needed : bool
        True if a device without cables is an error.

    Raises
    ------
    InputError
        The two ends of a cable contradict each other, or only one is printed (a truncated file), or there are
        no cables (a scan that found only its own device).
    """
    by_guid = {device.guid: device for device in devices}
    _check_both_ends(by_guid, path)
    kept = [device for device in devices if not _is_aggregation(device)]
    if links_needed and not any(device.ports for device in kept):
        raise InputError(
            f"the scan found only itself: {len(devices)} device(s) and no links; is the port down?",
            path=path,
            line=(devices[0].line or None) if devices else None,
        )
    names = vertex_names(kept, path)
    order = sorted(set(names.values()))
    vertex = {name: index for index, name in enumerate(order)}
    vertex_of = {guid: vertex[name] for guid, name in names.items()}
    adapters, adapter_of = _adapters(kept, vertex_of)
    links, assumed, warnings = _links(kept, by_guid, vertex_of, adapter_of, default_rate)
    routers = sum(device.kind == "R" for device in kept)
    if routers:
        warnings.append(f"{routers} router(s) are stored as switches that do not forward")
    fabric = Fabric(
        names=tuple(order),
        links=links,
        adapters=adapters,
        ports=_ports(kept, vertex_of, adapter_of),
        observed_at=observed_at,
        **_vertex_columns(kept, vertex_of, len(order)),
    )
    return Built(fabric=fabric, warnings=tuple(warnings), assumed=assumed)


def mirror(devices: Mapping[int, Device], path: str) -> None:
    """Add the second end of each cable, for scans that print a cable once.

    Raises
    ------
    InputError
        A cable leads to a device that is missing in the scan.
    """
    for device in list(devices.values()):
        for port in list(device.ports.values()):
            peer = devices.get(port.peer)
            if peer is None:
                reason = "the device at the other end is not in the file: it seems truncated"
                raise InputError(reason, path=path, line=port.line or None, text=port.text)
            if port.peer_port not in peer.ports:
                peer.ports[port.peer_port] = Port(
                    number=port.peer_port,
                    peer=device.guid,
                    peer_port=port.number,
                    rate=port.rate,
                    lanes=port.lanes,
                    line=port.line,
                    text=port.text,
                )


def _check_both_ends(devices: Mapping[int, Device], path: str) -> None:
    """Raise `InputError` unless every cable is printed at both ends and they name each other."""
    for device in devices.values():
        for port in device.ports.values():
            peer = devices.get(port.peer)
            back = peer.ports.get(port.peer_port) if peer else None
            if back is None:
                missing = "device" if peer is None else f"port {port.peer_port} of the device"
                reason = f"the {missing} at the other end is not in the file: it seems truncated"
                raise InputError(reason, path=path, line=port.line or None, text=port.text)
            if (back.peer, back.peer_port) != (device.guid, port.number):
                where = f", line {back.line}," if back.line else ""
                reason = f"the other end of this cable{where} leads elsewhere"
                raise InputError(reason, path=path, line=port.line or None, text=port.text)


def _is_aggregation(device: Device) -> bool:
    return device.kind == "H" and AGGREGATION_NODE in device.description


def _vertex_columns(devices: Sequence[Device], vertex_of: Mapping[int, int], n: int) -> dict[str, Any]:
    """Return the columns of `Fabric` with one entry per vertex."""
    kind = np.full(n, HOST, np.uint8)
    forwards = np.zeros(n, np.bool_)
    guid, lid = np.zeros(n, np.uint64), np.zeros(n, np.int32)
    for device in devices:
        if device.kind != "H":
            at = vertex_of[device.guid]
            kind[at], lid[at] = SWITCH, device.lid
            guid[at] = 0 if device.anonymous else device.guid
            forwards[at] = device.kind == "S"
    slots = (kind == HOST).astype(np.int32)
    return {"kind": kind, "slots": slots, "forwards": forwards, "guid": guid, "lid": lid}


def _adapters(devices: Sequence[Device], vertex_of: Mapping[int, int]) -> tuple[Adapters, dict[int, int]]:
    """Return the adapters by host, name and GUID, and the index of each by node GUID."""
    found = [device for device in devices if device.kind == "H"]
    found.sort(key=lambda device: (vertex_of[device.guid], device.description, device.guid))
    ports = [
        (index, device.ports[number]) for index, device in enumerate(found) for number in sorted(device.ports)
    ]
    adapters = Adapters(
        names=tuple(device.description for device in found),
        guid=np.array([0 if device.anonymous else device.guid for device in found], np.uint64),
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
) -> tuple[Links, Bools, list[str]]:
    """Return the links, which of their rates are assumed, and warnings.

    There is one row per cable and direction. If the ends of a cable print different rates, the lower one is
    used for both directions.
    """
    rows: list[tuple[int, int, float, int, int, int, int, bool]] = []
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
            rate = min(
                (rate for rate in rates if rate is not None), default=default_rate * (port.lanes or 4) / 4
            )
            ends = adapter_of.get(device.guid, NO_PORT), adapter_of.get(port.peer, NO_PORT)
            rows.append((source, target, rate, port.number, port.peer_port, *ends, not rates))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 8
    warnings = [
        f"{count} cable(s) {what}"
        for count, what in (
            (unknown // 2, f"have no width and speed: {default_rate:g} bytes/s are assumed"),
            (differing // 2, "have different rates at their two ends: the lower one is used"),
            (-(-loops // 2), "lead from a device back to itself or its own host and are ignored"),
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
    order = links.order()
    return links.take(order), np.array(columns[7], np.bool_)[order], warnings


def _ports(devices: Sequence[Device], vertex_of: Mapping[int, int], adapter_of: Mapping[int, int]) -> Ports:
    """Return the states of ports in the scan."""
    rows = [
        (vertex_of[device.guid], adapter_of.get(device.guid, NO_PORT), *note)
        for device in devices
        for note in device.notes
        if note.number not in device.ports or device.ports[note.number].peer in vertex_of
    ]
    if not rows:
        return Ports()
    vertex, adapter, number, state, could_be = (np.array(column) for column in zip(*rows, strict=True))
    return Ports(vertex=vertex, adapter=adapter, number=number, state=state, could_be=could_be)
