"""``perfquery``: counters of one or several ports, identified by the LID of their device.

The output has blocks of ``name:....value``: classic counters by default, extended ones with ``-x``::

    # Port extended counters: Lid 9 port 1 (CapMask: 0x1300 CapMask2: 0x0000000)
    PortSelect:......................1
    PortXmitData:....................268436680

If a port has both, the extended ones are used, since they do not saturate. ``# PortRcvConCtrl counters:``
(printed with ``--rcvcc``) are those of congestion control. Port 255 is the sum over all ports. The fabric
maps LIDs to devices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ingest.formats import DIAGNOSED, DIAGNOSTIC
from ingest.formats.counters.fields import ALL_PORTS, FIELDS, SPLIT, Counters, Port
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains, counted
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError
from registry.model import CounterSweep

_HEAD = re.compile(r"# (\w[\w ]*?) counters: (?:Lid (\d{1,5})\b.*?|.*?)\bport (\d{1,3})(?:\s*\(.*\))?\s*")
_LINE = re.compile(r"([A-Za-z]\w*(?:\[\d+\])?):\.*(0x[0-9a-fA-F]{1,32}|\d{1,32})\s*")
_SELECTORS = frozenset(("PortSelect", "CounterSelect", "CounterSelect2"))
_NEEDED = {"Port": "PortRcvPkts", "Port extended": "PortRcvPkts", "PortRcvConCtrl": "PortPktRcvBECN"}
"""For each supported kind of block, a counter near its end: if it is missing, the file is truncated."""
MAX_LID = 0xBFFF
"""Highest LID of a device; higher LIDs belong to multicast groups."""


class _Block(NamedTuple):
    """Counters of one kind of one port."""

    kind: str
    key: Port
    place: Place
    pairs: dict[str, int]


def _parse_perfquery(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return one sweep of the counters of all ports in the files, with the time of the youngest file."""
    ports: dict[Port, Counters] = {}
    wide: set[tuple[Port, str]] = set()
    seen: set[tuple[Port, str]] = set()
    odd: Counter[str] = Counter()
    diagnostics: Counter[str] = Counter()
    sums = 0
    for file in files:
        for block in _blocks(file, odd, diagnostics):
            if (block.key, block.kind) in seen:
                raise block.place.error("the port's counters are listed twice")
            seen.add((block.key, block.kind))
            if block.key[2] == ALL_PORTS:
                sums += 1
                continue
            _enter(block, ports.setdefault(block.key, {}), wide)
            odd.update(name for name in block.pairs if name not in FIELDS and name not in SPLIT)
    if not ports:
        reason = "only sums over all ports found" if sums else "no port counters found"
        raise InputError(reason, path=files[0].path)
    warnings = counted(
        (sums, "sum over all ports of a device is", "sums over all ports of a device are", "ignored"),
        (diagnostics[DIAGNOSED], "line is", "lines are", DIAGNOSED),
    )
    warnings += [f"{name}: {count} not stored" for name, count in sorted(odd.items())]
    time = max(options.time(file.modified_at) for file in files)
    return Parsed(counters=(CounterSweep.of(time, ports),), warnings=tuple(warnings))


def _enter(block: _Block, counters: Counters, wide: set[tuple[Port, str]]) -> None:
    """Add the counters of a block to those of its port; extended ones win."""
    extended = block.kind == "Port extended"
    for name, count in block.pairs.items():
        if name not in FIELDS:
            continue
        field = FIELDS[name]
        if (block.key, field.name) not in wide:
            counters[field.name] = field.value(count, extended=extended)
        if extended:
            wide.add((block.key, field.name))


def _blocks(file: SourceFile, odd: Counter[str], diagnostics: Counter[str]) -> list[_Block]:
    """Return the blocks of a file; unsupported kinds, and the tool's diagnostics, are counted."""
    blocks: list[_Block] = []
    pairs: dict[str, int] | None = None
    for place in file.places():
        line = place.text
        head = _HEAD.fullmatch(line)
        if head is not None:
            pairs = {}
            if head[1] in _NEEDED:
                blocks.append(_Block(head[1], _key(head, place), place, pairs))
            else:
                odd[f"{head[1]} counters"] += 1
        elif DIAGNOSTIC.fullmatch(line):
            diagnostics[DIAGNOSED] += 1
        elif line.strip() and not line.startswith("#"):
            found = _LINE.fullmatch(line)
            if found is None or pairs is None:
                raise place.error("not a line of port counters: expected the output of perfquery")
            if found[1] in _SELECTORS:
                continue
            if found[1] in pairs:
                raise place.error("a counter is listed twice")
            pairs[found[1]] = int(found[2], 16 if found[2].lower().startswith("0x") else 10)
    for block in blocks:
        if _NEEDED[block.kind] not in block.pairs:
            raise block.place.error(f"{_NEEDED[block.kind]} is missing: the file seems truncated")
    if blocks and not file.data.endswith(b"\n"):
        raise InputError("the last line has no line end: the file seems truncated", path=file.path)
    return blocks


def _key(head: re.Match[str], place: Place) -> Port:
    if head[2] is None:
        raise place.error("the LID of the device is missing")
    lid, port = int(head[2]), int(head[3])
    if not 0 < lid <= MAX_LID or port > ALL_PORTS:
        raise place.error("invalid LID or port number")
    return 0, lid, port


PERFQUERY = Format(
    "perfquery",
    kind="counters",
    evidence="real",
    about="port counters: output of `perfquery`, with or without -x",
    recognise=contains(r"^# (?:Port|Port extended|PortRcvConCtrl) counters: .*port \d+"),
    parse=_parse_perfquery,
    grouped=True,
)
