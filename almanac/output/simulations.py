"""Output of simulated runs: a table, CSV of links and of the traffic over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from almanac.output.json.simulations import POINT_KEYS, points_over_time
from almanac.output.placements import LINK_ENDS, link_ends
from almanac.output.printing import print_table, say, whole
from registry import units
from registry.csv_text import csv_text

if TYPE_CHECKING:
    from mapping.questions.simulate import Run, SimulationReport
    from registry.model import Simulation

SHOWN = 3
"""Links of each run that are printed."""
LINK_COLUMNS = ("placement", *LINK_ENDS, "bytes", "capacity", "busy_seconds", "utilisation")
POINT_COLUMNS = ("placement", *POINT_KEYS)
COLUMNS = (
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
    columns, rows = list(COLUMNS), [_row(run) for run in runs]
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


def _row(run: Run) -> list[str]:
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
