"""Compare two threads in 10 s with one thread in 18 s, for the default portfolio.

Run ``python -m bench.quality.cores [FOLDER] [--seconds S] [--alone S] [--seed S] [--only NAME]...`` on a
machine with two free cores. Writes ``bench/results/cores.json`` and ``cores.md``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from bench.quality.peers.__main__ import ANY, instances
from bench.quality.peers.measure import geometric_mean, score
from bench.support.instances import SHIPPED, Contest
from bench.support.machine import about, write_record
from bench.support.paths import RESULTS
from bench.support.searches import searched

METRIC = {"hop-bytes": "hop_bytes", "congestion": "congestion_seconds"}


def main(arguments: list[str] | None = None) -> None:
    """Run every instance both ways and record after each."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.cores", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SHIPPED)
    parser.add_argument("--seconds", type=float, default=10.0, help="of two threads")
    parser.add_argument("--alone", type=float, default=18.0, help="of one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", metavar="NAME", help="parts of names of instances")
    given = parser.parse_args(arguments)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, make in instances(given.folder, with_generated=True).items():
        if name.endswith(ANY) or (given.only and not any(part in name for part in given.only)):
            continue
        print(name, file=sys.stderr, flush=True)
        contest = make()
        found[name] = {
            objective: {
                "two": _value(contest, objective, 2, given.seconds, given.seed),
                "one": _value(contest, objective, 1, given.alone, given.seed),
            }
            for objective in METRIC
        }
        record = {
            **about(),
            "seconds": {"two": given.seconds, "one": given.alone},
            "seed": given.seed,
            "geometric_mean_of_two_over_one": {objective: mean(found, objective) for objective in METRIC},
            "instances": found,
        }
        write_record(RESULTS / "cores.json", record, markdown(record))


def mean(found: dict[str, dict[str, dict[str, float]]], objective: str) -> float:
    """Return the geometric mean over instances of two threads' values divided by one thread's."""
    return geometric_mean([_ratio(one[objective]) for one in found.values()]) or 0.0


def markdown(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    two, one = record["seconds"]["two"], record["seconds"]["one"]
    means = record["geometric_mean_of_two_over_one"]
    lines = [
        f"# Two threads in {two:g} s beside one in {one:g} s",
        "",
        f"{record['date']}, {record['machine']['processor']}, {record['machine']['cores']} cores, "
        f"seed {record['seed']}. Written by `python -m bench.quality.cores`. Values of two threads "
        "over those of one; below 1, two are better.",
        "",
        "| instance | " + " | ".join(METRIC) + " |",
        "|---|" + "---|" * len(METRIC),
    ]
    for name, values in record["instances"].items():
        lines.append(f"| {name} | " + " | ".join(f"{_ratio(values[key]):.3f}" for key in METRIC) + " |")
    lines.append("| geometric mean | " + " | ".join(f"{means[key]:.3f}" for key in METRIC) + " |")
    return "\n".join(lines) + "\n"


def _value(contest: Contest, objective: str, workers: int, seconds: float, seed: int) -> float:
    placement = searched(
        contest.fabric,
        contest.profile,
        contest.allocation,
        objective=objective,
        seconds=seconds,
        seed=seed,
        workers=workers,
    )
    return score(contest, placement)[METRIC[objective]]


def _ratio(values: dict[str, float]) -> float:
    return values["two"] / values["one"] if values["one"] else 1.0


if __name__ == "__main__":
    main()
