"""Output of ``almanac simulate``: a table, JSON, CSV of links and of the traffic over time."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from almanac.commands.profile import whole
from almanac.output import csv_text, print_table
from registry import units

if TYPE_CHECKING:
    from mapping.service import SimulationReport
    from mapping.service.simulations import Run
    from registry.model import Simulation

BUSIEST = 20
"""Links of each run in JSON."""
SHOWN = 3
"""Links of each run in the printed output."""
LINK_COLUMNS = (
    *("placement", "source", "source_guid", "source_port", "target", "target_guid", "target_port"),
    *("bytes", "capacity", "busy_seconds", "utilisation"),
)
POINT_COLUMNS = ("placement", "at_seconds", "delivered_bytes", "mean_latency_seconds")


def to_json(report: SimulationReport) -> dict[str, Any]:
    """Return the report under its documented JSON keys."""
    ground, first = report.case, report.runs[0].simulation
    return {
        "profile": ground.profile.name,
        "cluster": ground.cluster,
        "snapshot": None if ground.snapshot is None else ground.snapshot.id,
        "observed_at": None if ground.snapshot is None else ground.snapshot.observed_at,
        "trace": ground.trace_name,
        "mode": first.mode,
        "routing": first.routing,
        "seed": first.seed,
        "parameters": dict(report.parameters),
        "code_version": report.code_version,
        "complete": report.complete,
        "runs": [_run_to_json(report, run) for run in report.runs],
    }


def _run_to_json(report: SimulationReport, run: Run) -> dict[str, Any]:
    simulation = run.simulation
    links = [
        {**asdict(one.link), "busy_seconds": one.busy_seconds, "utilisation": one.utilisation}
        for one in report.busiest(run, BUSIEST)
    ]
    for link in links:
        del link["seconds"]
    return {
        "placement": run.placement,
        "simulation": run.id,
        "complete": simulation.complete,
        "completion_seconds": simulation.completion_seconds,
        "delivered_bytes": simulation.delivered_bytes,
        "throughput": simulation.throughput,
        "messages": simulation.messages,
        "packet_hops": simulation.packet_hops,
        "mean_latency_seconds": simulation.mean_latency_seconds,
        "latency_seconds": latencies(simulation),
        "wall_seconds": run.seconds,
        "links": links,
        "points": [dict(zip(POINT_COLUMNS[1:], point, strict=True)) for point in _points(simulation)],
    }


def latencies(simulation: Simulation) -> dict[str, float]:
    """Return the latency of messages by percentile, such as ``99.9``."""
    from registry.model.simulation import PERCENTILES

    return {f"{one:g}": simulation.latency(one) for one in PERCENTILES}


def show(report: SimulationReport) -> None:
    """Print the table, the parameters, and the links that were sending longest."""
    show_table(report)
    click.echo(", ".join(f"{name} {_short(value)}" for name, value in report.parameters.items()))
    for run in report.runs:
        for one in report.busiest(run, SHOWN):
            click.echo(f"{run.placement}: {one.link} sending for {one.utilisation:.1%} of the run")
    for run in report.runs:
        if not run.simulation.complete:
            click.echo(f"{run.placement}: interrupted, these are the messages delivered until then")
        click.echo(f"{run.placement}: " + (f"saved as {run.id}" if run.id else "a file's run is not saved"))


def show_table(report: SimulationReport) -> None:
    """Print a row for each placement."""
    ground, runs, first = report.case, report.runs, report.runs[0].simulation
    sent = "in rounds" if ground.trace is None else "its trace"
    title = f"{ground.profile.name} on {ground.cluster}, {sent}; {first.mode}; routes: {first.routing}"
    columns = [
        "placement",
        "completion",
        "delivered",
        "throughput",
        "mean latency",
        "median",
        "99%",
        "largest",
    ]
    rows = [_row(run) for run in runs]
    if len(runs) > 1:
        columns.append("against the first")
        rows = [[*row, _ratio(run.simulation, first)] for row, run in zip(rows, runs, strict=True)]
    print_table(title, columns, rows)
    for placed in ground.placed[len(runs) :]:
        click.echo(f"{placed.name}: interrupted before it was sent")


def _short(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _row(run: Run) -> list[str]:
    simulation = run.simulation
    latency = [simulation.mean_latency_seconds, *(simulation.latency(one) for one in (50.0, 99.0, 100.0))]
    return [
        run.placement,
        units.text(simulation.completion_seconds, units.SECONDS),
        units.text(simulation.delivered_bytes, units.BYTES),
        units.text(simulation.throughput, units.RATE),
        *(units.text(value, units.SECONDS) for value in latency),
    ]


def _ratio(simulation: Simulation, first: Simulation) -> str:
    """Return the throughput divided by that of the first run."""
    return f"{simulation.throughput / first.throughput:.3f}" if first.throughput > 0.0 else ""


def link_rows(report: SimulationReport) -> str:
    """Return CSV text: a row for each placement and loaded link direction, the busiest first."""
    rows = []
    for run in report.runs:
        for link, busy, part in report.busiest(run):
            ends = [value for end in (link.source, link.target) for value in (end.name, end.guid, end.port)]
            rows.append([run.placement, *ends, whole(link.bytes), whole(link.capacity), busy, part])
    return csv_text(LINK_COLUMNS, rows)


def point_rows(report: SimulationReport) -> str:
    """Return CSV text: bytes delivered until a time, and the mean latency since the row before."""
    rows = [[run.placement, *point] for run in report.runs for point in _points(run.simulation)]
    return csv_text(POINT_COLUMNS, rows)


def _points(simulation: Simulation) -> list[tuple[float, float, float]]:
    columns = (simulation.delivered_at, simulation.delivered, simulation.latency_over_time)
    return list(zip(*(column.tolist() for column in columns), strict=True))
