"""Measure time and peak memory of exact congestion, of the set-up of a search, and of lower bounds.

Run ``python -m bench.speed.congestion`` in the project's folder. Every case runs in its own process: first
once to compile the kernels (or load them from their cache), then seven times. The shortest time counts, since
other processes only add to it. Routes are built anew each time. Writes ``bench/results/congestion.json``.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from bench.support.machine import about, peak_memory_gb, write_record
from bench.support.paths import RESULTS
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.generate.direct import percs, torus
from ingest.generate.trees import three_level
from ingest.options import Options
from ingest.reading.source import SourceFile
from ingest.writers import director_tree, forwarding_tables, ibnetdiscover_text
from mapping.cost.bounds.catalog import lower_bounds
from mapping.cost.metrics import evaluate_traffic
from mapping.routing.catalog import build_routes
from mapping.routing.network import host_traffic
from registry.model import Allocation, Fabric, Longs, Placement, Profile

RECORD = RESULTS / "congestion.json"
REPEATS = 7


class Case(NamedTuple):
    """A placement on a fabric."""

    fabric: Fabric
    profile: Profile
    placement: Placement
    routing: str = "shortest-paths"


def main() -> None:
    """Run every case and record the results."""
    context = multiprocessing.get_context("spawn")
    results = {}
    for name in CASES:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            results[name] = pool.submit(measure, name).result()
        print(name, results[name], file=sys.stderr)
    record = {**about(), "cases": results}
    write_record(RECORD, record)


def measure(name: str) -> dict[str, float]:
    """Return sizes, shortest seconds after compilation and peak memory of one case."""
    case = CASES[name]()
    fabric, profile, placement, routing = case
    allocation = placement.allocation
    found: dict[str, float] = {
        "vertices": len(fabric),
        "links": len(fabric.links),
        "ranks": profile.ranks,
        "pairs": profile.pairs,
    }
    found["congestion_seconds"] = shortest(lambda: congestion(case))
    found["peak_memory_gb"] = peak_memory_gb()
    if len(allocation) <= MAX_SET_UP:
        found["distances_seconds"] = shortest(
            lambda: build_routes(routing, fabric, allocation.hosts).distances
        )
        found["flow_arrays_seconds"] = shortest(lambda: build_routes(routing, fabric, allocation.hosts).flows)
        routes = build_routes(routing, fabric, allocation.hosts)
        found["bounds_seconds"] = shortest(lambda: lower_bounds(routes, profile, allocation))
        found["peak_memory_set_up_gb"] = peak_memory_gb()
    return found


MAX_SET_UP = 10_000
"""Most hosts for which matrices of all pairs of hosts are measured."""


def congestion(case: Case) -> float:
    """Compute exact congestion, given only the fabric and the placement."""
    traffic = host_traffic(case.profile, case.placement)
    routes = build_routes(case.routing, case.fabric, traffic.hosts)
    return evaluate_traffic(routes, traffic, float(case.profile.bytes.sum())).congestion_seconds


def shortest(work: Callable[[], object]) -> float:
    """Return the shortest time of `REPEATS` calls, in seconds, after one that does not count."""
    work()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return round(min(seconds), 4)


def mesh(ranks: int, pairs: int) -> Profile:
    """Return a finite-element-like guest: scattered points whose nearest neighbours communicate."""
    side = round(ranks ** (1 / 3))
    rng = np.random.default_rng(0)
    lattice = np.stack(np.unravel_index(np.arange(ranks), (side, side, -(-ranks // side**2))), axis=1)
    points = lattice + rng.normal(0, 0.3, lattice.shape)
    near = cKDTree(points).query_pairs(2.2, output_type="ndarray")
    length = np.linalg.norm(points[near[:, 0]] - points[near[:, 1]], axis=1)
    a, b = near[np.argsort(length)[: pairs // 2]].T
    size = rng.integers(1, 1 << 16, len(a)).astype(np.float64)
    return Profile.from_edges(np.r_[a, b], np.r_[b, a], np.r_[size, size], ranks=ranks)


def placed_in_order(fabric: Fabric, profile: Profile, order: Longs, slots: int = 1) -> Placement:
    """Return the placement of rank r on the slot ``order[r]`` of the first hosts."""
    allocation = Allocation.of(fabric, fabric.hosts[: -(-profile.ranks // slots)].tolist(), slots)
    return Placement(host_of_rank=allocation.host_of_slot[order], allocation=allocation, strategy="given")


def torus_in_order() -> Case:
    """Return 1,728 ranks of a mesh on a 12x12x12 torus, mesh neighbours near each other."""
    fabric, profile = torus((12,) * 3), mesh(1728, 22_600)
    return Case(fabric, profile, placed_in_order(fabric, profile, np.arange(1728)))


def torus_shuffled() -> Case:
    """Return the same with shuffled ranks: the longest paths that a torus has to count."""
    fabric, profile = torus((12,) * 3), mesh(1728, 22_600)
    return Case(fabric, profile, placed_in_order(fabric, profile, np.random.default_rng(1).permutation(1728)))


def percs_in_order() -> Case:
    """Return 1,792 ranks of a mesh on the first 1,792 of 9,248 PERCS nodes."""
    fabric, profile = percs(), mesh(1792, 23_800)
    return Case(fabric, profile, placed_in_order(fabric, profile, np.arange(1792)))


def director_tables(count: int = 100_000) -> Case:
    """Return random pairs on the forwarding tables of 2,304 hosts behind four directors."""
    devices = director_tree()
    scan = SourceFile(path="scan", data=ibnetdiscover_text(devices).encode(), modified_at=datetime.now(UTC))
    fabric = IBNETDISCOVER.parse([scan], Options()).fabric
    if fabric is None:
        raise SystemExit("the scan holds no fabric")
    fabric = replace(fabric, tables=forwarding_tables(devices))
    ranks, rng = len(fabric.hosts), np.random.default_rng(0)
    pairs = rng.choice(ranks * ranks, count, replace=False)
    profile = Profile.from_edges(pairs // ranks, pairs % ranks, rng.random(len(pairs)), ranks=ranks)
    return Case(fabric, profile, placed_in_order(fabric, profile, rng.permutation(ranks)), "tables")


def large_fat_tree() -> Case:
    """Return 100,000 shuffled ranks of a mesh on 20,000 five-slot hosts of a three-level fat tree."""
    fabric, profile = three_level(), mesh(100_000, 1_300_000)
    order = np.random.default_rng(0).permutation(100_000)
    return Case(fabric, profile, placed_in_order(fabric, profile, order, slots=5))


CASES: dict[str, Callable[[], Case]] = {
    case.__name__: case
    for case in (torus_in_order, torus_shuffled, percs_in_order, director_tables, large_fat_tree)
}

if __name__ == "__main__":
    main()
