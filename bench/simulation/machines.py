"""Simulate communication on BlueGene/P (2011, Figure 6(c)) and Tianhe-3 (2020, Figure 3).

The capacities of Tianhe-3's links and the nodes of its jobs are not published. A time step of each program is
sent in rounds over two machines: as the generator has it, where leaf switches can pass on all that their
nodes send, and with a quarter of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt

import numpy as np

from bench.papers.mapping.mapping_2011 import (
    MATRICES,
    OURS,
    Mapped,
    best_of_three,
    change,
    compare,
    guest,
    span,
)
from bench.papers.mapping.mapping_2011 import Effort as PaperEffort
from bench.papers.mapping.tianhe3 import CHIPS, programs
from bench.simulation.cases import Effort, placed_by, side_by_side
from bench.support.machine import processor_clock
from bench.support.papers import Cell, Figure, Row, Table, claims, progress
from ingest.generate.direct import torus
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

PHASES = 100
CAPACITY = 425e6
NETWORK = Options(packet_bytes=256, latency_seconds=1e-7)
"""Packets of at most 256 bytes, as that machine's torus has them."""
ADAPTIVE = "minimal-adaptive:escape=up-down"
LINKS = 6
"""Of a node; its processors reach all of them at once."""


def blue_gene(effort: Effort) -> Figure:
    """Simulate ranks in order, at random, the best of the paper's three strategies, and ours."""
    sides, phases = ((4, 4, 4), 5) if effort.small else ((8, 8, 8), PHASES)
    fabric = torus(sides, capacity=CAPACITY)
    rows: list[Row] = []
    simulated: dict[str, dict[str, float]] = {}
    for name in MATRICES:
        profile = guest(name, len(fabric.hosts), effort.small)
        searching = PaperEffort(refine_seconds=0.5, search_seconds=0.5) if effort.small else PaperEffort()
        mapped = compare(fabric, profile, searching, search=True)
        best = best_of_three(mapped)
        shown = {"in-order": "in-order", "random": "random", "best of three": best, "ours": OURS}
        times = _times(fabric, profile, {key: mapped[one] for key, one in shown.items()}, phases)
        simulated[name] = times
        rows += _rows_of_blue_gene(name, mapped, times, best)
        progress(f"{name}: {', '.join(f'{key} {value:.3g} s' for key, value in times.items())}")
    gains = [times["best of three"] / times["in-order"] - 1.0 for times in simulated.values()]
    rows.append(Row("all matrices: best of three, simulated time", span(gains), "in-order", "2011-measured"))
    return Figure(
        title="2011, Figure 6(c): communication phases on 512 nodes, simulated",
        setting=f"{'x'.join(map(str, sides))} torus of 425 MB/s links, one rank a node, {phases} phases, "
        f"each begun when the one before is delivered; packets of {NETWORK.packet_bytes} bytes, 100 ns a "
        "link, shortest ways adaptively with escapes by up*/down*; a node's processors reach its six links "
        "by a cable as fast as all of them.",
        rows=tuple(rows),
    )


def with_processors(fabric: Fabric) -> Fabric:
    """Return a direct network with a processor at every node, on a cable as fast as six links.

    Processors have the vertices of the nodes; routers come after them. In a direct network as such a node
    sends one packet at a time.
    """
    nodes, links = len(fabric), fabric.links
    node = np.arange(nodes)
    return Fabric.from_arcs(
        [f"{kind}{n}" for kind in ("processors", "router") for n in range(nodes)],
        np.r_[node, node + nodes, links.source + nodes],
        np.r_[node + nodes, node, links.target + nodes],
        np.r_[np.full(2 * nodes, LINKS * CAPACITY), links.capacity],
        slots=np.repeat((1, 0), nodes),
        forwards=np.repeat((False, True), nodes),
    )


def _on(machine: Fabric, placement: Placement) -> Placement:
    return replace(placement, allocation=Allocation.of(machine, machine.hosts.tolist()))


def _times(fabric: Fabric, profile: Profile, mapped: dict[str, Mapped], phases: int) -> dict[str, float]:
    """Return the simulated seconds of all phases by mapping."""
    machine = with_processors(fabric)
    messages = from_profile(replace(profile, bytes=profile.bytes * phases), phases)
    placements = [_on(machine, one.placement) for one in mapped.values()]
    found = side_by_side(partial(_seconds, machine, messages), placements)
    return dict(zip(mapped, found, strict=True))


def _seconds(fabric: Fabric, messages: Messages, placement: Placement) -> float:
    return simulate(
        fabric, placement, messages, CostModel(routing=ADAPTIVE), options=NETWORK
    ).completion_seconds


def _rows_of_blue_gene(name: str, mapped: dict[str, Mapped], times: dict[str, float], best: str) -> list[Row]:
    rows = []
    for called, key in (("best of three", best), ("ours", OURS)):
        measured, predicted = ("2011-measured", "2011-predicted") if key == best else ("", "")
        gain, claimed = times[called] / times["in-order"] - 1.0, claims()
        why, reason = claimed["2011-measured"].why, claimed["2011-predicted"].why
        what = f"{name}: {called}, time predicted from the worst congestion"
        rows += [
            Row(f"{name}: {called}, simulated time", gain, "in-order", measured, why),
            Row(what, change(mapped, key), "in-order", predicted, reason),
        ]
    over_random = times["best of three"] / times["random"] - 1.0
    return [*rows, Row(f"{name}: best of three, simulated time", over_random, "random")]


STRATEGIES = {
    "in-order": "in-order",
    "round-robin": "round-robin:over=switches",
    "greedy": "greedy",
    "rcm": "rcm:variant=paper",
    "ohtma": "ohtma",
}
BASELINES = ("in-order", "round-robin", "greedy", "rcm")
REPEATED = "ohtma, repeated"
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


def tianhe(effort: Effort) -> Figure:
    """Run all programs and sizes on both machines, with as many scattered nodes as ranks."""
    sizes, most = ((64,), MOST_PACKETS // 20) if effort.small else (SIZES, MOST_PACKETS)
    limit = SMALL_SECONDS if effort.small else SEARCH_SECONDS
    runs: list[Run] = []
    for program, make in programs().items():
        for ranks in sizes:
            if program in ("bt", "sp") and isqrt(ranks) ** 2 != ranks:
                continue
            runs += _case(program, make(ranks), most, limit)
            progress(f"{program}, {ranks} ranks")
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
        seconds = _seconds_tianhe3(sent_over, profile, {**placements, OURS: ours}, most)
        found.append(Run(machine=machine, program=program, ranks=profile.ranks, seconds=seconds))
    return found


def _seconds_tianhe3(
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
        pairs = [("ohtma", "OHTMA", baseline) for baseline in BASELINES]
        for name, called, baseline in [*pairs, *((name, name, "in-order") for name in (REPEATED, OURS))]:
            changes = [one.change(name, baseline) for one in several]
            text = f"{float(np.mean(changes)):.3g} ({span(changes)})"
            key = SAID.get((program, baseline), "") if name == "ohtma" else ""
            rows.append(Row(f"{program}, {machine}: {called}, simulated time", text, baseline, key))
    largest = min(one.change("ohtma", "in-order") for one in here)
    what = f"all programs, {machine}: largest saving of OHTMA"
    return [*rows, Row(what, largest, "in-order", "2020-time-largest")]


def _table(runs: list[Run]) -> Table:
    """Return the changes of each program at each size."""
    rows: list[dict[str, Cell]] = [
        {
            "program": one.program,
            "ranks": str(one.ranks),
            **{f"OHTMA against {name} (%)": 100 * one.change("ohtma", name) for name in BASELINES},
            **{
                f"{name} against in-order (%)": 100 * one.change(name, "in-order")
                for name in (REPEATED, OURS)
            },
            "ours against OHTMA repeated (%)": 100 * one.change(OURS, REPEATED),
        }
        for one in runs
    ]
    return Table.of(f"Figure 3 by size, machine {runs[0].machine}: simulated time", rows)
