"""Reproduce Li et al. 2020, Figure 2: hop-bytes of OHTMA against four other mappings on Tianhe-3."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import isqrt

import numpy as np

from bench.papers.mapping.mapping_2011 import hosts_of_ranks
from bench.support.figures import Effort, Figure, Row
from bench.support.plots import Curve, Panel
from ingest.generate import nas
from ingest.generate.stencils import snap, sweep3d
from ingest.generate.tianhe3 import tianhe3
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import SWITCHES, distances
from mapping.placement.problem.problem import Problem
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import place
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Fabric, Ints, Longs, Profile

CHIPS = 43
"""The fewest chips of 96 nodes that take 4,096 ranks, one a node."""
STRATEGIES = {
    "in-order": "in-order",
    "round-robin": "round-robin:over=switches",
    "greedy": "greedy",
    "greedy (last)": "greedy:near=last",
    "rcm": "rcm:variant=paper",
    "rcm (whole)": "rcm:variant=whole",
    "ohtma": "ohtma",
    "ohtma, printed gain": "ohtma:gain=printed",
}
SAID: dict[str, tuple[str, ...]] = {
    "bt": ("in-order", "round-robin"),
    "sp": ("in-order", "round-robin", "greedy", "rcm"),
    "cg": ("in-order",),
    "lu": ("in-order", "greedy"),
    "snap": ("in-order", "round-robin", "greedy", "rcm"),
    "sweep3d": ("greedy",),
}
"""Programs of which the text gives averages, and against which strategy."""
ALLOCATIONS = ("first nodes", "scattered nodes", "all nodes")
"""As many nodes as ranks, the first of the machine or any, in machine order; or all 4,128 to choose from."""
SEARCH_SECONDS = 3.0
"""At most, for ours: there are many cases."""
WHY = (
    "the paper gives neither the nodes of its jobs (Slurm's block and cyclic are the same with one rank a "
    "node; here round-robin goes over leaf switches), nor the order of its process grids, nor its messages"
)


def run(effort: Effort) -> Figure:
    """Run all programs and sizes, on the first nodes and on all of them."""
    fabric = tianhe3(6, 8, chips=CHIPS)
    sizes = (64, 256) if effort.small else (256, 512, 1024, 2048, 4096)
    cost: dict[tuple[str, str, int], dict[str, float]] = {}
    seconds: dict[tuple[str, int], float] = {}
    for where in ALLOCATIONS:
        for program, make in programs().items():
            for ranks in sizes:
                if program in ("bt", "sp") and isqrt(ranks) ** 2 != ranks:
                    continue
                found, taken = _mapped(fabric, make(ranks), where, effort)
                cost[where, program, ranks] = found
                if program == "lu" and where == ALLOCATIONS[0]:
                    seconds[program, ranks] = taken
    rows = [row for where in ALLOCATIONS for row in _rows(where, cost)]
    rows += [
        Row(
            what=f"lu, {ranks} ranks: time of OHTMA",
            ours=taken,
            baseline="seconds",
            paper=f"2020-seconds-{ranks}" if ranks in (256, 512) else "",
            why="sums kept up to date instead of computed anew, compiled; the program is not named"
            if ranks <= 512
            else "",
        )
        for (_, ranks), taken in seconds.items()
    ]
    return Figure(
        title="2020, Figure 2: hop-bytes on Tianhe-3",
        setting=f"{CHIPS} chips of 96 nodes in rows of 8, one rank a node; hops count switches; BT, "
        f"SP, CG and LU of class D, SNAP and Sweep3D with the same points per rank; half as many exchanges "
        f"as ranks. Averages over sizes. Ours {min(effort.search_seconds, SEARCH_SECONDS):g} s on hop-bytes.",
        rows=tuple(rows),
        panels=tuple(_panel(program, cost, "scattered nodes") for program in programs()),
    )


def programs() -> dict[str, Callable[[int], Profile]]:
    """Return the six programs by number of ranks."""
    return {
        "bt": partial(nas.bt, steps=1),
        "cg": partial(nas.cg, iterations=1),
        "lu": partial(nas.lu, steps=1),
        "sp": partial(nas.sp, steps=1),
        "sweep3d": lambda ranks: sweep3d(_grid(ranks)),
        "snap": lambda ranks: snap(_grid(ranks)),
    }


def _grid(ranks: int) -> tuple[int, int]:
    """Return two powers of two, equal or the first twice the second."""
    bits = ranks.bit_length() - 1
    return 1 << bits - bits // 2, 1 << bits // 2


def _mapped(fabric: Fabric, profile: Profile, where: str, effort: Effort) -> tuple[dict[str, float], float]:
    """Return the hop-bytes of every strategy, and processor seconds of OHTMA."""
    allocation = Allocation.of(fabric, _hosts(fabric, profile.ranks, where).tolist())
    routes = build_routes("shortest-paths", fabric, allocation.hosts)
    problem = Problem(
        profile=profile, allocation=allocation, routes=routes, own_distances=distances(SWITCHES, routes)
    )
    found, taken = {}, 0.0
    for name, text in STRATEGIES.items():
        begin = time.process_time()
        found[name] = problem.hop_bytes(hosts_of_ranks(text, problem))
        if name == "ohtma":
            taken = time.process_time() - begin
    placement = place(
        fabric,
        profile,
        allocation,
        SearchOptions(objective="hop-bytes", seconds=min(effort.search_seconds, SEARCH_SECONDS)),
        CostModel(routing="shortest-paths", distance=SWITCHES),
    )
    found["ours"] = problem.hop_bytes(_indices(allocation, placement.host_of_rank))
    return found, taken


def _hosts(fabric: Fabric, ranks: int, where: str) -> Longs:
    """Return the hosts of an allocation in machine order."""
    if where == "scattered nodes":
        return np.sort(np.random.default_rng(ranks).choice(fabric.hosts, ranks, replace=False))
    return fabric.hosts[:ranks] if where == "first nodes" else fabric.hosts


def _indices(allocation: Allocation, vertices: Ints) -> Ints:
    order = np.argsort(allocation.hosts)
    return order[np.searchsorted(allocation.hosts, vertices, sorter=order)].astype(np.int32)


def _rows(where: str, cost: dict[tuple[str, str, int], dict[str, float]]) -> list[Row]:
    """Return averages over sizes, as in the text, and the largest reduction against ranks in order."""
    rows = []
    for program in programs():
        found = [one for (place_, name, _), one in cost.items() if (place_, name) == (where, program)]
        for other in ("in-order", "round-robin", "greedy", "greedy (last)", "rcm", "rcm (whole)"):
            named = other.split()[0]
            key = f"2020-{program}-{named}" if named in SAID.get(program, ()) else ""
            value = float(np.mean([one["ohtma"] / one[other] - 1.0 for one in found]))
            rows.append(
                Row(
                    what=f"{program}, {where}: OHTMA",
                    ours=value,
                    baseline=other,
                    paper=key,
                    why=WHY if key else "",
                )
            )
        for name in ("ohtma, printed gain", "ours"):
            value = float(np.mean([one[name] / one["in-order"] - 1.0 for one in found]))
            rows.append(Row(what=f"{program}, {where}: {name}", ours=value, baseline="in-order"))
    largest = min(
        one["ohtma"] / one["in-order"] - 1.0 for (place_, _, _), one in cost.items() if place_ == where
    )
    rows.append(
        Row(
            what=f"all programs, {where}: largest reduction of OHTMA",
            ours=largest,
            baseline="in-order",
            paper="2020-largest",
            why=WHY,
        )
    )
    return rows


def _panel(program: str, cost: dict[tuple[str, str, int], dict[str, float]], where: str) -> Panel:
    found = {ranks: one for (place_, name, ranks), one in cost.items() if (place_, name) == (where, program)}
    names = [name for name in (*STRATEGIES, "ours") if name != "in-order"]
    return Panel(
        title=f"{program}, {where}",
        x="ranks",
        y="hop-bytes / in order",
        curves=tuple(
            Curve(
                label=name,
                x=tuple(map(float, found)),
                y=tuple(one[name] / one["in-order"] for one in found.values()),
            )
            for name in names
        ),
    )
