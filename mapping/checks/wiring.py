"""Differences from the intended wiring: cables that are missing, extra, swapped or in the wrong port.

Devices are matched by name. Port labels of the plan: ``Port 9`` (or ``9``, ``P9``) is a number, another word
such as ``mlx5_0`` the adapter of a host, ``mlx5_0/2`` a port of that adapter. If a label is not understood,
or the scan has no ports, any cable between the two devices matches.

Cables present but not planned are compared with cables planned but not present: if they use exactly the same
ports, they were swapped; if one of each has one end in common, the other end is in a wrong port.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mapping.checks.finding import Finding, Severity, Subject
from registry.model import NO_PORT, Fabric, IntendedWiring

_NUMBER = re.compile(r"(?:port\s*|p)?(\d{1,3})", re.IGNORECASE)
_ADAPTER = re.compile(r"(.+?)(?:[/:](\d{1,3}))?")


class End(NamedTuple):
    """One end of a cable: device, adapter (empty at a switch) and port (`NO_PORT` if unknown)."""

    device: str
    adapter: str
    port: int

    def __str__(self) -> str:
        words = [self.device, self.adapter, f"port {self.port}" if self.port != NO_PORT else ""]
        return " ".join(word for word in words if word)


class Wire(NamedTuple):
    """A cable by its ends, the smaller one first."""

    near: End
    far: End

    def __str__(self) -> str:
        return f"{self.near} - {self.far}"


class Mix(NamedTuple):
    """Planned cables, and the cables that use their ports instead."""

    planned: tuple[Wire, ...]
    found: tuple[Wire, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WiringDifferences:
    """Differences between the intended wiring and a fabric.

    Attributes
    ----------
    matching : int
        Cables that are as planned.
    missing : tuple of Wire
        Planned cables that are not present (pulled, dead, or a device that is off).
    extra : tuple of Wire
        Cables that are not in the plan.
    swapped : tuple of Mix
        Cables that use exactly the ports of the planned ones, in another combination.
    moved : tuple of Mix
        One planned cable and the one that is present instead: one end is in another port.
    unknown_devices : tuple of str
        Devices of the plan that the fabric does not have, by name.
    """

    matching: int
    missing: tuple[Wire, ...]
    extra: tuple[Wire, ...]
    swapped: tuple[Mix, ...]
    moved: tuple[Mix, ...]
    unknown_devices: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """True if everything is as planned."""
        return not (self.missing or self.extra or self.swapped or self.moved)


def compare(plan: IntendedWiring, fabric: Fabric) -> WiringDifferences:
    """Return the differences between the intended wiring and a fabric.

    Examples
    --------
    ::

        differences = compare(registry.intended.read("hpc1").wiring, registry.fabrics.read("hpc1").fabric)
        for mix in differences.swapped:
            print([str(wire) for wire in mix.found], "instead of", [str(wire) for wire in mix.planned])
    """
    planned, present = _planned(plan, fabric), _observed(fabric)
    matching = len(planned)
    exact = set(planned) & set(present)
    planned = [wire for wire in planned if wire not in exact or NO_PORT in _ports(wire)]
    present = [wire for wire in present if wire not in exact or NO_PORT in _ports(wire)]
    missing, extra = _without_vague(planned, present)
    matching -= len(missing)
    swapped, moved, missing, extra = _mixes(missing, extra)
    known = set(fabric.names)
    return WiringDifferences(
        matching=matching,
        missing=tuple(sorted(missing)),
        extra=tuple(sorted(extra)),
        swapped=tuple(sorted(swapped)),
        moved=tuple(sorted(moved)),
        unknown_devices=tuple(sorted({*plan.source, *plan.target} - known)),
    )


def find(subject: Subject) -> Iterator[Finding]:
    """Return one finding per difference; none without intended wiring."""
    if subject.plan is None:
        return
    plan, fabric = subject.plan, subject.fabric
    differences = compare(plan, fabric)
    for wire in differences.missing:
        yield Finding(Severity.WARNING, str(wire), f"the planned cable {wire} is missing")
    for mix in differences.swapped:
        yield Finding(Severity.WARNING, str(mix.found[0]), f"swapped: {_text(mix)}", len(mix.found))
    for mix in differences.moved:
        yield Finding(Severity.WARNING, str(mix.found[0]), f"in the wrong port: {_text(mix)}")
    for wire in differences.extra:
        yield Finding(Severity.NOTE, str(wire), f"the cable {wire} is not planned")


def _text(mix: Mix) -> str:
    found, planned = (", ".join(map(str, wires)) for wires in (mix.found, mix.planned))
    return f"{found} instead of {planned}"


def _planned(plan: IntendedWiring, fabric: Fabric) -> list[Wire]:
    """Return the cables of the plan, with labels resolved to adapters and ports of the fabric."""
    vertex = {name: v for v, name in enumerate(fabric.names)}
    adapters: dict[str, list[tuple[str, list[int]]]] = {}
    names, links = fabric.adapters.names, fabric.links
    used: dict[int, set[int]] = {}
    for adapter, port in zip(links.source_adapter.tolist(), links.source_port.tolist(), strict=True):
        if adapter >= 0:
            used.setdefault(adapter, set()).add(port)
    for adapter, host in enumerate(fabric.adapters.host.tolist()):
        device = fabric.names[host]
        ports = sorted(used.get(adapter, ()))
        adapters.setdefault(device, []).append((_short(names[adapter], device), ports))
    return [
        _wire(_end(near, near_port, vertex, adapters), _end(far, far_port, vertex, adapters))
        for near, near_port, far, far_port in zip(
            plan.source, plan.source_port, plan.target, plan.target_port, strict=True
        )
    ]


def _end(
    device: str, label: str, vertex: dict[str, int], adapters: dict[str, list[tuple[str, list[int]]]]
) -> End:
    """Return the end that the plan's label means."""
    number, own = _NUMBER.fullmatch(label), adapters.get(device, [])
    if number is not None:
        adapter = own[0][0] if len(own) == 1 else ""
        vague = device not in vertex or len(own) > 1
        return End(device, adapter, NO_PORT if vague else int(number[1]))
    named = _ADAPTER.fullmatch(label)
    fitting = [one for one in own if named is not None and one[0] == named[1]]
    if named is None or len(fitting) != 1:
        return End(device, "", NO_PORT)
    name, ports = fitting[0]
    only = ports[0] if len(ports) == 1 else NO_PORT if ports else 1
    return End(device, name, int(named[2]) if named[2] else only)


def _observed(fabric: Fabric) -> list[Wire]:
    """Return the cables of the fabric, one entry per physical cable."""
    links, names = fabric.links, fabric.names
    wires = []
    rows = zip(
        *(links.source.tolist(), links.source_port.tolist(), links.source_adapter.tolist()),
        *(links.target.tolist(), links.target_port.tolist(), links.target_adapter.tolist()),
        links.cables.tolist(),
        strict=True,
    )
    for source, source_port, source_adapter, target, target_port, target_adapter, cables in rows:
        if source > target:
            continue  # the other direction of the same cable
        near = End(names[source], _adapter(fabric, source_adapter, source), source_port)
        far = End(names[target], _adapter(fabric, target_adapter, target), target_port)
        wires += [_wire(near, far)] * cables
    return wires


def _adapter(fabric: Fabric, adapter: int, vertex: int) -> str:
    return "" if adapter < 0 else _short(fabric.adapters.names[adapter], fabric.names[vertex])


def _short(name: str, host: str) -> str:
    """Return an adapter's name without its host's."""
    return name.removeprefix(host).strip() or name


def _wire(one: End, other: End) -> Wire:
    return Wire(*sorted((one, other)))


def _ports(wire: Wire) -> tuple[int, int]:
    return wire.near.port, wire.far.port


def _without_vague(planned: Sequence[Wire], present: Sequence[Wire]) -> tuple[list[Wire], list[Wire]]:
    """Return the cables left after matching each planned cable with one that is present and compatible.

    Only a cable with an unknown end can match a different cable; cables with more known ends choose first.
    """
    left: dict[tuple[str, str], list[Wire]] = {}
    for wire in present:
        left.setdefault((wire.near.device, wire.far.device), []).append(wire)
    missing = []
    for wire in sorted(planned, key=lambda one: (_ports(one).count(NO_PORT), one)):
        rest = left.get((wire.near.device, wire.far.device), [])
        match = next((one for one in rest if _may_be(wire, one)), None)
        if match is None:
            missing.append(wire)
        else:
            rest.remove(match)
    return missing, [wire for rest in left.values() for wire in rest]


def _may_be(one: Wire, other: Wire) -> bool:
    # between two ports of one device the order of the ends is the ports'
    return all(map(_same_end, one, other)) or all(map(_same_end, one, other[::-1]))


def _same_end(one: End, other: End) -> bool:
    if one.device != other.device:
        return False
    if one.adapter and other.adapter and one.adapter != other.adapter:
        return False
    return one.port == other.port or NO_PORT in (one.port, other.port)


def _mixes(
    missing: Sequence[Wire], extra: Sequence[Wire]
) -> tuple[list[Mix], list[Mix], list[Wire], list[Wire]]:
    """Return swapped and moved cables, and those that are still missing and extra."""
    planned_by_end = {end: wire for wire in missing for end in wire if end.port != NO_PORT}
    found_by_end = {end: wire for wire in extra for end in wire if end.port != NO_PORT}
    swapped, moved, still_missing, still_extra = list[Mix](), list[Mix](), list[Wire](), list[Wire]()
    seen: set[Wire] = set()
    for wire in missing:
        if wire in seen:
            continue
        planned, found = _together(wire, planned_by_end, found_by_end)
        seen |= set(planned)
        ends = {end for one in planned for end in one}
        if found and ends == {end for one in found for end in one}:
            swapped.append(Mix(tuple(sorted(planned)), tuple(sorted(found))))
        elif len(planned) == len(found) == 1:
            moved.append(Mix(tuple(planned), tuple(found)))
        else:
            still_missing += planned
            still_extra += found
    touched = {wire for mix in (*swapped, *moved) for wire in mix.found} | set(still_extra)
    return swapped, moved, still_missing, [*still_extra, *(wire for wire in extra if wire not in touched)]


def _together(
    start: Wire, planned_by_end: dict[End, Wire], found_by_end: dict[End, Wire]
) -> tuple[list[Wire], list[Wire]]:
    """Return the planned and found cables that are connected with `start` through shared ports."""
    planned, found, todo = [start], list[Wire](), [start]
    while todo:
        for end in todo.pop():
            for wire, known in ((planned_by_end.get(end), planned), (found_by_end.get(end), found)):
                if wire is not None and wire not in known:
                    known.append(wire)
                    todo.append(wire)
    return planned, found
