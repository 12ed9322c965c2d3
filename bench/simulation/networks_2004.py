"""Reproduce Orduna, Silla and Duato 2004, Figures 8 to 13: traffic and latency of simulated runs by mapping.

The networks A and B of the figures, flits, buffers and the factor by which times were shortened are not
published: twenty random networks, and how many of them satisfy each claim. Traces are shortened so that the
network is offered `OVER` times what it can deliver from our mapping: CG far beyond saturation, as the paper
says of it; SP half, so that bursts saturate the network and pauses do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bench.simulation.claims import (
    FOUND,
    Outcome,
    Tried,
    rows_of_cg,
    rows_of_coefficients,
    rows_of_rounds,
    rows_of_sp,
)
from bench.simulation.runs import Effort, percent, placed_by, problem, say, side_by_side, span
from bench.support.figures import Figure, Row
from bench.support.plots import Curve, Panel
from ingest.generate import nas
from ingest.generate.direct import irregular
from ingest.generate.nas import IS_KEYS, MG_POINTS, integer_sort, mg
from mapping.cost.metrics import evaluate
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import EQUIVALENT_2
from mapping.placement.place import place
from mapping.placement.problem import Problem
from mapping.placement.search import SearchOptions
from mapping.simulation.messages import Messages, Options, from_profile, from_trace, saturating_scale
from mapping.simulation.simulate import simulate
from registry.model import Fabric, Placement, Profile
from registry.model.profile import Trace
from registry.model.simulation import FLITS, PACKETS, Simulation

NETWORKS, SWITCHES = 20, 16
DRAWN = 10
"""Random mappings, and as many with locality; the best counts, as in the paper."""
ROUTING = "up-down"
SEARCH = "random-search:packet_bytes=2048"
"""The paper's: its table of communication counts packets (section 2)."""
COSTS = CostModel(routing=ROUTING, packet_bytes=2048)
FLIT_BYTES, CYCLE = 8, 8e-9
CAPACITY = FLIT_BYTES / CYCLE
NETWORK = Options(flit_bytes=FLIT_BYTES, latency_seconds=4 * CYCLE)
OVER = {"cg": 4.0, "sp": 0.5}
"""What is offered, over what the network delivers at most from our mapping."""
AT_ONCE = "cg-at-once"
"""CG with all messages offered at the start: a load that depends on no mapping."""
EVERY = {"cg": 10_000, "sp": 500}
"""Messages a point: the paper's 10,000 for CG; of SP's 15,360 they would leave two points."""
STEPS = 400_000
"""Proposals of our search: the same seed gives the same placement."""
ROUNDS: dict[str, tuple[Callable[[], Profile], int]] = {
    "is": (lambda: integer_sort(64, keys=IS_KEYS["W"]), 11),
    "lu": (lambda: nas.lu(64, points=nas.SIZES["A"], steps=5), 20),
    "mg": (lambda: mg(64, points=MG_POINTS["W"]), 10),
}
"""Programs without a trace: their traffic by generator, and rounds that it is cut into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mappings:
    """Mappings of one program on one network.

    Attributes
    ----------
    random, local : tuple of Placement
    half : tuple of Placement
        With locality of the half of the ranks that talk most; the rest anywhere.
    paper : Placement
        By the paper's random search on its mapping coefficient, which stops as printed.
    thorough : Placement
        By our search on the same coefficient.
    ours : Placement
        By the default search on congestion.
    """

    random: tuple[Placement, ...]
    local: tuple[Placement, ...]
    half: tuple[Placement, ...]
    paper: Placement
    thorough: Placement
    ours: Placement

    def all(self) -> tuple[Placement, ...]:
        """Return the mappings in the order of the fields."""
        return (*self.random, *self.local, *self.half, self.paper, self.thorough, self.ours)


def run(effort: Effort) -> Figure:
    """Run CG and SP by their traces, and IS, LU and MG in rounds, on every network."""
    traces = {program: effort.trace(program) for program in OVER}
    networks, drawn = (2, 3) if effort.small else (NETWORKS, DRAWN)
    with_flits = max(round(effort.flits * networks), 1) if effort.flits > 0 else 0
    found: dict[str, list[Tried]] = {name: [] for name in (*OVER, AT_ONCE, *ROUNDS)}
    by_flits: dict[str, list[Tried]] = {program: [] for program in OVER}
    for network in range(networks):
        fabric = irregular(SWITCHES, capacity=CAPACITY, seed=network)
        for program, trace in traces.items():
            mappings = _mappings(fabric, trace.profile(), network, drawn)
            tried, best = _traced(fabric, program, trace, mappings)
            found[program].append(tried)
            if network < with_flits:
                by_flits[program].append(_by_flits(fabric, program, best))
            if program == "cg":
                messages = from_trace(trace, math.inf)
                found[AT_ONCE].append(_tried(fabric, mappings, messages, EVERY[program], peak=False)[0])
        for program in ROUNDS:
            found[program].append(_in_rounds(fabric, program, network, drawn))
        say(f"network {network + 1} of {networks}")
    rows = [*rows_of_cg(found["cg"]), *rows_of_cg(found[AT_ONCE], "CG, all messages at once")]
    rows += [*rows_of_coefficients("CG", found["cg"]), *rows_of_sp(found["sp"])]
    for program in ROUNDS:
        rows += rows_of_rounds(program, found[program])
    rows += _rows_of_flits(by_flits, found)
    return Figure(
        title="2004, Figures 8 to 13: simulated runs by mapping",
        setting=f"{networks} random networks of {SWITCHES} switches of 8 ports with 4 hosts each, up*/down* "
        "routing, a rank a host. CG and SP: recorded traces of 64 ranks, shortened to "
        f"{OVER['cg']:g} and {OVER['sp']:g} times what the network delivers from our mapping, CG also all at "
        f"once; IS, LU and MG: generated, in rounds. Best of {drawn} random mappings and of {drawn} with "
        "locality; the paper's random search on its mapping coefficient; our search on the same coefficient "
        f"(thoroughly), and on congestion (ours): {STEPS:,} proposals each. Packets of "
        f"{NETWORK.packet_bytes} bytes by virtual cut-through; "
        f"{percent(with_flits, networks)} networks flit by flit (wormhole), too. Flits of {FLIT_BYTES} "
        "bytes, 4 cycles a link.",
        rows=tuple(rows),
        panels=_panels(found, networks),
    )


def _mappings(fabric: Fabric, profile: Profile, network: int, drawn: int) -> Mappings:
    where: Problem = problem(fabric, profile, ROUTING)
    return Mappings(
        random=tuple(placed_by("random", where, seed) for seed in range(drawn)),
        local=tuple(placed_by("random-local", where, seed) for seed in range(drawn)),
        half=tuple(placed_by("random-local:share=0.5", where, seed) for seed in range((drawn + 1) // 2)),
        paper=placed_by(SEARCH, where, network),
        thorough=searched(fabric, profile, where, "mapping-coefficient", network),
        ours=searched(fabric, profile, where, "congestion", network),
    )


def searched(fabric: Fabric, profile: Profile, where: Problem, objective: str, network: int) -> Placement:
    """Return the placement of our search after `STEPS` proposals."""
    options = SearchOptions(objective=objective, steps=STEPS, seed=network, workers=2)
    return place(fabric, profile, where.allocation, options, COSTS)


def _traced(
    fabric: Fabric, program: str, trace: Trace, mappings: Mappings
) -> tuple[Tried, tuple[Messages, list[Placement]]]:
    """Run all mappings under one shortened trace; also return the five that the figures show."""
    full = saturating_scale(trace, partial(simulated, fabric, mappings.ours))
    messages = from_trace(trace, full * OVER[program])
    tried, best = _tried(fabric, mappings, messages, EVERY[program], peak=program == "sp")
    return replace(tried, coefficient=_coefficients(fabric, trace.profile(), best)), (messages, best)


def _coefficients(fabric: Fabric, profile: Profile, best: list[Placement]) -> dict[str, float]:
    """Return the mapping coefficients of the last three mappings over that of the one with locality."""
    _, local, *others = (mapping_coefficient(fabric, profile, one) for one in best)
    return {name: value / local for name, value in zip(FOUND, others, strict=True)}


def mapping_coefficient(fabric: Fabric, profile: Profile, placement: Placement) -> float:
    """Return the paper's mapping coefficient: packets times equivalent distance plus two."""
    costs = replace(COSTS, distance=EQUIVALENT_2)
    return evaluate(fabric, profile, placement, costs=costs).mapping_coefficient or 0.0


def _in_rounds(fabric: Fabric, program: str, network: int, drawn: int) -> Tried:
    make, rounds = ROUNDS[program]
    profile = make()
    mappings = _mappings(fabric, profile, network, drawn)
    messages = from_profile(profile, rounds)
    return _tried(fabric, mappings, messages, len(messages.rank) // 20 + 1, peak=False)[0]


def _tried(
    fabric: Fabric, mappings: Mappings, messages: Messages, every: int, *, peak: bool
) -> tuple[Tried, list[Placement]]:
    """Return outcomes of all mappings; of the random ones the best by throughput or lowest peak latency."""
    several = mappings.all()
    runs = side_by_side(partial(outcome, fabric, messages, every), several)
    one = len(mappings.random)
    two = one + len(mappings.local)
    tried = Tried(
        random=tuple(runs[:one]),
        local=tuple(runs[one:two]),
        half=tuple(runs[two:-3]),
        paper=runs[-3],
        thorough=runs[-2],
        ours=runs[-1],
    )
    best = [
        several[runs.index(tried.best(tried.random, peak=peak))],
        several[runs.index(tried.best(tried.local, peak=peak))],
        mappings.paper,
        mappings.thorough,
        mappings.ours,
    ]
    return tried, best


def _by_flits(fabric: Fabric, program: str, shown: tuple[Messages, list[Placement]]) -> Tried:
    """Run the five mappings that the figures show, flit by flit."""
    messages, best = shown
    runs = side_by_side(partial(outcome, fabric, messages, EVERY[program], mode=FLITS), best)
    random, local, paper, thorough, ours = runs
    return Tried(random=(random,), local=(local,), half=(), paper=paper, thorough=thorough, ours=ours)


def simulated(
    fabric: Fabric, placement: Placement, messages: Messages, every: int = 10_000, mode: str = PACKETS
) -> Simulation:
    """Simulate a mapping under the paper's routing; a point of the curves is `every` messages."""
    return simulate(
        fabric,
        placement,
        messages,
        CostModel(routing=ROUTING),
        mode=mode,
        options=replace(NETWORK, every=every),
    )


def outcome(
    fabric: Fabric, messages: Messages, every: int, placement: Placement, mode: str = PACKETS
) -> Outcome:
    """Simulate a mapping and return the values that the figures show."""
    found = simulated(fabric, placement, messages, every, mode)
    rate = np.diff(found.delivered, prepend=0.0) / np.maximum(np.diff(found.delivered_at, prepend=0.0), CYCLE)
    return Outcome(
        throughput=found.throughput,
        peak_latency=float(found.latency_over_time.max()) / CYCLE,
        mean_latency=found.mean_latency_seconds / CYCLE,
        at=tuple((found.delivered_at / CYCLE).tolist()),
        traffic=tuple((rate / CAPACITY / SWITCHES).tolist()),
        latency=tuple((found.latency_over_time / CYCLE).tolist()),
    )


def _rows_of_flits(by_flits: dict[str, list[Tried]], found: dict[str, list[Tried]]) -> list[Row]:
    """Compare flits with packets on the networks that were simulated both ways."""
    rows = []
    for program, several in by_flits.items():
        for name in FOUND if several else ():
            flits = [one.gain(name, "local", peak=False) for one in several]
            packets = [one.gain(name, "local", peak=False) for one in found[program][: len(several)]]
            rows.append(
                Row(
                    what=f"{program.upper()}, flit by flit: {FOUND[name]}, throughput",
                    ours=span(flits),
                    baseline=f"best random mapping with locality; by packets {span(packets)}",
                    why="the mapping with locality that was best by packets",
                )
            )
    return rows


def _panels(found: dict[str, list[Tried]], networks: int) -> tuple[Panel, ...]:
    """Plot Figures 8 to 13; networks A and B are the first two."""
    panels = []
    for network, letter in list(enumerate("AB"))[:networks]:
        cg, sp = found["cg"][network], found["sp"][network]
        panels += [
            _panel(f"network {letter}, CG", "flits a switch and cycle", cg, "traffic", peak=False),
            _panel(f"network {letter}, SP", "mean latency in cycles", sp, "latency", peak=True),
            _panel(f"network {letter}, SP", "flits a switch and cycle", sp, "traffic", peak=True),
        ]
    return tuple(panels)


def _panel(title: str, y: str, tried: Tried, what: str, *, peak: bool) -> Panel:
    shown: Sequence[tuple[str, Outcome]] = (
        ("random", tried.best(tried.random, peak=peak)),
        ("random with locality", tried.best(tried.local, peak=peak)),
        *((called, getattr(tried, name)) for name, called in FOUND.items()),
    )
    curves = tuple(
        Curve(label=label, x=tuple(cycle / 1000 for cycle in one.at), y=getattr(one, what))
        for label, one in shown
    )
    return Panel(title=title, x="thousands of cycles", y=y, curves=curves)
