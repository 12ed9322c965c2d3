"""What the papers say, the parts that reproduce it, and the pages that set our values beside it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import bench.papers.mapping.__main__ as mapping
import bench.simulation.__main__ as simulation
from bench.papers.circuits.said import claims
from bench.simulation.runs import VALUES
from bench.simulation.runs import Effort as SimulationEffort
from bench.support.figure_page import page
from bench.support.figures import Effort, Figure, Row, Said, Table, load, said, save


def percent(value: float) -> tuple[str, ...]:
    return (f"{abs(value) * 100:g}%",)


def of_mapping(value: float) -> tuple[str, ...]:
    return (f"{value:g}", f"{value:.2f}", "three") if value > 0 else percent(value)


def of_circuits(value: float) -> tuple[str, ...]:
    return percent(value) if isinstance(value, float) else (f"{value} ", f"{value})")


@pytest.mark.parametrize(
    ("known", "place", "written"),
    [
        (said(), lambda key: ("2011, ", "2020, ", "2004, "), of_mapping),
        (said(VALUES), lambda key: f"{key[:4]}, ", percent),
        (claims(), lambda key: "section ", of_circuits),
    ],
    ids=["mapping", "simulation", "circuits"],
)
def test_every_value_has_its_place_and_stands_in_the_sentence_that_is_quoted(
    known: Mapping[str, Said],
    place: Callable[[str], str | tuple[str, ...]],
    written: Callable[[float], tuple[str, ...]],
) -> None:
    for key, one in known.items():
        assert one.quote, key
        assert one.where.startswith(place(key)), key
        if not isinstance(one.value, str):
            assert any(text in one.quote for text in written(one.value)), key


def test_every_part_has_a_module_and_no_other_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    for package, parts in (("papers.mapping", mapping.FIGURES), ("simulation", simulation.PARTS)):
        for name in parts.values():
            assert callable(importlib.import_module(f"bench.{package}.{name}").run)
    for main, words in ((mapping.main, ["2011-figure-9"]), (simulation.main, ["--only", "2011-figure-9"])):
        with pytest.raises(SystemExit):
            main(words)
        assert "there is no 2011-figure-9" in capsys.readouterr().err


def test_a_record_with_a_value_that_no_paper_says_is_refused(tmp_path: Path) -> None:
    figure = Figure(title="t", setting="s", rows=(Row(what="w", ours=1.0, paper="no such"),))
    with pytest.raises(KeyError, match="no such"):
        save("f", figure, Effort(), tmp_path)


def test_a_page_sets_ours_beside_the_paper_and_explains_once(tmp_path: Path) -> None:
    rows = (
        Row(what="a", ours=-0.25, baseline="in-order", paper="5a-greedy-27", why="another matrix"),
        Row(what="b", ours="not reproduced", why="another matrix"),
    )
    table = Table(title="By size", head=("program", "change (%)", "seconds"), cells=(("lu", 8.4, 0.0023),))
    figure = Figure(title="Figure", setting="Setting.", rows=rows, picture=b"png", tables=(table,))
    save("f", figure, Effort(), tmp_path)
    assert (tmp_path / "f.png").read_bytes() == b"png"
    text = page(load(tmp_path))
    assert "![Figure](f.png)" in text
    assert "| a | -0.27 (2011, 5.3.1, Figure 5(a)) | -0.25 | in-order | note 1 |" in text
    assert "| b |  | not reproduced |  | note 1 |" in text
    assert text.count("another matrix") == 1
    assert said()["5a-greedy-27"].quote in text
    assert "### By size\n\n| program | change (%) | seconds |\n|---|---|---|\n| lu | +8 | 0.0023 |" in text


def test_a_page_of_simulated_runs_has_their_values_and_head(tmp_path: Path) -> None:
    figure = Figure(title="F", setting="S.", rows=(Row(what="w", ours=0.5, paper="2004-locality"),))
    save("f", figure, SimulationEffort().to_json(), tmp_path, VALUES)
    text = page(load(tmp_path), said(VALUES), simulation.HEAD)
    assert "# Simulated runs" in text
    assert "| w | 0.6 (2004, 5.2, Figure 8) | 0.5 |" in text
    assert said(VALUES)["2004-locality"].quote in text
