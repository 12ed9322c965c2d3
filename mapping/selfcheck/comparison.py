"""What a check compared, and which values differ."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mapping.selfcheck import oracles
from registry.model import Allocation, Fabric, Placement

TOLERANCE = 1e-9
"""Largest relative difference of two values that agree."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What the checks are run on.

    Attributes
    ----------
    fabric : Fabric
    seconds : float
        Time after which a check starts no further comparison.
    generator : Generator
        Draws the hosts and the traffic that are compared.
    """

    fabric: Fabric
    seconds: float
    generator: np.random.Generator

    def draw_hosts(self, most: int) -> list[int]:
        """Return at most so many hosts that have a cable, drawn at random, ascending."""
        cabled = np.intersect1d(self.fabric.hosts, self.fabric.links.source)
        drawn = self.generator.choice(cabled, min(most, len(cabled)), replace=False)
        return sorted(drawn.tolist())


@dataclass(slots=True)
class Comparison:
    """Values compared so far; each value of the program beside one computed independently.

    Attributes
    ----------
    unit : str
        What was compared, in the plural: ``pairs of hosts``.
    compared : int
    largest_difference : float
        Largest relative difference.
    differences : list of str
        Description of each pair of values that differ by more than `TOLERANCE`.
    skipped : int
        Comparisons left out because the slow computation would take too long.
    """

    unit: str
    compared: int = 0
    largest_difference: float = 0.0
    differences: list[str] = field(default_factory=list)
    skipped: int = 0
    _started: float | None = None

    @property
    def agrees(self) -> bool:
        """True if something was compared and nothing differs."""
        return self.compared > 0 and not self.differences

    def goes_on(self, subject: Subject) -> bool:
        """Return True until the time of the check is over, which begins with the first call."""
        if self._started is None:
            self._started = time.monotonic()
        return time.monotonic() - self._started < subject.seconds

    def routes(
        self, subject: Subject, pairs: Iterable[tuple[int, int]], routing: str
    ) -> Iterator[tuple[int, int, oracles.Route | None]]:
        """Yield pairs of hosts with enumerated routes while time is left; skip those of too many paths."""
        for source, target in pairs:
            if not self.goes_on(subject):
                return
            try:
                yield source, target, oracles.route(subject.fabric, source, target, routing)
            except oracles.TooManyPaths:
                self.skipped += 1

    def add(self, what: str, value: float, expected: float) -> None:
        """Compare a value of the program with the expected one."""
        self.compared += 1
        if value == expected:
            return
        scale = max(abs(value), abs(expected))
        difference = abs(value - expected) / scale if math.isfinite(scale) else math.inf
        self.largest_difference = max(self.largest_difference, difference)
        if not difference <= TOLERANCE:
            self.differences.append(f"{what}: {value:.12g}, expected {expected:.12g}")


def one_rank_per_host(fabric: Fabric, hosts: list[int]) -> Placement:
    """Return the placement of rank i on the i-th host."""
    allocation = Allocation.of(fabric, hosts, 1)
    return Placement(host_of_rank=np.array(hosts, np.int32), allocation=allocation, strategy="given")
