"""Measure the test suite in a fresh clone: the installation, and each of the Makefile's targets for tests.

Run ``python -m bench.speed.suite`` in the project's folder, while the machine does nothing else; it needs the
package index, and takes half an hour. Writes ``bench/results/suite.json``: the wall time of each target, and
of the last two, which together run everything, the tests and the seconds of all their steps by tier, and the
slowest of these steps.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from pathlib import Path

from bench.support.machine import save
from bench.support.paths import RESULTS, ROOT

RECORD = RESULTS / "suite.json"
TARGETS = (".venv/.installed-dev", "test-unit", "test", "test-system")
_TIER = re.compile(r"^(\w+): (\d+) tests, (\d+) s$", re.MULTILINE)
_SLOW = re.compile(r"^([\d.]+)s (setup|call|teardown) +(\S.*)$", re.MULTILINE)


def main() -> None:
    """Clone, install, run every target, and record its time; a target that fails is named."""
    seconds, failed, printed = dict[str, float](), list[str](), ""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        for target in TARGETS:
            begun = time.monotonic()
            done = subprocess.run(["make", target], cwd=clone, capture_output=True, text=True, check=False)
            seconds[target] = round(time.monotonic() - begun, 1)
            failed += [target] * (done.returncode != 0)
            printed = printed + done.stdout if target == TARGETS[-1] else done.stdout
    record(seconds, failed, printed)


def record(seconds: dict[str, float], failed: list[str], printed: str) -> None:
    """Save the times of targets, and what the runs of the last two printed of tiers and slow steps."""
    found = [(name, int(tests), int(of)) for name, tests, of in _TIER.findall(printed)]
    tiers = {name: {"tests": tests, "seconds": of} for name, tests, of in found if tests}
    steps = sorted(((float(of), step, test) for of, step, test in _SLOW.findall(printed)), reverse=True)
    slow = [{"seconds": of, "step": step, "test": test} for of, step, test in steps[:20]]
    sizes = {"tests": sum(tier["tests"] for tier in tiers.values())}
    save(RECORD, sizes, {"seconds": seconds, "failed": failed, "tiers": tiers, "slowest": slow})


if __name__ == "__main__":
    main()
