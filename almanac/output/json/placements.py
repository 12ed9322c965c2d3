"""JSON of placements: found, evaluated, compared, moved, and those that got worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from almanac.output.printing import attributes, finite, renamed

if TYPE_CHECKING:
    from mapping.cost.metrics import Difference, LinkEnd, LoadedLink
    from mapping.cost.report import PlacementReport
    from mapping.launchers import Launch
    from mapping.placement.moves import Advice, Curve
    from mapping.traffic.job_loads import Regression
    from mapping.traffic.measured_gain import MeasuredGain
    from registry.model import Evaluation
    from registry.store.placement_rows import StoredPlacementInfo


def placement_to_json(report: PlacementReport, launches: Sequence[Launch] = ()) -> dict[str, Any]:
    """Return the document of ``almanac map``; `launches` are the files that were written."""
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
        "host_count": len(placement.allocation),
        "hosts": list(report.hosts),
        "job_profile": case.job_profile or None,
        **attributes(placement, "objective", "routing"),
        "background": report.evaluation.background,
        **attributes(placement, "strategy", "seed", "steps", "complete"),
        "optimal": report.is_optimal,
        "wall_seconds": placement.seconds,
        "code_version": report.evaluation.code_version,
        "in_order": asdict(Metrics.of(report.in_order)),
        "random": asdict(report.random),
        "placed": asdict(Metrics.of(report.evaluation)),
        "above_in_order": {metric: finite(share) for metric, share in report.above_in_order.items()},
        **bounds_to_json(report.evaluation),
        "exports": [launch._asdict() for launch in launches],
    }
    if report.cores is not None:
        fields["cores"] = renamed(report.cores, hosts="host_count")
    if report.curve is not None:
        present = case.present
        moved = 0 if present is None else int((present.host_of_rank != placement.host_of_rank).sum())
        fields |= {"moved": moved, "curve": curve_to_json(report.curve)}
    return fields


def evaluation_to_json(report: PlacementReport) -> dict[str, Any]:
    """Return the document of ``almanac evaluate``."""
    from mapping.cost.metrics import worst_link
    from registry.model import Metrics

    found, case = report.evaluation, report.case
    return {
        "placement": report.record_id,
        "profile": case.profile.name,
        "cluster": case.cluster,
        "snapshot": case.snapshot,
        "ranks": report.placement.ranks,
        "host_count": len(set(report.placement.host_of_rank.tolist())),
        **attributes(found, "routing", "rails", "background"),
        "bytes": found.total_bytes,
        **asdict(Metrics.of(found)),
        **attributes(found, "max_dilation", "mean_congestion_seconds", "mapping_coefficient", "distance"),
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


def comparison_to_json(reports: Sequence[PlacementReport], links: Sequence[Difference]) -> dict[str, Any]:
    """Return the document of ``almanac compare``."""
    case = reports[0].case
    return {
        "profile": case.profile.name,
        "cluster": case.cluster,
        "placements": [
            {"placement": one.record_id, **compared_metrics_to_json(one.evaluation)} for one in reports
        ],
        "links": [_difference(one) for one in links],
    }


def compared_metrics_to_json(evaluation: Evaluation) -> dict[str, float | None]:
    """Return the metrics by which placements are compared."""
    from registry.model import Metrics

    return {
        **asdict(Metrics.of(evaluation)),
        **attributes(evaluation, "mean_congestion_seconds", "max_dilation"),
        "loaded_links": int((evaluation.link_bytes > 0).sum()),
    }


def advice_to_json(curve: Curve, advice: Sequence[Advice], best: Advice | None) -> dict[str, Any]:
    """Return the document of ``almanac advise placement``.

    Parameters
    ----------
    best : Advice or None
        Number of ranks to move that saves most, if it is known and above zero.
    """
    return {
        "objective": str(curve.objective),
        "complete": curve.complete,
        "curve": curve_to_json(curve),
        "advice": [
            {
                "moved": one.point.moved,
                **attributes(one, "seconds_saved", "saved_per_rank", "migration_seconds"),
                "break_even_iterations": finite(one.break_even_iterations),
                "worth_it": one.worth_it,
            }
            for one in advice
        ],
        "best_moved": None if best is None else best.point.moved,
    }


def regression_to_json(regression: Regression) -> dict[str, Any]:
    """Return a row of ``almanac history regressions``."""
    fields = renamed(regression, id="placement", profile_name="profile")
    del fields["row"]
    return fields


def stored_placement_to_json(info: StoredPlacementInfo) -> dict[str, Any]:
    """Return a row of ``almanac history placements``."""
    return renamed(info, id="placement", seconds="wall_seconds", bounds="lower_bound")


def measured_gain_to_json(one: MeasuredGain) -> dict[str, Any]:
    """Return a row of ``almanac history measured``."""
    run = one.run
    return {
        **attributes(run, "placement", "cluster", "application", "program", "ranks", "hosts", "slots"),
        **attributes(run, "launcher", "job", "other_jobs"),
        "profile_id": run.profile,
        "last_run": run.id,
        "last_started_at": run.started_at,
        "compared": "step" if one.per_step else "run",
        "placed_seconds": one.placed,
        "in_order_seconds": one.in_order,
        **attributes(one, "placed_other_load", "in_order_other_load"),
        "estimated_gain": one.estimated,
        "measured_gain": one.gain,
        "worse": one.worse,
    }


def _difference(difference: Difference) -> dict[str, Any]:
    first = difference.loads[0]
    return {
        "source": _end(first.source),
        "target": _end(first.target),
        "capacity": first.capacity,
        "bytes_by_placement": [load.bytes for load in difference.loads],
        "seconds_by_placement": [load.seconds for load in difference.loads],
        "difference_seconds": difference.seconds,
    }


def _link(link: LoadedLink | None) -> dict[str, Any] | None:
    return None if link is None else link_to_json(link)


def link_to_json(link: LoadedLink) -> dict[str, Any]:
    """Return a loaded link: both ends, its load, capacity and time."""
    return {**asdict(link), "source": _end(link.source), "target": _end(link.target)}


def _end(end: LinkEnd) -> dict[str, Any]:
    return {"name": end.name, "guid": end.guid, "port": end.port}
