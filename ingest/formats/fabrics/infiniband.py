"""Devices of an InfiniBand scan, and their conversion to a `Fabric`, for all tools.

A host is a machine and its channel adapters are its rails, see `ingest.formats.fabrics.infiniband_names`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from ingest.formats.fabrics.infiniband_models import possible_rates
from ingest.formats.fabrics.infiniband_names import vertex_names
from ingest.parsed import Parsed, counted
from ingest.reading.source import Place
from registry.errors import InputError
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Bools, Fabric, Links, Ports
from registry.model.links import ACTIVE

AGGREGATION_NODE = "Aggregation Node"
"""Part of the description of a switch's in-network computing (SHARP) end point, which is no machine."""
UNCONFIGURED_LID = 0xFFFF
"""LID printed for a port that no subnet manager has configured, besides 0."""
MAX_PORT = 254
"""Highest port number of a device; 255 means no route in a forwarding table."""
NO_PLACE = Place("")
"""Location of devices that are not read from a file."""


@dataclass(slots=True, kw_only=True)
class Port:
    """One end of a cable as printed in a scan.

    Attributes
    ----------
    number : int
        Number of the port.
    peer : int
        Node GUID of the device at the other end.
    peer_port : int
        Number of the port at the other end.
    rate : float or None
        Data bytes/s; None if the scan prints none.
    lanes : int
        Width, needed if the speed is unknown; 0 if unknown.
    guid, lid, lmc : int
        GUID, LID and LMC of an adapter's or router's port; 0 if unknown or not configured.
    place : Place
        Location in the scan, for errors.
    """

    number: int
    peer: int
    peer_port: int
    rate: float | None
    lanes: int = 0
    guid: int = 0
    lid: int = 0
    lmc: int = 0
    place: Place = NO_PLACE


class PortNote(NamedTuple):
    """State of a port and its possible rate, see `registry.model.links.Ports`."""

    number: int
    state: int
    could_be: float


@dataclass(slots=True, kw_only=True)
class Device:
    """A switch, a channel adapter or a router with its ports that are up.

    Attributes
    ----------
    kind : str
        ``S``, ``H`` or ``R``, as in ``"S-0002c90000100800"``.
    guid, system_guid : int
        Node GUID and system image GUID; the latter is 0 if the scan prints none.
    description : str
        Node description.
    lid : int
        LID of a switch's port 0.
    place : Place
        Location in the scan, for errors.
    ports : dict of int to Port
        Connected ports by number.
    notes : list of PortNote
        Ports that are down or could be faster.
    anonymous : bool
        True if `guid` is not the node GUID but that of a port, since the scan prints none of adapters.
    model : int
        Id of its model, see `infiniband_models.model_of`; 0 if the scan prints none.
    """

    kind: str
    guid: int
    system_guid: int = 0
    description: str
    lid: int = 0
    place: Place = NO_PLACE
    ports: dict[int, Port] = field(default_factory=dict)
    notes: list[PortNote] = field(default_factory=list)
    anonymous: bool = False
    model: int = 0


def build_fabric(
    devices: Sequence[Device],
    *,
    path: str,
    default_rate: float,
    warnings: Sequence[str] = (),
    observed_at: datetime | None = None,
    incomplete: str = "",
) -> Parsed:
    """Return the fabric of the devices of one scan.

    Switches forward and hosts do not. A router has no ranks and forwards nothing between ports of its own
    subnet: it becomes a vertex of kind `SWITCH` that does not forward, so that its cables exist but no path
    leads through it. Aggregation nodes and links there are ignored.

    Parameters
    ----------
    devices : sequence of Device
        Devices with different GUIDs.
    path : str
        Path of the file, for errors.
    default_rate : float
        Data bytes/s of a cable of 4 lanes if neither end prints a rate.
    warnings : sequence of str
        Warnings so far; those of the fabric follow.
    incomplete : str
        Reason why there are no cables; if empty, there must be some.

    Raises
    ------
    InputError
        The two ends of a cable contradict each other, or only one is printed (a truncated file), or there are
        no cables (a scan that found only its own device).
    """
    by_guid = {device.guid: device for device in devices}
    _check_both_ends(by_guid)
    _note_possible_rates(by_guid)
    kept = [device for device in devices if device.kind != "H" or AGGREGATION_NODE not in device.description]
    if not incomplete and not any(device.ports for device in kept):
        reason = "the scan found only its own machine and no links; is the port down?"
        raise InputError(reason, path=path, line=devices[0].place.line if devices else None)
    names, claims = vertex_names(kept)
    order = sorted(set(names.values()))
    vertex = {name: index for index, name in enumerate(order)}
    vertex_of = {guid: vertex[name] for guid, name in names.items()}
    adapters, adapter_of = _adapters(kept, vertex_of)
    links, assumed, notes = _links(kept, by_guid, vertex_of, adapter_of, default_rate)
    routers = sum(device.kind == "R" for device in kept)
    notes += counted((routers, "router is", "routers are", "stored as a switch that does not forward"))
    notes += claims
    fabric = Fabric(
        names=tuple(order),
        links=links,
        adapters=adapters,
        ports=_ports(kept, vertex_of, adapter_of),
        observed_at=observed_at,
        **_vertex_columns(kept, vertex_of, len(order)),
    )
    return Parsed(fabric=fabric, assumed=assumed, incomplete=incomplete, warnings=(*warnings, *notes))


def add_second_ends(devices: Mapping[int, Device]) -> None:
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
                raise port.place.error("the device at the other end is not in the file: it seems truncated")
            if port.peer_port not in peer.ports:
                peer.ports[port.peer_port] = Port(
                    number=port.peer_port,
                    peer=device.guid,
                    peer_port=port.number,
                    rate=port.rate,
                    lanes=port.lanes,
                    place=port.place,
                )


def _check_both_ends(devices: Mapping[int, Device]) -> None:
    """Raise `InputError` unless every cable is printed at both ends and they name each other."""
    for device in devices.values():
        for port in device.ports.values():
            peer = devices.get(port.peer)
            back = peer.ports.get(port.peer_port) if peer else None
            if back is None:
                missing = "device" if peer is None else f"port {port.peer_port} of the device"
                reason = f"the {missing} at the other end is not in the file: it seems truncated"
                raise port.place.error(reason)
            if (back.peer, back.peer_port) != (device.guid, port.number):
                where = f", line {back.place.line}," if back.place.line else ""
                raise port.place.error(f"the other end of this cable{where} leads elsewhere")


def _note_possible_rates(devices: Mapping[int, Device]) -> None:
    """Note at both ends of a cable that it is slow for their models, unless the scan itself says so."""
    for device, port, could_be in possible_rates(devices):
        if all(note.number != port.number for note in device.notes):
            device.notes.append(PortNote(port.number, ACTIVE, could_be))


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
            if source == target:
                loops += 1
                continue
            printed = port.rate, by_guid[port.peer].ports[port.peer_port].rate
            rates = {rate for rate in printed if rate is not None}
            unknown += not rates
            differing += len(rates) > 1
            rate = min(rates, default=default_rate * (port.lanes or 4) / 4)
            ends = adapter_of.get(device.guid, NO_PORT), adapter_of.get(port.peer, NO_PORT)
            rows.append((source, target, rate, port.number, port.peer_port, *ends, not rates))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 8
    warnings = counted(
        (
            unknown // 2,
            "cable has",
            "cables have",
            f"no width and speed: {default_rate:g} bytes/s are assumed",
        ),
        (
            differing // 2,
            "cable has",
            "cables have",
            "different rates at their two ends: the lower one is used",
        ),
        (
            -(-loops // 2),
            "cable leads",
            "cables lead",
            "from a device back to itself or its own host: ignored",
        ),
    )
    links = Links.of(
        *columns[:3],
        source_port=columns[3],
        target_port=columns[4],
        source_adapter=columns[5],
        target_adapter=columns[6],
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
