"""Cables that went down more often than the limit, by the counters of their ports or in the scans."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapping.checks.finding import Finding, Severity, Subject
from registry.model.fabric import port_name
from registry.units import moment_text

COUNTER = "link_downed"

Ends = tuple[str, ...]
"""Ports of a cable, such as ``leaf01:3``, in order; only one of them if no cable is in it now."""


def find(subject: Subject) -> Iterator[Finding]:
    """Return a finding for each cable that went down too often, the most frequent first."""
    limit = subject.limits.errors.get(COUNTER, np.inf)
    texts: dict[Ends, list[str]] = {}
    worst: dict[Ends, int] = {}
    counted, since = _counted(subject)
    seen = {
        _ends((one.source, one.source_port), (one.target, one.target_port)): one.times
        for one in (() if subject.losses is None else subject.losses.interruptions)
        if one.times > limit
    }
    for found, how in ((counted, f"by its counters since {since}"), (seen, "in the scans")):
        for ends, times in found.items():
            texts.setdefault(ends, []).append(f"{times:,} times {how}")
            worst[ends] = max(times, worst.get(ends, 0))
    for ends in sorted(texts, key=lambda ends: (-worst[ends], ends)):
        cable = " - ".join(ends)
        yield Finding(
            Severity.WARNING, cable, f"cable {cable} went down {', '.join(texts[ends])}", worst[ends]
        )


def _counted(subject: Subject) -> tuple[dict[Ends, int], str]:
    """Return how often cables went down by their counters, if above the limit, and since when.

    Both ports of a cable count it; the larger number is returned.
    """
    found: dict[Ends, int] = {}
    errors, links, names = subject.port_errors, subject.fabric.links, subject.fabric.names
    if errors is None or COUNTER not in errors.names:
        return found, ""
    column = errors.names.index(COUNTER)
    for row in np.flatnonzero(errors.over[:, column]).tolist():
        link = int(errors.link[row])
        near = errors.device[row], int(errors.grown.port[row])
        ends = _ends(near)
        if link >= 0:
            ends = _ends(near, (names[int(links.target[link])], int(links.target_port[link])))
        found[ends] = max(int(errors.amount[row, column]), found.get(ends, 0))
    return found, moment_text(errors.grown.start)


def _ends(*ports: tuple[str, int]) -> Ends:
    return tuple(sorted(port_name(name, port) for name, port in ports))
