"""Run parts by name, or all, and print their tables; then write the page and the plots."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench.papers.circuits import calibration, equal_time, optimum, plane, rings, speed, tables
from bench.papers.circuits.experiment import WorkerPool
from bench.papers.circuits.page import section, write_page
from bench.papers.circuits.record import CALIBRATION, RESULTS, Effort, Part, calibrated, load, save
from bench.papers.circuits.trial import Parameters
from bench.support.figure_page import write_plots
from bench.support.output import add_output_options, has_plots, known, output_folder, print_table
from mapping.cluster import open_cluster

TABLES, RINGS, OPTIMUM, SPEED = "tables-1-2", "table-3", "optimum", "speed"
DEFAULTS, EQUAL_TIME, PLANE = "tables-1-2-defaults", "equal-time", "plane"
NAMES = (CALIBRATION, PLANE, SPEED, OPTIMUM, TABLES, DEFAULTS, EQUAL_TIME, RINGS)
"""Parts, in the order in which they run; the first chooses the parameters of the others."""


def main(arguments: list[str] | None = None) -> None:
    """Run the chosen parts and record each as it ends."""
    parser = _parser()
    given = parser.parse_args(arguments)
    folder = output_folder(parser, given, RESULTS)
    small, default = given.small, Effort()
    effort = Effort(
        seconds=given.seconds if given.seconds is not None else 5.0 if small else default.seconds,
        calibration_seconds=given.calibration_seconds,
        fewest=4 if small else default.fewest,
        batch=4 if small else default.batch,
        pairs=given.pairs if given.pairs is not None else 2 if small else default.pairs,
        workers=given.workers,
        small=small,
    )
    if not given.page_only:
        with ExitStack() as stack:
            scheduler = given.scheduler
            cluster = None if scheduler is None else stack.enter_context(open_cluster(scheduler))
            pool = stack.enter_context(WorkerPool(effort.workers, cluster))
            for name in (name for name in NAMES if name in (given.only or NAMES)):
                begin = time.perf_counter()
                known(RESULTS, name)
                chosen = calibrated(folder) or (None if small else calibrated(RESULTS)) or Parameters()
                for parameters, part in run(name, effort, pool, chosen):
                    save(name, part, parameters, effort, folder)
                print(f"{name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
                print_table(RESULTS, name, folder, section(load(folder, (name,))[0]))
    records = load(folder, NAMES)
    print(write_page(records, folder), *(write_plots(folder) if has_plots() else ()), file=sys.stderr)


def run(
    name: str, effort: Effort, pool: WorkerPool, parameters: Parameters
) -> Iterator[tuple[Parameters, Part]]:
    """Yield a part after each of its steps until it is complete, with the parameters that it used."""
    if name == CALIBRATION:
        yield calibration.run(effort, pool)
        return
    if name in (DEFAULTS, PLANE):
        parameters = Parameters()
    rest = {OPTIMUM: optimum.run, TABLES: tables.run, DEFAULTS: tables.run_defaults, RINGS: rings.run}
    rest |= {EQUAL_TIME: equal_time.run, PLANE: plane.run}
    parts = speed.run(parameters, effort) if name == SPEED else rest[name](parameters, effort, pool)
    yield from ((parameters, part) for part in parts)


def _parser() -> argparse.ArgumentParser:
    default = Effort()
    parser = argparse.ArgumentParser(prog="python -m bench.papers.circuits", description=__doc__)
    parser.add_argument("--only", action="append", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--small", action="store_true", help="few cases, to try it out; not recorded")
    parser.add_argument("--seconds", type=float, help=f"of an experiment; default: {default.seconds:g}")
    parser.add_argument("--calibration-seconds", type=float, default=default.calibration_seconds)
    parser.add_argument("--pairs", type=int, help=f"trials of our search; default: {default.pairs}")
    parser.add_argument("--workers", type=int, default=default.workers, help="processes")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run the trials on this Dask cluster")
    parser.add_argument("--page-only", action="store_true", help="only write page and plots again")
    add_output_options(parser)
    return parser


if __name__ == "__main__":
    main()
