"""``perfquery``: the counters of a port, or of several, by the LID of their device.

Blocks of ``name:....value``, the classic counters without and the extended ones with ``-x``::

    # Port extended counters: Lid 9 port 1 (CapMask: 0x1300 CapMask2: 0x0000000)
    PortSelect:......................1
    PortXmitData:....................268436680

Where a port has both, the extended ones count: they do not saturate. ``# PortRcvConCtrl counters:`` (printed
with ``--rcvcc``) are those of congestion control. Port 255 is the sum of all ports. Which device has the LID
is told by the fabric.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ingest.formats.counters.fields import ALL_PORTS, FIELDS, SPLIT, Counters, Port, counted, read_at
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import CounterSweep

_HEAD = re.compile(r"# (\w[\w ]*?) counters: (?:Lid (\d{1,5})\b.*?|.*?)\bport (\d{1,3})(?:\s*\(.*\))?\s*")
_ANY_HEAD = re.compile(r"^# (?:Port|Port extended|PortRcvConCtrl) counters: .*port \d+", re.MULTILINE)
_LINE = re.compile(r"([A-Za-z]\w*(?:\[\d+\])?):\.*(0x[0-9a-fA-F]+|\d+)\s*")
_SELECTORS = frozenset(("PortSelect", "CounterSelect", "CounterSelect2"))
_NEEDED = {"Port": "PortRcvPkts", "Port extended": "PortRcvPkts", "PortRcvConCtrl": "PortPktRcvBECN"}
"""A counter near the end of each kind of block that is kept."""
MAX_LID = 0xBFFF
"""Highest LID of a device; those above are of multicast groups."""


class _Block(NamedTuple):
    """The counters of one port of one kind."""

    kind: str
    key: Port
    line: int
    pairs: dict[str, int]


def recognise(head: str, path: str) -> bool:
    """Whether the text holds the head of a port's counters."""
    return _ANY_HEAD.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """One sweep of the counters of all ports in the files; its time is the youngest file's.

    Raises
    ------
    InputError
        A line that cannot be read, a block without LID or without counters (a file cut off), a port's
        counters of one kind listed twice, no counters at all.
    """
    ports: dict[Port, Counters] = {}
    wide: set[tuple[Port, str]] = set()
    seen: set[tuple[Port, str]] = set()
    odd: Counter[str] = Counter()
    sums = 0
    for file in files:
        for block in _blocks(file, odd):
            if (block.key, block.kind) in seen:
                raise InputError("the port's counters are listed twice", path=file.path, line=block.line)
            seen.add((block.key, block.kind))
            if block.key[2] == ALL_PORTS:
                sums += 1
                continue
            _enter(block, ports.setdefault(block.key, {}), wide)
            odd.update(name for name in block.pairs if name not in FIELDS and name not in SPLIT)
    if not ports:
        reason = "holds only sums over all ports" if sums else "holds no port counters"
        raise InputError(reason, path=files[0].path)
    warnings = [f"{sums} sum(s) over all ports of a device are left out"] if sums else []
    warnings += [f"{name}: {count} not kept" for name, count in sorted(odd.items())]
    at = max(read_at(file, options) for file in files)
    return Parsed(counters=CounterSweep.of(at, ports), warnings=tuple(warnings))


def _enter(block: _Block, counters: Counters, wide: set[tuple[Port, str]]) -> None:
    """Put a block's counters among its port's; extended ones win."""
    extended = block.kind == "Port extended"
    for name, count in block.pairs.items():
        if name not in FIELDS:
            continue
        field = FIELDS[name]
        if (block.key, field.name) not in wide:
            counters[field.name] = counted(field, count, extended=extended)
        if extended:
            wide.add((block.key, field.name))


def _blocks(file: SourceFile, odd: Counter[str]) -> list[_Block]:
    """The blocks of a file; those of kinds that are not kept are counted."""
    blocks: list[_Block] = []
    pairs: dict[str, int] | None = None
    for number, line in enumerate(file.lines(), 1):
        head = _HEAD.fullmatch(line)
        if head is not None:
            pairs = {}
            if head[1] in _NEEDED:
                blocks.append(_Block(head[1], _key(head, file.path, number), number, pairs))
            else:
                odd[f"{head[1]} counters"] += 1
        elif line.strip() and not line.startswith("#"):
            found = _LINE.fullmatch(line)
            if found is None or pairs is None:
                raise InputError("not a line of port counters", path=file.path, line=number, text=line)
            if found[1] in _SELECTORS:
                continue
            if found[1] in pairs:
                raise InputError("a counter is listed twice", path=file.path, line=number, text=line)
            pairs[found[1]] = int(found[2], 0)
    for block in blocks:
        if _NEEDED[block.kind] not in block.pairs:
            reason = f"{_NEEDED[block.kind]} is missing: the file seems cut off"
            raise InputError(reason, path=file.path, line=block.line)
    if blocks and not file.data.endswith(b"\n"):
        raise InputError("the last line has no end: the file seems cut off", path=file.path)
    return blocks


def _key(head: re.Match[str], path: str, line: int) -> Port:
    if head[2] is None:
        raise InputError("the device's LID is not told", path=path, line=line, text=head[0])
    lid, port = int(head[2]), int(head[3])
    if not 0 < lid <= MAX_LID or port > ALL_PORTS:
        raise InputError("there is no such port", path=path, line=line, text=head[0])
    return 0, lid, port
