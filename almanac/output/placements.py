"""Tables of placements: with baselines and bounds, Pareto sets, curves of moved ranks, evaluations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from almanac.output.printing import label, print_table, say
from registry import units
from registry.errors import shorten

if TYPE_CHECKING:
    from mapping.cost.metrics import LoadedLink
    from mapping.cost.report import PlacementReport
    from mapping.placement.methods.cores import CoreBinding
    from mapping.placement.moves import Curve
    from registry.model import Bound, Evaluation, Fabric, Metrics

BOUNDED = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
"""Metrics that have bounds."""
METRICS = {
    "congestion": "worst link",
    "network-congestion": "worst network link",
    "mean-congestion": "mean of loaded links",
    "hop-bytes": "hop-bytes",
    "dilation": "average dilation",
    "mapping-coefficient": "mapping coefficient",
    "max-dilation": "maximum dilation",
}
"""Names of metrics in objectives, and in sentences."""
BY_DISTANCE = ("hop-bytes", "dilation", "mapping-coefficient")
"""Metrics of objectives that use the distances of the cost model."""
LINK_ENDS = ("source", "source_guid", "source_port", "target", "target_guid", "target_port")
"""Columns of CSV files that name the two ends of a link."""
HOSTS_WIDTH = 1000
"""Most characters of the list of hosts that are used; `--json` has all."""
COLUMNS = ("placement", "worst link", "worst network link", "hop-bytes", "dilation", "which link")


def link_ends(link: LoadedLink) -> list[Any]:
    """Return the cells of `LINK_ENDS` of a link."""
    return [value for end in (link.source, link.target) for value in (end.name, end.guid, end.port)]


def show_placement(report: PlacementReport) -> None:
    """Print a placement with its baselines and bounds, what it was computed on, and what is proven."""
    from registry.model import Metrics

    placement, bounds, fabric = report.placement, report.bounds, report.fabric
    assert report.in_order is not None
    assert report.random is not None
    rows = [
        _row("in order", Metrics.of(report.in_order), _worst_link_text(fabric, report.in_order)),
        _row("random, mean of 5", report.random, ""),
        _row("found", Metrics.of(report.evaluation), _worst_link_text(fabric, report.evaluation)),
        [
            "certified lower bound",
            units.text(bounds["congestion_seconds"].value, units.SECONDS),
            units.text(bounds["network_congestion_seconds"].value, units.SECONDS),
            f"{bounds['hop_bytes'].value:.4e}",
            "",
            "",
        ],
    ]
    title = (
        f"{report.case.profile.name}: {placement.ranks} ranks on {len(placement.allocation)} hosts of "
        f"{report.case.cluster}; objective: {placement.objective}; routing: {placement.routing} "
        f"({report.case.routing_reason})"
    )
    print_table(title, COLUMNS, rows)
    if report.curve is not None:
        _show_curve(report.curve)
    for line in _remarks(report):
        say(line)


def show_pareto_set(reports: Sequence[PlacementReport]) -> None:
    """Print a row per placement, least congested first."""
    from registry.model import Metrics

    rows = [
        _row(
            one.record_id or str(number),
            Metrics.of(one.evaluation),
            _worst_link_text(one.fabric, one.evaluation),
        )
        for number, one in enumerate(reports, start=1)
    ]
    print_table("congestion against hop-bytes: no placement is worse than another in both", COLUMNS, rows)


def show_evaluation(report: PlacementReport) -> None:
    """Print the metrics of a given placement and their bounds."""
    fabric, evaluation = report.fabric, report.evaluation
    rows = [
        [
            "worst link",
            units.text(evaluation.congestion_seconds, units.SECONDS),
            _worst_link_text(fabric, evaluation),
        ],
        [
            "worst network link",
            units.text(evaluation.network_congestion_seconds, units.SECONDS),
            _worst_link_text(fabric, evaluation, network=True),
        ],
        ["hop-bytes", f"{evaluation.hop_bytes:.6g}", ""],
        ["average dilation", f"{evaluation.average_dilation:.4f}", ""],
        ["maximum dilation", f"{evaluation.max_dilation:.4f}", ""],
    ]
    if evaluation.distance != "links":
        rows.append(
            [f"mapping coefficient ({evaluation.distance})", f"{evaluation.mapping_coefficient:.6g}", ""]
        )
    rows += [bound_row(name, evaluation.bounds[name]) for name in BOUNDED]
    case = report.case
    title = f"{case.profile.name} on {case.cluster}; routing: {evaluation.routing} ({case.routing_reason})"
    print_table(title, ["", "value", "link or proof"], rows)
    for line in [f"background {evaluation.background}"] * bool(evaluation.background):
        say(line)
    for line in _bound_lines(evaluation):
        say(line)


def bound_row(name: str, bound: Bound) -> list[str]:
    """Return the row of a metric's bound: label, value and proof, which starts with the bound's name."""
    value = units.text(bound.value, units.SECONDS) if name.endswith("seconds") else f"{bound.value:.6g}"
    named = not bound.name or bound.proof.startswith(f"{bound.name}: ")
    return [f"lower bound, {label(name)}", value, bound.proof if named else f"{bound.name}: {bound.proof}"]


def changes_text(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> str:
    """Return the metrics that differ by at least 0.1%, other than the worst link: ``hop-bytes +33%``."""
    changes = []
    for name, old in before.items():
        new = after[name]
        if name == "congestion_seconds" or old is None or new is None or old == new:
            continue
        share = (new - old) / old if old else math.inf
        if abs(share) >= 0.001:
            percent = f"{100 * share:+.0f}%" if abs(share) >= 0.1 else f"{100 * share:+.2g}%"
            changes.append(f"{label(name)} {percent if math.isfinite(share) else 'above zero'}")
    return ", ".join(changes)


def _show_curve(curve: Curve) -> None:
    """Print the metric that improves for each number of moved ranks."""
    first = getattr(curve.points[0].score, curve.metric)
    rows = []
    for point in curve.points:
        gain = curve.gain(point)
        rows.append(
            [
                point.moved,
                getattr(point.score, curve.metric),
                f"{100 * gain / first:.1f} %" if first else "",
                gain / point.moved if point.moved else 0.0,
            ]
        )
    print_table(
        "gain by moved ranks", ["moved ranks", label(curve.metric), "gain", "gain per moved rank"], rows
    )


def _bound_lines(evaluation: Evaluation) -> list[str]:
    """Return a line per bounded metric: how far it is at most from the best possible, and why."""
    lines = []
    for metric in BOUNDED:
        bound: Bound | None = evaluation.bounds.get(metric)
        if bound is not None and bound.value > 0:
            lines.append(f"{label(metric)}: {bound.certifies(float(getattr(evaluation, metric)))}")
    return lines


def _row(label: str, metrics: Metrics, link: str) -> list[str]:
    return [
        label,
        units.text(metrics.congestion_seconds, units.SECONDS),
        units.text(metrics.network_congestion_seconds, units.SECONDS),
        f"{metrics.hop_bytes:.4e}",
        f"{metrics.average_dilation:.3f}",
        link,
    ]


def _worst_link_text(fabric: Fabric, evaluation: Evaluation, *, network: bool = False) -> str:
    from mapping.cost.metrics import worst_link

    return str(worst_link(fabric, evaluation, network=network) or "")


def _core_lines(binding: CoreBinding) -> list[str]:
    """Return what the choice of cores saves, and how many hosts have no layout."""
    lines = [
        f"cores: {units.text(binding.crossing_bytes, units.BYTES)} cross NUMA domains within hosts "
        f"({units.text(binding.crossing_bytes_in_order, units.BYTES)} with ranks in order on cores); "
        f"bytes x relative distance {binding.weighted_bytes:.4e} "
        f"(in order {binding.weighted_bytes_in_order:.4e})"
    ]
    if binding.without_layout:
        lines.append(
            f"{binding.without_layout} of {binding.hosts} hosts have no layout: their ranks are in order"
        )
    return lines


def _remarks(report: PlacementReport) -> list[str]:
    """Return the lines below the table: id, strategy, hosts, moved ranks, cores, background and bounds."""
    from registry.exports.trees import fold

    placement = report.placement
    state = "" if placement.complete else " (interrupted: the best so far)"
    state += "; optimal: it meets the certified bounds" if report.is_optimal else ""
    name = f"placement {report.record_id}" if report.record_id else "not saved"
    how = f"{placement.strategy} in {placement.seconds:.1f} s, {placement.steps} steps"
    lines = [f"{name}, found by {how}{state}{_worse_text(report)}"]
    chosen = report.hosts
    if len(chosen) < len(placement.allocation):
        names = shorten(fold(chosen), HOSTS_WIDTH)
        lines.append(f"{len(chosen)} of {len(placement.allocation)} hosts are used: {names}")
    if report.case.present is not None:
        moved = int((report.case.present.host_of_rank != placement.host_of_rank).sum())
        lines.append(f"{moved} of {placement.ranks} ranks move")
    if report.cores is not None:
        lines += _core_lines(report.cores)
    if report.evaluation.background:
        lines.append(f"background {report.evaluation.background}")
    return [*lines, *_bound_lines(report.evaluation)]


def _worse_text(report: PlacementReport) -> str:
    """Return by how much a placement is worse than ranks in order, or an empty text if it is not."""
    distance = report.evaluation.distance
    own = f" ({distance})" if distance != "links" else ""
    above = [
        f"{METRICS[metric]}{own if metric in BY_DISTANCE else ''} {_share_text(share)}"
        for metric, share in report.above_in_order.items()
    ]
    return f"; worse than ranks in order: {', '.join(above)}" if above else ""


def _share_text(share: float) -> str:
    if not math.isfinite(share):
        return "above zero"
    return f"{share:.0%} above" if share >= 0.1 else f"{100 * share:.2g}% above"
