"""Run several chains of strategies on one budget and keep the best placement, judged exactly.

Chains run one after the other, each with a fixed part of the budget, so that under a number of steps the
result depends on nothing but the seed. The best so far is kept at all times: an interrupt loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mapping.budget import Budget
from mapping.catalog import Chain, Entry, load_refiner, load_strategy
from mapping.objective import OBJECTIVES, Score, better, score
from mapping.problem import Problem
from mapping.refine import Found
from registry.model import Ints
from registry.progress import Progress

DEFAULTS = {
    "congestion": ("in-order+pair-exchange+congestion-descent",),
    "hop-bytes": ("in-order+pair-exchange",),
    "dilation": ("in-order+pair-exchange",),
}
"""Objective -> chains of the default portfolio. On large problems one long search beats several short."""
SMALL = 256
"""Up to so many ranks a search is over long before its budget, and ends where luck leads it: so few ranks
get several."""
DEFAULTS_SMALL = {
    "congestion": (*DEFAULTS["congestion"], "random+congestion-descent", "greedy+congestion-descent"),
    "hop-bytes": (*DEFAULTS["hop-bytes"], "greedy+pair-exchange"),
    "dilation": (*DEFAULTS["dilation"], "greedy+pair-exchange"),
}
"""The same for problems of at most `SMALL` ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A chain and its part of the budget, relative to the other members'."""

    chain: Chain
    weight: float = 1.0

    @property
    def weights(self) -> tuple[float, ...]:
        """Part of each refiner."""
        total = sum(entry.weight for entry in self.chain.refiners)
        return tuple(self.weight * entry.weight / total for entry in self.chain.refiners)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a portfolio stops.

    Attributes
    ----------
    begin : float
        Moment of ``time.perf_counter()``.
    seconds : float
        From then.
    steps : int or None
        Proposals in all; then `seconds` is not looked at.
    """

    begin: float
    seconds: float
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """The best placement of a portfolio.

    Attributes
    ----------
    host_of_rank : int32[ranks]
        Host indices.
    chain : str
        Who found it.
    steps : int
        Proposals made by all members.
    complete : bool
        False after an interrupt.
    """

    host_of_rank: Ints
    chain: str
    steps: int
    complete: bool


def default_members(objective: str, ranks: int) -> tuple[Member, ...]:
    """The members that run where none are asked for."""
    chains = DEFAULTS_SMALL if ranks <= SMALL else DEFAULTS
    return tuple(Member(chain=Chain.parse(text)) for text in chains[objective])


class Portfolio:
    """One run over a problem.

    Parameters
    ----------
    problem : Problem
    objective : str
        A key of `mapping.objective.OBJECTIVES`.
    baselines : mapping of str to int32[ranks]
        Placements (host indices) by name. The first is where chains without a strategy start, and what
        an interrupt before anything was judged returns.
    limits : Limits
    progress : Progress
    """

    def __init__(
        self,
        problem: Problem,
        objective: str,
        baselines: Mapping[str, Ints],
        limits: Limits,
        progress: Progress,
    ) -> None:
        self._problem = problem
        self._objective = objective
        self._baselines = baselines
        self._limits = limits
        self._progress = progress
        self._origin, self._start = next(iter(baselines.items()))
        self._best: tuple[Ints, str, Score] | None = None
        self._open: tuple[Ints, str] | None = None
        self._judging = 0.0
        self._taken = 0

    def run(self, members: Sequence[Member], seed: int, *, guards: Collection[str]) -> Result:
        """Run the members and return the best placement of all.

        Parameters
        ----------
        guards : collection of str
            Baselines, of those there are, that the result is never worse than.

        Raises
        ------
        DisconnectedAllocation, UnreachablePair
        """
        complete = True
        try:
            for name, hosts in self._baselines.items():
                if name in guards:
                    self._judge(hosts, name)
            self._run(members, seed)
        except KeyboardInterrupt:
            complete = False
            if self._open is not None:
                self._judge(*self._open)
        hosts, name = (self._start, self._origin) if self._best is None else self._best[:2]
        return Result(host_of_rank=hosts, chain=name, steps=self._taken, complete=complete)

    def _run(self, members: Sequence[Member], seed: int) -> None:
        weights = [weight for member in members for weight in member.weights]
        generators = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(len(members)))
        for member, generator in zip(members, generators, strict=True):
            hosts, name = self._begin(member.chain, generator)
            self._judge(hosts, name)
            for entry in member.chain.refiners:
                name = f"{name}+{entry.name}"
                hosts = self._refine(entry, hosts, name, self._part(weights), generator)
                self._judge(hosts, name)
                weights = weights[1:]

    def _begin(self, chain: Chain, generator: np.random.Generator) -> tuple[Ints, str]:
        if chain.strategy is None:
            return self._start, self._origin
        self._tell(chain.strategy.name)
        return load_strategy(chain.strategy)(self._problem, generator), chain.strategy.name

    def _part(self, weights: Sequence[float]) -> Budget:
        """The budget of the next refiner, whose weight is the first of those that are left."""
        part = weights[0] / sum(weights)
        if self._limits.steps is not None:
            return Budget(steps=round((self._limits.steps - self._taken) * part))
        reserved = self._judging * len(weights)
        left = self._limits.begin + self._limits.seconds - time.perf_counter()
        return Budget(seconds=(left - reserved) * part)

    def _refine(
        self, entry: Entry, hosts: Ints, name: str, budget: Budget, generator: np.random.Generator
    ) -> Ints:
        taken = self._taken
        for found in load_refiner(entry)(self._problem, hosts, budget, generator):
            hosts = found.host_of_rank
            self._open = hosts, name
            self._taken = taken + budget.taken
            self._tell(name, found)
        self._taken = taken + budget.taken
        return hosts

    def _judge(self, hosts: Ints, name: str) -> None:
        """Score a placement exactly and keep it if it is the best."""
        if self._best is not None and np.array_equal(hosts, self._best[0]):
            return
        self._open = hosts, name
        begin = time.perf_counter()
        found = score(self._problem, hosts)
        if self._best is None or better(self._objective, found, self._best[2]):
            self._best = hosts, name, found
        self._open = None
        self._judging = time.perf_counter() - begin

    def _tell(self, phase: str, found: Found | None = None) -> None:
        metric = OBJECTIVES[self._objective][0]
        values = [] if self._best is None else [float(getattr(self._best[2], metric))]
        if found is not None and found.metric == metric:
            values.append(found.value)
        limits, best = self._limits, min(values, default=None)
        if limits.steps is not None:
            self._progress(phase, self._taken, limits.steps, best)
        else:
            self._progress(phase, time.perf_counter() - limits.begin, limits.seconds, best)
