"""Find the metric that best predicts the simulated time, and the objective that `almanac map` should use.

Every case is a fabric with its routing and a program; its 72 placements are simulated and judged by every
metric. A metric's coefficient is the mean of its rank correlations over the cases; its interval comes from
resampling the placements of every case. Beside it what a metric costs who trusts it: how much longer than the
fastest the placement takes that the metric puts first. A metric that predicts the time over placements of all
kinds need not lead a search to the fastest one: the default search runs for each objective, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.simulation.cases import (
    Effort,
    Setting,
    draws,
    interval,
    kendall,
    of_every_kind,
    percent,
    sent,
    settings,
    spearman,
)
from bench.support.papers import Figure, Row, progress
from bench.support.plots import Curve, Panel
from bench.support.searches import searched
from mapping.cost.metrics import evaluate
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import EQUIVALENT_2
from registry.model import Allocation, Evaluation, Floats, Longs, Placement

RESAMPLES = 500
Both = tuple[Evaluation, Evaluation]
"""Of a placement, on the routes that are simulated and on all shortest paths."""
METRICS: dict[str, Callable[[Both], tuple[float, ...]]] = {
    "congestion": lambda both: (both[0].congestion_seconds,),
    "network congestion": lambda both: (both[0].network_congestion_seconds,),
    "congestion as `almanac map` orders": lambda both: (
        both[0].congestion_seconds,
        both[0].network_congestion_seconds,
        both[0].hop_bytes,
    ),
    "mean congestion": lambda both: (both[0].mean_congestion_seconds or 0.0,),
    "congestion on shortest paths": lambda both: (both[1].congestion_seconds,),
    "network congestion on shortest paths": lambda both: (both[1].network_congestion_seconds,),
    "hop-bytes": lambda both: (both[0].hop_bytes,),
    "network congestion times hop-bytes": lambda both: (
        both[0].network_congestion_seconds * both[0].hop_bytes,
    ),
    "dilation of pairs": lambda both: (both[0].total_dilation or 0.0,),
    "largest dilation": lambda both: (both[0].max_dilation,),
    "mapping coefficient": lambda both: (both[0].mapping_coefficient or 0.0,),
}
"""Numbers that a metric orders placements by, the first that differs counting; less is better."""
SHOWN = (
    "network congestion",
    "congestion on shortest paths",
    "hop-bytes",
    "network congestion times hop-bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A fabric and a program, with the metrics and times of their placements."""

    fabric: str
    program: str
    kinds: tuple[str, ...]
    values: dict[str, Floats]
    plain: dict[str, Floats]
    seconds: Floats
    """float64[n]; Simulated completion time."""

    def regret(self, metric: str) -> float:
        """Return how much longer than the fastest a metric's best placement takes, averaged over ties."""
        first = self.values[metric] == self.values[metric].min()
        return float(self.seconds[first].mean() / self.seconds.min()) - 1.0


def correlation(effort: Effort) -> Figure:
    """Run all cases, then compute their coefficients."""
    cases: list[Case] = []
    for setting in settings(effort):
        cases.append(_case(setting, small=effort.small))
        best = max(METRICS, key=lambda metric: _rho(cases[-1], metric))
        progress(f"{setting.fabric_name}, {setting.program}: {best} {_rho(cases[-1], best):.3f}")
    placements = sum(len(one.seconds) for one in cases)
    return Figure(
        title="Which static metric predicts the simulated completion time",
        setting=f"{placements} placements of 64 ranks on 64 hosts in {len(cases)} cases: "
        f"{', '.join(dict.fromkeys(one.fabric for one in cases))}; {sent(effort)}. Rank correlation of each "
        f"metric with the completion time by packets, mean over the cases; intervals of 95% from {RESAMPLES} "
        "resamples of every case's placements.",
        rows=tuple(_rows(cases)),
        panels=tuple(_panel(one) for one in cases),
    )


def _case(setting: Setting, *, small: bool) -> Case:
    tried = of_every_kind(setting.fabric, setting.profile, setting.routing, small=small)
    judged = [_judged(setting, one.placement) for one in tried]
    seconds = setting.seconds([one.placement for one in tried])
    return Case(
        fabric=setting.fabric_name,
        program=setting.program,
        kinds=tuple(one.kind for one in tried),
        values={metric: _order([of(both) for both in judged]) for metric, of in METRICS.items()},
        plain={metric: np.array([of(both)[0] for both in judged]) for metric, of in METRICS.items()},
        seconds=np.array(seconds),
    )


def _judged(setting: Setting, placement: Placement) -> Both:
    fabric, profile = setting.fabric, setting.profile
    costs = CostModel(routing=setting.routing, distance=EQUIVALENT_2)
    return (
        evaluate(fabric, profile, placement, costs=costs),
        evaluate(fabric, profile, placement, costs=CostModel(routing="shortest-paths")),
    )


def _order(values: Sequence[tuple[float, ...]]) -> Floats:
    """Return the rank of each tuple from 0, ties (within rounding) sharing the lowest (float64[n])."""
    rounded = [tuple(float(f"{number:.9g}") for number in one) for one in values]
    number = {one: rank for rank, one in reversed(list(enumerate(sorted(rounded))))}
    return np.array([number[one] for one in rounded], np.float64)


def _rho(case: Case, metric: str) -> float:
    return float(spearman(case.values[metric], case.seconds))


def _rows(cases: Sequence[Case]) -> list[Row]:
    """Summarise all cases together, each fabric, the faster halves, and the cost of trusting a metric."""
    rows = _coefficients("all cases", cases)
    for fabric in dict.fromkeys(one.fabric for one in cases):
        rows += _means(fabric, [one for one in cases if one.fabric == fabric])
    for program in dict.fromkeys(one.program for one in cases):
        rows += _means(program, [one for one in cases if one.program == program])
    rows += _means("the faster half of every case", [_faster(one) for one in cases])
    for metric in METRICS:
        costs = [one.regret(metric) for one in cases]
        text = f"{float(np.mean(costs)):+.3f} on average, at most {max(costs):+.3f}"
        fastest = "simulated time of the fastest placement of the case"
        rows.append(Row(f"the placement that {metric} puts first", text, fastest))
    return rows


def _coefficients(called: str, cases: Sequence[Case]) -> list[Row]:
    """Return mean coefficients with intervals, and how often each metric leads in resamples."""
    generator = np.random.default_rng(0)
    chosen = [draws(len(one.seconds), RESAMPLES, generator) for one in cases]
    rho = {metric: _resampled(spearman, cases, chosen, metric) for metric in METRICS}
    tau = {metric: _resampled(kendall, cases, chosen, metric) for metric in METRICS}
    leads = np.argmax(np.stack(list(rho.values())), axis=0)
    rows = []
    for number, metric in enumerate(METRICS):
        for name, statistic, several in (("rho", spearman, rho), ("tau", kendall, tau)):
            mean = float(np.mean([statistic(one.values[metric], one.seconds) for one in cases]))
            low, high = interval(several[metric])
            first = f"; leads in {float((leads == number).mean()):.0%} of resamples" if name == "rho" else ""
            text = f"{mean:.3f} ({low:.3f} to {high:.3f}){first}"
            rows.append(Row(f"{called}: {metric}, {name}", text, "simulated time"))
    return rows


def _resampled(
    statistic: Callable[[Floats, Floats], Floats],
    cases: Sequence[Case],
    chosen: Sequence[Longs],
    metric: str,
) -> Floats:
    """Return the mean coefficient over the cases for each resample (float64[resamples])."""
    several = [
        statistic(one.values[metric][rows], one.seconds[rows])
        for one, rows in zip(cases, chosen, strict=True)
    ]
    return np.asarray(np.mean(several, axis=0), np.float64)


def _means(called: str, cases: Sequence[Case]) -> list[Row]:
    return [
        Row(
            f"{called}: {metric}, rho", float(np.mean([_rho(one, metric) for one in cases])), "simulated time"
        )
        for metric in METRICS
    ]


def _faster(case: Case) -> Case:
    """Return the faster half of the placements."""
    half = np.argsort(case.seconds, kind="stable")[: (len(case.seconds) + 1) // 2]
    return Case(
        fabric=case.fabric,
        program=case.program,
        kinds=tuple(case.kinds[row] for row in half.tolist()),
        values={metric: order[half] for metric, order in case.values.items()},
        plain={metric: numbers[half] for metric, numbers in case.plain.items()},
        seconds=case.seconds[half],
    )


def _panel(case: Case) -> Panel:
    """Plot time over the least against a metric over its least."""
    return Panel(
        title=f"{case.fabric}; {case.program}",
        x="metric over its least",
        y="simulated time over the least",
        curves=tuple(
            Curve(
                label=metric,
                x=tuple((case.plain[metric] / max(float(case.plain[metric].min()), 1e-300)).tolist()),
                y=tuple((case.seconds / case.seconds.min()).tolist()),
                line=False,
            )
            for metric in SHOWN
        ),
    )


OBJECTIVES = (
    "congestion",
    "network-congestion",
    "congestion,mean-congestion",
    "mean-congestion",
    "hop-bytes",
    "congestion+hop-bytes",
    "network-congestion+hop-bytes",
    "mapping-coefficient",
)
"""The first is the default of `almanac map`: behind it come network congestion, then hop-bytes."""
SEARCH_STEPS, SEARCH_SEEDS = 100_000, 4
NEAR = 1.005
FASTEST = "simulated time of the fastest placement that any search found for the case"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Searched:
    """A fabric and a program."""

    fabric: str
    program: str
    seconds: Floats
    """float64[objectives, seeds]; Simulated completion time of what was found."""
    in_order: float

    @property
    def over_least(self) -> Floats:
        """Return geometric means over seeds, relative to the case's least (float64[objectives])."""
        return np.asarray(np.exp(np.log(self.seconds / self.seconds.min()).mean(axis=1)))


def objectives(effort: Effort) -> Figure:
    """Run all cases, then compare what each objective leads to."""
    cases = [_searched(setting, small=effort.small) for setting in settings(effort)]
    steps, seeds = _sizes(effort.small)
    where = ", ".join(dict.fromkeys(one.fabric for one in cases))
    return Figure(
        title="Which objective finds the placements that run fastest",
        setting=f"The default search for {len(OBJECTIVES)} objectives, {steps:,} proposals, {seeds} seeds "
        f"each; 64 ranks on 64 hosts in {len(cases)} cases: {where}; {sent(effort)}. Simulated completion "
        "time by packets over that of the fastest placement that any search found for the case, geometric "
        "means.",
        rows=tuple(rows_of(cases)),
    )


def rows_of(cases: Sequence[Searched]) -> list[Row]:
    """Summarise all cases, then each fabric."""
    rows = []
    over = np.stack([one.over_least for one in cases])
    near = (over <= over.min(axis=1, keepdims=True) * NEAR).sum(axis=0)
    for objective, column, count in zip(OBJECTIVES, over.T, near.tolist(), strict=True):
        text = f"{_spread(column)}; within 0.5% of the best objective in {percent(count, len(cases))}"
        rows.append(Row(what=f"all cases: {objective}", ours=text, baseline=FASTEST))
    in_order = np.array([one.in_order / one.seconds.min() for one in cases])
    rows.append(Row(what="all cases: ranks in order", ours=_spread(in_order), baseline=FASTEST))
    for fabric in dict.fromkeys(one.fabric for one in cases):
        chosen = over[[one.fabric == fabric for one in cases]]
        for objective, column in zip(OBJECTIVES, chosen.T, strict=True):
            rows.append(Row(what=f"{fabric}: {objective}", ours=_spread(column), baseline=FASTEST))
    return rows


def _searched(setting: Setting, *, small: bool) -> Searched:
    fabric, profile, routing = setting.fabric, setting.profile, setting.routing
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    steps, seeds = _sizes(small)
    found = [
        searched(fabric, profile, allocation, routing=routing, objective=objective, steps=steps, seed=seed)
        for objective in OBJECTIVES
        for seed in range(seeds)
    ]
    order = searched(fabric, profile, allocation, routing=routing, strategies=["in-order"], steps=0)
    *seconds, in_order = setting.seconds([*found, order])
    case = Searched(
        fabric=setting.fabric_name,
        program=setting.program,
        seconds=np.array(seconds).reshape(len(OBJECTIVES), seeds),
        in_order=in_order,
    )
    times = ", ".join(
        f"{objective} {value:.3f}" for objective, value in zip(OBJECTIVES, case.over_least, strict=True)
    )
    progress(f"{case.fabric}, {case.program}: {times}")
    return case


def _sizes(small: bool) -> tuple[int, int]:
    """Return the numbers of proposals and of seeds."""
    return (500, 1) if small else (SEARCH_STEPS, SEARCH_SEEDS)


def _spread(values: Floats) -> str:
    return f"{np.exp(np.log(values).mean()):.3f}, at most {values.max():.3f}"
