"""Simulate the cases with SimGrid and record its times: ``python -m bench.simgrid [--only NAME]``.

Needs Debian's python3-simgrid, which the system's Python imports, not this project. Prints our times beside
SimGrid's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.simgrid.cases import CASES, RECORDS, case_json, ours

SCRIPT = Path(__file__).with_name("with_simgrid.py")
VARIANTS = {"with_latency": (), "without_latency": ("--without-latency",)}
"""Keys of a record, and arguments of the script."""


def main(arguments: list[str] | None = None) -> None:
    """Record the chosen cases, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench.simgrid", description=__doc__)
    parser.add_argument("--only", choices=list(CASES), help="this case")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has SimGrid's bindings")
    parser.add_argument("--output", type=Path, default=RECORDS)
    given = parser.parse_args(arguments)
    print("| case | | ours | SimGrid | ours / SimGrid | equal weights | ours / that |")
    print("|---|---|---|---|---|---|---|")
    for name in [given.only] if given.only else CASES:
        case = CASES[name]()
        record = {"case": case_json(case), **recorded(case_json(case), given.python)}
        given.output.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, separators=(",", ":"))
        (given.output / f"{name}.json").write_text(text + "\n", "utf-8")
        run = ours(case)
        mine = {"last": run.completion_seconds, "mean": float(run.delivered_at.mean())}
        for which, value in mine.items():
            theirs = [summary(record[variant])[which] for variant in VARIANTS]
            cells = [f"{one:.6g} s | {value / one:.4f}" for one in theirs]
            print(f"| {name} | {which} | {value:.6g} s | {' | '.join(cells)} |")


def recorded(case: dict[str, Any], python: str) -> dict[str, Any]:
    """Return SimGrid's result of a case, with and without latencies."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps(case), "utf-8")
        for variant, options in VARIANTS.items():
            done = subprocess.run(
                [python, str(SCRIPT), str(path), *options], stdout=subprocess.PIPE, check=True, text=True
            )
            found[variant] = json.loads(done.stdout)
    return found


def summary(said: dict[str, Any]) -> dict[str, float]:
    """Return when the last message was delivered, and the mean over all."""
    finished = np.asarray(said["finished_seconds"], np.float64)
    return {"last": float(finished.max()), "mean": float(finished.mean())}


if __name__ == "__main__":
    main()
