"""Ethernet fabrics by LLDP: ``lldpcli -f json show neighbors details`` (or ``json0``) of many devices.

All files of one ingest are one fabric; each contains the neighbours of one device. A file does not name its
own device: the name is that of the file without suffixes (``leaf1`` of ``leaf1.json0.gz``), unless its
neighbours report the same name in full (``leaf1.cluster.example``) or another device on the same cable. A
cable reported by both ends is one cable.

* A device is a host if all its ports with known names have names of Linux network adapters (``eth0``,
  ``ens1f0np0``, ``enp65s0``, ``ib0``), and a switch if some do not (``swp1``, ``Ethernet1/1``). If only the
  MAC addresses of ports are known, its capabilities decide (Bridge or Router: a switch; Station: a host), and
  then its neighbours: with one it is a host. Capabilities come second because lldpd reports Station on
  switches.
* A port's number is made of the numbers in its name, three digits each: ``swp49`` 49, ``Ethernet1/5`` 1005.
* Rates are those negotiated by the ports, the lower one of both ends.

Tested with lldpd 1.0 itself.

A neighbour gives up to two names of its port, as id and as description; SONiC's id is the port's alias
(``etp31`` of ``Ethernet120``). If the neighbour has a file, its port is the name that is in this file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ingest.formats.fabrics.draft import MAX_NAME, Draft, check_name
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from ingest.reading.text import Spot, load_json
from registry.errors import InputError
from registry.model import NO_PORT
from registry.model.host_names import same_hosts, without_domain

_DIGITS = re.compile(r"([0-9]+)")


class Report(NamedTuple):
    """A neighbour seen by one device."""

    device: str
    """Device that wrote the file."""
    local: str
    """Port of that device."""
    peer: str
    """Neighbour."""
    ports: tuple[str, ...]
    """Names that the neighbour gives for its port, the likeliest first; empty if it gives only an address."""
    chassis: str
    """Chassis id of the neighbour; empty if unknown."""
    capabilities: frozenset[str]
    """Capabilities reported by the neighbour: ``Bridge``, ``Router``, ``Station``, ..."""
    rate: float | None
    """Negotiated bytes/s of the neighbour's port."""
    place: Place
    """Location in the file."""
    vague: bool = False
    """True if the port's own name is unknown: `ports` is empty or has an alias of it."""

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
    return [(len(part), part) if part.isdecimal() else (0, part) for part in _DIGITS.split(name)]


def _by_own_ports(reports: Mapping[str, list[Report]]) -> dict[str, list[Report]]:
    """Return the reports, each with those names of the port that fit the neighbour's own file, if it has one.

    Fitting is the name of a port in that file, else one that differs from these in its numbers only. A port
    of which only an address is known, or of whose names none fits, is vague.
    """
    ports = {name: {report.local for report in own} for name, own in reports.items()}
    alike = {name: {_DIGITS.sub("#", port) for port in own} for name, own in ports.items()}
    return {name: [_with_own_port(report, ports, alike) for report in own] for name, own in reports.items()}


def _with_own_port(report: Report, ports: Mapping[str, set[str]], alike: Mapping[str, set[str]]) -> Report:
    """Return a report for `_by_own_ports`: ports by device, and these with ``#`` for each number."""
    own = ports.get(report.peer)
    if not own:
        return report._replace(vague=not report.ports)
    fitting = [port for port in report.ports if port in own]
    fitting = fitting or [port for port in report.ports if _DIGITS.sub("#", port) in alike[report.peer]]
    return report._replace(ports=tuple(fitting) or report.ports, vague=not fitting)


def _lower(one: Report, two: Report) -> float | None:
    return min((report.rate for report in (one, two) if report.rate is not None), default=None)


DEFAULT_RATE = 1.25e9
"""Bytes/s of a cable whose ports have no known speed: 10 Gbit/s."""
_ADAPTER = re.compile(r"(eth|eno|ens|enp|enx|em|ib|hsn|p\d+p)\d\w*", re.ASCII)
_ADDRESS = re.compile(r"[0-9a-f]{1,4}([:.-][0-9a-f]{1,4}){3,}", re.IGNORECASE)
_SUFFIXES = re.compile(r"(\.(json0?|lldp|txt|gz|xz))++$", re.IGNORECASE)
_RECOGNISED = re.compile(r'\s*\{\s*"lldp"\s*:')
_HIGHEST_PORT = (1 << 31) - 1
_SPEED = re.compile(r"(\d{1,4})(G?)base", re.IGNORECASE | re.ASCII)


def _read_reports(file: SourceFile, device: str) -> list[Report]:
    """Return the reports of one file; a neighbour without name and id or a port without id is an error."""
    root = Spot(file.path)
    lldp = root.object(load_json(file)).get("lldp")
    reports = []
    for part in lldp if isinstance(lldp, list) else [lldp]:
        spot = root.at("lldp")
        for local, value, here in _interfaces(spot.object(part).get("interface"), spot.at("interface")):
            reports.append(_report(device, local, value, here))
    return reports


def port_rate(text: str) -> float | None:
    """Return bytes/s of an Ethernet port by the name of its medium, such as ``25GBaseCR``, or None."""
    match = _SPEED.match(text)
    if match is None or not int(match[1]):
        return None
    return int(match[1]) * (1e9 if match[2] else 1e6) / 8


def _interfaces(value: Any, spot: Spot) -> Iterator[tuple[str, dict[str, Any], Spot]]:
    """Yield the name and content of each local port."""
    if value is None:
        return
    for index, one in enumerate(value if isinstance(value, list) else [value]):
        here = spot.at(index) if isinstance(value, list) else spot
        if isinstance(here.object(one).get("name"), str):
            yield one["name"], one, here
            continue
        for name, content in one.items():
            yield name, here.at(name).object(content), here.at(name)


def _report(device: str, local: str, value: dict[str, Any], spot: Spot) -> Report:
    """Return the report of one neighbour."""
    place = spot.place
    name, chassis = _chassis(_single(value.get("chassis")), spot.at("chassis"))
    port = spot.at("port").object(_single(value.get("port")))
    negotiated = _single(port.get("auto-negotiation"))
    current = _plain(negotiated.get("current")) if isinstance(negotiated, dict) else None
    capabilities = chassis.get("capability", [])
    return Report(
        device=device,
        local=check_name(local, place),
        peer=check_name(name, place),
        ports=_port_names(port, spot.at("port")),
        chassis=_identity(chassis),
        capabilities=frozenset(
            str(one.get("type"))
            for one in (capabilities if isinstance(capabilities, list) else [capabilities])
            if isinstance(one, dict) and one.get("enabled") is True
        ),
        rate=port_rate(current) if isinstance(current, str) else None,
        place=place,
    )


def _port_names(port: dict[str, Any], spot: Spot) -> tuple[str, ...]:
    """Return the names of a neighbour's port: its id, and its description if that could be a name.

    The id comes first if it is the name of an interface; other ids are addresses, aliases or numbers.
    """
    identity = spot.at("id").object(_single(port.get("id")))
    shown = check_name(spot.at("id").text(_plain(identity.get("value"))), spot.place)
    kind, described = identity.get("type"), _plain(port.get("descr"))
    names = [] if kind == "mac" else [shown]
    if isinstance(described, str) and _could_be_port(described):
        names.insert(len(names) if kind == "ifname" else 0, described)
    return tuple(dict.fromkeys(names))


def _could_be_port(text: str) -> bool:
    """Return True for a description that could be a port's name: a word with a number, but no address."""
    fits = len(text) <= MAX_NAME and text.isprintable() and len(text.split()) == 1 and text.strip() == text
    return fits and any(map(str.isdecimal, text)) and _ADDRESS.fullmatch(text) is None


def _chassis(value: Any, spot: Spot) -> tuple[str, dict[str, Any]]:
    """Return the name and content of a neighbour; without a name its id is used."""
    found = spot.object(value)
    if "id" not in found and len(found) == 1:
        ((name, content),) = found.items()
        return name, spot.at(name).object(content)
    name = _plain(found.get("name"))
    if not isinstance(name, str) or not name:
        name = _identity(found)
    return name, found


def _identity(chassis: dict[str, Any]) -> str:
    identity = _single(chassis.get("id"))
    value = _plain(identity.get("value")) if isinstance(identity, dict) else None
    return value if isinstance(value, str) else ""


def _single(value: Any) -> Any:
    """Return the content of a list of one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _plain(value: Any) -> Any:
    """Return a value that may be given as ``[{"value": ...}]``."""
    value = _single(value)
    return value.get("value") if isinstance(value, dict) else value


def _recognise_lldp(head: str, path: str) -> bool:
    """Return True if it is a JSON object with the key lldp first."""
    return _RECOGNISED.match(head) is not None


def _parse_lldp(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of all files; two files of one device are an error, and so are no neighbours."""
    reports: dict[str, list[Report]] = {}
    for file in files:
        name = _own_name(file)
        if name in reports:
            raise InputError(f"a second file of the device {name}", path=file.path)
        reports[name] = _read_reports(file, name)
    if not any(reports.values()):
        raise InputError("no neighbours found: is LLDP enabled at the other ends?", path=files[0].path)
    reports, notes = _renamed(_in_full(reports))
    cables, odd = cables_of(reports)
    draft = Draft()
    hosts = _hosts(reports, cables)
    for name in sorted({end for cable in cables for end in (cable.a, cable.b)} | set(reports)):
        (draft.host if name in hosts else draft.switch)(name, Place(files[0].path))
    for cable in cables:
        draft.cable(
            cable.a,
            cable.b,
            rate=cable.rate,
            a_port=port_number(cable.a_port),
            b_port=port_number(cable.b_port),
        )
    return draft.parsed(files[0].path, options, default_rate=DEFAULT_RATE, warnings=(*notes, *odd))


def port_number(name: str) -> int:
    """Return the numbers in a port's name, three digits each; `NO_PORT` if there are none or too many."""
    parts = re.findall(r"\d{1,9}", name, re.ASCII)
    number = int("".join(part.zfill(3) for part in parts) or "0")
    fits = parts and max(map(int, parts)) < 1000 and number <= _HIGHEST_PORT and ":" not in name
    return number if fits else NO_PORT


def _own_name(file: SourceFile) -> str:
    """Return the name of the device in a file's name."""
    return check_name(_SUFFIXES.sub("", file.name) or file.name, Place(file.path))


def _in_full(reports: Mapping[str, list[Report]]) -> dict[str, list[Report]]:
    """Return the reports with one name for each device that some sources name in full and others do not."""
    peers = dict.fromkeys(report.peer for own in reports.values() for report in own)
    full = [peer for peer in peers if without_domain(peer) != peer]
    names = same_hosts([peer for peer in peers if peer not in full], full)
    names |= same_hosts(reports, [peer for peer in peers if peer not in names])
    return {
        names.get(name, name): [
            report._replace(device=names.get(name, name), peer=names.get(report.peer, report.peer))
            for report in own
        ]
        for name, own in reports.items()
    }


def _renamed(reports: Mapping[str, list[Report]]) -> tuple[dict[str, list[Report]], list[str]]:
    """Return the reports with devices named as by their neighbours, and notes about renamed ones."""
    peers = {report.peer for own in reports.values() for report in own}
    short = {without_domain(peer): peer for peer in sorted(peers, reverse=True)}
    found: dict[str, list[Report]] = {}
    notes = []
    for name, own in reports.items():
        seen = {
            back.peer
            for report in own
            for back in reports.get(report.peer, ())
            if back.local in report.ports and report.local in back.ports
        }
        known = next(iter(seen)) if len(seen) == 1 and name not in peers else name
        if known != name and known not in reports and known not in found:
            notes.append(f"the file named {name} is that of {known}, according to its neighbours")
            own, name = [report._replace(device=known) for report in own], known
        elif name not in peers and without_domain(name) in short:
            several = (
                f"several devices have this name up to the first dot, such as {short[without_domain(name)]}"
            )
            notes.append(f"no neighbour reports the device {name}, and {several}: name the file in full")
        found[name] = own
    return found, notes


def _hosts(reports: Mapping[str, list[Report]], cables: Iterable[Cable]) -> set[str]:
    """Return the devices that are hosts."""
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


LLDP = Format(
    "lldp",
    kind="fabric",
    evidence="real",
    about="Ethernet fabric: `lldpcli -f json show neighbors details` of many devices",
    recognise=_recognise_lldp,
    parse=_parse_lldp,
    grouped=True,
)
