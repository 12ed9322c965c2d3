"""Devices of an InfiniBand scan, and their conversion to a `Fabric`, for all tools.

A host is a machine and its channel adapters are its rails. Node descriptions show which adapters belong to
one machine. Two machines may claim one name, such as one that was set up from a copy of the other's disk: a
machine has each of its devices' names once, so adapters with one description are in different machines.

Speeds are signalling rates of a lane. The data rate is lower due to the line code: 8b/10b up to QDR, 64b/66b
from FDR10 to EDR, and 256b/257b with forward error correction (544/514) from HDR on. Source: InfiniBand
Architecture Specification, volume 2 (the link and its speeds). Table: docs/reference/formats/infiniband.md.

A device id names a chip. Cards of one chip differ in speed, so a chip has the speed of its generation and the
lowest rate at which it is sold (or, of a switch, its ports are split). Source: PCI ids of vendor 0x15b3 and
the manufacturer's data sheets.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ingest.parsed import Parsed, counted
from ingest.reading.source import Place
from registry.errors import InputError, list_names
from registry.model import HOST, NO_PORT, SWITCH, Adapters, Bools, Fabric, Links, Ports, format_guid
from registry.model.links import ACTIVE, FAR_BELOW, MANY, NEARLY_ALL

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
    """One end of a cable as printed in a scan."""

    number: int
    """Number of the port."""
    peer: int
    """Node GUID of the device at the other end."""
    peer_port: int
    """Number of the port at the other end."""
    rate: float | None
    """Data bytes/s; None if the scan prints none."""
    lanes: int = 0
    """Width, needed if the speed is unknown; 0 if unknown."""
    guid: int = 0
    lid: int = 0
    lmc: int = 0
    """GUID, LID and LMC of an adapter's or router's port; 0 if unknown or not configured."""
    place: Place = NO_PLACE
    """Location in the scan, for errors."""


class PortNote(NamedTuple):
    """State of a port and its possible rate, see `registry.model.links.Ports`."""

    number: int
    state: int
    could_be: float


@dataclass(slots=True, kw_only=True)
class Device:
    """A switch, a channel adapter or a router with its ports that are up."""

    kind: str
    """``S``, ``H`` or ``R``, as in ``"S-0002c90000100800"``."""
    guid: int
    system_guid: int = 0
    """Node GUID and system image GUID; the latter is 0 if the scan prints none."""
    description: str
    """Node description."""
    lid: int = 0
    """LID of a switch's port 0."""
    place: Place = NO_PLACE
    """Location in the scan, for errors."""
    ports: dict[int, Port] = field(default_factory=dict)
    """Connected ports by number."""
    notes: list[PortNote] = field(default_factory=list)
    """Ports that are down or could be faster."""
    anonymous: bool = False
    """True if `guid` is not the node GUID but that of a port, since the scan prints none of adapters."""
    model: int = 0
    """Id of its model, see `model_of`; 0 if the scan prints none."""


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

    Args:
        devices: Devices with different GUIDs.
        path: Path of the file, for errors.
        default_rate: Data bytes/s of a cable of 4 lanes if neither end prints a rate.
        Warnings: Warnings so far; those of the fabric follow.
        incomplete: Reason why there are no cables; if empty, there must be some.

    Raises:
        InputError: The two ends of a cable contradict each other, or only one is printed (a truncated file),
            or there are no cables (a scan that found only its own device).
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

    Raises:
        InputError: A cable leads to a device that is missing in the scan.
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


LONGEST_DESCRIPTION = 64
"""Bytes of a node description; a longer name of a host or device is cut off."""
_NAMELESS = re.compile(
    r"(MT_?\d+|MC[XB]\d\S*|MBF\d\S*|Mellanox|NVIDIA|ConnectX\S*|BlueField\S*|InfiniHost|Intel|Omni-Path"
    r"|localhost(\.localdomain\S*)?|\(none\))(\s|$)"
    r"|(HCA-\d+|mlx\d+_\d+|mthca\d+|hfi1_\d+|qib\d+|ib\w*\d+)$"
)


def vertex_names(devices: Sequence[Device]) -> tuple[dict[int, str], list[str]]:
    """Return the name of each device's vertex by node GUID, one for all adapters of a host, and warnings."""
    hosts = [device for device in devices if device.kind == "H"]
    names = _host_names(hosts)
    warnings = _set_apart(hosts, names)
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
            raise device.place.error(f"another device already has the name {name!r}")
        used.add(name)
        names[device.guid] = name
    return names, warnings


def _set_apart(adapters: Sequence[Device], names: dict[int, str]) -> list[str]:
    """Name the machines that claim one name by a GUID, too, and return a warning for each such name."""
    claimants: dict[str, dict[int, list[Device]]] = {}
    for adapter in adapters:
        system = adapter.system_guid or adapter.guid
        claimants.setdefault(names[adapter.guid], {}).setdefault(system, []).append(adapter)
    warnings = []
    for name, systems in claimants.items():
        machine = _machines(systems)
        first = {at: system for system, at in reversed(machine.items())}
        if len(first) < 2:
            continue
        label = {at: format_guid(system) if system > 0 else f"lid{system}" for at, system in first.items()}
        for system, members in systems.items():
            names |= {adapter.guid: f"{name} [{label[machine[system]]}]" for adapter in members}
        who = list_names([label[at] for at in sorted(label)])
        warnings.append(f"{len(first)} machines claim the name {name}: each is a host of its own ({who})")
    return warnings


def _machines(systems: Mapping[int, Sequence[Device]]) -> dict[int, int]:
    """Return the machine of each system image GUID among the adapters of one name: 0, and 1 for a second one.

    A description of one word, or one that may be cut off, contains no device. Ports of different numbers may
    be of one device if the scan prints GUIDs of ports only.
    """
    counted: Counter[tuple[str, int]] = Counter()
    machine: dict[int, int] = {}
    for system, adapters in sorted(systems.items()):
        devices = {
            (adapter.description, number)
            for adapter in adapters
            for number in (adapter.ports if adapter.anonymous else (0,))
            if len(adapter.description.split()) > 1
            and len(adapter.description.encode()) < LONGEST_DESCRIPTION - 1
            and not _NAMELESS.match(adapter.description)
        }
        machine[system] = max((counted[device] for device in devices), default=0)
        counted |= Counter(dict.fromkeys(devices, machine[system] + 1))
    return machine


def _host_names(adapters: Sequence[Device]) -> dict[int, str]:
    """Return the name of each adapter's host, by node GUID.

    The name of a host is the description up to the first blank. An adapter whose description has no machine's
    name (its model, its own device name, ``localhost``) belongs to the machine of a named adapter with the
    same system image GUID, or else to one machine with all nameless adapters of that GUID.
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
        if len(owners) == 1:
            names[adapter.guid] = next(iter(owners))
        elif system or adapter.guid > 0:
            names[adapter.guid] = f"guid-{format_guid(system or adapter.guid)}"
        else:
            names[adapter.guid] = f"lid{adapter.guid}"
    return names


_8B10B = 8 / 10
_64B66B = 64 / 66
_RS544 = 514 / 544 * 256 / 257

LANE_BYTES: Mapping[str, float] = MappingProxyType(
    {
        speed: gigabaud * bits * code * 1e9 / 8
        for speed, (gigabaud, bits, code) in {
            "SDR": (2.5, 1, _8B10B),
            "DDR": (5.0, 1, _8B10B),
            "QDR": (10.0, 1, _8B10B),
            "FDR10": (10.3125, 1, _64B66B),
            "FDR": (14.0625, 1, _64B66B),
            "EDR": (25.78125, 1, _64B66B),
            "HDR": (26.5625, 2, _RS544),
            "NDR": (53.125, 2, _RS544),
            "XDR": (106.25, 2, _RS544),
        }.items()
    }
)
"""Data bytes/s of one lane in one direction by name of the speed."""
WIDTHS = (1, 2, 4, 8, 12)
"""Possible numbers of lanes of a link."""

SPEED_OF_LANE: Mapping[str, str] = MappingProxyType(
    {
        "2.5": "SDR",
        **dict.fromkeys(("5", "5.0"), "DDR"),
        **dict.fromkeys(("10", "10.0"), "QDR"),
        **dict.fromkeys(("14", "14.0625"), "FDR"),
        **dict.fromkeys(("25", "25.78125"), "EDR"),
        **dict.fromkeys(("50", "53.125"), "HDR"),
        **dict.fromkeys(("100", "106.25"), "NDR"),
        **dict.fromkeys(("200", "212.5"), "XDR"),
    }
)
"""Name of a speed by the number that tools print for a lane: Gbit/s of data, or of the signal."""


def printed_rate(lanes: str, speed: str) -> float | None:
    """Return the data bytes/s of a link from printed values; None if speed or width is unknown.

    Args:
        lanes: Number of lanes, such as ``4x``.
        speed: A key of `SPEED_OF_LANE` or a name such as ``HDR``.
    """
    digits = lanes.rstrip("xX")
    name = SPEED_OF_LANE.get(speed, speed)
    if not (digits.isascii() and digits.isdigit()) or name not in LANE_BYTES:
        return None
    return link_rate(int(digits), name) if int(digits) in WIDTHS else None


def link_rate(width: int, speed: str) -> float:
    """Return the data bytes/s of a link in each direction.

    Args:
        width: Number of lanes, one of `WIDTHS`.
        speed: Name of the speed, such as ``HDR``.

    Raises:
        KeyError: A width or speed that InfiniBand does not have.
    """
    if width not in WIDTHS:
        raise KeyError(width)
    return width * LANE_BYTES[speed]


class Model(NamedTuple):
    """Rate of four lanes of a chip's generation, and the lowest usual one of its ports, in data bytes/s."""

    best: float
    lowest: float


_FDR, _EDR, _HDR, _NDR, _XDR = (link_rate(4, speed) for speed in ("FDR", "EDR", "HDR", "NDR", "XDR"))
_QDR, _HDR100, _NDR100, _NDR200 = (
    link_rate(lanes, speed) for lanes, speed in ((4, "QDR"), (2, "HDR"), (1, "NDR"), (2, "NDR"))
)
_OF_FDR, _OF_EDR, _OF_HDR = Model(_FDR, _QDR), Model(_EDR, _FDR), Model(_HDR, min(_EDR, _HDR100))
_OF_NDR, _OF_XDR = Model(_NDR, min(_EDR, _NDR100)), Model(_XDR, _NDR200)
MODELS: Mapping[int, Model] = MappingProxyType(
    {
        **dict.fromkeys((0x1003, 0x1007, 0x1011, 0xC738), _OF_FDR),  # ConnectX-3, -3 Pro, Connect-IB, SwitchX
        **dict.fromkeys((0x1013, 0x1017, 0x1019, 0xA2D2), _OF_EDR),  # ConnectX-4, -5, -5 Ex, BlueField
        **dict.fromkeys((0xCB20, 0xCF08), _OF_EDR),  # Switch-IB, Switch-IB 2
        **dict.fromkeys((0x101B, 0xA2D6, 0xD2F0), _OF_HDR),  # ConnectX-6, BlueField-2, Quantum
        **dict.fromkeys((0x1021, 0xA2DC, 0xD2F2), _OF_NDR),  # ConnectX-7, BlueField-3, Quantum-2
        **dict.fromkeys((0x1023, 0xD2F4), _OF_XDR),  # ConnectX-8, Quantum-3
    }
)
"""Models by device id, of the vendor `VENDOR`."""
UNKNOWN = Model(0.0, 0.0)
"""Any other model: no cable is slow for it."""
VENDOR = 0x2C9
"""Vendor id that scans print for these models."""


def model_of(vendor: int, device: int) -> int:
    """Return one number for a vendor id, 0 if it is not printed, and a device id."""
    return device if vendor in (0, VENDOR) else vendor << 32 | device


def possible_rates(devices: Mapping[int, Device]) -> Iterator[tuple[Device, Port, float]]:
    """Yield each end of a slow cable, with the data bytes/s at which it could run.

    A cable is slow if it is below the lowest rate of both models, or far below nearly all other cables
    between the same two models, wherever they are, or if nearly all of these are below the speed of both.
    """
    between: dict[tuple[int, int], list[tuple[Device, Port, float]]] = defaultdict(list)
    for device in devices.values():
        for port in device.ports.values():
            peer = devices[port.peer]
            if device.model and peer.model and port.rate is not None:
                pair = min(device.model, peer.model), max(device.model, peer.model)
                between[pair].append((device, port, port.rate))
    for (one, other), ends in between.items():
        first, second = MODELS.get(one, UNKNOWN), MODELS.get(other, UNKNOWN)
        best, lowest = min(first.best, second.best), min(first.lowest, second.lowest)
        (usual, count), *_ = Counter(rate for *_, rate in ends).most_common(1)
        if count < NEARLY_ALL * len(ends):
            usual = 0.0
        all_below = len(ends) >= 2 * MANY and 0 < usual < best
        for device, port, rate in ends:
            if rate < lowest or (all_below and rate <= usual):
                yield device, port, best
            elif rate <= FAR_BELOW * usual:
                yield device, port, usual
