"""Measure the speed and memory of simulated runs on one core, without compilation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.simulation.cases import Effort
from bench.simulation.networks_2004 import CAPACITY, NETWORK
from bench.support.machine import peak_memory_gb
from bench.support.papers import Figure, Row, progress
from ingest.generate.direct import irregular, torus
from ingest.generate.trees import k_ary_n_tree
from mapping.placement.methods.baselines import random_placement
from mapping.simulation.messages import Messages, Options, check_messages, from_profile, from_trace
from mapping.simulation.network import build_channel_routes
from mapping.simulation.replay import new_level
from registry.model import Allocation, Fabric, Profile
from registry.model.simulation import FLITS, PACKETS

PARTNERS, MESSAGE_BYTES, MESSAGES = 16, 4 * 2048, 4
GOAL_HOPS, GOAL_SECONDS = 2e6, 20.0
PACKET_BYTES = 8 * 8 + 8
"""Of a packet in memory: its row and when its tail comes; beside it four bytes of the list of free rows."""
REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One simulated case."""

    name: str
    fabric: Callable[[], Fabric]
    routing: str
    messages: Callable[[int], Messages]
    mode: str = PACKETS
    options: Options | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Processor seconds to set up and to run; links crossed, capacity in packets, messages."""

    setting_up: float
    running: float
    hops: int
    room: int
    messages: int
    simulated: float

    @property
    def rate(self) -> float:
        """Return millions of hops per second of processor time."""
        return self.hops / max(self.running, 1e-9) / 1e6


def run(effort: Effort) -> Figure:
    """Run each case once to load or compile kernels, then take the median of some runs."""
    rows: list[Row] = []
    for case in _cases(effort):
        measure(case)
        several = [measure(case) for _ in range(1 if effort.small else REPEATS)]
        found = sorted(several, key=lambda one: one.running)[len(several) // 2]
        rows += _rows(case, found)
        progress(f"{case.name}: {found.rate:.2f} million hops a second, {found.running:.1f} s")
    rows.append(Row(what="largest resident memory of the whole run", ours=peak_memory_gb(), baseline="GB"))
    return Figure(
        title="Speed of simulated runs",
        setting=f"One core; processor time without compilation, the median of {REPEATS} runs. Uniform: "
        f"every rank sends {PARTNERS} others, drawn anew for each, {MESSAGES} messages of "
        f"{MESSAGE_BYTES:,} bytes, in packets of 2,048. Aimed for: {GOAL_HOPS / 1e6:g} million packet hops "
        f"a second, the trace of CG in less than {GOAL_SECONDS:g} s.",
        rows=tuple(rows),
    )


def measure(case: Case) -> Measured:
    """Simulate a case once, in slices, as ``mapping.simulation.simulate`` does."""
    fabric = case.fabric()
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    messages = check_messages(case.messages(len(allocation)), len(allocation))
    options = case.options or Options()
    begin = time.process_time()
    placement = random_placement(len(allocation), allocation, 0)
    hosts = np.unique(placement.host_of_rank)
    ways = build_channel_routes(case.routing, fabric, hosts)
    level = new_level(fabric, placement, messages, ways, options, mode=case.mode, seed=0)
    ready = time.process_time()
    while level.advance():
        pass
    done = time.process_time()
    if not bool(level.senders.delivered.all()):
        raise RuntimeError(f"{case.name}: not all messages are delivered")
    return Measured(
        setting_up=ready - begin,
        running=done - ready,
        hops=level.hops,
        room=level.room,
        messages=len(messages.rank),
        simulated=float(level.senders.points()[-1, 0]),
    )


def uniform(ranks: int) -> Messages:
    """Return traffic in which every rank sends to several others, drawn at random."""
    generator = np.random.default_rng(ranks)
    source = np.repeat(np.arange(ranks), PARTNERS)
    target = (source + generator.integers(1, ranks, len(source))) % ranks
    profile = Profile.from_edges(source, target, np.full(len(source), MESSAGES * MESSAGE_BYTES), ranks=ranks)
    return from_profile(profile, MESSAGES, barrier=False)


def _cases(effort: Effort) -> list[Case]:
    """Return uniform traffic by size, then the traces."""
    cases = [
        _uniform("torus 4x4x4", lambda: torus((4, 4, 4), capacity=1e9), "dimension-order"),
        _uniform("fat tree, 64 hosts", lambda: k_ary_n_tree(8, 2, capacity=1e9), "up-down"),
    ]
    if not effort.small:
        cases += [
            _uniform("torus 8x8x8", lambda: torus((8, 8, 8), capacity=1e9), "dimension-order"),
            _uniform("torus 8x8x8, adaptive", lambda: torus((8, 8, 8), capacity=1e9), "minimal-adaptive"),
            _uniform("fat tree, 512 hosts", lambda: k_ary_n_tree(8, 3, capacity=1e9), "up-down"),
            _uniform("fat tree, 4,096 hosts", lambda: k_ary_n_tree(16, 3, capacity=1e9), "up-down"),
        ]
    if effort.traces is None:
        return cases
    for program in ("cg", "sp"):
        messages = from_trace(effort.trace(program), np.inf)
        for mode in (PACKETS, FLITS):
            cases.append(
                Case(
                    name=f"{program.upper()}'s trace by {mode}",
                    fabric=lambda: irregular(16, capacity=CAPACITY),
                    routing="up-down",
                    messages=partial(_given, messages),
                    mode=mode,
                    options=NETWORK,
                )
            )
    return cases


def _given(messages: Messages, _ranks: int) -> Messages:
    return messages


def _uniform(name: str, fabric: Callable[[], Fabric], routing: str) -> Case:
    return Case(name=name, fabric=fabric, routing=routing, messages=uniform)


def _rows(case: Case, found: Measured) -> list[Row]:
    what = "flit" if case.mode == FLITS else "packet"
    goal = f" (aimed for: {GOAL_HOPS / 1e6:g})" if case.mode == PACKETS else ""
    limit = f" (aimed for: less than {GOAL_SECONDS:g})" if case.name.startswith("CG") else ""
    memory = found.room * PACKET_BYTES / 1e6
    ready, room = f"seconds{limit}; set up in {found.setting_up:.2f} s", f"{found.room:,}"
    sizes = f"{memory:.3g} MB; {found.messages:,} messages, {found.hops:,} hops"
    return [
        Row(f"{case.name}: {what} hops", found.rate, f"millions a second{goal}"),
        Row(f"{case.name}: time", found.running, ready),
        Row(f"{case.name}: packets that there was room for at most", room, sizes),
    ]
