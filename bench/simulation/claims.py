"""Compare simulated runs with the claims of the paper of 2004, counted over networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bench.simulation.runs import percent, span
from bench.support.papers import Row

MORE = 0.6
"""Of throughput, over the best random mapping with locality."""
MOST = 4.0
"""Of throughput, over random mappings; "up to"."""
FOUND = {
    "paper": "the paper's search as printed",
    "thorough": "the paper's coefficient minimised thoroughly",
    "ours": "ours",
}
"""Mappings that are compared with random ones."""
WHY_LOCALITY = (
    "the paper's networks, packets and time scale are not published, nor how many ranks its mappings with "
    "locality place on a switch; here all four"
)
WHY_RANDOM = "largest over the networks; the mean of the random mappings and the best of them"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Result of a simulated run, with the values that the figures show.

    Attributes
    ----------
    throughput : bytes/s over the whole run
    peak_latency, mean_latency : cycles; the peak is the largest mean of the messages of a point
    at, traffic, latency : points: cycle, flits a switch and cycle since the point before, mean latency in
        cycles
    """

    throughput: float
    peak_latency: float
    mean_latency: float
    at: tuple[float, ...]
    traffic: tuple[float, ...]
    latency: tuple[float, ...]

    @property
    def peak_traffic(self) -> float:
        """Flits a switch and cycle of the fastest point."""
        return max(self.traffic)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """Outcomes of all mappings of a program on a network; `half`: with locality of half of the ranks.

    `coefficient`: mapping coefficient of ``paper``, ``thorough`` and ``ours`` over that of the mapping with
    locality that ran best; empty if not computed.
    """

    random: tuple[Outcome, ...]
    local: tuple[Outcome, ...]
    half: tuple[Outcome, ...]
    paper: Outcome
    thorough: Outcome
    ours: Outcome
    coefficient: Mapping[str, float] = field(default_factory=dict)

    def best(self, several: Sequence[Outcome], *, peak: bool) -> Outcome:
        """Return the outcome with the highest throughput, or with `peak` the lowest peak latency."""
        if peak:
            return min(several, key=lambda one: one.peak_latency)
        return max(several, key=lambda one: one.throughput)

    def gain(self, name: str, against: str, *, peak: bool) -> float:
        """Return throughput (or peak latency) of one of `FOUND` over the best of others, minus one.

        `against`: ``random``, ``local`` or ``half``.
        """
        one: Outcome = getattr(self, name)
        other = self.best(getattr(self, against), peak=peak)
        if peak:
            return one.peak_latency / other.peak_latency - 1.0
        return one.throughput / other.throughput - 1.0

    def over_mean_random(self, name: str) -> float:
        """Return throughput over the mean of the random mappings, minus one."""
        one: Outcome = getattr(self, name)
        return one.throughput / float(np.mean([other.throughput for other in self.random])) - 1.0


def rows_of_coefficients(program: str, several: Sequence[Tried]) -> list[Row]:
    """Compare the mapping coefficients with that of the mapping with locality that ran best."""
    rows = []
    for name, called in FOUND.items():
        ratios = [one.coefficient[name] - 1.0 for one in several]
        less = percent(sum(value < 0 for value in ratios), len(ratios))
        rows.append(
            Row(
                what=f"{program}: {called}, mapping coefficient; networks where it is less",
                ours=f"{span(ratios)}; {less}",
                baseline="random mapping with locality that ran best",
            )
        )
    return rows


def rows_of_cg(several: Sequence[Tried], program: str = "CG") -> list[Row]:
    """Compare throughput far beyond saturation (Figures 8 and 11)."""
    rows = []
    for name, called in FOUND.items():
        local = [one.gain(name, "local", peak=False) for one in several]
        half = [one.gain(name, "half", peak=False) for one in several]
        random = [one.gain(name, "random", peak=False) for one in several]
        mean = [one.over_mean_random(name) for one in several]
        rows += [
            *_rows_of_locality(f"{program}: {called}", local, half),
            Row(
                what=f"{program}: {called}, largest gain of throughput over the networks",
                ours=f"{max(mean):.3g}; {max(random):.3g}",
                baseline="mean of the random mappings; best of them",
                paper="2004-random",
                why=WHY_RANDOM,
            ),
            Row(
                what=f"{program}: {called}, networks with {MOST:.0%} more throughput or more",
                ours=percent(sum(value >= MOST for value in mean), len(mean)),
                baseline="mean of the random mappings",
                paper="2004-random",
                why='the paper says "up to"',
            ),
            Row(
                what=f"{program}: {called}, networks with more throughput than every random mapping",
                ours=percent(sum(min(a, b) > 0 for a, b in zip(local, random, strict=True)), len(local)),
                baseline="all random mappings, with locality and without",
                paper="2004-figure-11",
            ),
        ]
    return rows


def _rows_of_locality(called: str, local: Sequence[float], half: Sequence[float]) -> list[Row]:
    """Compare throughput with random mappings with locality, of all ranks and of half of them."""
    row = partial(Row, paper="2004-locality", why=WHY_LOCALITY)
    more = f"{called}, networks with {MORE:.0%} more throughput or more"
    enough, enough_half = (percent(sum(v >= MORE for v in gains), len(gains)) for gains in (local, half))
    baseline = "best random mapping with locality"
    return [
        row(what=more, ours=enough, baseline=baseline),
        row(what=f"{called}, throughput", ours=span(local), baseline=baseline),
        row(what=more, ours=f"{enough_half}; {span(half)}", baseline=f"{baseline} of half of the ranks"),
    ]


def rows_of_sp(several: Sequence[Tried]) -> list[Row]:
    """Compare latency and traffic in bursts (Figures 9, 10, 12 and 13)."""
    rows = []
    for name, called in FOUND.items():
        peak = [_lowest(one, name) for one in several]
        traffic = [_fastest(one, name) for one in several]
        local = [one.gain(name, "local", peak=True) for one in several]
        random = [one.gain(name, "random", peak=True) for one in several]
        rows += [
            Row(
                what=f"SP: {called}, networks with the lowest peak latency",
                ours=percent(sum(peak), len(peak)),
                baseline="all random mappings, with locality and without",
                paper="2004-figure-9",
            ),
            Row(
                what=f"SP: {called}, peak latency",
                ours=span(local),
                baseline="lowest of the random mappings with locality",
                paper="2004-figure-12",
                why="the paper says much lower, and gives no number",
            ),
            Row(
                what=f"SP: {called}, peak latency",
                ours=span(random),
                baseline="lowest of the random mappings",
                paper="2004-orders",
                why="several orders of magnitude need bursts that a random mapping does not work off before "
                "the next; the factor by which times were shortened is not published",
            ),
            Row(
                what=f"SP: {called}, networks with the highest traffic at a peak",
                ours=percent(sum(traffic), len(traffic)),
                baseline="all random mappings, with locality and without",
                paper="2004-figure-13",
            ),
        ]
    return rows


def rows_of_rounds(program: str, several: Sequence[Tried]) -> list[Row]:
    """Compare throughput of a program that sends in rounds."""
    rows = []
    for name, called in FOUND.items():
        local = [one.gain(name, "local", peak=False) for one in several]
        more = sum(value > 0 for value in local)
        rows.append(
            Row(
                what=f"{program.upper()}: {called}, throughput; networks where it is more",
                ours=f"{span(local)}; {percent(more, len(local))}",
                baseline="best random mapping with locality",
                paper="2004-others",
                why="generated traffic in rounds, no trace; where all ranks exchange with all (IS) mappings "
                "differ little",
            )
        )
    return rows


def _lowest(one: Tried, name: str) -> bool:
    found: Outcome = getattr(one, name)
    return all(found.peak_latency < other.peak_latency for other in (*one.random, *one.local))


def _fastest(one: Tried, name: str) -> bool:
    found: Outcome = getattr(one, name)
    return found.peak_traffic >= max(other.peak_traffic for other in (*one.random, *one.local))
