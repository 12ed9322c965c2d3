"""What is reported while kernels are compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from almanac.output.compiling import kernel_progress_bars
from mapping.kernels.compiling import COMPILING
from registry.progress import silent

KERNELS = """
from numba import njit

@njit(cache=True)
def inner(number):
    return number + 1

@njit(cache=True)
def outer(number):
    return 2 * inner(number)
"""


REPORTED = """
import json, sys
from mapping.kernels.compiling import Compiling

sys.path.append(sys.argv[1])
import counted

reports = []
with Compiling(lambda phase, done, total=None, best=None: reports.append((phase, done, total))):
    found = counted.outer(20)
counted.inner(2.0)  # compiled again, outside of the block
print(json.dumps((found, reports)))
"""


def reported(folder: Path) -> tuple[int, list[list[Any]]]:
    """Call kernels of a module ``counted`` in a process of its own; return the result and the reports.

    Other threads of this process may compile kernels meanwhile, which would be reported, too.
    """
    done = subprocess.run([sys.executable, "-c", REPORTED, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, reports = json.loads(done.stdout)
    return found, reports


def test_compiling_is_reported_once_per_machine(tmp_path: Path, processes: None) -> None:
    (tmp_path / "counted.py").write_text(KERNELS)
    assert reported(tmp_path) == (42, [[COMPILING, 0, None], [COMPILING, 1, 1]])
    assert reported(tmp_path) == (42, [])


def test_nothing_is_drawn_if_nobody_looks() -> None:
    with kernel_progress_bars() as progress:
        assert progress is silent
