"""``mapping.remap_few``: improve a job's placement by moving few ranks; the gain for each number of moves.

1. Two searches from the present placement: one only improves and stays near, one may move any rank.
2. Of the placements equal to either result, the one that leaves most ranks in place is taken, and the
   exchanges that lead there are ordered by gain per moved rank (`mapping.placement.relinking`).
   A third path takes the best exchange on hop-bytes at each step
   (`mapping.placement.moves`).
3. For each number of ranks, the first exchanges of the best path are searched again with all other ranks
   pinned.

Each placement on the curve is scored exactly; one that is no better than another with fewer moved ranks is
left out.

Repeated best exchanges by gain of hop-bytes per moved rank: placements near the start.

Each step compares all exchanges of two ranks and all moves to free slots, in time of ranks times hosts: for a
few thousand of either. Exact gains are updated as in Li et al. 2020, lines 20 to 36; here a rank that moves a
second time does not count again.

Advice whether a running job should move: seconds saved per iteration against ranks to migrate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mapping.deadline import Deadline
from mapping.distances.cost_model import CostModel
from mapping.placement.case import GIVEN, PlacementCase
from mapping.placement.objective import Objective, Score, better, parse_objective, score
from mapping.placement.problem import Problem
from mapping.placement.relinking import nearest, relink
from mapping.placement.search import (
    CONGESTED,
    Features,
    Portfolio,
    SearchOptions,
    near_members,
    refining_members,
    search_options,
)
from mapping.placement.workers import Member, load_kernels
from registry.errors import InvalidValue
from registry.model import (
    Allocation,
    Bools,
    Fabric,
    HasFabric,
    HasJob,
    HasPlacement,
    HasProfile,
    Ints,
    Job,
    Placement,
    Profile,
)
from registry.model.views import Tabular, content, one_line
from registry.progress import Progress, silent

LARGEST = 4096
"""Most ranks, and most hosts: four tables of that many rows and columns are stored."""
AGAIN = 0.5
"""Weight of the second move of a rank, relative to 1 for the first."""


def best_exchanges(
    problem: Problem, start: Ints, *, most: int, deadline: Deadline
) -> Iterator[tuple[set[int], Ints]]:
    """Yield the moved ranks and the placement after each exchange, until none gains or too many have moved.

    Args:
        start (int32[ranks]): Host indices, with pinned ranks on their hosts.
        most: Most ranks that may move.
        deadline: When to end.
    """
    if max(problem.ranks, problem.hosts) > LARGEST or len(problem.bytes) == 0:
        return
    costs = _Costs(problem, start)
    while not deadline.over:
        rank, host, other, gain = costs.best(most)
        if gain <= 0.0:
            return
        costs.exchange(rank, host, other)
        yield set(np.flatnonzero(costs.host_of_rank != start).tolist()), costs.host_of_rank.copy()


class _Costs:
    """Cost of each rank on each host, with all other ranks in place."""

    def __init__(self, problem: Problem, start: Ints) -> None:
        self.host_of_rank = start.copy()
        self._start = start
        self._problem = problem
        shape = (problem.ranks, problem.ranks)
        self._sent = sparse.csr_array((problem.bytes, (problem.source, problem.target)), shape=shape)
        self._received = sparse.csr_array(self._sent.T)
        self._far = problem.distances.matrix()
        far = self._far
        self._cost = self._sent @ far.T[start] + self._received @ far[start]
        self._free = np.flatnonzero(~problem.pinned)
        self._mutual = (self._sent + self._received)[self._free][:, self._free].toarray()

    def best(self, most: int) -> tuple[int, int, int, float]:
        """Return rank, host, the rank to exchange with (-1: none) and the gain per newly moved rank."""
        moved = self.host_of_rank != self._start
        left = most - int(moved.sum())
        rank, host, gain = self._best_move(moved, left)
        first, second, swap = self._best_swap(moved, left)
        if swap > gain:
            return first, int(self.host_of_rank[second]), second, swap
        return rank, host, -1, gain

    def exchange(self, rank: int, host: int, other: int) -> None:
        """Move a rank to a host, and the other rank (-1: none) to the rank's host."""
        here = int(self.host_of_rank[rank])
        self._move(rank, host)
        if other >= 0:
            self._move(other, here)

    def _move(self, rank: int, host: int) -> None:
        here, far = int(self.host_of_rank[rank]), self._far
        changes = (self._received, far[:, host] - far[:, here]), (self._sent, far[host] - far[here])
        for weights, change in changes:
            partners = weights.indices[weights.indptr[rank] : weights.indptr[rank + 1]]
            size = weights.data[weights.indptr[rank] : weights.indptr[rank + 1]]
            self._cost[partners] += size[:, None] * change[None, :]
        self.host_of_rank[rank] = host

    def _best_move(self, moved: Bools, left: int) -> tuple[int, int, float]:
        taken = np.bincount(self.host_of_rank, minlength=self._problem.hosts)
        free = np.flatnonzero(taken < self._problem.allocation.slots)
        may = ~self._problem.pinned & (moved | (left >= 1))
        if not len(free) or not may.any():
            return 0, 0, 0.0
        ranks = np.flatnonzero(may)
        own = self._cost[ranks, self.host_of_rank[ranks]]
        gains = (own[:, None] - self._cost[np.ix_(ranks, free)]) / np.where(moved[ranks], AGAIN, 1.0)[:, None]
        at = int(np.argmax(gains))
        return int(ranks[at // len(free)]), int(free[at % len(free)]), float(gains.flat[at])

    def _best_swap(self, moved: Bools, left: int) -> tuple[int, int, float]:
        """Return the best exchange of two ranks: both ranks and the gain."""
        ranks = self._free
        hosts = self.host_of_rank[ranks]
        if len(ranks) < 2:
            return 0, 0, 0.0
        cost = self._cost[np.ix_(ranks, hosts)]  # [r, s]: cost of r on the host of s
        own = np.diag(cost)
        far = self._far[np.ix_(hosts, hosts)]
        gains = own[:, None] + own[None, :] - cost - cost.T
        gains -= self._mutual * (far + far.T)  # their own edges: counted twice before, not at all after
        fresh = (~moved[ranks]).astype(np.int64)
        new = fresh[:, None] + fresh[None, :]
        allowed = (new <= left) & (hosts[:, None] != hosts[None, :])
        gains = np.where(allowed, gains / np.maximum(new, AGAIN), 0.0)
        at = int(np.argmax(gains))
        first, second = divmod(at, len(ranks))
        return int(ranks[first]), int(ranks[second]), float(gains.flat[at])


NEAR, FAR, PATHS = 0.2, 0.35, 0.15
"""Parts of the limit for the two searches and for the paths; the rest is for the points of the curve."""
FEWEST = 2
"""Least number of moved ranks that is searched; each further number is twice the last."""
MOST_OF_THE_GAIN = 0.8
"""Least part of the whole gain that the default point of a curve has."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Point:
    """Result of moving a number of ranks."""

    moved: int
    """Number of ranks on another host than now."""
    placement: Placement
    score: Score
    """Exact metrics."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve(Tabular):
    """Number of moved ranks against the objective."""

    objective: Objective
    points: tuple[Point, ...]
    """Each moves more ranks and is better than the one before; the first is the present placement (with
    pinned ranks on their hosts, which may move some)."""
    complete: bool
    """False after an interrupt."""

    __repr__ = one_line

    def columns(self) -> Mapping[str, Any]:
        """Return a row per point: ``moved gain`` and its metrics."""
        scores = [point.score for point in self.points]
        metrics = {name: [getattr(one, name) for one in scores] for name in Score._fields}
        gains = [self.gain(point) for point in self.points]
        return {"moved": [point.moved for point in self.points], "gain": gains, **metrics}

    @property
    def metric(self) -> str:
        """Field of `Score` that measures gains: the first in which the ends of the curve differ."""
        first, last = self.points[0].score, self.points[-1].score
        names = [term.field for level in self.objective.levels for term in level]
        return next((n for n in names if getattr(last, n) < getattr(first, n)), names[0])

    def gain(self, point: Point) -> float:
        """Return the gain of a point over the first, in the unit of `metric`."""
        return float(getattr(self.points[0].score, self.metric) - getattr(point.score, self.metric))

    def within(self, moves: int) -> Point:
        """Return the best point that moves at most some ranks, or the first if even that moves more."""
        return max(
            (p for p in self.points if p.moved <= moves), key=lambda p: p.moved, default=self.points[0]
        )

    def chosen(self) -> Point:
        """Return the point with the fewest moves that has four fifths of the whole gain."""
        enough = MOST_OF_THE_GAIN * self.gain(self.points[-1])
        return next(point for point in self.points if self.gain(point) >= enough)


def remap_few(
    fabric: Fabric | HasFabric,
    profile: Profile | HasProfile,
    allocation: Allocation | Job | HasJob,
    options: SearchOptions | None = None,
    costs: CostModel | None = None,
    *,
    present: Placement | HasPlacement,
    pins: Mapping[int, str | int] | None = None,
    progress: Progress = silent,
    **search: Any,
) -> Curve:
    """Improve the present placement by moving few ranks.

    Args:
        present: Present placement, on hosts of the allocation, which may have free ones.
        options: Objective, limit, seed, threads and `moves`, the most ranks to move (default: as many as
            help).
        fabric, profile, allocation, costs, pins, progress, search: As in `mapping.place`.

    Raises:
        InvalidPlacement: A present placement or a pin that does not fit.
        InvalidValue, UnknownName, InfeasibleAllocation, DisconnectedAllocation, UnreachablePair: As
            `mapping.place`.
    """
    options = search_options(options, search)
    return find_curve(PlacementCase.of(fabric, profile, allocation, options, costs, pins, present), progress)


def find_curve(case: PlacementCase, progress: Progress = silent) -> Curve:
    """Improve the present placement of a case by moving few ranks; as `remap_few`."""
    if case.present is None:
        raise InvalidValue("PlacementCase.present", "a present placement is needed")
    if case.options.strategies is not None:
        raise InvalidValue("strategies", "have no effect if a placement is kept")
    if case.options.consecutive:
        raise InvalidValue("consecutive", "a placement cannot be kept: all ranks of a host move together")
    return _CurveSearch(case, progress).curve()


class _CurveSearch:
    """One search for a curve."""

    def __init__(self, case: PlacementCase, progress: Progress) -> None:
        objective = parse_objective(case.options.objective)
        self._deadline = case.options.start_clock()
        assert case.present is not None
        self._present = case.host_indices(case.present)
        with self._deadline.without_compilation():
            self._problem = case.problem()
            self._members = refining_members(objective, Features.of(self._problem))
            members = self._members + near_members(objective)
            load_kernels(self._problem, members, self._deadline.workers)
        self._case = case
        self._progress = progress
        self._seeds = iter(np.random.SeedSequence(case.options.seed).generate_state(64).tolist())
        self._start = self._problem.apply_pins(self._present)
        first = score(self._problem, self._start)
        self._objective = objective.relative_to(first)
        self._found: list[tuple[Ints, Score]] = [(self._start, first)]
        self._steps = 0

    def curve(self) -> Curve:
        """Search, and return the placements that no other with fewer moved ranks equals."""
        moves = self._case.options.moves
        with self._deadline.interruptible():
            self._search(self._problem.ranks if moves is None else moves)
        first = int((self._start != self._present).sum())
        points = [(first, *self._found[0])]
        counted = ((int((hosts != self._present).sum()), hosts, found) for hosts, found in self._found[1:])
        for moved, hosts, found in sorted(counted, key=lambda one: one[0]):
            allowed = moves is None or moved <= max(moves, first)
            if allowed and better(self._objective, found, points[-1][2]):
                if moved == points[-1][0] and len(points) > 1:
                    points.pop()
                points.append((moved, hosts, found))
        return Curve(
            objective=self._objective,
            points=tuple(self._point(*one) for one in points),
            complete=not self._deadline.interrupted,
        )

    def _search(self, most: int) -> None:
        """Run the searches of the module's description, up to a number of moved ranks."""
        problem = self._problem
        if most == 0:
            return
        near = self._nearest(self._run(problem, self._start, near_members(self._objective), NEAR, NEAR))
        far = self._nearest(self._run(problem, self._start, self._members, FAR, NEAR + FAR))
        ends = [self._deadline.time_until(NEAR + FAR + PATHS * part) for part in (1 / 3, 2 / 3, 1.0)]
        paths = [self._stops(best_exchanges(problem, self._start, most=most, deadline=ends[0]), most)]
        paths += [self._path(target, most, end) for target, end in zip((near, far), ends[1:], strict=True)]
        sizes = _sizes(most)
        for index, size in enumerate(sizes):
            reached = [path[size] for path in paths if size in path]
            if not reached:
                continue
            moved, hosts, _ = min(reached, key=lambda one: self._order(one[2]))
            pins = self._start.copy()
            pins[list(moved)] = problem.pins[list(moved)]
            part = (1.0 - NEAR - FAR - PATHS) / len(sizes)
            end = 1.0 - part * (len(sizes) - index - 1)
            self._nearest(self._run(problem.with_pins(pins), hosts, self._members, part, end))

    def _nearest(self, target: Ints) -> Ints:
        """Record the target, and return the placement equal to it with the fewest moved ranks."""
        alike = nearest(self._problem, self._start, target)
        if better(self._objective, self._record(target), self._record(alike)):
            return target  # alike as to distance, not as to load
        return alike

    def _path(self, target: Ints, most: int, end: Deadline) -> dict[int, tuple[set[int], Ints, Score]]:
        """Return the stops on the path to a target."""
        by_load = self._objective.leading in CONGESTED
        path = relink(self._problem, self._start, target, by_load=by_load, most=most, deadline=end)
        return self._stops(path, most)

    def _stops(
        self, path: Iterable[tuple[set[int], Ints]], most: int
    ) -> dict[int, tuple[set[int], Ints, Score]]:
        """Return, by limit of moved ranks, the last placement of a path within it: moves, hosts, score."""
        sizes, last = _sizes(most), dict[int, tuple[set[int], Ints]]()
        for moved, hosts in path:
            size = next((size for size in sizes if size >= len(moved)), None)
            if size is not None:
                last[size] = moved, hosts
        return {size: (moved, hosts, self._record(hosts)) for size, (moved, hosts) in last.items()}

    def _run(
        self, problem: Problem, start: Ints, members: tuple[Member, ...], part: float, end: float
    ) -> Ints:
        """Search from a placement with a part of the steps, or until a part of the seconds is over."""
        stage = self._deadline.stage(part, end)
        portfolio = Portfolio(problem, self._objective, {GIVEN: start}, stage, self._progress)
        found = portfolio.run(members, next(self._seeds), guards=[GIVEN])
        self._steps += found.steps
        if not found.complete:
            self._record(found.host_of_rank)
            raise KeyboardInterrupt
        return found.host_of_rank

    def _order(self, found: Score) -> tuple[float, ...]:
        return tuple(self._objective.value(found, level) for level in range(len(self._objective.levels)))

    def _record(self, hosts: Ints) -> Score:
        """Score a placement and add it to those found."""
        found = score(self._problem, hosts)
        self._found.append((hosts, found))
        return found

    def _point(self, moved: int, hosts: Ints, found: Score) -> Point:
        """Return a point of the curve with its placement."""
        placement = Placement(
            host_of_rank=self._problem.allocation.hosts[hosts],
            allocation=self._problem.allocation,
            strategy="keep",
            objective=str(self._objective),
            routing=self._problem.routes.name,
            parameters={"moved": moved, "workers": self._deadline.workers, **self._case.parameters},
            seed=self._case.options.seed,
            seconds=self._deadline.elapsed,
            steps=self._steps,
            complete=not self._deadline.interrupted,
        )
        return Point(moved=moved, placement=placement, score=found)


def _sizes(most: int) -> list[int]:
    """Return the numbers of moved ranks to search, up to the most."""
    sizes = []
    size = FEWEST
    while size < most:
        sizes.append(size)
        size *= 2
    return [*sizes, most]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Cost and gain of moving to one point of a curve."""

    point: Point
    seconds_saved: float
    """Time per iteration by which the worst link is less busy. The job saves it if communication is not
    hidden and the worst link decides; it may be negative with another objective."""
    saved_per_rank: float
    """Seconds saved per moved rank; 0 if none moves."""
    migration_seconds: float | None
    """Time to migrate all moved ranks, one after another; None if the time of one is unknown."""
    break_even_iterations: float | None
    """Iterations after which the migration has paid off; inf if nothing is saved."""
    worth_it: bool | None
    """True if the remaining iterations suffice; None if either number is unknown."""


def advise(
    curve: Curve,
    *,
    iterations: float = 1.0,
    rank_seconds: float | None = None,
    iterations_left: float | None = None,
) -> tuple[Advice, ...]:
    """Return advice for each point of a curve that moves ranks.

    Args:
        iterations: Number of iterations that the profile recorded.
        rank_seconds: Seconds to migrate one rank.
        iterations_left: Remaining iterations of the job.

    Raises:
        InvalidValue
    """
    curve = content(curve, Curve, "curve")
    if not 0 < iterations < math.inf:
        raise InvalidValue("advise.iterations", "must be above zero")
    for name, value in (("rank_seconds", rank_seconds), ("iterations_left", iterations_left)):
        if value is not None and not 0 <= value < math.inf:
            raise InvalidValue(f"advise.{name}", "must not be below zero")
    now = curve.points[0].score.congestion_seconds
    return tuple(
        _advice(point, (now - point.score.congestion_seconds) / iterations, rank_seconds, iterations_left)
        for point in curve.points[1:]
    )


def best(advice: tuple[Advice, ...], iterations_left: float, rank_seconds: float) -> Advice | None:
    """Return the point that saves most seconds after migration; None if all cost more than they save."""
    net = [one.seconds_saved * iterations_left - one.point.moved * rank_seconds for one in advice]
    highest = max(net, default=0.0)
    return advice[net.index(highest)] if highest > 0 else None


def _advice(point: Point, saved: float, rank_seconds: float | None, left: float | None) -> Advice:
    cost = None if rank_seconds is None else rank_seconds * point.moved
    even = None
    if cost is not None:
        even = cost / saved if saved > 0 else math.inf
    return Advice(
        point=point,
        seconds_saved=saved,
        saved_per_rank=saved / point.moved if point.moved else 0.0,
        migration_seconds=cost,
        break_even_iterations=even,
        worth_it=None if even is None or left is None else even < left,
    )
