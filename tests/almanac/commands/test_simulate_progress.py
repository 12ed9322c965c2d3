"""A long simulation says first how long it takes, and prints progress where there is no terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanac.commands.analysis import simulate
from almanac.output import printing
from tests.almanac.conftest import Almanac


@pytest.fixture
def words(offline: Almanac, tmp_path: Path) -> tuple[object, ...]:
    torus, ring, order = tmp_path / "torus.json", tmp_path / "ring.csv", tmp_path / "order.txt"
    offline.ok("generate", "fabric", "torus", "--sides", "4x4", "--format", "node-link", "-o", torus)
    ring.write_text("src,dst,bytes\n0,1,80000\n1,2,8\n2,0,8\n")
    offline.ok("map", ring, "--fabric", torus, "--steps", 10, "--export", f"slurm-hostfile={order}")
    return ("simulate", ring, "--fabric", torus, "--placement", order)


def test_a_short_run_prints_nothing_more(offline: Almanac, words: tuple[object, ...]) -> None:
    err = offline.ok(*words).err
    assert "takes about" not in err
    assert "simulating" not in err


def test_a_long_run_is_announced_and_reported(
    offline: Almanac, words: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(printing, "LINE_SECONDS", 0.0)
    first, *rest = offline.ok(*words).err.splitlines()
    assert first == "the run takes about 0 s of computing; Ctrl-C prints what was delivered until then"
    assert any(line.startswith("simulating: 100%, 3 of 3, after ") for line in rest)


def test_lines_of_progress_are_few(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("almanac.output.printing.time.monotonic", lambda: now[0])
    with printing.progress_bars(piped=True) as progress:
        for second in range(25):
            now[0] = float(second)
            progress("simulating", 1000 * second, 25_000)
    assert capsys.readouterr().err.splitlines() == [
        "simulating: 40%, 10,000 of 25,000, after 10 s",
        "simulating: 80%, 20,000 of 25,000, after 20 s",
    ]
