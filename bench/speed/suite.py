"""Measure the test suite in a fresh clone: the installation, and each of the Makefile's targets for tests.

Run ``python -m bench.speed.suite`` in the project's folder, while the machine does nothing else; it needs the
package index, and takes about an hour. Writes ``bench/results/suite.json``: of each target the wall time, of
the last one the tests and the seconds of their set-up and call by tier, and the slowest of these steps.
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
TARGETS = (".venv/.installed-dev", "test-unit", "test", "test-all")
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
            seconds[target], printed = round(time.monotonic() - begun, 1), done.stdout
            failed += [target] * (done.returncode != 0)
    tiers = {name: {"tests": int(tests), "seconds": int(of)} for name, tests, of in _TIER.findall(printed)}
    slow = [{"seconds": float(of), "step": step, "test": test} for of, step, test in _SLOW.findall(printed)]
    sizes = {"tests": sum(tier["tests"] for tier in tiers.values())}
    save(RECORD, sizes, {"seconds": seconds, "failed": failed, "tiers": tiers, "slowest": slow})


if __name__ == "__main__":
    main()
