"""Comparison of the intended wiring with a fabric.

Names are matched by `mapping.checks.wiring.names`. If a label of the plan is not understood, or the scan has
no ports, any cable between the two devices matches. Cables inside a director are not compared.

Cables that the plan lacks are compared with planned cables that are not present: if they use exactly the same
ports, they were swapped; if they have an end in common, the other end is in a wrong port.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mapping.checks.wiring.names import FabricNames
from mapping.checks.wiring.pairing import (
    Mix,
    Planned,
    Wire,
    find_mixes,
    known_ports,
    match_cables,
    pair_nameless,
    port_pair,
    wire_between,
)
from registry.model import NO_PORT, Fabric, IntendedWiring

SAME_SPEED = 0.05
"""Largest difference, as a share, between the planned and the data rate of a cable."""
CODED, FASTEST_CODED = 0.8, 15e9
"""Data as a share of the signal up to QDR, and its fastest signal in bytes/s: plans name the signal."""
DATA = "data"
"""Kind of the cables that a scan can show; a plan that has it may list others, too."""


class WrongSpeed(NamedTuple):
    """A cable with its planned and its actual bytes/s."""

    wire: Wire
    planned: float
    actual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WiringDifferences:
    """Differences between the intended wiring and a fabric.

    Attributes
    ----------
    matching : int
        Cables that are as planned, at any speed.
    missing : tuple of Wire
        Planned cables that are not present (pulled, dead, or a device that is off).
    unexpected : tuple of Wire
        Cables that the plan lacks, between two of its devices or in a port of another planned cable.
    swapped : tuple of Mix
        Cables that use exactly the ports of the planned ones, in another combination.
    moved : tuple of Mix
        One planned cable and the one that is present instead: one end is in another port or device.
    wrong_speed : tuple of WrongSpeed
        Cables that are as planned except for the speed.
    outside : tuple of Wire
        Cables from the plan's devices to devices that it does not mention.
    nameless : tuple of Wire
        Cables from the plan's devices to adapters without a host's name; as planned if their port is.
    alternatives : tuple of Wire
        Planned cables that are not present, but another planned cable of the same port is.
    devices : int
        Names of devices in the plan.
    unknown_devices : tuple of str
        Those that the fabric does not have.
    ambiguous : dict of str to tuple of str
        Those that fit several devices of the fabric, with these. Their cables are not compared.
    vague : tuple of str
        Planned ends, as the plan writes them, whose port is not understood: any port of the device matches.
    other_kinds : int
        Planned cables of other kinds than data, which are not compared.
    """

    matching: int
    missing: tuple[Wire, ...]
    unexpected: tuple[Wire, ...]
    swapped: tuple[Mix, ...]
    moved: tuple[Mix, ...]
    wrong_speed: tuple[WrongSpeed, ...]
    outside: tuple[Wire, ...]
    nameless: tuple[Wire, ...]
    alternatives: tuple[Wire, ...]
    devices: int
    unknown_devices: tuple[str, ...]
    ambiguous: dict[str, tuple[str, ...]]
    vague: tuple[str, ...]
    other_kinds: int

    @property
    def empty(self) -> bool:
        """True if everything is as planned."""
        return not (self.missing or self.unexpected or self.swapped or self.moved or self.wrong_speed)

    @property
    def foreign(self) -> bool:
        """True if fewer than half of the plan's names are in the fabric."""
        return 2 * (self.devices - len(self.unknown_devices)) < self.devices


@dataclass(slots=True)
class _Resolved:
    """The plan with the names of the fabric."""

    cables: list[Planned] = field(default_factory=list)
    named: dict[str, tuple[int, ...]] = field(default_factory=dict)
    vague: list[str] = field(default_factory=list)
    other_kinds: int = 0


def compare(plan: IntendedWiring, fabric: Fabric) -> WiringDifferences:
    """Return the differences between the intended wiring and a fabric.

    Examples
    --------
    ::

        differences = compare(registry.intended.read("hpc1").wiring, registry.fabrics.read("hpc1").fabric)
        for mix in differences.swapped:
            print([str(wire) for wire in mix.found], "instead of", [str(wire) for wire in mix.planned])
    """
    names = FabricNames(fabric)
    planned = _resolve(plan, names)
    pairs, missing, extra = match_cables(planned.cables, _present(fabric, names))
    blank = {device.name for device in names.devices if device.nameless}
    unnamed, extra = pair_nameless(missing, extra, blank, known_ports(one.wire for one in planned.cables))
    present_rows = {one.row for one, _ in pairs} | {row for row, _ in unnamed if row is not None}
    second = _alternatives(plan, present_rows)
    missing = [one for one in missing if one.row not in present_rows]
    swapped, moved, lost, extra = find_mixes(
        sorted(one.wire for one in missing if one.row not in second), sorted(extra)
    )
    mentioned, undecided = _devices(planned, names)
    unexpected, outside = _by_plan(extra, planned, mentioned, undecided)
    return WiringDifferences(
        matching=len(present_rows),
        missing=tuple(lost),
        unexpected=tuple(unexpected),
        swapped=tuple(swapped),
        moved=tuple(moved),
        wrong_speed=tuple(sorted(_wrong_speeds(pairs))),
        outside=tuple(outside),
        nameless=tuple(sorted(wire for _, wire in unnamed if _touches(wire, mentioned))),
        alternatives=tuple(sorted(one.wire for one in missing if one.row in second)),
        devices=len(planned.named),
        unknown_devices=tuple(sorted(name for name, fits in planned.named.items() if not fits)),
        ambiguous={
            name: tuple(names.devices[one].name for one in fits)
            for name, fits in sorted(planned.named.items())
            if len(fits) > 1
        },
        vague=tuple(planned.vague),
        other_kinds=planned.other_kinds,
    )


def _resolve(plan: IntendedWiring, names: FabricNames) -> _Resolved:
    """Return the cables of the plan by the names of the fabric, without those that cannot be compared."""
    found, seen = _Resolved(), set[Wire]()
    data_only = any(kind.casefold() == DATA for kind in plan.kind)
    for row, (ends, kind, speed) in enumerate(zip(plan.ends(), plan.kind, plan.speed, strict=True)):
        if data_only and kind and kind.casefold() != DATA:
            found.other_kinds += 1
            continue
        matches = [names.find(*end) for end in ends]
        for (name, _), match in zip(ends, matches, strict=True):
            found.named[name] = found.named.get(name) or match.devices
        if any(len(match.devices) > 1 for match in matches):
            continue
        meant = [names.planned_end(match, *end) for match, end in zip(matches, ends, strict=True)]
        wire = wire_between(*meant)
        repeated = wire in seen and NO_PORT not in port_pair(wire)
        if wire.near.device == wire.far.device or repeated:
            continue
        seen.add(wire)
        found.cables.append(Planned(row, wire, speed))
        found.vague += [
            " ".join(end) for end, one in zip(ends, meant, strict=True) if one[1:] == ("", NO_PORT)
        ]
    return found


def _devices(planned: _Resolved, names: FabricNames) -> tuple[set[str], set[str]]:
    """Return the fabric's devices that the plan mentions, and those that ambiguous names fit."""
    mentioned, undecided = set[str](), set[str]()
    for fits in planned.named.values():
        held = undecided if len(fits) > 1 else mentioned
        held.update(names.devices[device].name for device in fits)
    return mentioned, undecided - mentioned


def _present(fabric: Fabric, names: FabricNames) -> list[tuple[Wire, float]]:
    """Return each cable of the fabric with its bytes/s, without those inside a director."""
    links, wires = fabric.links, list[tuple[Wire, float]]()
    rows = zip(
        *(links.source.tolist(), links.source_adapter.tolist(), links.source_port.tolist()),
        *(links.target.tolist(), links.target_adapter.tolist(), links.target_port.tolist()),
        *(links.cables.tolist(), links.capacity.tolist()),
        strict=True,
    )
    for source, source_adapter, source_port, target, target_adapter, target_port, cables, capacity in rows:
        if source > target or names.device_of[source] == names.device_of[target]:
            continue  # the other direction of a cable, or a cable inside a director
        near = names.present_end(source, source_adapter, source_port)
        wire = wire_between(near, names.present_end(target, target_adapter, target_port))
        wires += [(wire, capacity / cables)] * cables
    return wires


def _alternatives(plan: IntendedWiring, present_rows: set[int]) -> set[int]:
    """Return the rows of planned cables that share a port of the plan with a cable that is present."""
    found = set[int]()
    for rows in plan.conflicts.values():
        if not present_rows.isdisjoint(rows):
            found.update(rows)
    return found - present_rows


def _by_plan(
    extra: Sequence[Wire], planned: _Resolved, mentioned: set[str], undecided: set[str]
) -> tuple[list[Wire], list[Wire]]:
    """Return the unexpected cables, and those that lead from the plan's devices to others."""
    ports = known_ports(one.wire for one in planned.cables)
    unexpected, outside = list[Wire](), list[Wire]()
    for wire in extra:
        if _touches(wire, undecided):
            continue
        if not ports.isdisjoint(wire) or all(end.device in mentioned for end in wire):
            unexpected.append(wire)
        elif _touches(wire, mentioned):
            outside.append(wire)
    return unexpected, outside


def _touches(wire: Wire, devices: set[str]) -> bool:
    return any(end.device in devices for end in wire)


def _wrong_speeds(pairs: Iterable[tuple[Planned, float]]) -> Iterable[WrongSpeed]:
    """Yield the cables whose speed differs from a planned one."""
    for one, rate in pairs:
        ratios = (1.0, CODED) if one.speed <= FASTEST_CODED else (1.0,)
        if one.speed and all(abs(rate / one.speed / ratio - 1) > SAME_SPEED for ratio in ratios):
            yield WrongSpeed(one.wire, one.speed, rate)
