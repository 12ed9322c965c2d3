"""Run parts by name, or all, and print their tables; then write the page and the plots."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.simulation import equal_time_2004, machines, metrics, networks_2004, speed
from bench.simulation.cases import RESULTS, Effort
from bench.support.papers import Figure, Reproduction

PARTS = {
    "2004-equal-time": equal_time_2004.run,
    "2004-figures-8-13": networks_2004.run,
    "2011-figure-6c": machines.blue_gene,
    "2020-figure-3": machines.tianhe,
    "correlation": metrics.correlation,
    "objectives": metrics.objectives,
    "speed": speed.run,
}
HEAD = """# Simulated runs compared with the papers

Written by `python -m bench.simulation`. A change is our value over the baseline, minus one. A value of the \
paper is empty if its text does not give it. Method: \
[docs/explanation/simulation.md](../../../docs/explanation/simulation.md); conclusions: \
[docs/explanation/simulation-evidence.md](../../../docs/explanation/simulation-evidence.md)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen parts, then write the page and the plots."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulation", description=__doc__)
    parser.add_argument("--traces", type=Path, metavar="FOLDER", help="holds trace_npb_*_64.csv.xz")
    parser.add_argument(
        "--flits",
        type=float,
        default=Effort().flits,
        metavar="SHARE",
        help="part of the 2004 paper's networks that are simulated flit by flit, too [default: %(default)s]",
    )
    Reproduction(tuple(PARTS), RESULTS, "simulation.md", HEAD, _run).main(parser, arguments)


def _run(name: str, options: argparse.Namespace, _: Path) -> Iterator[tuple[Figure, dict[str, Any]]]:
    effort = Effort(traces=options.traces, flits=options.flits, small=options.small)
    yield PARTS[name](effort), {"effort": effort.to_json()}


if __name__ == "__main__":
    main()
