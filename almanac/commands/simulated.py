"""What ``almanac simulate`` tells of its runs: a table, JSON, CSV of links and of the traffic over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from almanac.commands.profile import whole
from almanac.output import csv_text, print_table
from registry import units

if TYPE_CHECKING:
    from almanac.commands.simulating import Ground
    from mapping.evaluation.loaded_links import LoadedLink
    from registry.model import Simulation

BUSIEST = 20
"""Links of each run that JSON tells."""
SHOWN = 3
"""Links of each run that are shown."""
LINK_COLUMNS = (
    *("placement", "source", "source_guid", "source_port", "target", "target_guid", "target_port"),
    *("bytes", "capacity", "busy_seconds", "utilisation"),
)
POINT_COLUMNS = ("placement", "at_seconds", "delivered_bytes", "mean_latency_seconds")


class Heading(NamedTuple):
    """What all runs of a call share.

    Attributes
    ----------
    ground : Ground
        What is simulated: fabric, messages, placements.
    parameters : mapping of str to str, int, float or bool
    code_version : str
    """

    ground: Ground
    parameters: Mapping[str, str | int | float | bool]
    code_version: str


class Run(NamedTuple):
    """One placement's run.

    Attributes
    ----------
    placement : str
        Id or file.
    simulation : Simulation
    seconds : float
        Wall seconds spent.
    id : str or None
        Of the saved run; None where the placement is not saved.
    """

    placement: str
    simulation: Simulation
    seconds: float
    id: str | None = None


class BusyLink(NamedTuple):
    """A link direction, what it carried, how long it was sending, and in what part of the run."""

    link: LoadedLink
    busy_seconds: float
    utilisation: float


def complete(heading: Heading, runs: Sequence[Run]) -> bool:
    """Whether every placement has its run, to the end: no interrupt came."""
    return len(runs) == len(heading.ground.placed) and all(run.simulation.complete for run in runs)


def busiest(heading: Heading, run: Run, count: int | None = None) -> list[BusyLink]:
    """The links that were sending longest, equals by their row; all that carried something unless told."""
    from mapping.evaluation.loaded_links import link_with

    simulation = run.simulation
    rows = sorted(
        simulation.link_bytes.nonzero()[0].tolist(), key=lambda row: -simulation.link_busy_seconds[row]
    )
    part = simulation.link_utilisation
    return [
        BusyLink(
            link_with(heading.ground.fabric, row, float(simulation.link_bytes[row])),
            float(simulation.link_busy_seconds[row]),
            float(part[row]),
        )
        for row in rows[:count]
    ]


def told(heading: Heading, runs: Sequence[Run]) -> dict[str, Any]:
    """The documented JSON keys."""
    ground, first = heading.ground, runs[0].simulation
    return {
        "profile": ground.profile.name,
        "cluster": ground.cluster,
        "snapshot": None if ground.snapshot is None else ground.snapshot.id,
        "observed_at": None if ground.snapshot is None else ground.snapshot.observed_at,
        "trace": ground.trace_name,
        "mode": first.mode,
        "routing": first.routing,
        "seed": first.seed,
        "parameters": dict(heading.parameters),
        "code_version": heading.code_version,
        "complete": complete(heading, runs),
        "runs": [_run_told(heading, run) for run in runs],
    }


def _run_told(heading: Heading, run: Run) -> dict[str, Any]:
    simulation = run.simulation
    links = [
        {**asdict(one.link), "busy_seconds": one.busy_seconds, "utilisation": one.utilisation}
        for one in busiest(heading, run, BUSIEST)
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
    """Latency of messages by percentile, such as ``99.9``."""
    from registry.model.simulation import PERCENTILES

    return {f"{one:g}": simulation.latency(one) for one in PERCENTILES}


def show(heading: Heading, runs: Sequence[Run]) -> None:
    """The table, how it was simulated, and the links that were sending longest."""
    show_table(heading, runs)
    click.echo(", ".join(f"{name} {_short(value)}" for name, value in heading.parameters.items()))
    for run in runs:
        for one in busiest(heading, run, SHOWN):
            click.echo(f"{run.placement}: {one.link} sending for {one.utilisation:.1%} of the run")
    for run in runs:
        if not run.simulation.complete:
            click.echo(f"{run.placement}: interrupted, this is what was delivered until then")
        click.echo(f"{run.placement}: " + (f"saved as {run.id}" if run.id else "a file's run is not saved"))


def show_table(heading: Heading, runs: Sequence[Run]) -> None:
    """A row a placement."""
    ground, first = heading.ground, runs[0].simulation
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
    """Throughput over that of the first run."""
    return f"{simulation.throughput / first.throughput:.3f}" if first.throughput > 0.0 else ""


def link_rows(heading: Heading, runs: Sequence[Run]) -> str:
    """CSV text: a row a placement and link direction that carried something, the busiest first."""
    rows = []
    for run in runs:
        for link, busy, part in busiest(heading, run):
            ends = [value for end in (link.source, link.target) for value in (end.name, end.guid, end.port)]
            rows.append([run.placement, *ends, whole(link.bytes), whole(link.capacity), busy, part])
    return csv_text(LINK_COLUMNS, rows)


def point_rows(heading: Heading, runs: Sequence[Run]) -> str:
    """CSV text: bytes delivered until a simulated second, and the mean latency since the row before."""
    rows = [[run.placement, *point] for run in runs for point in _points(run.simulation)]
    return csv_text(POINT_COLUMNS, rows)


def _points(simulation: Simulation) -> list[tuple[float, float, float]]:
    columns = (simulation.delivered_at, simulation.delivered, simulation.latency_over_time)
    return list(zip(*(column.tolist() for column in columns), strict=True))
