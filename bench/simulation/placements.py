"""Make placements of different kinds: random, by rule, searched for short or long, and partly spoilt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bench.simulation.runs import placed_by, problem
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import LINKS
from mapping.placement.place import place
from mapping.placement.problem import Problem
from mapping.placement.search import SearchOptions
from registry.model import Fabric, Placement, Profile

RULES = (
    *("in-order", "round-robin:over=switches"),
    *("greedy", "greedy:near=last", "greedy:starts=8", "greedy:by=congestion"),
    *("rcm", "recursive-bisection", "multilevel", "spectral", "ohtma", "random-search"),
)
SEARCHES = {
    "hop-bytes": "random+pair-exchange",
    "congestion": "random+congestion-descent",
    "mapping-coefficient": "random+pair-exchange",
}
"""The chain that each objective is searched with, from a random placement."""
STEPS = {
    "hop-bytes": (100, 300, 1_000, 3_000, 10_000, 100_000),
    "congestion": (100, 300, 1_000, 3_000, 10_000, 100_000),
    "mapping-coefficient": (1_000, 100_000),
}
SEEDS = {"hop-bytes": 2, "congestion": 2, "mapping-coefficient": 1}
EXCHANGES = (1, 2, 4, 8, 16)
DRAWN, HALF_LOCAL = 10, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A placement and its kind."""

    kind: str
    placement: Placement


def of_every_kind(fabric: Fabric, profile: Profile, routing: str, *, small: bool = False) -> list[Tried]:
    """Return 72 placements of a profile on all hosts of a fabric, one rank each (15 if small)."""
    where = problem(fabric, profile, routing, LINKS)
    drawn, half, rules = (2, 1, RULES[:3]) if small else (DRAWN, HALF_LOCAL, RULES)
    found = [Tried(kind="random", placement=placed_by("random", where, seed)) for seed in range(drawn)]
    found += [
        Tried(kind="random-local", placement=placed_by("random-local", where, seed)) for seed in range(drawn)
    ]
    found += [
        Tried(kind="random, half local", placement=placed_by("random-local:share=0.5", where, seed))
        for seed in range(half)
    ]
    found += [Tried(kind=text, placement=placed_by(text, where)) for text in rules]
    last: dict[str, Placement] = {}
    for objective in SEARCHES:
        for tried in _searched(fabric, profile, where, routing, objective, small):
            last[objective] = tried.placement
            found.append(tried)
    generator = np.random.default_rng(0)
    for objective in ("hop-bytes", "congestion"):
        for count in EXCHANGES[:1] if small else EXCHANGES:
            spoilt = exchanged(last[objective], count, generator)
            found.append(Tried(kind=f"{objective}, {count} pairs exchanged", placement=spoilt))
    return found


def exchanged(placement: Placement, count: int, generator: np.random.Generator) -> Placement:
    """Return the placement after random pairs of ranks have swapped hosts."""
    hosts = placement.host_of_rank.copy()
    for _ in range(count):
        pair = generator.choice(len(hosts), 2, replace=False)
        hosts[pair] = hosts[pair[::-1]]
    return replace(placement, host_of_rank=hosts, strategy=f"{placement.strategy} exchanged")


def _searched(
    fabric: Fabric, profile: Profile, where: Problem, routing: str, objective: str, small: bool
) -> Iterator[Tried]:
    """Run searches of growing length, each from its own start."""
    steps, seeds = (STEPS[objective][::4], 1) if small else (STEPS[objective], SEEDS[objective])
    for count in steps:
        for seed in range(seeds):
            placement = place(
                fabric,
                profile,
                where.allocation,
                SearchOptions(
                    objective=objective, strategies=[SEARCHES[objective]], steps=count, seed=seed, workers=1
                ),
                CostModel(routing=routing),
            )
            yield Tried(kind=f"{objective}, {count:,} proposals", placement=placement)
