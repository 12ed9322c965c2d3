"""The co-optimising loop over topology, partition and routing (section 3, steps 1 to 4; swaps: section 3.3).

The loop of the paper makes a seed topology, then a partition and routes for it from scratch. Each further
iteration swaps two links to relieve the present bottleneck and makes a partition and routes from scratch
again. The loop ends after a number of iterations in a row without gain. Each topology is made from that of
the iteration before, even if that was no gain.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mapping.circuits.paper_partition import LOWEST, Refinement, coarsen, load_kernels, place_and_route
from mapping.circuits.paper_seeds import CONDENSED, seed_topology
from mapping.circuits.problem import Application, LinkChange, Machine, Pair, Topology, require_not_negative
from mapping.circuits.solution import COMPUTE, GAIN, Iteration, SearchResult, Solution, bottleneck
from mapping.deadline import Deadline
from registry.errors import InvalidValue
from registry.model import Bools, Floats, Longs
from registry.progress import Progress, silent

PATIENCE = 10
"""Default number of iterations in a row without gain before the loop ends; the paper gives none."""
SKIP = 0.3
"""Default probability of ignoring a pair of links that could be swapped; the paper gives none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopOptions:
    """Parameters of the loop.

    Raises:
        InvalidValue: A parameter is out of range.
    """

    seed_topology: str | Topology = CONDENSED
    """One of `mapping.circuits.paper_seeds.SEEDS`, or a topology with the machine's nodes."""
    patience: int = PATIENCE
    """Number of iterations in a row without gain after which the loop ends, >= 0."""
    skip: float = SKIP
    """Probability that a pair of links that could be swapped is ignored, 0 <= skip < 1."""
    seed: int = 0
    """Seed of the random numbers, >= 0; the same seed gives the same result, unless `seconds` end the loop.
    """
    seconds: float | None = None
    """No iteration starts after this time; the compilation of kernels does not count. Default: no limit."""
    refinement: Refinement = Refinement()  # noqa: RUF009 (immutable)
    """Depth of the local search (section 4.4) and limit of each refinement."""
    expansion: str = LOWEST
    """Order of matchings: ``lowest`` first, as in the paper, or ``highest``."""

    def __post_init__(self) -> None:
        require_not_negative(patience=self.patience, seed=self.seed, seconds=self.seconds)
        if not 0 <= self.skip < 1:
            raise InvalidValue("skip", f"is {self.skip}, must be at least 0 and below 1")


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

    Args:
        progress: Receives the number of iterations and the best throughput.

    Raises:
        InvalidValue: The seed topology has another number of nodes than the machine.
        UnknownName: The seed topology or the expansion is unknown.
    """
    load_kernels(progress)
    generator, deadline = np.random.default_rng(options.seed), Deadline(seconds=options.seconds)
    levels = coarsen(application, machine.nodes, expansion=options.expansion)
    trail: list[Iteration] = []
    best: tuple[Topology, Solution] | None = None
    idle = 0  # iterations since the last gain
    with deadline.interruptible():
        first = seed_topology(options.seed_topology, application, machine, generator)
        swap: LinkChange | None = LinkChange(first, (), ())
        while swap is not None:
            topology = swap.topology
            now = place_and_route(
                application, topology, machine, generator, refinement=options.refinement, levels=levels
            )
            gained = best is None or now.throughput > best[1].throughput * (1 + GAIN)
            iteration = Iteration.of(
                len(trail),
                now,
                removed=swap.removed,
                inserted=swap.inserted,
                best=now.throughput if gained else trail[-1].best,
                seconds=deadline.elapsed,
            )
            trail.append(iteration)  # first, so that an interrupt never leaves the best out of the trail
            best = (topology, now) if gained else best
            idle = 0 if gained else idle + 1
            progress("iterations", iteration.number, None, iteration.best)
            if idle >= options.patience or deadline.over:
                break
            swap = next_swap(topology, now, generator, skip=options.skip)
    if best is None:
        raise KeyboardInterrupt
    return SearchResult(
        topology=best[0], solution=best[1], trail=tuple(trail), complete=not deadline.interrupted
    )


def next_swap(
    topology: Topology, solution: Solution, generator: np.random.Generator, *, skip: float
) -> LinkChange | None:
    """Return an edge swap that may relieve the bottleneck (section 3.3); None if no two links can be swapped.

    Args:
        topology: H_i, connected.
        solution: Solution on that topology, whose loads are the weights of nodes and links.
        generator: Decides which of the two ways of swapping a pair is tried first, and which pairs are
            skipped.
        skip: Probability, 0 <= skip < 1, that a possible pair is ignored, to avoid cycles of topologies
            (section 3.3, last paragraph). If all pairs were ignored, the first of them is swapped.
    """
    candidates = (
        compute_candidates(topology, solution)
        if bottleneck(solution) == COMPUTE
        else communication_candidates(topology, solution)
    )
    first: LinkChange | None = None
    for one, other in candidates:
        swap = swap_pair(topology, one, other, crossed=bool(generator.integers(2)))
        if swap is None:
            continue
        if generator.random() >= skip:
            return swap
        first = first or swap
    return first


def compute_candidates(topology: Topology, solution: Solution) -> Iterator[Pair]:
    """Yield pairs of links for a compute bottleneck, in the order to try them (section 3.3, Figure 3).

    e_high, a light link between heavy nodes, has the lowest expansion: load over the product of its nodes'
    loads. e_low has the lowest such vertex-product. All e_low are tried with the first e_high, then with the
    next. A link at an empty node has infinite expansion; ties by row.
    """
    product = solution.node_load[topology.source] * solution.node_load[topology.target]
    expansion = np.full(topology.links, np.inf)
    np.divide(solution.link_load, product, out=expansion, where=product > 0)
    low = np.argsort(product, kind="stable").tolist()
    for one in np.argsort(expansion, kind="stable").tolist():
        yield from ((one, other) for other in low)


def communication_candidates(topology: Topology, solution: Solution) -> Iterator[Pair]:
    """Yield pairs of links for a communication bottleneck, in the order to try them (Figure 4).

    A light link on either side of the bottleneck cut, the pair with the smallest sum of loads first. After
    those pairs, or if a side has no link, any two links in the same order.
    """
    load, side = solution.link_load, bottleneck_cut(topology, solution.link_load)
    ends = side[topology.source], side[topology.target]
    inside = np.flatnonzero(~ends[0] & ~ends[1]), np.flatnonzero(ends[0] & ends[1])
    yield from _lightest_pairs(load, inside[0], inside[1])
    every = np.arange(topology.links)
    yield from ((one, other) for one, other in _lightest_pairs(load, every, every) if one < other)


def bottleneck_cut(topology: Topology, link_load: Floats) -> Bools:
    """Return the side of the bottleneck cut without node 0 (bool[nodes]; section 3.3).

    Links are removed by descending load, ties by row, until the nodes are disconnected.
    """
    order = np.argsort(-link_load, kind="stable")
    for count in range(1, topology.links + 1):
        label = topology.components(order[:count])
        if label.any():
            return np.asarray(label != label[0])
    return np.zeros(topology.nodes, bool)


def swap_pair(topology: Topology, one: int, other: int, *, crossed: bool) -> LinkChange | None:
    """Return the swap of two links, or None if neither way is allowed (section 3.3, conditions a to c).

    The links must share no node, the new links must not exist yet, and nodes must stay connected.

    Args:
        one, other: Rows of links.
        crossed: Way that is tried first (`Topology.swap_ends`).
    """
    removed = topology.ends(one), topology.ends(other)
    if one == other or len({*removed[0], *removed[1]}) < 4:
        return None
    for way in (crossed, not crossed):
        inserted = topology.swap_ends(one, other, way)
        if any(topology.link_between(*pair) >= 0 for pair in inserted):
            continue
        swapped = topology.changed((one, other), inserted)
        if swapped.connected():
            return LinkChange(swapped, removed, inserted)
    return None


def _lightest_pairs(load: Floats, one: Longs, other: Longs) -> Iterator[Pair]:
    """Yield pairs of a link of each of two sets, by rising sum of loads; ties by place."""
    one, other = (rows[np.argsort(load[rows], kind="stable")] for rows in (one, other))
    if not (len(one) and len(other)):
        return
    first, second = load[one].tolist(), load[other].tolist()
    queue = [(first[0] + second[0], 0, 0)]
    while queue:
        _, i, j = heapq.heappop(queue)
        yield int(one[i]), int(other[j])
        if j + 1 < len(second):
            heapq.heappush(queue, (first[i] + second[j + 1], i, j + 1))
        if j == 0 and i + 1 < len(first):
            heapq.heappush(queue, (first[i + 1] + second[0], i + 1, 0))
