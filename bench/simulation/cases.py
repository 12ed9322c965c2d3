"""Shared parts of the simulated runs: effort, traces, fabrics, programs, placements, rank statistics."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.stats import rankdata

from bench.support import paths
from bench.support.instances import real
from bench.support.papers import PartSkipped
from bench.support.paths import DATA
from bench.support.searches import searched
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.profiles.edges import TRACE_CSV
from ingest.formats.routes import OPENSM_LFTS
from ingest.generate.direct import irregular, torus
from ingest.options import Options as Reading
from ingest.reading.source import read_paths
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import EQUIVALENT_2, LINKS, distances
from mapping.placement.catalog import Chain
from mapping.placement.problem import Problem
from mapping.routing.catalog import build_routes
from mapping.simulation.messages import Messages, from_profile, from_trace
from mapping.simulation.simulate import simulate
from registry.model import Allocation, Fabric, Floats, Longs, Placement, Profile
from registry.model.profile import Trace

RESULTS = paths.RESULTS / "simulation"
TRACES = {"cg": "trace_npb_cg_S_64.csv.xz", "sp": "trace_npb_sp_A_it5_64.csv.xz"}
"""Files of the folder of traces, by program."""
Case = TypeVar("Case")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Limits of a run."""

    small: bool = False
    traces: Path | None = None
    flits: float = 0.1

    def to_json(self) -> dict[str, Any]:
        """Return the effort for the record, without the folder of the traces."""
        return {"small": self.small, "traces": self.traces is not None, "flits": self.flits}

    def trace(self, program: str) -> Trace:
        """Return the trace of a program at 64 ranks; only its first messages if the effort is small.

        Raises:
            PartSkipped
        """
        if self.traces is None:
            raise PartSkipped("it needs --traces FOLDER")
        path = self.traces / TRACES[program]
        if not path.exists():
            raise PartSkipped(f"{self.traces} has no {TRACES[program]}")
        found = _read(path)
        return found.first(6_000) if self.small else found


@cache
def _read(path: Path) -> Trace:
    (recording,) = read_paths([path])
    found = TRACE_CSV.parse(recording.files, Reading()).traces[0]
    assert found is not None
    return found


def problem(fabric: Fabric, profile: Profile, routing: str, distance: str = EQUIVALENT_2) -> Problem:
    """Return the problem of a profile on all hosts of a fabric, one rank each, with the given distances."""
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    routes = build_routes(routing, fabric, allocation.hosts)
    return Problem(
        profile=profile, allocation=allocation, routes=routes, own_distances=distances(distance, routes)
    )


def placed_by(text: str, where: Problem, seed: int = 0) -> Placement:
    """Return the placement of a strategy with its options, such as ``greedy:starts=8``, run once."""
    link = Chain.parse(text).strategy
    if link is None:
        raise ValueError(f"{text} does not begin with a strategy")
    hosts = link.strategy()(where, np.random.default_rng(seed))
    return Placement(
        host_of_rank=where.allocation.hosts[hosts], allocation=where.allocation, strategy=text, seed=seed
    )


def side_by_side(run: Callable[[Case], Result], cases: Sequence[Case]) -> list[Result]:
    """Run the cases on all cores and return results in their order; kernels release the lock."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(run, cases))


def percent(part: int, whole: int) -> str:
    """Format a share such as ``18 of 20 (90%)``."""
    return f"{part} of {whole} ({part / max(whole, 1):.0%})"


def span(values: Sequence[float]) -> str:
    """Format median, least and most of several numbers."""
    return f"median {np.median(values):.3g}, {min(values):.3g} to {max(values):.3g}"


INTERVAL = (2.5, 97.5)
"""Percentiles of resamples between which a coefficient is given."""


def spearman(x: Floats, y: Floats) -> Floats:
    """Return Spearman's rho along the last axis, ties sharing their ranks; 0 if all values are equal."""
    a, b = (np.asarray(rankdata(values, axis=-1), np.float64) for values in (x, y))
    a, b = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (a, b))
    return _over((a * b).sum(axis=-1), (a * a).sum(axis=-1), (b * b).sum(axis=-1))


def kendall(x: Floats, y: Floats) -> Floats:
    """Return Kendall's tau-b along the last axis; 0 if all values are equal."""
    a, b = (_signs(np.asarray(values, np.float64)) for values in (x, y))
    return _over(_summed(a, b), _summed(a, a), _summed(b, b))


def draws(n: int, many: int, generator: np.random.Generator) -> Longs:
    """Return resamples of cases with replacement (int64[many, n])."""
    return generator.integers(n, size=(many, n))


def interval(values: Floats) -> tuple[float, float]:
    """Return the ends of the interval of resampled values."""
    low, high = np.percentile(values, INTERVAL)
    return float(low), float(high)


def _over(both: Floats, one: Floats, other: Floats) -> Floats:
    scale = np.sqrt(one * other)
    return np.divide(both, scale, out=np.zeros_like(scale), where=scale > 0)


def _signs(values: Floats) -> np.ndarray:
    return np.sign(values[..., :, None] - values[..., None, :]).astype(np.int8)


def _summed(one: np.ndarray, other: np.ndarray) -> Floats:
    return np.asarray((one * other).sum(axis=(-2, -1), dtype=np.int64), np.float64)


SENT_ROUNDS = 10
FAT_TREE = DATA / "infiniband" / "fattree2-64-ftree"


class Setting(NamedTuple):
    """A program on a fabric, by their names, and how it is simulated."""

    fabric_name: str
    fabric: Fabric
    routing: str
    program: str
    profile: Profile
    messages: Messages

    def seconds(self, placements: Sequence[Placement]) -> list[float]:
        """Return simulated completion times."""
        return side_by_side(self._seconds, placements)

    def _seconds(self, placement: Placement) -> float:
        return simulate(
            self.fabric, placement, self.messages, CostModel(routing=self.routing)
        ).completion_seconds


def settings(effort: Effort) -> Iterator[Setting]:
    """Return every program on every fabric."""
    sends = programs(effort)
    for name, (fabric, routing) in fabrics().items():
        for program, (profile, messages) in sends.items():
            yield Setting(name, fabric, routing, program, profile, messages)


def fabrics() -> dict[str, tuple[Fabric, str]]:
    """Return fabrics of 64 hosts with the routing that is simulated."""
    return {
        "irregular, up*/down*": (irregular(16, capacity=1e9), "up-down"),
        "torus 4x4x4, dimension order": (torus((4, 4, 4), capacity=1e9), "dimension-order"),
        "fat tree, tables of a subnet manager": (fat_tree(), "tables"),
    }


def fat_tree() -> Fabric:
    """Return 64 hosts on 12 switches with the forwarding tables that opensm's ftree engine wrote."""
    (scan,), (tables,) = (read_paths([FAT_TREE / name]) for name in ("ibnetdiscover.txt", "opensm-lfts.dump"))
    fabric = IBNETDISCOVER.parse(scan.files, Reading()).fabric
    assert fabric is not None
    return replace(fabric, tables=OPENSM_LFTS.parse(tables.files, Reading()).tables)


def programs(effort: Effort) -> dict[str, tuple[Profile, Messages]]:
    """Return traces sent at once, if there are any, and recorded profiles in rounds."""
    found: dict[str, tuple[Profile, Messages]] = {}
    for program, recorded in (("cg", "npb_cg_S_64"), ("sp", "npb_sp_A_it5_64")):
        try:
            trace = effort.trace(program)
            found[f"{program}, trace"] = trace.profile(), from_trace(trace, np.inf)
        except PartSkipped:
            profile = real(recorded)
            found[f"{program}, rounds"] = profile, from_profile(profile, SENT_ROUNDS)
    for program, recorded in (("hpcg", "hpcg_16_64"), ("lulesh", "lulesh_s5_i10_64")):
        profile = real(recorded)
        found[f"{program}, rounds"] = profile, from_profile(profile, SENT_ROUNDS)
    return found


def sent(effort: Effort) -> str:
    """Describe how programs send."""
    rounds = f"as recorded, in {SENT_ROUNDS} rounds, each begun when the one before is delivered"
    if effort.traces is None:
        return f"CG, SP, HPCG and LULESH {rounds}"
    return (
        "traces of CG and SP with all messages offered at once, in each rank's order; "
        f"HPCG and LULESH {rounds}"
    )


RULES = (
    *("in-order", "round-robin:over=switches"),
    *("greedy", "greedy:near=last", "greedy:starts=8", "greedy:by=congestion"),
    *("rcm", "recursive-bisection", "multilevel", "spectral", "ohtma", "random-search"),
)
SEARCHES = {
    "hop-bytes": "random+pair-exchange",
    "congestion": "random+congestion-descent",
    "mapping-coefficient": "random+pair-exchange",
}
"""The chain that each objective is searched with, from a random placement."""
STEPS = {
    "hop-bytes": (100, 300, 1_000, 3_000, 10_000, 100_000),
    "congestion": (100, 300, 1_000, 3_000, 10_000, 100_000),
    "mapping-coefficient": (1_000, 100_000),
}
SEEDS = {"hop-bytes": 2, "congestion": 2, "mapping-coefficient": 1}
EXCHANGES = (1, 2, 4, 8, 16)
DRAWN, HALF_LOCAL = 10, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A placement and its kind."""

    kind: str
    placement: Placement


def of_every_kind(fabric: Fabric, profile: Profile, routing: str, *, small: bool = False) -> list[Made]:
    """Return 72 placements of a profile on all hosts of a fabric, one rank each (15 if small)."""
    where = problem(fabric, profile, routing, LINKS)
    drawn, half, rules = (2, 1, RULES[:3]) if small else (DRAWN, HALF_LOCAL, RULES)
    found = [Made(kind="random", placement=placed_by("random", where, seed)) for seed in range(drawn)]
    found += [
        Made(kind="random-local", placement=placed_by("random-local", where, seed)) for seed in range(drawn)
    ]
    found += [
        Made(kind="random, half local", placement=placed_by("random-local:share=0.5", where, seed))
        for seed in range(half)
    ]
    found += [Made(kind=text, placement=placed_by(text, where)) for text in rules]
    last: dict[str, Placement] = {}
    for objective in SEARCHES:
        for tried in _searched(fabric, profile, where, routing, objective, small):
            last[objective] = tried.placement
            found.append(tried)
    generator = np.random.default_rng(0)
    for objective in ("hop-bytes", "congestion"):
        for count in EXCHANGES[:1] if small else EXCHANGES:
            spoilt = exchanged(last[objective], count, generator)
            found.append(Made(kind=f"{objective}, {count} pairs exchanged", placement=spoilt))
    return found


def exchanged(placement: Placement, count: int, generator: np.random.Generator) -> Placement:
    """Return the placement after random pairs of ranks have swapped hosts."""
    hosts = placement.host_of_rank.copy()
    for _ in range(count):
        pair = generator.choice(len(hosts), 2, replace=False)
        hosts[pair] = hosts[pair[::-1]]
    return replace(placement, host_of_rank=hosts, strategy=f"{placement.strategy} exchanged")


def _searched(
    fabric: Fabric, profile: Profile, where: Problem, routing: str, objective: str, small: bool
) -> Iterator[Made]:
    """Run searches of growing length, each from its own start."""
    steps, seeds = (STEPS[objective][::4], 1) if small else (STEPS[objective], SEEDS[objective])
    for count in steps:
        for seed in range(seeds):
            placement = searched(
                fabric,
                profile,
                where.allocation,
                routing=routing,
                objective=objective,
                strategies=[SEARCHES[objective]],
                steps=count,
                seed=seed,
                workers=1,
            )
            yield Made(kind=f"{objective}, {count:,} proposals", placement=placement)
