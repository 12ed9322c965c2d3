"""What `mapping.place` reaches in a given time, beside in order, random and the best of other tools.

Run ``python -m bench.placement [FOLDER] [--seconds S] [--only HOST/GUEST]...`` in the project's folder. A
folder holds instances as in ``tests/data/bench`` (the default) and, where other tools were run,
``peers.jsonl``: a line a result with ``host guest peer congestion network_congestion hop_bytes violations``.
A guest is placed on the first of the host's ``hosts``, one rank each. Kernels are compiled before. Writes
``bench/results/placement.json``, for another folder than the default ``placement_peers.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.instances import SHIPPED, Instance, read
from bench.machine import machine, now, peak_memory_gb
from mapping.evaluation.metrics import evaluate
from mapping.evaluation.report import RANDOM_SEEDS
from mapping.search.placing import place
from mapping.strategies.in_order import in_order
from mapping.strategies.random import random_placement
from registry.model import Metrics, Placement

RESULTS = Path(__file__).parent / "results"
INSTANCES = (
    "torus8/fem_512",
    "torus12/nlpkkt80_1728",
    "percs9248/nlpkkt80_1792",
    "fattree3292/fem_1728",
    "dragonfly1056/btsp_1024",
    "tianhe2304/lu_1728",
)
OBJECTIVES = ("congestion", "hop-bytes")
COUNTS_SWITCHES = ("tianhe2304",)
"""Hosts whose peers' hop-bytes count switches: a hop less for every byte (Li et al. 2020)."""


def main(arguments: list[str] | None = None) -> None:
    """Run every instance of a folder, record the results."""
    parser = argparse.ArgumentParser(description="What mapping.place reaches in a given time.")
    parser.add_argument("folder", nargs="?", type=Path, default=SHIPPED)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", action="append", metavar="HOST/GUEST")
    given = parser.parse_args(arguments)
    results = {}
    for name in given.only or INSTANCES:
        host, guest = name.split("/")
        if (given.folder / f"host_{host}.npz").exists():
            results[name] = measure(given.folder, host, guest, given.seconds)
    record = {
        "date": now(),
        "machine": machine(),
        "seconds": given.seconds,
        "geometric_mean_of_ratios": geometric_means(results),
        "peak_memory_gb": peak_memory_gb(),
        "instances": results,
    }
    name = "placement.json" if given.folder == SHIPPED else "placement_peers.json"
    (RESULTS / name).write_text(json.dumps(record, indent=2) + "\n")


def measure(folder: Path, host: str, guest: str, seconds: float) -> dict[str, Any]:
    """Ours on each objective, the baselines, the best peer of each metric, and ratios to it."""
    fabric, profile, allocation = instance = read(folder, host, guest)
    found: dict[str, Any] = {
        "in_order": judged(instance, in_order(profile.ranks, allocation)).told(),
        "random": Metrics.mean(
            [judged(instance, random_placement(profile.ranks, allocation, seed)) for seed in RANDOM_SEEDS]
        ).told(),
        "peers": best_peers(folder, host, guest, float(profile.bytes.sum())),
    }
    for objective in OBJECTIVES:
        begin = time.perf_counter()
        placement = place(fabric, profile, allocation, objective=objective, seconds=seconds)
        wall = time.perf_counter() - begin
        ours = judged(instance, placement).told()
        found[objective] = {
            **ours,
            "strategy": placement.strategy,
            "steps": placement.steps,
            "seconds": placement.seconds,
            "wall_seconds": wall,
            "of_best_peer": {
                metric: (ours[metric] - peer["left_out"]) / peer["value"]
                for metric, peer in found["peers"].items()
            },
        }
        print(host, guest, objective, found[objective], file=sys.stderr)
    return found


def judged(instance: Instance, placement: Placement) -> Metrics:
    """Exact metrics over all shortest paths."""
    return Metrics.of(evaluate(instance.fabric, instance.profile, placement, routing="shortest-paths"))


def best_peers(folder: Path, host: str, guest: str, total_bytes: float) -> dict[str, dict[str, Any]]:
    """For each metric, the lowest value of any other tool, which one, and what its count leaves out."""
    path = folder / "peers.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    valid = [line for line in lines if (line["host"], line["guest"], line["violations"]) == (host, guest, 0)]
    columns = {
        "congestion_seconds": "congestion",
        "network_congestion_seconds": "network_congestion",
        "hop_bytes": "hop_bytes",
    }
    found = {}
    for metric, column in columns.items() if valid else ():
        peer = min(valid, key=lambda line: float(line[column]))
        left_out = total_bytes if metric == "hop_bytes" and host in COUNTS_SWITCHES else 0.0
        found[metric] = {"value": float(peer[column]), "peer": peer["peer"], "left_out": left_out}
    return found


def geometric_means(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of ours over the best peer, by objective and metric, over the instances that have peers."""
    means = {}
    for objective in OBJECTIVES:
        ratios = [found[objective]["of_best_peer"] for found in results.values() if found["peers"]]
        if ratios:
            means[objective] = {
                metric: float(np.exp(np.mean([np.log(ratio[metric]) for ratio in ratios])))
                for metric in ratios[0]
            }
    return means


if __name__ == "__main__":
    main()
