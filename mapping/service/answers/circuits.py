"""Circuits of an optical switch for an application, or for what runs: searched, bounded, told as a plan."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.bounds import UpperBound, throughput_bound
from mapping.reconfiguration.co_optimise import GAIN, PATIENCE, SKIP, Iteration, Reconfiguration, reconfigure
from mapping.reconfiguration.few_moves import fewer_circuits
from mapping.reconfiguration.improving import BEST_SEEDS, TRIALS, best_of
from mapping.reconfiguration.next_configuration import Proposal, break_even_seconds, next_configuration
from mapping.reconfiguration.pinned_bounds import pinned_bound
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.renaming import renamed
from mapping.reconfiguration.seeds import CONDENSED
from mapping.reconfiguration.settling import settled
from mapping.reconfiguration.solution import Solution
from mapping.reconfiguration.topology import Topology
from registry.errors import InvalidValue
from registry.model import Ints
from registry.model.circuit_plan import BEST, METHODS, PAPER, CircuitPlan, CircuitRoutes
from registry.progress import Progress, silent

GIVEN = "given"
"""What a first topology that was given is called."""
PRESENT = 0.25
"""Part of the seconds of a search that goes to what the present circuits could give."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitSearch:
    """How circuits are searched.

    Attributes
    ----------
    method : str
        ``paper``: the paper's loop alone; ``best``: ours.
    start : str, Topology or None
        First topology; unless told the condensed graph, and for `best` a torus besides.
    patience, skip : int, float or None
        Of the paper's loop.
    trials : int or None
        Of our own search.
    seconds : float or None
        About, in all.
    seed : int
    reconfiguration_seconds : float or None
        For which nothing flows while circuits move; finite, >= 0.
    weights : str or None
        Tells the vertices' weights apart, such as a digest; None: all alike.
    """

    method: str = BEST
    start: str | Topology | None = None
    patience: int | None = None
    skip: float | None = None
    trials: int | None = None
    seconds: float | None = None
    seed: int = 0
    reconfiguration_seconds: float | None = None
    weights: str | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidValue("method", f"{self.method!r} is none of {', '.join(METHODS)}")
        given = self.reconfiguration_seconds
        if given is not None and not (math.isfinite(given) and given >= 0.0):
            raise InvalidValue("reconfiguration_seconds", f"is {given}, must be finite and not negative")

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool]:
        """What was told, by name."""
        start = GIVEN if isinstance(self.start, Topology) else self.start
        told: dict[str, str | int | float | None] = {
            "start": start,
            **{name: getattr(self, name) for name in ("patience", "skip", "trials", "seconds", "weights")},
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """What a search found.

    Attributes
    ----------
    trail : tuple of Iteration
        With the circuits that went and came.
    plan : CircuitPlan
    bound : UpperBound
        Of `plan`, with its proof.
    search : CircuitSearch
    seconds : float
        Wall seconds spent.
    """

    trail: tuple[Iteration, ...]
    plan: CircuitPlan
    bound: UpperBound
    search: CircuitSearch
    seconds: float


def plan_circuits(
    application: Application,
    machine: Machine,
    search: CircuitSearch,
    *,
    present: Topology | None = None,
    progress: Progress = silent,
) -> Planned:
    """Circuits, a node for each vertex and routes, beside what the present circuits could give.

    Parameters
    ----------
    present : Topology, optional
        Circuits that there are; the application gets the partition and the routes that suit them
        (`mapping.reconfiguration.settling`). Where none better are found they are what is proposed, but by
        the paper's loop.

    Raises
    ------
    InvalidValue, UnknownName
        As `mapping.reconfiguration.improving.best_of`.
    """
    begun = time.perf_counter()
    if present is not None:
        present.require(machine)
    bound = throughput_bound(application, machine)  # first: an interrupt later must not lose what was found
    found = _searched(application, machine, search, present is not None, progress)
    now = math.nan
    if present is not None:
        found, now = _beside(application, machine, search, present, found)
    gain = found.throughput / now if found.throughput != now else 1.0
    return _planned(
        application,
        machine,
        search,
        found,
        bound,
        begun,
        of_nodes=False,
        node_of_vertex=found.solution.node_of_vertex,
        present=present,
        present_throughput=now,
        compute_throughput=found.solution.compute_throughput,
        gain=gain,
        pays_after=_pays_after(gain, search.reconfiguration_seconds),
    )


def plan_next(
    application: Application,
    machine: Machine,
    search: CircuitSearch,
    *,
    node_of_rank: ArrayLike,
    present: Topology | None,
    compute_throughput: float = math.inf,
    progress: Progress = silent,
) -> Planned:
    """The next configuration of a switch under ranks that stay where they are.

    Parameters
    ----------
    application : Application
        Vertices are the switch's nodes, in their order: what they exchange.
    node_of_rank : int[ranks]
        For the plan.
    present : Topology or None
        Circuits that there are, where that is known.
    compute_throughput : float
        What computing allows.

    Raises
    ------
    InvalidValue
        As `mapping.reconfiguration.next_configuration.next_configuration`.
    """
    begun = time.perf_counter()
    node = np.arange(machine.nodes)
    bound = pinned_bound(application, machine, node)
    found = next_configuration(
        application,
        machine,
        present,
        node,
        reconfiguration_seconds=search.reconfiguration_seconds,
        compute_throughput=compute_throughput,
        trials=TRIALS if search.trials is None else search.trials,
        seed=search.seed,
        seconds=search.seconds,
        progress=progress,
    )
    if compute_throughput < bound.throughput:
        proof = "the fullest node computes so long, whatever the circuits"
        bound = UpperBound(name="compute", throughput=compute_throughput, proof=proof)
    return _planned(
        application,
        machine,
        search,
        found.found,
        bound,
        begun,
        of_nodes=True,
        node_of_vertex=np.asarray(node_of_rank, np.int32),
        present=present,
        present_throughput=_throughput(found, compute_throughput),
        compute_throughput=compute_throughput,
        gain=found.gain,
        pays_after=found.break_even_seconds,
    )


def _searched(
    application: Application, machine: Machine, search: CircuitSearch, weighed: bool, progress: Progress
) -> Reconfiguration:
    """What the search finds; where it is `weighed` against present circuits, these get a part of its time."""
    part = 1.0 - PRESENT if weighed else 1.0
    seconds = None if search.seconds is None else part * search.seconds
    if search.method != PAPER:
        return best_of(
            application,
            machine,
            seed_topologies=BEST_SEEDS if search.start is None else (search.start,),
            trials=TRIALS if search.trials is None else search.trials,
            seed=search.seed,
            seconds=seconds,
            progress=progress,
        )
    return reconfigure(
        application,
        machine,
        seed_topology=CONDENSED if search.start is None else search.start,
        patience=PATIENCE if search.patience is None else search.patience,
        skip=SKIP if search.skip is None else search.skip,
        seed=search.seed,
        seconds=seconds,
        progress=progress,
    )


def _beside(
    application: Application,
    machine: Machine,
    search: CircuitSearch,
    present: Topology,
    found: Reconfiguration,
) -> tuple[Reconfiguration, float]:
    """What is proposed, and the throughput of the present circuits; nan where an interrupt came before that.

    Ours numbers its nodes so that few circuits move, proposes the present ones where none better were found,
    and else leaves those that are not in the way. The paper's loop is told as it ended.
    """
    partitions = [found.solution.node_of_vertex]
    try:
        if search.method != PAPER:
            found = renamed(application, machine, present, found)
            partitions.append(found.solution.node_of_vertex)
        now, complete = settled(
            application,
            machine,
            present,
            partitions=partitions,
            seed=search.seed,
            seconds=None if search.seconds is None else PRESENT * search.seconds,
        )
    except KeyboardInterrupt:
        return replace(found, complete=False), math.nan
    found = replace(found, complete=found.complete and complete)
    same = not (found.topology.beyond(present) or present.beyond(found.topology))
    if same and found.throughput >= now.throughput:
        return found, found.throughput
    if search.method == PAPER:
        return found, now.throughput
    if found.throughput <= now.throughput * (1.0 + GAIN):
        return _staying(found, present, now), now.throughput
    made, solution = fewer_circuits(application, machine, present, found.topology, found.solution)
    return replace(found, topology=made, solution=solution), now.throughput


def _staying(found: Reconfiguration, present: Topology, now: Solution) -> Reconfiguration:
    """The present circuits, after all that was tried: its last iteration."""
    before = found.trail[-1]
    last = Iteration.of(
        before.number + 1,
        now,
        removed=found.topology.beyond(present),
        inserted=present.beyond(found.topology),
        seconds=before.seconds,
    )
    return replace(found, topology=present, solution=now, trail=(*found.trail, last))


def _throughput(found: Proposal, compute_throughput: float) -> float:
    """Of the present circuits; nan where they are not known."""
    return math.nan if found.present is None else min(found.present.throughput, compute_throughput)


def _pays_after(gain: float, reconfiguration_seconds: float | None) -> float:
    if reconfiguration_seconds is None or math.isnan(gain):
        return math.nan
    return break_even_seconds(gain, reconfiguration_seconds)


def _planned(
    application: Application,
    machine: Machine,
    search: CircuitSearch,
    found: Reconfiguration,
    bound: UpperBound,
    begun: float,
    *,
    of_nodes: bool,
    node_of_vertex: Ints,
    present: Topology | None,
    present_throughput: float,
    compute_throughput: float,
    gain: float,
    pays_after: float,
) -> Planned:
    none = np.zeros(0, np.int32)
    given = search.reconfiguration_seconds
    plan = CircuitPlan(
        nodes=machine.nodes,
        max_degree=machine.max_degree,
        max_edges=machine.max_edges,
        compute_speed=machine.compute_speed,
        link_speed=machine.link_speed,
        node_of_vertex=node_of_vertex,
        source=found.topology.source,
        target=found.topology.target,
        link_load=found.solution.link_load,
        present_source=none if present is None else present.source,
        present_target=none if present is None else present.target,
        throughput=min(found.throughput, compute_throughput),
        compute_throughput=compute_throughput,
        communication_throughput=found.solution.communication_throughput,
        present_throughput=present_throughput,
        upper_bound=bound.throughput,
        bound=bound.name,
        reconfiguration_seconds=math.nan if given is None else given,
        gain=gain,
        break_even_seconds=pays_after,
        number=np.array([one.number for one in found.trail], np.int32),
        bottleneck=tuple(one.bottleneck for one in found.trail),
        trail_throughput=np.minimum([one.throughput for one in found.trail], compute_throughput),
        complete=found.complete,
        seed=search.seed,
        method=search.method,
        routes=CircuitRoutes(
            of_nodes=of_nodes,
            one=application.source,
            other=application.target,
            bytes=application.weight,
            first=found.solution.route_ptr,
            circuit=found.solution.route,
        ),
    )
    return Planned(
        trail=found.trail,
        plan=plan,
        bound=bound,
        search=search,
        seconds=time.perf_counter() - begun,
    )
