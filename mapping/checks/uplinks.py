"""Leaf switches with fewer cables to other switches than nearly all leaf switches have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from mapping.checks.finding import Finding, Severity, Subject, some
from registry.model import HOST

NAME = "uplinks"
USUAL_SHARE = 0.75
"""So many of the leaf switches must have the same number of cables before another number is odd."""


def find(subject: Subject) -> Iterator[Finding]:
    """Switches with hosts and with fewer cables up than usual; of irregular networks nothing is said."""
    fabric = subject.fabric
    links, cables = fabric.links, fabric.links.cables.astype(np.int64)
    to_host = fabric.kind[links.target] == HOST
    uplinks = np.bincount(links.source[~to_host], weights=cables[~to_host], minlength=len(fabric)).astype(int)
    serves = np.bincount(links.source[to_host], minlength=len(fabric)) > 0
    leaves = [vertex for vertex in fabric.switches.tolist() if serves[vertex]]
    counts = Counter(int(uplinks[leaf]) for leaf in leaves)
    if not counts:
        return
    usual, frequency = max(counts.items(), key=lambda item: (item[1], item[0]))
    if frequency < USUAL_SHARE * len(leaves):
        return
    fewer: dict[int, list[str]] = defaultdict(list)
    for leaf in leaves:
        if uplinks[leaf] < usual:
            fewer[int(uplinks[leaf])].append(fabric.names[leaf])
    for count, names in sorted(fewer.items()):
        yield Finding(
            check=NAME,
            severity=Severity.WARNING if count else Severity.ERROR,
            subject=names[0],
            text=f"{some(names)}: {count} cables to other switches, {frequency} of {len(leaves)} "
            f"leaf switches have {usual}",
            count=len(names),
        )
