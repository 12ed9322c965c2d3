"""Cables that run slower than both of their ends allow, or than nearly all similar cables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from mapping.checks.cable_counts import NUMBERS
from mapping.checks.finding import Finding, Severity, Subject, cable_text
from registry.model import HOST, Bools, Fabric, Longs
from registry.units import RATE, text

NEARLY_ALL = 0.9
"""Part of the cables of a kind that must have one speed before a lower one is reported."""
MANY = 3
"""Smallest number of cables that may be nearly all."""
OTHER_GENERATION = 8.0
"""Factor from which nearly all cables are rather misread by a tool than set to their speed."""
FAR_BELOW = 0.5
"""Part of that speed up to which a cable is far below it: it lost lanes, or trained at an older speed."""


def find(subject: Subject) -> Iterator[Finding]:
    """Return findings for cables that a source lists as degraded, then for cables with an unusual speed."""
    fabric = subject.fabric
    degraded = _degraded(fabric)
    speeds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, could_be in degraded.items():
        speeds[text(float(fabric.links.capacity[row]), RATE), text(could_be, RATE)].append(row)
    for (actual, possible), rows in speeds.items():
        cables = [cable_text(fabric, row) for row in rows]
        what = f"at {actual}, both ends support {possible}"
        if len(rows) >= MANY and len(rows) >= NEARLY_ALL * len(fabric.links) / 2:
            misread = degraded[rows[0]] >= OTHER_GENERATION * fabric.links.capacity[rows[0]]
            why = "is the tool that printed the scan older than this speed?" if misread else "is it set so?"
            reason = f"{len(rows):,} of {len(fabric.links) // 2:,} cables run {what}: {why}"
            severity = Severity.WARNING if misread else Severity.NOTE
            yield Finding(severity, cables[0], reason, len(rows))
            continue
        for cable in cables:
            yield Finding(Severity.WARNING, cable, f"cable {cable} runs {what}")
    yield from _unusual(fabric, set(degraded))


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


def _unusual(fabric: Fabric, known: set[int]) -> Iterator[Finding]:
    """Return findings for cables below the usual speed of their kind.

    Cables are of one kind if the names of their ends differ only in numbers, and hosts' cables and the others
    are each one kind, too.
    """
    links, seen = fabric.links, set(known)
    of_host: Bools = (fabric.kind[links.source] == HOST) | (fabric.kind[links.target] == HOST)
    once: Longs = np.flatnonzero(links.source < links.target)
    kinds: dict[str, list[int]] = defaultdict(list)
    names = [NUMBERS.sub("#", name) for name in fabric.names]
    for row in once.tolist():
        ends = sorted((names[links.source[row]], names[links.target[row]]))
        kinds[f"cables {ends[0]} - {ends[1]}"].append(row)
    kinds["hosts' cables"] = once[of_host[once]].tolist()
    kinds["cables between switches"] = once[~of_host[once]].tolist()
    each = links.capacity / links.cables
    for what, rows in kinds.items():
        speeds, counts = np.unique(each[rows], return_counts=True)
        usual = int(np.argmax(counts)) if rows else 0
        if not rows or counts[usual] < NEARLY_ALL * len(rows):
            continue
        for row in (row for row in rows if each[row] < speeds[usual] and row not in seen):
            seen.add(row)
            actual, usual_speed = (text(float(value), RATE) for value in (links.capacity[row], speeds[usual]))
            cable, others = cable_text(fabric, row), f"{counts[usual]:,} of {len(rows):,} {what}"
            description = f"cable {cable} runs at {actual}, {others} run at {usual_speed}"
            far_below = each[row] <= FAR_BELOW * speeds[usual]
            yield Finding(Severity.WARNING if far_below else Severity.NOTE, cable, description)
