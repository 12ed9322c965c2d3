"""Run figures by name, or all, and print their tables; then write the page and the plots."""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from bench.support.figure_page import section, write_page, write_plots
from bench.support.figures import RESULTS, Effort, save
from bench.support.output import add_output_options, has_plots, known, output_folder, print_table

FIGURES = {
    "2011-examples": "examples_2011",
    "2011-figure-3": "rcm_matrices",
    "2011-figure-5a": "torus",
    "2011-figure-5b": "percs",
    "2011-figure-5c": "juropa",
    "2011-figure-6ab": "ranger",
    "2011-figure-6c": "surveyor",
    "2011-multicore": "multicore",
    "2011-starts": "all_starts",
    "2020-figure-2": "tianhe3",
    "2004-table-2": "autonet",
    "2004-figure-7": "random_search",
}


def main(arguments: list[str] | None = None) -> None:
    """Run the chosen figures and print the table of each; then write the page and the plots."""
    parser = argparse.ArgumentParser(prog="python -m bench.papers.mapping", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FIGURES)} (default: all)")
    parser.add_argument("--refine-seconds", type=float, default=Effort().refine_seconds)
    parser.add_argument("--search-seconds", type=float, default=Effort().search_seconds)
    parser.add_argument("--small", action="store_true", help="few and small cases, to try it out")
    parser.add_argument("--page-only", action="store_true", help="only write page and plots again")
    add_output_options(parser)
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in FIGURES]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(FIGURES)}")
    folder = output_folder(parser, given, RESULTS)
    effort = Effort(
        refine_seconds=given.refine_seconds, search_seconds=given.search_seconds, small=given.small
    )
    for name in () if given.page_only else given.names or FIGURES:
        begin = time.perf_counter()
        module = importlib.import_module(f"bench.papers.mapping.{FIGURES[name]}")
        known(RESULTS, name)
        save(name, module.run(effort), effort, folder)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
        print_table(RESULTS, name, folder, section(folder, name))
    print(write_page(folder), *(write_plots(folder) if has_plots() else ()), file=sys.stderr)


if __name__ == "__main__":
    main()
