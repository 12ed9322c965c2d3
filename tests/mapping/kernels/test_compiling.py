"""Time spent on compiling is measured once, however compilations nest."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit

from mapping.kernels.compiling import Compiling


def double(x: Any) -> Any:
    return 2 * x


def test_compiling_a_function_takes_time_and_calling_it_again_takes_none() -> None:
    compiled: Any = njit(double)
    with Compiling() as first:
        assert compiled(3) == 6
    with Compiling() as again:
        assert compiled(4) == 8
    assert first.seconds > 0
    assert again.seconds == 0


def test_a_compilation_within_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 14.0])
    monkeypatch.setattr("mapping.kernels.compiling.time.perf_counter", lambda: next(clock))
    measured, any_event = Compiling(), Any
    measured.on_start(any_event)  # type: ignore[arg-type]
    measured.on_start(any_event)  # type: ignore[arg-type]
    measured.on_end(any_event)  # type: ignore[arg-type]
    measured.on_end(any_event)  # type: ignore[arg-type]
    assert measured.seconds == 4.0
