"""Reproduce Li et al. 2020, Figure 3: simulated communication time on Tianhe-3 by mapping.

The paper measures on the machine and gives neither the capacities of its links nor the nodes of its jobs.
Here a time step of each program is sent in rounds over two machines: as the generator has it, where leaf
switches can pass on all that their nodes send, and with a quarter of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt

import numpy as np

from bench.papers.mapping.mapping_2011 import span
from bench.papers.mapping.tianhe3 import CHIPS, programs
from bench.simulation.runs import Effort, placed_by, say, side_by_side
from bench.support.figures import Figure, Row, Table
from bench.support.processor_clock import processor_clock
from ingest.generate.trees import tianhe3
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import SWITCHES, distances
from mapping.placement.place import place
from mapping.placement.problem import Problem
from mapping.placement.search import SearchOptions
from mapping.routing.catalog import build_routes
from mapping.simulation.messages import Messages, Options, from_profile
from mapping.simulation.simulate import simulate
from registry.model import Allocation, Fabric, Placement, Profile

STRATEGIES = {
    "in-order": "in-order",
    "round-robin": "round-robin:over=switches",
    "greedy": "greedy",
    "rcm": "rcm:variant=paper",
    "ohtma": "ohtma",
}
BASELINES = ("in-order", "round-robin", "greedy", "rcm")
REPEATED, OURS = "ohtma, repeated", "ours"
SIZES = (256, 512, 1024, 2048, 4096)
NODE = 1.25e10
MACHINES = {"full": (NODE, 24 * NODE, 12 * NODE), "quarter": (NODE, 6 * NODE, 3 * NODE)}
"""Capacities of a node's link, of that between the halves of a chip, and of a half's to a row or column."""
ROUNDS = 4
ROUTING = "minimal-adaptive"
MOST_PACKETS = 100_000
"""Packets are made larger where there would be more."""
SEARCH_SECONDS, SMALL_SECONDS = 2.0, 0.5
"""Processor seconds of ours, and at most of OHTMA repeated until it no longer improves."""
SAID = {
    ("bt", "in-order"): "2020-time-bt-in-order",
    ("bt", "greedy"): "2020-time-bt-greedy",
    ("sp", "in-order"): "2020-time-sp",
    ("cg", "in-order"): "2020-time-cg",
    ("snap", "greedy"): "2020-time-snap",
    ("sweep3d", "greedy"): "2020-time-sweep3d",
}
WHY = (
    "neither the machine's capacities nor its jobs' nodes, messages or computing between them are published; "
    "a time step in rounds is communication alone"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A program at one size on a machine: simulated seconds by strategy."""

    machine: str
    program: str
    ranks: int
    seconds: Mapping[str, float]

    def change(self, name: str, baseline: str) -> float:
        """Return the time over the baseline, minus one."""
        return self.seconds[name] / self.seconds[baseline] - 1.0


def run(effort: Effort) -> Figure:
    """Run all programs and sizes on both machines, with as many scattered nodes as ranks."""
    sizes, most = ((64,), MOST_PACKETS // 20) if effort.small else (SIZES, MOST_PACKETS)
    limit = SMALL_SECONDS if effort.small else SEARCH_SECONDS
    runs: list[Run] = []
    for program, make in programs().items():
        for ranks in sizes:
            if program in ("bt", "sp") and isqrt(ranks) ** 2 != ranks:
                continue
            runs += _case(program, make(ranks), most, limit)
            say(f"{program}, {ranks} ranks")
    rows = [row for machine in MACHINES for row in _rows(machine, runs)]
    return Figure(
        title="2020, Figure 3: communication time on Tianhe-3, simulated",
        setting=f"{CHIPS} chips of 96 nodes in rows of 8, {', '.join(map(str, sizes))} ranks on as many "
        f"nodes drawn at random, one each; a time step in {ROUNDS} rounds; shortest ways adaptively with "
        f"escapes by up*/down*; packets of 2,048 bytes, or as large as makes {most:,}. Machines: "
        "full (a node 1, halves of a chip 24, to a row or column 12) and quarter (1, 6, 3). Averages over "
        f"sizes; each size is in the tables below. OHTMA repeated (on hop-bytes, until it no longer "
        f"improves) and ours (on congestion): at most {limit:g} s of one processor.",
        rows=tuple(rows),
        tables=tuple(_table([one for one in runs if one.machine == machine]) for machine in MACHINES),
    )


def _case(program: str, profile: Profile, most: int, limit: float) -> list[Run]:
    """Map one program at one size once and simulate it on both machines."""
    fabric = tianhe3(6, 8, chips=CHIPS, capacities=MACHINES["full"])
    nodes = np.sort(np.random.default_rng(profile.ranks).choice(fabric.hosts, profile.ranks, replace=False))
    allocation = Allocation.of(fabric, nodes.tolist())
    routes = build_routes("shortest-paths", fabric, allocation.hosts)
    where = Problem(
        profile=profile, allocation=allocation, routes=routes, own_distances=distances(SWITCHES, routes)
    )
    placements = {name: placed_by(text, where) for name, text in STRATEGIES.items()}
    repeated = SearchOptions(
        objective="hop-bytes", strategies=["ohtma+ohtma-exchange:passes=1000"], seconds=limit, workers=1
    )
    by_links = CostModel(routing="shortest-paths")
    with processor_clock():
        placements[REPEATED] = place(
            fabric, profile, allocation, repeated, replace(by_links, distance=SWITCHES)
        )
    found = []
    for machine, capacities in MACHINES.items():
        sent_over = tianhe3(6, 8, chips=CHIPS, capacities=capacities)
        with processor_clock():
            ours = place(sent_over, profile, allocation, SearchOptions(seconds=limit, workers=1), by_links)
        seconds = _seconds(sent_over, profile, {**placements, OURS: ours}, most)
        found.append(Run(machine=machine, program=program, ranks=profile.ranks, seconds=seconds))
    return found


def _seconds(
    fabric: Fabric, profile: Profile, placements: Mapping[str, Placement], most: int
) -> dict[str, float]:
    """Return the simulated seconds of all rounds by placement."""
    packet = max(2048, int(profile.bytes.sum()) // most)
    run = partial(_simulated, fabric, from_profile(profile, ROUNDS), Options(packet_bytes=packet))
    return dict(zip(placements, side_by_side(run, list(placements.values())), strict=True))


def _simulated(fabric: Fabric, messages: Messages, options: Options, placement: Placement) -> float:
    found = simulate(fabric, placement, messages, CostModel(routing=ROUTING), options=options)
    return found.completion_seconds


def _rows(machine: str, runs: list[Run]) -> list[Row]:
    """Return averages over sizes, as in the text, and the largest saving."""
    rows = []
    here = [one for one in runs if one.machine == machine]
    for program in programs():
        several = [one for one in here if one.program == program]
        for baseline in BASELINES:
            changes = [one.change("ohtma", baseline) for one in several]
            key = SAID.get((program, baseline), "")
            rows.append(
                Row(
                    what=f"{program}, {machine}: OHTMA, simulated time",
                    ours=f"{float(np.mean(changes)):.3g} ({span(changes)})",
                    baseline=baseline,
                    paper=key,
                    why=WHY if key else "",
                )
            )
        for name in (REPEATED, OURS):
            changes = [one.change(name, "in-order") for one in several]
            rows.append(
                Row(
                    what=f"{program}, {machine}: {name}, simulated time",
                    ours=f"{float(np.mean(changes)):.3g} ({span(changes)})",
                    baseline="in-order",
                )
            )
    largest = min(one.change("ohtma", "in-order") for one in here)
    rows.append(
        Row(
            what=f"all programs, {machine}: largest saving of OHTMA",
            ours=largest,
            baseline="in-order",
            paper="2020-time-largest",
            why=WHY,
        )
    )
    return rows


def _table(runs: list[Run]) -> Table:
    """Return the changes of each program at each size."""
    return Table(
        title=f"Figure 3 by size, machine {runs[0].machine}: simulated time",
        head=(
            "program",
            "ranks",
            *(f"OHTMA against {name} (%)" for name in BASELINES),
            *(f"{name} against in-order (%)" for name in (REPEATED, OURS)),
            "ours against OHTMA repeated (%)",
        ),
        cells=tuple(
            (
                one.program,
                str(one.ranks),
                *(100 * one.change("ohtma", name) for name in BASELINES),
                *(100 * one.change(name, "in-order") for name in (REPEATED, OURS)),
                100 * one.change(OURS, REPEATED),
            )
            for one in runs
        ),
    )
