"""Cables that run slower than both of their ends allow, or than nearly all similar cables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from mapping.checks.cable_counts import NUMBERS
from mapping.checks.finding import Finding, Severity, Subject, cable_text
from registry.model import HOST, Bools, Fabric, Floats, Longs
from registry.model.links import FAR_BELOW, MANY, NEARLY_ALL
from registry.units import RATE, text

HOSTS, SWITCHES = "hosts' cables", "cables between switches"
OTHER_GENERATION = 8.0
"""Factor from which nearly all cables are rather misread by a tool than set to their speed."""
MOST = 4
"""Largest number of kinds of different speeds that one finding names."""


def find(subject: Subject) -> Iterator[Finding]:
    """Return findings for cables that could be faster, then for cables with an unusual speed.

    The first are those that a source lists as degraded, or that are slow for the models of both ends.
    """
    fabric = subject.fabric
    kinds = _kinds(fabric)
    degraded = _degraded(fabric)
    speeds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, could_be in degraded.items():
        speeds[text(float(fabric.links.capacity[row]), RATE), text(could_be, RATE)].append(row)
    for (actual, possible), rows in speeds.items():
        what = f"at {actual}, both ends support {possible}"
        yield from _could_be_faster(fabric, kinds, rows, degraded[rows[0]], what)
    yield from _unusual(fabric, kinds, set(degraded))


def _kinds(fabric: Fabric) -> dict[str, list[int]]:
    """Return the lower rows of all cables, by what a message calls their kind.

    Cables are of one kind if the names of their ends differ only in numbers, and hosts' cables and the others
    are each one kind, too.
    """
    links = fabric.links
    of_host: Bools = (fabric.kind[links.source] == HOST) | (fabric.kind[links.target] == HOST)
    once: Longs = np.flatnonzero(links.source < links.target)
    kinds: dict[str, list[int]] = defaultdict(list)
    names = [NUMBERS.sub("#", name) for name in fabric.names]
    for row in once.tolist():
        ends = sorted((names[links.source[row]], names[links.target[row]]))
        kinds[f"cables {ends[0]} - {ends[1]}"].append(row)
    of_hosts, others = once[of_host[once]].tolist(), once[~of_host[once]].tolist()
    return kinds | {HOSTS: of_hosts, SWITCHES: others}


def _could_be_faster(
    fabric: Fabric, kinds: dict[str, list[int]], slow: list[int], possible: float, what: str
) -> Iterator[Finding]:
    """Return one finding for nearly all cables of a kind, which may be meant, else one for each cable."""
    links = fabric.links
    actual, left = float(links.capacity[slow[0]]), set(slow)
    everything = {"cables": np.flatnonzero(links.source < links.target).tolist()}
    broad_first = dict(reversed(kinds.items()))
    meant = actual >= FAR_BELOW * possible
    misread = possible >= OTHER_GENERATION * actual
    why = "is the tool that printed the scan older than this speed?" if misread else "is it set so?"
    for kind, members in (everything | (broad_first if meant else {})).items():
        rows = sorted(left.intersection(members))
        if len(rows) >= MANY and len(rows) >= NEARLY_ALL * len(members):
            left.difference_update(rows)
            reason = f"{len(rows):,} of {len(members):,} {kind} run {what}: {why}"
            severity = Severity.WARNING if misread else Severity.NOTE
            yield Finding(severity, cable_text(fabric, rows[0]), reason, len(rows))
    for cable in (cable_text(fabric, row) for row in slow if row in left):
        yield Finding(Severity.WARNING, cable, f"cable {cable} runs {what}")


def _degraded(fabric: Fabric) -> dict[int, float]:
    """Return the possible data bytes/s of degraded cables, by the lower row of the two directions."""
    links, ports = fabric.links, fabric.ports
    rows = np.flatnonzero(ports.could_be > 0).tolist()
    ends = zip(links.source.tolist(), links.source_adapter.tolist(), links.source_port.tolist(), strict=True)
    link_of = {end: row for row, end in enumerate(ends)} if rows else {}
    back = _reverse_rows(fabric) if rows else {}
    found: dict[int, float] = {}
    for port in rows:
        end = (int(ports.vertex[port]), int(ports.adapter[port]), int(ports.number[port]))
        link = link_of.get(end)
        if link is not None and ports.could_be[port] > links.capacity[link]:
            found.setdefault(min(link, back.get(link, link)), float(ports.could_be[port]))
    return found


def _reverse_rows(fabric: Fabric) -> dict[int, int]:
    """Return the row of the other direction of each cable whose ports are known."""
    links = fabric.links
    ends = links.source, links.source_port, links.target, links.target_port
    there = list(zip(*(column.tolist() for column in ends), strict=True))
    row_of = {ends: row for row, ends in enumerate(there)}
    pairs = ((row, row_of.get((c, d, a, b))) for row, (a, b, c, d) in enumerate(there))
    return {row: other for row, other in pairs if other is not None}


def _unusual(fabric: Fabric, kinds: dict[str, list[int]], known: set[int]) -> Iterator[Finding]:
    """Return a finding for each cable below the speed of nearly all of its kind, and one for all mixed kinds.

    A kind by names that has one speed explains it: two kinds of hosts may well differ.
    """
    each = fabric.links.capacity / fabric.links.cables
    reported, explained, mixed, different = set(known), set[int](), list[str](), list[int]()
    for what, rows in kinds.items():
        speeds, counts = np.unique(each[rows], return_counts=True)
        usual = len(counts) - 1 - int(np.argmax(counts[::-1])) if rows else 0
        slower = [row for row in rows if each[row] < speeds[-1] and row not in reported]
        if rows and counts[usual] >= NEARLY_ALL * len(rows):
            slower = [row for row in slower if each[row] < speeds[usual]]
            others = f"{counts[usual]:,} of {len(rows):,} {what} run at {text(float(speeds[usual]), RATE)}"
            yield from (_slower(fabric, row, float(speeds[usual]), others) for row in slower)
        elif len(rows) >= MANY and not explained.issuperset(slower):
            different += slower
            mixed.append(_speeds(speeds, counts, usual, what))
        explained.update(rows if len(rows) >= MANY else ())
        reported.update(slower)
    if mixed:
        more = f"; and {len(mixed) - MOST:,} more kinds of cables" if len(mixed) > MOST else ""
        first = cable_text(fabric, different[0])
        yield Finding(Severity.NOTE, first, "; ".join(mixed[:MOST]) + more, len(different))


def _slower(fabric: Fabric, row: int, usual: float, others: str) -> Finding:
    """Return the finding for a cable that is slower than the usual data bytes/s of its kind."""
    links, cable = fabric.links, cable_text(fabric, row)
    far_below = links.capacity[row] / links.cables[row] <= FAR_BELOW * usual
    reason = f"cable {cable} runs at {text(float(links.capacity[row]), RATE)}, {others}"
    return Finding(Severity.WARNING if far_below else Severity.NOTE, cable, reason)


def _speeds(speeds: Floats, counts: Longs, usual: int, what: str) -> str:
    """Return how many cables of a kind run at which speed, and which one is usual if most have it."""
    total, shown = int(counts.sum()), [text(float(speed), RATE) for speed in speeds]
    first, *others = (f"{count:,} at {speed}" for speed, count in zip(shown, counts.tolist(), strict=True))
    parts = [first.replace(" at ", f" of {total:,} run at "), *others]
    if 2 * counts[usual] > total and usual == len(speeds) - 1:
        parts[-1] = f"usual is {shown[usual]} ({counts[usual]:,} cables)"
    return f"{what}: {', '.join(parts)}"
