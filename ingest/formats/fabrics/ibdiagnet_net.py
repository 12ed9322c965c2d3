"""ibdiagnet's ``ibdiagnet2.net_dump``: one block per switch, one row per port, including ports that are down.

Based on public samples, not on output of the tool itself. The label of a port (``1/2``, ``sw1p1``) is printed
on the box; the number is in the column ``IB#``. A switch of four ASICs (XDR) has one block per ASIC and stays
four switches: its planes. GUIDs of neighbours occur with and without leading zeros.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from ingest.formats.fabrics.infiniband import AGGREGATION_NODE, Device, Port
from ingest.formats.fabrics.rows import Rows, lid_of, ran_at, read_lines
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains
from ingest.rates import printed_rate
from ingest.reading.source import Place, SourceFile
from registry.model.links import ACTIVE, ARMED, DISABLED, DOWN, INITIALIZE, TRAINING

TOOL = "ibdiagnet2.net_dump"
MAX_ADAPTER_PORT = 4
"""Largest number of ports of an adapter, including planes; a neighbour with a higher one is a switch."""
_COLUMNS = 13
_STATES = {"ACT": ACTIVE, "ARM": ARMED, "INI": INITIALIZE, "INIT": INITIALIZE, "DOWN": DOWN}
_PHYSICAL = {"DISABLED": DISABLED, "TRAINING": TRAINING, "LINK ERROR RECOVERY": TRAINING}
_HEAD = re.compile(r'"(.*)",([^,"]*), *(?:0x)?([0-9a-fA-F]{1,16}), *LID +(\d{1,5}) *')
_TITLE = re.compile(r"\s*#\s*:\s*IB#\s*:.*Neighbor Description\s*")
_CHIP = re.compile(r"/U\d+$")
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_BEGINS = re.compile(r'"|\s+\S+\s*(:|$)')


def _parse_ibdiagnet_net(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one dump."""
    (file,) = files
    dump = _Dump(file.path)
    warnings = read_lines(file, TOOL, dump.read, _BEGINS)
    dump.join()
    return dump.rows.build(options, warnings, observed_at=ran_at(file.lines()))


class _Dump:
    """The switches read so far."""

    def __init__(self, path: str) -> None:
        self.rows = Rows(path)
        self._switch: Device | None = None
        self._far: list[tuple[int, int, str, int]] = []

    def read(self, place: Place) -> bool:
        """Read one line; return True if it is one of the tool's."""
        line = place.text
        head = _HEAD.fullmatch(line)
        if head is not None:
            guid, lid = int(head[3], 16), lid_of(int(head[4]), place)
            if guid in self.rows.devices:
                raise place.error("the switch is already in the file")
            self._switch = self.rows.device(guid, "S", head[1], place, lid=lid)
            return True
        if _TITLE.fullmatch(line):
            return True
        cells = [cell.strip() for cell in line.split(":", _COLUMNS - 1)]
        if len(cells) != _COLUMNS or cells[2] not in _STATES or not _is_number(cells[1]):
            return False
        if self._switch is None:
            raise place.error("a port without the line of its switch")
        self._port(self._switch, cells, place)
        return True

    def _port(self, switch: Device, cells: Sequence[str], place: Place) -> None:
        """Read the row of a switch's port."""
        number, state = int(cells[1]), _STATES[cells[2]]
        if state == DOWN:
            state = _PHYSICAL.get(cells[3], DOWN)
        if state != ACTIVE:
            self.rows.note(switch, number, state, 0.0, place)
        far = _HEX.fullmatch(cells[9])
        if not cells[9] and not cells[10]:
            return
        if far is None or not _is_number(cells[10]) or not _is_number(cells[11]):
            raise place.error("the other end of the cable is unreadable")
        if len(cells[12]) < 2 or cells[12][0] != '"' or cells[12][-1] != '"':
            raise place.error("the row is incomplete: the file seems truncated")
        peer, peer_port = int(far[1], 16), int(cells[10])
        rate = printed_rate(cells[5], cells[6])
        end = Port(number=number, peer=peer, peer_port=peer_port, rate=rate, place=place)
        self.rows.plug(switch, end)
        self._far.append((switch.guid, number, cells[12][1:-1], int(cells[11])))

    def join(self) -> None:
        """Add the adapters, which have no block; raise `InputError` for a switch without one."""
        boxes: dict[tuple[int, int], set[str]] = defaultdict(set)
        for switch, number, _, lid in self._far:
            box = _CHIP.sub("", self.rows.devices[switch].description)
            boxes[self.rows.devices[switch].ports[number].peer, lid].add(box)
        for switch, number, description, lid in self._far:
            port = self.rows.devices[switch].ports[number]
            known = self.rows.devices.get(port.peer)
            if known is not None and known.kind == "S":
                continue
            # a port of an adapter has its own LID, and all its planes belong to one box
            is_switch = port.peer_port > MAX_ADAPTER_PORT or (lid and len(boxes[port.peer, lid]) > 1)
            if is_switch and AGGREGATION_NODE not in description:
                raise port.place.error("the switch at the other end has no block: the file seems truncated")
            adapter = self.rows.device(port.peer, "H", description, port.place)
            end = replace(port, number=port.peer_port, peer=switch, peer_port=number, lid=lid)
            self.rows.plug(adapter, end)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


IBDIAGNET_NET = Format(
    "ibdiagnet-net",
    kind="fabric",
    evidence="public",
    about="InfiniBand fabric: ibdiagnet2.net_dump",
    recognise=contains(r"^[ \t]*#[ \t]*:[ \t]*IB#[ \t]*:[ \t]*Sta[ \t]*:"),
    parse=_parse_ibdiagnet_net,
)
