"""Members of a portfolio that run one after another: a task for one thread, process or machine.

A member's generator is its own, and under a number of steps its part of them too, so that what it finds
does not depend on the lane it runs in, on how many lanes there are, or on who is faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mapping.placement.catalog import Chain, Link
from mapping.placement.problem.budget import Budget
from mapping.placement.problem.objective import Objective, Score, better, score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Found
from registry.model import Ints

Tell = Callable[[str, int, Found | None], None]
"""Called with a phase, proposals made since the last call, and what was found."""


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


class Turn(NamedTuple):
    """A member's turn in a lane.

    Attributes
    ----------
    place : int
        Of the member in its portfolio.
    member : Member
    seed : SeedSequence
    steps : tuple of int, or None
        Proposals of each refiner; None: by the clock.
    """

    place: int
    member: Member
    seed: np.random.SeedSequence
    steps: tuple[int, ...] | None


class Tried(NamedTuple):
    """A placement that a member ended with.

    Attributes
    ----------
    place : int
        Of the member; -1 a baseline.
    host_of_rank : int32[ranks]
    chain : str
    score : Score or None
        None where an interrupt left no time to judge it.
    """

    place: int
    host_of_rank: Ints
    chain: str
    score: Score | None


class Outcome(NamedTuple):
    """What a lane found: the best of each member, how many proposals it took, whether it came to its end."""

    tried: tuple[Tried, ...]
    steps: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """The work of a lane; can be pickled if `stop` can.

    Attributes
    ----------
    problem : Problem
    objective : Objective
    turns : tuple of Turn
    start : int32[ranks]
        Where chains without a strategy begin.
    origin : str
        Its name.
    deadline : float
        Moment of ``time.time()``, which processes share.
    judging : float
        Seconds that one exact score takes.
    workers : int
        Threads for each refiner.
    stop : callable
        True once all shall end.
    """

    problem: Problem
    objective: Objective
    turns: tuple[Turn, ...]
    start: Ints
    origin: str
    deadline: float
    judging: float
    workers: int
    stop: Callable[[], bool]


def run_lane(task: Task, tell: Tell | None = None) -> Outcome:
    """Run the members one after another; after a KeyboardInterrupt what was found so far.

    Raises
    ------
    DisconnectedAllocation, UnreachablePair
    """
    lane = _Lane(task, tell)
    try:
        for turn in task.turns:
            if task.stop():
                break
            lane.run(turn)
    except KeyboardInterrupt:
        return Outcome(lane.found(), lane.taken, False)
    return Outcome(lane.found(), lane.taken, not task.stop())


class _Lane:
    """State of a run: what was found so far."""

    def __init__(self, task: Task, tell: Tell | None) -> None:
        self._task = task
        self._tell = tell or (lambda phase, taken, found: None)
        self._end = time.perf_counter() + task.deadline - time.time()
        self._weights = [weight for turn in task.turns for weight in turn.member.weights]
        self._judging = task.judging
        self._best: Tried | None = None
        self._closed: list[Tried] = []
        self._open: Tried | None = None
        self.taken = 0

    def found(self) -> tuple[Tried, ...]:
        """The best of each member so far, and what was not judged any more."""
        return (*self._closed, *(one for one in (self._best, self._open) if one is not None))

    def run(self, turn: Turn) -> None:
        """One member: its strategy, then its refiners."""
        generator = np.random.default_rng(turn.seed)
        hosts, name = self._begin(turn.member.chain, generator)
        self._judge(turn.place, hosts, name)
        for at, link in enumerate(turn.member.chain.refiners):
            name = f"{name}+{link}"
            budget = self._budget(None if turn.steps is None else turn.steps[at])
            hosts = self._refine(link, turn.place, hosts, name, budget, generator)
            self._judge(turn.place, hosts, name)
            self._weights = self._weights[1:]
        if self._best is not None:
            self._closed.append(self._best)
        self._best = None

    def _begin(self, chain: Chain, generator: np.random.Generator) -> tuple[Ints, str]:
        task = self._task
        if chain.strategy is None:
            return task.start, task.origin
        self._tell(str(chain.strategy), 0, None)
        hosts = chain.strategy.strategy()(task.problem, generator)
        return task.problem.honour_pins(hosts), str(chain.strategy)

    def _budget(self, steps: int | None) -> Budget:
        """Of the next refiner, whose weight is the first of those that are left."""
        task = self._task
        if steps is not None:
            return Budget(steps=steps, workers=task.workers, stop=task.stop)
        left = self._end - time.perf_counter() - self._judging * len(self._weights)
        part = self._weights[0] / sum(self._weights)
        return Budget(seconds=left * part, workers=task.workers, stop=task.stop)

    def _refine(
        self, link: Link, place: int, hosts: Ints, name: str, budget: Budget, generator: np.random.Generator
    ) -> Ints:
        told, before = 0, self.taken
        for found in link.refiner()(self._task.problem, hosts, budget, generator):
            hosts = found.host_of_rank
            self._open = Tried(place, hosts, name, None)
            self.taken = before + budget.taken
            self._tell(name, budget.taken - told, found)
            told = budget.taken
        self.taken = before + budget.taken
        self._tell(name, budget.taken - told, None)
        return hosts

    def _judge(self, place: int, hosts: Ints, name: str) -> None:
        """Score a placement exactly and keep it if it is the member's best."""
        best = self._best
        if best is None or not np.array_equal(hosts, best.host_of_rank):
            self._open = Tried(place, hosts, name, None)
            begin = time.perf_counter()
            found = score(self._task.problem, hosts)
            self._judging = time.perf_counter() - begin
            if best is None or best.score is None or better(self._task.objective, found, best.score):
                self._best = Tried(place, hosts, name, found)
        self._open = None
