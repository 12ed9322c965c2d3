"""JSON of placements: found, evaluated or compared, and curves of moved ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.evaluation.comparing import Difference
    from mapping.evaluation.loaded_links import LinkEnd, LoadedLink
    from mapping.evaluation.report import PlacementReport
    from mapping.placement.moves.remapping import Curve
    from registry.model import Evaluation


def placement_to_json(report: PlacementReport) -> dict[str, Any]:
    """Return the document of ``almanac map``."""
    from registry.model import Metrics

    assert report.in_order is not None
    assert report.random is not None
    placement, case = report.placement, report.case
    fields = {
        "placement": report.record_id or None,
        "profile": case.profile.name,
        "cluster": case.cluster,
        "snapshot": case.snapshot,
        "ranks": placement.ranks,
        "hosts": len(placement.allocation),
        "objective": placement.objective,
        "routing": placement.routing,
        "background": report.evaluation.background,
        "strategy": placement.strategy,
        "seed": placement.seed,
        "seconds": placement.seconds,
        "steps": placement.steps,
        "complete": placement.complete,
        "code_version": report.evaluation.code_version,
        "in_order": Metrics.of(report.in_order).told(),
        "random": report.random.told(),
        "placed": Metrics.of(report.evaluation).told(),
        **bounds_to_json(report.evaluation),
    }
    if report.cores is not None:
        fields["cores"] = asdict(report.cores)
    if report.curve is not None:
        present = case.present
        moved = 0 if present is None else int((present.host_of_rank != placement.host_of_rank).sum())
        fields |= {"moved": moved, "curve": curve_to_json(report.curve)}
    return fields


def evaluation_to_json(report: PlacementReport) -> dict[str, Any]:
    """Return the document of ``almanac evaluate``."""
    from mapping.evaluation.loaded_links import worst_link
    from registry.model import Metrics

    found, case = report.evaluation, report.case
    return {
        "placement": report.record_id,
        "profile": case.profile.name,
        "cluster": case.cluster,
        "snapshot": case.snapshot,
        "ranks": report.placement.ranks,
        "hosts": len(set(report.placement.host_of_rank.tolist())),
        "routing": found.routing,
        "rails": found.rails,
        "background": found.background,
        "bytes": found.total_bytes,
        **Metrics.of(found).told(),
        "max_dilation": found.max_dilation,
        "mean_congestion_seconds": found.mean_congestion_seconds,
        "mapping_coefficient": found.mapping_coefficient,
        "distance": found.distance,
        "worst_link": _link(worst_link(report.fabric, found)),
        "worst_network_link": _link(worst_link(report.fabric, found, network=True)),
        **bounds_to_json(found),
        "code_version": found.code_version,
    }


def bounds_to_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the certified bounds by metric, and what each proves: the distance to the best possible."""
    bounds = evaluation.bounds
    proven = {name: bound.certifies(float(getattr(evaluation, name))) for name, bound in bounds.items()}
    return {"lower_bound": {name: bound.value for name, bound in bounds.items()}, "certified": proven}


def curve_to_json(curve: Curve) -> list[dict[str, Any]]:
    """Return the points of a curve of moved ranks."""
    return [{"moved": point.moved, **point.score._asdict()} for point in curve.points]


def comparison_to_json(
    profile: str, cluster: str, reports: Sequence[PlacementReport], links: Sequence[Difference]
) -> dict[str, Any]:
    """Return the document of ``almanac compare``."""
    from mapping.evaluation.comparing import compared

    return {
        "profile": profile,
        "cluster": cluster,
        "placements": [{"placement": one.record_id, **compared(one.evaluation)} for one in reports],
        "links": [_difference(one) for one in links],
    }


def _difference(difference: Difference) -> dict[str, Any]:
    first = difference.loads[0]
    return {
        "source": _end(first.source),
        "target": _end(first.target),
        "capacity": first.capacity,
        "bytes": [load.bytes for load in difference.loads],
        "seconds": [load.seconds for load in difference.loads],
        "difference_seconds": difference.seconds,
    }


def _end(end: LinkEnd) -> dict[str, Any]:
    return {"name": end.name, "guid": end.guid, "port": end.port}


def _link(link: LoadedLink | None) -> dict[str, Any] | None:
    return None if link is None else asdict(link)
