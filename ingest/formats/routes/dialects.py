"""Formats of linear forwarding tables: `OPENSM_LFTS`, `DUMP_FTS` and `FDBS`."""

from __future__ import annotations

import re
from functools import partial

from ingest.formats.routes.linear_tables import Block, Column, Dialect, parse_tables
from ingest.parsed import Format, contains

_LID = Column(slice(0, 6), re.compile(r"0x([0-9a-fA-F]{4})"), 16)
_PORT = Column(slice(6, 10), re.compile(r" (\d{3})"), 10)


def _opensm_rows(block: Block) -> tuple[int, int]:
    """Return the rows between the heading and the last line, which has the highest LID."""
    tail = re.fullmatch(r"(\d{1,5}) lids dumped\s*", block.body[-1])
    if tail is None or int(tail[1]) != block.max_lid:
        reason = f"the table does not end with '{block.max_lid} lids dumped': it seems truncated"
        raise block.place(-1).error(reason)
    return 1, len(block.body) - 1


_OPENSM_LFTS = Dialect(
    head=re.compile(
        r"Unicast lids \[(?:0x0-0x([0-9a-f]{1,4})|0-(\d{1,5}))\] of switch Lid \d+ "
        r"guid 0x(?P<guid>[0-9a-fA-F]{1,16}) \('.*'\):[ \t]*$",
        re.MULTILINE,
    ),
    max_lid=lambda head, text: int(head[1], 16) if head[1] else int(head[2]),
    rows=_opensm_rows,
    lid=_LID,
    port=_PORT,
    owner=Column(
        slice(10, None),
        re.compile(r"(?: #(?: [A-Za-z ]+ portguid 0x([0-9a-fA-F]{1,16}): '.*'| .*)?)?[ \t]*"),
        16,
    ),
)
OPENSM_LFTS = Format(
    "opensm-lfts",
    kind="tables",
    evidence="real",
    about="forwarding tables: opensm-lfts.dump of OpenSM",
    recognise=contains(r"^Unicast lids \[.*\] of switch Lid \d+ guid 0x[0-9a-fA-F]+ \('(?!.*\n *Lid +Out )"),
    parse=partial(parse_tables, _OPENSM_LFTS),
    streamed=True,
)
"""``opensm-lfts.dump``: the linear forwarding tables set by the subnet manager.

One block per switch, as printed by opensm's osm_dump.c::

    Unicast lids [0-76] of switch Lid 2 guid 0x0002c90000100100 ('leaf01'):
    0x0001 001 # Channel Adapter portguid 0x0002c90000f00101: 'node0001 mlx5_0'
    76 lids dumped

The number in the last line is the highest LID, not a count of lines: LIDs without a route are ignored. A port
with LMC > 0 owns several LIDs, each with its own line. Large files are read piece by piece.
"""


def _dump_fts_rows(block: Block) -> tuple[int, int]:
    """Return the rows between the column names and the last line, which counts them."""
    for index, names in enumerate((r" *Lid +Out +Destination\s*", r" *Port +Info\s*"), 1):
        if len(block.body) <= index or not re.fullmatch(names, block.body[index]):
            row = min(index, len(block.body) - 1)
            raise block.place(row).error("the column names are missing")
    tail = re.fullmatch(r"(\d{1,5}) (?:valid )?lids dumped\s*", block.body[-1])
    count = len(block.body) - 4
    if tail is None or int(tail[1]) != count:
        reason = f"the table does not end with '{max(count, 0)} valid lids dumped': it seems truncated"
        raise block.place(-1).error(reason)
    return 3, len(block.body) - 1


_DUMP_FTS = Dialect(
    head=re.compile(
        r"Unicast lids \[0x([0-9a-f]{1,4})-0x([0-9a-f]{1,4})\] of switch .* "
        r"guid 0x(?P<guid>[0-9a-fA-F]{1,16}) \(.*\):[ \t]*$",
        re.MULTILINE,
    ),
    max_lid=lambda head, text: -1 if int(head[1], 16) else int(head[2], 16),
    rows=_dump_fts_rows,
    lid=_LID,
    port=_PORT,
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
DUMP_FTS = Format(
    "dump-fts",
    kind="tables",
    evidence="real",
    about="forwarding tables: output of `dump_fts`, or of `ibroute` per switch",
    recognise=contains(r"^Unicast lids \[0x.*\] of switch .* guid 0x[0-9a-fA-F]+ \(.*\n *Lid +Out "),
    parse=partial(parse_tables, _DUMP_FTS),
    grouped=True,
    streamed=True,
)
"""Tables printed by ``dump_fts`` for all switches, or by ``ibroute`` for one.

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


def _fdbs_rows(block: Block) -> tuple[int, int]:
    """Return the rows after the column names; there is one for each LID."""
    count = len(block.body) - 2
    if count < 0 or not re.fullmatch(r"LID\s*: Port\s*: Hops\s*: Optimal\s*", block.body[1]):
        raise block.place(0).error("the column names are missing")
    if count != block.max_lid:
        raise block.place(-1).error(f"{count} lines for {block.max_lid} LIDs: the table seems truncated")
    return 2, len(block.body)


def _fdbs_max_lid(head: re.Match[str], text: str) -> int:
    last = re.match(r"0x([0-9a-fA-F]{4}) : ", text.rstrip().rpartition("\n")[2])
    return int(last[1], 16) if last else 0


_FDBS = Dialect(
    head=re.compile(
        r"(?:osm_ucast_mgr_)?dump_ucast_routes: Switch 0x(?P<guid>[0-9a-fA-F]{1,16})[ \t]*$", re.MULTILINE
    ),
    max_lid=_fdbs_max_lid,
    rows=_fdbs_rows,
    lid=_LID,
    port=Column(slice(6, 12), re.compile(r" : (\d{3})"), 10),
    owner=Column(slice(12, None), re.compile(r"() *: (?:\d+ *: \S.*|HOPS UNKNOWN)"), 16),
    dead=" : UNREACHABLE",
    same_lids=True,
    lists_owners=False,
)
FDBS = Format(
    "fdbs",
    kind="tables",
    evidence="real",
    about="forwarding tables: opensm.fdbs, or .fdbs of ibdiagnet",
    recognise=contains(r"^(?:osm_ucast_mgr_)?dump_ucast_routes: Switch 0x[0-9a-fA-F]+\s*\nLID"),
    parse=partial(parse_tables, _FDBS),
    streamed=True,
)
"""``opensm.fdbs`` and ibdiagnet's ``.fdbs``: tables with the number of hops to each LID.

One block per switch, as printed by opensm's osm_dump.c (``osm_ucast_mgr_dump_ucast_routes`` in old versions
and in ibdiagnet)::

    dump_ucast_routes: Switch 0x0002c90000100100
    LID    : Port : Hops : Optimal
    0x0001 : UNREACHABLE
    0x0002 : 001  : 01   : yes

Every block lists all LIDs from 1 to the highest of the fabric. The owners of LIDs are not listed.
"""
