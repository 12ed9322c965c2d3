"""JSON of placements: found, evaluated, compared, moved, and those that got worse.

JSON of simulated runs.

Tables of placements: with baselines and bounds, Pareto sets, curves of moved ranks, evaluations.

Output of simulated runs: a table, CSV of links and of the traffic over time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from almanac.output.printing import attributes, finite, label, print_table, renamed, say, whole
from registry import units
from registry.csv_text import csv_text
from registry.errors import shorten

if TYPE_CHECKING:
    from mapping.cost.metrics import Difference, LinkEnd, LoadedLink
    from mapping.cost.report import PlacementReport
    from mapping.launchers import Launch
    from mapping.placement.methods.cores import CoreBinding
    from mapping.placement.moves import Advice, Curve
    from mapping.questions.simulate import Run, SimulationReport
    from mapping.traffic.job_loads import Regression
    from mapping.traffic.measured_gain import MeasuredGain
    from registry.model import Bound, Evaluation, Fabric, Metrics, Simulation
    from registry.store.placement_rows import StoredPlacementInfo
    from registry.store.simulations import SimulationInfo


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

    Args:
        best: Number of ranks to move that saves most, if it is known and above zero.
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


BUSIEST = 20
"""Links of each run."""
POINT_KEYS = ("at_seconds", "delivered_bytes", "mean_latency_seconds")


def simulation_report_to_json(report: SimulationReport) -> dict[str, Any]:
    """Return the document of ``almanac simulate``."""
    case, first = report.case, report.runs[0].simulation
    return {
        "profile": case.profile.name,
        "cluster": case.cluster,
        "snapshot": None if case.snapshot is None else case.snapshot.id,
        "observed_at": None if case.snapshot is None else case.snapshot.observed_at,
        "trace": case.trace_name,
        **attributes(first, "mode", "routing", "seed"),
        "parameters": dict(report.parameters),
        "code_version": report.code_version,
        "complete": report.complete,
        "runs": [_run(report, run) for run in report.runs],
    }


def simulation_info_to_json(info: SimulationInfo) -> dict[str, Any]:
    """Return a row of ``almanac history simulations``."""
    return renamed(info, id="simulation", profile="profile_id") | {"bytes_per_second": info.throughput}


def points_over_time(simulation: Simulation) -> list[tuple[float, float, float]]:
    """Return simulated seconds, bytes delivered until then, and the mean latency since the point before."""
    columns = (simulation.delivered_at, simulation.delivered, simulation.latency_over_time)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _run(report: SimulationReport, run: Run) -> dict[str, Any]:
    """Return the results of one placement, its busiest links and its traffic over time."""
    from registry.model.simulation import PERCENTILES

    simulation = run.simulation
    links = [
        {**link_to_json(one.link), "busy_seconds": one.busy_seconds, "utilisation": one.utilisation}
        for one in report.busiest(run, BUSIEST)
    ]
    for link in links:
        del link["seconds"]
    return {
        "placement": run.placement,
        "simulation": run.id,
        **attributes(simulation, "complete", "completion_seconds", "delivered_bytes"),
        "bytes_per_second": simulation.throughput,
        **attributes(simulation, "messages", "packet_hops", "mean_latency_seconds"),
        "latency_seconds": {f"{one:g}": simulation.latency(one) for one in PERCENTILES},
        "wall_seconds": run.seconds,
        "links": links,
        "points": [dict(zip(POINT_KEYS, point, strict=True)) for point in points_over_time(simulation)],
    }


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


SHOWN = 3
"""Links of each run that are printed."""
LINK_COLUMNS = ("placement", *LINK_ENDS, "bytes", "capacity", "busy_seconds", "utilisation")
POINT_COLUMNS = ("placement", *POINT_KEYS)
SIMULATION_COLUMNS = (
    *("placement", "completion", "delivered", "throughput", "mean latency", "median latency"),
    *("99% latency", "largest latency"),
)


def show_simulations(report: SimulationReport) -> None:
    """Print the table of runs, the parameters, the busiest links, and the ids of saved runs."""
    show_simulation_table(report)
    say(", ".join(f"{name} {_value_text(value)}" for name, value in report.parameters.items()))
    for run in report.runs:
        for one in report.busiest(run, SHOWN):
            say(f"{run.placement}: {one.link} busy for {one.utilisation:.1%} of the run")
    for run in report.runs:
        if not run.simulation.complete:
            say(f"{run.placement}: interrupted, with the messages delivered until then")
        say(f"{run.placement}: " + (f"saved as {run.id}" if run.id else "not saved"))


def show_simulation_table(report: SimulationReport) -> None:
    """Print a row per placement."""
    case, runs, first = report.case, report.runs, report.runs[0].simulation
    source = "profile sent in rounds" if case.trace is None else "trace"
    title = f"{case.profile.name} on {case.cluster}: {source}; {first.mode}; routing: {first.routing}"
    columns, rows = list(SIMULATION_COLUMNS), [_simulation_row(run) for run in runs]
    if len(runs) > 1:
        columns.append("relative throughput")
        rows = [[*row, _ratio(run.simulation, first)] for row, run in zip(rows, runs, strict=True)]
    print_table(title, columns, rows)
    for placed in case.placed[len(runs) :]:
        say(f"{placed.name}: not simulated because of the interrupt")


def link_csv(report: SimulationReport) -> str:
    """Return CSV text with a row per placement and loaded link direction, busiest first."""
    rows = [
        [run.placement, *link_ends(link), whole(link.bytes), whole(link.capacity), busy, part]
        for run in report.runs
        for link, busy, part in report.busiest(run)
    ]
    return csv_text(LINK_COLUMNS, rows)


def point_csv(report: SimulationReport) -> str:
    """Return CSV text with the bytes delivered until a time, and the mean latency since the row before."""
    rows = [[run.placement, *point] for run in report.runs for point in points_over_time(run.simulation)]
    return csv_text(POINT_COLUMNS, rows)


def _value_text(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _simulation_row(run: Run) -> list[str]:
    simulation = run.simulation
    latency = [simulation.mean_latency_seconds, *(simulation.latency(one) for one in (50.0, 99.0, 100.0))]
    return [
        run.placement,
        units.text(simulation.completion_seconds, units.SECONDS),
        units.text(simulation.delivered_bytes, units.BYTES),
        units.text(simulation.throughput, units.RATE) if simulation.throughput else "-",
        *(units.text(value, units.SECONDS) for value in latency),
    ]


def _ratio(simulation: Simulation, first: Simulation) -> str:
    return f"{simulation.throughput / first.throughput:.3f}" if first.throughput > 0.0 else ""
