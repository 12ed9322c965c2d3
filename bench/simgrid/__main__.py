"""Simulate the cases with SimGrid and record its times: ``python -m bench.simgrid [--only NAME]``.

Needs Debian's python3-simgrid, which the system's Python imports, not this project; with ``--ours`` its
recorded times are used. Without ``--only``, our times beside SimGrid's are written to
``bench/results/simgrid.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.simgrid.cases import CASES, RECORDS, Case, case_json, ours
from bench.support import paths
from bench.support.machine import now
from mapping.simulation.messages import Options
from registry.model import Simulation

SCRIPT = Path(__file__).with_name("with_simgrid.py")
VARIANTS = {"with_latency": (), "without_latency": ("--without-latency",)}
"""Keys of a record, and arguments of the script."""
RESULT = paths.RESULTS / "simgrid.json"
VARIED = {
    "2 packets": Options(lanes=2, buffer_bytes=2 * 2048),
    "16 packets": Options(lanes=2, buffer_bytes=16 * 2048),
    "512 packets": Options(lanes=2, buffer_bytes=512 * 2048),
    "one lane": Options(lanes=1, buffer_bytes=16 * 2048),
}
"""Other buffers and lanes for the torus."""


def main(arguments: list[str] | None = None) -> None:
    """Record the chosen cases, or all, and our times beside them."""
    parser = argparse.ArgumentParser(prog="python -m bench.simgrid", description=__doc__)
    parser.add_argument("--only", choices=list(CASES), help="this case")
    parser.add_argument("--ours", action="store_true", help="only our times, beside those recorded")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has SimGrid's bindings")
    parser.add_argument("--output", type=Path, default=RECORDS)
    given = parser.parse_args(arguments)
    found = {}
    for name in [given.only] if given.only else CASES:
        path = given.output / f"{name}.json"
        if not given.ours:
            case = case_json(CASES[name]())
            path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"case": case, **recorded(case, given.python)}, separators=(",", ":"))
            path.write_text(text + "\n", "utf-8")
        found[name] = compared(CASES[name](), json.loads(path.read_text("utf-8")))
        print(name, json.dumps(found[name]))
    if not given.only:
        torus = CASES["uniform-torus"]()
        theirs = found["uniform-torus"]["mean"]["without_latency"]
        varied = {name: mean(ours(replace(torus, options=one))) / theirs for name, one in VARIED.items()}
        record = {"date": now(), "cases": found, "torus_mean_over_equal_weights": varied}
        RESULT.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def compared(case: Case, record: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return when the last message is delivered, and the mean over all, by us and by SimGrid."""
    run = ours(case)
    theirs = {variant: summary(record[variant]) for variant in VARIANTS}
    mine = {"last": run.completion_seconds, "mean": mean(run)}
    return {
        which: {"ours": value, **{variant: theirs[variant][which] for variant in VARIANTS}}
        for which, value in mine.items()
    }


def mean(run: Simulation) -> float:
    """Return the mean of the times of delivery."""
    return float(run.delivered_at.mean())


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
