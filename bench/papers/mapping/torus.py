"""Reproduce Hoefler and Snir 2011, Figure 5(a): nlpkkt240 on cubic 3-dimensional tori of side 3 to 12."""

from __future__ import annotations

from dataclasses import replace

from bench.papers.mapping.mapping_2011 import OURS, ROUTING, Mapped, change, compare, guest, panel
from bench.support.figures import Effort, Figure, Row
from ingest.generate.stencils import shuffled
from ingest.generate.tori import torus
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate

SIDES = tuple(range(3, 13))
SEED = 1
ORDERS = {"METIS": "ranks numbered as METIS numbers parts", "shuffled": "ranks numbered at random"}
INITIAL = (
    "the paper's initial dilation, 9.00, is the mean distance of the torus (9.005 without self pairs), so "
    "its ranks in order were as good as random: compare with the shuffled numbering"
)
REAL = "nlpkkt80 for nlpkkt240; exact congestion over all shortest paths, the paper's by its Algorithm 3"


def run(effort: Effort) -> Figure:
    """Run both numberings of the same guests."""
    sides = (3, 4) if effort.small else SIDES
    found: dict[str, list[dict[str, Mapped]]] = {order: [] for order in ORDERS}
    for side in sides:
        fabric, plain = torus((side,) * 3), guest("nlpkkt", side**3, effort.small)
        for order in ORDERS:
            profile = plain if order == "METIS" else shuffled(plain, SEED)
            found[order].append(compare(fabric, profile, effort, search=side in (sides[0], 8, sides[-1])))
    rows = [row for order in ORDERS for row in _rows(order, sides, found[order])]
    rows += _by_algorithm_3(sides[-1], found["shuffled"][-1], effort)
    return Figure(
        title="2011, Figure 5(a): nlpkkt on 3-dimensional tori",
        setting=f"Tori of side {sides[0]} to {sides[-1]}, one rank a node; the METIS partition of nlpkkt80 "
        f"into as many parts; threshold accepting {effort.refine_seconds:g} s after each strategy; ours "
        f"{effort.search_seconds:g} s. Two numberings: {'; '.join(ORDERS.values())}.",
        rows=tuple(rows),
        panels=tuple(panel(f"{order} numbering", [s**3 for s in sides], found[order]) for order in ORDERS),
    )


def _rows(order: str, sides: tuple[int, ...], found: list[dict[str, Mapped]]) -> list[Row]:
    """Compare with the paper's sentences under one numbering."""
    small, large = found[0], found[-1]
    why = f"{INITIAL}; {REAL}" if order == "METIS" else REAL
    against = f"in order, {order} numbering"
    cube = f"{sides[-1]}^3, {order}"
    wins = sum(one["rcm"].worst > one["greedy"].worst for one in found)
    rows = [
        Row(
            what=f"{sides[0]}^3, {order}: greedy, worst congestion",
            ours=change(small, "greedy"),
            baseline=against,
            paper="5a-greedy-27",
            why=why,
        ),
        Row(
            what=f"{cube}: greedy, worst congestion",
            ours=change(large, "greedy"),
            baseline=against,
            paper="5a-greedy-1728",
            why=why,
        ),
        Row(
            what=f"{cube}: greedy (last), worst congestion",
            ours=change(large, "greedy (last)"),
            baseline=against,
            paper="5a-greedy-1728",
            why=why,
        ),
        Row(
            what=f"{cube}: recursive, worst congestion",
            ours=change(large, "recursive"),
            baseline=against,
            paper="5a-recursive-1728",
            why=why,
        ),
        Row(
            what=f"{order}: RCM worse than greedy",
            ours=f"on {wins} of {len(found)} tori",
            paper="5a-rcm",
            why=why,
        ),
        Row(what=f"{cube}: ours, worst congestion", ours=change(large, OURS), baseline=against),
        Row(what=f"{cube}: ours, dilation", ours=large[OURS].dilation, baseline="hops"),
    ]
    for name in ("in-order", "greedy", "greedy (last)", "rcm", "recursive"):
        key = f"5a-dilation-{'initial' if name == 'in-order' else name.split()[0]}"
        rows.append(
            Row(
                what=f"{cube}: {name}, dilation",
                ours=large[name].dilation,
                baseline="hops",
                paper=key,
                why=why,
            )
        )
    rows += [
        Row(
            what=f"{cube}: {name}, time",
            ours=large[name].seconds,
            baseline="seconds",
            paper=f"5a-seconds-{name}",
            why="another machine; greedy from 8 starts" if name == "greedy" else "another machine",
        )
        for name in ("rcm", "greedy")
    ]
    return rows


def _by_algorithm_3(side: int, found: dict[str, Mapped], effort: Effort) -> list[Row]:
    """Evaluate the placements on the largest torus with the paper's own estimate of congestion."""
    fabric, profile = torus((side,) * 3), shuffled(guest("nlpkkt", side**3, effort.small), SEED)
    worst = {
        name: evaluate(
            fabric, profile, replace(one.placement, strategy=name), CostModel(routing="least-loaded")
        ).congestion_seconds
        for name, one in found.items()
        if name in ("in-order", "greedy", "recursive")
    }
    why = f"searched on {ROUTING}, then judged by Algorithm 3: single paths, least loaded first"
    return [
        Row(
            what=f"{side}^3, shuffled: {name}, worst congestion by Algorithm 3",
            ours=worst[name] / worst["in-order"] - 1.0,
            baseline="in order, shuffled numbering",
            paper=f"5a-{name}-1728",
            why=why,
        )
        for name in ("greedy", "recursive")
    ]
