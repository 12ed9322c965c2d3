"""Measure what a Dask cluster costs: size of the data, seconds to send them, and the shortest search.

Run ``python -m bench.speed.several_machines ADDRESS`` with the scheduler of a cluster whose workers are
otherwise idle. Each size is a three-level fat tree with five ranks a host; ranks in order are scored, here
and there, so that the difference is the cost. Writes ``bench/results/several_machines.json``.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

from bench.speed.scale import cube, fat_tree
from bench.support.machine import about, write_record
from bench.support.paths import RESULTS
from mapping.cluster import Cluster, open_cluster
from mapping.placement.case import PlacementCase
from mapping.placement.place import place
from mapping.placement.search import SearchOptions
from registry.model import Allocation

SIZES = (100, 1_000, 100_000)
"""Numbers of ranks."""
CHAIN = "in-order"


def main(arguments: list[str] | None = None) -> None:
    """Measure all sizes and write the record."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.several_machines", description=__doc__)
    parser.add_argument("scheduler", metavar="ADDRESS")
    parser.add_argument("--largest", type=int, default=max(SIZES), help="leave larger sizes out")
    parser.add_argument("--output", type=Path, default=RESULTS / "several_machines.json")
    given = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    begin = time.perf_counter()
    with open_cluster(given.scheduler) as cluster:
        connect = time.perf_counter() - begin
        points = [point(cluster, ranks) for ranks in SIZES if ranks <= given.largest]
        record = {
            **about(),
            "load_average": round(load, 1),
            "workers": cluster.machines,
            "threads": cluster.threads,
            "connect_seconds": connect,
            "sizes": points,
        }
    write_record(given.output, record)


def point(cluster: Cluster, ranks: int) -> dict[str, Any]:
    """Measure one size."""
    fabric, profile = fat_tree(ranks), cube(ranks)
    allocation = Allocation.of(fabric, fabric.hosts[: -(-ranks // 5)].tolist(), 5)
    options = SearchOptions(steps=1, workers=1, strategies=[CHAIN])
    case = PlacementCase.of(fabric, profile, allocation, options, None, None, None)
    problem = case.problem()
    found: dict[str, Any] = {"ranks": ranks, "hosts": len(fabric.hosts)}
    for name, value in (("fabric", fabric), ("problem", problem)):
        begin = time.perf_counter()
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        found |= {f"{name}_mb": len(data) / 1e6, f"{name}_pickle_seconds": time.perf_counter() - begin}
    begin = time.perf_counter()
    cluster.share(problem)
    found["share_seconds"] = time.perf_counter() - begin
    for name, executor in (("here", "threads"), ("there", cluster)):
        times = []
        for _ in range(2):  # the first one loads kernels
            begin = time.perf_counter()
            place(fabric, profile, allocation, options, executor=executor)
            times.append(time.perf_counter() - begin)
        found |= {f"first_{name}_seconds": times[0], f"{name}_seconds": times[1]}
    print(found, file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
