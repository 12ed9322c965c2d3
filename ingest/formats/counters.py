"""Port counters: what InfiniBand's tools print, and a CSV file of any other collector.

Data counters count words of 4 bytes; the wait counter counts ticks. Classic counters have few bits and
saturate: they stop at their largest value. Extended counters have 64 bits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ingest.options import Options
from ingest.parsed import Format, Parsed, contains, counted
from ingest.reading.source import DIAGNOSED, DIAGNOSTIC, Place, SourceFile
from registry import units
from registry.errors import InputError, UnknownName
from registry.model import COUNTERS, CounterSweep

WORD_BYTES = 4
LARGEST = (1 << 63) - 1
"""Largest stored value; a counter above it is marked as saturated."""

Counters = dict[str, tuple[int, bool]]
"""Value, and True if it is saturated, by the registry's name of the counter."""
Port = tuple[int, int, int]
"""GUID, LID (one of the two is 0) and port number."""


class Field(NamedTuple):
    """A counter that the tools print.

    `name` is its name in the registry, `bits` the width of the classic counter, `unit` the number of bytes,
    packets, ticks or events per count.
    """

    name: str
    bits: int
    unit: int = 1

    def value(self, count: int, *, extended: bool) -> tuple[int, bool]:
        """Return the bytes or events of a printed number, and True if the counter is saturated.

        Args:
            count: Printed number.
            extended: True if the counter is known to have 64 bits. Otherwise it is taken as a classic one: an
                extended counter shows the largest 32-bit value by chance once in four thousand million
                counts.
        """
        full = count == (1 << (64 if extended else self.bits)) - 1 or count == (1 << 64) - 1
        value = count * self.unit
        return (value, full) if value <= LARGEST else (LARGEST, True)


FIELDS: Mapping[str, Field] = {
    "PortXmitData": Field("xmit_bytes", 32, WORD_BYTES),
    "PortRcvData": Field("rcv_bytes", 32, WORD_BYTES),
    "PortXmitPkts": Field("xmit_packets", 32),
    "PortRcvPkts": Field("rcv_packets", 32),
    "PortXmitWait": Field("xmit_wait", 32),
    "PortPktRcvFECN": Field("ecn_marked", 32),
    "PortPktRcvBECN": Field("ecn_notified", 32),
    "SymbolErrorCounter": Field("symbol_errors", 16),
    "LinkErrorRecoveryCounter": Field("link_error_recoveries", 8),
    "LinkDownedCounter": Field("link_downed", 8),
    "PortRcvErrors": Field("rcv_errors", 16),
    "PortRcvRemotePhysicalErrors": Field("rcv_remote_physical_errors", 16),
    "PortRcvSwitchRelayErrors": Field("rcv_switch_relay_errors", 16),
    "PortXmitDiscards": Field("xmit_discards", 16),
    "PortXmitConstraintErrors": Field("xmit_constraint_errors", 8),
    "PortRcvConstraintErrors": Field("rcv_constraint_errors", 8),
    "LocalLinkIntegrityErrors": Field("local_link_integrity_errors", 4),
    "ExcessiveBufferOverrunErrors": Field("excessive_buffer_overruns", 4),
    "QP1Dropped": Field("qp1_dropped", 16),
    "VL15Dropped": Field("vl15_dropped", 16),
}
"""Stored counters, by the tools' names. Bits: InfiniBand Architecture Specification, volume 1, 16.1.3.5."""
SPLIT = frozenset(
    ("PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts")
)
"""Parts of the packet counters: neither stored nor reported."""
ALL_PORTS = 255
"""Port number for the sums over all ports of a device."""


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
"""``perfquery``: counters of one or several ports, identified by the LID of their device.

The output has blocks of ``name:....value``: classic counters by default, extended ones with ``-x``::

    # Port extended counters: Lid 9 port 1 (CapMask: 0x1300 CapMask2: 0x0000000)
    PortSelect:......................1
    PortXmitData:....................268436680

If a port has both, the extended ones are used, since they do not saturate. ``# PortRcvConCtrl counters:``
(printed with ``--rcvcc``) are those of congestion control. Port 255 is the sum over all ports. The fabric
maps LIDs to devices.
"""


_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
_NUMBER = re.compile(r"\d{1,19}", re.ASCII)
_KEYS = ("guid", "port")


def _recognise_counters_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments names a GUID, a port and counters."""
    for line in head.splitlines():
        if line.strip() and not line.startswith("#"):
            names = {name.strip().strip('"').lower() for name in line.split(",")}
            return set(_KEYS) <= names and bool(names & set(COUNTERS))
    return False


def _parse_counters_csv(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return one sweep of the counters of all listed ports; an unknown column is an error."""
    (file,) = files
    names: list[str] = []
    ports: dict[Port, Counters] = {}
    for place in file.places():
        if not place.text.strip() or place.text.startswith("#"):
            continue
        cells = place.cells()
        if not names:
            names = _names(cells, place)
            continue
        if len(cells) != len(names):
            raise place.error(f"{len(cells)} cells under {len(names)} columns")
        row = dict(zip(names, cells, strict=True))
        key = _csv_key(row, place)
        if key in ports:
            raise place.error("the port is listed twice")
        ports[key] = _csv_counters(row, place)
    if not ports:
        raise InputError("no port counters found", path=file.path)
    return Parsed(counters=(CounterSweep.of(options.time(file.modified_at), ports),))


def _names(cells: list[str], place: Place) -> list[str]:
    names = [cell.lower() for cell in cells]
    unknown = [name for name in names if name not in COUNTERS and name not in _KEYS]
    missing = [name for name in _KEYS if name not in names]
    if unknown or missing or len(set(names)) != len(names):
        fault = (
            UnknownName("counter", unknown[0], COUNTERS).reason if unknown else "a column name is repeated"
        )
        raise place.error(f"column {missing[0]} is missing" if missing else fault)
    return names


def _csv_key(row: dict[str, str], place: Place) -> Port:
    guid, port = _GUID.fullmatch(row["guid"]), _NUMBER.fullmatch(row["port"])
    if guid is None or port is None or not int(guid[1], 16) or int(port[0]) > 254:
        raise place.error("invalid GUID or port number")
    return int(guid[1], 16), 0, int(port[0])


def _csv_counters(row: dict[str, str], place: Place) -> Counters:
    counters: Counters = {}
    for name, cell in row.items():
        if name in _KEYS or not cell:
            continue
        if not _NUMBER.fullmatch(cell) or int(cell) > LARGEST:
            raise place.error(f"{name} is not a valid count", cell)
        counters[name] = int(cell), False
    return counters


COUNTERS_CSV = Format(
    "counters-csv",
    kind="counters",
    evidence="own",
    about="port counters of any collector: CSV with columns guid,port and counters",
    recognise=_recognise_counters_csv,
    parse=_parse_counters_csv,
)
"""Port counters of any collector: a CSV file with the columns ``guid,port`` and the registry's counters.

One row per port. The other columns are named as in `registry.model.COUNTERS`; bytes are bytes, not words. An
empty cell is an unknown counter. This format is for counters that no InfiniBand tool prints, such as the
pause frames of priority flow control.
"""


_DEVICE = re.compile(r'(Data Counters|Errors) for (?:0x[0-9a-fA-F]{1,16} )?".*"\s*')
_PORT = re.compile(r"\s*GUID 0x([0-9a-fA-F]{1,16}) port (ALL|\d{1,3}):(.*)")
_COUNTER = re.compile(r"\s*\[(\w+) == (\d{1,20})(?: \([\d.]+\w*\))?\]")
_ASIDE = re.compile(r"\s*(?:##.*|Link info:.*)")
_SUMMARY = re.compile(r"## Summary: \d+ nodes checked, \d+ bad nodes found\s*")


def _parse_ibqueryerrors(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return one sweep of the counters of all listed ports."""
    (file,) = files
    ports: dict[Port, Counters] = {}
    odd: Counter[str] = Counter()
    errors = complete = False
    diagnostics = 0
    for place in file.places():
        line = place.text
        complete |= _SUMMARY.fullmatch(line) is not None
        if not line.strip() or _ASIDE.fullmatch(line):
            continue
        if head := _DEVICE.fullmatch(line):
            errors |= head[1] == "Errors"
            continue
        if DIAGNOSTIC.fullmatch(line):
            diagnostics += 1
            continue
        found = _PORT.fullmatch(line)
        if found is None:
            raise place.error("not a line of port counters: expected the output of ibqueryerrors")
        if found[2] == "ALL":
            continue
        key = int(found[1], 16), 0, int(found[2])
        if not key[0] or key[2] >= ALL_PORTS:
            raise place.error("invalid GUID or port number")
        if key in ports:
            raise place.error("the port is listed twice")
        ports[key] = _line_counters(place._replace(text=found[3]), odd)
    if not ports and not complete:
        raise InputError("no port counters found", path=file.path)
    sweep = CounterSweep.of(options.time(file.modified_at), ports)
    sweep = replace(sweep, errors_only=errors or not ports)
    return Parsed(
        counters=(sweep,),
        warnings=(*_warnings(errors, odd), *counted((diagnostics, "line is", "lines are", DIAGNOSED))),
    )


def _line_counters(place: Place, odd: Counter[str]) -> Counters:
    """Return the counters in the rest of a line; unknown ones are counted in `odd`."""
    text = place.text
    pairs: dict[str, int] = {}
    index = 0
    while index < len(text.rstrip()):
        found = _COUNTER.match(text, index)
        if found is None:
            raise place.error("a counter is invalid or truncated", text[index:])
        if found[1] in pairs:
            raise place.error("a counter is listed twice", found[0].strip())
        pairs[found[1]] = int(found[2])
        index = found.end()
    odd.update(name for name in pairs if name not in FIELDS and name not in SPLIT)
    wide = bool(SPLIT & pairs.keys())  # only the extended counters have these
    return {
        FIELDS[name].name: FIELDS[name].value(count, extended=wide)
        for name, count in pairs.items()
        if name in FIELDS
    }


def _warnings(errors: bool, odd: Counter[str]) -> Iterator[str]:
    if errors:
        yield "only ports with errors above the tool's thresholds are listed"
    for name, count in sorted(odd.items()):
        yield f"counter {name} of {units.counted(count, 'port')} is not stored"


IBQUERYERRORS = Format(
    "ibqueryerrors",
    kind="counters",
    evidence="real",
    about="port counters: output of `ibqueryerrors` with --counters or --data",
    recognise=contains(
        rf'^(?:Data Counters|Errors) for .*"[ \t\r]*\n(?:(?:{DIAGNOSTIC.pattern})\n)*+'
        r"[ \t]*GUID 0x[0-9a-fA-F]+ port (?:ALL|\d+):"
        rf"|^{_SUMMARY.pattern}$"
    ),
    parse=_parse_ibqueryerrors,
)
"""``ibqueryerrors``: port counters of all switches and adapters of a fabric.

With ``--counters`` it prints the traffic of every port. Otherwise it prints the error counters of the ports
above its thresholds, with ``--data`` also their traffic::

    Errors for 0x2c90000100500 "leaf05"
       GUID 0x2c90000100500 port ALL: [PortXmitWait == 79691776]
       GUID 0x2c90000100500 port 10: [PortXmitWait == 41943040] [PortXmitData == 671089072 (2.500GB)]
           Link info:      5  10[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  0x0002c9000013ea00 ...

Lines of port ``ALL`` are sums. Text in parentheses is ignored. A summary ends the list; without errors
there is nothing else. The tool's own diagnostics (``2>&1``) may be between the lines; they are counted.
"""
