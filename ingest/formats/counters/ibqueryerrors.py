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

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingest.formats import DIAGNOSED, DIAGNOSTIC
from ingest.formats.counters.fields import ALL_PORTS, FIELDS, SPLIT, Counters, Port
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains, counted
from ingest.reading.source import Place, SourceFile
from registry import units
from registry.errors import InputError
from registry.model import CounterSweep

_HEAD = re.compile(r'(Data Counters|Errors) for (?:0x[0-9a-fA-F]{1,16} )?".*"\s*')
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
        if head := _HEAD.fullmatch(line):
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
        ports[key] = _counters(place._replace(text=found[3]), odd)
    if not ports and not complete:
        raise InputError("no port counters found", path=file.path)
    sweep = CounterSweep.of(options.time(file.modified_at), ports)
    sweep = replace(sweep, errors_only=errors or not ports)
    return Parsed(
        counters=(sweep,),
        warnings=(*_warnings(errors, odd), *counted((diagnostics, "line is", "lines are", DIAGNOSED))),
    )


def _counters(place: Place, odd: Counter[str]) -> Counters:
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
