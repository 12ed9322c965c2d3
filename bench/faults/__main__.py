"""Run the trials and record their counts."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.faults.commands import CASES, Case, Outcome, at_home, fresh_copy, prepare
from bench.faults.crowd import crowd, scans_of
from bench.faults.disturb import VICTIMS, filled, killed, restarted, small_disk
from bench.faults.trial import Trial, Undisturbed, judge, undisturbed
from bench.support.machine import about, write_record
from bench.support.paths import RESULTS
from ingest.catalog import FORMATS
from registry.database.embedded_server import stop
from tests.fuzz.runs import run
from tests.fuzz.worker import Task

RECORD = RESULTS / "faults.json"
LEFT_BYTES = 600_000
"""The disk that runs full has at most this left."""


def main() -> None:
    """Run what is named; each part replaces its own counts in the record."""
    parts: dict[str, Callable[[Path, argparse.Namespace], dict[str, Any]]] = {
        "kills": _kills,
        "full-disk": _full_disk,
        "restarts": _restarts,
        "crowd": _crowd,
        "fuzz": _fuzz,
    }
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(parts)} (default: all)")
    parser.add_argument("--trials", type=int, default=100, help="number of kills")
    parser.add_argument(
        "--seconds", type=float, default=600, help="length of the crowd, a sixth of the fuzzing"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="a smaller fabric; prints, and records nothing")
    given = parser.parse_args()
    if unknown := set(given.names) - set(parts):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name in given.names or parts:
        with tempfile.TemporaryDirectory(prefix="almanac-faults-") as folder:
            counts = parts[name](Path(folder), given)
        record[name] = {**about(), "seed": given.seed, **counts}
        print(json.dumps({name: record[name]}, indent=2))
        if not given.small:
            write_record(RECORD, record)


def _kills(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Kill commands and servers, each command as often as the others."""
    base = prepare(folder, small=given.small)
    rng = np.random.default_rng(given.seed)

    def disturbed(case: Case, plain: Undisturbed, turn: int, work: Path) -> tuple[Outcome, dict[str, str]]:
        variables = at_home(fresh_copy(base, work))
        victim = VICTIMS[turn // len(CASES) % 2]
        moment = float(rng.uniform(0, 1.05 * plain.seconds))
        return killed(case, victim, moment, base.parent / "files", variables, work), variables

    return _trials(base, given.trials, folder, disturbed)


def _full_disk(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Let the disk run full at each command four times."""
    base = prepare(folder, small=given.small)
    rng = np.random.default_rng(given.seed)

    def disturbed(case: Case, plain: Undisturbed, turn: int, work: Path) -> tuple[Outcome, dict[str, str]]:
        variables = at_home(fresh_copy(base, work))
        moment, left = float(rng.uniform(0, plain.seconds)), int(rng.uniform(0, LEFT_BYTES))
        return filled(case, moment, left, work, base.parent / "files", variables), variables

    with small_disk(folder / "disk") as disk:
        return _trials(base, 4 * len(CASES), disk, disturbed)


def _restarts(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Restart Neo4j during each command four times."""
    base = prepare(folder, small=given.small)
    done: list[Trial] = []
    for trial in restarted(base, folder, np.random.default_rng(given.seed)):
        done.append(trial)
        print(f"{len(done):4}", trial, flush=True)
    return _counts(done)


def _crowd(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Let writers and readers work at the same time."""
    variables = at_home(folder / "home")
    scans = scans_of(folder, variables)
    tallies, lost = crowd(scans, given.seconds, variables, folder)
    stop(folder / "home")
    codes = sum((tally.codes for tally in tallies), Counter[str]())
    faults = [fault for tally in tallies for fault in tally.faults]
    return {"seconds": given.seconds, "commands": dict(sorted(codes.items())), "lost": lost, "faults": faults}


def _fuzz(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Fuzz every format, of which only `InputError` may come; what fails is kept in ``fuzz-failures``."""
    seconds = 6 * given.seconds
    kept, each = Path("fuzz-failures"), seconds / len(FORMATS)
    tasks = [Task(one.name, given.seed, 0, each, guided=True, folder=kept) for one in FORMATS]
    done = []
    for outcome in run(tasks):
        done.append(outcome)
        print(f"{outcome.format:20} {outcome.cases:7} cases {len(outcome.failures):3} failures", flush=True)
    faults = [f"{one.format}: {failure.what}" for one in done for failure in one.failures]
    return {
        "seconds": seconds,
        "formats": len(done),
        "cases": sum(one.cases for one in done),
        "read": sum(one.read for one in done),
        "faults": faults,
    }


def _trials(
    base: Path,
    number: int,
    folder: Path,
    disturbed: Callable[[Case, Undisturbed, int, Path], tuple[Outcome, dict[str, str]]],
) -> dict[str, Any]:
    """Run each case undisturbed once, then the trials in turn; return their counts."""
    plain: dict[str, Undisturbed] = {}
    work, files = folder / "work", base.parent / "files"
    done: list[Trial] = []
    for turn in range(number):
        case = CASES[turn % len(CASES)]
        work.mkdir(exist_ok=True)
        if case.name not in plain:
            plain[case.name] = undisturbed(case, at_home(fresh_copy(base, work)), files, work)
        outcome, variables = disturbed(case, plain[case.name], turn, work)
        done.append(judge(case, plain[case.name], outcome, variables, files, work))
        print(f"{turn + 1:4} of {number}", done[-1], flush=True)
        stop(work / "home")
        shutil.rmtree(work)
    return _counts(done)


def _counts(trials: list[Trial]) -> dict[str, Any]:
    """Return how often each command left what, and every fault."""
    left: dict[str, Counter[str]] = {trial.case: Counter() for trial in trials}
    for trial in trials:
        left[trial.case][trial.left] += 1
    faults = [f"{trial.case}: {fault}" for trial in trials for fault in trial.faults]
    return {
        "trials": len(trials),
        "left": {name: dict(counts) for name, counts in left.items()},
        "faults": faults,
    }


if __name__ == "__main__":
    main()
