"""What is reported while kernels are compiled."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from almanac.output.compiling import kernel_progress_bars
from mapping.kernels.compiling import COMPILING, Compiling
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


def reported(path: Path) -> tuple[int, list[tuple[str, float, float | None]]]:
    """Load the kernels of a file and call one; return its result and what was reported meanwhile."""
    reports: list[tuple[str, float, float | None]] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        reports.append((phase, done, total))

    spec = importlib.util.spec_from_file_location("kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with Compiling(progress):
        found = module.outer(20)
    module.inner(2.0)  # compiled again, outside of the block
    return found, reports


def test_compiling_is_reported_once_per_machine(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    found, reports = reported(path)
    assert found == 42
    assert {phase for phase, _, _ in reports} == {COMPILING}
    assert [done for _, done, _ in reports] == [0, 1]
    assert reports[-1] == (COMPILING, 1, 1)
    assert reported(path) == (42, [])


def test_nothing_is_drawn_if_nobody_looks() -> None:
    with kernel_progress_bars() as progress:
        assert progress is silent
