"""Objectives: what is minimised, and the order in which metrics decide between two placements.

An objective is a text: levels between commas, compared in order; a level is a metric, or a weighted sum
of metrics such as ``2*congestion+hop-bytes``, each relative to its value for ranks in order (or for the
given placement). If all levels are equal, those of ``congestion`` decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from mapping.placement.problem import Problem
from registry.errors import InvalidValue, UnknownName
from registry.model import Floats, Ints
from registry.model.views import content

METRICS = {
    "congestion": "congestion_seconds",
    "network-congestion": "network_congestion_seconds",
    "mean-congestion": "mean_congestion_seconds",
    "hop-bytes": "hop_bytes",
    "dilation": "hop_bytes",
    "mapping-coefficient": "hop_bytes",
    "max-dilation": "max_dilation",
}
"""Name of a metric in objectives -> field of `Score`. Average dilation is hop-bytes over the bytes of the
profile, so that it orders placements as hop-bytes do. The mapping coefficient is hop-bytes under another
convention of distance: by default ``equivalent+2``."""
TIES = ("congestion", "network-congestion", "hop-bytes")
"""Levels that decide after all given ones."""

SAME = 1e-9
"""Two values closer than this, relatively, are equal: sums of loads differ by rounding alone."""
AT_BOUND = 1e-8
"""A value at most this far above a certified bound, relatively, meets it: bounds are lowered by 1e-9."""


class Score(NamedTuple):
    """Exact metrics of a placement; names and units as in `registry.model.Evaluation`."""

    congestion_seconds: float
    network_congestion_seconds: float
    hop_bytes: float
    """Bytes times `Problem.distances`; default: number of links crossed."""
    mean_congestion_seconds: float = 0.0
    max_dilation: float = 0.0


class Term(NamedTuple):
    """A metric (a key of `METRICS`) and its weight within a level."""

    metric: str
    weight: float

    def __str__(self) -> str:
        return self.metric if self.weight == 1.0 else f"{self.weight:g}*{self.metric}"

    @property
    def field(self) -> str:
        """Field of `Score`."""
        return METRICS[self.metric]


@dataclass(frozen=True, slots=True)
class Objective:
    """Levels of metrics, most important first."""

    asked: tuple[tuple[Term, ...], ...]
    """Terms of each level as written."""
    reference: Score | None = None
    """Metrics of the placement to which sums are relative."""
    bounds: Score | None = None
    """Certified lower bounds of the metrics, minus infinity where none is known."""

    def __str__(self) -> str:
        return ",".join("+".join(map(str, level)) for level in self.asked)

    @property
    def leading(self) -> str:
        """Metric with the largest weight in the first level, on which a search works."""
        return max(self.asked[0], key=lambda term: term.weight).metric

    @property
    def levels(self) -> tuple[tuple[Term, ...], ...]:
        """All levels: as written, then the `TIES` that are not yet separate levels."""
        alone = {level[0].field for level in self.asked if len(level) == 1}
        return self.asked + tuple((Term(name, 1.0),) for name in TIES if METRICS[name] not in alone)

    def value(self, score: Score, level: int = 0) -> float:
        """Return the value of one level; a sum is relative to the reference.

        Raises:
            InvalidValue: A sum without a reference.
        """
        terms = self.levels[level]
        if len(terms) == 1:
            return float(getattr(score, terms[0].field))
        if self.reference is None:
            raise InvalidValue("Objective.reference", f"{self} needs one: its metrics have different units")
        pairs = ((getattr(score, t.field), getattr(self.reference, t.field), t.weight) for t in terms)
        return sum(weight * _relative(value, usual) for value, usual, weight in pairs)

    def is_optimal(self, score: Score) -> bool:
        """Return True if no placement can be better: all metrics as written meet their certified bounds.

        With congestion alone the worst network link must meet its bound, too: the worst of all links may be a
        host's own cable, which no placement relieves.
        """
        if self.bounds is None:
            return False
        count = len(self.asked) + (str(self) == TIES[0])
        fields = {term.field for level in self.levels[:count] for term in level}
        limits = ((getattr(score, field), getattr(self.bounds, field)) for field in fields)
        return all(value <= bound * (1.0 + AT_BOUND) for value, bound in limits)

    def relative_to(self, reference: Score) -> Self:
        """Return the objective with its sums relative to the metrics of a placement."""
        return replace(self, reference=reference)

    def bounded_by(self, bounds: Mapping[str, float]) -> Self:
        """Return the objective with certified lower bounds, by field of `Score`; others are not known."""
        return replace(self, bounds=Score(**{**dict.fromkeys(Score._fields, -math.inf), **bounds}))


@lru_cache(maxsize=64)
def parse_objective(text: str) -> Objective:
    """Parse an objective such as ``congestion`` or ``2*congestion+hop-bytes,max-dilation``.

    Raises:
        UnknownName: An unknown metric, with the closest names.
        InvalidValue: No text, or a weight that is not above zero.
    """
    levels = content(text, str, "objective").split(",")
    return Objective(tuple(tuple(map(_term, level.split("+"))) for level in levels))


def score(problem: Problem, host_of_rank: Ints) -> Score:
    """Compute the exact metrics of a placement by host index.

    Raises:
        DisconnectedAllocation, UnreachablePair
    """
    source, target, size = problem.host_traffic(host_of_rank)
    loads, hops = problem.routes.load(source, target, size)
    found = score_of_loads(problem, loads)
    if problem.own_distances is not None:
        found = found._replace(hop_bytes=problem.hop_bytes(host_of_rank))
    return found._replace(max_dilation=float(hops.max(initial=0.0)))


def score_of_loads(problem: Problem, link_bytes: Floats) -> Score:
    """Compute metrics of the job's loads of ``fabric.links`` with those of others; `max_dilation` stays 0.

    A link that only others load costs nothing; otherwise their worst link would count for every job.
    """
    loaded = link_bytes > 0
    seconds = np.where(loaded, (link_bytes + problem.link_background) / problem.link_capacity, 0.0)
    return Score(
        congestion_seconds=float(seconds.max(initial=0.0)),
        network_congestion_seconds=float(seconds[problem.routes.fabric.network_link].max(initial=0.0)),
        hop_bytes=float(link_bytes.sum()),
        mean_congestion_seconds=float(seconds[loaded].mean()) if bool(loaded.any()) else 0.0,
    )


def better(objective: Objective | str, one: Score, other: Score) -> bool:
    """Return True if the first placement is better, by the first level in which the two differ."""
    wanted = parse_objective(objective) if isinstance(objective, str) else objective
    for level in range(len(wanted.levels)):
        a, b = wanted.value(one, level), wanted.value(other, level)
        if abs(a - b) > SAME * max(abs(a), abs(b)):
            return a < b
    return False


def _relative(value: float, usual: float) -> float:
    if usual > 0:
        return value / usual
    return 1.0 if value == 0 else math.inf


def _term(text: str) -> Term:
    weight, star, metric = text.strip().rpartition("*")
    metric = metric.strip()
    if metric not in METRICS:
        raise UnknownName("objective", metric, METRICS)
    try:
        factor = float(weight) if star else 1.0
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor > 0):
        raise InvalidValue("objective", f"the weight {weight.strip()!r} of {metric} is not above zero")
    return Term(metric, factor)
