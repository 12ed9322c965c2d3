"""The co-optimising loop over topology, partition and routing (section 3, steps 1 to 4).

The paper's loop: a seed topology; a partition and routes for it, from scratch; then, iteration by iteration,
a swap of two links for the present bottleneck and a partition and routes from scratch again, until so many
iterations in a row brought no gain. The topology of an iteration comes from that before, better or not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from mapping.reconfiguration.coarsening import LOWEST, coarsen
from mapping.reconfiguration.loading import load_kernels
from mapping.reconfiguration.place_and_route import place_and_route
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.refinement import DEPTH
from mapping.reconfiguration.seeds import CONDENSED, seed_topology
from mapping.reconfiguration.solution import Solution
from mapping.reconfiguration.swaps import Pair, bottleneck, next_swap
from mapping.reconfiguration.topology import Topology
from registry.errors import InvalidValue
from registry.progress import Progress, silent

PATIENCE = 10
"""Iterations in a row without gain after which to stop, unless told; the paper does not say."""
SKIP = 0.3
"""Probability of ignoring a pair of links that could be swapped, unless told; the paper does not say."""
GAIN = 1e-12
"""Relative gain of throughput below which there is none: sums of loads round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One iteration: a topology, and what was reached on it.

    Attributes
    ----------
    number : int
        0 for the seed topology.
    removed, inserted : tuple of (int, int)
        Nodes of the links by which its topology differs from that of the iteration before.
    links : int
        Of its topology.
    bottleneck : str
        ``compute`` or ``communication``: what limits the throughput now.
    throughput, compute_throughput, communication_throughput : float
        Elements of output a unit of time; inf where nothing loads.
    best : float
        Highest throughput up to now.
    seconds : float
        Since the begin, wall clock. Not compared: two runs differ in it.
    """

    number: int
    removed: tuple[Pair, ...]
    inserted: tuple[Pair, ...]
    links: int
    bottleneck: str
    throughput: float
    compute_throughput: float
    communication_throughput: float
    best: float
    seconds: float = field(compare=False)

    @classmethod
    def of(
        cls,
        number: int,
        solution: Solution,
        *,
        removed: tuple[Pair, ...] = (),
        inserted: tuple[Pair, ...] = (),
        best: float | None = None,
        seconds: float,
    ) -> Self:
        """What was reached by a solution, on its topology; `best` is its throughput unless told."""
        return cls(
            number=number,
            removed=removed,
            inserted=inserted,
            links=len(solution.link_load),
            bottleneck=bottleneck(solution),
            throughput=solution.throughput,
            compute_throughput=solution.compute_throughput,
            communication_throughput=solution.communication_throughput,
            best=solution.throughput if best is None else best,
            seconds=seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reconfiguration:
    """The best topology that was found, with partition and routes.

    Attributes
    ----------
    topology : Topology
    solution : Solution
        On that topology.
    trail : tuple of Iteration
        Every iteration, from the seed topology on.
    complete : bool
        False after an interrupt: iterations are missing.
    """

    topology: Topology
    solution: Solution
    trail: tuple[Iteration, ...]
    complete: bool

    @property
    def throughput(self) -> float:
        """Elements of output a unit of time."""
        return self.solution.throughput

    @property
    def best_iteration(self) -> int:
        """i_opt: number of the first iteration that reached the throughput (section 4.3)."""
        return next(one.number for one in self.trail if one.throughput == self.throughput)

    @property
    def improvement(self) -> float:
        """Phi: the throughput over that on the seed topology (section 4.3)."""
        first = self.trail[0].throughput
        return 1.0 if self.throughput == first else self.throughput / first


def reconfigure(
    application: Application,
    machine: Machine,
    *,
    seed_topology: str | Topology = CONDENSED,
    patience: int = PATIENCE,
    skip: float = SKIP,
    seed: int = 0,
    seconds: float | None = None,
    depth: int | None = DEPTH,
    steps: int | None = None,
    expansion: str = LOWEST,
    progress: Progress = silent,
) -> Reconfiguration:
    """Find topology, partition and routes of high throughput by the paper's loop.

    An interrupt (``KeyboardInterrupt``) ends the loop with the best so far; before anything was found it is
    passed on.

    Parameters
    ----------
    application : Application
    machine : Machine
    seed_topology : str or Topology
        One of `mapping.reconfiguration.seeds.SEEDS`, or a topology with the machine's nodes.
    patience : int
        Stop after so many iterations in a row without gain, >= 0.
    skip : float
        Probability that a pair of links that can be swapped is ignored, 0 <= skip < 1.
    seed : int
        >= 0; the same seed gives the same bytes, unless `seconds` end the loop.
    seconds : float, optional
        Begin no iteration later than that; the compilation of kernels does not count.
    depth : int or None
        Of the local search in the refinement (section 4.4); None is the paper's rule, without bound.
    steps : int, optional
        End each refinement after so many steps; as many as there are unless told.
    expansion : str
        Order of matchings: ``lowest`` first, as the paper says, or ``highest``.
    progress : Progress
        Told iterations and the best throughput.

    Raises
    ------
    InvalidValue
        A parameter out of range; a seed topology of another size.
    UnknownName
        No such seed or expansion.
    """
    _check(patience, skip, seed, seconds)
    load_kernels(progress)
    loop = _Loop(application, machine, seed, _Refining(depth, steps), expansion, progress)
    complete = True
    try:
        loop.begin(seed_topology)
        while loop.idle < patience and (seconds is None or loop.elapsed < seconds):
            if not loop.step(skip):
                break
    except KeyboardInterrupt:
        if not loop.trail:
            raise
        complete = False
    topology, solution = loop.best
    return Reconfiguration(topology=topology, solution=solution, trail=tuple(loop.trail), complete=complete)


class _Refining(NamedTuple):
    """How far each refinement goes."""

    depth: int | None
    steps: int | None


class _Loop:
    """The state between iterations."""

    def __init__(
        self,
        application: Application,
        machine: Machine,
        seed: int,
        refining: _Refining,
        expansion: str,
        progress: Progress,
    ) -> None:
        self._application, self._machine = application, machine
        self._generator = np.random.default_rng(seed)
        self._refining = refining
        self._progress = progress
        self._since = time.perf_counter()
        self._levels = coarsen(application, machine.nodes, expansion=expansion)
        self.trail: list[Iteration] = []
        self.idle = 0
        """Iterations since the last gain."""

    @property
    def elapsed(self) -> float:
        """Seconds since the begin."""
        return time.perf_counter() - self._since

    def begin(self, seed: str | Topology) -> None:
        """Steps 1 to 3: the seed topology, a partition and routes for it."""
        topology = seed_topology(seed, self._application, self._machine, self._generator)
        self.now = self.best = topology, self._solve(topology)
        self.trail.append(Iteration.of(0, self.now[1], seconds=self.elapsed))
        self._tell()

    def step(self, skip: float) -> bool:
        """Step 4: swap, partition and route from scratch; False where no links can be swapped."""
        swap = next_swap(*self.now, self._generator, skip=skip)
        if swap is None:
            return False
        now = swap.topology, self._solve(swap.topology)
        gained = now[1].throughput > self.best[1].throughput * (1 + GAIN)
        best = now if gained else self.best
        iteration = Iteration.of(
            len(self.trail),
            now[1],
            removed=swap.removed,
            inserted=swap.inserted,
            best=best[1].throughput,
            seconds=self.elapsed,
        )
        self.trail.append(iteration)  # first, so that the best is in the trail whenever an interrupt comes
        self.now, self.best = now, best
        self.idle = 0 if gained else self.idle + 1
        self._tell()
        return True

    def _solve(self, topology: Topology) -> Solution:
        return place_and_route(
            self._application,
            topology,
            self._machine,
            self._generator,
            depth=self._refining.depth,
            steps=self._refining.steps,
            levels=self._levels,
        )

    def _tell(self) -> None:
        self._progress("iterations", self.trail[-1].number, None, self.trail[-1].best)


def _check(patience: int, skip: float, seed: int, seconds: float | None) -> None:
    if patience < 0:
        raise InvalidValue("reconfigure.patience", f"is {patience}, must not be negative")
    if not 0 <= skip < 1:
        raise InvalidValue("reconfigure.skip", f"is {skip}, must be at least 0 and below 1")
    if seed < 0:
        raise InvalidValue("reconfigure.seed", f"is {seed}, must not be negative")
    if seconds is not None and not seconds >= 0:
        raise InvalidValue("reconfigure.seconds", f"is {seconds}, must not be negative")
