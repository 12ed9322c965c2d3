"""Run parts by name, or all; then write the page and the plots."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from bench.simulation.runs import RESULTS, VALUES, Effort, TracesMissing
from bench.support.figure_page import page, section, write_plots
from bench.support.figures import load, said, save
from bench.support.output import add_output_options, has_plots, known, output_folder, print_table

PARTS = {
    "2004-figures-8-13": "networks_2004",
    "2004-equal-time": "equal_time_2004",
    "2020-figure-3": "tianhe3",
    "2011-figure-6c": "surveyor",
    "correlation": "correlation",
    "objectives": "objectives",
    "speed": "speed",
}
HEAD = (
    "# Simulated runs compared with the papers",
    "",
    "Written by `python -m bench.simulation`. A change is our value over the baseline, minus one. A "
    "value of the paper is empty if its text does not give it. Method: "
    "[docs/explanation/simulation.md](../../../docs/explanation/simulation.md); conclusions: "
    "[docs/explanation/simulation-evidence.md](../../../docs/explanation/simulation-evidence.md).",
)


def main(arguments: list[str] | None = None) -> None:
    """Run the chosen parts, then write the page and the plots."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulation", description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"of {', '.join(PARTS)} (default: all)"
    )
    parser.add_argument("--traces", type=Path, metavar="FOLDER", help="holds trace_npb_*_64.csv.xz")
    parser.add_argument(
        "--flits",
        type=float,
        default=Effort().flits,
        metavar="SHARE",
        help="part of the 2004 paper's networks that are simulated flit by flit, too [default: %(default)s]",
    )
    parser.add_argument("--small", action="store_true", help="few and small cases, to try it out")
    parser.add_argument("--page-only", action="store_true", help="only write page and plots again")
    add_output_options(parser)
    given = parser.parse_args(arguments)
    unknown = [name for name in given.only or () if name not in PARTS]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(PARTS)}")
    folder = output_folder(parser, given, RESULTS)
    effort = Effort(traces=given.traces, flits=given.flits, small=given.small)
    for name in () if given.page_only else given.only or PARTS:
        _run(name, effort, folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "simulation.md"
    path.write_text(page(load(folder), said(VALUES), HEAD))
    print(path, *(write_plots(folder) if has_plots() else ()), file=sys.stderr)


def _run(name: str, effort: Effort, output: Path) -> None:
    """Run one part and record it."""
    begin = time.perf_counter()
    known(RESULTS, name)
    try:
        figure = importlib.import_module(f"bench.simulation.{PARTS[name]}").run(effort)
    except TracesMissing as missing:
        print(f"{name}: left out, {missing}", file=sys.stderr, flush=True)
        return
    taken = time.perf_counter() - begin
    save(name, figure, {**effort.to_json(), "wall_seconds": round(taken, 1)}, output, VALUES)
    print(f"{name}: {taken:.0f} s", file=sys.stderr, flush=True)
    print_table(RESULTS, name, output, section(output, name, said(VALUES)))


if __name__ == "__main__":
    main()
