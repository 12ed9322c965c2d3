"""Kernels compiled beside the demonstration's first steps."""

from __future__ import annotations

import time

import pytest

from almanac.demo import precompile as ahead
from almanac.demo.precompile import COMPILING, compile_kernels, kernels_ahead


def test_waiting_ends_when_kernels_are_there() -> None:
    told: list[str] = []
    with kernels_ahead(lambda phase, *_: told.append(phase)) as wait:
        wait()
        wait()
    assert set(told) <= {COMPILING}


def test_leaving_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "compile_kernels", endless)
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt), kernels_ahead():
        raise KeyboardInterrupt
    assert time.perf_counter() - begun < 60


def test_what_circuits_and_runs_need_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    compile_kernels()
    from mapping.reconfiguration.kernels.local_update import refine
    from mapping.simulation.kernels.packet_simulation import run_packets

    for kernel in (refine, run_packets):
        assert kernel.signatures


def endless() -> None:
    time.sleep(600)
