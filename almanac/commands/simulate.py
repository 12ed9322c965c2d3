"""``almanac simulate``: replay the messages of an application for one or more placements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from almanac.options import (
    Time,
    export_option,
    fabric_option,
    json_option,
    open_registry,
    option_names,
    optional_cluster,
    read_fabric,
    read_order,
    read_profile,
    scheduler_option,
    seed_option,
)
from almanac.output.placements import link_csv, point_csv, show_simulations, simulation_report_to_json
from almanac.output.printing import kernel_progress_bars, note, print_json, write_text

if TYPE_CHECKING:
    from mapping.questions.simulate import SimulationCase, SimulationOptions, SimulationReport
    from registry.model import HostOrder, Trace

SATURATE = "saturate"
"""Scale at which the first placement's run saturates the network."""
LONG_SECONDS = 10.0
"""Shortest expected time of a run that is printed before."""
EVERY = 10_000
"""Default number of messages between two points of the traffic over time."""
NETWORK = {
    "packet_bytes": (click.IntRange(min=1), "Maximum bytes of a message in a packet [default: 2048]."),
    "header_bytes": (click.IntRange(min=0), "Header bytes of each packet [default: 0]."),
    "flit_bytes": (click.IntRange(min=1), "Bytes of a flit [default: 8]."),
    "latency_seconds": (
        click.FloatRange(min=0.0),
        "Latency of a link with the switch at its end [default: 1e-7].",
    ),
    "buffer_bytes": (
        click.IntRange(min=1),
        "Buffer of each channel, at the end of its link (default: docs/how-to/simulate.md).",
    ),
    "lanes": (click.IntRange(min=1), "Virtual channels per class and link [default: 1]."),
    "selection": (
        click.Choice(["adaptive", "random", "fixed"]),
        "Choice among several next channels [default: adaptive].",
    ),
}
"""Options of the network, by their names in `mapping.simulation.messages.Options`: type and help."""
OF_TRACES = ("trace", "scale", "first")
"""Options of a trace."""
EXPORTS = {"links": link_csv, "points": point_csv}
"""CSV files that can be written, and the functions that return them."""
F = TypeVar("F", bound=Callable[..., Any])


class Scale(click.ParamType[float | str]):
    """Type of an option that takes a factor above zero or `SATURATE`."""

    name = "FACTOR"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the factor, or raise a usage error if the text is none."""
        if value == SATURATE:
            return SATURATE
        return float(click.FloatRange(min=0.0, min_open=True).convert(value, param, ctx))


def _network(function: F) -> F:
    """Add the options of `NETWORK` to a command."""
    for name, (kind, help) in reversed(NETWORK.items()):
        function = click.option(f"--{name.replace('_', '-')}", type=kind, help=help)(function)
    return function


@click.command("simulate")
@click.argument("profile", required=False)
@click.option("--cluster", help="Cluster whose fabric is used.")
@click.option(
    "--placement",
    "placements",
    type=click.Path(),
    metavar="ID|FILE",
    multiple=True,
    required=True,
    help="Saved placement, or a launcher's file (repeat to compare several).",
)
@fabric_option
@click.option(
    "--trace-file",
    type=click.Path(),
    metavar="FILE",
    help="With --fabric, instead of PROFILE: read messages with their times from a file.",
)
@click.option(
    "--routing", help="Routing, see docs/how-to/simulate.md (default: forwarding tables if complete)."
)
@click.option(
    "--mode",
    type=click.Choice(["packets", "flits"]),
    default="packets",
    show_default=True,
    help="Virtual cut-through, or wormhole flit by flit.",
)
@click.option("--trace", metavar="ID", help="Trace of the profile to replay (default: the newest).")
@click.option(
    "--scale",
    metavar="FACTOR|saturate",
    type=Scale(),
    help="Replay the trace faster by this factor [default: 1]; inf: all messages at once; saturate: see "
    "docs/how-to/simulate.md.",
)
@click.option("--first", type=click.IntRange(min=1), help="Replay only this number of messages of the trace.")
@click.option(
    "--rounds", type=click.IntRange(min=1), help="Times to send the profile instead of a trace [default: 1]."
)
@_network
@click.option(
    "--rails",
    type=click.Choice(["all-connected", "same-rail"]),
    help="How rails are used, see docs/explanation/congestion.md [default: all-connected].",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=EVERY,
    show_default=True,
    help="Messages between two points of the traffic over time.",
)
@seed_option
@scheduler_option("the simulations of all placements")
@click.option("--at", type=Time(), help="Fabric at this time (default: now).")
@export_option(
    lambda: list(EXPORTS),
    "Write a CSV file: links=FILE has a row per loaded link direction, points=FILE the traffic over time.",
)
@json_option
def command(exports: tuple[tuple[str, str], ...], as_json: bool, **given: Any) -> None:
    """Simulate PROFILE's messages: completion time, latencies and utilisation of links.

    A trace is replayed in the recorded order of each rank; a profile without a trace is sent in rounds.
    PROFILE is the name or id of a saved profile; runs of saved placements are saved. With --fabric it is a
    file, too, and nothing is saved. After Ctrl-C the messages delivered so far are printed and saved.
    """
    _check(given)
    report = _simulate(given)
    for name, path in exports:
        write_text(path, EXPORTS[name](report))
        note(f"{name} written to {path}")
    if as_json:
        print_json(simulation_report_to_json(report))
    else:
        show_simulations(report)
    if not report.complete:
        click.get_current_context().exit(130)


def _check(given: Mapping[str, Any]) -> None:
    """Raise a usage error if options are missing or exclude each other."""
    if (given["profile"] is None) == (given["trace_file"] is None):
        raise click.UsageError("give either PROFILE or --trace-file FILE")
    if given["fabric_files"]:
        _check_files(given)
    elif given["profile"] is None:
        raise click.UsageError("--trace-file goes with --fabric: a saved profile is the argument PROFILE")
    elif given["cluster"] is None:
        raise click.UsageError("give --cluster, or --fabric FILE")
    for name in (*OF_TRACES, "trace_file"):
        if given["rounds"] is not None and given[name] is not None:
            raise click.UsageError(f"{option_names([name])} is an option of traces: not with --rounds")
    if len(set(given["placements"])) != len(given["placements"]):
        raise click.UsageError("a --placement is given twice")


def _check_files(given: Mapping[str, Any]) -> None:
    """Raise a usage error if --fabric goes with something in the database, or a file does not exist."""
    for name in ("trace", "at"):
        if given[name] is not None:
            raise click.UsageError(f"{option_names([name])} needs the database: not with --fabric")
    if given["profile"] is not None:
        for name in ("scale", "first"):
            if given[name] is not None:
                raise click.UsageError(
                    f"{option_names([name])} is an option of traces: give --trace-file, not PROFILE"
                )
    for path in given["placements"]:
        if not Path(path).exists():
            raise click.BadParameter(f"there is no file {path!r}", param_hint="--placement")


def _simulate(given: Mapping[str, Any]) -> SimulationReport:
    """Simulate the placements, read from files or the registry."""
    from mapping.questions.simulate import SimulationRequest, simulate_placements, simulation_case

    if given["fabric_files"]:
        case = _case_from_files(given)
        _announce(case, _options(given))
        with optional_cluster(given["scheduler"]) as machines, kernel_progress_bars(piped=True) as progress:
            return simulate_placements(case, _options(given), progress=progress, cluster=machines)
    cluster = given["cluster"]
    placements: list[HostOrder | str] = [read_order(text) or text for text in given["placements"]]
    request = SimulationRequest(
        profile=given["profile"],
        cluster=cluster,
        placements=placements,
        options=_options(given),
        trace=given["trace"],
        at=given["at"],
    )
    with open_registry() as registry, kernel_progress_bars(piped=True) as progress:
        case = simulation_case(registry, request)
        _announce(case, request.options)
        with optional_cluster(given["scheduler"]) as machines:
            return simulate_placements(case, request.options, registry, progress=progress, cluster=machines)


def _announce(case: SimulationCase, options: SimulationOptions) -> None:
    """Print about how long a run takes, if it takes long."""
    from mapping.questions.simulate import ROUNDS
    from mapping.simulation.messages import from_profile, from_trace
    from mapping.simulation.simulate import expected_seconds

    if case.trace is None:
        messages = from_profile(case.profile, options.rounds or ROUNDS)
    else:
        messages = from_trace(case.trace if options.first is None else case.trace.first(options.first))
    placement = case.placed[0].placement
    seconds = expected_seconds(case.fabric, placement, messages, options.mode, options.network)
    if seconds < LONG_SECONDS:
        return
    several = len(case.placed) > 1 or options.scale == SATURATE
    span = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"
    what = "each run" if several else "the run"
    note(f"{what} takes about {span} of computing; Ctrl-C prints what was delivered until then")


def _options(given: Mapping[str, Any]) -> SimulationOptions:
    """Return the options of the simulation; network options that are not given keep their defaults."""
    from mapping.distances.cost_model import CostModel
    from mapping.questions.simulate import SimulationOptions
    from mapping.simulation.messages import Options

    costs = CostModel(routing=given["routing"], rails=given["rails"] or "all-connected")
    network = {name: given[name] for name in NETWORK if given[name] is not None}
    names = ("mode", "scale", "first", "rounds", "seed")
    return SimulationOptions(
        costs=costs, network=Options(every=given["every"], **network), **{name: given[name] for name in names}
    )


def _case_from_files(given: Mapping[str, Any]) -> SimulationCase:
    """Read fabric, messages and placements from files, without a database.

    Raises:
        InputError, InvalidPlacement, UnknownName
    """
    from ingest.options import Options
    from ingest.pipeline import plan
    from mapping.questions.simulate import PlacedRanks, SimulationCase
    from registry.errors import InputError

    files, path = given["fabric_files"], given["trace_file"]
    trace: Trace | None = None
    cluster = given["cluster"] or Path(files[0]).name
    fabric = read_fabric(files)
    if path is None:
        profile = read_profile(given["profile"])
    else:
        intake = plan([path], Options(name=Path(path).name))
        trace = intake.traces[0] if len(intake.traces) == 1 else None
        if trace is None:
            raise InputError(
                "contains no messages with their times; give PROFILE to send a profile in rounds", path=path
            )
        profile = intake.profiles[0]
    placed: list[PlacedRanks] = []
    for file in given["placements"]:
        order = read_order(file)
        assert order is not None
        placed.append(PlacedRanks(order.on(fabric), file, saved=False))
    return SimulationCase(
        cluster=cluster, fabric=fabric, profile=profile, trace=trace, trace_name=path, placed=tuple(placed)
    )
