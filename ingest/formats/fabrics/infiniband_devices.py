"""Devices and ports of an InfiniBand fabric as its tools print them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


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
    lanes : int
        Width, of use where the speed is not told; 0 unknown.
    guid, lid, lmc : int
        Of an adapter's or router's own port; 0 unknown or not configured.
    line : int
        Line of the scan; 0 where it has none.
    text : str
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
    """What a scan tells of a port beside its cable: see `registry.model.ports.Ports`."""

    number: int
    state: int
    could_be: float


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
    notes : list of PortNote
        Of ports that are down, or could be faster.
    anonymous : bool
        `guid` only tells the device from others (the scan prints GUIDs of ports, or none of adapters).
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
