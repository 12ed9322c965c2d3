"""Simulated runs of placements: what is replayed, on which fabric, and saving the runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from mapping.cluster import Cluster
from mapping.cost.metrics import LoadedLink, link_with
from mapping.distances.cost_model import CostModel
from mapping.questions.place import placement_on
from mapping.simulation import simulate as simulation_module
from mapping.simulation.messages import Messages, Options, from_profile, from_trace, saturating_scale
from registry.errors import UnknownName, WrongRanks
from registry.model import Fabric, HostOrder, Placement, Profile, Simulation, Time, Trace
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.fabrics import Snapshot
from registry.store.profiles import StoredProfile
from registry.store.simulations import SimulationRecord
from registry.units import code_version

SATURATE = "saturate"
"""Scale of a trace at which the first placement's run saturates the network."""
ROUNDS = 1
"""Default number of times that a profile without a trace is sent."""

Parameters = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationOptions:
    """How messages are sent."""

    costs: CostModel = CostModel()  # noqa: RUF009 (frozen)
    """Routing (default: forwarding tables if complete, else ``minimal-adaptive``) and rails."""
    mode: str = "packets"
    """``packets`` or ``flits``."""
    scale: float | str | None = None
    """Factor by which a trace is sent faster than recorded; default: 1."""
    first: int | None = None
    """Only so many first messages of a trace."""
    rounds: int | None = None
    """Send the profile so often instead of a trace."""
    network: Options = Options()  # noqa: RUF009 (frozen)
    """Packets, latencies, buffers, lanes, and the points of the traffic over time."""
    seed: int = 0
    """Seed of the random numbers."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationRequest:
    """What to simulate, by the names in the registry."""

    profile: str
    cluster: str
    placements: Sequence[HostOrder | str]
    """Ids of saved placements, or orders of hosts."""
    options: SimulationOptions
    trace: str | None = None
    """Id of the trace; default: the newest of the profile."""
    at: Time | None = None
    """Time of the fabric; default: now."""

    __repr__ = one_line


class PlacedRanks(NamedTuple):
    """A placement on the fabric, its id or file, and True if it is saved."""

    placement: Placement
    name: str
    saved: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationCase:
    """The data of a simulation.

    Raises:
        InvalidPlacement: A placement has another number of ranks than the profile.
    """

    cluster: str
    """Cluster of the fabric, or the name of its first file."""
    fabric: Fabric
    snapshot: Snapshot | None = None
    """Snapshot of the fabric; None if it was read from files."""
    profile: Profile
    profile_id: str | None = None
    """None if the profile was read from a file."""
    trace: Trace | None
    """Messages to replay; None: the profile is sent in rounds."""
    trace_name: str | None
    """Id or file of the trace."""
    placed: tuple[PlacedRanks, ...]

    __repr__ = one_line

    def __post_init__(self) -> None:
        for placement, name, saved in self.placed:
            if placement.ranks != self.profile.ranks:
                raise WrongRanks(placement.ranks, self.profile.ranks, path=None if saved else name)


class Run(NamedTuple):
    """The run of one placement."""

    placement: str
    """Id or file."""
    simulation: Simulation
    seconds: float
    """Wall seconds of the simulation."""
    id: str | None = None
    """Id of the saved run; None if the placement is not saved."""


class BusyLink(NamedTuple):
    """A link direction with the bytes it carried, how long it was sending, and in what part of the run."""

    link: LoadedLink
    busy_seconds: float
    utilisation: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationReport:
    """The runs of all placements, in their order; after an interrupt some are missing."""

    case: SimulationCase
    parameters: Parameters
    """Options as stored with the runs."""
    code_version: str
    runs: tuple[Run, ...]

    __repr__ = one_line

    @property
    def complete(self) -> bool:
        """True if every placement has a run to the end."""
        return len(self.runs) == len(self.case.placed) and all(run.simulation.complete for run in self.runs)

    def busiest(self, run: Run, count: int | None = None) -> list[BusyLink]:
        """Return the links that were sending longest, ties by row; default: all that carried something."""
        simulation, fabric = run.simulation, self.case.fabric
        seconds, part = simulation.link_busy_seconds, simulation.link_utilisation
        loads = simulation.link_bytes
        rows = sorted(loads.nonzero()[0].tolist(), key=lambda row: -seconds[row])
        return [
            BusyLink(link_with(fabric, row, float(loads[row])), float(seconds[row]), float(part[row]))
            for row in rows[:count]
        ]


def simulation_case(registry: Registry, request: SimulationRequest) -> SimulationCase:
    """Read the fabric, the profile, its trace and the placements of a request.

    Raises:
        UnknownName: A profile, cluster, trace, placement or host does not exist, or the trace is of another
            profile.
        InvalidPlacement: A placement has another number of ranks than the profile.
    """
    stored = registry.profiles.read(request.profile)
    snapshot = registry.fabrics.read(request.cluster, request.at)
    placed = (
        PlacedRanks(*placement_on(registry, given, snapshot), isinstance(given, str))
        for given in request.placements
    )
    identity = None if request.options.rounds is not None else _trace_id(registry, request, stored)
    return SimulationCase(
        cluster=snapshot.cluster,
        fabric=snapshot.fabric,
        snapshot=snapshot,
        profile=stored.profile,
        profile_id=stored.id,
        trace=None if identity is None else registry.traces.read(identity).trace,
        trace_name=identity,
        placed=tuple(placed),
    )


def _trace_id(registry: Registry, request: SimulationRequest, stored: StoredProfile) -> str | None:
    """Return the id of the requested trace, else of the newest; None if the profile has none.

    Raises:
        UnknownName: The trace is of another profile, or options of a trace are given for a profile without
            one.
    """
    options = request.options
    known = [info.id for info in registry.traces.list(stored.id)]
    if request.trace is None:
        if not known and (options.scale is not None or options.first is not None):
            raise UnknownName("trace", request.profile, remedy="the profile has none: ingest its messages")
        return known[0] if known else None
    identity = registry.traces.read(request.trace).id
    if identity not in known:
        raise UnknownName("trace", identity, known, remedy=f"it is not of {request.profile}")
    return identity


def simulate_placements(
    case: SimulationCase,
    options: SimulationOptions,
    registry: Registry | None = None,
    *,
    progress: Progress = silent,
    cluster: Cluster | None = None,
) -> SimulationReport:
    """Simulate the messages from each placement, and save the runs of saved placements.

    After an interrupt the runs so far are returned; an interrupt before the first run is raised.

    Args:
        registry: Default: nothing is saved.
        cluster: Simulate all placements there at the same time.

    Raises:
        AlmanacError: As of `mapping.simulation.simulate.simulate`, and of saving a simulation.
    """
    first = partial(_simulate, case.fabric, options, case.placed[0].placement, progress=progress)
    messages, parameters = _messages(case, options, lambda messages: first(messages)[0])
    network = {**options.network.parameters, "rails": options.costs.rails, "every": options.network.every}
    parameters = {**parameters, **network}
    report = SimulationReport(case=case, parameters=parameters, code_version=code_version(), runs=())
    runs: dict[int, Run] = {}
    try:
        for number, simulation, seconds in _simulations(case, options, messages, cluster, progress):
            _, name, saved = case.placed[number]
            done = Run(placement=name, simulation=simulation, seconds=seconds)
            if saved and registry is not None:
                done = done._replace(id=_save(registry, report, done))
            runs[number] = done
    except KeyboardInterrupt:
        if not runs:
            raise
    return replace(report, runs=tuple(runs[number] for number in sorted(runs)))


def _simulations(
    case: SimulationCase,
    options: SimulationOptions,
    messages: Messages,
    cluster: Cluster | None,
    progress: Progress,
) -> Iterator[tuple[int, Simulation, float]]:
    """Yield number, run and wall seconds of each placement as it ends; after an interrupt no further one."""
    if cluster is not None:
        for value in (case.fabric, messages):
            cluster.share(value)
        tasks = [(case.fabric, options, one.placement, messages) for one in case.placed]
        for number, result in cluster.run(_simulate, tasks, "simulations", progress):
            yield number, *result.result()
        return
    for number, one in enumerate(case.placed):
        simulation, seconds = _simulate(case.fabric, options, one.placement, messages, progress)
        yield number, simulation, seconds
        if not simulation.complete:
            return


def _simulate(
    fabric: Fabric,
    options: SimulationOptions,
    placement: Placement,
    messages: Messages,
    progress: Progress = silent,
) -> tuple[Simulation, float]:
    """Return a simulation and its wall seconds."""
    started = time.monotonic()
    simulation = simulation_module.simulate(
        fabric,
        placement,
        messages,
        options.costs,
        mode=options.mode,
        options=options.network,
        seed=options.seed,
        progress=progress,
    )
    return simulation, time.monotonic() - started


def _messages(
    case: SimulationCase, options: SimulationOptions, run: Callable[[Messages], Simulation]
) -> tuple[Messages, Parameters]:
    """Return the messages to send, and the parameters from which they were made.

    Args:
        run: Simulates messages from the first placement.
    """
    trace = case.trace
    if trace is None:
        rounds = options.rounds or ROUNDS
        return from_profile(case.profile, rounds), {"rounds": rounds}
    cut: dict[str, str | int | float | bool] = {}
    if options.first is not None:
        trace, cut = trace.first(options.first), {"first": options.first}
    scale = _saturating(trace, run) if isinstance(options.scale, str) else options.scale or 1.0
    # JSON has no infinity
    return from_trace(trace, scale), {**cut, "scale": scale if math.isfinite(scale) else "inf"}


def _saturating(trace: Trace, run: Callable[[Messages], Simulation]) -> float:
    """Return the scale at which the trace saturates the network; an interrupt is raised."""

    def to_the_end(messages: Messages) -> Simulation:
        simulation = run(messages)
        if not simulation.complete:
            raise KeyboardInterrupt
        return simulation

    return saturating_scale(trace, to_the_end)


def _save(registry: Registry, report: SimulationReport, run: Run) -> str:
    """Save one run of a report on a fabric of the registry, and return its id."""
    case = report.case
    assert case.snapshot is not None
    assert case.profile_id is not None
    record = SimulationRecord(
        placement=run.placement,
        content=case.snapshot.id,
        tables=case.snapshot.routing,
        profile=case.profile_id,
        trace=case.trace_name,
        simulation=run.simulation,
        parameters=report.parameters,
        wall_seconds=run.seconds,
        code_version=report.code_version,
    )
    return registry.simulations.save(record)
