"""What one file of ``lldpcli -f json show neighbors details`` says: a report a neighbour of each local port.

Both shapes of the tool are read: ``json``, where a list of one is the thing itself, a device is the key
of its content and ports are keys, and ``json0``, where everything is in lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ingest.formats.fabrics.draft import Place, check_name
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import SourceFile

_SPEED = re.compile(r"(\d{1,4})(G?)base", re.IGNORECASE | re.ASCII)


class Report(NamedTuple):
    """A neighbour as one device sees it.

    Attributes
    ----------
    device : str
        Whose file it is.
    local : str
        The device's own port.
    peer, port : str
        The neighbour and its port.
    by_address : bool
        The neighbour's port is known by its MAC address only.
    chassis : str
        The neighbour's chassis id; empty unknown.
    capabilities : frozenset of str
        What the neighbour says it does: ``Bridge``, ``Router``, ``Station``, ...
    rate : float or None
        Bytes/s that the neighbour's port has negotiated.
    place : Place
    """

    device: str
    local: str
    peer: str
    port: str
    by_address: bool
    chassis: str
    capabilities: frozenset[str]
    rate: float | None
    place: Place


def read_reports(file: SourceFile, device: str) -> list[Report]:
    """The reports of one file, whose own device it does not name.

    Raises
    ------
    InputError
        No JSON, another shape, a neighbour without a name and an id, a port without an id.
    """
    root = Spot(file.path)
    lldp = root.object(load_json(file)).get("lldp")
    reports = []
    for part in lldp if isinstance(lldp, list) else [lldp]:
        spot = root.at("lldp")
        for local, value, here in _interfaces(spot.object(part).get("interface"), spot.at("interface")):
            reports.append(_report(device, local, value, here))
    return reports


def port_rate(text: str) -> float | None:
    """Bytes/s of an Ethernet port by the name of its medium, such as ``25GBaseCR``; None if it tells none."""
    match = _SPEED.match(text)
    if match is None or not int(match[1]):
        return None
    return int(match[1]) * (1e9 if match[2] else 1e6) / 8


def _interfaces(value: Any, spot: Spot) -> Iterator[tuple[str, dict[str, Any], Spot]]:
    """Name and content of each local port."""
    if value is None:
        return
    for index, one in enumerate(value if isinstance(value, list) else [value]):
        here = spot.at(index) if isinstance(value, list) else spot
        if isinstance(here.object(one).get("name"), str):
            yield one["name"], one, here
            continue
        for name, content in one.items():
            yield name, here.at(name).object(content), here.at(name)


def _report(device: str, local: str, value: dict[str, Any], spot: Spot) -> Report:
    place = Place(spot.path, text=spot.way)
    name, chassis = _chassis(_single(value.get("chassis")), spot.at("chassis"))
    port = spot.at("port").object(_single(value.get("port")))
    identity = spot.at("port").at("id").object(_single(port.get("id")))
    shown = spot.at("port").at("id").text(_plain(identity.get("value")))
    by_address = identity.get("type") == "mac"
    described = _plain(port.get("descr"))
    if by_address and isinstance(described, str) and described:
        shown, by_address = described, False
    negotiated = _single(port.get("auto-negotiation"))
    current = _plain(negotiated.get("current")) if isinstance(negotiated, dict) else None
    capabilities = chassis.get("capability", [])
    return Report(
        device=device,
        local=check_name(local, place),
        peer=check_name(name, place),
        port=check_name(shown, place),
        by_address=by_address,
        chassis=_identity(chassis),
        capabilities=frozenset(
            str(one.get("type"))
            for one in (capabilities if isinstance(capabilities, list) else [capabilities])
            if isinstance(one, dict) and one.get("enabled") is True
        ),
        rate=port_rate(current) if isinstance(current, str) else None,
        place=place,
    )


def _chassis(value: Any, spot: Spot) -> tuple[str, dict[str, Any]]:
    """Name and content of a neighbour; without a name it is called by its id."""
    found = spot.object(value)
    if "id" not in found and len(found) == 1:
        ((name, content),) = found.items()
        return name, spot.at(name).object(content)
    name = _plain(found.get("name"))
    if not isinstance(name, str) or not name:
        name = _identity(found)
    return name, found


def _identity(chassis: dict[str, Any]) -> str:
    identity = _single(chassis.get("id"))
    value = _plain(identity.get("value")) if isinstance(identity, dict) else None
    return value if isinstance(value, str) else ""


def _single(value: Any) -> Any:
    """The content of a list of one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _plain(value: Any) -> Any:
    """A value that may stand as ``[{"value": ...}]``."""
    value = _single(value)
    return value.get("value") if isinstance(value, dict) else value
