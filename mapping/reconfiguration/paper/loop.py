"""The co-optimising loop over topology, partition and routing (section 3, steps 1 to 4).

The loop of the paper makes a seed topology, then a partition and routes for it from scratch. Each further
iteration swaps two links to relieve the present bottleneck and makes a partition and routes from scratch
again. The loop ends after a number of iterations in a row without gain. Each topology is made from that of
the iteration before, even if that was no gain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapping.deadline import Deadline
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.solution import GAIN, Iteration, SearchResult, Solution
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.edge_swaps import next_swap
from mapping.reconfiguration.paper.partition import LOWEST, coarsen, load_kernels, place_and_route
from mapping.reconfiguration.paper.refinement import Refinement
from mapping.reconfiguration.paper.seed_topology import CONDENSED, seed_topology
from registry.errors import InvalidValue
from registry.progress import Progress, silent

PATIENCE = 10
"""Default number of iterations in a row without gain before the loop ends; the paper gives none."""
SKIP = 0.3
"""Default probability of ignoring a pair of links that could be swapped; the paper gives none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopOptions:
    """Parameters of the loop.

    Attributes
    ----------
    seed_topology : str or Topology
        One of `mapping.reconfiguration.paper.seed_topology.SEEDS`, or a topology with the machine's nodes.
    patience : int
        Number of iterations in a row without gain after which the loop ends, >= 0.
    skip : float
        Probability that a pair of links that could be swapped is ignored, 0 <= skip < 1.
    seed : int
        Seed of the random numbers, >= 0; the same seed gives the same result, unless `seconds` end the loop.
    seconds : float, optional
        No iteration starts after this time; the compilation of kernels does not count. Default: no limit.
    refinement : Refinement
        Depth of the local search (section 4.4) and limits of each refinement.
    expansion : str
        Order of matchings: ``lowest`` first, as in the paper, or ``highest``.

    Raises
    ------
    InvalidValue
        A parameter is out of range.
    """

    seed_topology: str | Topology = CONDENSED
    patience: int = PATIENCE
    skip: float = SKIP
    seed: int = 0
    seconds: float | None = None
    refinement: Refinement = Refinement()  # noqa: RUF009 (immutable)
    expansion: str = LOWEST

    def __post_init__(self) -> None:
        if self.patience < 0:
            raise InvalidValue("patience", f"is {self.patience}, must not be negative")
        if not 0 <= self.skip < 1:
            raise InvalidValue("skip", f"is {self.skip}, must be at least 0 and below 1")
        if self.seed < 0:
            raise InvalidValue("seed", f"is {self.seed}, must not be negative")
        if self.seconds is not None and not self.seconds >= 0:
            raise InvalidValue("seconds", f"is {self.seconds}, must not be negative")


def co_optimise(
    application: Application,
    machine: Machine,
    options: LoopOptions = LoopOptions(),
    *,
    progress: Progress = silent,
) -> SearchResult:
    """Search topology, partition and routes of high throughput by the loop of the paper.

    After an interrupt (``KeyboardInterrupt``) the best result so far is returned, marked incomplete; an
    interrupt before the first result is raised.

    Parameters
    ----------
    progress : Progress
        Receives the number of iterations and the best throughput.

    Raises
    ------
    InvalidValue
        The seed topology has another number of nodes than the machine.
    UnknownName
        The seed topology or the expansion is unknown.
    """
    load_kernels(progress)
    loop = _Loop(application, machine, options, progress)
    with loop.deadline.interruptible():
        loop.start()
        while loop.idle < options.patience and not loop.deadline.over and loop.step():
            pass
    if not loop.trail:
        raise KeyboardInterrupt
    topology, solution = loop.best
    complete = not loop.deadline.interrupted
    return SearchResult(topology=topology, solution=solution, trail=tuple(loop.trail), complete=complete)


class _Loop:
    """State between iterations; `idle` counts the iterations since the last gain."""

    def __init__(
        self, application: Application, machine: Machine, options: LoopOptions, progress: Progress
    ) -> None:
        self._application, self._machine = application, machine
        self._options, self._progress = options, progress
        self._generator = np.random.default_rng(options.seed)
        self.deadline = Deadline(seconds=options.seconds)
        self._levels = coarsen(application, machine.nodes, expansion=options.expansion)
        self.trail: list[Iteration] = []
        self.idle = 0

    def start(self) -> None:
        """Make the seed topology, and a partition and routes for it (steps 1 to 3)."""
        topology = seed_topology(
            self._options.seed_topology, self._application, self._machine, self._generator
        )
        self.now = self.best = topology, self._solve(topology)
        self.trail.append(Iteration.of(0, self.now[1], seconds=self.deadline.elapsed))
        self._report()

    def step(self) -> bool:
        """Swap two links, then partition and route from scratch (step 4); False if no swap is possible."""
        swap = next_swap(*self.now, self._generator, skip=self._options.skip)
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
            seconds=self.deadline.elapsed,
        )
        self.trail.append(iteration)  # first, so that an interrupt never leaves the best out of the trail
        self.now, self.best = now, best
        self.idle = 0 if gained else self.idle + 1
        self._report()
        return True

    def _solve(self, topology: Topology) -> Solution:
        return place_and_route(
            self._application,
            topology,
            self._machine,
            self._generator,
            refinement=self._options.refinement,
            levels=self._levels,
        )

    def _report(self) -> None:
        self._progress("iterations", self.trail[-1].number, None, self.trail[-1].best)
