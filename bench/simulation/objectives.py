"""Find the objective that `almanac map` should use: simulate the placements that each objective finds.

A metric that predicts the time over placements of all kinds need not lead a search to the fastest one, so
that the default is decided here: the default search, once for each objective, on the cases of
`bench.simulation.correlation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.simulation.cases import Setting, sent, settings
from bench.simulation.runs import Effort, percent
from bench.support.papers import Figure, Row, progress
from mapping.distances.cost_model import CostModel
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import place
from registry.model import Allocation, Floats

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
STEPS, SEEDS = 100_000, 4
NEAR = 1.005
BASELINE = "simulated time of the fastest placement that any search found for the case"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A fabric and a program.

    Attributes
    ----------
    seconds : float64[objectives, seeds]; Simulated completion time of what was found
    in_order : that of ranks in order
    """

    fabric: str
    program: str
    seconds: Floats
    in_order: float

    @property
    def over_least(self) -> Floats:
        """Return geometric means over seeds, relative to the case's least (float64[objectives])."""
        return np.asarray(np.exp(np.log(self.seconds / self.seconds.min()).mean(axis=1)))


def run(effort: Effort) -> Figure:
    """Run all cases, then compare what each objective leads to."""
    cases = [_case(setting, small=effort.small) for setting in settings(effort)]
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


def rows_of(cases: Sequence[Case]) -> list[Row]:
    """Summarise all cases, then each fabric."""
    rows = []
    over = np.stack([one.over_least for one in cases])
    near = (over <= over.min(axis=1, keepdims=True) * NEAR).sum(axis=0)
    for objective, column, count in zip(OBJECTIVES, over.T, near.tolist(), strict=True):
        text = f"{_spread(column)}; within 0.5% of the best objective in {percent(count, len(cases))}"
        rows.append(Row(what=f"all cases: {objective}", ours=text, baseline=BASELINE))
    in_order = np.array([one.in_order / one.seconds.min() for one in cases])
    rows.append(Row(what="all cases: ranks in order", ours=_spread(in_order), baseline=BASELINE))
    for fabric in dict.fromkeys(one.fabric for one in cases):
        chosen = over[[one.fabric == fabric for one in cases]]
        for objective, column in zip(OBJECTIVES, chosen.T, strict=True):
            rows.append(Row(what=f"{fabric}: {objective}", ours=_spread(column), baseline=BASELINE))
    return rows


def _case(setting: Setting, *, small: bool) -> Case:
    fabric, profile, routing = setting.fabric, setting.profile, setting.routing
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    steps, seeds = _sizes(small)
    found = [
        place(
            fabric,
            profile,
            allocation,
            SearchOptions(objective=objective, steps=steps, seed=seed),
            CostModel(routing=routing),
        )
        for objective in OBJECTIVES
        for seed in range(seeds)
    ]
    order = place(
        fabric,
        profile,
        allocation,
        SearchOptions(strategies=["in-order"], steps=0),
        CostModel(routing=routing),
    )
    *seconds, in_order = setting.seconds([*found, order])
    case = Case(
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
    return (500, 1) if small else (STEPS, SEEDS)


def _spread(values: Floats) -> str:
    return f"{np.exp(np.log(values).mean()):.3f}, at most {values.max():.3f}"
