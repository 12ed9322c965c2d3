"""What the fabric had before and has no longer: switches, hosts, cables; or nearly everything."""

from __future__ import annotations

from collections.abc import Iterator

from mapping.checks.finding import Finding, Severity, Subject, unnamed_text
from registry.model.fabric import port_name
from registry.model.job import Losses, Vanished
from registry.units import moment_text

SEVERITIES = {"switch": Severity.ERROR, "host": Severity.WARNING, "cable": Severity.WARNING}
PART = 0.5
"""Share of the devices whose loss suggests that the scan, not the fabric, is incomplete."""


def find(subject: Subject) -> Iterator[Finding]:
    """Return a finding for each device and cable that is missed, and one before them if most devices are.

    With intended wiring only switches that it names are missed: what else it lacks is reported by its check.
    """
    losses = subject.losses
    if losses is None:
        return
    missed = [one for one in losses.vanished if _is_missed(one, subject)]
    devices = sum(one.kind != "cable" for one in missed)
    left = len(subject.fabric)
    if devices > PART * (left + devices):
        yield _partial(losses, left, left + devices)
    unnamed = unnamed_text(subject.fabric)
    for one in missed:
        count = one.cables if one.kind == "cable" else 1
        yield Finding(SEVERITIES[one.kind], name(one), _text(one, unnamed), count, group=one.kind)


def _is_missed(one: Vanished, subject: Subject) -> bool:
    """Return True unless there is intended wiring and it lacks the device, or its check reports it."""
    if subject.plan is None:
        return True
    return one.kind == "switch" and one.devices[0] in {*subject.plan.source, *subject.plan.target}


def _partial(losses: Losses, left: int, before: int) -> Finding:
    remedy = f"almanac observation delete {losses.observation}"
    text = (
        f"only {left:,} of {before:,} hosts and switches are left: is this scan a part, or another "
        f"machine's? Then delete it: {remedy}; "
        f"else accept it: almanac cluster accept {losses.cluster}"
    )
    return Finding(Severity.ERROR, losses.cluster, text, before - left, group="scan", remedy=remedy)


def name(one: Vanished) -> str:
    """Return the name of a device, or of a cable by its ports."""
    if one.kind != "cable":
        return one.devices[0]
    return " - ".join(port_name(device, port) for device, port in zip(one.devices, one.ports, strict=True))


def _text(one: Vanished, unnamed: str) -> str:
    """Return what is missing, and since when; `unnamed` is said of hosts and cables."""
    what = f"{one.kind} {name(one)} is missing"
    if one.kind == "cable" and one.cables > 1:
        what = f"{one.cables} cables {name(one)} are missing"
    elif one.kind != "cable" and one.cables:
        what += f" with {one.cables} cable{'s' if one.cables > 1 else ''}"
    return f"{what} since the scan of {moment_text(one.since)}{unnamed if one.kind != 'switch' else ''}"
