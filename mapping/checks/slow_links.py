"""Cables that run slower than both their ends could, or than nearly all cables like them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapping.checks.finding import Finding, Severity, Subject, cable_text
from registry.model import HOST, Bools, Fabric, Longs
from registry.units import RATE, text

NAME = "slow-links"
NEARLY_ALL = 0.9
"""So many of the cables of a kind must have one speed before a lower one is odd."""


def find(subject: Subject) -> Iterator[Finding]:
    """Degraded cables that a source tells of, then those that stand out by their speed."""
    fabric = subject.fabric
    told = _told(fabric)
    for row, could_be in told.items():
        seen, wanted = (text(value, RATE) for value in (float(fabric.links.capacity[row]), could_be))
        yield Finding(
            check=NAME,
            severity=Severity.WARNING,
            subject=cable_text(fabric, row),
            text=f"cable {cable_text(fabric, row)} carries {seen}, both ends could {wanted}",
        )
    yield from _odd(fabric, set(told))


def _told(fabric: Fabric) -> dict[int, float]:
    """Data bytes/s that a cable could have, by the lower-numbered row of its two directions."""
    links, ports = fabric.links, fabric.ports
    rows = np.flatnonzero(ports.could_be > 0).tolist()
    ends = zip(links.source.tolist(), links.source_adapter.tolist(), links.source_port.tolist(), strict=True)
    link_of = {end: row for row, end in enumerate(ends)} if rows else {}
    back = _way_back(fabric) if rows else {}
    found: dict[int, float] = {}
    for port in rows:
        end = (int(ports.vertex[port]), int(ports.adapter[port]), int(ports.number[port]))
        link = link_of.get(end)
        if link is not None and ports.could_be[port] > links.capacity[link]:
            found.setdefault(min(link, back.get(link, link)), float(ports.could_be[port]))
    return found


def _way_back(fabric: Fabric) -> dict[int, int]:
    """The other direction of each cable whose ports are known."""
    links = fabric.links
    there = list(
        zip(
            links.source.tolist(),
            links.source_port.tolist(),
            links.target.tolist(),
            links.target_port.tolist(),
            strict=True,
        )
    )
    row_of = {ends: row for row, ends in enumerate(there)}
    pairs = ((row, row_of.get((c, d, a, b))) for row, (a, b, c, d) in enumerate(there))
    return {row: other for row, other in pairs if other is not None}


def _odd(fabric: Fabric, known: set[int]) -> Iterator[Finding]:
    """Cables below the speed that nearly all have, hosts' cables and those between switches apart."""
    links = fabric.links
    of_host: Bools = (fabric.kind[links.source] == HOST) | (fabric.kind[links.target] == HOST)
    for own, what in ((of_host, "hosts' cables"), (~of_host, "cables between switches")):
        rows: Longs = np.flatnonzero(own & (links.source < links.target))
        if not len(rows):
            continue
        each = links.capacity[rows] / links.cables[rows]
        speeds, counts = np.unique(each, return_counts=True)
        usual = int(np.argmax(counts))
        if counts[usual] < NEARLY_ALL * len(rows):
            continue
        for row in rows[each < speeds[usual]].tolist():
            if row in known:
                continue
            seen, most = (text(float(value), RATE) for value in (links.capacity[row], speeds[usual]))
            others = f"{counts[usual]} of {len(rows)} {what} {most}"
            yield Finding(
                check=NAME,
                severity=Severity.NOTE,
                subject=cable_text(fabric, row),
                text=f"cable {cable_text(fabric, row)} carries {seen}, {others}",
            )
