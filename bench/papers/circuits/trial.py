"""Run one trial: draw an application, search, and return the result (sections 4.3 and 5.1 of the paper)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ingest.generate.streams import EDGE_SPREAD, VERTEX_SPREAD, LogNormal, stream_graph
from mapping.circuits.bounds import FLOWS, loose_bound, throughput_bound
from mapping.circuits.local_search import TRIALS, TrialOptions, search_from_seeds
from mapping.circuits.paper import PATIENCE, SKIP, LoopOptions, co_optimise
from mapping.circuits.paper_partition import HIGHEST, LOWEST, Refinement
from mapping.circuits.paper_seeds import CONDENSED
from mapping.circuits.problem import Application, Machine
from mapping.circuits.search import load_search_kernels
from mapping.circuits.solution import SearchResult
from registry.progress import silent

RINGS = tuple(f"chordal-ring-{chord}" for chord in range(2, 8))
FORKS = (CONDENSED, *RINGS, "torus")
"""Seed topologies of section 5.1; the first is the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters that the paper does not publish.

    Attributes
    ----------
    vertex_spread, edge_spread : float
        Standard deviations of the logarithms of weights.
    edge_weight : float
        Mean weight of an edge over that of a vertex.
    patience : int
        Iterations without gain after which the loop stops.
    skip : float
        Probability of ignoring a pair of links that can be swapped.
    steps : int or None
        Most steps of a refinement, on each graph: the depth of the local search of section 4.4.
    """

    vertex_spread: float = VERTEX_SPREAD
    edge_spread: float = EDGE_SPREAD
    edge_weight: float = 1.0
    patience: int = PATIENCE
    skip: float = SKIP
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An experiment: all that its trials have in common.

    Attributes
    ----------
    machine : Machine
    vertices : int
        Of each application.
    parameters : Parameters
    flows : int
        Of the certified bound (`mapping.circuits.bounds.throughput_bound`).
    expansion : str
        Order of the loop's matchings: ``lowest`` first, as printed, or ``highest``.
    """

    machine: Machine
    vertices: int
    parameters: Parameters = field(default_factory=Parameters)
    flows: int = FLOWS
    expansion: str = LOWEST


class Outcome(NamedTuple):
    """Result of one run of the loop.

    Attributes
    ----------
    throughput, improvement : float
        The best, and Phi: the best over that on the seed topology.
    best_iteration, solves : int
        i_opt, and partitions made: iterations and the seed's.
    compute_bound : bool
        Whether nodes limit the throughput.
    of_loose_bound : float
        r_looseub.
    seconds : float
        Processor time.
    """

    throughput: float
    improvement: float
    best_iteration: int
    solves: int
    compute_bound: bool
    of_loose_bound: float
    seconds: float


class Pair(NamedTuple):
    """Results of the paper's loop and of our best search on one application.

    Attributes
    ----------
    paper, highest, ours : float
        Throughput of the loop as printed, of the loop with the highest expansions matched first, of
        `mapping.circuits.local_search.search_from_seeds`.
    bound, loose : float
        The certified bound, and the paper's.
    bound_name : str
    paper_seconds, ours_seconds : float
        Processor time.
    """

    paper: float
    highest: float
    ours: float
    bound: float
    loose: float
    bound_name: str
    paper_seconds: float
    ours_seconds: float


def prepare() -> None:
    """Load the kernels in each process, so that no trial's time includes it."""
    load_search_kernels(silent)


def machine_of(row: dict[str, float]) -> Machine:
    """Return the machine of a row of the paper's tables."""
    return Machine(
        nodes=int(row["nodes"]),
        max_degree=int(row["max_degree"]),
        max_edges=int(row["max_edges"]),
        compute_speed=float(row["compute_speed"]),
        link_speed=float(row["link_speed"]),
    )


def draw(setting: Setting, number: int) -> Application:
    """Draw the application of a trial, a different one for each number."""
    given = setting.parameters
    graph = stream_graph(
        setting.vertices,
        vertex=LogNormal(1.0, given.vertex_spread),
        edge=LogNormal(given.edge_weight, given.edge_spread),
        seed=number,
    )
    return Application.from_edges(
        graph.source, graph.target, graph.edge_weight, vertex_weight=graph.vertex_weight
    )


def loop(setting: Setting, number: int) -> Outcome:
    """Run the paper's loop from the condensed graph."""
    return _loop(setting, draw(setting, number), number, CONDENSED)


def forks(setting: Setting, number: int) -> tuple[Outcome, ...]:
    """Run the paper's loop from each of `FORKS`, on the same application."""
    application = draw(setting, number)
    return tuple(_loop(setting, application, number, seed) for seed in FORKS)


def pair(setting: Setting, number: int) -> Pair:
    """Run the paper's loop, our best search and the bound on the same application."""
    application = draw(setting, number)
    paper = _loop(setting, application, number, CONDENSED)
    highest = run_loop(replace(setting, expansion=HIGHEST), application, number, CONDENSED)
    begin = time.process_time()
    ours = search_from_seeds(application, setting.machine, TrialOptions(trials=TRIALS, seed=number))
    seconds = time.process_time() - begin
    bound = throughput_bound(application, setting.machine, flows=setting.flows)
    return Pair(
        paper=paper.throughput,
        highest=highest.throughput,
        ours=ours.throughput,
        bound=bound.throughput,
        loose=loose_bound(application, setting.machine),
        bound_name=bound.name,
        paper_seconds=paper.seconds,
        ours_seconds=seconds,
    )


def _loop(setting: Setting, application: Application, number: int, seed_topology: str) -> Outcome:
    begin = time.process_time()
    found = run_loop(setting, application, number, seed_topology)
    seconds = time.process_time() - begin
    solution = found.solution
    return Outcome(
        throughput=found.throughput,
        improvement=found.improvement,
        best_iteration=found.best_iteration,
        solves=len(found.trail),
        compute_bound=solution.compute_throughput <= solution.communication_throughput,
        of_loose_bound=found.throughput / loose_bound(application, setting.machine),
        seconds=seconds,
    )


def run_loop(setting: Setting, application: Application, seed: int, seed_topology: str) -> SearchResult:
    """Run the paper's loop with the parameters of an experiment."""
    given = setting.parameters
    return co_optimise(
        application,
        setting.machine,
        LoopOptions(
            seed_topology=seed_topology,
            patience=given.patience,
            skip=given.skip,
            seed=seed,
            expansion=setting.expansion,
            refinement=Refinement(steps=given.steps),
        ),
    )
