"""Reproduce Hoefler and Snir 2011, Figure 5(a): nlpkkt240 on cubic 3-dimensional tori of side 3 to 12."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.papers.mapping.algorithm_3 import accept_on_estimate, estimator
from bench.papers.mapping.mapping_2011 import (
    OURS,
    READINGS,
    STRATEGIES,
    Mapped,
    by_size,
    change,
    compare,
    first_hosts,
    guest,
    panel,
)
from bench.support.figures import Effort, Figure, Row
from ingest.generate.direct import torus
from ingest.generate.stencils import shuffled
from mapping.placement.problem import Problem, host_indices
from mapping.routing.catalog import build_routes
from registry.model import Fabric, Profile

SIDES = tuple(range(3, 13))
REFINED = (3, 4, 6, 9, 12)
"""Sides on which threshold accepting is run."""
SEED = 1
ORDERS = {"METIS": "ranks numbered as METIS numbers parts", "shuffled": "ranks numbered at random"}
INITIAL = (
    "the paper's initial dilation, 9.00, is the mean distance of the torus (9.005 without self pairs), so "
    "its ranks in order were as good as random: compare with the shuffled numbering"
)
REAL = "nlpkkt80 for nlpkkt240"
WITH = "five seconds of threshold accepting on the exact worst link move ranks far apart: see the dilations"
WAYS = {
    "with threshold accepting": ("worst", True),
    "without": ("worst", False),
    "without, by Algorithm 3": ("estimate", False),
    "with, by Algorithm 3": ("estimate", True),
}
"""Field of the result, and whether after threshold accepting."""
OWN = {"with threshold accepting": "worst congestion", "with, by Algorithm 3": "by Algorithm 3"}
"""Texts of the rows of our search, which has no threshold accepting."""
LONG = 6
"""The longer run of threshold accepting on Algorithm 3, in multiples of the limit of the other."""


def run(effort: Effort) -> Figure:
    """Run both numberings of the same guests."""
    sides = (3, 4) if effort.small else SIDES
    found: dict[str, list[dict[str, Mapped]]] = {order: [] for order in ORDERS}
    rows: list[Row] = []
    for order in ORDERS:
        for side in sides:
            fabric, profile = torus((side,) * 3), numbered(order, side, effort.small)
            search = side in (sides[0], 6, sides[-1])
            found[order].append(compare(fabric, profile, effort, refine=side in REFINED, search=search))
        rows += _rows(order, sides, found[order])
        rows += _accepting(order, fabric, profile, found[order][-1], effort)
    on = ", ".join(map(str, REFINED))
    return Figure(
        title="2011, Figure 5(a): nlpkkt on 3-dimensional tori",
        setting=f"Tori of side {sides[0]} to {sides[-1]}, one rank a node; the METIS partition of nlpkkt80 "
        f"into as many parts; each strategy without threshold accepting and, on sides {on}, with "
        f"{effort.refine_seconds:g} s of it on the exact worst link; ours {effort.search_seconds:g} s. All "
        f"limits are processor time. Two numberings: {'; '.join(ORDERS.values())}.",
        rows=tuple(rows),
        panels=tuple(
            panel(f"{order} numbering", [s**3 for s in sides], found[order], refined=refined)
            for refined in (False, True)
            for order in ORDERS
        ),
    )


def numbered(order: str, side: int, small: bool) -> Profile:
    """Return the guest of a torus with ranks in one of `ORDERS`."""
    plain = guest("nlpkkt", side**3, small)
    return plain if order == "METIS" else shuffled(plain, SEED)


def _rows(order: str, sides: tuple[int, ...], found: list[dict[str, Mapped]]) -> Iterator[Row]:
    """Yield the paper's sentences under one numbering."""
    why = f"{INITIAL}; {REAL}" if order == "METIS" else REAL
    for way, (metric, refined) in WAYS.items():
        reason = f"{why}; {WITH}" if refined else why
        for side, one in zip((sides[0], sides[-1]), (found[0], found[-1]), strict=True):
            for name in (*STRATEGIES, OURS) if refined else STRATEGIES:
                yield Row(
                    what=f"{side}^3, {order}: {name}, {OWN[way] if name == OURS else way}",
                    ours=change(one, name, metric=metric, refined=refined),
                    baseline=f"in order, {order} numbering",
                    paper=_paper(name, side, sides),
                    why="" if name == OURS else reason,
                )
        run = [one for one in found if not refined or one["greedy"].plain]
        for name in (*READINGS, "recursive"):
            changes = [change(one, name, metric=metric, refined=refined) for one in run]
            yield Row(
                what=f"{order}: {name}, {way}, by size",
                ours=by_size(changes),
                baseline=f"in order, {order} numbering",
                paper="5a-trend",
                why=reason,
            )
        for name in READINGS:
            worse = sum(_value(one, "rcm", way) > _value(one, name, way) for one in run)
            yield Row(
                what=f"{order}: RCM worse than {name}, {way}",
                ours=f"on {worse} of {len(run)} tori",
                paper="5a-rcm",
                why=reason,
            )
    yield from _dilations(f"{sides[-1]}^3, {order}", found[-1], why)
    for name in ("rcm", "greedy", "greedy (start)", "recursive"):
        yield Row(
            what=f"{sides[-1]}^3, {order}: {name}, time",
            ours=found[-1][name].seconds,
            baseline="seconds",
            paper="5a-seconds-rcm" if name == "rcm" else "5a-seconds-greedy",
            why="another machine; greedy from 8 starts" if name in READINGS else "another machine",
        )


def _value(one: dict[str, Mapped], name: str, way: str) -> float:
    metric, refined = WAYS[way]
    return float(getattr(one[name] if refined else one[name].unrefined, metric))


def _paper(name: str, side: int, sides: tuple[int, ...]) -> str:
    """Return the key of the paper's value for the worst congestion, or an empty text."""
    if name in READINGS:
        return "5a-greedy-27" if side == sides[0] else "5a-greedy-1728"
    return "5a-recursive-1728" if name == "recursive" and side == sides[-1] else ""


def _dilations(case: str, one: dict[str, Mapped], why: str) -> Iterator[Row]:
    """Yield dilations without and with threshold accepting, weighted by bytes and by edges."""
    for name in ("in-order", *STRATEGIES, OURS):
        key = f"5a-dilation-{'initial' if name == 'in-order' else name.split()[0]}"
        several = {"without": one[name].unrefined, "with threshold accepting": one[name]}
        for way, mapped in several.items() if one[name].plain else (("", one[name]),):
            ending = f", {way}" if way else ""
            for kind, value in (("", mapped.dilation), (" of an edge", mapped.edge_dilation)):
                yield Row(
                    what=f"{case}: {name}, dilation{kind}{ending}",
                    ours=value,
                    baseline="hops",
                    paper="" if name == OURS else key,
                    why="" if name == OURS else f"{why}; {WITH}" if "with t" in way else why,
                )


def _accepting(
    order: str, fabric: Fabric, profile: Profile, found: dict[str, Mapped], effort: Effort
) -> Iterator[Row]:
    """Yield the gain of threshold accepting if it minimises Algorithm 3's estimate, as in the paper."""
    where = first_hosts(fabric, profile.ranks)
    problem = Problem(
        profile=profile, allocation=where, routes=build_routes("least-loaded", fabric, where.hosts)
    )
    estimate = estimator(problem)
    initial = estimate(np.arange(profile.ranks, dtype=np.int32))[0]
    for name in ("greedy", "greedy (start)", "recursive"):
        start = host_indices(where, found[name].unrefined.placement.host_of_rank)
        before, _ = estimate(start)
        for seconds in (effort.refine_seconds, LONG * effort.refine_seconds):
            hosts, proposals = accept_on_estimate(problem, start, seconds)
            after, hops = estimate(hosts)
            case = f"{round(profile.ranks ** (1 / 3))}^3, {order}: {name}, {seconds:g} s on Algorithm 3"
            why = f"{proposals} proposals, each with a full run of Algorithm 3, as in section 3.5; {REAL}"
            yield Row(
                what=f"{case}, by Algorithm 3",
                ours=after / initial - 1.0,
                baseline=f"in order, {order} numbering",
                paper="5a-recursive-1728" if name == "recursive" else "5a-greedy-1728",
                why=why,
            )
            yield Row(
                what=f"{case}, gain", ours=after / before - 1.0, baseline="without", paper="ta-gain", why=why
            )
            yield Row(what=f"{case}, dilation of an edge", ours=hops, baseline="hops")
            yield Row(what=f"{case}, proposals", ours=f"{proposals}")
