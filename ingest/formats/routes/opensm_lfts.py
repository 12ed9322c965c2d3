"""``opensm-lfts.dump``: the linear forwarding tables set by the subnet manager.

One block per switch, as printed by opensm's osm_dump.c::

    Unicast lids [0-76] of switch Lid 2 guid 0x0002c90000100100 ('leaf01'):
    0x0001 001 # Channel Adapter portguid 0x0002c90000f00101: 'node0001 mlx5_0'
    76 lids dumped

The number in the last line is the highest LID, not a count of lines: LIDs without a route are ignored. A port
with LMC > 0 owns several LIDs, each with its own line. Large files are read piece by piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.routes.linear_tables import Block, Column, Dialect, read
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

_HEAD = re.compile(
    r"Unicast lids \[(?:0x0-0x([0-9a-f]{1,4})|0-(\d{1,5}))\] of switch Lid \d+ "
    r"guid 0x(?P<guid>[0-9a-fA-F]{1,16}) \('.*'\):[ \t]*$",
    re.MULTILINE,
)
_TAIL = re.compile(r"(\d{1,5}) lids dumped\s*")
_ANY_HEAD = re.compile(
    r"^Unicast lids \[.*\] of switch Lid \d+ guid 0x[0-9a-fA-F]+ \('(?!.*\n *Lid +Out )", re.MULTILINE
)


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains the heading of a switch's block without column names."""
    return _ANY_HEAD.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read the tables of all switches.

    Raises
    ------
    InputError
        An unreadable line, a block whose last line is missing (a truncated file) or has another number, a LID
        or switch listed twice, or a LID with two owners.
    """
    tables, warnings = read(files, _DIALECT)
    return Parsed(tables=tables, warnings=warnings)


def _max_lid(head: re.Match[str], text: str) -> int:
    return int(head[1], 16) if head[1] else int(head[2])


def _rows(block: Block, body: list[str]) -> tuple[int, int]:
    tail = _TAIL.fullmatch(body[-1])
    if tail is None or int(tail[1]) != block.max_lid:
        reason = f"the table does not end with '{block.max_lid} lids dumped': it seems truncated"
        raise InputError(reason, path=block.path, line=block.line + len(body) - 1, text=body[-1])
    return 1, len(body) - 1


_DIALECT = Dialect(
    head=_HEAD,
    max_lid=_max_lid,
    rows=_rows,
    lid=Column(slice(0, 6), re.compile(r"0x([0-9a-fA-F]{4})"), 16),
    port=Column(slice(6, 10), re.compile(r" (\d{3})"), 10),
    owner=Column(
        slice(10, None),
        re.compile(r"(?: #(?: [A-Za-z ]+ portguid 0x([0-9a-fA-F]{1,16}): '.*'| .*)?)?[ \t]*"),
        16,
    ),
)
