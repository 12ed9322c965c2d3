"""Devices with fewer cables than similar devices: rails of hosts, uplinks of leaf switches."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from mapping.checks.finding import Finding, Severity, Subject, some, unnamed_text
from registry.model import HOST, Fabric, Longs

FEWEST = 3
"""Smallest number of hosts of one kind for which a usual number of cables is derived."""
USUAL_SHARE = 0.75
"""Part of the leaf switches that must have the same number of cables before a lower one is reported."""
NUMBERS = re.compile(r"\d+")
"""Parts of names in which devices of one kind differ."""


def find_rails(subject: Subject) -> Iterator[Finding]:
    """Return findings for hosts with fewer working cables than most of their kind.

    Hosts are of one kind if their names are the same except for numbers.
    """
    fabric = subject.fabric
    links = fabric.links
    up = np.bincount(links.source, weights=links.cables, minlength=len(fabric)).astype(np.int64)
    kinds: dict[str, list[int]] = defaultdict(list)
    for host in np.setdiff1d(fabric.hosts, fabric.unnamed).tolist():
        kinds[NUMBERS.sub("#", fabric.names[host])].append(host)
    for kind, members in sorted(kinds.items()):
        if len(members) < FEWEST:
            continue
        usual = _most_common(int(up[host]) for host in members)[0]
        for count, names in _with_fewer(fabric, members, up, usual):
            cables = f"{count} cable{'' if count == 1 else 's'}" if count else "no cable"
            text = f"{some(names)}: {cables} up, most hosts named {kind} have {usual}{unnamed_text(fabric)}"
            yield Finding(_severity(count), names[0], text, len(names))


def find_uplinks(subject: Subject) -> Iterator[Finding]:
    """Return findings for leaf switches with too few uplinks; none for irregular networks."""
    fabric = subject.fabric
    links, cables = fabric.links, fabric.links.cables.astype(np.int64)
    to_host = fabric.kind[links.target] == HOST
    uplinks = np.bincount(links.source[~to_host], weights=cables[~to_host], minlength=len(fabric))
    serves = np.bincount(links.source[to_host], minlength=len(fabric)) > 0
    leaves = [vertex for vertex in fabric.switches.tolist() if serves[vertex]]
    if not leaves:
        return
    usual, frequency = _most_common(int(uplinks[leaf]) for leaf in leaves)
    if frequency < USUAL_SHARE * len(leaves):
        return
    rest = f"{frequency} of {len(leaves)} leaf switches have {usual}"
    for count, names in _with_fewer(fabric, leaves, uplinks.astype(np.int64), usual):
        text = f"{some(names)}: {count} cables to other switches, {rest}"
        yield Finding(_severity(count), names[0], text, len(names))


def _most_common(counts: Iterable[int]) -> tuple[int, int]:
    """Return the most frequent count and its frequency; of equally frequent ones the larger."""
    return max(Counter(counts).items(), key=lambda item: (item[1], item[0]))


def _with_fewer(
    fabric: Fabric, devices: Iterable[int], cables: Longs, usual: int
) -> list[tuple[int, list[str]]]:
    """Return the names of devices with fewer cables than usual, by their number of cables."""
    names: dict[int, list[str]] = defaultdict(list)
    for device in devices:
        if cables[device] < usual:
            names[int(cables[device])].append(fabric.names[device])
    return sorted(names.items())


def _severity(cables: int) -> Severity:
    return Severity.WARNING if cables else Severity.ERROR
