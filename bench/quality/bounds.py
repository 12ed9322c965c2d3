"""Measure how tight every bound is: under the best values known of instances, and under exact optima.

Run ``python -m bench.quality.bounds [FOLDER] [--only NAME]...``. The best values known are those of all tools
and searches in ``bench/results/peers.json``. The exact optima are of small cases that are made here: eight
ranks with traffic drawn at random on eight slots of small machines, every placement evaluated. Writes
``bench/results/bounds.json`` and ``bounds.md``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench.quality.peers.__main__ import instances
from bench.quality.peers.measure import METRICS, geometric_mean
from bench.support.instances import SHIPPED
from bench.support.machine import about, write_record
from bench.support.paths import RESULTS
from bench.support.structured import structured
from ingest.generate.direct import dragonfly, hypercube, torus
from ingest.generate.trees import extended_generalised_fat_tree
from mapping.cost.bounds.catalog import every_bound
from mapping.routing import shortest_paths
from mapping.routing.routes import Routes
from registry.model import Allocation, Bound, Fabric, Profile

RANKS = 8
SEEDS = 5
"""Small cases of each machine."""
MACHINES: dict[str, Callable[[], Fabric]] = {
    "ring of 8": lambda: torus((8,)),
    "torus 2 x 4": lambda: torus((2, 4)),
    "hypercube of 3 dimensions": lambda: hypercube(3),
    "torus 2 x 2, 2 slots": lambda: torus((2, 2), slots=2),
    "fat tree, 4 leaves of 2 hosts": lambda: extended_generalised_fat_tree((2, 2, 2), (1, 2, 1)),
    "fat tree, 2 leaves of 2 hosts of 2 slots": lambda: extended_generalised_fat_tree(
        (2, 2), (1, 2), slots=2
    ),
    "dragonfly, 2 hosts a router": lambda: dragonfly(2, 2, 1),
}
BEST = "best of all"
"""Name of the best bound of each small case."""
AT_OPTIMUM = 1.000_001


def main(arguments: list[str] | None = None) -> None:
    """Compare the bounds and record after each instance."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.bounds", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SHIPPED)
    parser.add_argument("--only", action="append", metavar="NAME", help="parts of names of instances")
    given = parser.parse_args(arguments)
    known = json.loads((RESULTS / "peers.json").read_text())["instances"]
    record: dict[str, Any] = {**about(), "instances": {}, "small": small_cases()}
    for name, make in (instances(given.folder, with_generated=True) | structured()).items():
        if name not in known or (given.only and not any(part in name for part in given.only)):
            continue
        print(name, file=sys.stderr, flush=True)
        contest = make()
        routes = shortest_paths.build(contest.fabric, contest.allocation.hosts)
        best = best_known(known[name])
        record["instances"][name] = compared(routes, contest.profile, contest.allocation, best)
        record["summary"] = summary(record["instances"])
        write_record(RESULTS / "bounds.json", record, markdown(record))


def best_known(found: dict[str, Any]) -> dict[str, float]:
    """Return the least value of each metric by any tool or search of a record of peers."""
    results = [*found["ours"], *found["peers"]]
    return {
        metric: min(float(one[metric]) for one in results if one.get(metric) is not None)
        for metric in METRICS
    }


def compared(
    routes: Routes, profile: Profile, allocation: Allocation, best: dict[str, float]
) -> dict[str, Any]:
    """Return, for each metric, the best value known over each bound that is not 0, by name; and the time."""
    begin = time.perf_counter()
    found = every_bound(routes, profile, allocation)
    seconds = time.perf_counter() - begin
    ratios = {metric: _ratios(found[metric], best[metric]) for metric in METRICS}
    return {"seconds": seconds, "best_known": best, "ratios": ratios}


def _ratios(bounds: Iterable[Bound], value: float) -> dict[str, float]:
    """Return the value over the best bound of each name."""
    found: dict[str, float] = {}
    for bound in bounds:
        if bound.value > 0.0:
            found[bound.name] = min(found.get(bound.name, np.inf), value / bound.value)
    return dict(sorted(found.items(), key=lambda one: one[1]))


def small_cases() -> dict[str, dict[str, Any]]:
    """Return, for each metric and bound, the small cases, where it meets the optimum, and the mean ratio."""
    ratios: dict[str, dict[str, list[float]]] = {metric: {} for metric in METRICS}
    for make in MACHINES.values():
        fabric = make()
        hosts = fabric.hosts[: RANKS // int(fabric.slots[fabric.hosts[0]])]
        allocation = Allocation.of(fabric, hosts.tolist(), int(fabric.slots[hosts[0]]))
        routes = shortest_paths.build(fabric, allocation.hosts)
        for seed in range(SEEDS):
            profile = drawn(seed)
            found, best = every_bound(routes, profile, allocation), optima(routes, profile, allocation)
            for metric in METRICS:
                if best[metric] > 0.0:
                    one = _ratios(found[metric], best[metric])
                    one[BEST] = min(one.values(), default=np.inf)
                    for name, ratio in one.items():
                        ratios[metric].setdefault(name, []).append(ratio)
    return {
        metric: {name: _tightness(all) for name, all in sorted(one.items())} for metric, one in ratios.items()
    }


def _tightness(ratios: list[float]) -> dict[str, Any]:
    return {
        "cases": len(ratios),
        "at_optimum": sum(ratio <= AT_OPTIMUM for ratio in ratios),
        "least": min(ratios),
        "geometric_mean": geometric_mean(ratios),
    }


def drawn(seed: int) -> Profile:
    """Return traffic between eight ranks: each pair with probability one half, 1 to 20 bytes each way."""
    generator = np.random.default_rng(seed)
    bytes = generator.integers(1, 21, (RANKS, RANKS)) * (generator.random((RANKS, RANKS)) < 0.5)
    source, target = np.nonzero(bytes * ~np.eye(RANKS, dtype=bool))
    return Profile.from_edges(source, target, bytes[source, target].astype(np.float64), ranks=RANKS)


def optima(routes: Routes, profile: Profile, allocation: Allocation) -> dict[str, float]:
    """Return the least value of each metric over all placements; all slots are filled."""
    hosts, fabric = len(allocation), routes.fabric
    share = np.zeros((hosts, hosts, len(fabric.links)))
    for i, j in itertools.permutations(range(hosts), 2):
        share[i, j] = routes.link_bytes([i], [j], [1.0])
    slots = np.repeat(np.arange(hosts), allocation.slots)
    placed = np.unique(slots[np.array(list(itertools.permutations(range(len(slots)))))], axis=0)
    least = dict.fromkeys(METRICS, np.inf)
    for at in np.array_split(placed, -(-len(placed) // 2000)):
        loads = np.zeros((len(at), len(fabric.links)))
        for u, v, bytes in zip(profile.sender, profile.partner, profile.bytes, strict=True):
            loads += bytes * share[at[:, u], at[:, v]]
        seconds = loads / fabric.links.capacity
        network = seconds[:, fabric.network_link].max(axis=1, initial=0.0)
        for metric, values in zip(METRICS, (seconds.max(axis=1), network, loads.sum(axis=1)), strict=True):
            least[metric] = min(least[metric], float(values.min()))
    return least


def summary(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return, for each metric, the geometric mean of values over best bounds, and which bounds are best."""
    rows = {}
    for metric in METRICS:
        ratios = {name: one["ratios"][metric] for name, one in found.items() if one["ratios"][metric]}
        first = [next(iter(one)) for one in ratios.values()]
        rows[metric] = {
            "instances": len(ratios),
            "geometric_mean": geometric_mean([min(one.values()) for one in ratios.values()]),
            "best_of": {name: first.count(name) for name in sorted(set(first))},
        }
    return rows


def markdown(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    lines = [
        "# How tight the bounds are",
        "",
        f"{record['date']}. Written by `python -m bench.quality.bounds`. Values are the best known "
        "(`peers.json`) over the best bound, and the argument of that bound.",
        "",
        f"| instance | {' | '.join(METRICS)} | seconds for all bounds |",
        "|" + "---|" * (len(METRICS) + 2),
    ]
    for name, one in record["instances"].items():
        cells = [next(iter(one["ratios"][metric].items()), ("none", np.inf)) for metric in METRICS]
        text = " | ".join(f"{ratio:.3f} {bound}" for bound, ratio in cells)
        lines.append(f"| {name} | {text} | {one['seconds']:.2f} |")
    means = " | ".join(f"{record['summary'][metric]['geometric_mean']:.3f}" for metric in METRICS)
    lines += [f"| geometric mean | {means} | |", "", "## Exact optima of small cases", ""]
    lines += ["| metric | bound | cases | at the optimum | geometric mean |", "|---|---|---|---|---|"]
    lines += [
        f"| {metric} | {name} | {one['cases']} | {one['at_optimum']} | {one['geometric_mean']:.3f} |"
        for metric, all in record["small"].items()
        for name, one in all.items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
