"""What the texts of linear forwarding tables share: a block a switch, a line a LID, columns of fixed width.

A format gives a `Dialect`; `read` makes the tables. Texts are read block by block, large files without
holding them, and every number is read once: the tables of a fabric repeat the LIDs, ports and owners of one
another.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import NO_ROUTE, ForwardingTables, Guids, Int8s, Longs

MAX_LID = 0xFFFF
MAX_CELLS = 1 << 30
"""Most table entries (switches times LIDs) of one call: a bound on memory, a byte each."""


MAX_BLOCK = 1 << 26
"""Longest text of one switch's table, in characters, where a file is read piece by piece."""


class Column(NamedTuple):
    """Where a number stands in a line: the columns, and the pattern that they match as a whole.

    The number is the pattern's first group; 0 where it is empty.
    """

    place: slice
    pattern: re.Pattern[str]
    base: int


class Block(NamedTuple):
    """The table of one switch; `line` is that of its head, `max_lid` the highest of its LIDs.

    ``body`` are its lines; the first is what stands behind the head.
    """

    path: str
    guid: int
    max_lid: int
    line: int
    body: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a format writes tables.

    Attributes
    ----------
    head : pattern
        First line of a block, in multi-line mode; its group ``guid`` is the switch's.
    max_lid : callable
        Highest LID of a block, from the match of its head and the text after it; -1: not all LIDs are there.
    rows : callable
        First and last-but-one of a block's lines (the head's rest is line 0) that are rows of the table;
        raises `InputError` where the block was cut off.
    lid, port, owner : Column
    dead : str
        What stands in the lines of LIDs that lead nowhere; empty where such LIDs have no lines.
    same_lids : bool
        Every block has the same highest LID: one that has less was cut off.
    """

    head: re.Pattern[str]
    max_lid: Callable[[re.Match[str], str], int]
    rows: Callable[[Block, list[str]], tuple[int, int]]
    lid: Column
    port: Column
    owner: Column
    dead: str = ""
    same_lids: bool = False


def read(files: Sequence[SourceFile], dialect: Dialect) -> tuple[ForwardingTables, tuple[str, ...]]:
    """The tables of all files, and warnings. Large files are read piece by piece.

    Raises
    ------
    InputError
        A line that cannot be read, a block that was cut off, a LID or switch listed twice, a LID with two
        owners.
    """
    owner = np.zeros(MAX_LID + 1, np.uint64)
    reader, tables, cells = _Reader(dialect), list[_Table](), 0
    for file in files:
        for block in _blocks(file, dialect):
            cells += block.max_lid + 1
            if cells > MAX_CELLS:
                raise InputError("the tables are too many to hold", path=file.path, line=block.line)
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
    warnings = (f"{ownerless} routed LID(s) have no known port",) if ownerless else ()
    guids = np.array([table.guid for table in tables], np.uint64)
    return ForwardingTables(switch_guid=guids, ports=rows, lid_guid=owner), warnings


class _Table(NamedTuple):
    """The ports of one switch, and where they stand in which file."""

    guid: int
    ports: Int8s
    path: str
    line: int


def _rows(tables: Sequence[_Table], *, same_lids: bool) -> Int8s:
    """All tables, a row each, as wide as the widest."""
    lids = max(len(table.ports) for table in tables)
    rows = np.full((len(tables), lids), NO_ROUTE, np.uint8)
    for row, table in zip(rows, tables, strict=True):
        if same_lids and len(table.ports) != lids:
            reason = f"the table ends with LID {len(table.ports) - 1}, another's with {lids - 1}"
            raise InputError(f"{reason}: it seems cut off", path=table.path, line=table.line)
        row[: len(table.ports)] = table.ports
    return rows


class _Words(dict[str, int]):
    """Numbers by the text that they stand in; a text that is not of the pattern raises `ValueError`."""

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


def _blocks(file: SourceFile, dialect: Dialect) -> Iterator[Block]:
    """The block of each switch; checks that nothing but blank lines stands before the first."""
    rest, line, found = "", 1, False
    for text, last in _texts(file):
        rest += text
        heads = [head for head in dialect.head.finditer(rest) if _begins_line(rest, head.start())]
        if not found and (heads or last or len(rest) > MAX_BLOCK):
            _check_beginning(file.path, rest, heads)
            found = True
        # the last block goes on in the next piece
        ends = [head.start() for head in heads[1:]] + ([len(rest)] if last else [])
        at = 0
        for head, end in zip(heads, ends, strict=False):
            line += rest.count("\n", at, head.start())
            at = head.start()
            yield _block(file.path, line, head, rest[head.end() : end], dialect)
        if ends:
            line += rest.count("\n", at, ends[-1])
            rest = rest[ends[-1] :]
        if len(rest) > MAX_BLOCK:
            raise InputError("the table of a switch is too long", path=file.path, line=line)


def _texts(file: SourceFile) -> Iterator[tuple[str, bool]]:
    """The text piece by piece, and whether a piece is the last; lines end with a line feed."""
    if file.stream is None:
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
        # a carriage return at the end waits for its line feed: it is blank anyway where it stays alone
        yield text.replace("\r\n", "\n").replace("\r", " "), False
    if decoder.getstate()[0]:
        raise InputError("the file ends within a character", path=file.path, line=line)
    yield "", True


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _check_beginning(path: str, text: str, heads: Sequence[re.Match[str]]) -> None:
    before = text[: heads[0].start()] if heads else text
    if not heads or before.strip():
        at = len(before) - len(before.lstrip())
        shown = text[at:].split("\n", 1)[0]
        reason = "not the head line of a switch's table"
        raise InputError(reason, path=path, line=text.count("\n", 0, at) + 1, text=shown)


def _block(path: str, line: int, head: re.Match[str], text: str, dialect: Dialect) -> Block:
    max_lid = dialect.max_lid(head, text)
    if max_lid > MAX_LID or max_lid < 0:
        fault = "only a part of a table" if max_lid < 0 else f"LID {max_lid} is out of range"
        raise InputError(fault, path=path, line=line, text=head[0])
    return Block(path, int(head["guid"], 16), max_lid, line, text.rstrip().split("\n"))


class _Reader:
    """Reads tables block by block."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._words = [_Words(column) for column in (dialect.lid, dialect.port, dialect.owner)]

    def read(self, block: Block, ports: Int8s, owner: Guids) -> None:
        """Fill in the row of one switch, and the owners of LIDs."""
        body = block.body
        first, last = self._dialect.rows(block, body)
        where = np.arange(first, last)
        if self._dialect.dead:
            where = where[[self._dialect.dead not in body[at] for at in where]]
        lids, port, guid = self._columns(body, where, block)

        def refuse(wrong: NDArray[np.bool_], reason: str) -> None:
            if wrong.any():
                at = int(where[wrong.argmax()])
                raise InputError(reason, path=block.path, line=block.line + at, text=body[at])

        refuse(np.r_[False, lids[1:] <= lids[:-1]][: len(lids)], "LIDs must ascend without repeats")
        refuse(lids > block.max_lid, f"the LID is above the table's highest, {block.max_lid}")
        refuse(port >= NO_ROUTE, "the port is out of range")
        known = owner[lids]
        refuse((known != 0) & (guid != 0) & (known != guid), "the LID has another owner in another table")
        ports[lids] = port
        owner[lids] = np.where(guid != 0, guid, known)

    def _columns(self, body: list[str], where: Longs, block: Block) -> tuple[Longs, Longs, Guids]:
        """LID, port and owner of each line; their columns are as wide as the tool prints them."""
        rows = [body[at] for at in where.tolist()]
        lid, port, owner = self._words
        places = [column.place for column in (self._dialect.lid, self._dialect.port, self._dialect.owner)]
        try:
            return (
                np.array([lid[row[places[0]]] for row in rows], np.int64),
                np.array([port[row[places[1]]] for row in rows], np.int64),
                np.array([owner[row[places[2]]] for row in rows], np.uint64),
            )
        except ValueError:
            bad = next(at for at in where.tolist() if not self._is_row(body[at]))
            raise InputError(
                "not a line of a table", path=block.path, line=block.line + bad, text=body[bad]
            ) from None

    def _is_row(self, row: str) -> bool:
        columns = (self._dialect.lid, self._dialect.port, self._dialect.owner)
        return all(column.pattern.fullmatch(row[column.place]) for column in columns)
