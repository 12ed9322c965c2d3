"""Comparison of the intended wiring with a fabric.

Names are matched by `mapping.checks.wiring_names`. If a label of the plan is not understood, or the scan has
no ports, any cable between the two devices matches. Cables inside a director are not compared.

Cables that the plan lacks are compared with planned cables that are not present: if they use exactly the same
ports, they were swapped; if they have an end in common, the other end is in a wrong port.

Cables by their ends, and the pairing of planned cables with those that are present.

Findings about differences from the intended wiring, in the groups that UFM uses, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mapping.checks.finding import Finding, Severity, Subject, some
from mapping.checks.wiring_names import End, FabricNames
from registry.model import NO_PORT, Fabric, IntendedWiring
from registry.units import RATE, counted, text


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

    def __str__(self) -> str:
        found, planned = (some([str(wire) for wire in wires]) for wires in (self.found, self.planned))
        return f"{found} instead of {planned}"


class Planned(NamedTuple):
    """A planned cable with its row in the plan and its bytes/s."""

    row: int
    wire: Wire
    speed: float


def wire_between(one: End, other: End) -> Wire:
    return Wire(*sorted((one, other)))


def port_pair(wire: Wire) -> tuple[int, int]:
    return wire.near.port, wire.far.port


def match_cables(
    planned: Sequence[Planned], present: Sequence[tuple[Wire, float]]
) -> tuple[list[tuple[Planned, float]], list[Planned], list[Wire]]:
    """Match planned with present cables; return the pairs with bytes/s, and those left on either side.

    First the cables with the same ports; then cables with an unknown end match any that is compatible, the
    ones with more known ends first.
    """
    left: dict[Wire, list[float]] = {}
    for wire, rate in present:
        left.setdefault(wire, []).append(rate)
    pairs, vague = list[tuple[Planned, float]](), list[Planned]()
    for one in planned:
        if NO_PORT not in port_pair(one.wire) and left.get(one.wire):
            pairs.append((one, left[one.wire].pop()))
        else:
            vague.append(one)
    between: dict[tuple[str, str], list[tuple[Wire, float]]] = {}
    for wire, rates in left.items():
        rows = between.setdefault((wire.near.device, wire.far.device), [])
        rows += [(wire, rate) for rate in rates]
    missing = []
    for one in sorted(vague, key=lambda one: (port_pair(one.wire).count(NO_PORT), one.wire)):
        rest = between.get((one.wire.near.device, one.wire.far.device), [])
        match = next((other for other in rest if _may_be(one.wire, other[0])), None)
        if match is None:
            missing.append(one)
        else:
            rest.remove(match)
            pairs.append((one, match[1]))
    return pairs, missing, [wire for rest in between.values() for wire, _ in rest]


def _may_be(one: Wire, other: Wire) -> bool:
    # between two ports of one device the order of the ends is the ports'
    return all(map(_same_end, one, other)) or all(map(_same_end, one, other[::-1]))


def _same_end(one: End, other: End) -> bool:
    if one.device != other.device or (one.part and other.part and one.part != other.part):
        return False
    return one.port == other.port or NO_PORT in (one.port, other.port)


def known_ports(wires: Iterable[Wire]) -> set[End]:
    """Return the ends of cables whose ports are known."""
    return {end for wire in wires for end in wire if end.port != NO_PORT}


def pair_nameless(
    missing: Sequence[Planned], extra: Sequence[Wire], blank: set[str], planned: set[End]
) -> tuple[list[tuple[int | None, Wire]], list[Wire]]:
    """Match cables to nameless adapters with planned cables of the same switch port.

    Returns:
        Cables to nameless adapters; the row of the planned cable whose port they use, or None if their port
        is not planned.
        The others: also those in a port that the plan gives to a cable that is present elsewhere.
    """
    at_port = {
        end: one
        for one in missing
        for end, other in (one.wire, one.wire[::-1])
        if end.port != NO_PORT and other.port == NO_PORT
    }
    unnamed, others = list[tuple[int | None, Wire]](), list[Wire]()
    for wire in extra:
        named = [end for end in wire if end.device not in blank]
        held = at_port.pop(named[0], None) if len(named) == 1 else None
        if held is not None:
            unnamed.append((held.row, wire))
        elif len(named) == 1 and named[0] not in planned:
            unnamed.append((None, wire))
        else:
            others.append(wire)
    return unnamed, others


def find_mixes(
    missing: Sequence[Wire], extra: Sequence[Wire]
) -> tuple[list[Mix], list[Mix], list[Wire], list[Wire]]:
    """Return swapped and moved cables, and those that are still missing and extra."""
    planned_by_end = {end: wire for wire in missing for end in known_ports([wire])}
    found_by_end = {end: wire for wire in extra for end in known_ports([wire])}
    swapped, moved, still_missing = list[Mix](), list[Mix](), list[Wire]()
    seen, used = set[Wire](), set[Wire]()
    for wire in missing:
        if wire in seen:
            continue
        planned, found = _together(wire, planned_by_end, found_by_end)
        seen |= set(planned)
        if found and {end for one in planned for end in one} == {end for one in found for end in one}:
            swapped.append(Mix(tuple(sorted(planned)), tuple(sorted(found))))
            used |= set(found)
            continue
        pairs = _moves(planned, found_by_end)
        moved += [Mix((one,), (other,)) for one, other in pairs.items()]
        used |= set(pairs.values())
        still_missing += [one for one in planned if one not in pairs]
    return swapped, moved, still_missing, [wire for wire in extra if wire not in used]


def _moves(planned: Iterable[Wire], found_by_end: dict[End, Wire]) -> dict[Wire, Wire]:
    """Pair planned cables with found ones that share an end, those between the same devices first."""
    sharing = {
        (one.near.device != other.near.device or one.far.device != other.far.device, one, other)
        for one in planned
        for end in known_ports([one])
        if (other := found_by_end.get(end)) is not None
    }
    pairs, taken = dict[Wire, Wire](), set[Wire]()
    for _, one, other in sorted(sharing):
        if one not in pairs and other not in taken:
            taken.add(other)
            pairs[one] = other
    return pairs


def _together(
    start: Wire, planned_by_end: dict[End, Wire], found_by_end: dict[End, Wire]
) -> tuple[dict[Wire, None], dict[Wire, None]]:
    """Return the planned and found cables that are connected with `start` through shared ports, in order."""
    planned, found, todo = {start: None}, dict[Wire, None](), [start]
    while todo:
        for end in todo.pop():
            for wire, known in ((planned_by_end.get(end), planned), (found_by_end.get(end), found)):
                if wire is not None and wire not in known:
                    known[wire] = None
                    todo.append(wire)
    return planned, found


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
    """Differences between the intended wiring and a fabric."""

    matching: int
    """Cables that are as planned, at any speed."""
    missing: tuple[Wire, ...]
    """Planned cables that are not present (pulled, dead, or a device that is off)."""
    unexpected: tuple[Wire, ...]
    """Cables that the plan lacks, between two of its devices or in a port of another planned cable."""
    swapped: tuple[Mix, ...]
    """Cables that use exactly the ports of the planned ones, in another combination."""
    moved: tuple[Mix, ...]
    """One planned cable and the one that is present instead: one end is in another port or device."""
    wrong_speed: tuple[WrongSpeed, ...]
    """Cables that are as planned except for the speed."""
    outside: tuple[Wire, ...]
    """Cables from the plan's devices to devices that it does not mention."""
    nameless: tuple[Wire, ...]
    """Cables from the plan's devices to adapters without a host's name; as planned if their port is."""
    alternatives: tuple[Wire, ...]
    """Planned cables that are not present, but another planned cable of the same port is."""
    devices: int
    """Names of devices in the plan."""
    unknown_devices: tuple[str, ...]
    """Those that the fabric does not have."""
    ambiguous: dict[str, tuple[str, ...]]
    """Those that fit several devices of the fabric, with these. Their cables are not compared."""
    vague: tuple[str, ...]
    """Planned ends, as the plan writes them, whose port is not understood: any port of the device matches."""
    other_kinds: int
    """Planned cables of other kinds than data, which are not compared."""

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

    Examples:
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


MISSING, UNEXPECTED, WRONG_PORT, WRONG_SPEED = "missing", "unexpected", "wrong port", "wrong speed"
PLAN = "plan"
"""Group of findings about the plan itself, and about cables that it does not cover."""
EXAMPLES = 3


def find(subject: Subject) -> Iterator[Finding]:
    """Return one finding per difference; none without intended wiring.

    If the fabric lacks a device, its missing cables are one finding. If it lacks most devices, that is the
    only finding: the plan seems to be that of another cluster.
    """
    if subject.plan is None:
        return
    found = compare(subject.plan, subject.fabric)
    if found.foreign:
        yield _foreign(found)
        return
    yield from _missing(found)
    for mix in found.swapped:
        yield _warning(WRONG_PORT, str(mix.found[0]), f"swapped: {mix}", len(mix.found))
    for mix in found.moved:
        yield _warning(WRONG_PORT, str(mix.found[0]), f"in the wrong port: {mix}")
    for wire, planned, actual in found.wrong_speed:
        speeds = f"runs at {text(actual, RATE)}, {text(planned, RATE)} is planned"
        yield _warning(WRONG_SPEED, str(wire), f"the cable {wire} {speeds}")
    for wire in found.unexpected:
        yield Finding(Severity.NOTE, str(wire), f"the cable {wire} is not planned", group=UNEXPECTED)
    yield from _about_plan(found, subject.plan.conflict_lines())


def _foreign(found: WiringDifferences) -> Finding:
    """Return the finding that the plan has hardly a device of the fabric."""
    unknown, names = found.unknown_devices, found.devices
    description = (
        f"the fabric has {names - len(unknown)} of the {names} devices of the intended wiring (it lacks "
        f"{', '.join(unknown[:EXAMPLES])}, for example): is this the plan of another cluster, or is most of "
        "it off?"
    )
    return Finding(Severity.ERROR, unknown[0], description, len(unknown), group=PLAN)


def _warning(group: str, subject: str, description: str, count: int = 1) -> Finding:
    return Finding(Severity.WARNING, subject, description, count, group=group)


def _missing(found: WiringDifferences) -> Iterator[Finding]:
    """Yield a finding for each missing cable, and one for all cables of each device that is missing."""
    unknown = set(found.unknown_devices)
    count = Counter(end.device for wire in found.missing for end in wire if end.device in unknown)
    of_device: dict[str, list[Wire]] = {}
    for wire in found.missing:
        absent = sorted((-count[end.device], end.device) for end in wire if end.device in unknown)
        if absent:
            of_device.setdefault(absent[0][1], []).append(wire)
        else:
            yield _warning(MISSING, str(wire), f"the planned cable {wire} is missing")
    for device, wires in sorted(of_device.items()):
        cables = f"{len(wires)} planned cables" if len(wires) > 1 else "a planned cable"
        lost = f"{device} is not in the fabric: {cables} missing: {_examples(wires)}"
        yield _warning(MISSING, device, lost, len(wires))


def _about_plan(found: WiringDifferences, conflicts: list[str]) -> Iterator[Finding]:
    """Yield findings about what could not be compared, and about cables that the plan does not cover."""
    for name, devices in found.ambiguous.items():
        description = f"the planned name {name} fits several devices: {some(list(devices))}; not compared"
        yield _warning(PLAN, name, description, len(devices))
    for line in conflicts:
        yield _warning(PLAN, "intended wiring", line)
    several = (
        (found.nameless, "to adapters whose description names no host: only the port is compared"),
        (found.outside, "from planned devices to devices that the intended wiring does not mention"),
    )
    for wires, what in several:
        if wires:
            description = f"{counted(len(wires), 'cable leads', 'cables lead')} {what}: {_examples(wires)}"
            yield Finding(Severity.NOTE, str(wires[0]), description, len(wires), group=PLAN)
    if found.vague:
        ports = counted(len(found.vague), "planned port is", "planned ports are")
        examples = some(list(found.vague), EXAMPLES)
        description = f"{ports} not understood, any port of the device is accepted: {examples}"
        yield Finding(Severity.NOTE, found.vague[0], description, len(found.vague), group=PLAN)
    if found.other_kinds:
        cables = counted(found.other_kinds, "planned cable is", "planned cables are")
        description = f"{cables} not of kind Data and not compared"
        yield Finding(Severity.NOTE, "intended wiring", description, found.other_kinds, group=PLAN)


def _examples(wires: Sequence[Wire]) -> str:
    return some([str(wire) for wire in wires], EXAMPLES)
