"""Compare the paper's search of 2004 with ours at equal CPU time, on the networks of Figures 8 to 13.

The paper's search stops after 10 seeds of 40 failures, within milliseconds. Here it is also restarted from
new seeds until the CPU time of our search on congestion is over: with 40 failures, and with 4,000, since the
paper calls both "a given number". The mapping with the lowest coefficient is simulated. CG sends all messages
at once, a load that depends on no mapping; SP half of what the network delivers from our mapping.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench.papers.mapping.random_search import MANY, Restarted, restarted
from bench.simulation.cases import Effort, percent, placed_by, problem, side_by_side, span
from bench.simulation.networks_2004 import (
    CAPACITY,
    DRAWN,
    EVERY,
    EVERY_RANDOM,
    FOUND,
    LOCAL,
    MORE,
    NETWORKS,
    OVER,
    ROUTING,
    STEPS,
    SWITCHES,
    Outcome,
    mapping_coefficient,
    outcome,
    searched,
    simulated,
)
from bench.support.papers import Figure, Row, progress
from ingest.generate.direct import irregular
from mapping.placement.problem import Problem
from mapping.simulation.messages import from_trace, saturating_scale
from registry.model import Fabric, Placement, Profile
from registry.model.profile import Trace

PACKET = 2_048.0
SEARCHES = {
    "printed": FOUND["paper"],
    "bytes": "the paper's search as printed, counting bytes",
    "restarted": "the paper's search from new seeds for the CPU time of ours",
    "longer": f"the same with {MANY:,} failures in a row",
    "thorough": FOUND["thorough"],
    "ours": FOUND["ours"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Mapping of a search, with the CPU time that it took and the seeds that it started from (0: ours)."""

    placement: Placement
    seconds: float
    seeds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A search on one network against random mappings."""

    searched: Searched
    coefficient: float
    gain: float
    """mapping with locality that ran best, minus one"""
    lowest: bool


def run(effort: Effort) -> Figure:
    """Compare the searches on every network with CG and SP."""
    traces = {program: effort.trace(program) for program in OVER}
    networks, drawn = (2, 3) if effort.small else (NETWORKS, DRAWN)
    found: dict[str, list[dict[str, Compared]]] = {program: [] for program in OVER}
    for network in range(networks):
        fabric = irregular(SWITCHES, capacity=CAPACITY, seed=network)
        for program, trace in traces.items():
            where = problem(fabric, trace.profile(), ROUTING)
            if network == 0:
                _searches(fabric, where, network)  # compiles the kernels
            searches = _searches(fabric, where, network)
            found[program].append(_compare(fabric, program, trace, searches, drawn))
        progress(f"network {network + 1} of {networks}")
    return Figure(
        title="2004 at equal CPU time: the paper's search and ours",
        setting=f"{networks} random networks of {SWITCHES} switches of 8 ports with 4 hosts each, up*/down* "
        "routing, a rank a host. Recorded traces of 64 ranks: CG with all messages at once, SP shortened to "
        f"{OVER['sp']:g} times what the network delivers from our mapping. Our searches: {STEPS:,} proposals "
        "on two threads, CPU time of both, preparation included. The paper's: 10 seeds of 40 failures at a "
        "time, until the CPU time of ours on congestion is over, preparation not included. Best of "
        f"{drawn} random mappings and of {drawn} with locality. Packets of {PACKET:g} bytes by virtual "
        "cut-through.",
        rows=(*rows_of_cg(found["cg"]), *rows_of_sp(found["sp"])),
    )


def _searches(fabric: Fabric, where: Problem, network: int) -> dict[str, Searched]:
    """Run all searches on one network, one after the other; in the order of `SEARCHES`."""
    profile = where.profile
    ours = _timed(fabric, profile, where, "congestion", network)
    thorough = _timed(fabric, profile, where, "mapping-coefficient", network)
    again = partial(restarted, where, network)
    return {
        "printed": _of(where, again(packet_bytes=PACKET)),
        "bytes": _of(where, again()),
        "restarted": _of(where, again(ours.seconds, packet_bytes=PACKET)),
        "longer": _of(where, again(ours.seconds, failures=MANY, packet_bytes=PACKET)),
        "thorough": thorough,
        "ours": ours,
    }


def _timed(fabric: Fabric, profile: Profile, where: Problem, objective: str, network: int) -> Searched:
    begin = time.process_time()
    placement = searched(fabric, profile, where, objective, network)
    return Searched(placement=placement, seconds=time.process_time() - begin)


def _of(where: Problem, found: Restarted) -> Searched:
    hosts = where.allocation.hosts[found.host_of_rank]
    placement = Placement(host_of_rank=hosts, allocation=where.allocation, strategy="random-search")
    return Searched(placement=placement, seconds=found.seconds, seeds=found.seeds)


def _compare(
    fabric: Fabric, program: str, trace: Trace, searches: dict[str, Searched], drawn: int
) -> dict[str, Compared]:
    """Simulate all mappings and the random ones of a program."""
    profile, peak, scale = trace.profile(), program == "sp", math.inf
    if peak:
        scale = OVER[program] * saturating_scale(
            trace, partial(simulated, fabric, searches["ours"].placement)
        )
    where = problem(fabric, profile, ROUTING)
    random = [placed_by(name, where, seed) for name in ("random-local", "random") for seed in range(drawn)]
    several = [*random, *(one.placement for one in searches.values())]
    runs = side_by_side(partial(outcome, fabric, from_trace(trace, scale), EVERY[program]), several)
    value = _peak if peak else _throughput
    best = (min if peak else max)(range(drawn), key=lambda one: value(runs[one]))
    local = mapping_coefficient(fabric, profile, random[best])
    return {
        name: Compared(
            searched=one,
            coefficient=mapping_coefficient(fabric, profile, one.placement) / local - 1.0,
            gain=value(ran) / value(runs[best]) - 1.0,
            lowest=all(ran.peak_latency < other.peak_latency for other in runs[: len(random)]),
        )
        for (name, one), ran in zip(searches.items(), runs[len(random) :], strict=True)
    }


def _peak(one: Outcome) -> float:
    return one.peak_latency


def _throughput(one: Outcome) -> float:
    return one.throughput


def rows_of_cg(found: list[dict[str, Compared]]) -> list[Row]:
    """Return rows on throughput beyond saturation (Figures 8 and 11)."""
    rows = []
    for name, called in SEARCHES.items():
        several, case = [one[name] for one in found], f"CG: {called}"
        enough = percent(sum(one.gain >= MORE for one in several), len(several))
        key = "2004-length" if name == "bytes" else "2004-locality"
        more = f"{case}, networks with {MORE:.0%} more throughput or more"
        gain = span([one.gain for one in several])
        rows += [Row(more, enough, LOCAL, key), Row(f"{case}, throughput", gain, LOCAL, key)]
        rows += _rows_of_search(case, several)
    return rows


def rows_of_sp(found: list[dict[str, Compared]]) -> list[Row]:
    """Return rows on latency in bursts (Figures 9 and 12)."""
    rows = []
    for name, called in SEARCHES.items():
        several, case = [one[name] for one in found], f"SP: {called}"
        lowest = percent(sum(one.lowest for one in several), len(several))
        gain, best = span([one.gain for one in several]), f"{LOCAL} (lowest peak latency)"
        keys = ("2004-length",) * 2 if name == "bytes" else ("2004-figure-9", "2004-figure-12")
        rows += [
            Row(f"{case}, networks with the lowest peak latency", lowest, EVERY_RANDOM, keys[0]),
            Row(f"{case}, peak latency", gain, best, keys[1]),
            *_rows_of_search(case, several),
        ]
    return rows


def _rows_of_search(what: str, several: list[Compared]) -> Iterator[Row]:
    """Yield rows on the coefficient, the CPU time and the seeds of a search."""
    yield Row(f"{what}, mapping coefficient", span([one.coefficient for one in several]), LOCAL)
    yield Row(f"{what}, CPU time", span([one.searched.seconds for one in several]), "s")
    if several[0].searched.seeds:
        yield Row(f"{what}, seeds", span([one.searched.seeds for one in several]))
