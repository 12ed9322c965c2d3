"""Reproduce Li et al. 2020, Figure 2: hop-bytes of OHTMA against four other mappings on Tianhe-3.

With the ranks the paper doubles the points of Sweep3D along y and the cells of SNAP along z; it gives no grid
of ranks. It counts Sweep3D among programs with "short-distance communications", so its grid here grows with
the mesh, 16 ranks wide; and SNAP, like LU, among those with "variable distance communications", so its grid
here is as square as can be, like LU's. The other grid of each is run, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt

import numpy as np

from bench.papers.mapping.mapping_2011 import Effort, hosts_of_ranks
from bench.support.machine import processor_clock
from bench.support.papers import Cell, Figure, Row, Table
from bench.support.plots import Curve, Panel
from ingest.generate import nas
from ingest.generate.stencils import snap, sweep3d
from ingest.generate.trees import tianhe3
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import SWITCHES, distances
from mapping.placement.place import place
from mapping.placement.problem import Problem
from mapping.placement.search import SearchOptions
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
BASELINES = ("in-order", "round-robin", "greedy", "greedy (last)", "rcm", "rcm (whole)")
REPEATED, OURS, EQUAL = "ohtma, repeated", "ours", "ours, equal time"
TIMED = ("ohtma", REPEATED, OURS, EQUAL)
SAID: dict[str, tuple[str, ...]] = {
    "bt": ("in-order", "round-robin"),
    "sp": ("in-order", "round-robin", "greedy", "rcm"),
    "cg": ("in-order",),
    "lu": ("in-order", "greedy"),
    "snap": ("in-order", "round-robin", "greedy", "rcm"),
    "sweep3d": ("greedy",),
}
"""Programs of which the text gives averages, and against which strategy."""
SCATTERED = "scattered nodes"
ALLOCATIONS = ("first nodes", SCATTERED, "all nodes")
"""As many nodes as ranks, the first of the machine or any, in machine order; or all 4,128 to choose from."""
SEARCH_SECONDS = 2.0
"""At most, for ours and for OHTMA repeated: there are many cases."""
WIDE, BASE = 16, 256
"""Ranks of a row at the paper's fewest ranks, and these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A program at one size: hop-bytes and processor seconds by mapping."""

    where: str
    program: str
    ranks: int
    cost: Mapping[str, float]
    seconds: Mapping[str, float]

    def change(self, name: str, baseline: str) -> float:
        """Return the hop-bytes over a baseline's, minus one."""
        return self.cost[name] / self.cost[baseline] - 1.0


def run(effort: Effort) -> Figure:
    """Run all programs and sizes, on the first, on scattered and on all nodes."""
    fabric = tianhe3(6, 8, chips=CHIPS)
    sizes = (64, 256) if effort.small else (256, 512, 1024, 2048, 4096)
    cases: list[Case] = []
    _case(fabric, "lu", nas.lu(64, steps=1), SCATTERED, replace(effort, search_seconds=0.1))  # loads kernels
    for where in ALLOCATIONS:
        for program, make in {**programs(), **(other_grids() if where == SCATTERED else {})}.items():
            for ranks in sizes:
                if program in ("bt", "sp") and isqrt(ranks) ** 2 != ranks:
                    continue
                cases.append(_case(fabric, program, make(ranks), where, effort))
                print(f"{where}, {program}, {ranks} ranks", file=sys.stderr, flush=True)
    rows = [row for where in ALLOCATIONS for row in _rows([one for one in cases if one.where == where])]
    for one in cases:
        if (one.program, one.where) == ("lu", ALLOCATIONS[0]):
            key = f"2020-seconds-{one.ranks}" if one.ranks in (256, 512) else ""
            rows.append(Row(f"lu, {one.ranks} ranks: time of OHTMA", one.seconds["ohtma"], "seconds", key))
    limit = min(effort.search_seconds, SEARCH_SECONDS)
    return Figure(
        title="2020, Figure 2: hop-bytes on Tianhe-3",
        setting=f"{CHIPS} chips of 96 nodes in rows of 8, one rank a node; hops count switches; BT, "
        f"SP, CG and LU of class D, SNAP and Sweep3D with meshes that grow with the ranks; half as many "
        f"exchanges as ranks. Averages over sizes; each size is in the tables below. OHTMA repeated "
        f"(until it no longer improves) and ours: at most {limit:g} s of "
        f"one processor on hop-bytes, preparation included; at equal time, ours stops its search after the "
        f"time of OHTMA repeated, but finishes its first mappings.",
        rows=tuple(rows),
        panels=tuple(_panel(program, cases) for program in programs()),
        tables=tuple(_table([one for one in cases if one.where == where]) for where in ALLOCATIONS),
    )


def programs() -> dict[str, Callable[[int], Profile]]:
    """Return the six programs by number of ranks."""
    return {
        "bt": partial(nas.bt, steps=1),
        "cg": partial(nas.cg, iterations=1),
        "lu": partial(nas.lu, steps=1),
        "sp": partial(nas.sp, steps=1),
        "sweep3d": lambda ranks: _sweep3d(ranks, (WIDE, ranks // WIDE)),
        "snap": lambda ranks: _snap(ranks, _square(ranks)),
    }


def other_grids() -> dict[str, Callable[[int], Profile]]:
    """Return Sweep3D and SNAP on the other grid of ranks."""
    return {
        "sweep3d, square grid": lambda ranks: _sweep3d(ranks, _square(ranks)[::-1]),
        "snap, tall grid": lambda ranks: _snap(ranks, (WIDE, ranks // WIDE)),
    }


def _sweep3d(ranks: int, grid: tuple[int, int]) -> Profile:
    """Return Sweep3D with its larger sample input at `BASE` ranks, and more points along y with more."""
    return sweep3d(grid, mesh=(150, 150 * ranks // BASE, 150))


def _snap(ranks: int, grid: tuple[int, int]) -> Profile:
    """Return SNAP with 64 x 8 x 8 cells a rank at `BASE` ranks, and more cells along z with more."""
    side = 8 * WIDE
    return snap(grid, points=(64, side // grid[0], side * ranks // BASE // grid[1]))


def _square(ranks: int) -> tuple[int, int]:
    """Return two powers of two, equal or the second twice the first."""
    bits = ranks.bit_length() - 1
    return 1 << bits // 2, 1 << bits - bits // 2


def _case(fabric: Fabric, program: str, profile: Profile, where: str, effort: Effort) -> Case:
    """Return hop-bytes and processor seconds of every strategy, of OHTMA repeated, and of ours."""
    allocation = Allocation.of(fabric, _hosts(fabric, profile.ranks, where).tolist())
    routes = build_routes("shortest-paths", fabric, allocation.hosts)
    problem = Problem(
        profile=profile, allocation=allocation, routes=routes, own_distances=distances(SWITCHES, routes)
    )
    cost, seconds = {}, {}
    for name, text in STRATEGIES.items():
        begin = time.process_time()
        cost[name] = problem.hop_bytes(hosts_of_ranks(text, problem))
        seconds[name] = time.process_time() - begin
    limit = min(effort.search_seconds, SEARCH_SECONDS)
    for name, strategies in ((REPEATED, ["ohtma+ohtma-exchange:passes=1000"]), (OURS, None), (EQUAL, None)):
        begin = time.process_time()
        with processor_clock():
            placement = place(
                fabric,
                profile,
                allocation,
                SearchOptions(
                    objective="hop-bytes",
                    seconds=seconds[REPEATED] if name == EQUAL else limit,
                    strategies=strategies,
                    workers=1,
                ),
                CostModel(routing="shortest-paths", distance=SWITCHES),
            )
        seconds[name] = time.process_time() - begin
        cost[name] = problem.hop_bytes(_indices(allocation, placement.host_of_rank))
    return Case(where=where, program=program, ranks=profile.ranks, cost=cost, seconds=seconds)


def _hosts(fabric: Fabric, ranks: int, where: str) -> Longs:
    """Return the hosts of an allocation in machine order."""
    if where == SCATTERED:
        return np.sort(np.random.default_rng(ranks).choice(fabric.hosts, ranks, replace=False))
    return fabric.hosts[:ranks] if where == "first nodes" else fabric.hosts


def _indices(allocation: Allocation, vertices: Ints) -> Ints:
    order = np.argsort(allocation.hosts)
    return order[np.searchsorted(allocation.hosts, vertices, sorter=order)].astype(np.int32)


def _rows(cases: list[Case]) -> list[Row]:
    """Return averages over sizes, as in the text, and the largest reduction against ranks in order."""
    rows, where = [], cases[0].where
    for program in dict.fromkeys(one.program for one in cases):
        found = [one for one in cases if one.program == program]
        pairs = [("ohtma", "OHTMA", other) for other in BASELINES]
        pairs += [(name, name, "in-order") for name in ("ohtma, printed gain", REPEATED, OURS, EQUAL)]
        for name, called, other in pairs:
            paper, plain = other.split()[0], program.split(",")[0]
            said = name == "ohtma" and paper in SAID.get(plain, ())
            mean = float(np.mean([one.change(name, other) for one in found]))
            key = f"2020-{plain}-{paper}" if said else ""
            rows.append(Row(f"{program}, {where}: {called}", mean, other, key))
    largest = min(one.change("ohtma", "in-order") for one in cases)
    what = f"all programs, {where}: largest reduction of OHTMA"
    return [*rows, Row(what, largest, "in-order", "2020-largest")]


def _table(cases: list[Case]) -> Table:
    """Return the changes of each program at each size, and the processor seconds."""
    rows: list[dict[str, Cell]] = [
        {
            "program": one.program,
            "ranks": str(one.ranks),
            **{f"OHTMA against {name} (%)": 100 * one.change("ohtma", name) for name in BASELINES},
            **{
                f"{name} against in-order (%)": 100 * one.change(name, "in-order")
                for name in (REPEATED, OURS)
            },
            f"ours against OHTMA, in at most {SEARCH_SECONDS:g} s (%)": 100 * one.change(OURS, "ohtma"),
            "ours against OHTMA repeated, equal time (%)": 100 * one.change(EQUAL, REPEATED),
            **{f"{name}: processor seconds": float(f"{one.seconds[name]:.2g}") for name in TIMED},
        }
        for one in cases
    ]
    return Table.of(f"Figure 2 by size, {cases[0].where}: hop-bytes", rows)


def _panel(program: str, cases: list[Case]) -> Panel:
    found = [one for one in cases if (one.where, one.program) == (SCATTERED, program)]
    names = [name for name in (*STRATEGIES, REPEATED, OURS) if name != "in-order"]
    return Panel(
        title=f"{program}, {SCATTERED}",
        x="ranks",
        y="hop-bytes / in order",
        curves=tuple(
            Curve(
                label=name,
                x=tuple(float(one.ranks) for one in found),
                y=tuple(1.0 + one.change(name, "in-order") for one in found),
            )
            for name in names
        ),
    )
