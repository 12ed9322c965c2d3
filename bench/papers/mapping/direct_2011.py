"""Reproduce Hoefler and Snir 2011, Figures 5(a), 5(b), 6(c) and greedy from every host: tori and PERCS."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.papers.mapping.mapping_2011 import (
    MATRICES,
    OURS,
    READINGS,
    STRATEGIES,
    THREE,
    Effort,
    Mapped,
    accept_on_estimate,
    best_of_three,
    by_size,
    change,
    compare,
    estimator,
    first_hosts,
    guest,
    judged,
    panel,
    span,
    timed_placement,
)
from bench.support.papers import Figure, Row
from bench.support.searches import problem_of
from ingest.generate.direct import percs, torus
from ingest.generate.stencils import shuffled
from mapping.placement.methods.baselines import in_order
from mapping.placement.problem import host_indices
from registry.model import Fabric, Profile

SIDES = tuple(range(3, 13))
REFINED_SIDES = (3, 4, 6, 9, 12)
"""Sides on which threshold accepting is run."""
SEED = 1
ORDERS = {"METIS": "ranks numbered as METIS numbers parts", "shuffled": "ranks numbered at random"}
INITIAL = (
    "the paper's initial dilation, 9.00, is the mean distance of the torus (9.005 without self pairs), so "
    "its ranks in order were as good as random: compare with the shuffled numbering"
)
REAL = "nlpkkt80 for nlpkkt240"
WITH = "five seconds of threshold accepting on the exact worst link move ranks far apart: see the dilations"
TORUS_WAYS = {
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


def tori(effort: Effort) -> Figure:
    """Run both numberings of the same guests."""
    sides = (3, 4) if effort.small else SIDES
    found: dict[str, list[dict[str, Mapped]]] = {order: [] for order in ORDERS}
    rows: list[Row] = []
    for order in ORDERS:
        for side in sides:
            fabric, profile = torus((side,) * 3), numbered(order, side, effort.small)
            search = side in (sides[0], 6, sides[-1])
            found[order].append(compare(fabric, profile, effort, refine=side in REFINED_SIDES, search=search))
        rows += _rows_of_torus(order, sides, found[order])
        rows += _accepting(order, fabric, profile, found[order][-1], effort)
    on = ", ".join(map(str, REFINED_SIDES))
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


def _rows_of_torus(order: str, sides: tuple[int, ...], found: list[dict[str, Mapped]]) -> Iterator[Row]:
    """Yield the paper's sentences under one numbering."""
    why, base = f"{INITIAL}; {REAL}" if order == "METIS" else REAL, f"in order, {order} numbering"
    for way, (metric, refined) in TORUS_WAYS.items():
        reason = f"{why}; {WITH}" if refined else why
        for side, one in zip((sides[0], sides[-1]), (found[0], found[-1]), strict=True):
            for name in (*STRATEGIES, OURS) if refined else STRATEGIES:
                what = f"{side}^3, {order}: {name}, {OWN[way] if name == OURS else way}"
                value = change(one, name, metric=metric, refined=refined)
                yield Row(what, value, base, _paper(name, side, sides), "" if name == OURS else reason)
        several = [one for one in found if not refined or one["greedy"].plain]
        for name in (*READINGS, "recursive"):
            changes = by_size([change(one, name, metric=metric, refined=refined) for one in several])
            yield Row(f"{order}: {name}, {way}, by size", changes, base, "5a-trend", reason)
        for name in READINGS:
            worse = sum(_value(one, "rcm", way) > _value(one, name, way) for one in several)
            text = f"on {worse} of {len(several)} tori"
            yield Row(f"{order}: RCM worse than {name}, {way}", text, "", "5a-rcm", reason)
    case = f"{sides[-1]}^3, {order}"
    yield from _dilations_of_torus(case, found[-1], why)
    for name in ("rcm", "greedy", "greedy (start)", "recursive"):
        key = "5a-seconds-rcm" if name == "rcm" else "5a-seconds-greedy"
        reason = "another machine; greedy from 8 starts" if name in READINGS else "another machine"
        yield Row(f"{case}: {name}, time", found[-1][name].seconds, "seconds", key, reason)


def _value(one: dict[str, Mapped], name: str, way: str) -> float:
    metric, refined = TORUS_WAYS[way]
    return float(getattr(one[name] if refined else one[name].unrefined, metric))


def _paper(name: str, side: int, sides: tuple[int, ...]) -> str:
    """Return the key of the paper's value for the worst congestion, or an empty text."""
    if name in READINGS:
        return "5a-greedy-27" if side == sides[0] else "5a-greedy-1728"
    return "5a-recursive-1728" if name == "recursive" and side == sides[-1] else ""


def _dilations_of_torus(case: str, one: dict[str, Mapped], why: str) -> Iterator[Row]:
    """Yield dilations without and with threshold accepting, weighted by bytes and by edges."""
    for name in ("in-order", *STRATEGIES, OURS):
        key = "" if name == OURS else f"5a-dilation-{'initial' if name == 'in-order' else name.split()[0]}"
        several = {"without": one[name].unrefined, "with threshold accepting": one[name]}
        for way, mapped in several.items() if one[name].plain else (("", one[name]),):
            reason = "" if name == OURS else f"{why}; {WITH}" if "with t" in way else why
            for kind, value in (("", mapped.dilation), (" of an edge", mapped.edge_dilation)):
                what = f"{case}: {name}, dilation{kind}{f', {way}' if way else ''}"
                yield Row(what, value, "hops", key, reason)


def _accepting(
    order: str, fabric: Fabric, profile: Profile, found: dict[str, Mapped], effort: Effort
) -> Iterator[Row]:
    """Yield the gain of threshold accepting if it minimises Algorithm 3's estimate, as in the paper."""
    where = first_hosts(fabric, profile.ranks)
    problem = problem_of(fabric, profile, where, "least-loaded")
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
            key = "5a-recursive-1728" if name == "recursive" else "5a-greedy-1728"
            base = f"in order, {order} numbering"
            yield Row(f"{case}, by Algorithm 3", after / initial - 1.0, base, key, why)
            yield Row(f"{case}, gain", after / before - 1.0, "without", "ta-gain", why)
            yield Row(f"{case}, dilation of an edge", hops, "hops")
            yield Row(f"{case}, proposals", f"{proposals}")


CASES = {"shuffled": ("sender", "start"), "METIS": ("sender",)}
"""Numbering of the ranks, and the readings of greedy that are run."""


def all_starts(effort: Effort) -> Figure:
    """Run greedy from all hosts of the largest torus of Figure 5(a), without threshold accepting."""
    side = 4 if effort.small else 12
    fabric, rows = torus((side,) * 3), list[Row]()
    for order in ORDERS:
        profile = numbered(order, side, effort.small)
        where = first_hosts(fabric, profile.ranks)
        problem = problem_of(fabric, profile, where)
        first = judged(fabric, profile, in_order(profile.ranks, where))
        for near in CASES[order]:
            text = f"greedy:starts={profile.ranks},by=congestion,near={near}"
            found = timed_placement(fabric, profile, problem, text)
            case = f"{side}^3, {order}: greedy near={near} from all hosts"
            against = f"in order, {order} numbering"
            why = "the best of all starts by exact congestion; the paper's library chooses by Algorithm 3"
            worst, estimate = found.worst / first.worst - 1.0, found.estimate / first.estimate - 1.0
            key = "5a-greedy-1728"
            rows += [
                Row(f"{case}, worst congestion", worst, against, key, why),
                Row(f"{case}, worst congestion by Algorithm 3", estimate, against, key, why),
                Row(f"{case}, dilation of an edge", found.edge_dilation, "hops"),
                Row(f"{case}, time", found.seconds, "seconds"),
            ]
    return Figure(
        title="2011, section 4.2: greedy from every host of a torus",
        setting=f"Torus of side {side}, one rank a node, nlpkkt80; no threshold accepting.",
        rows=tuple(rows),
    )


RANKS = (64, 128, 256, 512, 1024, 1728, 1792)
REFINED_RANKS = (64, 512)
"""Sizes at which threshold accepting is run; the paper has it "disabled for P > 512" (5.3.2)."""
PERCS_WHY = (
    "the figure does not name its matrix: all three are here; D links are drawn anew; the paper counts from "
    "ranks in order, which on this network are far worse than random ones"
)
SCATTERED = (
    'what the paper calls "average congestion" agrees with dilation; greedy near the start, as LibTopoMap '
    "has it, places ranks almost as a random placement does, which alone gains most of the 80%: ranks spread "
    "over supernodes use more D links"
)
PERCS_WAYS = {"with threshold accepting": True, "without": False}


def percs_by_size(effort: Effort) -> Figure:
    """Run all three matrices on the first nodes."""
    sizes = (64, 128) if effort.small else RANKS
    fabric = percs()
    found: dict[str, list[dict[str, Mapped]]] = {name: [] for name in MATRICES}
    for ranks in sizes:
        for name in MATRICES:
            profile = guest(name, ranks, effort.small)
            one = compare(
                fabric,
                profile,
                effort,
                refine=ranks in REFINED_RANKS,
                search=ranks in (sizes[0], 512, sizes[-1]),
            )
            found[name].append(one)
    rows = [row for name in MATRICES for row in _rows_of_percs(name, sizes, found[name])]
    every = [one for name in MATRICES for one in found[name]]
    for name in ("greedy", "greedy (start)", "recursive", "rcm"):
        what, key = f"{name}, time at {sizes[0]} to {sizes[-1]} ranks", f"5b-seconds-{name.split()[0]}"
        seconds = span([one[name].seconds for one in every])
        rows.append(Row(what, seconds, "seconds", key, "another machine; distances and routes apart"))
    return Figure(
        title="2011, Figure 5(b): PERCS, 9 D links a node",
        setting=f"289 supernodes of 32 nodes, LL 24, LR 5, D 10 GiB/s, D links on random nodes (seed 0); "
        f"ranks on the first nodes. Threshold accepting {effort.refine_seconds:g} s at "
        f"{REFINED_RANKS[0]} and {REFINED_RANKS[1]} ranks (the paper has none above 512); ours "
        f"{effort.search_seconds:g} s on the same nodes; processor time.",
        rows=tuple(rows),
        panels=tuple(panel(name, sizes, found[name], refined=False) for name in MATRICES),
    )


def _rows_of_percs(name: str, sizes: tuple[int, ...], found: list[dict[str, Mapped]]) -> Iterator[Row]:
    """Yield the paper's sentences for one matrix."""
    at = sizes.index(1728) if 1728 in sizes else len(sizes) - 1
    yield from _gains(f"{name}, {sizes[-1]} ranks", found[-1])
    for strategy in (*READINGS, "recursive"):
        for way, refined in PERCS_WAYS.items():
            several = [one for one in found if not refined or one[strategy].plain]
            changes = by_size([change(one, strategy, refined=refined) for one in several])
            what = f"{name}: {strategy}, worst congestion by size, {way}"
            yield Row(what, changes, "in-order", "5b-trend", PERCS_WHY)
    for strategy in READINGS:
        worse = sum(one["rcm"].unrefined.worst > one[strategy].unrefined.worst for one in found)
        what = f"{name}: RCM worse than {strategy}, without threshold accepting"
        yield Row(what, f"at {worse} of {len(found)} sizes", "", "5b-rcm", PERCS_WHY)
    yield from _dilations_of_percs(f"{name}, {sizes[at]} ranks", found[at])


def _gains(case: str, found: dict[str, Mapped]) -> Iterator[Row]:
    """Yield the worst congestion at the largest size, without threshold accepting, by both measures."""
    chosen = best_of_three(found)
    for metric, ending in (("worst", ""), ("estimate", " by Algorithm 3")):
        for baseline in ("in-order", "random"):
            for name in ("random", *STRATEGIES, OURS):
                if name != baseline:
                    value = change(found, name, baseline, metric)
                    key, why = ("5b-best-1792", PERCS_WHY) if name == chosen else ("", "")
                    yield Row(f"{case}: {name}, worst congestion{ending}", value, baseline, key, why)


def _dilations_of_percs(case: str, found: dict[str, Mapped]) -> Iterator[Row]:
    """Yield dilations weighted by bytes, and by edges."""
    keys = dict.fromkeys(READINGS, "5b-mean-greedy") | {"recursive": "5b-mean-recursive"}
    for name in ("in-order", "random", *STRATEGIES):
        for kind, value in (("", found[name].dilation), (" of an edge", found[name].edge_dilation)):
            what = f"{case}: {name}, average dilation{kind}"
            yield Row(what, value, "hops", keys.get(name, ""), SCATTERED)


def blue_gene(effort: Effort) -> Figure:
    """Run all three guests on an 8x8x8 torus, with ranks in order at the start."""
    sides = (4, 4, 4) if effort.small else (8, 8, 8)
    fabric = torus(sides, capacity=425e6)
    ranks = sides[0] ** 3
    found = {
        name: compare(fabric, guest(name, ranks, effort.small), effort, search=True) for name in MATRICES
    }
    measures, key = (("worst", ""), ("estimate", " by Algorithm 3")), "6c-predicted"
    rows = [
        Row(f"{name}: best of the paper's, predicted time", change(one, best_of_three(one), base), base, key)
        for name, one in found.items()
        for base in ("in-order", "random")
    ]
    rows += [
        Row(f"{name}: ours, predicted time{ending}", change(one, OURS, metric=metric), "in-order")
        for name, one in found.items()
        for metric, ending in measures
    ]
    for name, one in found.items():
        for strategy in STRATEGIES:
            for metric, ending in measures:
                what = f"{name}: {strategy}, predicted time without threshold accepting{ending}"
                value = change(one, strategy, metric=metric, refined=False)
                rows.append(Row(what, value, "in-order", key))
    pairs = [(one[name].worst, one[name].unrefined.worst) for one in found.values() for name in STRATEGIES]
    gained, base = span([refined / plain - 1.0 for refined, plain in pairs]), "the same strategy without"
    seconds = span([sum(one[name].seconds for name in THREE) for one in found.values()])
    why = f"{effort.refine_seconds:g} s each; all networks in the paper, this torus here"
    rows += [
        Row("measured time", "not reproduced", "in-order", "6c-measured"),
        Row("threshold accepting, worst congestion", gained, base, "ta-gain", why),
        Row("time of all three strategies", seconds, "seconds", "6c-seconds"),
    ]
    return Figure(
        title="2011, Figure 6(c): 512 nodes of BlueGene/P",
        setting=f"8x8x8 torus of 425 MB/s links, one rank a node, numbered by METIS; threshold accepting "
        f"{effort.refine_seconds:g} s, ours {effort.search_seconds:g} s, processor time.",
        rows=tuple(rows),
    )
