"""What the papers say, and the page that sets ours beside it."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from bench.papers.mapping.__main__ import FIGURES, main
from bench.papers.mapping.autonet import TABLE_2, table
from bench.papers.mapping.tianhe3 import _grid, programs
from bench.support.figure_page import page
from bench.support.figures import Effort, Figure, Row, load, said, save


def test_every_value_has_its_sentence_and_place() -> None:
    for key, one in said().items():
        assert one.quote, key
        assert one.where.startswith(("2011, ", "2020, ", "2004, ")), key
        assert key.startswith(("5", "6", "ta-", "2020-", "2004-"))


def test_numbers_stand_in_the_sentence_that_is_quoted() -> None:
    for key, one in said().items():
        if isinstance(one.value, str):
            continue
        percent = f"{abs(one.value) * 100:g}%"
        plain = (f"{one.value:g}", f"{one.value:.2f}", "three") if one.value > 0 else (percent,)
        assert any(text in one.quote for text in plain), key


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_a_module(name: str) -> None:
    assert callable(importlib.import_module(f"bench.papers.mapping.{FIGURES[name]}").run)


def test_a_record_with_a_value_that_no_paper_says_is_refused(tmp_path: Path) -> None:
    figure = Figure(title="t", setting="s", rows=(Row(what="w", ours=1.0, paper="no such"),))
    with pytest.raises(KeyError, match="no such"):
        save("f", figure, Effort(), tmp_path)


def test_a_page_sets_ours_beside_the_paper_and_explains_once(tmp_path: Path) -> None:
    rows = (
        Row(what="a", ours=-0.25, baseline="in-order", paper="5a-greedy-27", why="another matrix"),
        Row(what="b", ours="not reproduced", why="another matrix"),
    )
    save("f", Figure(title="Figure", setting="Setting.", rows=rows), Effort(), tmp_path)
    text = page(load(tmp_path))
    assert "| a | -0.27 (2011, 5.3.1, Figure 5(a)) | -0.25 | in-order | note 1 |" in text
    assert "| b |  | not reproduced |  | note 1 |" in text
    assert text.count("another matrix") == 1
    assert said()["5a-greedy-27"].quote in text


def test_a_figure_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["2011-figure-9"])
    assert "there is no 2011-figure-9" in capsys.readouterr().err


def test_table_2_is_reproduced_to_the_digit_from_both_roots() -> None:
    """Orduna et al. 2004, Table 2."""
    for root in ("switch6", "switch3"):
        assert np.array_equal(np.round(table(root), 2), np.array(TABLE_2, float))
    assert not np.array_equal(np.round(table("switch0"), 2), np.array(TABLE_2, float))


@pytest.mark.parametrize("ranks", [256, 512, 4096])
def test_the_programs_of_2020_have_the_ranks_asked_for(ranks: int) -> None:
    assert np.prod(_grid(ranks)) == ranks
    for name, make in programs().items():
        if name not in ("bt", "sp") or ranks != 512:
            assert make(ranks).ranks == ranks
