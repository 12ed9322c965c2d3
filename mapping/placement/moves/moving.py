"""A running job's placement, improved by moving few ranks: what each number of moved ranks is worth.

1. Two searches from the present placement: one goes downhill and stays near, one may move any rank.
2. Of the placements that are equal to either's, the one that leaves most ranks in place is taken, and the
   exchanges that lead there are ordered by gain per moved rank (`mapping.placement.moves.relinking`). A
   third way takes the best exchange on hop-bytes each time, wherever it leads
   (`mapping.placement.moves.best_exchanges`).
3. For each number of ranks, the first ones of the best way are searched again with all others pinned.

Each placement on the curve is judged exactly; what is no better than one with fewer moved ranks is left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mapping.kernels.compiling import Compiling
from mapping.placement.catalog import Chain
from mapping.placement.moves.best_exchanges import best_exchanges
from mapping.placement.moves.relinking import nearest, prefixes, relink
from mapping.placement.problem.objective import Objective, Score, better, parse_objective, score
from mapping.placement.problem.problem import Problem
from mapping.placement.search.lanes import Member
from mapping.placement.search.placing import choose_workers
from mapping.placement.search.portfolio import Limits, Portfolio
from mapping.placement.search.posing import GIVEN, Setting, check_budget, start_indices
from mapping.placement.search.schedule import CONGESTED, Features, default_members, near_members
from mapping.placement.search.warm_up import warm_up
from registry.errors import InvalidValue
from registry.model import Allocation, Fabric, Ints, Placement, Profile
from registry.progress import Progress, silent

NEAR, FAR, PATHS = 0.2, 0.35, 0.15
"""Parts of the budget for the two searches, and for the ways there; the rest is for the points."""
FEWEST = 2
"""Fewest moved ranks that are searched; from there on each number is twice the last."""
MOST_OF_THE_GAIN = 0.8
"""Part of the whole gain that the point which is chosen unless told has at least."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Point:
    """What moving so many ranks gives.

    Attributes
    ----------
    moved : int
        Ranks that sit on another host than now.
    placement : Placement
    score : Score
        Exact.
    """

    moved: int
    placement: Placement
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Moved ranks against the objective.

    Attributes
    ----------
    objective : Objective
    points : tuple of Point
        More moved ranks and better by the objective from one to the next; the first is the present
        placement (with pins honoured, which may move some).
    complete : bool
        False after an interrupt.
    """

    objective: Objective
    points: tuple[Point, ...]
    complete: bool

    @property
    def metric(self) -> str:
        """Field of `Score` that gains are told in: the first in which the ends of the curve differ."""
        first, last = self.points[0].score, self.points[-1].score
        names = [term.field for level in self.objective.levels for term in level]
        return next((n for n in names if getattr(last, n) < getattr(first, n)), names[0])

    def gain(self, point: Point) -> float:
        """Of a point over the first, in the unit of `metric`."""
        return float(getattr(self.points[0].score, self.metric) - getattr(point.score, self.metric))

    def within(self, moves: int) -> Point:
        """The best point that moves at most so many ranks; the first where even that moves more."""
        return max((p for p in self.points if p.moved <= moves), key=_moved, default=self.points[0])

    def chosen(self) -> Point:
        """The fewest moved ranks that bring four fifths of the whole gain."""
        enough = MOST_OF_THE_GAIN * self.gain(self.points[-1])
        return next(point for point in self.points if self.gain(point) >= enough)


def keep(
    fabric: Fabric,
    profile: Profile,
    allocation: Allocation,
    present: Placement,
    *,
    moves: int | None = None,
    objective: str = "congestion",
    setting: Setting | None = None,
    seconds: float = 10.0,
    steps: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress = silent,
) -> Curve:
    """Improve the present placement by moving few ranks.

    Parameters
    ----------
    present : Placement
        On hosts of the allocation, which may have free ones.
    moves : int, optional
        Most ranks to move; unless told, the curve goes on to as many as help.
    objective, seconds, steps, seed, workers, progress
        As in `mapping.place`.
    setting : Setting, optional
        Routing, distances, background and pins.

    Raises
    ------
    InvalidPlacement
        A present placement or a pin that does not fit.
    InvalidValue, UnknownName, InfeasibleAllocation, DisconnectedAllocation, UnreachablePair
        As `mapping.place`.
    """
    wanted, setting = parse_objective(objective), setting or Setting()
    check_budget(seconds, steps)
    if moves is not None and moves < 0:
        raise InvalidValue("keep.moves", "must not be below zero")
    limits = Limits(
        begin=time.perf_counter(), seconds=seconds, steps=steps, workers=choose_workers(workers, steps)
    )
    now = start_indices(profile, allocation, present)
    with Compiling() as compiling:
        problem = setting.problem(fabric, profile, allocation, wanted)
        members = _from_here(default_members(wanted, Features.of(problem)))
        chains = tuple(str(member.chain) for member in members + near_members(wanted))
        warm_up(problem.routes.name, chains, limits.workers)
    search = _Keeping(problem, wanted, now, members, limits.later(compiling.seconds), seed, progress)
    return search.curve(moves, setting.told(fabric))


class _Keeping:
    """One search for a curve."""

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        now: Ints,
        members: tuple[Member, ...],
        limits: Limits,
        seed: int,
        progress: Progress,
    ) -> None:
        self._problem = problem
        self._now = now
        self._start = problem.honour_pins(now)
        first = score(problem, self._start)
        self._objective = objective.relative_to(first)
        self._members = members
        self._limits = limits
        self._seeds = iter(np.random.SeedSequence(seed).generate_state(64).tolist())
        self._seed = seed
        self._progress = progress
        self._found: list[tuple[Ints, Score]] = [(self._start, first)]
        self._steps = 0
        self._complete = True

    def curve(self, moves: int | None, told: dict[str, str | int]) -> Curve:
        """Search, and what of it is worth telling."""
        try:
            self._search(self._problem.ranks if moves is None else moves)
        except KeyboardInterrupt:
            self._complete = False
        kept: list[tuple[int, Ints, Score]] = []
        counted = ((int((hosts != self._now).sum()), hosts, found) for hosts, found in self._found[1:])
        first = int((self._start != self._now).sum())
        kept.append((first, *self._found[0]))
        for moved, hosts, found in sorted(counted, key=lambda one: one[0]):
            if better(self._objective, found, kept[-1][2]) and (moves is None or moved <= max(moves, first)):
                if moved == kept[-1][0] and len(kept) > 1:
                    kept.pop()
                kept.append((moved, hosts, found))
        points = tuple(self._point(*one, told) for one in kept)
        return Curve(objective=self._objective, points=points, complete=self._complete)

    def _search(self, most: int) -> None:
        problem = self._problem
        if most == 0:
            return
        near = self._near(self._run(problem, self._start, near_members(self._objective), NEAR, NEAR))
        far = self._near(self._run(problem, self._start, self._members, FAR, NEAR + FAR))
        until = [NEAR + FAR + PATHS * part for part in (1 / 3, 2 / 3, 1.0)]
        best = best_exchanges(problem, self._start, most=most, deadline=self._moment(until[0]))
        ways = [self._stops(best, most)]
        ways += [self._way(target, most, at) for target, at in zip((near, far), until[1:], strict=True)]
        sizes = _sizes(most)
        for at, size in enumerate(sizes):
            reached = [way[size] for way in ways if size in way]
            if not reached:
                continue
            moved, hosts, _ = min(reached, key=lambda one: self._order(one[2]))
            pins = self._start.copy()
            pins[list(moved)] = problem.pins[list(moved)]
            part = (1.0 - NEAR - FAR - PATHS) / len(sizes)
            found = self._run(
                problem.with_pins(pins), hosts, self._members, part, 1.0 - part * (len(sizes) - at - 1)
            )
            self._near(found)

    def _near(self, target: Ints) -> Ints:
        """Of placements equal to the target the one with the fewest moved ranks; it is taken down."""
        alike = nearest(self._problem, self._start, target)
        if better(self._objective, self._take(target), self._take(alike)):
            return target  # alike as to distance, not as to load
        return alike

    def _way(self, target: Ints, most: int, until: float) -> dict[int, tuple[set[int], Ints, Score]]:
        """The stops on the way to a target."""
        problem = self._problem
        by_load = self._objective.leading in CONGESTED
        way = relink(problem, self._start, target, by_load=by_load, most=most, deadline=self._moment(until))
        return self._stops(prefixes(self._start, target, way), most)

    def _stops(
        self, way: Iterable[tuple[set[int], Ints]], most: int
    ) -> dict[int, tuple[set[int], Ints, Score]]:
        """By a limit of moved ranks: those moved when a way last kept it, the placement, its score."""
        sizes, last = _sizes(most), dict[int, tuple[set[int], Ints]]()
        for moved, hosts in way:
            size = next((size for size in sizes if size >= len(moved)), None)
            if size is not None:
                last[size] = moved, hosts
        return {size: (moved, hosts, self._take(hosts)) for size, (moved, hosts) in last.items()}

    def _run(
        self, problem: Problem, start: Ints, members: tuple[Member, ...], part: float, until: float
    ) -> Ints:
        """Search from a placement with a part of the steps, or until a part of the seconds is over."""
        limits, now = self._limits, time.perf_counter()
        if limits.steps is not None:
            limits = replace(limits, steps=round(limits.steps * part))
        else:
            left = limits.begin + limits.seconds * until - now
            limits = replace(limits, begin=now, seconds=max(left, 0.0))
        run = Portfolio(problem, self._objective, {GIVEN: start}, limits, self._progress)
        found = run.run(members, next(self._seeds), guards=[GIVEN])
        self._steps += found.steps
        if not found.complete:
            self._take(found.host_of_rank)
            raise KeyboardInterrupt
        return found.host_of_rank

    def _order(self, found: Score) -> tuple[float, ...]:
        return tuple(self._objective.value(found, level) for level in range(len(self._objective.levels)))

    def _moment(self, part: float) -> float | None:
        limits = self._limits
        return None if limits.steps is not None else limits.begin + limits.seconds * part

    def _take(self, hosts: Ints) -> Score:
        found = score(self._problem, hosts)
        self._found.append((hosts, found))
        return found

    def _point(self, moved: int, hosts: Ints, found: Score, told: dict[str, str | int]) -> Point:
        problem, limits = self._problem, self._limits
        placement = Placement(
            host_of_rank=problem.allocation.hosts[hosts],
            allocation=problem.allocation,
            strategy="keep",
            objective=str(self._objective),
            routing=problem.routes.name,
            parameters={"moved": moved, "workers": limits.workers, **told},
            seed=self._seed,
            seconds=time.perf_counter() - limits.begin,
            steps=self._steps,
            complete=self._complete,
        )
        return Point(moved=moved, placement=placement, score=found)


def _from_here(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The refiners of the members, each chain of them once: they work on the present placement."""
    chains = dict.fromkeys(Chain(None, member.chain.refiners) for member in members if member.chain.refiners)
    return tuple(Member(chain=chain) for chain in chains)


def _sizes(most: int) -> list[int]:
    """Numbers of moved ranks to look at, up to the most."""
    sizes = []
    size = FEWEST
    while size < most:
        sizes.append(size)
        size *= 2
    return [*sizes, most]


def _moved(point: Point) -> int:
    return point.moved
