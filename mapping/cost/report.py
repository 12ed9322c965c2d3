"""Placements of a case with their evaluation, baselines and bounds.

Errors: `InfeasibleAllocation`, `InvalidPlacement`, `InvalidValue` and `UnknownName` for a request that cannot
be met; `DisconnectedAllocation` or `UnreachablePair` if two hosts that communicate are not connected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mapping.cost.metrics import case_bounds, evaluate_on
from mapping.distances.distances import LINKS
from mapping.placement.case import PlacementCase
from mapping.placement.methods.baselines import in_order, random_placement
from mapping.placement.methods.cores import CoreBinding, bind_cores, layouts_on
from mapping.placement.moves import Curve, find_curve
from mapping.placement.objective import SAME, Score, better, parse_objective
from mapping.placement.place import PARETO, find_pareto_set, find_placement, group_ranks, place_ranks
from mapping.placement.problem import apply_pins
from registry.model import Bound, Evaluation, Fabric, Metrics, Placement
from registry.model.views import Drawn, Tabular, load, one_line
from registry.progress import Progress, silent

if TYPE_CHECKING:
    import networkx as nx

RANDOM_SEEDS = (0, 1, 2, 3, 4)
"""Seeds of the random placements whose mean is reported."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementReport(Drawn, Tabular):
    """A placement with its costs; notebooks show it as a picture of the fabric."""

    case: PlacementCase
    placement: Placement
    evaluation: Evaluation
    """With bounds for the case's hosts and slots."""
    in_order: Evaluation | None = None
    """Evaluation of the ranks in order; None if a given placement was evaluated."""
    random: Metrics | None = None
    """Mean over random placements (`RANDOM_SEEDS`); None if a given placement was evaluated."""
    curve: Curve | None = None
    """Number of moved ranks against the objective, if few ranks were to move."""
    cores: CoreBinding | None = None
    """What the choice of cores saves, if ranks got cores."""
    record_id: str = ""
    """Id of the saved placement, or the file of a given one; empty if it was not saved."""
    unsaved: str = ""
    """Reason why the database did not save it; empty if it did, or was not asked to."""
    measured: str = ""
    """What was measured with a placement that was found, if therefore the ranks stay in order; else empty."""

    __repr__ = one_line

    def columns(self) -> Mapping[str, Any]:
        """Return a row per rank: ``rank host slot``, and ``core cpu`` if cores were chosen."""
        names = np.asarray(self.fabric.names, object)
        return {**self.placement.columns(), "host": names[self.placement.host_of_rank]}

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return the fabric as a networkx graph with the ranks of hosts and the bytes of links."""
        ranks, link_bytes = self.placement.host_of_rank, self.evaluation.link_bytes
        graph: nx.DiGraph[str] = load("registry.interchange", "loaded_graph")(self.fabric, ranks, link_bytes)
        return graph

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts that have ranks, in the order of their first rank."""
        used = dict.fromkeys(self.placement.host_of_rank.tolist())
        return tuple(self.fabric.names[host] for host in used)

    @property
    def fabric(self) -> Fabric:
        """Fabric of the placement."""
        return self.case.fabric

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """Certified lower bounds by metric."""
        return self.evaluation.bounds

    @property
    def is_optimal(self) -> bool:
        """True if no placement can be better by the objective: it meets the certified bounds."""
        if self.placement.objective == PARETO:
            return False
        objective = parse_objective(self.placement.objective or self.case.options.objective)
        known = _searched(self.case, self.bounds)
        return objective.bounded_by(known).is_optimal(_score(self.evaluation))

    @property
    def above_in_order(self) -> dict[str, float]:
        """Metrics in which a placement is above ranks in order, if it is worse by its objective; else empty.

        The keys are names of metrics in objectives, the values the shares above; infinite above zero. Only a
        search with named strategies, or one that moves few ranks, can end worse than ranks in order; members
        of a Pareto set have no objective of their own.
        """
        if self.in_order is None or self.placement.objective == PARETO:
            return {}
        usual, found = _score(self.in_order), _score(self.evaluation)
        objective = parse_objective(self.placement.objective or self.case.options.objective).relative_to(
            usual
        )
        if not better(objective, usual, found):
            return {}
        shares = {
            term.metric: _share(getattr(found, term.field), getattr(usual, term.field))
            for level in objective.levels
            for term in level
        }
        return {metric: share for metric, share in shares.items() if share > SAME}


def report_placement(case: PlacementCase, progress: Progress = silent) -> PlacementReport:
    """Find a placement of a case; if it has a present placement, by moving few ranks."""
    case.allocation.require(case.profile.ranks)
    layouts_on(case.fabric, case.allocation, case.layouts)  # report an unknown host before the search
    if case.present is None:
        progress("bounds", 0)
        bounds = case_bounds(case)
        placement = find_placement(case, progress, _searched(case, bounds))
        progress("baselines", 0)
        report = with_baselines(
            report_given(case, placement, bounds=bounds), guard=not case.options.strategies
        )
        return _with_cores(report)
    curve = find_curve(case, progress)
    point = curve.chosen() if case.options.moves is None else curve.within(case.options.moves)
    return replace(report_found(case, (point.placement,), progress)[0], curve=curve)


def report_elsewhere(fabric: Fabric, case: PlacementCase) -> PlacementReport:
    """Return the report of `report_placement` for another process, without the case, which that has.

    Args:
        case: With any fabric: it is sent apart, since several cases may have the same.
    """
    report = report_placement(replace(case, fabric=fabric))
    return replace(report, case=cast(PlacementCase, None))


def _searched(case: PlacementCase, bounds: Mapping[str, Bound]) -> dict[str, float]:
    """Return the bounds of the metrics of a search, whose hop-bytes may use other distances."""
    links = case.distance == LINKS
    return {metric: bound.value for metric, bound in bounds.items() if links or metric != "hop_bytes"}


def report_pareto_set(case: PlacementCase, progress: Progress = silent) -> tuple[PlacementReport, ...]:
    """Find the placements of a case that trade congestion against hop-bytes."""
    return report_found(case, find_pareto_set(case, progress), progress)


def report_given(
    case: PlacementCase,
    placement: Placement,
    record_id: str = "",
    bounds: Mapping[str, Bound] | None = None,
) -> PlacementReport:
    """Evaluate a given placement with the case's bounds, which are computed unless they are given."""
    evaluation = evaluate_on(case, placement, bounds or case_bounds(case))
    return PlacementReport(case=case, placement=placement, evaluation=evaluation, record_id=record_id)


def report_found(
    case: PlacementCase,
    placements: Sequence[Placement],
    progress: Progress = silent,
    bounds: Mapping[str, Bound] | None = None,
) -> tuple[PlacementReport, ...]:
    """Evaluate placements that were found beside the baselines and bounds, and choose cores.

    Args:
        bounds: Of the case, if they are known already.
    """
    if not placements:
        return ()
    progress("baselines" if bounds else "bounds and baselines", 0)
    first = with_baselines(report_given(case, placements[0], bounds=bounds))
    others = (
        replace(first, placement=one, evaluation=evaluate_on(case, one, first.bounds))
        for one in placements[1:]
    )
    return tuple(_with_cores(report) for report in (first, *others))


def with_baselines(report: PlacementReport, *, guard: bool = False) -> PlacementReport:
    """Return the report with the evaluation of ranks in order and of random placements.

    Args:
        guard: True to return the best of these in place of the report's placement if that is worse by its
            objective: a short search may find nothing better.
    """
    case = report.case
    straight, *several = ((one, evaluate_on(case, one)) for one in _usual(case))
    random = Metrics.mean([Metrics.of(evaluation) for _, evaluation in several])
    report = replace(report, in_order=straight[1], random=random)
    if not guard:
        return report
    objective = parse_objective(case.options.objective).relative_to(_score(straight[1]))
    for placement, evaluation in (straight, *several):
        if better(objective, _score(evaluation), _score(report.evaluation)):
            found = replace(
                report.placement,
                host_of_rank=placement.host_of_rank,
                strategy=placement.strategy,
                seed=placement.seed,
            )
            report = replace(report, placement=found, evaluation=replace(evaluation, bounds=report.bounds))
    return report


def baselines(case: PlacementCase) -> tuple[Evaluation, Metrics]:
    """Return the evaluation of the ranks in order, and the mean metrics of random placements."""
    straight, *several = (evaluate_on(case, one) for one in _usual(case))
    return straight, Metrics.mean([Metrics.of(one) for one in several])


def _usual(case: PlacementCase) -> Iterator[Placement]:
    """Yield the ranks in order, then random placements, of those that a search of the case may find.

    Pinned ranks are on their hosts, and consecutive ranks share one.
    """
    searched = group_ranks(replace(case, present=None)) if case.options.consecutive else case
    ranks, allocation = searched.profile.ranks, searched.allocation
    several = (random_placement(ranks, allocation, seed) for seed in RANDOM_SEEDS)
    for one in (in_order(ranks, allocation), *several):
        if case.pins:
            hosts = apply_pins(searched.pinned_hosts(), searched.host_indices(one), allocation.slots)
            one = replace(one, host_of_rank=allocation.hosts[hosts])
        yield place_ranks(one, case) if case.options.consecutive else one


def _with_cores(report: PlacementReport) -> PlacementReport:
    """Return the report with a core for each rank if any host layout is known."""
    case = report.case
    if not case.layouts:
        return report
    layouts = layouts_on(case.fabric, case.allocation, case.layouts)
    placement, cores = bind_cores(case.profile, report.placement, layouts)
    return replace(report, placement=placement, cores=cores)


def _score(evaluation: Evaluation) -> Score:
    """Return the metrics on which a search works; its hop-bytes use the distances of the cost model."""
    hop_bytes = evaluation.mapping_coefficient
    return Score(
        congestion_seconds=evaluation.congestion_seconds,
        network_congestion_seconds=evaluation.network_congestion_seconds,
        hop_bytes=evaluation.hop_bytes if hop_bytes is None else hop_bytes,
        mean_congestion_seconds=evaluation.mean_congestion_seconds or 0.0,
        max_dilation=evaluation.max_dilation,
    )


def _share(value: float, usual: float) -> float:
    """Return the share by which a value is above the usual one; infinite above zero."""
    if usual > 0:
        return value / usual - 1.0
    return math.inf if value > 0 else 0.0
