"""Reader for all text formats of linear forwarding tables.

They have one block per switch, one line per LID and columns of fixed width; a format describes its details by
a `Dialect`. Texts are read block by block, so that large files need not fit in memory. Each number is
converted once, since the tables of a fabric repeat the same LIDs, ports and owners.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.options import Options
from ingest.parsed import Format, Parsed, contains, counted
from ingest.reading.source import DIAGNOSED, DIAGNOSTIC, Place, SourceFile
from registry.errors import InputError
from registry.model import NO_ROUTE, ForwardingTables, Guids, Int8s, Longs

MAX_LID = 0xFFFF
MAX_CELLS = 1 << 30
"""Largest number of table entries (switches times LIDs) of one ingest; each takes one byte."""
MAX_BLOCK = 1 << 26
"""Largest table of one switch, in characters, if a file is read piece by piece."""


class Column(NamedTuple):
    """Position of a number in a line: a slice of the line, and the pattern that the slice matches.

    The number is the pattern's first group, or 0 if that is empty.
    """

    place: slice
    pattern: re.Pattern[str]
    base: int


class Block(NamedTuple):
    """The table of one switch; `line` is the line of its heading, `max_lid` the highest of its LIDs.

    `body` contains its lines without the tool's diagnostics; the first is the rest of the heading. `numbers`
    are those of the lines, counted from 0 there, or empty if no line is left out.
    """

    path: str
    guid: int
    max_lid: int
    line: int
    body: list[str]
    numbers: Sequence[int] = ()

    def place(self, row: int) -> Place:
        """Return the location of a line of the body; -1 is the last line."""
        index = row % len(self.body)
        return Place(self.path, self.line + (self.numbers[index] if self.numbers else index), self.body[row])


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Details of one format of tables."""

    head: re.Pattern[str]
    """First line of a block, in multi-line mode; its group ``guid`` is the switch's GUID."""
    max_lid: Callable[[re.Match[str], str], int]
    """Returns the highest LID of a block from the match of its heading and the text after it, or -1 if the
    table is incomplete.
    """
    rows: Callable[[Block], tuple[int, int]]
    """Returns the range of a block's lines that are rows of the table (the rest of the heading is line 0);
    raises `InputError` if the block is truncated.
    """
    lid: Column
    port: Column
    owner: Column
    """Columns of a row."""
    dead: str = ""
    """Text in the lines of LIDs without a route; empty if such LIDs have no lines."""
    same_lids: bool = False
    """True if every block has the same highest LID, so that one with fewer is truncated."""
    lists_owners: bool = True
    """True if the format lists the owners of LIDs."""


def parse_tables(dialect: Dialect, files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the tables of all switches; a LID with two owners is an error."""
    owner = np.zeros(MAX_LID + 1, np.uint64)
    reader, tables, cells, diagnostics = _Reader(dialect), list[_Table](), 0, 0
    for file in files:
        for block, others in _blocks(file, dialect):
            diagnostics += others
            cells += block.max_lid + 1
            if cells > MAX_CELLS:
                raise InputError(f"more than {MAX_CELLS} table entries", path=file.path, line=block.line)
            ports = np.full(block.max_lid + 1, NO_ROUTE, np.uint8)
            reader.read(block, ports, owner)
            tables.append(_Table(block.guid, ports, block.path, block.line))
    tables.sort(key=lambda table: table.guid)
    for first, second in itertools.pairwise(tables):
        if first.guid == second.guid:
            late = max(first, second, key=lambda table: table.line)
            raise InputError("the switch has two tables", path=late.path, line=late.line)
    rows = _rows(tables, same_lids=dialect.same_lids)
    owner = owner[: rows.shape[1]]
    ownerless = int(((rows != NO_ROUTE).any(axis=0) & (owner == 0)).sum())
    warnings = counted((ownerless, "routed LID has", "routed LIDs have", "no known port"))
    if not dialect.lists_owners:
        warnings = ["the file does not list the owners of LIDs: those of the scan are used"]
    warnings += counted((diagnostics, "line is", "lines are", DIAGNOSED))
    guids = np.array([table.guid for table in tables], np.uint64)
    tables_of_all = ForwardingTables(switch_guid=guids, ports=rows, lid_guid=owner)
    return Parsed(tables=tables_of_all, warnings=tuple(warnings))


class _Table(NamedTuple):
    """The ports of one switch, and the location of its table."""

    guid: int
    ports: Int8s
    path: str
    line: int


def _rows(tables: Sequence[_Table], *, same_lids: bool) -> Int8s:
    """Return all tables as rows of one array."""
    lids = max(len(table.ports) for table in tables)
    rows = np.full((len(tables), lids), NO_ROUTE, np.uint8)
    for row, table in zip(rows, tables, strict=True):
        if same_lids and len(table.ports) != lids:
            reason = f"the table ends with LID {len(table.ports) - 1}, another's with {lids - 1}"
            raise InputError(f"{reason}: it seems truncated", path=table.path, line=table.line)
        row[: len(table.ports)] = table.ports
    return rows


class _Words(dict[str, int]):
    """Numbers by their text; raises `ValueError` if a text does not match the column's pattern."""

    def __init__(self, column: Column) -> None:
        super().__init__()
        self._pattern = column.pattern
        self._base = column.base

    def __missing__(self, text: str) -> int:
        match = self._pattern.fullmatch(text)
        if match is None:
            raise ValueError(text)
        self[text] = number = int(match[1] or "0", self._base)
        return number


def _blocks(file: SourceFile, dialect: Dialect) -> Iterator[tuple[Block, int]]:
    """Yield the block of each switch, and the number of the tool's diagnostics in it, or before the first.

    Other text before the first block is an error.
    """
    rest, line, found, before = "", 1, False, 0
    for text, last in _texts(file):
        rest += text
        # a pattern that begins with ^ would be slower than this check
        heads = [
            head for head in dialect.head.finditer(rest) if not head.start() or rest[head.start() - 1] == "\n"
        ]
        if not found and (heads or last or len(rest) > MAX_BLOCK):
            before = _check_beginning(file.path, rest, heads)
            found = True
        # the last block continues in the next piece
        ends = [head.start() for head in heads[1:]] + ([len(rest)] if last else [])
        index = 0
        for head, end in zip(heads, ends, strict=False):
            line += rest.count("\n", index, head.start())
            index = head.start()
            block, others = _block(file.path, line, head, rest[head.end() : end], dialect)
            yield block, before + others
            before = 0
        if ends:
            line += rest.count("\n", index, ends[-1])
            rest = rest[ends[-1] :]
        if len(rest) > MAX_BLOCK:
            raise InputError("the table of a switch is too long", path=file.path, line=line)


def _texts(file: SourceFile) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of the text, each with True if it is the last; lines end with a line feed."""
    if file.size_on_disk is None:
        text = file.text()
        yield text.replace("\r\n", "\n") if "\r" in text else text, True
        return
    decoder, line = codecs.getincrementaldecoder("utf-8-sig")(), 1
    for piece in file.pieces():
        try:
            text = decoder.decode(piece)
        except UnicodeDecodeError as error:
            raise InputError("a byte is not UTF-8 text", path=file.path, line=line) from error
        if "\0" in text:
            raise InputError("the file is binary, not text", path=file.path, line=line)
        line += text.count("\n")
        # a carriage return at the end of a piece becomes a blank, its line feed follows in the next piece
        yield text.replace("\r\n", "\n").replace("\r", " "), False
    if decoder.getstate()[0]:
        raise InputError("the file ends within a character", path=file.path, line=line)
    yield "", True


def _check_beginning(path: str, text: str, heads: Sequence[re.Match[str]]) -> int:
    """Return the number of the tool's diagnostics before the first block; other text is an error."""
    count = 0
    for number, line in enumerate((text[: heads[0].start()] if heads else text).split("\n"), start=1):
        if DIAGNOSTIC.fullmatch(line):
            count += 1
        elif line.strip():
            raise InputError(
                "not the heading of a switch's table", path=path, line=number, text=line.lstrip()
            )
    if not heads:
        raise InputError("no switch's table found", path=path)
    return count


def _block(path: str, line: int, head: re.Match[str], text: str, dialect: Dialect) -> tuple[Block, int]:
    """Return a block without the tool's diagnostics, and their number."""
    body = text.rstrip().split("\n")
    numbers: list[int] = []
    if "\nib" in text or ": ib" in text or ".c:" in text:
        numbers = [number for number, row in enumerate(body) if not DIAGNOSTIC.fullmatch(row)]
    others = len(body) - len(numbers) if numbers else 0
    if others:
        body = [body[number] for number in numbers]
    max_lid = dialect.max_lid(head, "\n".join(body) if others else text)
    if max_lid > MAX_LID or max_lid < 0:
        start = "incomplete table: the LIDs do not start at 0"
        fault = start if max_lid < 0 else f"LID {max_lid} is out of range"
        raise InputError(fault, path=path, line=line, text=head[0])
    return Block(path, int(head["guid"], 16), max_lid, line, body, numbers if others else ()), others


class _Reader:
    """Converter of blocks to rows of ports; remembers the numbers of all texts."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._words = [_Words(column) for column in (dialect.lid, dialect.port, dialect.owner)]

    def read(self, block: Block, ports: Int8s, owner: Guids) -> None:
        """Fill in the ports of one switch, and the owners of LIDs."""
        body = block.body
        first, last = self._dialect.rows(block)
        where = np.arange(first, last)
        if self._dialect.dead:
            where = where[[self._dialect.dead not in body[row] for row in where]]
        lids, port, guid = self._columns(body, where, block)

        def reject(wrong: NDArray[np.bool_], reason: str) -> None:
            if wrong.any():
                raise block.place(int(where[wrong.argmax()])).error(reason)

        reject(np.r_[False, lids[1:] <= lids[:-1]][: len(lids)], "LIDs must increase from line to line")
        reject(lids > block.max_lid, f"the LID is above the table's highest, {block.max_lid}")
        reject(port >= NO_ROUTE, "the port is out of range")
        known = owner[lids]
        reject((known != 0) & (guid != 0) & (known != guid), "the LID has another owner in another table")
        ports[lids] = port
        owner[lids] = np.where(guid != 0, guid, known)

    def _columns(self, body: list[str], where: Longs, block: Block) -> tuple[Longs, Longs, Guids]:
        """Return LID, port and owner of each line."""
        rows = [body[row] for row in where.tolist()]
        lid, port, owner = self._words
        places = [column.place for column in (self._dialect.lid, self._dialect.port, self._dialect.owner)]
        try:
            return (
                np.array([lid[row[places[0]]] for row in rows], np.int64),
                np.array([port[row[places[1]]] for row in rows], np.int64),
                np.array([owner[row[places[2]]] for row in rows], np.uint64),
            )
        except ValueError:
            bad = next(row for row in where.tolist() if not self._is_row(body[row]))
            raise block.place(bad).error("not a line of a forwarding table") from None

    def _is_row(self, row: str) -> bool:
        columns = (self._dialect.lid, self._dialect.port, self._dialect.owner)
        return all(column.pattern.fullmatch(row[column.place]) for column in columns)


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
