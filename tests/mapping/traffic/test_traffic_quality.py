"""Control limits and regressions of placements, and measured gains: against slow oracles and by example."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.traffic import job_loads
from mapping.traffic.job_loads import FABRIC, PROFILE, ROUTES, STRATEGY, changed, judge, regressions
from mapping.traffic.measured_gain import is_worse, measured_gains, worse_orders
from registry.model.job import StoredMeasuredRun
from registry.model.placement import PlacementSeries
from tests.support.fat_tree import at

TEXTS = {
    "cluster": "c", "application": "cg", "profile": "f1", "profile_name": "cg-64", "job": "7",
    "role": "present", "strategy": "greedy", "objective": "congestion", "routing": "tables", "tables": "t1",
    "snapshot": "s1", "allocation": "a1", "order": "o1", "background": "", "code_version": "1",
}  # fmt: skip
NUMBERS = (
    *("congestion_seconds", "network_congestion_seconds", "hop_bytes", "average_dilation"),
    *("bound_congestion_seconds", "bound_network_congestion_seconds", "bound_hop_bytes"),
    *("in_order_congestion_seconds", "in_order_network_congestion_seconds"),
    *("in_order_hop_bytes", "in_order_average_dilation"),
)


def series(ratios: list[float], **columns: Any) -> PlacementSeries:
    """Placements an hour apart whose bound is 2 s; texts are one for all, or a list."""
    n = len(ratios)
    chosen: dict[str, Any] = {
        name: tuple(given) if isinstance(given, list) else (given,) * n
        for name, given in (TEXTS | {k: v for k, v in columns.items() if k in TEXTS}).items()
    }
    chosen |= {name: np.full(n, np.nan) for name in NUMBERS}
    chosen["congestion_seconds"] = 2.0 * np.asarray(ratios)
    chosen["bound_congestion_seconds"] = np.asarray(columns.get("bound", np.full(n, 2.0)))
    return PlacementSeries(
        **chosen,
        id=tuple(f"p{row}" for row in range(n)),
        recorded_at=np.datetime64("2026-01-01", "us") + np.arange(n) * np.timedelta64(1, "h"),
        ranks=np.asarray(columns.get("ranks", np.full(n, 64))),
        complete=np.ones(n, bool),
    )


def slow(ratios: list[float]) -> tuple[list[float], list[float], list[bool], list[int]]:
    """Centre, limit, regression and last good of one group, entry by entry."""
    centres, limits, worse, last = list[float](), list[float](), list[bool](), list[int]()
    for row, ratio in enumerate(ratios):
        before = ratios[max(0, row - 20) : row]
        good = [earlier for earlier in range(row) if not worse[earlier]]
        last.append(good[-1] if good else -1)
        centre = statistics.median(before) if len(before) >= 5 else np.nan
        spread = 1.4826 * statistics.median([abs(one - centre) for one in before] or [np.nan])
        centres.append(centre)
        limits.append(max(centre + 3 * spread, 1.05 * centre))
        worse.append(ratio > centre + 3 * spread and ratio >= 1.05 * centre)
    return centres, limits, worse, last


@given(st.lists(st.sampled_from([1.0, 1.1, 1.2, 1.25, 1.5, 2.0, 3.0]), max_size=40))
def test_limits_and_regressions_are_those_of_a_slow_walk(ratios: list[float]) -> None:
    found = judge(series(ratios))
    centres, limits, worse, last = slow(ratios)
    assert np.allclose(found.ratio, ratios)
    assert np.allclose(found.centre, centres, equal_nan=True)
    assert np.allclose(found.limit, limits, equal_nan=True)
    assert found.regression.tolist() == worse
    assert found.last_good.tolist() == last


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1.0, 1.1, 1.5, 2.0])), max_size=50))
def test_groups_are_judged_as_if_each_were_alone(drawn: list[tuple[int, float]]) -> None:
    ratios = [ratio for _, ratio in drawn]
    whole = judge(series(ratios, application=[f"app{group}" for group, _ in drawn]))
    for group in range(3):
        rows = [row for row, (own, _) in enumerate(drawn) if own == group]
        alone = judge(series([ratios[row] for row in rows]))
        assert np.array_equal(whole.limit[rows], alone.limit, equal_nan=True)
        assert np.array_equal(whole.regression[rows], alone.regression)
        expected = [-1 if row < 0 else rows[row] for row in alone.last_good.tolist()]
        assert whole.last_good[rows].tolist() == expected


@pytest.mark.parametrize(
    ("column", "first", "other"),
    [
        ("cluster", "c", "d"),
        ("application", "cg", "ft"),
        ("profile_name", "cg-64", "cg-64-long"),
        ("role", "present", "proposed"),
        ("background", "", "added: 9 bytes"),
        ("ranks", 64, 128),
    ],
)
def test_what_is_not_the_same_is_not_held_against_each_other(column: str, first: Any, other: Any) -> None:
    found = judge(series([1.0] * 5 + [2.0], **{column: [first] * 5 + [other]}))
    assert not found.regression.any()
    assert np.isnan(found.limit[5])


SCATTERED = [1.0, 1.4, 1.1, 1.3, 1.2, 1.5]


@pytest.mark.parametrize(
    ("ratios", "flagged"),
    [
        ([1.0] * 20 + [1.049], []),  # less than 5%
        ([1.0] * 20 + [1.051], [20]),
        ([1.0] * 4 + [9.0], []),  # fewer than five before it
        ([1.0] * 5 + [9.0], [5]),
        ([*SCATTERED, 1.9], []),
        ([*SCATTERED, 9.0], [6]),
        ([1.0] * 9 + [50.0, 50.0], [9, 10]),  # one does not hide the next
        ([1.0] * 5 + [3.0] * 20 + [3.1], [5, 6, 7, 8, 9]),  # only the twenty before count
    ],
)
def test_a_ratio_far_above_those_before_it_is_a_regression(ratios: list[float], flagged: list[int]) -> None:
    found = judge(series(ratios))
    assert np.flatnonzero(found.regression).tolist() == flagged
    assert found.last_good[-1] == max(set(range(len(ratios) - 1)) - set(flagged))


def test_ratios_that_only_scatter_are_rarely_flagged() -> None:
    draw = np.random.default_rng(0)
    apps = [f"app{row % 100}" for row in range(3000)]
    found = judge(series((1.5 + 0.1 * draw.standard_normal(3000)).tolist(), application=apps))
    assert 0 < found.regression.sum() < 0.03 * np.isfinite(found.limit).sum()


@pytest.mark.parametrize("bound", [0.0, np.nan, -1.0])
def test_placements_without_a_certified_bound_or_a_profile_are_not_judged(bound: float) -> None:
    found = judge(series([1.0] * 6 + [9.0], bound=[2.0] * 6 + [bound]))
    assert np.isnan(found.ratio[6])
    assert not found.regression.any()
    assert found.last_good[6] == -1
    assert np.isnan(judge(series([1.0] * 6, profile="", profile_name="", application="")).ratio).all()
    assert regressions(series([])) == ()


@pytest.mark.parametrize(
    ("column", "old", "cause"),
    [
        ("snapshot", "s1", FABRIC),
        ("tables", "t1", ROUTES),
        ("routing", "tables", ROUTES),
        ("profile", "f1", PROFILE),
        ("strategy", "greedy", STRATEGY),
        ("order", "o1", job_loads.ORDER),
        ("code_version", "1", job_loads.PROGRAM),
        ("background", "added: 1 byte", job_loads.TRAFFIC),
    ],
)
def test_a_regression_names_what_changed_since_the_last_good_one(column: str, old: str, cause: str) -> None:
    drawn = series([1.0] * 5 + [2.0, 2.0], **{column: [old] * 5 + ["added: 9 bytes", old]})
    newest, first = regressions(drawn)
    assert (first.changed, newest.changed) == ((cause,), ())
    assert (first.last_good, newest.last_good) == ("p4", "p4")


def test_the_order_of_ranks_is_a_cause_only_on_the_same_hosts_and_if_it_is_known() -> None:
    moved = {"allocation": ["a1", "a2"], "order": ["o1", "o2"]}
    assert changed(series([1.0, 1.0], **moved), 1, 0) == (job_loads.HOSTS,)
    assert changed(series([1.0, 1.0], order=["", "o2"]), 1, 0) == ()
    names = ("snapshot", "tables", "profile", "strategy", "allocation", "code_version")
    found = changed(series([1.0, 1.0], **{name: [TEXTS[name], "new"] for name in names}), 1, 0)
    assert found == (FABRIC, ROUTES, PROFILE, STRATEGY, job_loads.HOSTS, job_loads.PROGRAM)


def test_a_regression_has_the_placement_and_its_limits() -> None:
    drawn = series([1.0] * 5 + [2.0, 3.0], job=["7"] * 6 + ["8"])
    newest, first = regressions(drawn)
    assert (newest.id, newest.row, newest.job) == ("p6", 6, "8")
    assert (newest.ratio, newest.centre, newest.limit) == (3.0, 1.0, 1.05)
    assert first.recorded_at == datetime(2026, 1, 1, 5, tzinfo=UTC)
    assert (first.cluster, first.application, first.profile_name, first.ranks) == ("c", "cg", "cg-64", 64)
    assert regressions(drawn, judge(drawn)) == (newest, first)
    spared = replace(judge(drawn), regression=np.zeros(7, bool))
    assert regressions(drawn, spared) == ()


def run(wall: float, placement: str | None = None, **changed: Any) -> StoredMeasuredRun:
    order = "" if placement is None else f"order of {placement}"
    named: dict[str, Any] = {"id": "m", "cluster": "toy", "application": "cg"}
    named |= {"program": "x", "launcher": "l"}
    case: dict[str, Any] = {"ranks": 2, "hosts": ("a", "b"), "slots": (1, 1), "placement": placement}
    times: dict[str, Any] = {"recorded_at": at(0), "started_at": at(0), "wall_seconds": wall}
    return StoredMeasuredRun(**named | case | times | {"rank_order": order} | changed)


def slow_is_worse(placed: list[float], in_order: list[float]) -> bool:
    """The rule, by trying every arrangement."""
    times = [*placed, *in_order]
    if min(len(placed), len(in_order)) < 3 or np.median(placed) < 1.02 * np.median(in_order):
        return False
    seen = sum(a > b for a in placed for b in in_order)
    counts = []
    for chosen in itertools.combinations(range(len(times)), len(placed)):
        rest = set(range(len(times))) - set(chosen)
        counts.append(sum(a > b for a in chosen for b in rest))
    return sum(count >= seen for count in counts) / len(counts) <= 0.05


def test_the_rule_is_the_exact_test() -> None:
    random = np.random.default_rng(0)
    for _ in range(60):
        placed = random.normal(1.1, 0.1, random.integers(2, 7)).round(2).tolist()
        in_order = random.normal(1.0, 0.1, random.integers(2, 7)).round(2).tolist()
        assert is_worse(placed, in_order) == slow_is_worse(placed, in_order)


def test_three_of_each_and_a_clear_difference_are_needed() -> None:
    assert is_worse([1.1, 1.2, 1.3], [1.0, 1.05, 1.04])
    assert not is_worse([1.1, 1.2], [1.0, 1.05, 1.04])
    assert not is_worse([1.1, 1.2, 1.3], [1.0, 1.05, 1.15])  # one is not slower than all
    assert not is_worse([1.011, 1.012, 1.013], [1.0, 1.001, 1.002])  # less than 2%
    assert not is_worse([1.0, 1.0, 1.0], [1.1, 1.2, 1.3])
    assert is_worse([2.0] * 20, [1.0] * 20)


def test_only_runs_of_the_same_case_that_ended_well_are_compared() -> None:
    others: list[dict[str, Any]] = [
        {"program": "y"}, {"ranks": 3}, {"hosts": ("b", "a")}, {"slots": (2, 1)}, {"exit_code": 1},
        {"recorded": True}, {"cluster": "other"}, {"application": "lu"},
    ]  # fmt: skip
    runs = [run(3.0, "p"), run(5.0, "p"), run(4.0), *(run(9.0, **one) for one in others)]
    (found,) = measured_gains(runs)
    assert (found.placed, found.in_order, found.per_step) == ((3.0, 5.0), (4.0,), False)
    assert found.gain == 1.0


def test_times_of_steps_are_compared_if_there_are_enough() -> None:
    placed = [run(9.0, "p", step_seconds=0.1) for _ in range(3)]
    straight = [run(1.0, step_seconds=0.2) for _ in range(3)]
    (found,) = measured_gains([*placed, *straight, run(5.0)])
    assert (found.per_step, found.gain, found.worse) == (True, 2.0, False)
    (found,) = measured_gains([*placed, *straight[:2], run(1.0)])
    assert (found.per_step, found.worse) == (False, True)


def test_beside_the_gain_are_the_median_of_the_known_load_of_others_and_the_estimate() -> None:
    loads = (("p", 0.1), ("p", 0.5), ("p", 0.2), ("p", None), (None, None))
    (found,) = measured_gains([run(1.0, placement, other_load=load) for placement, load in loads])
    assert (found.placed_other_load, found.in_order_other_load) == (0.2, None)
    estimated = run(2.0, "p", congestion_seconds=1.0, in_order_congestion_seconds=3.0)
    (found,) = measured_gains([estimated])
    assert (found.gain, found.estimated) == (None, 3.0)


def test_worse_orders_are_found_by_their_order_of_ranks() -> None:
    runs = [run(time, name) for name in ("p", "q") for time in (1.1, 1.2, 1.3)]
    runs += [run(time) for time in (1.15, 1.0, 1.05)]
    assert worse_orders(runs) == {}
    runs += [run(time, "q") for time in (1.4, 1.5, 1.6)]
    assert set(worse_orders(runs)) == {"order of q"}
