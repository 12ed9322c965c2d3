"""Cables of devices from what LLDP reports at their ends; each cable once, also if both ends report it.

A neighbour gives up to two names of its port, as id and as description; SONiC's id is the port's alias
(``etp31`` of ``Ethernet120``). If the neighbour has a file, its port is the name that is in this file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ingest.parsed import counted
from ingest.reading.source import Place

_NUMBERS = re.compile(r"([0-9]+)")


class Report(NamedTuple):
    """A neighbour seen by one device.

    Attributes
    ----------
    device : str
        Device that wrote the file.
    local : str
        Port of that device.
    peer : str
        Neighbour.
    ports : tuple of str
        Names that the neighbour gives for its port, the likeliest first; empty if it gives only an address.
    chassis : str
        Chassis id of the neighbour; empty if unknown.
    capabilities : frozenset of str
        Capabilities reported by the neighbour: ``Bridge``, ``Router``, ``Station``, ...
    rate : float or None
        Negotiated bytes/s of the neighbour's port.
    place : Place
        Location in the file.
    vague : bool
        True if the port's own name is unknown: `ports` is empty or has an alias of it.
    """

    device: str
    local: str
    peer: str
    ports: tuple[str, ...]
    chassis: str
    capabilities: frozenset[str]
    rate: float | None
    place: Place
    vague: bool = False

    @property
    def port(self) -> str:
        """Likeliest name of the neighbour's port; empty if unknown."""
        return self.ports[0] if self.ports else ""


class Cable(NamedTuple):
    """A cable with the names of its ports; empty if unknown."""

    a: str
    a_port: str
    b: str
    b_port: str
    rate: float | None


def cables_of(reports: Mapping[str, list[Report]]) -> tuple[list[Cable], list[str]]:
    """Return each cable once, and notes about cables reported by one end although the other has a file."""
    between: dict[tuple[str, str], tuple[list[Report], list[Report]]] = {}
    for own in _by_own_ports(reports).values():
        for report in dict.fromkeys(own):
            low, high = sorted((report.device, report.peer))
            between.setdefault((low, high), ([], []))[report.device != low].append(report)
    cables: list[Cable] = []
    lonely: list[Report] = []
    ordered = 0
    for (a, b), (of_a, of_b) in sorted(between.items()):
        pairs, rest_a, rest_b = _matched(of_a, of_b)
        vague = sum(one.vague and two.vague for one, two in pairs)
        ordered += vague if vague > 1 else 0
        cables += [Cable(a, one.local, b, two.local, _lower(one, two)) for one, two in pairs]
        cables += [Cable(a, one.local, b, one.port, one.rate) for one in rest_a]
        cables += [Cable(a, two.port, b, two.local, two.rate) for two in rest_b]
        lonely += [report for report in (*rest_a, *rest_b) if report.peer in reports and a != b]
    ends = [(end, port) for a, a_port, b, b_port, _ in cables for end, port in ((a, a_port), (b, b_port))]
    several = sum(count > 1 for (_, port), count in Counter(ends).items() if port)
    notes = counted((several, "port has", "ports have", "several neighbours: each is taken as a cable"))
    unnamed = "known by neither port's own name: their ends are joined in the order of their ports"
    notes += counted((ordered, "cable is", "cables are", unnamed))
    if lonely:
        first = lonely[0]
        seen = f"the first: {first.device} {first.local} sees {first.peer} {first.port}"
        rest = f"reported by one end only, although the other end's file is there; {seen}"
        notes = counted((len(lonely), "cable is", "cables are", rest)) + notes
    return cables, notes


def _matched(
    of_a: Sequence[Report], of_b: Sequence[Report]
) -> tuple[list[tuple[Report, Report]], list[Report], list[Report]]:
    """Return the pairs of reports of one cable, and the reports without a partner.

    Both reports name both ports. A vague port may be any one, so that the port that the other end reports
    decides; if both are vague, the ends are joined in the order of their ports.
    """
    pairs = _joined(
        [(report, [(report.local, port) for port in report.ports]) for report in of_a],
        [(report, [(port, report.local) for port in report.ports]) for report in of_b],
    )
    rest_a, rest_b = _left(of_a, of_b, pairs)
    named_a, vague_a = _by_port(rest_a)
    named_b, vague_b = _by_port(rest_b)
    pairs += _joined(named_a, [(report, [("", report.local)]) for report, _ in vague_b])
    pairs += _joined([(report, [("", report.local)]) for report, _ in vague_a], named_b)
    rest_a, rest_b = ([one for one in rest if one.vague] for rest in _left(of_a, of_b, pairs))
    aliased = all(report.ports for report in rest_a)
    rest_a.sort(key=lambda report: _in_order(report.port if aliased else report.local))
    rest_b.sort(key=lambda report: _in_order(report.local if aliased else report.port))
    pairs += zip(rest_a, rest_b, strict=False)
    return pairs, *_left(of_a, of_b, pairs)


_Keyed = tuple[Report, Sequence[tuple[str, str]]]
"""A report with the pairs of ports that it could mean."""


def _joined(of_a: Iterable[_Keyed], of_b: Iterable[_Keyed]) -> list[tuple[Report, Report]]:
    """Return the pairs of reports that have a key in common, each report at most once."""
    index = {key: report for report, keys in of_b for key in keys}
    pairs, taken = [], set[int]()
    for report, keys in of_a:
        found = next((index[key] for key in keys if key in index and id(index[key]) not in taken), None)
        if found is not None:
            taken.add(id(found))
            pairs.append((report, found))
    return pairs


def _by_port(reports: Iterable[Report]) -> tuple[list[_Keyed], list[_Keyed]]:
    """Return the reports with the neighbour's port as key, the vague ones apart."""
    parts: tuple[list[_Keyed], list[_Keyed]] = [], []
    for report in reports:
        parts[report.vague].append((report, [("", port) for port in report.ports]))
    return parts


def _left(
    of_a: Iterable[Report], of_b: Iterable[Report], pairs: Iterable[tuple[Report, Report]]
) -> tuple[list[Report], list[Report]]:
    """Return the reports that are in no pair."""
    taken = {id(report) for pair in pairs for report in pair}
    rest_a, rest_b = ([report for report in rest if id(report) not in taken] for rest in (of_a, of_b))
    return rest_a, rest_b


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names by the numbers in them."""
    return [(len(part), part) if part.isdecimal() else (0, part) for part in _NUMBERS.split(name)]


def _by_own_ports(reports: Mapping[str, list[Report]]) -> dict[str, list[Report]]:
    """Return the reports, each with those names of the port that fit the neighbour's own file, if it has one.

    Fitting is the name of a port in that file, else one that differs from these in its numbers only. A port
    of which only an address is known, or of whose names none fits, is vague.
    """
    ports = {name: {report.local for report in own} for name, own in reports.items()}
    alike = {name: {_NUMBERS.sub("#", port) for port in own} for name, own in ports.items()}
    return {name: [_with_own_port(report, ports, alike) for report in own] for name, own in reports.items()}


def _with_own_port(report: Report, ports: Mapping[str, set[str]], alike: Mapping[str, set[str]]) -> Report:
    """Return a report for `_by_own_ports`: ports by device, and these with ``#`` for each number."""
    own = ports.get(report.peer)
    if not own:
        return report._replace(vague=not report.ports)
    fitting = [port for port in report.ports if port in own]
    fitting = fitting or [port for port in report.ports if _NUMBERS.sub("#", port) in alike[report.peer]]
    return report._replace(ports=tuple(fitting) or report.ports, vague=not fitting)


def _lower(one: Report, two: Report) -> float | None:
    return min((report.rate for report in (one, two) if report.rate is not None), default=None)
