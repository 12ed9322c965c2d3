"""``almanac simulate``: replay an application's messages over a fabric, placement beside placement."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from almanac.commands import simulated, simulating
from almanac.commands.common import Moment, json_option, open_registry, seed_option
from almanac.commands.simulated import Heading, Run
from almanac.commands.simulating import Ask, Ground
from almanac.output import note, print_json, progress_bars, write_text

if TYPE_CHECKING:
    from mapping.simulation.messages import Messages
    from mapping.simulation.options import Options
    from registry.model import Placement, Simulation, Trace
    from registry.progress import Progress
    from registry.registry import Registry

SATURATE = "saturate"
"""As fast as the first placement's run saturates the network."""
ROUNDS = 1
"""Times that a profile without a trace is sent unless told."""
NETWORK = {
    "packet_bytes": (click.IntRange(min=1), "Most bytes of a message in a packet [default: 2048]."),
    "header_bytes": (click.IntRange(min=0), "Beside them, in every packet [default: 0]."),
    "flit_bytes": (click.IntRange(min=1), "Bytes of a flit [default: 8]."),
    "latency_seconds": (click.FloatRange(min=0.0), "Of each link and the switch behind it [default: 1e-7]."),
    "buffer_bytes": (
        click.IntRange(min=1),
        "Of each channel, at the far end of its link (default: docs/simulate.md).",
    ),
    "lanes": (click.IntRange(min=1), "Channels of each class that a link has [default: 1]."),
    "selection": (
        click.Choice(["adaptive", "random", "fixed"]),
        "Among several next channels [default: adaptive].",
    ),
    "rails": (click.Choice(["all-connected", "same-rail"]), "docs/congestion.md [default: all-connected]."),
}
"""Options of the network, as `mapping.simulation.options.Options` names them: type and help."""
F = TypeVar("F", bound=Callable[..., Any])


class Scale(click.ParamType[float | str]):
    """A factor above zero, or `SATURATE`."""

    name = "FACTOR"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Parse; a usage error where it cannot be."""
        if value == SATURATE:
            return SATURATE
        return float(click.FloatRange(min=0.0, min_open=True).convert(value, param, ctx))


def _network(function: F) -> F:
    """Add the options of `NETWORK`."""
    for name, (kind, help) in reversed(NETWORK.items()):
        function = click.option(f"--{name.replace('_', '-')}", type=kind, help=help)(function)
    return function


@click.command("simulate")
@click.argument("profile", required=False)
@click.option("--cluster", help="On the fabric of this cluster.")
@click.option(
    "--placement",
    "placements",
    metavar="ID|FILE",
    multiple=True,
    required=True,
    help="A saved placement, or a launcher's file; several: beside each other.",
)
@click.option(
    "--fabric",
    "fabric_files",
    metavar="FILE",
    multiple=True,
    help="A scan or tables, instead of the database.",
)
@click.option("--profile", "profile_file", metavar="FILE", help="A profile's file; with --fabric.")
@click.option("--trace-file", metavar="FILE", help="A file of messages with their times; with --fabric.")
@click.option("--routing", help="Routes: docs/simulate.md (default: tables where complete).")
@click.option(
    "--mode",
    type=click.Choice(["packets", "flits"]),
    default="packets",
    show_default=True,
    help="Virtual cut-through, or wormhole flit by flit.",
)
@click.option("--trace", metavar="ID", help="This trace of the profile (default: its newest).")
@click.option(
    "--scale",
    metavar="FACTOR|saturate",
    type=Scale(),
    help="Send the trace so many times as fast [default: 1]; inf: all at once; saturate: docs/simulate.md.",
)
@click.option("--first", type=click.IntRange(min=1), help="Only the first so many messages of the trace.")
@click.option(
    "--rounds", type=click.IntRange(min=1), help="Send the profile so often, instead of a trace [default: 1]."
)
@_network
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=simulating.EVERY,
    show_default=True,
    help="Messages between two points of the traffic over time.",
)
@seed_option
@click.option("--at", type=Moment(), help="On the fabric as of this time (default: now).")
@click.option("--links", type=click.Path(dir_okay=False), help="CSV with a row a loaded link direction.")
@click.option("--points", type=click.Path(dir_okay=False), help="CSV of the traffic delivered over time.")
@json_option
def command(links: str | None, points: str | None, as_json: bool, **asked: Any) -> None:
    """Send PROFILE's messages over the fabric: how long they take, how late they come, how busy links are.

    Its trace is replayed, rank by rank in the recorded order; a profile without a trace is sent in rounds.
    Runs of saved placements are saved. With --fabric and a profile's or trace's file nothing is read from a
    database, and nothing saved. After Ctrl-C what was delivered until then is told and saved.
    """
    network = {name: asked.pop(name) for name in NETWORK}
    given = {name: value for name, value in network.items() if value is not None}
    ask = Ask(network=given, **asked)
    ask.check()
    heading, runs = _simulated(ask)
    for path, text in ((links, simulated.link_rows), (points, simulated.point_rows)):
        if path is not None:
            write_text(path, text(heading, runs))
            note(f"written to {path}")
    if as_json:
        print_json(simulated.told(heading, runs))
    else:
        simulated.show(heading, runs)
    if not simulated.complete(heading, runs):
        click.get_current_context().exit(130)


def _simulated(ask: Ask) -> tuple[Heading, list[Run]]:
    """Each placement's run, from files or the registry."""
    if ask.fabric_files:
        with progress_bars() as progress:
            return replay(simulating.from_files(ask), ask, None, progress)
    with open_registry() as registry, progress_bars() as progress:
        return replay(simulating.from_registry(registry, ask), ask, registry, progress)


def replay(
    ground: Ground, ask: Ask, registry: Registry | None, progress: Progress
) -> tuple[Heading, list[Run]]:
    """Each placement's run, saved where the placement is; after an interrupt no further one.

    Parameters
    ----------
    ground : Ground
        What is replayed, and from which placements.
    registry : Registry or None
        None saves nothing.

    Raises
    ------
    AlmanacError
        As `mapping.simulation.simulate.simulate`, and `Simulations.save`.
    """
    from mapping.simulation.options import Options
    from registry.version import code_version

    network = Options(**ask.network)

    def run(messages: Messages, placement: Placement) -> Simulation:
        return _run(ask, ground, placement, messages, network, progress)

    messages, parameters = _messages(ground, ask, partial(run, placement=ground.placed[0].placement))
    heading = Heading(
        ground=ground,
        parameters={**parameters, **_told(network), "every": ask.every},
        code_version=code_version(),
    )
    runs: list[Run] = []
    for name, placement, saved in ground.placed:
        started = time.monotonic()
        try:
            simulation = run(messages, placement)
        except KeyboardInterrupt:
            if not runs:
                raise
            break  # it had not begun to send
        done = Run(placement=name, simulation=simulation, seconds=time.monotonic() - started)
        if saved and registry is not None:
            done = done._replace(id=_save(registry, heading, done))
        runs.append(done)
        if not simulation.complete:
            break
    return heading, runs


def _messages(
    ground: Ground, ask: Ask, run: Callable[[Messages], Simulation]
) -> tuple[Messages, dict[str, str | int | float | bool]]:
    """The messages that are sent, and how they were made.

    Parameters
    ----------
    run : callable
        Simulates messages on the first placement.
    """
    from mapping.simulation.messages import from_profile, from_trace

    trace = ground.trace
    if trace is None:
        rounds = ask.rounds or ROUNDS
        return from_profile(ground.profile, rounds), {"rounds": rounds}
    cut: dict[str, str | int | float | bool] = {}
    if ask.first is not None:
        trace, cut = trace.first(ask.first), {"first": ask.first}
    scale = _saturating(trace, run) if isinstance(ask.scale, str) else ask.scale or 1.0
    # JSON knows no infinity
    return from_trace(trace, scale), {**cut, "scale": scale if math.isfinite(scale) else "inf"}


def _saturating(trace: Trace, run: Callable[[Messages], Simulation]) -> float:
    """The scale at which the trace saturates the network; an interrupt leaves nothing to go on with."""
    from mapping.simulation.saturation import saturating_scale

    def to_the_end(messages: Messages) -> Simulation:
        simulation = run(messages)
        if not simulation.complete:
            raise KeyboardInterrupt
        return simulation

    return saturating_scale(trace, to_the_end)


def _told(network: Options) -> dict[str, str | int | float | bool]:
    """The network's options by name, without those that follow from others."""
    values = {name: getattr(network, name) for name in NETWORK}
    return {name: value for name, value in values.items() if value is not None}


def _run(
    ask: Ask,
    ground: Ground,
    placement: Placement,
    messages: Messages,
    network: Options,
    progress: Progress,
) -> Simulation:
    from mapping.simulation.simulate import simulate

    return simulate(
        ground.fabric,
        placement,
        messages,
        routing=ask.routing,
        mode=ask.mode,
        options=network,
        every=ask.every,
        seed=ask.seed,
        progress=progress,
    )


def _save(registry: Registry, heading: Heading, run: Run) -> str:
    from registry.records.simulations import SimulationRecord

    ground = heading.ground
    assert ground.snapshot is not None
    assert ground.profile_id is not None
    record = SimulationRecord(
        placement=run.placement,
        content=ground.snapshot.id,
        tables=ground.snapshot.routing,
        profile=ground.profile_id,
        trace=ground.trace_name,
        simulation=run.simulation,
        parameters=heading.parameters,
        wall_seconds=run.seconds,
        code_version=heading.code_version,
    )
    return registry.simulations.save(record)
