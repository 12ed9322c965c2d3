"""InfiniBand reports with one row per port or node."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.fabrics.infiniband import Device, Port
from ingest.formats.fabrics.rows import GIVE_A_SCAN, Rows, lid_of, row_parser
from ingest.parsed import Format, contains
from ingest.rates import printed_rate
from ingest.reading.source import Place
from registry.model.links import ACTIVE, ARMED, DOWN, INITIALIZE

_KINDS = {"CA": "H", "SW": "S", "SWITCH": "S", "RT": "R", "ROUTER": "R"}
_STATES = {"ACT": ACTIVE, "ARM": ARMED, "INI": INITIALIZE, "DWN": DOWN, "DOWN": DOWN}
_PORT_END = r"(CA|SW|RT)\s+(\d{1,5})\s+(\d{1,3})\s+0x([0-9a-fA-F]{1,16})"
_HEX = "([0-9a-fA-F]{1,16})"
_SUBNET_END = (
    rf"\{{ (CA|SW|Rt|RT)(?:-SM)? Ports:[0-9a-fA-F]{{1,4}} SystemGUID:{_HEX} NodeGUID:{_HEX} PortGUID:{_HEX}"
    rf" VenID:\S+ DevID:\S+ Rev:\S+ \{{(.*)\}} LID:([0-9a-fA-F]{{1,4}}) PN:([0-9a-fA-F]{{1,2}}) \}}"
)


def _node(rows: Rows, match: re.Match[str], place: Place) -> None:
    """Read the row of a node."""
    guid = int(match[2], 16)
    if guid in rows.devices:
        raise place.error(f"the device is already in line {rows.devices[guid].place.line}")
    rows.device(guid, _KINDS[match[1].upper()], match[4], place, lid=lid_of(int(match[5] or 0), place))


def _port(rows: Rows, match: re.Match[str], place: Place) -> None:
    """Read the row of a port, with the other end of its cable if it has one."""
    kind, lid, number, guid = _KINDS[match[1]], int(match[2]), int(match[3]), int(match[4], 16)
    linked = match[7] is not None
    description = match[11] if linked else match[13]
    if kind == "S":
        device = rows.device(guid, kind, description, place, lid=lid_of(lid, place))
    else:
        device = rows.adapter_of_port(guid, number, description, place, kind)
    if not linked:
        rows.note(device, number, DOWN, 0.0, place)
        return
    own = {} if kind == "S" else {"guid": guid, "lid": lid}
    rate, peer, peer_port = printed_rate(match[5], match[6]), int(match[10], 16), int(match[9])
    rows.plug(device, Port(number=number, peer=peer, peer_port=peer_port, rate=rate, place=place, **own))


def _cable(rows: Rows, match: re.Match[str], place: Place) -> None:
    """Read the row of a port and of the other end of its cable; all numbers are hexadecimal."""
    width, state, speed = match.groups()[14:]
    if state not in _STATES:
        raise place.error(f"unknown state: {state}")
    near = _subnet_device(rows, match.groups()[:7], place)
    far = _subnet_device(rows, match.groups()[7:14], place)
    own = {} if near.kind == "S" else {"guid": int(match[4], 16), "lid": int(match[6], 16)}
    rate, number, peer_port = printed_rate(width, speed), int(match[7], 16), int(match[14], 16)
    rows.plug(near, Port(number=number, peer=far.guid, peer_port=peer_port, rate=rate, place=place, **own))
    if _STATES[state] != ACTIVE:
        rows.note(near, number, _STATES[state], 0.0, place)


def _subnet_device(rows: Rows, end: Sequence[str], place: Place) -> Device:
    kind, system, guid, _, description, lid, _ = end
    system_guid, lid_number = int(system, 16), lid_of(int(lid, 16), place)
    return rows.device(
        int(guid, 16), _KINDS[kind.upper()], description, place, system_guid=system_guid, lid=lid_number
    )


IBNETDISCOVER_LIST = Format(
    "ibnetdiscover-list",
    kind="fabric",
    evidence="real",
    about="InfiniBand nodes: `ibnetdiscover -l`, `ibhosts`, `ibswitches`; no links",
    recognise=contains(r"^(Ca|Switch|Rt|Router)\s*: 0x[0-9a-fA-F]+ ports \d+ "),
    parse=row_parser(
        "ibnetdiscover -l",
        row=re.compile(
            r"(Ca|Switch|Rt|Router)\s*: 0x([0-9a-fA-F]{1,16}) ports (\d{1,3})"
            r'(?: devid 0x[0-9a-fA-F]+ vendid 0x[0-9a-fA-F]+)? "(.*)"'
            r"(?: (?:base|enhanced) port 0 lid (\d{1,5}) lmc \d)?\s*"
        ),
        begins=re.compile(r"(Ca|Switch|Rt|Router)\s*(:|$)"),
        take=_node,
        incomplete=f"a list of nodes contains no links: {GIVE_A_SCAN}",
    ),
)
"""Output of ``ibnetdiscover -l``, ``ibhosts``, ``ibswitches`` and ``ibrouters``: nodes without cables."""

IBNETDISCOVER_PORTS = Format(
    "ibnetdiscover-ports",
    kind="fabric",
    evidence="real",
    about="InfiniBand ports report: output of `ibnetdiscover -p`",
    recognise=contains(rf"^{_PORT_END}\s+(\d{{1,2}}x|\?\?)\s+\S+\s+(-\s|')"),
    parse=row_parser(
        "ibnetdiscover -p",
        row=re.compile(
            rf"{_PORT_END}\s+(\d{{1,2}}x|\?\?)\s+(\S+)"
            rf"(?:\s+-\s+{_PORT_END}\s+\( '(.*)' - '(.*)' \)|\s+'(.*)')\s*"
        ),
        begins=re.compile(r"(C|CA|S|SW|R|RT)(\s|$)"),
        take=_port,
    ),
)
"""Output of ``ibnetdiscover -p``: one row per port, with both ends of its cable.

The tool prints GUIDs of ports, but neither those of adapters nor system image GUIDs. The width and speed of a
port without a cable are meaningless.
"""

OPENSM_SUBNET = Format(
    "opensm-subnet",
    kind="fabric",
    evidence="real",
    about="InfiniBand fabric from the subnet manager: opensm-subnet.lst",
    recognise=contains(r"^\{ (CA|SW|Rt|RT)(-SM)? Ports:[0-9a-fA-F]+ SystemGUID:[0-9a-fA-F]+ NodeGUID:"),
    parse=row_parser(
        "opensm-subnet.lst",
        row=re.compile(rf"{_SUBNET_END} {_SUBNET_END} PHY=(\S+) LOG=(\S+) SPD=(\S+)\s*"),
        begins=re.compile(r"\{"),
        take=_cable,
    ),
)
"""The subnet manager's ``opensm-subnet.lst``: one row per port, with both ends of its cable.

ibdm's ``.lst`` has the same format. Port numbers are hexadecimal. Names may contain braces.
"""
