"""Measure how cost grows from 64 to 100,000 ranks: time and peak memory of each part, with our targets.

Run ``python -m bench.speed.scale [--only CURVE]... [--largest N]`` in the project's folder; the machine
should do nothing else meanwhile. Every point runs in its own process, once to compile kernels (or load them),
then until `REPEATS` or `PATIENCE`; the shortest time counts. Searches run once. Writes
``bench/results/scale.json``, ``scale.md`` and ``scale.png``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.speed.congestion import Case, congestion, director_tables, mesh, placed_in_order
from bench.support.machine import about, peak_memory_gb, write_record
from bench.support.paths import RESULTS
from bench.support.plots import Curve, Panel, draw
from bench.support.searches import searched
from ingest.generate import nas
from ingest.generate.direct import irregular, percs, torus
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.trees import three_level, tianhe3
from mapping.cost.metrics import evaluate
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import EQUIVALENT, SWITCHES, distances
from mapping.placement.catalog import Chain
from mapping.placement.methods.baselines import in_order
from mapping.placement.problem import Problem
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Fabric, Profile

REPEATS = 5
PATIENCE = 20.0
"""Seconds after which a point is not repeated."""
SEARCH_SECONDS = 55.0
"""Limit of the largest search: set-up and end within a minute."""
SHORT_SECONDS = 10.0
"""Limit of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A curve: what is measured, and at which sizes."""

    sizes: tuple[int, ...]
    measure: Callable[[int], dict[str, float]]
    limits: dict[int, float]
    unit: str = "ranks"


def main(arguments: list[str] | None = None) -> None:
    """Measure every point and record after each."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.scale", description=__doc__)
    parser.add_argument("--only", action="append", choices=sorted(LINES), metavar="CURVE")
    parser.add_argument("--largest", type=int, default=1 << 30, help="leave larger sizes out")
    parser.add_argument("--output", type=Path, default=RESULTS / "scale.json")
    given = parser.parse_args(arguments)
    context = multiprocessing.get_context("spawn")
    curves: dict[str, dict[str, Any]] = {}
    for name in given.only or LINES:
        line = LINES[name]
        points = {}
        for size in line.sizes:
            if size <= given.largest:
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    points[size] = pool.submit(point, name, size).result()
                print(name, size, points[size], file=sys.stderr, flush=True)
        curves[name] = {
            "unit": line.unit,
            "points": points,
            "limits_seconds": {size: limit for size, limit in line.limits.items() if size in points},
        }
        record = {**about(), "curves": curves}
        write_record(given.output, record, markdown(record))
    draw(given.output.with_suffix(".png"), panels(curves))


def point(name: str, size: int) -> dict[str, float]:
    """Measure one point, and this process's peak memory."""
    return {**LINES[name].measure(size), "peak_memory_gb": peak_memory_gb()}


def shortest(work: Callable[[], object]) -> float:
    """Return the shortest time of several calls, in seconds, after one that does not count."""
    begin = time.perf_counter()
    work()
    seconds: list[float] = []
    while not seconds or (len(seconds) < REPEATS and time.perf_counter() - begin < PATIENCE):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def congestion_torus(ranks: int) -> dict[str, float]:
    """Compute exact congestion on a cubic torus, with the ranks of a mesh shuffled."""
    side = round(ranks ** (1 / 3))
    return _congestion(torus((side,) * 3), mesh(ranks, 13 * ranks), slots=1)


def congestion_fat_tree(ranks: int) -> dict[str, float]:
    """Compute exact congestion on a three-level fat tree, five ranks a host, shuffled."""
    return _congestion(fat_tree(ranks), mesh(ranks, 13 * ranks), slots=5)


def congestion_percs(ranks: int) -> dict[str, float]:
    """Compute exact congestion on the first nodes of the PERCS network of 9,248, shuffled."""
    return _congestion(percs(), mesh(ranks, 13 * ranks), slots=1)


def congestion_tables(pairs: int) -> dict[str, float]:
    """Compute exact congestion on forwarding tables of 2,304 hosts, for random pairs."""
    case = director_tables(pairs)
    return {"seconds": shortest(lambda: congestion(case))}


def placement(ranks: int, objective: str) -> dict[str, float]:
    """Place a randomly numbered 3-dimensional stencil on hosts of five slots under a fat tree."""
    fabric, profile = fat_tree(ranks), cube(ranks)
    allocation = Allocation.of(fabric, fabric.hosts[: -(-ranks // 5)].tolist(), 5)
    limit = SEARCH_SECONDS if ranks > 10_000 else SHORT_SECONDS
    start = evaluate(fabric, profile, in_order(ranks, allocation), costs=CostModel(routing="shortest-paths"))
    # A search of its own before the clock starts: kernels are compiled, or loaded.
    searched(fabric, profile, allocation, objective=objective, seconds=0.0)
    begin = time.perf_counter()
    found = searched(fabric, profile, allocation, objective=objective, seconds=limit)
    seconds = time.perf_counter() - begin
    end = evaluate(fabric, profile, found, costs=CostModel(routing="shortest-paths"))
    return {
        "seconds": seconds,
        "hop_bytes_change": end.hop_bytes / start.hop_bytes - 1.0,
        "network_congestion_change": end.network_congestion_seconds / start.network_congestion_seconds - 1.0,
        "congestion_change": end.congestion_seconds / start.congestion_seconds - 1.0,
    }


def placement_hop_bytes(ranks: int) -> dict[str, float]:
    """Run `placement` with the objective hop-bytes."""
    return placement(ranks, "hop-bytes")


def placement_congestion(ranks: int) -> dict[str, float]:
    """Run `placement` with the objective congestion."""
    return placement(ranks, "congestion")


def ohtma(ranks: int) -> dict[str, float]:
    """Run OHTMA alone: LU on the first nodes of Tianhe-3, one rank each, distances computed before."""
    fabric = tianhe3(6, 8)
    allocation = Allocation.of(fabric, fabric.hosts[:ranks].tolist())
    routes = build_routes("shortest-paths", fabric, allocation.hosts)
    problem = Problem(
        profile=nas.lu(ranks, steps=1),
        allocation=allocation,
        routes=routes,
        own_distances=distances(SWITCHES, routes),
    )
    strategy = Chain.parse("ohtma").strategy
    if strategy is None:
        raise SystemExit("ohtma is no strategy")
    place = strategy.strategy()
    return {"seconds": shortest(lambda: place(problem, np.random.default_rng(0)))}


def equivalent(switches: int) -> dict[str, float]:
    """Compute equivalent distances of all pairs of switches of an irregular network, with routes."""
    fabric = irregular(switches, hosts=1)
    name = f"up-down:root={fabric.names[fabric.switches[0]]}"
    return {
        "seconds": shortest(lambda: distances(EQUIVALENT, build_routes(name, fabric, fabric.hosts)).matrix())
    }


def set_up_torus(ranks: int) -> dict[str, float]:
    """Compute routes and distances of a cubic torus, as a search needs them."""
    side = round(ranks ** (1 / 3))
    return _set_up(torus((side,) * 3), slots=1)


def set_up_fat_tree(ranks: int) -> dict[str, float]:
    """Compute routes and distances of a three-level fat tree with five slots a host."""
    return _set_up(fat_tree(ranks), slots=5)


def set_up_percs(hosts: int) -> dict[str, float]:
    """Compute routes and distances of the first of 9,248 PERCS nodes."""
    return _set_up(percs(), slots=1, hosts=hosts)


def fat_tree(ranks: int) -> Fabric:
    """Return a three-level fat tree with one host per five ranks: 20,000 for 100,000."""
    hosts = -(-ranks // 5)
    leaves = max(2, min(20, round((hosts / 2) ** (1 / 3))))
    return three_level(-(-hosts // leaves**2), leaves, leaves)


def cube(ranks: int) -> Profile:
    """Return a nearly cubic 7-point stencil of that many ranks, numbered at random."""
    first = next(n for n in range(round(ranks ** (1 / 3)), 0, -1) if ranks % n == 0)
    rest = ranks // first
    second = next(n for n in range(round(rest**0.5), 0, -1) if rest % n == 0)
    return shuffled(stencil((first, second, rest // second), 7, bytes=1e6), 0)


def markdown(record: dict[str, Any]) -> str:
    """Return all points as one table."""
    lines = ["# How cost grows", "", f"{record['date']}, {record['machine']['processor']}, ", ""]
    lines[2] += f"{record['machine']['cores']} cores. Written by `python -m bench.speed.scale`."
    lines += ["| what | size | seconds | limit | peak GB | beside |", "|---|---|---|---|---|---|"]
    for name, curve in record["curves"].items():
        for size, found in curve["points"].items():
            limit = curve["limits_seconds"].get(size)
            beside = ", ".join(
                f"{key} {value:.3f}" for key, value in found.items() if key.endswith("_change")
            )
            lines.append(
                f"| {name} | {size:,} {curve['unit']} | {found['seconds']:.4f} | "
                f"{'' if limit is None else f'{limit:g}'} | {found['peak_memory_gb']:.2f} | {beside} |"
            )
    return "\n".join(lines) + "\n"


def panels(curves: dict[str, dict[str, Any]]) -> list[Panel]:
    """Plot seconds and memory over the size."""
    drawn = []
    for key, label in (("seconds", "seconds"), ("peak_memory_gb", "peak memory, GB")):
        lines = tuple(
            Curve(
                label=name,
                x=tuple(map(float, curve["points"])),
                y=tuple(max(found[key], 1e-5) for found in curve["points"].values()),
            )
            for name, curve in curves.items()
        )
        drawn.append(Panel(title=label, x="ranks, hosts, pairs or switches", y=label, curves=lines, log=True))
    return drawn


def _congestion(fabric: Fabric, profile: Profile, slots: int) -> dict[str, float]:
    order = np.random.default_rng(0).permutation(profile.ranks)
    case = Case(fabric, profile, placed_in_order(fabric, profile, order, slots=slots))
    return {"seconds": shortest(lambda: congestion(case))}


def _set_up(fabric: Fabric, slots: int, hosts: int | None = None) -> dict[str, float]:
    allocation = Allocation.of(fabric, fabric.hosts[:hosts].tolist(), slots)
    count = len(allocation)
    profile = Profile.from_edges([0], [1], [1.0], ranks=count)

    def build() -> object:
        routes = build_routes("shortest-paths", fabric, allocation.hosts)
        problem = Problem(profile=profile, allocation=allocation, routes=routes)
        return problem.hops, problem.near, routes.flows

    return {"seconds": shortest(build)}


LINES: dict[str, Line] = {
    "exact congestion, torus": Line(
        sizes=(64, 216, 512, 1728, 4096, 8000), measure=congestion_torus, limits={1728: 0.1}
    ),
    "exact congestion, PERCS": Line(
        sizes=(64, 256, 1024, 1792, 9248), measure=congestion_percs, limits={1792: 0.7}
    ),
    "exact congestion, fat tree": Line(
        sizes=(64, 512, 4096, 20_000, 100_000), measure=congestion_fat_tree, limits={100_000: 20.0}
    ),
    "exact congestion, forwarding tables": Line(
        sizes=(1000, 10_000, 100_000), measure=congestion_tables, limits={100_000: 1.0}, unit="pairs"
    ),
    "placement on hop-bytes": Line(
        sizes=(64, 512, 4096, 20_000, 100_000), measure=placement_hop_bytes, limits={100_000: 60.0}
    ),
    "placement on congestion": Line(
        sizes=(64, 512, 4096, 20_000, 100_000), measure=placement_congestion, limits={100_000: 60.0}
    ),
    "OHTMA": Line(sizes=(64, 256, 512, 1024, 2048, 4096), measure=ohtma, limits={512: 0.2}),
    "equivalent distances": Line(
        sizes=(16, 32, 64, 128), measure=equivalent, limits={64: 1.0}, unit="switches"
    ),
    "set-up, torus": Line(
        sizes=(64, 512, 1728, 4096, 8000), measure=set_up_torus, limits={512: 1.5, 1728: 1.5}, unit="hosts"
    ),
    "set-up, PERCS": Line(
        sizes=(1792, 9248), measure=set_up_percs, limits={1792: 1.5, 9248: 4.0}, unit="hosts"
    ),
    "set-up, fat tree": Line(sizes=(512, 4096, 20_000, 100_000), measure=set_up_fat_tree, limits={}),
}

if __name__ == "__main__":
    main()
