"""Shared parts of the figures of Hoefler and Snir 2011: guests, strategies, Algorithm 3, rows of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from bench.support.machine import processor_clock
from bench.support.plots import Curve, Panel
from bench.support.searches import problem_of
from ingest.generate.direct import torus
from ingest.generate.matrices import AUDIKW_NODES, F1_NODES, SparseMatrix, crankshaft, kkt, product_traffic
from ingest.generate.stencils import stencil
from mapping.cost.metrics import evaluate
from mapping.cost.report import RANDOM_SEEDS
from mapping.distances.cost_model import CostModel
from mapping.placement.catalog import Chain
from mapping.placement.methods.baselines import in_order, random_placement
from mapping.placement.place import place
from mapping.placement.problem import Problem, host_indices
from mapping.placement.search import SearchOptions
from registry.model import Allocation, Evaluation, Fabric, Ints, Placement, Profile

LEAST_LOADED = "least-loaded"
INNER = 20
"""Iterations of the inner loop (section 3.5)."""
FIRST = 0.0005
"""First threshold, as part of the start's value: the default of our threshold accepting."""


def algorithm_3(fabric: Fabric, profile: Profile, placement: Placement) -> tuple[float, float]:
    """Return the worst congestion by Algorithm 3, and the mean links of an edge of the guest.

    Edges are routed in the order of senders, then of receivers.
    """
    allocation = placement.allocation
    problem = problem_of(fabric, profile, allocation, LEAST_LOADED)
    return estimator(problem)(host_indices(allocation, placement.host_of_rank))


def estimator(problem: Problem) -> Callable[[Ints], tuple[float, float]]:
    """Return a function of each rank's host index: the worst congestion, and the mean links of an edge."""
    capacity = problem.routes.fabric.links.capacity

    def estimate(hosts: Ints) -> tuple[float, float]:
        load = problem.routes.load(*problem.host_traffic(hosts))
        return float((load.link_bytes / capacity).max()), float(load.hops.mean())

    return estimate


def accept_on_estimate(problem: Problem, start: Ints, seconds: float, seed: int = 0) -> tuple[Ints, int]:
    """Return the best of a run of threshold accepting on Algorithm 3, and the number of proposals.

    As in section 3.5: two random positions of the mapping are swapped, a candidate is accepted if it is
    worse by less than the threshold, and the threshold falls after every 20 proposals, here linearly with
    processor time to 0.
    """
    estimate, generator = estimator(problem), np.random.default_rng(seed)
    current = start.copy()
    value = lowest = first = estimate(current)[0]
    best, proposals, begin = current.copy(), 0, time.process_time()
    while (used := (time.process_time() - begin) / seconds) < 1.0:
        threshold = FIRST * first * (1.0 - used)
        for _ in range(INNER):
            pair = generator.choice(problem.ranks, 2, replace=False)
            candidate = current.copy()
            candidate[pair] = current[pair[::-1]]
            found = estimate(candidate)[0]
            if found < value + threshold:
                current, value = candidate, found
            if value < lowest:
                best, lowest = current.copy(), value
        proposals += INNER
    return best, proposals


ROUTING = "shortest-paths"
MATRICES = ("nlpkkt", "F1", "audikw")
STRATEGIES = {
    "greedy": "greedy:starts=8,by=congestion",
    "greedy (last)": "greedy:starts=8,by=congestion,near=last",
    "greedy (start)": "greedy:starts=8,by=congestion,near=start",
    "rcm": "rcm:variant=paper",
    "rcm (whole)": "rcm:variant=whole",
    "recursive": "recursive-bisection",
}
"""The paper's three (sections 3.1 to 3.3); greedy from eight start vertices, as its library in parallel.

"Closest" is to the sender's host, as in section 3.1, to the host used last, as Algorithm 1 can be read, or to
the start, as the authors' library LibTopoMap does it.
RCM as printed removes vertices without slots from the host graph, or (whole) orders them, too.
"""
THREE = ("greedy", "rcm", "recursive")
READINGS = ("greedy", "greedy (last)", "greedy (start)")
OURS = "ours"
SMALL = {"nlpkkt": 12, "F1": 2_000, "audikw": 4_000}
FULL = {"nlpkkt": 80, "F1": F1_NODES, "audikw": AUDIKW_NODES}
"""nlpkkt80 replaces nlpkkt240, which has 27 times as many rows and does not fit this memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Limits of a run."""

    refine_seconds: float = 5.0
    search_seconds: float = 10.0
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """Result of one strategy."""

    worst: float
    network: float
    mean: float
    """loaded links"""
    estimate: float
    dilation: float
    edge_dilation: float
    """dilation"""
    seconds: float
    placement: Placement
    plain: Mapped | None = None

    @property
    def unrefined(self) -> Mapped:
        """The result before threshold accepting, or this one if it was not run."""
        return self.plain or self


NUMBERS = ("worst", "network", "mean", "estimate", "dilation", "edge_dilation", "seconds")


@cache
def matrix(name: str, small: bool) -> SparseMatrix:
    """Generate a substitute for one of the paper's three matrices."""
    size = (SMALL if small else FULL)[name]
    return kkt(size) if name == "nlpkkt" else crankshaft(size)


@cache
def guest(name: str, ranks: int, small: bool) -> Profile:
    """Return the traffic of a sparse matrix-vector product, ranks numbered as METIS numbers its parts."""
    return product_traffic(matrix(name, small), ranks, name=f"{name}-{ranks}")


def first_hosts(fabric: Fabric, ranks: int) -> Allocation:
    """Return the paper's initial allocation: hosts in machine order, one rank each."""
    return Allocation.of(fabric, fabric.hosts[:ranks].tolist())


@processor_clock()
def compare(
    fabric: Fabric,
    profile: Profile,
    effort: Effort,
    *,
    refine: bool = True,
    search: bool = False,
    allocation: Allocation | None = None,
) -> dict[str, Mapped]:
    """Run the baselines, the paper's strategies, also refined by threshold accepting, and our search.

    All limits are in processor seconds.
    """
    where = first_hosts(fabric, profile.ranks) if allocation is None else allocation
    found = {"in-order": judged(fabric, profile, in_order(profile.ranks, where))}
    several = [judged(fabric, profile, random_placement(profile.ranks, where, seed)) for seed in RANDOM_SEEDS]
    means: dict[str, Any] = {key: float(np.mean([getattr(one, key) for one in several])) for key in NUMBERS}
    found["random"] = replace(several[0], **means)
    problem = problem_of(fabric, profile, where)
    for name, text in STRATEGIES.items():
        found[name] = _refined(fabric, profile, problem, text, effort.refine_seconds if refine else 0.0)
    if search:
        options = SearchOptions(seconds=effort.search_seconds, workers=1)
        placement = place(fabric, profile, where, options, CostModel(routing=ROUTING))
        found[OURS] = judged(fabric, profile, placement, placement.seconds)
    return found


def judged(fabric: Fabric, profile: Profile, placement: Placement, seconds: float = 0.0) -> Mapped:
    """Return exact metrics over all shortest paths, and the worst congestion by Algorithm 3."""
    found: Evaluation = evaluate(fabric, profile, placement, costs=CostModel(routing=ROUTING))
    estimate, hops = algorithm_3(fabric, profile, placement)
    return Mapped(
        worst=found.congestion_seconds,
        network=found.network_congestion_seconds,
        mean=found.mean_congestion_seconds or 0.0,
        estimate=estimate,
        dilation=found.average_dilation,
        edge_dilation=hops,
        seconds=seconds,
        placement=placement,
    )


def change(
    found: dict[str, Mapped],
    name: str,
    baseline: str = "in-order",
    metric: str = "worst",
    *,
    refined: bool = True,
) -> float:
    """Return a strategy's value, with or without threshold accepting, divided by a baseline's, minus one."""
    one = found[name] if refined else found[name].unrefined
    return float(getattr(one, metric) / getattr(found[baseline], metric) - 1.0)


def best_of_three(found: dict[str, Mapped], *, refined: bool = True) -> str:
    """Return the paper's strategy with the lowest worst congestion, as its library chooses (Figure 4).

    All readings of the text take part. Of several with the same worst link, the one with the lowest
    congestion between switches wins.
    """

    def key(name: str) -> tuple[float, float]:
        one = found[name] if refined else found[name].unrefined
        return float(f"{one.worst:.9g}"), one.network

    return min(STRATEGIES, key=key)


def percent(value: float) -> str:
    """Format a change as whole percents: ``-24%``."""
    return f"{round(100 * value):+d}%"


def by_size(changes: Sequence[float]) -> str:
    """Format changes for rising sizes in order, and say whether the reduction grows with the size.

    It grows (shrinks) if the rank correlation of reduction and size is at least 0.6 (at most -0.6).
    """
    whole = np.rint(100 * np.asarray(changes))
    agreement = float(spearmanr(-whole, np.arange(len(whole))).statistic) if np.ptp(whole) > 0 else 0.0
    trend = "grows" if agreement >= 0.6 else "shrinks" if agreement <= -0.6 else "no trend"
    return f"{', '.join(map(percent, changes))}: {trend}"


def panel(
    title: str,
    x: Sequence[int],
    found: Sequence[dict[str, Mapped]],
    baseline: str = "in-order",
    metric: str = "worst",
    *,
    refined: bool = True,
) -> Panel:
    """Plot the change of the worst congestion by strategy over the ranks, for all links or network links."""

    def shown(name: str, one: dict[str, Mapped]) -> bool:
        return name in one and (name not in STRATEGIES or not refined or one[name].plain is not None)

    return Panel(
        title=f"{title}, {'with' if refined else 'without'} threshold accepting",
        x="ranks",
        y=f"worst {'network ' if metric == 'network' else ''}congestion against {baseline}",
        curves=tuple(
            Curve(
                label=name,
                x=tuple(float(ranks) for ranks, one in zip(x, found, strict=True) if shown(name, one)),
                y=tuple(
                    change(one, name, baseline, metric, refined=refined) for one in found if shown(name, one)
                ),
            )
            for name in (*STRATEGIES, "random", OURS)
            if name != baseline
        ),
    )


def seconds_panel(title: str, x: Sequence[int], found: Sequence[dict[str, Mapped]]) -> Panel:
    """Plot the processor time of each strategy over the number of ranks."""
    return Panel(
        title=title,
        x="ranks",
        y="processor seconds of the strategy",
        log=True,
        curves=tuple(
            Curve(label=name, x=tuple(map(float, x)), y=tuple(max(one[name].seconds, 1e-5) for one in found))
            for name in STRATEGIES
        ),
    )


def span(values: Sequence[float]) -> str:
    """Format the smallest and largest of several numbers."""
    return f"{min(values):.3g} to {max(values):.3g}"


def hosts_of_ranks(text: str, problem: Problem) -> Ints:
    """Return each rank's host index (int32[ranks]) as found by a chain's strategy with seed 0."""
    strategy = Chain.parse(text).strategy
    if strategy is None:
        raise ValueError(f"{text} does not begin with a strategy")
    return strategy.strategy()(problem, np.random.default_rng(0))


@cache
def _warm(text: str) -> None:
    """Compile or load a strategy's kernels on a small problem."""
    fabric, profile = torus((2, 2, 2)), stencil((2, 2, 2), 7)
    where = first_hosts(fabric, profile.ranks)
    hosts_of_ranks(text, problem_of(fabric, profile, where))


def timed_placement(fabric: Fabric, profile: Profile, problem: Problem, text: str) -> Mapped:
    """Run a strategy and measure its processor time."""
    _warm(text)
    begin = time.process_time()
    hosts = hosts_of_ranks(text, problem)
    taken = time.process_time() - begin
    placement = Placement(
        host_of_rank=problem.allocation.hosts[hosts], allocation=problem.allocation, strategy=text
    )
    return judged(fabric, profile, placement, taken)


def _refined(fabric: Fabric, profile: Profile, problem: Problem, text: str, seconds: float) -> Mapped:
    """Run a strategy, timed alone, and threshold accepting after it."""
    plain = timed_placement(fabric, profile, problem, text)
    if not seconds:
        return plain
    options = SearchOptions(strategies=["threshold-accepting"], seconds=seconds, workers=1)
    costs = CostModel(routing=ROUTING)
    refined = place(fabric, profile, problem.allocation, options, costs, present=plain.placement)
    return replace(judged(fabric, profile, refined, plain.seconds), plain=plain)
