"""Compare the paper's loop and our best search with the true optimum, on instances with few solutions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from bench.papers.circuits.enumeration import optimum
from bench.papers.circuits.equal_time import restarted
from bench.papers.circuits.experiment import Effort, Parameters, Setting, WorkerPool, geometric_mean, run_loop
from bench.support.papers import Cell, Figure, Table
from mapping.circuits.bounds import loose_bound, throughput_bound
from mapping.circuits.local_search import TrialOptions, search_from_seeds
from mapping.circuits.paper_partition import HIGHEST
from mapping.circuits.paper_seeds import CONDENSED
from mapping.circuits.problem import Application, Machine

NODES, VERTICES, EDGES = 4, 7, 10
COMPUTE_SPEED = 10.0
LINK_SPEEDS = (2.0, 10.0, 50.0)
"""From links that bind to nodes that do."""
LIMITS = ((2, 3), (2, 4), (3, 5))
"""Max-degree and max-edges: a path, a ring, and all links but one."""
SAME = 1e-9
INSTANCES = 8
"""Of each machine."""


class Distance(NamedTuple):
    """Throughputs on one instance, each divided by the true optimum."""

    paper: float
    restarted: float
    ours: float
    bound: float
    loose: float
    seconds: float
    ours_seconds: float


def run(parameters: Parameters, effort: Effort, pool: WorkerPool) -> Iterator[Figure]:
    """Run random instances on nine machines; yield the part after each machine."""
    found: dict[Machine, list[Distance]] = {}
    for machine in machines(effort.small):
        setting = Setting(machine=machine, vertices=VERTICES, parameters=parameters)
        found[machine] = pool.run(distance, setting, range(2 if effort.small else INSTANCES))
        yield _part(found)


def _part(found: dict[Machine, list[Distance]]) -> Figure:
    return Figure(
        title="Distance to the true optimum",
        setting=f"Random applications of {VERTICES} vertices and up to {EDGES} edges, weights 1 to 9, on "
        f"{NODES} nodes: every topology, partition and unsplit routing tried.",
        tables=(_table(found),),
        data={
            "machines": [
                {**asdict(machine), "found": [one._asdict() for one in of]} for machine, of in found.items()
            ]
        },
    )


def machines(small: bool) -> list[Machine]:
    """Return all limits with all link speeds."""
    every = [
        Machine(
            nodes=NODES,
            max_degree=degree,
            max_edges=edges,
            compute_speed=COMPUTE_SPEED,
            link_speed=speed,
        )
        for degree, edges in LIMITS
        for speed in LINK_SPEEDS
    ]
    return every[3:5] if small else every


def instance(number: int) -> Application:
    """Draw a random connected application: a tree and more edges, with whole weights."""
    draw = np.random.default_rng(number)
    child = np.arange(1, VERTICES)
    parent = draw.integers(0, child)
    more = draw.integers(0, VERTICES, (2, EDGES - len(child)))
    return Application.from_edges(
        np.r_[parent, more[0]],
        np.r_[child, more[1]],
        draw.integers(1, 10, EDGES),
        vertex_weight=draw.integers(1, 10, VERTICES).astype(np.float64),
    )


def distance(setting: Setting, number: int) -> Distance:
    """Compute the paper's loop, our best search and both bounds, relative to an instance's optimum."""
    application, machine = instance(number), setting.machine
    begin = time.process_time()
    best = optimum(application, machine).solution.throughput
    seconds = time.process_time() - begin
    begin = time.process_time()
    ours = search_from_seeds(application, machine, TrialOptions(seed=number)).throughput
    ours_seconds = time.process_time() - begin
    stronger = replace(setting, expansion=HIGHEST, parameters=replace(setting.parameters, steps=None))
    return Distance(
        paper=run_loop(setting, application, number, CONDENSED).throughput / best,
        restarted=restarted(stronger, application, number, ours_seconds).best / best,
        ours=ours / best,
        bound=throughput_bound(application, machine).throughput / best,
        loose=loose_bound(application, machine) / best,
        seconds=seconds,
        ours_seconds=ours_seconds,
    )


def _table(found: dict[Machine, list[Distance]]) -> Table:
    rows: list[dict[str, Cell]] = [
        {
            "max-degree": machine.max_degree,
            "max-edges": machine.max_edges,
            "link speed": machine.link_speed,
            **_summary(of),
        }
        for machine, of in found.items()
    ]
    everything = [one for of in found.values() for one in of]
    rows.append({"max-degree": "all", "max-edges": "", "link speed": "", **_summary(everything)})
    return Table.of(
        "Over the true optimum (geometric means)",
        rows,
        "Loop restarted: the highest expansion first and all steps of a refinement, with other seeds "
        "until it has used the processor time of ours",
    )


def _summary(of: list[Distance]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"instances": len(of)}
    searches = {"paper's loop": "paper", "loop restarted": "restarted", "best of ours": "ours"}
    for name, key in searches.items():
        values = [getattr(one, key) for one in of]
        cells[f"{name} optimal"] = sum(value >= 1 - SAME for value in values)
        cells |= {name: geometric_mean(values), f"{name}, least": min(values)}
    cells["certified bound"] = geometric_mean(one.bound for one in of)
    return cells | {"paper's loose bound": geometric_mean(one.loose for one in of)}
