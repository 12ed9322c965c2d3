"""JSON of simulated runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from almanac.output.json.placements import link_to_json
from almanac.output.printing import attributes, renamed

if TYPE_CHECKING:
    from mapping.questions.simulate import Run, SimulationReport
    from registry.model import Simulation
    from registry.store.simulations import SimulationInfo

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
