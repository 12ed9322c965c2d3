"""What papers say, the parts that reproduce it, their searches, and the pages and records of a run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bench.papers.circuits.__main__ as circuits
import bench.papers.mapping.__main__ as mapping
import bench.simulation.__main__ as simulation
from bench.papers.mapping.autonet import TABLE_2, shares, table
from bench.papers.mapping.fat_trees_2011 import in_order_of
from bench.papers.mapping.mapping_2011 import (
    Effort,
    accept_on_estimate,
    algorithm_3,
    by_size,
    estimator,
    first_hosts,
)
from bench.papers.mapping.random_search import restarted
from bench.papers.mapping.small_2011 import bandwidth_and_profile
from bench.papers.mapping.tianhe3 import other_grids, programs
from bench.support import papers, paths
from bench.support.machine import processor_clock
from bench.support.papers import Figure, Row, Table, claims, load, page, save
from ingest.generate.direct import torus
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.trees import director_tree
from mapping.cost.metrics import evaluate
from mapping.deadline import Deadline
from mapping.distances.cost_model import CostModel
from mapping.placement.methods.baselines import in_order, search
from tests.support.search_problems import problem_on, ring_problem


def percent(value: float) -> tuple[str, ...]:
    return (f"{abs(value) * 100:g}%",)


def of_mapping(value: float) -> tuple[str, ...]:
    return (f"{value:g}", f"{value:.2f}", "three") if value > 0 else percent(value)


@pytest.mark.parametrize(
    ("folder", "place", "written"),
    [
        ("papers/mapping", lambda key: ("2011, ", "2020, ", "2004, "), of_mapping),
        ("simulation", lambda key: f"{key[:4]}, ", percent),
        (
            "papers/circuits",
            lambda key: "section ",
            lambda value: percent(value) if isinstance(value, float) else (f"{value} ", f"{value})"),
        ),
    ],
    ids=["mapping", "simulation", "circuits"],
)
def test_every_value_has_its_place_and_stands_in_the_sentence_that_is_quoted(
    folder: str,
    place: Callable[[str], str | tuple[str, ...]],
    written: Callable[[float], tuple[str, ...]],
) -> None:
    for key, one in claims(paths.ROOT / "bench" / folder / "values.toml").items():
        assert one.quote, key
        assert one.where.startswith(place(key)), key
        if not isinstance(one.value, str):
            assert any(text in one.quote for text in written(one.value)), key


def test_every_part_has_a_module_and_no_other_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(map(callable, (*mapping.FIGURES.values(), *simulation.PARTS.values())))
    for main, words in ((mapping.main, ["2011-figure-9"]), (simulation.main, ["2011-figure-9"])):
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
    table = Table(title="By size", columns=("program", "change (%)", "seconds"), rows=(("lu", 8.4, 0.0023),))
    figure = Figure(title="Figure", setting="Setting.", rows=rows, picture=b"png", tables=(table,))
    save("f", figure, Effort(), tmp_path)
    assert (tmp_path / "f.png").read_bytes() == b"png"
    text = page(load(tmp_path), "# Head")
    assert "![Figure](f.png)" in text
    assert "| a | -27.0% (2011, 5.3.1, Figure 5(a)) | -25.0% | in-order | note 1 |" in text
    assert "| b |  | not reproduced |  | note 1 |" in text
    assert text.count("another matrix") == 1
    assert claims()["5a-greedy-27"].quote in text
    assert "### By size\n\n| program | change (%) | seconds |\n|---|---|---|\n| lu | +8 | 0.0023 |" in text


def tracked() -> dict[Path, int]:
    """Return when each record of the repository was changed."""
    return {path: path.stat().st_mtime_ns for path in paths.RESULTS.rglob("*") if path.is_file()}


def test_a_run_prints_the_table_of_the_page_and_changes_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tracked()
    monkeypatch.setattr(papers, "build", lambda: tmp_path)
    monkeypatch.setattr(papers, "has_plots", lambda: False)
    mapping.main(["2011-examples"])
    printed = capsys.readouterr()
    page = (paths.ROOT / "docs/explanation/papers/hoefler-snir-2011.md").read_text()
    assert page.partition("papers/2011-examples.json: * -->\n")[2].partition("<!--")[0] in printed.out
    assert (tmp_path / "papers" / "2011-examples.json").exists()
    assert tracked() == before


@pytest.mark.parametrize("main", [mapping.main, circuits.main, simulation.main])
def test_options_that_contradict_are_refused(main: object, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--record", "--small"], ["--record", "--output", "x"], ["--page-only"]):
        with pytest.raises(SystemExit):
            main(words)  # type: ignore[operator]
        assert words[0] in capsys.readouterr().err


def test_without_matplotlib_a_line_names_the_command_and_nothing_is_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(papers, "has_plots", lambda: False)
    with pytest.raises(SystemExit):
        mapping.main(["2011-examples", "--record"])
    assert "--record: plots need matplotlib: " in capsys.readouterr().err


def test_table_2_is_reproduced_to_the_digit_from_both_roots() -> None:
    """Orduna et al. 2004, Table 2."""
    for root in ("switch6", "switch3"):
        assert np.array_equal(np.round(table(root), 2), np.array(TABLE_2, float))
    assert not np.array_equal(np.round(table("switch0"), 2), np.array(TABLE_2, float))


def test_traffic_takes_the_two_shortest_paths_of_table_1() -> None:
    assert shares(0, 1, "switch6") == {"0-2": 0.5, "2-1": 0.5, "0-4": 0.5, "4-1": 0.5}


@pytest.fixture
def tenths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second of the processor passes between two looks at the clock."""
    clock = itertools.count()
    monkeypatch.setattr(time, "process_time", lambda: next(clock) / 10)


@pytest.mark.usefixtures("tenths")
def test_the_random_search_is_restarted_until_a_time_is_over() -> None:
    problem = ring_problem(8, 8)
    once = restarted(problem, 3)
    alone = search(problem, np.random.default_rng(3))
    assert (once.seeds, once.host_of_rank.tolist()) == (10, alone.host_of_rank.tolist())
    assert once.coefficient == pytest.approx(problem.hop_bytes(once.host_of_rank))
    again = restarted(problem, 3, 0.3)
    assert again.seeds == 30
    assert again.seconds == pytest.approx(0.4)
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


@pytest.mark.usefixtures("tenths")
def test_threshold_accepting_on_the_estimate_returns_the_best_it_has_seen() -> None:
    fabric, profile = torus((2, 2, 2)), shuffled(stencil((2, 2, 2), 7), 1)
    problem = problem_on(fabric, profile, first_hosts(fabric, 8), "least-loaded")
    start = np.arange(8, dtype=np.int32)
    found, proposals = accept_on_estimate(problem, start, 1.5)
    assert proposals == 14 * 20
    assert sorted(found) == list(range(8))
    assert estimator(problem)(found)[0] < estimator(problem)(start)[0]


def test_a_deadline_counts_processor_time_in_its_block() -> None:
    with processor_clock():
        before = time.process_time()
        assert before <= Deadline(seconds=10.0).begin <= time.process_time()
    before = time.perf_counter()
    assert before <= Deadline(seconds=10.0).begin <= time.perf_counter()


def test_bandwidth_and_profile_of_a_small_matrix() -> None:
    # Rows 0 to 3 with entries (0, 2), (2, 3): row 2 reaches back 2, row 3 reaches back 1.
    assert bandwidth_and_profile(np.array([0, 3]), np.array([2, 2]), 4) == (2, 3)


def test_the_grids_of_sweep3d_and_snap() -> None:
    """512 ranks: 16 x 32, or 16 x 32 as square as can be with the larger side where the program doubles."""
    known = {**programs(), **other_grids()}
    square = {
        name: known[name](512).name for name in ("sweep3d", "sweep3d, square grid", "snap", "snap, tall grid")
    }
    assert list(square.values()) == ["sweep3d-16x32", "sweep3d-32x16", "snap-16x32", "snap-16x32"]
    assert [known[name](4096).name for name in ("snap", "snap, tall grid")] == ["snap-64x64", "snap-16x256"]
