"""What was found or judged, as the command line and JSON tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mapping.evaluation.report import LoadedLink, worst_link
from mapping.placement.moves.moving import Curve
from mapping.placement.partition.cores import Seating
from mapping.service.answers.case import Case
from registry.model import Bound, Evaluation, Fabric, Metrics, Placement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """A placement that was found, beside its baselines and bounds.

    Attributes
    ----------
    case : Case
    routing_because : str
        Why this routing was taken.
    placement : Placement
    evaluation : Evaluation
        Of the placement, with bounds.
    baseline : Evaluation
        Of the ranks in order.
    random : Metrics
        Mean over `mapping.evaluation.report.RANDOM_SEEDS`.
    curve : Curve or None
        Where a present placement was kept: moved ranks against the objective.
    placement_id : str
        Empty where it was not saved.
    seating : Seating or None
        Where ranks got cores: what that saves.
    """

    case: Case
    routing_because: str
    placement: Placement
    evaluation: Evaluation
    baseline: Evaluation
    random: Metrics
    curve: Curve | None = None
    placement_id: str = ""
    seating: Seating | None = None

    @property
    def fabric(self) -> Fabric:
        """That the placement's vertices belong to."""
        return self.case.fabric

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """Certified lower bounds by metric."""
        return self.evaluation.bounds

    def told(self) -> dict[str, Any]:
        """The documented JSON keys."""
        placement = self.placement
        return {
            "placement": self.placement_id or None,
            "profile": self.case.profile.name,
            "cluster": self.case.cluster,
            "snapshot": self.case.snapshot,
            "ranks": placement.ranks,
            "hosts": len(placement.allocation),
            "objective": placement.objective,
            "routing": placement.routing,
            "background": self.evaluation.background,
            "strategy": placement.strategy,
            "seed": placement.seed,
            "seconds": placement.seconds,
            "steps": placement.steps,
            "complete": placement.complete,
            "code_version": self.evaluation.code_version,
            "in_order": Metrics.of(self.baseline).told(),
            "random": self.random.told(),
            "placed": Metrics.of(self.evaluation).told(),
            "lower_bound": bounds_told(self.bounds),
            "certified": certified(self.evaluation),
            **({} if self.seating is None else {"cores": self.seating.told()}),
            **({} if self.curve is None else {"moved": _moved(self), "curve": curve_told(self.curve)}),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judgement:
    """What a given placement costs.

    Attributes
    ----------
    case : Case
    placement_name, routing_because : str
    placement : Placement
    evaluation : Evaluation
        With bounds for the case's hosts and slots.
    """

    case: Case
    placement_name: str
    routing_because: str
    placement: Placement
    evaluation: Evaluation

    @property
    def fabric(self) -> Fabric:
        """That the placement's vertices belong to."""
        return self.case.fabric

    def told(self) -> dict[str, Any]:
        """The documented JSON keys."""
        found = self.evaluation
        return {
            "placement": self.placement_name,
            "profile": self.case.profile.name,
            "cluster": self.case.cluster,
            "snapshot": self.case.snapshot,
            "ranks": self.placement.ranks,
            "hosts": len(np.unique(self.placement.host_of_rank)),
            "routing": found.routing,
            "rails": found.rails,
            "background": found.background,
            "bytes": found.total_bytes,
            **Metrics.of(found).told(),
            "max_dilation": found.max_dilation,
            "mean_congestion_seconds": found.mean_congestion_seconds,
            "mapping_coefficient": found.mapping_coefficient,
            "distance": found.distance,
            "worst_link": _link_told(worst_link(self.fabric, found)),
            "worst_network_link": _link_told(worst_link(self.fabric, found, network=True)),
            "lower_bound": bounds_told(found.bounds),
            "certified": certified(found),
            "code_version": found.code_version,
        }


def bounds_told(bounds: Mapping[str, Bound]) -> dict[str, float]:
    """Values of certified bounds by metric."""
    return {name: bound.value for name, bound in bounds.items()}


def certified(evaluation: Evaluation) -> dict[str, str]:
    """By metric that has a bound: how far from the best possible at most, and by which argument."""
    return {
        name: bound.certifies(float(getattr(evaluation, name))) for name, bound in evaluation.bounds.items()
    }


def curve_told(curve: Curve) -> list[dict[str, Any]]:
    """Points as JSON."""
    return [{"moved": point.moved, **point.score._asdict()} for point in curve.points]


def _moved(answer: Answer) -> int:
    present = answer.case.present
    return 0 if present is None else int((present.host_of_rank != answer.placement.host_of_rank).sum())


def _link_told(link: LoadedLink | None) -> dict[str, Any] | None:
    return None if link is None else asdict(link)
