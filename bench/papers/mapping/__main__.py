"""Run figures of three papers by name, or all, and print their tables; then write the page and the plots."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.papers.mapping import autonet, direct_2011, fat_trees_2011, random_search, small_2011, tianhe3
from bench.papers.mapping.mapping_2011 import Effort
from bench.support.papers import Figure, Reproduction
from bench.support.paths import RESULTS

FIGURES = {
    "2004-figure-7": random_search.run,
    "2004-table-2": autonet.run,
    "2011-examples": small_2011.examples,
    "2011-figure-3": small_2011.matrices,
    "2011-figure-5a": direct_2011.tori,
    "2011-figure-5b": direct_2011.percs_by_size,
    "2011-figure-5c": fat_trees_2011.juropa,
    "2011-figure-6ab": fat_trees_2011.ranger,
    "2011-figure-6c": direct_2011.blue_gene,
    "2011-multicore": small_2011.multicore,
    "2011-starts": direct_2011.all_starts,
    "2020-figure-2": tianhe3.run,
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
    yield FIGURES[name](effort), {"effort": effort}


if __name__ == "__main__":
    main()
