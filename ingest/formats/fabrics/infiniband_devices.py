"""Devices and ports of an InfiniBand fabric as its tools print them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from registry.errors import InputError
from registry.model import format_guid

_NAMELESS = re.compile(
    r"(MT\d+|Mellanox|ConnectX\S*|InfiniHost|localhost(\.localdomain\S*)?|\(none\))(\s|$)"
    r"|(HCA-\d+|mlx\d+_\d+|mthca\d+|hfi1_\d+|qib\d+|ib\w*\d+)$"
)


def vertex_names(devices: Sequence[Device], path: str) -> dict[int, str]:
    """Return the name of each device's vertex, by node GUID; the adapters of a host share one."""
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
            reason = f"another device already has the name {name!r}"
            raise InputError(reason, path=path, line=device.line, text=device.text)
        used.add(name)
        names[device.guid] = name
    return names


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
        own = (
            f"guid-{format_guid(system or adapter.guid)}"
            if system or adapter.guid > 0
            else f"lid{adapter.guid}"
        )
        names[adapter.guid] = next(iter(owners)) if len(owners) == 1 else own
    return names


Location = tuple[int, str]
"""Number and text of a line, for errors."""


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
    line : int
        Line of the scan; 0 if it has no lines.
    text : str
        Text of that line.
    """

    number: int
    peer: int
    peer_port: int
    rate: float | None
    guid: int = 0
    lid: int = 0
    lmc: int = 0
    lanes: int = 0
    line: int
    text: str


class PortNote(NamedTuple):
    """State of a port and its possible rate, see `registry.model.ports.Ports`."""

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
    line : int
        Line of the scan; 0 if it has no lines.
    text : str
        Text of that line.
    ports : dict of int to Port
        Connected ports by number.
    notes : list of PortNote
        Ports that are down or could be faster.
    anonymous : bool
        True if `guid` is not the node GUID but that of a port, since the scan prints none of adapters.
    """

    kind: str
    guid: int
    system_guid: int
    description: str
    lid: int = 0
    line: int
    text: str
    ports: dict[int, Port] = field(default_factory=dict)
    notes: list[PortNote] = field(default_factory=list)
    anonymous: bool = False
