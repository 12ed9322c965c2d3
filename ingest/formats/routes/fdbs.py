"""``opensm.fdbs`` and ibdiagnet's ``.fdbs``: forwarding tables with the number of hops to each LID.

One block per switch, as printed by opensm's osm_dump.c (``osm_ucast_mgr_dump_ucast_routes`` in old versions
and in ibdiagnet)::

    dump_ucast_routes: Switch 0x0002c90000100100
    LID    : Port : Hops : Optimal
    0x0001 : UNREACHABLE
    0x0002 : 001  : 01   : yes

Every block lists all LIDs from 1 to the highest of the fabric. The owners of LIDs are not listed.
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
    r"(?:osm_ucast_mgr_)?dump_ucast_routes: Switch 0x(?P<guid>[0-9a-fA-F]{1,16})[ \t]*$", re.MULTILINE
)
_NAMES = re.compile(r"LID\s*: Port\s*: Hops\s*: Optimal\s*")
_LAST = re.compile(r"^0x([0-9a-fA-F]{4}) : [^\n]*\s*\Z", re.MULTILINE)
_ANY_HEAD = re.compile(r"^(?:osm_ucast_mgr_)?dump_ucast_routes: Switch 0x[0-9a-fA-F]+\s*\nLID", re.MULTILINE)


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains the heading of a switch's block and the column names."""
    return _ANY_HEAD.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read the tables of all switches.

    Raises
    ------
    InputError
        An unreadable line, a block that ends before the highest LID of the others (a truncated file) or skips
        LIDs, or a LID or switch listed twice.
    """
    tables, _ = read(files, _DIALECT)
    return Parsed(
        tables=tables, warnings=("the file does not list the owners of LIDs: those of the scan are used",)
    )


def _max_lid(head: re.Match[str], text: str) -> int:
    last = _LAST.search(text)
    return int(last[1], 16) if last else 0


def _rows(block: Block, body: list[str]) -> tuple[int, int]:
    if len(body) < 2 or not _NAMES.fullmatch(body[1]):
        raise InputError("the column names are missing", path=block.path, line=block.line)
    if len(body) - 2 != block.max_lid:
        reason = f"{len(body) - 2} lines for {block.max_lid} LIDs: the table seems truncated"
        raise InputError(reason, path=block.path, line=block.line + len(body) - 1, text=body[-1])
    return 2, len(body)


_DIALECT = Dialect(
    head=_HEAD,
    max_lid=_max_lid,
    rows=_rows,
    lid=Column(slice(0, 6), re.compile(r"0x([0-9a-fA-F]{4})"), 16),
    port=Column(slice(6, 12), re.compile(r" : (\d{3})"), 10),
    owner=Column(slice(12, None), re.compile(r"() *: (?:\d+ *: \S.*|HOPS UNKNOWN)"), 16),
    dead=" : UNREACHABLE",
    same_lids=True,
)
