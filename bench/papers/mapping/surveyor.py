"""Reproduce Hoefler and Snir 2011, Figure 6(c): a BlueGene/P of 512 nodes, predicted from congestion."""

from __future__ import annotations

from collections.abc import Iterator

from bench.papers.mapping.mapping_2011 import (
    MATRICES,
    OURS,
    STRATEGIES,
    THREE,
    Mapped,
    best_of_three,
    change,
    compare,
    guest,
    span,
)
from bench.support.figures import Effort, Figure, Row
from ingest.generate.direct import torus

WHY = "exact congestion over all shortest paths; the paper's by its Algorithm 3, on the machine's 8x8x8 torus"


def run(effort: Effort) -> Figure:
    """Run all three guests on an 8x8x8 torus, with ranks in order at the start."""
    sides = (4, 4, 4) if effort.small else (8, 8, 8)
    fabric = torus(sides, capacity=425e6)
    ranks = sides[0] ** 3
    found = {
        name: compare(fabric, guest(name, ranks, effort.small), effort, search=True) for name in MATRICES
    }
    rows = [
        Row(
            what=f"{name}: best of the paper's, predicted time",
            ours=change(one, best_of_three(one), baseline),
            baseline=baseline,
            paper="6c-predicted",
            why=WHY,
        )
        for name, one in found.items()
        for baseline in ("in-order", "random")
    ]
    rows += [
        Row(
            what=f"{name}: ours, predicted time{ending}",
            ours=change(one, OURS, metric=metric),
            baseline="in-order",
        )
        for name, one in found.items()
        for metric, ending in (("worst", ""), ("estimate", " by Algorithm 3"))
    ]
    rows += [row for name, one in found.items() for row in _unrefined(name, one)]
    gained = [
        one[strategy].worst / one[strategy].unrefined.worst - 1.0
        for one in found.values()
        for strategy in STRATEGIES
    ]
    seconds = [sum(one[name].seconds for name in THREE) for one in found.values()]
    rows += [
        Row(
            what="measured time",
            ours="not reproduced",
            baseline="in-order",
            paper="6c-measured",
            why="measured on the machine; simulated seconds of these phases are in "
            "bench/results/simulation/simulation.md",
        ),
        Row(
            what="threshold accepting, worst congestion",
            ours=span(gained),
            baseline="the same strategy without",
            paper="ta-gain",
            why=f"{effort.refine_seconds:g} s each; all networks in the paper, this torus here",
        ),
        Row(
            what="time of all three strategies",
            ours=span(seconds),
            baseline="seconds",
            paper="6c-seconds",
            why="another machine; greedy from 8 starts",
        ),
    ]
    return Figure(
        title="2011, Figure 6(c): 512 nodes of BlueGene/P",
        setting=f"8x8x8 torus of 425 MB/s links, one rank a node, numbered by METIS; threshold accepting "
        f"{effort.refine_seconds:g} s, ours {effort.search_seconds:g} s, processor time.",
        rows=tuple(rows),
    )


def _unrefined(name: str, one: dict[str, Mapped]) -> Iterator[Row]:
    """Yield the changes of all strategies without threshold accepting, by both measures."""
    for strategy in STRATEGIES:
        for metric, ending in (("worst", ""), ("estimate", " by Algorithm 3")):
            yield Row(
                what=f"{name}: {strategy}, predicted time without threshold accepting{ending}",
                ours=change(one, strategy, metric=metric, refined=False),
                baseline="in-order",
                paper="6c-predicted",
                why=WHY,
            )
