"""Reproduce Hoefler and Snir 2011, Figure 6(c): simulate 100 communication phases on a BlueGene/P.

Each phase sends what one product of the matrix with a vector sends, and begins when the one before is
delivered.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

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
from bench.simulation.runs import Effort, say, side_by_side
from bench.support.figures import Effort as PaperEffort
from bench.support.figures import Figure, Row
from ingest.generate.direct import torus
from mapping.distances.cost_model import CostModel
from mapping.simulation.messages import Messages, Options, from_profile
from mapping.simulation.simulate import simulate
from registry.model import Allocation, Fabric, Placement, Profile

PHASES = 100
CAPACITY = 425e6
NETWORK = Options(packet_bytes=256, latency_seconds=1e-7)
"""Packets of at most 256 bytes, as that machine's torus has them."""
ROUTING = "minimal-adaptive:escape=up-down"
LINKS = 6
"""Of a node; its processors reach all of them at once."""
WHY = (
    "the machine's packets go by adaptive shortest ways, as here; what a node does besides sending is not "
    "simulated; matrices as generated"
)


def run(effort: Effort) -> Figure:
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
        rows += _rows(name, mapped, times, best)
        say(f"{name}: {', '.join(f'{key} {value:.3g} s' for key, value in times.items())}")
    gains = [times["best of three"] / times["in-order"] - 1.0 for times in simulated.values()]
    rows.append(
        Row(
            what="all matrices: best of three, simulated time",
            ours=span(gains),
            baseline="in-order",
            paper="2011-measured",
            why=WHY,
        )
    )
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
        fabric, placement, messages, CostModel(routing=ROUTING), options=NETWORK
    ).completion_seconds


def _rows(name: str, mapped: dict[str, Mapped], times: dict[str, float], best: str) -> list[Row]:
    rows = []
    for called, key in (("best of three", best), ("ours", OURS)):
        rows += [
            Row(
                what=f"{name}: {called}, simulated time",
                ours=times[called] / times["in-order"] - 1.0,
                baseline="in-order",
                paper="2011-measured" if called == "best of three" else "",
                why=WHY,
            ),
            Row(
                what=f"{name}: {called}, time predicted from the worst congestion",
                ours=change(mapped, key),
                baseline="in-order",
                paper="2011-predicted" if called == "best of three" else "",
                why="exact congestion over all shortest paths",
            ),
        ]
    rows.append(
        Row(
            what=f"{name}: best of three, simulated time",
            ours=times["best of three"] / times["random"] - 1.0,
            baseline="random",
        )
    )
    return rows
