"""Compare all chains that could be members of the default portfolio, each by itself, in the same time.

Run ``python -m bench.quality.members [FOLDER] [--seconds S] [--seed S] [--only NAME]...``. Every chain gets
the whole limit and both cores, on the instances of `bench.support.instances` and of a folder; the default
portfolio is run too. A chain that is seldom the best and takes time from others is not a member:
`mapping/placement/search.py` follows this record. Writes ``bench/results/members.json`` and
``members.md``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from bench.quality.peers.__main__ import instances
from bench.quality.peers.measure import geometric_mean, score
from bench.support.instances import SHIPPED, Contest
from bench.support.machine import about, write_record
from bench.support.paths import RESULTS
from bench.support.searches import searched
from registry.model import Placement

DEFAULT = "default"
STARTS = ("in-order", "random", "greedy", "recursive-bisection", "rcm", "multilevel", "spectral", "layout")
CHAINS: dict[str, tuple[str, ...]] = {
    "hop-bytes": tuple(f"{start}+pair-exchange" for start in STARTS),
    "congestion": (
        *(f"{start}+congestion-descent" for start in STARTS),
        "in-order+pair-exchange+congestion-descent",
        "layout+pair-exchange+congestion-descent",
        "in-order+pair-exchange+threshold-accepting",
    ),
}
METRIC = {"hop-bytes": "hop_bytes", "congestion": "congestion_seconds"}
EQUAL = 1.001
"""Chains whose value is at most so many times the least are the best of an instance."""


def main(arguments: list[str] | None = None) -> None:
    """Run every chain on every instance and record after each."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.members", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SHIPPED)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", metavar="NAME", help="parts of names of instances")
    given = parser.parse_args(arguments)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, make in instances(given.folder, with_generated=True).items():
        if given.only and not any(part in name for part in given.only):
            continue
        print(name, file=sys.stderr, flush=True)
        contest = make()
        found[name] = {
            objective: _values(contest, objective, given.seconds, given.seed) for objective in CHAINS
        }
        record = {
            **about(),
            "seconds": given.seconds,
            "seed": given.seed,
            "summary": {objective: summary(found, objective) for objective in CHAINS},
            "instances": found,
        }
        write_record(RESULTS / "members.json", record, markdown(record))


def _values(contest: Contest, objective: str, seconds: float, seed: int) -> dict[str, float]:
    """Return the values of the default and of every chain, by name."""
    names = (DEFAULT, *CHAINS[objective])
    for name in names:  # kernels are compiled, and what is kept of a fabric is made: none pays for another
        _placed(contest, objective, name, seed, steps=1)
    return {
        name: score(contest, _placed(contest, objective, name, seed, seconds=seconds))[METRIC[objective]]
        for name in names
    }


def _placed(
    contest: Contest,
    objective: str,
    name: str,
    seed: int,
    *,
    seconds: float = 10.0,
    steps: int | None = None,
) -> Placement:
    return searched(
        contest.fabric,
        contest.profile,
        contest.allocation,
        objective=objective,
        strategies=None if name == DEFAULT else [name],
        seconds=seconds,
        steps=steps,
        seed=seed,
    )


def summary(found: dict[str, dict[str, dict[str, float]]], objective: str) -> list[dict[str, Any]]:
    """Return a row per chain: its values over the default's, and on how many instances it is the best."""
    rows = []
    for name in (DEFAULT, *CHAINS[objective]):
        ratios, best = {}, 0
        for instance, objectives in found.items():
            values = objectives[objective]
            ratios[instance] = values[name] / values[DEFAULT] if values[DEFAULT] else 1.0
            best += values[name] <= EQUAL * min(values.values())
        least, most = min(ratios, key=lambda key: ratios[key]), max(ratios, key=lambda key: ratios[key])
        rows.append(
            {
                "chain": name,
                "geometric_mean_over_default": geometric_mean(list(ratios.values())),
                "best_on": best,
                "instances": len(ratios),
                "least": [least, ratios[least]],
                "most": [most, ratios[most]],
            }
        )
    return rows


def markdown(record: dict[str, Any]) -> str:
    """Return the record's summary as a page."""
    lines = [
        "# What each chain reaches by itself",
        "",
        f"{record['date']}, {record['machine']['processor']}, {record['machine']['cores']} cores, "
        f"{record['seconds']:g} s a chain and instance, seed {record['seed']}. Written by "
        "`python -m bench.quality.members`. "
        "Values are divided by the default portfolio's; below 1 is better.",
    ]
    for objective, rows in record["summary"].items():
        lines += [
            "",
            f"## {objective}",
            "",
            "| chain | geometric mean | none better on | least | most |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {row['chain']} | {row['geometric_mean_over_default']:.3f} | {row['best_on']} of "
            f"{row['instances']} | {row['least'][1]:.3f} ({row['least'][0]}) | "
            f"{row['most'][1]:.3f} ({row['most'][0]}) |"
            for row in rows
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
