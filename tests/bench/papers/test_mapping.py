"""What the papers say, and the page that sets ours beside it."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

import numpy as np
import pytest

from bench.papers.mapping.__main__ import FIGURES, main
from bench.papers.mapping.algorithm_3 import accept_on_estimate, algorithm_3, estimator
from bench.papers.mapping.autonet import TABLE_2, shares, table
from bench.papers.mapping.fat_trees_2011 import in_order_of
from bench.papers.mapping.mapping_2011 import by_size, first_hosts
from bench.papers.mapping.random_search import restarted
from bench.papers.mapping.rcm_matrices import bandwidth_and_profile
from bench.papers.mapping.tianhe3 import other_grids, programs
from bench.support.figure_page import page
from bench.support.figures import Effort, Figure, Row, Table, load, said, save
from bench.support.processor_clock import processor_clock
from ingest.generate.fat_trees import director_tree
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.tori import torus
from mapping.deadline import Deadline
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies.baselines import in_order
from mapping.placement.strategies.random_search import search
from mapping.routing.catalog import build_routes
from tests.support.search_problems import problem_on, ring


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


def test_traffic_takes_the_two_shortest_paths_of_table_1() -> None:
    assert shares(0, 1, "switch6") == {"0-2": 0.5, "2-1": 0.5, "0-4": 0.5, "4-1": 0.5}


def test_the_random_search_is_restarted_until_a_time_is_over() -> None:
    problem = problem_on(*ring(8, 8), "shortest-paths")
    once = restarted(problem, 3)
    alone = search(problem, np.random.default_rng(3))
    assert (once.seeds, once.host_of_rank.tolist()) == (10, alone.host_of_rank.tolist())
    assert once.coefficient == pytest.approx(problem.hop_bytes(once.host_of_rank))
    again = restarted(problem, 3, 0.05)
    assert again.seeds > 10
    assert again.seconds >= 0.05
    assert again.coefficient <= once.coefficient


@pytest.mark.parametrize("ranks", [256, 512, 4096])
def test_the_programs_of_2020_have_the_ranks_asked_for(ranks: int) -> None:
    for name, make in {**programs(), **other_grids()}.items():
        if name not in ("bt", "sp") or ranks != 512:
            assert make(ranks).ranks == ranks


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([-0.1, -0.2, -0.3], "-10%, -20%, -30%: grows"),
        ([-0.5, 0.02, 0.1], "-50%, +2%, +10%: shrinks"),
        ([-0.2, -0.3, -0.2], "-20%, -30%, -20%: no trend"),
        ([0.0, -0.0004], "+0%, +0%: no trend"),
    ],
)
def test_changes_by_size_name_the_direction(changes: list[float], text: str) -> None:
    assert by_size(changes) == text


def test_hosts_come_in_the_order_of_their_names() -> None:
    fabric = director_tree(24, 4, 1, 2, ports=24)  # six leaf switches of four hosts
    assert in_order_of("cabled", fabric) == list(range(24))
    assert in_order_of("names", fabric)[:13] == [0, 1, *range(10, 20), 2]
    assert in_order_of("racks", fabric)[:8] == [0, 4, 8, 12, 1, 5, 9, 13]
    assert in_order_of("racks", fabric)[16:20] == [16, 20, 17, 21]


def test_the_estimate_is_the_congestion_on_least_loaded_routes() -> None:
    fabric, profile = torus((3, 3, 3)), shuffled(stencil((3, 3, 3), 7), 1)
    placement = in_order(27, first_hosts(fabric, 27))
    found, hops = algorithm_3(fabric, profile, placement)
    expected = evaluate(fabric, profile, placement, costs=CostModel(routing="least-loaded"))
    assert found == pytest.approx(expected.congestion_seconds)
    assert hops == pytest.approx(expected.average_dilation)  # all edges have the same weight


def test_threshold_accepting_on_the_estimate_returns_the_best_it_has_seen() -> None:
    fabric, profile = torus((3, 3, 3)), shuffled(stencil((3, 3, 3), 7), 1)
    where = first_hosts(fabric, 27)
    problem = Problem(
        profile=profile, allocation=where, routes=build_routes("least-loaded", fabric, where.hosts)
    )
    start = np.arange(27, dtype=np.int32)
    found, proposals = accept_on_estimate(problem, start, 1.5)
    assert proposals % 20 == 0
    assert sorted(found) == list(range(27))
    assert estimator(problem)(found)[0] < estimator(problem)(start)[0]


def test_a_deadline_counts_processor_time_in_its_block() -> None:
    with processor_clock():
        deadline = Deadline(seconds=10.0)
        time.sleep(0.2)
        assert deadline.elapsed < 0.15
    wall = Deadline(seconds=10.0)
    time.sleep(0.2)
    assert wall.elapsed >= 0.2


def test_bandwidth_and_profile_of_a_small_matrix() -> None:
    # Rows 0 to 3 with entries (0, 2), (2, 3): row 2 reaches back 2, row 3 reaches back 1.
    assert bandwidth_and_profile(np.array([0, 3]), np.array([2, 2]), 4) == (2, 3)


def test_a_picture_is_kept_beside_its_record_and_shown(tmp_path: Path) -> None:
    figure = Figure(title="Figure", setting="Setting.", rows=(), picture=b"png")
    save("f", figure, Effort(), tmp_path)
    assert (tmp_path / "f.png").read_bytes() == b"png"
    assert "![Figure](f.png)" in page(load(tmp_path))


def test_the_grids_of_sweep3d_and_snap() -> None:
    """512 ranks: 16 x 32, or 16 x 32 as square as can be with the larger side where the program doubles."""
    known = {**programs(), **other_grids()}
    made = {name: known[name](512).name for name in ("sweep3d", "snap", *other_grids())}
    assert made["sweep3d"] == "sweep3d-16x32"
    assert made["sweep3d, square grid"] == "sweep3d-32x16"
    assert made["snap"] == "snap-16x32"
    assert made["snap, tall grid"] == "snap-16x32"
    assert programs()["snap"](4096).name == "snap-64x64"
    assert other_grids()["snap, tall grid"](4096).name == "snap-16x256"


def test_a_table_of_cases_is_printed_with_changes_in_percent(tmp_path: Path) -> None:
    table = Table(title="By size", head=("program", "change (%)", "seconds"), cells=(("lu", 8.4, 0.0023),))
    save("2020-table", Figure(title="A", setting="b", rows=(), tables=(table,)), Effort(), tmp_path)
    printed = page(load(tmp_path))
    assert "### By size\n\n| program | change (%) | seconds |\n|---|---|---|\n| lu | +8 | 0.0023 |" in printed
