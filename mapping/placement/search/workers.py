"""Members of a portfolio that one worker (thread, process or machine) runs one after another.

Each member has its own random generator and, under a limit in steps, its own share of the steps, so that
its result depends neither on the worker that runs it nor on the number or speed of the workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.catalog import Chain, Link
from mapping.placement.problem.objective import Objective, Score, better, score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Candidate
from registry.model import Ints

Report = Callable[[str, int, Candidate | None], None]
"""Called with a phase, the number of proposals since the last call, and the best candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A chain of strategies in a portfolio.

    Attributes
    ----------
    chain : Chain
    weight : float
        Share of the limit, relative to the other members'.
    number : int
        Position in the portfolio.
    seed : SeedSequence or None
        Of the member's random generator; set by the portfolio.
    steps : tuple of int or None
        Proposals of each refiner; None if the limit is in seconds.
    """

    chain: Chain
    weight: float = 1.0
    number: int = 0
    seed: np.random.SeedSequence | None = None
    steps: tuple[int, ...] | None = None

    @property
    def weights(self) -> tuple[float, ...]:
        """Share of each refiner."""
        total = sum(entry.weight for entry in self.chain.refiners)
        return tuple(self.weight * entry.weight / total for entry in self.chain.refiners)


class MemberResult(NamedTuple):
    """A placement with which a member ended.

    Attributes
    ----------
    number : int
        Position of the member in its portfolio; -1 for a baseline.
    host_of_rank : int32[ranks]
        Host indices.
    chain : str
    score : Score or None
        None if an interrupt came before it was computed.
    """

    number: int
    host_of_rank: Ints
    chain: str
    score: Score | None


class SearchResult(NamedTuple):
    """Result of a portfolio, or of the members that one worker ran.

    Attributes
    ----------
    members : tuple of MemberResult
        Best placement of each baseline and member.
    steps : int
        Proposals made.
    complete : bool
        False after an interrupt.
    best : int
        Index in `members` of the best placement.
    """

    members: tuple[MemberResult, ...]
    steps: int
    complete: bool
    best: int = 0

    @property
    def host_of_rank(self) -> Ints:
        """int32[ranks]: host indices of the best placement."""
        return self.members[self.best].host_of_rank

    @property
    def chain(self) -> str:
        """Name of the chain that found the best placement."""
        return self.members[self.best].chain


def run_members(
    problem: Problem,
    objective: Objective,
    members: tuple[Member, ...],
    start: MemberResult,
    deadline: Deadline,
    scoring_seconds: float,
    report: Report | None = None,
) -> SearchResult:
    """Run members one after another and return what was found, also after an interrupt.

    All arguments but `report` can be pickled.

    Parameters
    ----------
    start : MemberResult
        Placement from which chains without a strategy start.
    deadline : Deadline
        Its workers are the threads of each refiner.
    scoring_seconds : float
        Time to compute one exact score.

    Raises
    ------
    DisconnectedAllocation, UnreachablePair
    """
    worker = _Worker(problem, objective, members, start, deadline, scoring_seconds, report)
    with deadline.interruptible():
        for member in members:
            if deadline.stopped:
                break
            worker.run(member)
    return SearchResult(worker.results(), worker.taken, not deadline.stopped)


class _Worker:
    """State of one worker: the results so far."""

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        members: tuple[Member, ...],
        start: MemberResult,
        deadline: Deadline,
        scoring_seconds: float,
        report: Report | None,
    ) -> None:
        self._problem = problem
        self._objective = objective
        self._start = start
        self._deadline = deadline
        self._weights = [weight for member in members for weight in member.weights]
        self._scoring_seconds = scoring_seconds
        self._report = report or (lambda phase, taken, found: None)
        self._best: MemberResult | None = None
        self._finished: list[MemberResult] = []
        self._unscored: MemberResult | None = None
        self.taken = 0

    def results(self) -> tuple[MemberResult, ...]:
        """Return the best placement of each member so far, and the one that has no score yet."""
        return (*self._finished, *(one for one in (self._best, self._unscored) if one is not None))

    def run(self, member: Member) -> None:
        """Run the strategy of a member, then its refiners."""
        generator = np.random.default_rng(member.seed)
        hosts, name = self._run_strategy(member.chain, generator)
        self._score(member.number, hosts, name)
        for index, link in enumerate(member.chain.refiners):
            name = f"{name}+{link}"
            deadline = self._refiner_deadline(None if member.steps is None else member.steps[index])
            hosts = self._refine(link, MemberResult(member.number, hosts, name, None), deadline, generator)
            self._score(member.number, hosts, name)
            self._weights = self._weights[1:]
        if self._best is not None:
            self._finished.append(self._best)
        self._best = None

    def _run_strategy(self, chain: Chain, generator: np.random.Generator) -> tuple[Ints, str]:
        if chain.strategy is None:
            return self._start.host_of_rank, self._start.chain
        self._report(str(chain.strategy), 0, None)
        hosts = chain.strategy.strategy()(self._problem, generator)
        return self._problem.apply_pins(hosts), str(chain.strategy)

    def _refiner_deadline(self, steps: int | None) -> Deadline:
        """Return the deadline of the next refiner, whose weight is the first of the remaining ones."""
        whole = self._deadline
        if steps is not None:
            return Deadline(steps=steps, workers=whole.workers, stop=whole.stop)
        left = whole.left - self._scoring_seconds * len(self._weights)
        part = self._weights[0] / sum(self._weights)
        return Deadline(seconds=left * part, workers=whole.workers, stop=whole.stop)

    def _refine(
        self, link: Link, start: MemberResult, deadline: Deadline, generator: np.random.Generator
    ) -> Ints:
        """Run a refiner from a placement and report its progress; return its last placement."""
        found, reported, before = start, 0, self.taken
        for candidate in link.refiner()(self._problem, start.host_of_rank, deadline, generator):
            self._unscored = found = start._replace(host_of_rank=candidate.host_of_rank)
            self.taken = before + deadline.taken
            self._report(start.chain, deadline.taken - reported, candidate)
            reported = deadline.taken
        self.taken = before + deadline.taken
        self._report(start.chain, deadline.taken - reported, None)
        return found.host_of_rank

    def _score(self, number: int, hosts: Ints, name: str) -> None:
        """Compute the exact score of a placement and keep it if it is the member's best."""
        best = self._best
        if best is None or not np.array_equal(hosts, best.host_of_rank):
            self._unscored = MemberResult(number, hosts, name, None)
            begin = time.perf_counter()
            found = score(self._problem, hosts)
            self._scoring_seconds = time.perf_counter() - begin
            if best is None or best.score is None or better(self._objective, found, best.score):
                self._best = MemberResult(number, hosts, name, found)
        self._unscored = None
