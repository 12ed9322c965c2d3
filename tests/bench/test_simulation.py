"""The statistics of rank correlation, and how the papers' claims on simulated runs are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

import almanac.commands.map as map_command
from bench.simulation import equal_time_2004, machines, metrics, networks_2004
from bench.simulation.__main__ import main
from bench.simulation.cases import Effort, draws, exchanged, fat_tree, interval, kendall, spearman
from bench.simulation.metrics import Case, _order
from bench.simulation.networks_2004 import (
    Outcome,
    Tried,
    rows_of_cg,
    rows_of_coefficients,
    rows_of_rounds,
    rows_of_sp,
)
from bench.support.papers import PartSkipped, Row
from bench.support.papers import claims as published
from ingest.generate.direct import torus
from mapping.placement.methods.baselines import in_order
from registry.model import Allocation, Placement

LOCAL, MEAN = "best random mapping with locality", "mean of the random mappings"
EVERY = "all random mappings, with locality and without"


def test_what_needs_traces_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["2004-figures-8-13", "--small", "--output", str(tmp_path)])
    assert "2004-figures-8-13: left out, it needs --traces FOLDER" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.json"))
    with pytest.raises(PartSkipped, match="trace_npb_cg"):
        Effort(traces=tmp_path).trace("cg")


@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_coefficients_are_those_of_scipy_and_zero_where_all_values_are_equal(
    pairs: list[tuple[int, int]],
) -> None:
    x, y = np.array(pairs, float).T
    if len(np.unique(x)) == 1 or len(np.unique(y)) == 1:
        assert (float(spearman(x, y)), float(kendall(x, y))) == (0.0, 0.0)
        return
    assert float(spearman(x, y)) == pytest.approx(spearmanr(x, y).statistic)
    assert float(kendall(x, y)) == pytest.approx(kendalltau(x, y).statistic)


def test_resamples_are_judged_row_by_row() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.random((2, 9))
    chosen = draws(9, 20, generator)
    for statistic in (spearman, kendall):
        together = statistic(x[chosen], y[chosen])
        np.testing.assert_allclose(together, [float(statistic(x[rows], y[rows])) for rows in chosen])
    assert interval(np.arange(1001.0)) == (25.0, 975.0)


def test_orders_ignore_rounding_and_regret_is_of_the_placements_that_a_metric_puts_first() -> None:
    values = [(1.0, 5.0), (1.0, 3.0), (1.0 + 1e-12, 3.0), (0.5, 9.0)]
    assert _order(values).tolist() == [3.0, 1.0, 1.0, 0.0]
    order = {"m": np.array([0.0, 0.0, 2.0])}
    seconds = np.array([3.0, 2.0, 1.0])
    case = Case(fabric="f", program="p", kinds=("a", "b", "c"), values=order, plain=order, seconds=seconds)
    assert case.regret("m") == pytest.approx(1.5)


def on_torus() -> Placement:
    fabric = torus((3, 3))
    return in_order(9, Allocation.of(fabric, fabric.hosts.tolist()))


def test_exchanges_keep_the_hosts_that_are_used() -> None:
    placement = on_torus()
    spoilt = exchanged(placement, 1, np.random.default_rng(1))
    assert int((spoilt.host_of_rank != placement.host_of_rank).sum()) == 2
    assert sorted(spoilt.host_of_rank.tolist()) == placement.host_of_rank.tolist()


def test_the_fat_tree_has_64_hosts_and_tables() -> None:
    fabric = fat_tree()
    assert len(fabric.hosts) == 64
    assert fabric.tables is not None


def outcome(throughput: float, peak: float = 1.0) -> Outcome:
    curve: dict[str, Any] = {"at": (1.0,), "traffic": (1.0,), "latency": (peak,)}
    return Outcome(throughput=throughput, peak_latency=peak, mean_latency=1.0, **curve)


def tried(found: float, local: float, random: float, *, peak: float = 1.0) -> Tried:
    """A network by the throughput of the best mapping of each kind."""
    return Tried(
        random=(outcome(random), outcome(random / 2)),
        local=(outcome(local, 2.0), outcome(local / 2)),
        half=(outcome(local),),
        paper=outcome(found, peak),
        thorough=outcome(found, peak),
        ours=outcome(found, peak),
        coefficient={"paper": 1.18, "thorough": 0.9, "ours": found},
    )


def cell(rows: list[Row], what: str, baseline: str) -> str:
    (found,) = [row for row in rows if row.what == what and row.baseline == baseline]
    return str(found.ours)


def test_a_claim_counts_the_networks_where_it_holds_against_the_best_of_the_others() -> None:
    rows = rows_of_cg([tried(1.7, 1.0, 0.2), tried(1.5, 1.0, 0.5), tried(0.9, 1.0, 0.1)])
    expected = {
        ("networks with 60% more throughput or more", LOCAL): "1 of 3 (33%)",
        ("networks with 400% more throughput or more", MEAN): "2 of 3 (67%)",
        ("largest gain of throughput over the networks", f"{MEAN}; best of them"): "11; 8",
        ("networks with more throughput than every random mapping", EVERY): "2 of 3 (67%)",
    }
    assert {(what, over): cell(rows, f"CG: ours, {what}", over) for what, over in expected} == expected


def test_coefficients_are_compared_with_that_of_the_best_mapping_with_locality() -> None:
    rows = rows_of_coefficients("CG", [tried(1.5, 1.0, 1.0), tried(0.5, 1.0, 1.0)])
    assert [row.ours for row in rows] == [
        "median 0.18, 0.18 to 0.18; 0 of 2 (0%)",
        "median -0.1, -0.1 to -0.1; 2 of 2 (100%)",
        "median 0, -0.5 to 0.5; 1 of 2 (50%)",
    ]


def test_searches_are_compared_at_equal_cpu_time() -> None:
    mapping = equal_time_2004.Searched(placement=on_torus(), seconds=0.5, seeds=10)
    networks = [
        {
            name: equal_time_2004.Compared(searched=mapping, coefficient=-0.1, gain=gain, lowest=gain > 0.6)
            for name in equal_time_2004.SEARCHES
        }
        for gain in (0.6, 0.7, 0.5)
    ]
    of_cg, of_sp = equal_time_2004.rows_of_cg(networks), equal_time_2004.rows_of_sp(networks)
    assert cell(of_cg, "CG: ours, networks with 60% more throughput or more", LOCAL) == "2 of 3 (67%)"
    assert cell(of_cg, "CG: ours, CPU time", "s") == "median 0.5, 0.5 to 0.5"
    assert cell(of_sp, "SP: ours, networks with the lowest peak latency", EVERY) == "1 of 3 (33%)"
    assert {row.paper for row in (*of_cg, *of_sp)} - {""} <= published().keys()


def test_a_peak_is_lowest_where_it_is_below_that_of_every_random_mapping() -> None:
    rows = rows_of_sp([tried(1.0, 1.0, 1.0, peak=0.5), tried(1.0, 1.0, 1.0, peak=1.0)])
    assert cell(rows, "SP: ours, networks with the lowest peak latency", EVERY) == "1 of 2 (50%)"


def test_every_key_that_rows_name_has_a_sentence() -> None:
    known, one = published(), [tried(1.0, 1.0, 1.0)]
    rows = [*rows_of_cg(one), *rows_of_sp(one), *rows_of_rounds("is", one)]
    named = {row.paper for row in rows} | set(machines.SAID.values()) | {"2011-measured", "2011-predicted"}
    assert named - {""} <= known.keys()
    assert (known["2004-locality"].value, known["2004-random"].value) == (
        networks_2004.MORE,
        networks_2004.MOST,
    )
    assert machines.PHASES == 100


def test_an_objective_is_judged_by_what_its_placements_take_over_the_fastest_of_the_case() -> None:
    seconds = np.full((len(metrics.OBJECTIVES), 2), 4.0)
    seconds[0], seconds[1] = (1.0, 4.0), (2.0, 2.0)
    case = metrics.Searched(fabric="f", program="p", seconds=seconds, in_order=8.0)
    assert case.over_least[:3].tolist() == pytest.approx([2.0, 2.0, 4.0])
    rows = metrics.rows_of([case, case])
    expected = {
        "all cases: congestion": "2.000, at most 2.000; within 0.5% of the best objective in 2 of 2 (100%)",
        "f: hop-bytes": "4.000, at most 4.000",
        "all cases: ranks in order": "8.000, at most 8.000",
    }
    assert {what: cell(rows, what, metrics.FASTEST) for what in expected} == expected


def test_the_first_objective_is_the_default_of_the_command() -> None:
    (option,) = [one for one in map_command.command.params if one.name == "objective"]
    assert option.default == metrics.OBJECTIVES[0]
