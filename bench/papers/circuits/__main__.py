"""Run parts of the 2013 paper by name, or all, and print their tables; then write the page and the plots."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.papers.circuits import calibration, equal_time, optimum, plane, rings, speed, tables
from bench.papers.circuits.experiment import CALIBRATION, RESULTS, Effort, Parameters, WorkerPool, calibrated
from bench.support.papers import Figure, Reproduction
from mapping.cluster import open_cluster

RUNS = {
    "plane": plane.run,
    "speed": speed.run,
    "optimum": optimum.run,
    "tables-1-2": tables.run,
    "tables-1-2-defaults": tables.run_defaults,
    "equal-time": equal_time.run,
    "table-3": rings.run,
}
NAMES = (CALIBRATION, *RUNS)
"""Parts, in the order in which they run; the first chooses the parameters of the others."""
NOT_CALIBRATED = ("plane", "tables-1-2-defaults")
HEAD = """# Topology, partition and routes together: the paper's tables and figures, published and reproduced

Written by `python -m bench.papers.circuits`. Ajwani, Ali, Hackett, Kirkland and Morrison, 2013. Columns \
named *paper* are printed there; an empty cell means that its text gives no value."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen parts and record each as it ends."""
    default = Effort()
    parser = argparse.ArgumentParser(prog="python -m bench.papers.circuits", description=__doc__)
    parser.add_argument("--seconds", type=float, help=f"of an experiment [default: {default.seconds:g}]")
    parser.add_argument("--calibration-seconds", type=float, default=default.calibration_seconds)
    parser.add_argument("--pairs", type=int, help=f"trials of our search [default: {default.pairs}]")
    parser.add_argument("--workers", type=int, default=default.workers, help="processes")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run the trials on this Dask cluster")
    Reproduction(NAMES, RESULTS, "reconfigure.md", HEAD, _run).main(parser, arguments)


def _run(name: str, options: argparse.Namespace, folder: Path) -> Iterator[tuple[Figure, dict[str, Any]]]:
    small = Effort(seconds=5.0, fewest=4, batch=4, pairs=2) if options.small else Effort()
    effort = Effort(
        seconds=small.seconds if options.seconds is None else options.seconds,
        calibration_seconds=options.calibration_seconds,
        fewest=small.fewest,
        batch=small.batch,
        pairs=small.pairs if options.pairs is None else options.pairs,
        workers=options.workers,
        small=options.small,
    )
    chosen = calibrated(folder) or (None if options.small else calibrated(RESULTS)) or Parameters()
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(options.scheduler)) if options.scheduler else None
        pool = stack.enter_context(WorkerPool(effort.workers, cluster))
        for parameters, figure in run(name, effort, pool, chosen):
            yield figure, {"effort": effort, "parameters": parameters}


def run(
    name: str, effort: Effort, pool: WorkerPool, parameters: Parameters
) -> Iterator[tuple[Parameters, Figure]]:
    """Yield a part after each of its steps until it is complete, with the parameters that it used."""
    if name == CALIBRATION:
        yield calibration.run(effort, pool)
        return
    used = Parameters() if name in NOT_CALIBRATED else parameters
    for figure in RUNS[name](used, effort, pool):
        yield used, figure


if __name__ == "__main__":
    main()
