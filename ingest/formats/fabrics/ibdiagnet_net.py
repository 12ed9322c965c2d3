"""ibdiagnet's ``ibdiagnet2.net_dump``: a block a switch, one row a port, also of those that are down.

From public samples, not seen from the tool. The label of a port (``1/2``, ``sw1p1``) is on the box; the
number is in the column ``IB#``. A switch of four ASICs (XDR) has a block each and stays four switches: its
planes. GUIDs of neighbours come with and without leading zeros.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from ingest.formats.fabrics.infiniband import AGGREGATION_NODE
from ingest.formats.fabrics.infiniband_devices import Device
from ingest.formats.fabrics.rows import Rows, ran_at, read_lines
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import told_rate
from ingest.reading.source import SourceFile
from registry.model.ports import ACTIVE, ARMED, DISABLED, DOWN, INITIALIZE, TRAINING

TOOL = "ibdiagnet2.net_dump"
MAX_ADAPTER_PORT = 4
"""Ports of an adapter, planes included; a neighbour with a higher one is a switch."""
_COLUMNS = 13
_STATES = {"ACT": ACTIVE, "ARM": ARMED, "INI": INITIALIZE, "INIT": INITIALIZE, "DOWN": DOWN}
_PHYSICAL = {"DISABLED": DISABLED, "TRAINING": TRAINING, "LINK ERROR RECOVERY": TRAINING}
_HEAD = re.compile(r'"(.*)",([^,"]*), *(?:0x)?([0-9a-fA-F]{1,16}), *LID +(\d{1,5}) *')
_TITLE = re.compile(r"\s*#\s*:\s*IB#\s*:.*Neighbor Description\s*")
_CHIP = re.compile(r"/U\d+$")
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_BEGINS = re.compile(r'"|\s+\S+\s*(:|$)')
_RECOGNISED = re.compile(r"^[ \t]*#[ \t]*:[ \t]*IB#[ \t]*:[ \t]*Sta[ \t]*:", re.MULTILINE)


def recognise(head: str, path: str) -> bool:
    """Whether the text holds the line of the columns' names."""
    return _RECOGNISED.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one dump.

    Raises
    ------
    InputError
        A line that cannot be read, a cut-off file, ends of a cable that contradict each other.
    """
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

    def read(self, number: int, line: str) -> bool:
        """Take one line; whether it is one of the tool's."""
        at = number, line
        head = _HEAD.fullmatch(line)
        if head is not None:
            guid, lid = int(head[3], 16), self.rows.lid(int(head[4]), at)
            if guid in self.rows.devices:
                raise self.rows.error("the switch stands in the file already", *at)
            self._switch = self.rows.device(guid, "S", head[1], at, lid=lid)
            return True
        if _TITLE.fullmatch(line):
            return True
        cells = [cell.strip() for cell in line.split(":", _COLUMNS - 1)]
        if len(cells) != _COLUMNS or cells[2] not in _STATES or not _is_number(cells[1]):
            return False
        if self._switch is None:
            raise self.rows.error("a port without the line of its switch", *at)
        self._port(self._switch, cells, at)
        return True

    def _port(self, switch: Device, cells: Sequence[str], at: tuple[int, str]) -> None:
        number, state = int(cells[1]), _STATES[cells[2]]
        if state == DOWN:
            state = _PHYSICAL.get(cells[3], DOWN)
        if state != ACTIVE:
            self.rows.note(switch, number, state, 0.0, at)
        far = _HEX.fullmatch(cells[9])
        if not cells[9] and not cells[10]:
            return
        if far is None or not _is_number(cells[10]) or not _is_number(cells[11]):
            raise self.rows.error("the other end of the cable cannot be read", *at)
        if len(cells[12]) < 2 or cells[12][0] != '"' or cells[12][-1] != '"':
            raise self.rows.error("the row is not whole: the file seems cut off", *at)
        peer, peer_port = int(far[1], 16), int(cells[10])
        self.rows.plug(switch, number, peer, peer_port, told_rate(cells[5], cells[6]), at)
        self._far.append((switch.guid, number, cells[12][1:-1], int(cells[11])))

    def join(self) -> None:
        """Make the adapters, which have no block of their own.

        Raises
        ------
        InputError
            A switch at the other end of a cable has no block.
        """
        boxes: dict[tuple[int, int], set[str]] = defaultdict(set)
        for switch, number, _, lid in self._far:
            box = _CHIP.sub("", self.rows.devices[switch].description)
            boxes[self.rows.devices[switch].ports[number].peer, lid].add(box)
        for switch, number, description, lid in self._far:
            port = self.rows.devices[switch].ports[number]
            at = port.line, port.text
            known = self.rows.devices.get(port.peer)
            if known is not None and known.kind == "S":
                continue
            # a port of an adapter has a LID of its own, and all its planes are of one box
            is_switch = port.peer_port > MAX_ADAPTER_PORT or (lid and len(boxes[port.peer, lid]) > 1)
            if is_switch and AGGREGATION_NODE not in description:
                raise self.rows.error("the switch at the other end has no block: the file seems cut off", *at)
            adapter = self.rows.device(port.peer, "H", description, at)
            self.rows.plug(adapter, port.peer_port, switch, number, port.rate, at, lid=lid)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6
