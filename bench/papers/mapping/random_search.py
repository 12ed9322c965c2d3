"""Reproduce Orduna et al. 2004, Figure 7: random search on the mapping coefficient, SP on 64 workstations."""

from __future__ import annotations

import numpy as np

from bench.support.figures import Effort, Figure, Row
from bench.support.instances import real
from bench.support.plots import Curve, Panel
from ingest.generate.irregular import irregular
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import EQUIVALENT_2, distances
from mapping.placement.problem.problem import Problem
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import place
from mapping.placement.strategies.random_search import Search, search
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Floats, Ints

NETWORKS = 20
ROUTING = "up-down"
SAME, NEAR = 1e-9, 0.01


def run(effort: Effort) -> Figure:
    """Run ten seeds with forty failures on twenty random networks of 16 switches."""
    count = 3 if effort.small else NETWORKS
    profile = real("npb_sp_A_it5_64")
    found: list[Search] = []
    better: list[float] = []
    for network in range(count):
        fabric = irregular(16, seed=network)
        allocation = Allocation.of(fabric, fabric.hosts.tolist())
        routes = build_routes(ROUTING, fabric, allocation.hosts)
        problem = Problem(
            profile=profile,
            allocation=allocation,
            routes=routes,
            own_distances=distances(EQUIVALENT_2, routes),
        )
        found.append(search(problem, np.random.default_rng(network)))
        ours = place(
            fabric,
            profile,
            allocation,
            SearchOptions(objective="mapping-coefficient", seconds=min(effort.search_seconds, 1.0)),
            CostModel(routing=ROUTING),
        )
        # Every vertex of this network's hosts is at its own index of the allocation.
        hosts: Ints = ours.host_of_rank - allocation.hosts[0]
        better.append(problem.hop_bytes(hosts) / min(float(c[-1]) for c in found[-1].coefficients) - 1.0)
    return Figure(
        title="2004, Figure 7: random search",
        setting=f"{count} random networks of 16 switches of 8 ports with 4 hosts each (the paper's is not "
        "published), up*/down* routing, equivalent distance + 2, SP on 64 ranks as measured; 10 seeds, "
        "40 failures.",
        rows=tuple(_rows(found, better)),
        panels=(_panel(found[0]),),
    )


def _rows(found: list[Search], better: list[float]) -> list[Row]:
    reach, near = ([_reach(one, within) for one in found] for within in (SAME, NEAR))
    ends = [np.array([c[-1] for c in one.coefficients]) for one in found]
    spread = [float(end.max() / end.min() - 1.0) for end in ends]
    falls = [float(np.mean([1.0 - c[-1] / c[0] for c in one.coefficients])) for one in found]
    early = [float(np.mean([_early(c) for c in one.coefficients])) for one in found]
    length = [float(np.mean([len(c) - 1 for c in one.coefficients])) for one in found]
    several = sum(value >= 3 for value in reach) / len(reach)
    return [
        Row(
            what="seeds of 10 that reach the lowest value of all",
            ours=f"{np.mean(reach):.3g} on average, {min(reach)} to {max(reach)}; 3 or more on {several:.0%}",
            paper="2004-seeds",
            why="the network is not published; the best of ten seeds need not be the global minimum, see the "
            "last row",
        ),
        Row(
            what="seeds of 10 within 1% of the lowest value of all",
            ours=f"{np.mean(near):.3g} on average, {min(near)} to {max(near)}",
            paper="2004-seeds",
            why="values that close cannot be distinguished in a picture",
        ),
        Row(what="worst seed above the best", ours=f"{np.mean(spread):.3g} on average", baseline="best seed"),
        Row(what="fall from start to end of a seed", ours=-float(np.mean(falls)), baseline="random start"),
        Row(
            what="part of the fall within the first third of the iterations",
            ours=float(np.mean(early)),
            paper="2004-rapid",
        ),
        Row(what="iterations of a seed", ours=float(np.mean(length)), baseline="iterations"),
        Row(what="ours, 1 s", ours=float(np.mean(better)), baseline="best of 10 seeds"),
    ]


def _reach(one: Search, within: float) -> int:
    ends = np.array([c[-1] for c in one.coefficients])
    return int((ends <= ends.min() * (1 + within)).sum())


def _early(coefficients: Floats) -> float:
    fall = coefficients[0] - coefficients[-1]
    return float((coefficients[0] - coefficients[len(coefficients) // 3]) / fall) if fall > 0 else 1.0


def _panel(one: Search) -> Panel:
    """Plot all seeds one after the other, as Figure 7 does."""
    values = np.concatenate(one.coefficients)
    x = tuple(map(float, range(len(values))))
    curve = Curve(label="random search", x=x, y=tuple(values.tolist()))
    return Panel(
        title="one network, ten seeds", x="iterations in all", y="mapping coefficient", curves=(curve,)
    )
