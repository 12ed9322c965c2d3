"""Kernels compiled while the first steps of the demonstration run."""

from __future__ import annotations

import time
from typing import Any

import pytest

from almanac.demo import precompile
from almanac.demo.precompile import compile_kernels, precompiled_kernels
from mapping.kernels.compiling import COMPILING


def test_waiting_ends_when_the_kernels_are_compiled() -> None:
    phases: list[str] = []
    with precompiled_kernels(lambda phase, *_: phases.append(phase)) as wait:
        wait()
        wait()
    assert set(phases) <= {COMPILING}


def test_the_end_of_the_block_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile, "compile_kernels", endless)
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt), precompiled_kernels():
        raise KeyboardInterrupt
    assert time.perf_counter() - started < 60


def test_the_kernels_of_circuits_and_simulations_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    compile_kernels()
    from mapping.reconfiguration.kernels.local_update import refine
    from mapping.simulation.kernels.packet_simulation import run_packets

    kernels: tuple[Any, ...] = (refine, run_packets)
    for kernel in kernels:
        assert kernel.signatures


def endless() -> None:
    time.sleep(600)
