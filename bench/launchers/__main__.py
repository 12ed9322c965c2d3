"""Try random cases with each launcher, and record how many ran in the requested order."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from almanac.running.launchers import launcher_of
from bench.launchers.cases import KINDS, Case
from bench.launchers.pretended import LAUNCHERS, Pretended
from bench.launchers.trial import Trial, program_for, try_case
from bench.support.machine import about
from bench.support.paths import RESULTS

RECORD = RESULTS / "launchers.json"
SHOWN = 5
"""Most cases that did not run in their order, in the record."""


def missing(pretended: Pretended) -> str:
    """Return why a launcher cannot be tried on this machine; empty if it can."""
    for program in (*pretended.needs, pretended.compiler, "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return "" if os.geteuid() == 0 else "host names of one's own need root"


def version(pretended: Pretended) -> str:
    """Return the name of a launcher with its version."""
    name = launcher_of(pretended.needs[:1]).name
    if not pretended.asked:
        return name
    done = subprocess.run(pretended.asked, capture_output=True, text=True, check=True)
    return f"{name} {done.stdout.split()[-1]}"


def tried(pretended: Pretended, numbers: Sequence[int], seed: int) -> Iterator[tuple[Case, Trial]]:
    """Yield each case of a launcher with what was seen; the MPI program is compiled once."""
    with tempfile.TemporaryDirectory(prefix="almanac-launchers-") as name:
        folder = Path(name)
        program = program_for(pretended, folder)
        assert program is not None, f"{pretended.compiler} compiles no MPI program"
        with pretended.open(folder) as job:
            for number in numbers:
                case = Case.draw(number, seed)
                yield case, try_case(case, pretended, job, program, folder)


def counted(found: Sequence[tuple[Case, Trial]]) -> dict[str, Any]:
    """Return the counts of a launcher's cases, by kind, and the cases that failed."""
    kinds: Counter[str] = Counter()
    for case, trial in found:
        each, is_step = KINDS[case.number % len(KINDS)]
        kind = f"{each or 'uneven'} per host, {'step of a larger job' if is_step else 'whole job'}"
        kinds[kind] += 1
        kinds[f"{kind}: equal"] += trial.equal
    failed = [
        {"number": case.number, "requested": one.requested, "printed": one.printed, "error": one.error}
        for case, one in found
        if not one.equal
    ]
    return {
        "cases": len(found),
        "equal": sum(one.equal for _, one in found),
        "ranks": sum(case.ranks for case, _ in found),
        "kinds": dict(sorted(kinds.items())),
        "failed": failed[:SHOWN],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Try what is named; each launcher replaces its own counts in the record."""
    parser = argparse.ArgumentParser(prog="python -m bench.launchers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(LAUNCHERS)} (default: all)")
    parser.add_argument("--cases", type=int, default=100, help="cases per launcher [default: %(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="[default: %(default)s]")
    parser.add_argument(
        "--as", dest="named", help="name in the record, for a further version of one launcher"
    )
    parser.add_argument("--trial", action="store_true", help="print, and record nothing")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(LAUNCHERS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if given.named and len(given.names) != 1:
        parser.error("--as is for one launcher")
    for name in given.names or LAUNCHERS:
        pretended = LAUNCHERS[name]
        if reason := missing(pretended):
            print(f"{name} is skipped: {reason}", file=sys.stderr)
            continue
        counts = counted(list(tried(pretended, range(given.cases), given.seed)))
        found = {
            **about(),
            "version": version(pretended),
            "seed": given.seed,
            **counts,
        }
        entry = {given.named or name: found}
        print(json.dumps(entry, indent=2), flush=True)
        if not given.trial:
            record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
            RECORD.write_text(json.dumps({**record, **entry}, indent=2) + "\n")


if __name__ == "__main__":
    main()
