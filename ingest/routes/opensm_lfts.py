"""``opensm-lfts.dump``: the linear forwarding tables that the subnet manager has set, switch by switch.

A block a switch, as opensm's osm_dump.c prints it::

    Unicast lids [0-76] of switch Lid 2 guid 0x0002c90000100100 ('leaf01'):
    0x0001 001 # Channel Adapter portguid 0x0002c90000f00101: 'node0001 mlx5_0'
    76 lids dumped

The number in the last line is the highest LID again, not a count of lines: LIDs without a route are
left out. A port with LMC > 0 owns several LIDs, each with a line of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.source import SourceFile
from registry.errors import InputError
from registry.model import NO_ROUTE, ForwardingTables, Guids, Int8s, Longs

MAX_LID = 0xFFFF
MAX_CELLS = 1 << 30
"""Most table entries (switches times LIDs) of one file: a bound on memory, a byte each."""

_HEAD = re.compile(
    r"Unicast lids \[(?:0x0-0x([0-9a-f]{1,4})|0-(\d{1,5}))\] of switch Lid \d+ "
    r"guid 0x([0-9a-fA-F]{1,16}) \('.*'\):[ \t]*$",
    re.MULTILINE,
)
_LID = re.compile(r"0x([0-9a-fA-F]{4})")
_PORT = re.compile(r" (\d{3})")
_OWNER = re.compile(r"(?: #(?: [A-Za-z ]+ portguid 0x([0-9a-fA-F]{1,16}): '.*'| .*)?)?[ \t]*")
_TAIL = re.compile(r"(\d{1,5}) lids dumped\s*")
_ANY_HEAD = re.compile(r"^Unicast lids \[.*\] of switch Lid \d+ guid 0x[0-9a-fA-F]+ \('", re.MULTILINE)


class _Words(dict[str, int]):
    """Numbers by the text that they stand in: every table repeats the LIDs and owners of the others.

    Looking a text up that is not of the pattern raises `ValueError`.
    """

    def __init__(self, pattern: re.Pattern[str], base: int) -> None:
        super().__init__()
        self._pattern = pattern
        self._base = base

    def __missing__(self, text: str) -> int:
        match = self._pattern.fullmatch(text)
        if match is None:
            raise ValueError(text)
        self[text] = number = int(match[1] or "0", self._base)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Where the table of one switch stands in the text."""

    guid: int
    max_lid: int
    start: int
    end: int
    line: int


def recognise(head: str, path: str) -> bool:
    """Whether the text holds the head line of a switch's block."""
    return _ANY_HEAD.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read the tables of all switches.

    Raises
    ------
    InputError
        A line that cannot be read, a block without its last line (a file cut off) or with another
        number there, a LID or switch listed twice, a LID with two owners.
    """
    (file,) = files
    text = file.text()
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    blocks = _blocks(text, file.path)
    blocks.sort(key=lambda block: block.guid)
    for first, second in itertools.pairwise(blocks):
        if first.guid == second.guid:
            raise InputError("the switch has two tables", path=file.path, line=max(first.line, second.line))
    lids = max(block.max_lid for block in blocks) + 1
    if lids * len(blocks) > MAX_CELLS:
        raise InputError(f"{len(blocks)} switches times {lids} LIDs are too many to hold", path=file.path)
    ports = np.full((len(blocks), lids), NO_ROUTE, np.uint8)
    owner = np.zeros(lids, np.uint64)
    reader = _Reader(text, file.path)
    for row, block in enumerate(blocks):
        reader.read(block, ports[row], owner)
    routed = (ports != NO_ROUTE).any(axis=0)
    ownerless = int((routed & (owner == 0)).sum())
    warnings = (f"{ownerless} routed LID(s) have no known port",) if ownerless else ()
    tables = ForwardingTables(
        switch_guid=np.array([block.guid for block in blocks], np.uint64), ports=ports, lid_guid=owner
    )
    return Parsed(tables=tables, warnings=warnings)


def _blocks(text: str, path: str) -> list[_Block]:
    """The block of each switch; checks that nothing but blank lines stands before the first."""
    heads = [head for head in _HEAD.finditer(text) if not head.start() or text[head.start() - 1] == "\n"]
    before = text[: heads[0].start()] if heads else text
    if not heads or before.strip():
        at = len(before) - len(before.lstrip())
        shown = text[at:].split("\n", 1)[0]
        reason = "not the head line of a switch's table"
        raise InputError(reason, path=path, line=text.count("\n", 0, at) + 1, text=shown)
    blocks = []
    line, counted = 1, 0
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=True):
        line += text.count("\n", counted, head.start())
        counted = head.start()
        max_lid = int(head[1], 16) if head[1] else int(head[2])
        if max_lid > MAX_LID:
            raise InputError(f"LID {max_lid} is out of range", path=path, line=line, text=head[0])
        blocks.append(_Block(guid=int(head[3], 16), max_lid=max_lid, start=head.end(), end=end, line=line))
    return blocks


class _Reader:
    """Reads the tables of one file, block by block."""

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self._lids, self._ports, self._owners = _Words(_LID, 16), _Words(_PORT, 10), _Words(_OWNER, 16)

    def read(self, block: _Block, ports: Int8s, owner: Guids) -> None:
        """Fill in the row of one switch, and the owners of LIDs."""
        body = self.text[block.start : block.end].rstrip().split("\n")
        tail = _TAIL.fullmatch(body[-1])
        if tail is None or int(tail[1]) != block.max_lid:
            reason = f"the table does not end with '{block.max_lid} lids dumped': it seems cut off"
            raise InputError(reason, path=self.path, line=block.line + len(body) - 1, text=body[-1])
        lids, port, guid = self._columns(body[1:-1], block)

        def refuse(wrong: NDArray[np.bool_], reason: str) -> None:
            if wrong.any():
                at = int(wrong.argmax()) + 1
                raise InputError(reason, path=self.path, line=block.line + at, text=body[at])

        refuse(np.r_[False, lids[1:] <= lids[:-1]], "LIDs must ascend without repeats")
        refuse(lids > block.max_lid, f"the LID is above the table's highest, {block.max_lid}")
        refuse(port >= NO_ROUTE, "the port is out of range")
        known = owner[lids]
        refuse((known != 0) & (guid != 0) & (known != guid), "the LID has another owner in another table")
        ports[lids] = port
        owner[lids] = np.where(guid != 0, guid, known)

    def _columns(self, rows: list[str], block: _Block) -> tuple[Longs, Longs, Guids]:
        """LID, port and owner of each line; their columns are as wide as the tool prints them."""
        try:
            return (
                np.array([self._lids[row[:6]] for row in rows], np.int64),
                np.array([self._ports[row[6:10]] for row in rows], np.int64),
                np.array([self._owners[row[10:]] for row in rows], np.uint64),
            )
        except ValueError:
            bad = next(at for at, row in enumerate(rows) if not _is_row(row))
            where = block.line + bad + 1
            raise InputError("not a line of a table", path=self.path, line=where, text=rows[bad]) from None


def _is_row(row: str) -> bool:
    parts = (_LID, row[:6]), (_PORT, row[6:10]), (_OWNER, row[10:])
    return all(pattern.fullmatch(part) for pattern, part in parts)
