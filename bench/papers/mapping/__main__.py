"""Run figures of three papers by name, or all, and print their tables; then write the page and the plots."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.papers.mapping.mapping_2011 import Effort
from bench.support.papers import Figure, Reproduction
from bench.support.paths import RESULTS

FIGURES = {
    "2004-figure-7": "random_search",
    "2004-table-2": "autonet",
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
}
HEAD = """# Figures of the papers: published and reproduced

Written by `python -m bench.papers.mapping`. A change is our value over the baseline, minus one; seconds are \
processor time of this machine. A value of the paper is empty if its text does not give it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen figures and print the table of each; then write the page and the plots."""
    parser = argparse.ArgumentParser(prog="python -m bench.papers.mapping", description=__doc__)
    parser.add_argument("--refine-seconds", type=float, default=Effort().refine_seconds)
    parser.add_argument("--search-seconds", type=float, default=Effort().search_seconds)
    Reproduction(tuple(FIGURES), RESULTS / "papers", "papers.md", HEAD, _run).main(parser, arguments)


def _run(name: str, options: argparse.Namespace, _: Path) -> Iterator[tuple[Figure, dict[str, Any]]]:
    effort = Effort(
        refine_seconds=options.refine_seconds, search_seconds=options.search_seconds, small=options.small
    )
    module = importlib.import_module(f"bench.papers.mapping.{FIGURES[name]}")
    yield module.run(effort), {"effort": effort}


if __name__ == "__main__":
    main()
