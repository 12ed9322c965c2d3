"""Findings about differences from the intended wiring, in the groups that UFM uses, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mapping.checks.finding import Finding, Severity, Subject, some
from mapping.checks.wiring.differences import WiringDifferences, compare
from mapping.checks.wiring.pairing import Wire
from registry.units import RATE, counted, text

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
