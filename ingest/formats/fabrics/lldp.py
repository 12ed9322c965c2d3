"""Ethernet fabrics by LLDP: ``lldpcli -f json show neighbors details`` (or ``json0``) of many devices.

All files of one call are one fabric: each tells what its own device sees. The device itself stands
nowhere in its file; it is called by the file's name without suffixes (``leaf1`` of ``leaf1.json0.gz``),
unless its neighbours see another device on the same cable. A cable that both ends report is one cable.

* A device is a host if all of its ports that are known by name are called as Linux calls network adapters
  (``eth0``, ``ens1f0np0``, ``enp65s0``, ``ib0``), a switch if some are not (``swp1``, ``Ethernet1/1``).
  Where only MAC addresses of ports are known its capabilities decide (Bridge or Router: a switch; Station:
  a host), and then its neighbours: with one it is a host. Capabilities come second because lldpd says
  Station on a switch.
* A port's number is made of the numbers in its name, three digits each: ``swp49`` 49, ``Ethernet1/5`` 1005.
* Rates are what the ports have negotiated, the lower of both ends.

Seen from lldpd 1.0 itself.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ingest.formats.fabrics.draft import Draft, Place, check_name, unknown_rates
from ingest.formats.fabrics.lldp_json import Report, read_reports
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import NO_PORT

DEFAULT_RATE = 1.25e9
"""Bytes/s of a cable whose ports tell no speed: 10 Gbit/s."""

_ADAPTER = re.compile(r"(eth|eno|ens|enp|enx|em|ib|hsn|p\d+p)\d\w*", re.ASCII)
_SUFFIXES = re.compile(r"(\.(json0?|lldp|txt|gz|xz))+$", re.IGNORECASE)
_RECOGNISED = re.compile(r'\s*\{\s*"lldp"\s*:')
_HIGHEST_PORT = (1 << 31) - 1


class _Cable(NamedTuple):
    """A cable with the ports' names as known; empty unknown."""

    a: str
    a_port: str
    b: str
    b_port: str
    rate: float | None


def recognise(head: str, path: str) -> bool:
    """Whether it is a JSON object with the key lldp first."""
    return _RECOGNISED.match(head) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The fabric that all the files tell.

    Raises
    ------
    InputError
        A file that cannot be read, two files of one device, no neighbours at all.
    """
    reports: dict[str, list[Report]] = {}
    for file in files:
        name = _own_name(file.path)
        if name in reports:
            raise InputError(f"a second file of the device {name}", path=file.path)
        reports[name] = read_reports(file, name)
    if not any(reports.values()):
        raise InputError("no neighbours: is LLDP on at the other ends?", path=files[0].path)
    reports, said = _renamed(reports)
    cables, odd = _cables(reports)
    draft = Draft()
    path = files[0].path
    hosts = _hosts(reports, cables)
    for name in sorted({end for cable in cables for end in (cable.a, cable.b)} | set(reports)):
        (draft.host if name in hosts else draft.switch)(name, Place(path))
    for cable in cables:
        draft.cable(
            cable.a,
            cable.b,
            rate=cable.rate,
            a_port=port_number(cable.a_port),
            b_port=port_number(cable.b_port),
        )
    rate = options.rate or DEFAULT_RATE
    fabric, warnings, assumed = draft.fabric(path, default_rate=rate)
    if options.rate is None:
        warnings += unknown_rates(sum(cable.rate is None for cable in cables), rate, None)
    return Parsed(fabric=fabric, assumed=assumed, warnings=(*said, *odd, *warnings))


def port_number(name: str) -> int:
    """The numbers in a port's name, three digits each; `NO_PORT` without any, or where they do not fit."""
    parts = [int(digits) for digits in re.findall(r"\d{1,9}", name, re.ASCII)]
    number = 0
    for part in parts:
        number = number * 1000 + part
    fits = parts and max(parts) < 1000 and number <= _HIGHEST_PORT and ":" not in name
    return number if fits else NO_PORT


def _own_name(path: str) -> str:
    """What a file's name tells of its device."""
    base = posixpath.basename(path.replace("\\", "/").rsplit("!", 1)[-1])
    return check_name(_SUFFIXES.sub("", base) or base, Place(path))


def _renamed(reports: Mapping[str, list[Report]]) -> tuple[dict[str, list[Report]], list[str]]:
    """The reports with devices called as their neighbours call them; and what was renamed."""
    peers = {report.peer for own in reports.values() for report in own}
    found: dict[str, list[Report]] = {}
    said = []
    for name, own in reports.items():
        seen = {
            back.peer
            for report in own
            for back in reports.get(report.peer, ())
            if (back.local, back.port) == (report.port, report.local)
        }
        known = next(iter(seen)) if len(seen) == 1 and name not in peers else name
        if known != name and known not in reports and known not in found:
            said.append(f"the file called {name} is that of {known}, as its neighbours see it")
            own, name = [report._replace(device=known) for report in own], known
        found[name] = own
    return found, said


def _cables(reports: Mapping[str, list[Report]]) -> tuple[list[_Cable], list[str]]:
    """Each cable once, and what only one of its ends tells although the other's file is there."""
    between: dict[tuple[str, str], tuple[list[Report], list[Report]]] = {}
    for own in reports.values():
        for report in dict.fromkeys(own):
            low, high = sorted((report.device, report.peer))
            between.setdefault((low, high), ([], []))[report.device != low].append(report)
    cables: list[_Cable] = []
    lonely: list[Report] = []
    for (a, b), (of_a, of_b) in sorted(between.items()):
        pairs, rest_a, rest_b = _matched(of_a, of_b)
        cables += [_Cable(a, one.local, b, two.local, _lower(one.rate, two.rate)) for one, two in pairs]
        cables += [_Cable(a, one.local, b, _named(one), one.rate) for one in rest_a]
        cables += [_Cable(a, _named(two), b, two.local, two.rate) for two in rest_b]
        lonely += [report for report in (*rest_a, *rest_b) if report.peer in reports and a != b]
    ends = [(end, port) for a, a_port, b, b_port, _ in cables for end, port in ((a, a_port), (b, b_port))]
    several = sum(count > 1 for (_, port), count in Counter(ends).items() if port)
    said = []
    if lonely:
        first = lonely[0]
        said.append(
            f"{len(lonely)} cable(s) are reported by one end only, although the other end's file is there; "
            f"the first: {first.device} {first.local} sees {first.peer} {first.port}"
        )
    if several:
        said.append(f"{several} port(s) see several neighbours: each is taken as a cable")
    return cables, said


def _matched(
    of_a: Sequence[Report], of_b: Sequence[Report]
) -> tuple[list[tuple[Report, Report]], list[Report], list[Report]]:
    """Reports of the two ends of one cable, and those without a partner.

    Both name both ports; where a port is known by its address only, the ends are joined in order.
    """
    by_ports = {(report.port, report.local): report for report in of_b}
    pairs = []
    rest_a = []
    for report in of_a:
        partner = by_ports.pop((report.local, report.port), None)
        if partner is None:
            rest_a.append(report)
        else:
            pairs.append((report, partner))
    rest_b = list(by_ports.values())
    vague_a, vague_b = ([one for one in rest if one.by_address] for rest in (rest_a, rest_b))
    if vague_a or vague_b:
        joined = list(zip(vague_a or rest_a, vague_b or rest_b, strict=False))
        pairs += joined
        taken = {id(report) for pair in joined for report in pair}
        rest_a = [report for report in rest_a if id(report) not in taken]
        rest_b = [report for report in rest_b if id(report) not in taken]
    return pairs, rest_a, rest_b


def _hosts(reports: Mapping[str, list[Report]], cables: Iterable[_Cable]) -> set[str]:
    """The devices that are hosts."""
    names: dict[str, set[str]] = {}
    beside: dict[str, set[str]] = {}
    does: dict[str, set[str]] = {}
    for cable in cables:
        for end, port, other in ((cable.a, cable.a_port, cable.b), (cable.b, cable.b_port, cable.a)):
            names.setdefault(end, set()).update({port} - {""})
            beside.setdefault(end, set()).add(other)
    for own in reports.values():
        for report in own:
            does.setdefault(report.peer, set()).update(report.capabilities)
    hosts = set()
    for name, neighbours in beside.items():
        if names[name]:
            host = all(_ADAPTER.fullmatch(port) for port in names[name])
        elif does.get(name):
            host = not does[name] & {"Bridge", "Router"}
        else:
            host = len(neighbours) == 1
        if host:
            hosts.add(name)
    return hosts


def _named(report: Report) -> str:
    return "" if report.by_address else report.port


def _lower(one: float | None, two: float | None) -> float | None:
    return min((rate for rate in (one, two) if rate is not None), default=None)
