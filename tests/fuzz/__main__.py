"""``python -m tests.fuzz``: damaged files of every format, of which only `InputError` may come."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ingest.catalog import FORMATS
from tests.fuzz.cases import check, load
from tests.fuzz.runs import run
from tests.fuzz.worker import Task


def main(arguments: list[str] | None = None) -> int:
    """Fuzz, or replay one case; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="for all formats together")
    parser.add_argument("--mutants", type=int, default=0, help="cases of each format at most; 0: no limit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--format", action="append", choices=[format.name for format in FORMATS], help="only this one"
    )
    parser.add_argument(
        "--unguided", action="store_true", help="damage samples alone, whatever lines that reaches"
    )
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for what fails")
    parser.add_argument("--replay", type=Path, help="folder of a case that was kept")
    given = parser.parse_args(arguments)
    if given.replay:
        print("read" if check(load(given.replay), everybody=True) else "refused as it should be")
        return 0
    names = given.format or [format.name for format in FORMATS]
    seconds, guided = given.seconds / len(names), not given.unguided
    tasks = [Task(name, given.seed, given.mutants, seconds, guided, given.keep) for name in names]
    found = cases = 0
    for outcome in run(tasks):
        cases += outcome.cases
        found += len(outcome.failures)
        print(
            f"{outcome.format:20} {outcome.cases:7} cases {outcome.read:7} read {outcome.lines:5} lines",
            flush=True,
        )
        for failure in outcome.failures:
            print(f"  {failure.what}\n    python -m tests.fuzz --replay {failure.place}", flush=True)
    print(f"{cases} cases, {found} failures; seed {given.seed}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
