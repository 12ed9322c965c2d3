"""Run the 2011 paper's greedy from every host: its library has one start for each process (section 4.2)."""

from __future__ import annotations

from bench.papers.mapping.mapping_2011 import (
    ROUTING,
    first_hosts,
    judged,
    timed_placement,
)
from bench.papers.mapping.torus import ORDERS, numbered
from bench.support.figures import Effort, Figure, Row
from ingest.generate.direct import torus
from mapping.placement.methods.baselines import in_order
from mapping.placement.problem import Problem
from mapping.routing.catalog import build_routes

CASES = {"shuffled": ("sender", "start"), "METIS": ("sender",)}
"""Numbering of the ranks, and the readings of greedy that are run."""


def run(effort: Effort) -> Figure:
    """Run greedy from all hosts of the largest torus of Figure 5(a), without threshold accepting."""
    side = 4 if effort.small else 12
    fabric, rows = torus((side,) * 3), list[Row]()
    for order in ORDERS:
        profile = numbered(order, side, effort.small)
        where = first_hosts(fabric, profile.ranks)
        problem = Problem(
            profile=profile, allocation=where, routes=build_routes(ROUTING, fabric, where.hosts)
        )
        first = judged(fabric, profile, in_order(profile.ranks, where))
        for near in CASES[order]:
            text = f"greedy:starts={profile.ranks},by=congestion,near={near}"
            found = timed_placement(fabric, profile, problem, text)
            case = f"{side}^3, {order}: greedy near={near} from all hosts"
            against = f"in order, {order} numbering"
            why = "the best of all starts by exact congestion; the paper's library chooses by Algorithm 3"
            rows += [
                Row(
                    what=f"{case}, worst congestion",
                    ours=found.worst / first.worst - 1.0,
                    baseline=against,
                    paper="5a-greedy-1728",
                    why=why,
                ),
                Row(
                    what=f"{case}, worst congestion by Algorithm 3",
                    ours=found.estimate / first.estimate - 1.0,
                    baseline=against,
                    paper="5a-greedy-1728",
                    why=why,
                ),
                Row(what=f"{case}, dilation of an edge", ours=found.edge_dilation, baseline="hops"),
                Row(what=f"{case}, time", ours=found.seconds, baseline="seconds"),
            ]
    return Figure(
        title="2011, section 4.2: greedy from every host of a torus",
        setting=f"Torus of side {side}, one rank a node, nlpkkt80; no threshold accepting.",
        rows=tuple(rows),
    )
