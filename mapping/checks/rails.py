"""Hosts with fewer rails than their peers: hosts of the same kind, told by the name without its numbers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from mapping.checks.finding import Finding, Severity, Subject, some

NAME = "rails"
FEWEST = 3
"""Hosts of one kind from which on most of them say what is usual."""
_NUMBERS = re.compile(r"\d+")


def find(subject: Subject) -> Iterator[Finding]:
    """Hosts whose ports that are up are fewer than most of their kind have."""
    fabric = subject.fabric
    links, hosts = fabric.links, fabric.hosts
    up = np.bincount(links.source, weights=links.cables, minlength=len(fabric)).astype(int)
    kinds: dict[str, list[int]] = defaultdict(list)
    for host in hosts.tolist():
        kinds[_NUMBERS.sub("#", fabric.names[host])].append(host)
    for kind, members in sorted(kinds.items()):
        if len(members) < FEWEST:
            continue
        usual = _usual([int(up[host]) for host in members])
        fewer = [host for host in members if up[host] < usual]
        by_count: dict[int, list[str]] = defaultdict(list)
        for host in fewer:
            by_count[int(up[host])].append(fabric.names[host])
        for count, names in sorted(by_count.items()):
            cables = f"{count} cable{'' if count == 1 else 's'}" if count else "no cable"
            yield Finding(
                check=NAME,
                severity=Severity.WARNING if count else Severity.ERROR,
                subject=names[0],
                text=f"{some(names)}: {cables} up, most hosts called {kind} have {usual}",
                count=len(names),
            )


def _usual(counts: list[int]) -> int:
    """The most frequent count; of equally frequent ones the larger."""
    frequency = Counter(counts)
    return max(frequency, key=lambda count: (frequency[count], count))
