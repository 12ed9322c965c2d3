"""``ibqueryerrors``: port counters of all switches and adapters of a fabric.

With ``--counters`` it prints the traffic of every port. Otherwise it prints the error counters of the ports
above its thresholds, with ``--data`` also their traffic::

    Errors for 0x2c90000100500 "leaf05"
       GUID 0x2c90000100500 port ALL: [PortXmitWait == 79691776]
       GUID 0x2c90000100500 port 10: [PortXmitWait == 41943040] [PortXmitData == 671089072 (2.500GB)]
           Link info:      5  10[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  0x0002c9000013ea00 ...

Lines of port ``ALL`` are sums. Text in parentheses is ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ingest.formats.counters.fields import ALL_PORTS, FIELDS, SPLIT, Counters, Port, counted, read_at
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import CounterSweep

_HEAD = re.compile(r'(Data Counters|Errors) for (?:0x[0-9a-fA-F]{1,16} )?".*"\s*')
_PORT = re.compile(r"\s*GUID 0x([0-9a-fA-F]{1,16}) port (ALL|\d{1,3}):(.*)")
_COUNTER = re.compile(r"\s*\[(\w+) == (\d{1,20})(?: \([\d.]+\w*\))?\]")
_ASIDE = re.compile(r"\s*(?:##.*|Link info:.*)")
_RECOGNISED = re.compile(
    r'^(?:Data Counters|Errors) for .*"[ \t\r]*\n[ \t]*GUID 0x[0-9a-fA-F]+ port (?:ALL|\d+):', re.MULTILINE
)


def recognise(head: str, path: str) -> bool:
    """Return True if the text contains the heading of a device and one of its ports."""
    return _RECOGNISED.search(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return one sweep of the counters of all listed ports.

    Raises
    ------
    InputError
        An unreadable or truncated line, a port or counter listed twice, or no port.
    """
    (file,) = files
    ports: dict[Port, Counters] = {}
    odd: Counter[str] = Counter()
    errors = False
    for number, line in enumerate(file.lines(), 1):
        if not line.strip() or _ASIDE.fullmatch(line):
            continue
        if head := _HEAD.fullmatch(line):
            errors |= head[1] == "Errors"
            continue
        found = _PORT.fullmatch(line)
        if found is None:
            raise InputError(
                "not a line of port counters: expected the output of ibqueryerrors",
                path=file.path,
                line=number,
                text=line,
            )
        if found[2] == "ALL":
            continue
        key = int(found[1], 16), 0, int(found[2])
        if not key[0] or key[2] >= ALL_PORTS:
            raise InputError("invalid GUID or port number", path=file.path, line=number, text=line)
        if key in ports:
            raise InputError("the port is listed twice", path=file.path, line=number, text=line)
        ports[key] = _counters(found[3], odd, file.path, number)
    if not ports:
        raise InputError("no port counters found", path=file.path)
    return Parsed(
        counters=(CounterSweep.of(read_at(file, options), ports),), warnings=tuple(_warnings(errors, odd))
    )


def _counters(text: str, odd: Counter[str], path: str, line: int) -> Counters:
    """Return the counters of one line; unknown ones are counted in `odd`."""
    pairs: dict[str, int] = {}
    index = 0
    while index < len(text.rstrip()):
        found = _COUNTER.match(text, index)
        if found is None:
            raise InputError("a counter is invalid or truncated", path=path, line=line, text=text[index:])
        if found[1] in pairs:
            raise InputError("a counter is listed twice", path=path, line=line, text=found[0].strip())
        pairs[found[1]] = int(found[2])
        index = found.end()
    odd.update(name for name in pairs if name not in FIELDS and name not in SPLIT)
    wide = bool(SPLIT & pairs.keys())  # only the extended counters have these
    return {
        FIELDS[name].name: counted(FIELDS[name], count, extended=wide)
        for name, count in pairs.items()
        if name in FIELDS
    }


def _warnings(errors: bool, odd: Counter[str]) -> Iterator[str]:
    if errors:
        yield "only ports with errors above the tool's thresholds are listed"
    for name, count in sorted(odd.items()):
        yield f"counter {name} of {count} port(s) is not stored"
