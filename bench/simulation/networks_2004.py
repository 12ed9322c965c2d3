"""Reproduce Orduna, Silla and Duato 2004, Figures 8 to 13: traffic and latency of simulated runs by mapping.

The networks A and B of the figures, flits, buffers and the factor by which times were shortened are not
published: twenty random networks, and how many of them satisfy each claim. Traces are shortened so that the
network is offered `OVER` times what it can deliver from our mapping: CG far beyond saturation, as the paper
says of it; SP half, so that bursts saturate the network and pauses do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bench.simulation.cases import Effort, percent, placed_by, problem, side_by_side, span
from bench.support.papers import Figure, Row, progress
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

MORE = 0.6
"""Of throughput, over the best random mapping with locality."""
MOST = 4.0
"""Of throughput, over random mappings; "up to"."""
FOUND = {
    "paper": "the paper's search as printed",
    "thorough": "the paper's coefficient minimised thoroughly",
    "ours": "ours",
}
"""Mappings that are compared with random ones."""
LOCAL, EVERY_RANDOM = "best random mapping with locality", "all random mappings, with locality and without"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Result of a simulated run, with the values that the figures show."""

    throughput: float
    peak_latency: float
    mean_latency: float
    at: tuple[float, ...]
    traffic: tuple[float, ...]
    latency: tuple[float, ...]
    """cycles"""

    @property
    def peak_traffic(self) -> float:
        """Flits a switch and cycle of the fastest point."""
        return max(self.traffic)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """Outcomes of all mappings of a program on a network; `half`: with locality of half of the ranks.

    `coefficient`: mapping coefficient of ``paper``, ``thorough`` and ``ours`` over that of the mapping with
    locality that ran best; empty if not computed.
    """

    random: tuple[Outcome, ...]
    local: tuple[Outcome, ...]
    half: tuple[Outcome, ...]
    paper: Outcome
    thorough: Outcome
    ours: Outcome
    coefficient: Mapping[str, float] = field(default_factory=dict)

    def best(self, several: Sequence[Outcome], *, peak: bool) -> Outcome:
        """Return the outcome with the highest throughput, or with `peak` the lowest peak latency."""
        if peak:
            return min(several, key=lambda one: one.peak_latency)
        return max(several, key=lambda one: one.throughput)

    def gain(self, name: str, against: str, *, peak: bool) -> float:
        """Return throughput (or peak latency) of one of `FOUND` over the best of others, minus one.

        `against`: ``random``, ``local`` or ``half``.
        """
        one: Outcome = getattr(self, name)
        other = self.best(getattr(self, against), peak=peak)
        if peak:
            return one.peak_latency / other.peak_latency - 1.0
        return one.throughput / other.throughput - 1.0

    def over_mean_random(self, name: str) -> float:
        """Return throughput over the mean of the random mappings, minus one."""
        one: Outcome = getattr(self, name)
        return one.throughput / float(np.mean([other.throughput for other in self.random])) - 1.0


def rows_of_coefficients(program: str, several: Sequence[Tried]) -> list[Row]:
    """Compare the mapping coefficients with that of the mapping with locality that ran best."""
    rows = []
    for name, called in FOUND.items():
        ratios = [one.coefficient[name] - 1.0 for one in several]
        what = f"{program}: {called}, mapping coefficient; networks where it is less"
        less = f"{span(ratios)}; {percent(sum(value < 0 for value in ratios), len(ratios))}"
        rows.append(Row(what, less, "random mapping with locality that ran best"))
    return rows


def rows_of_cg(several: Sequence[Tried], program: str = "CG") -> list[Row]:
    """Compare throughput far beyond saturation (Figures 8 and 11)."""
    rows, average = list[Row](), "mean of the random mappings"
    for name, called in FOUND.items():
        local, half, random = (
            [one.gain(name, against, peak=False) for one in several]
            for against in ("local", "half", "random")
        )
        mean = [one.over_mean_random(name) for one in several]
        case, count = f"{program}: {called}", len(several)
        most = f"{max(mean):.3g}; {max(random):.3g}"
        more = percent(sum(value >= MOST for value in mean), count)
        over_all = percent(sum(min(both) > 0 for both in zip(local, random, strict=True)), count)
        up_to = f"{case}, networks with {MOST:.0%} more throughput or more"
        every = f"{case}, networks with more throughput than every random mapping"
        largest = f"{case}, largest gain of throughput over the networks"
        rows += [
            *_rows_of_locality(case, local, half),
            Row(largest, most, f"{average}; best of them", "2004-random"),
            Row(up_to, more, average, "2004-random", 'the paper says "up to"'),
            Row(every, over_all, EVERY_RANDOM, "2004-figure-11"),
        ]
    return rows


def _rows_of_locality(called: str, local: Sequence[float], half: Sequence[float]) -> list[Row]:
    """Compare throughput with random mappings with locality, of all ranks and of half of them."""
    more, key = f"{called}, networks with {MORE:.0%} more throughput or more", "2004-locality"
    enough, enough_half = (percent(sum(v >= MORE for v in gains), len(gains)) for gains in (local, half))
    return [
        Row(more, enough, LOCAL, key),
        Row(f"{called}, throughput", span(local), LOCAL, key),
        Row(more, f"{enough_half}; {span(half)}", f"{LOCAL} of half of the ranks", key),
    ]


def rows_of_sp(several: Sequence[Tried]) -> list[Row]:
    """Compare latency and traffic in bursts (Figures 9, 10, 12 and 13)."""
    rows, lowest, count = list[Row](), "lowest of the random mappings", len(several)
    for name, called in FOUND.items():
        case = f"SP: {called}"
        peak = percent(sum(_lowest(one, name) for one in several), count)
        traffic = percent(sum(_fastest(one, name) for one in several), count)
        local, random = (
            span([one.gain(name, against, peak=True) for one in several]) for against in ("local", "random")
        )
        rows += [
            Row(f"{case}, networks with the lowest peak latency", peak, EVERY_RANDOM, "2004-figure-9"),
            Row(f"{case}, peak latency", local, f"{lowest} with locality", "2004-figure-12"),
            Row(f"{case}, peak latency", random, lowest, "2004-orders"),
            Row(
                f"{case}, networks with the highest traffic at a peak",
                traffic,
                EVERY_RANDOM,
                "2004-figure-13",
            ),
        ]
    return rows


def rows_of_rounds(program: str, several: Sequence[Tried]) -> list[Row]:
    """Compare throughput of a program that sends in rounds."""
    rows = []
    for name, called in FOUND.items():
        gains = [one.gain(name, "local", peak=False) for one in several]
        more = f"{span(gains)}; {percent(sum(value > 0 for value in gains), len(gains))}"
        what = f"{program.upper()}: {called}, throughput; networks where it is more"
        rows.append(Row(what, more, LOCAL, "2004-others"))
    return rows


def _lowest(one: Tried, name: str) -> bool:
    found: Outcome = getattr(one, name)
    return all(found.peak_latency < other.peak_latency for other in (*one.random, *one.local))


def _fastest(one: Tried, name: str) -> bool:
    found: Outcome = getattr(one, name)
    return found.peak_traffic >= max(other.peak_traffic for other in (*one.random, *one.local))


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
    """Mappings of one program on one network."""

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
        progress(f"network {network + 1} of {networks}")
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
    rows, why = [], "the mapping with locality that was best by packets"
    for program, several in by_flits.items():
        for name in FOUND if several else ():
            flits, packets = (
                span([one.gain(name, "local", peak=False) for one in runs])
                for runs in (several, found[program][: len(several)])
            )
            what = f"{program.upper()}, flit by flit: {FOUND[name]}, throughput"
            rows.append(Row(what, flits, f"{LOCAL}; by packets {packets}", why=why))
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
