"""Forwarding tables printed by ``dump_fts`` for all switches, or by ``ibroute`` for one.

One block per switch, as printed by ibroute.c of infiniband-diags::

    Unicast lids [0x0-0x8d] of switch Lid 11 guid 0x0002c90000100800 (leaf08):
      Lid  Out   Destination
           Port     Info
    0x0002 009 : (Channel Adapter portguid 0x0002c90000f00101: 'node0001 mlx5_0')
    0x0003 010 : (path #2 out of 2: portguid 0x0002c90000f00101)
    140 valid lids dumped

The number in the last line counts the lines. With ``-a`` the word ``valid`` is missing, and LIDs without a
route have lines, too (``illegal port``); with ``-n`` the destinations are missing. A switch addressed by its
path prints that path instead of its LID.
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
    r"Unicast lids \[0x([0-9a-f]{1,4})-0x([0-9a-f]{1,4})\] of switch .* "
    r"guid 0x(?P<guid>[0-9a-fA-F]{1,16}) \(.*\):[ \t]*$",
    re.MULTILINE,
)
_NAMES = (re.compile(r" *Lid +Out +Destination\s*"), re.compile(r" *Port +Info\s*"))
_TAIL = re.compile(r"(\d{1,5}) (?:valid )?lids dumped\s*")
_ANY_HEAD = re.compile(
    r"^Unicast lids \[0x.*\] of switch .* guid 0x[0-9a-fA-F]+ \(.*\n *Lid +Out ", re.MULTILINE
)


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains the heading of a switch's block and the column names."""
    return _ANY_HEAD.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read the tables of all switches from one or several files.

    Raises
    ------
    InputError
        An unreadable line, a block whose last line is missing (a truncated file) or has another count, an
        incomplete table, a LID or switch listed twice, or a LID with two owners.
    """
    tables, warnings = read(files, _DIALECT)
    return Parsed(tables=tables, warnings=warnings)


def _max_lid(head: re.Match[str], text: str) -> int:
    return -1 if int(head[1], 16) else int(head[2], 16)


def _rows(block: Block, body: list[str]) -> tuple[int, int]:
    for index, names in enumerate(_NAMES, 1):
        if len(body) <= index or not names.fullmatch(body[index]):
            reason = "the column names are missing"
            raise InputError(reason, path=block.path, line=block.line + min(index, len(body) - 1))
    tail = _TAIL.fullmatch(body[-1])
    count = len(body) - 4
    if tail is None or int(tail[1]) != count:
        reason = f"the table does not end with '{max(count, 0)} valid lids dumped': it seems truncated"
        raise InputError(reason, path=block.path, line=block.line + len(body) - 1, text=body[-1])
    return 3, len(body) - 1


_DIALECT = Dialect(
    head=_HEAD,
    max_lid=_max_lid,
    rows=_rows,
    lid=Column(slice(0, 6), re.compile(r"0x([0-9a-fA-F]{4})"), 16),
    port=Column(slice(6, 10), re.compile(r" (\d{3})"), 10),
    owner=Column(
        slice(10, None),
        re.compile(
            r"(?: : \((?:(?:[A-Za-z ]+|path #\d+ out of \d+:) portguid 0x([0-9a-fA-F]{1,16})(?:: '.*')?"
            r"|[a-z0-9# -]+)\))?[ \t]*"
        ),
        16,
    ),
    dead="illegal port)",
)
