"""``almanac simulate``: replay an application's messages over a fabric, placement beside placement."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from almanac.commands import searching, simulated
from almanac.commands.common import Moment, json_option, open_registry
from almanac.commands.simulated import Heading, Run
from almanac.output import note, print_json, progress_bars, write_text

if TYPE_CHECKING:
    from mapping.simulate.messages import Messages
    from mapping.simulate.options import Options
    from registry.machines.fabrics import Snapshot
    from registry.model import HostOrder, Placement, Simulation, Trace
    from registry.profiles import StoredProfile
    from registry.progress import Progress
    from registry.registry import Registry

SATURATE = "saturate"
"""As fast as the first placement's run saturates the network."""
EVERY = 10_000
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
"""Options of the network, as `mapping.simulate.options.Options` names them: type and help."""
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
@click.argument("profile")
@click.option("--cluster", required=True, help="On the fabric of this cluster.")
@click.option(
    "--placement",
    "placements",
    metavar="ID|FILE",
    multiple=True,
    required=True,
    help="A saved placement, or a launcher's file; several: beside each other.",
)
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
    default=EVERY,
    show_default=True,
    help="Messages between two points of the traffic over time.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--at", type=Moment(), help="On the fabric as of this time (default: now).")
@click.option("--links", type=click.Path(dir_okay=False), help="CSV with a row a loaded link direction.")
@click.option("--points", type=click.Path(dir_okay=False), help="CSV of the traffic delivered over time.")
@json_option
def command(
    placements: tuple[str, ...],
    links: str | None,
    points: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Send PROFILE's messages over the fabric: how long they take, how late they come, how busy links are.

    Its trace is replayed, rank by rank in the recorded order; a profile without a trace is sent in rounds.
    Runs of saved placements are saved. After Ctrl-C what was delivered until then is told and saved.
    """
    network = {name: asked.pop(name) for name in NETWORK}
    given = {name: value for name, value in network.items() if value is not None}
    ask = Ask(placements=placements, network=given, **asked)
    ask.check()
    with open_registry() as registry, progress_bars() as progress:
        heading, runs = _simulated(registry, ask, progress)
    for path, text in ((links, simulated.link_rows), (points, simulated.point_rows)):
        if path is not None:
            write_text(path, text(heading, runs))
            note(f"written to {path}")
    if as_json:
        print_json(simulated.told(heading, runs))
    else:
        simulated.show(heading, runs)
    if not runs[-1].simulation.complete:
        click.get_current_context().exit(130)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is to be simulated, as the options say."""

    profile: str
    cluster: str
    placements: tuple[str, ...]
    routing: str | None
    mode: str
    trace: str | None
    scale: float | str | None
    first: int | None
    rounds: int | None
    network: Mapping[str, Any]
    every: int
    seed: int
    at: datetime | None

    def check(self) -> None:
        """A usage error where options exclude each other."""
        of_trace = {"--trace": self.trace, "--scale": self.scale, "--first": self.first}
        for name, value in of_trace.items():
            if self.rounds is not None and value is not None:
                raise click.UsageError(f"{name} is of a trace: not with --rounds")
        if len(set(self.placements)) != len(self.placements):
            raise click.UsageError("a --placement is given twice")


class Replay(NamedTuple):
    """The messages that are sent.

    Attributes
    ----------
    messages : Messages
    trace : str or None
        Id of the trace that they are of.
    parameters : dict of str to str, int, float or bool
        How they were made.
    """

    messages: Messages
    trace: str | None
    parameters: dict[str, str | int | float | bool]


def _simulated(registry: Registry, ask: Ask, progress: Progress) -> tuple[Heading, list[Run]]:
    """Each placement's run, saved where the placement is; after an interrupt no further one."""
    from mapping.simulate.options import Options
    from registry.version import code_version

    stored = registry.profiles.read(ask.profile)
    snapshot = registry.fabrics.read(ask.cluster, ask.at)
    placed = list(_placed(registry, ask, snapshot, stored))
    network = Options(**ask.network)

    def run(messages: Messages, placement: Placement) -> Simulation:
        return _run(ask, snapshot, placement, messages, network, progress)

    replay = _replay(registry, ask, stored, partial(run, placement=placed[0][1]))
    heading = Heading(
        profile=stored,
        snapshot=snapshot,
        trace=replay.trace,
        parameters={**replay.parameters, **_told(network), "every": ask.every},
        code_version=code_version(),
    )
    runs: list[Run] = []
    for name, placement, saved in placed:
        started = time.monotonic()
        simulation = run(replay.messages, placement)
        done = Run(placement=name, simulation=simulation, seconds=time.monotonic() - started)
        runs.append(done._replace(id=_save(registry, heading, done)) if saved else done)
        if not simulation.complete:
            break
    return heading, runs


def _placed(
    registry: Registry, ask: Ask, snapshot: Snapshot, stored: StoredProfile
) -> Iterator[tuple[str, Placement, bool]]:
    """Name of each placement, itself on the fabric, and whether it is saved."""
    from mapping.service import placement_on
    from registry.errors import InvalidPlacement

    for text in ask.placements:
        given: HostOrder | str = searching.read_order(text, ask.cluster) or text
        placement, name = placement_on(registry, given, snapshot)
        if placement.ranks != stored.profile.ranks:
            ranks = f"{placement.ranks} ranks are placed, the profile has {stored.profile.ranks}"
            raise InvalidPlacement(ranks, path=text if given is not text else None)
        yield name, placement, given is text


def _replay(
    registry: Registry, ask: Ask, stored: StoredProfile, run: Callable[[Messages], Simulation]
) -> Replay:
    """The messages of the trace that is asked for, else of the newest one, else of the profile.

    Parameters
    ----------
    run : callable
        Simulates messages on the first placement.

    Raises
    ------
    UnknownName
    """
    from mapping.simulate.messages import from_profile, from_trace

    identity = None if ask.rounds is not None else _trace_id(registry, ask, stored)
    if identity is None:
        rounds = ask.rounds or ROUNDS
        return Replay(from_profile(stored.profile, rounds), None, {"rounds": rounds})
    trace = registry.traces.read(identity).trace
    cut: dict[str, str | int | float | bool] = {}
    if ask.first is not None:
        trace, cut = trace.first(ask.first), {"first": ask.first}
    scale = _saturating(trace, run) if isinstance(ask.scale, str) else ask.scale or 1.0
    # JSON knows no infinity
    parameters = {**cut, "scale": scale if math.isfinite(scale) else "inf"}
    return Replay(from_trace(trace, scale), identity, parameters)


def _saturating(trace: Trace, run: Callable[[Messages], Simulation]) -> float:
    """The scale at which the trace saturates the network; an interrupt leaves nothing to go on with."""
    from mapping.simulate.saturation import saturating_scale

    def to_the_end(messages: Messages) -> Simulation:
        simulation = run(messages)
        if not simulation.complete:
            raise KeyboardInterrupt
        return simulation

    return saturating_scale(trace, to_the_end)


def _trace_id(registry: Registry, ask: Ask, stored: StoredProfile) -> str | None:
    """Of the trace to replay; None where the profile has none and none is asked for."""
    from registry.errors import UnknownName

    known = [info.id for info in registry.traces.list(stored.id)]
    if ask.trace is None:
        if not known and (ask.scale is not None or ask.first is not None):
            raise UnknownName("trace", ask.profile, remedy="the profile has none: ingest its messages")
        return known[0] if known else None
    identity = registry.traces.read(ask.trace).id
    if identity not in known:
        raise UnknownName("trace", identity, known, remedy=f"it is not of {ask.profile}")
    return identity


def _told(network: Options) -> dict[str, str | int | float | bool]:
    """The network's options by name, without those that follow from others."""
    values = {name: getattr(network, name) for name in NETWORK}
    return {name: value for name, value in values.items() if value is not None}


def _run(
    ask: Ask,
    snapshot: Snapshot,
    placement: Placement,
    messages: Messages,
    network: Options,
    progress: Progress,
) -> Simulation:
    from mapping.simulate.simulate import simulate

    return simulate(
        snapshot.fabric,
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
    from registry.simulations.records import SimulationRecord

    record = SimulationRecord(
        placement=run.placement,
        content=heading.snapshot.id,
        tables=heading.snapshot.routing,
        profile=heading.profile.id,
        trace=heading.trace,
        simulation=run.simulation,
        parameters=heading.parameters,
        wall_seconds=run.seconds,
        code_version=heading.code_version,
    )
    return registry.simulations.save(record)
