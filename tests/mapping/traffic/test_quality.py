"""Control limits and regressions of placements, against a slow oracle and by example."""

from __future__ import annotations

import statistics
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.traffic.quality import (
    CAUSES,
    FABRIC,
    HOSTS,
    ORDER,
    PROFILE,
    PROGRAM,
    ROUTES,
    STRATEGY,
    TRAFFIC,
    Quality,
    changed,
    judge,
    regressions,
)
from registry.model.placement_series import PlacementSeries

TEXTS = {
    "cluster": "c",
    "application": "cg",
    "profile": "f1",
    "profile_name": "cg-64",
    "job": "7",
    "role": "present",
    "strategy": "greedy",
    "objective": "congestion",
    "routing": "tables",
    "tables": "t1",
    "snapshot": "s1",
    "allocation": "a1",
    "order": "o1",
    "background": "",
    "code_version": "1",
}
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
    centres: list[float] = []
    limits: list[float] = []
    worse: list[bool] = []
    last: list[int] = []
    for row, ratio in enumerate(ratios):
        before = ratios[max(0, row - 20) : row]
        good = [earlier for earlier in range(row) if not worse[earlier]]
        last.append(good[-1] if good else -1)
        if len(before) < 5:
            centres.append(np.nan)
            limits.append(np.nan)
            worse.append(False)
            continue
        centre = statistics.median(before)
        spread = 1.4826 * statistics.median(abs(one - centre) for one in before)
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
    ("column", "other"),
    [
        ("cluster", "d"),
        ("application", "ft"),
        ("profile_name", "cg-64-long"),
        ("role", "proposed"),
        ("background", "added: 9 bytes"),
    ],
)
def test_what_is_not_the_same_is_not_held_against_each_other(column: str, other: str) -> None:
    found = judge(series([1.0] * 5 + [2.0], **{column: [TEXTS[column]] * 5 + [other]}))
    assert not found.regression.any()
    assert np.isnan(found.limit[5])


def test_other_numbers_of_ranks_are_not_held_against_each_other() -> None:
    assert not judge(series([1.0] * 5 + [2.0], ranks=[64] * 5 + [128])).regression.any()


def test_a_profile_recorded_anew_under_its_name_is_held_against_the_old_one() -> None:
    (found,) = regressions(series([1.0] * 5 + [2.0], profile=["f1"] * 5 + ["f2"]))
    assert found.changed == (PROFILE,)


def test_less_than_five_percent_is_no_regression() -> None:
    assert not judge(series([1.0] * 20 + [1.049])).regression.any()
    assert judge(series([1.0] * 20 + [1.051])).regression.tolist() == [False] * 20 + [True]


def test_fewer_than_five_before_judge_nothing() -> None:
    assert not judge(series([1.0] * 4 + [9.0])).regression.any()
    assert judge(series([1.0] * 5 + [9.0])).regression[5]


def test_what_scatters_has_wider_limits() -> None:
    scattered = [1.0, 1.4, 1.1, 1.3, 1.2, 1.5]
    assert not judge(series([*scattered, 1.9])).regression.any()
    assert judge(series([*scattered, 9.0])).regression[6]


def test_ratios_that_only_scatter_are_rarely_flagged() -> None:
    draw = np.random.default_rng(0)
    apps = [f"app{row % 100}" for row in range(3000)]
    found = judge(series((1.5 + 0.1 * draw.standard_normal(3000)).tolist(), application=apps))
    assert 0 < found.regression.sum() < 0.03 * np.isfinite(found.limit).sum()


def test_one_bad_placement_does_not_hide_the_next() -> None:
    found = judge(series([1.0] * 9 + [50.0, 50.0]))
    assert found.regression.tolist() == [False] * 9 + [True, True]
    assert found.last_good.tolist()[-2:] == [8, 8]


def test_only_the_twenty_before_count() -> None:
    assert not judge(series([1.0] * 5 + [3.0] * 20 + [3.1])).regression[25]


@pytest.mark.parametrize("bound", [0.0, np.nan, -1.0])
def test_placements_without_a_certified_bound_are_not_judged(bound: float) -> None:
    found = judge(series([1.0] * 6 + [9.0], bound=[2.0] * 6 + [bound]))
    assert np.isnan(found.ratio[6])
    assert not found.regression.any()
    assert found.last_good[6] == -1


def test_placements_of_no_profile_are_not_judged() -> None:
    assert np.isnan(judge(series([1.0] * 6, profile="", profile_name="", application="")).ratio).all()


def test_an_empty_history_has_no_regressions() -> None:
    assert regressions(series([])) == ()
    assert isinstance(judge(series([])), Quality)


@pytest.mark.parametrize(
    ("column", "cause"),
    [
        ("snapshot", FABRIC),
        ("tables", ROUTES),
        ("routing", ROUTES),
        ("profile", PROFILE),
        ("strategy", STRATEGY),
        ("order", ORDER),
        ("code_version", PROGRAM),
    ],
)
def test_a_regression_names_what_changed_since_the_last_good_one(column: str, cause: str) -> None:
    drawn = series([1.0] * 5 + [2.0, 2.0], **{column: [TEXTS[column]] * 5 + ["new", TEXTS[column]]})
    newest, first = regressions(drawn)
    assert (first.changed, newest.changed) == ((cause,), ())
    assert (first.last_good, newest.last_good) == ("p4", "p4")


def test_other_jobs_traffic_is_a_cause() -> None:
    drawn = series([1.0] * 5 + [2.0], background=["added: 1 byte"] * 5 + ["added: 9 bytes"])
    assert regressions(drawn)[0].changed == (TRAFFIC,)


def test_the_order_of_ranks_is_a_cause_only_on_the_same_hosts_and_if_it_is_known() -> None:
    moved = {"allocation": ["a1", "a2"], "order": ["o1", "o2"]}
    assert changed(series([1.0, 1.0], **moved), 1, 0) == (HOSTS,)
    assert changed(series([1.0, 1.0], order=["", "o2"]), 1, 0) == ()
    assert changed(series([1.0, 1.0], order=["o1", "o2"]), 1, 0) == (ORDER,)


def test_causes_are_in_one_order() -> None:
    other = {
        name: [TEXTS[name], "new"] for name in ("snapshot", "tables", "profile", "strategy", "allocation")
    }
    found = changed(series([1.0, 1.0], **other, code_version=["1", "2"]), 1, 0)
    assert found == tuple(cause for cause in CAUSES if cause in found)
    assert len(found) == 6


def test_a_regression_has_the_placement_and_its_limits() -> None:
    drawn = series([1.0] * 5 + [2.0, 3.0], job=["7"] * 6 + ["8"])
    newest, first = regressions(drawn)
    assert (newest.id, newest.row, newest.job, newest.ratio, newest.centre, newest.limit) == (
        "p6",
        6,
        "8",
        3.0,
        1.0,
        1.05,
    )
    assert first.recorded_at == datetime(2026, 1, 1, 5, tzinfo=UTC)
    assert (first.cluster, first.application, first.profile_name, first.ranks) == ("c", "cg", "cg-64", 64)
    assert regressions(drawn, judge(drawn)) == (newest, first)
    spared = replace(judge(drawn), regression=np.zeros(7, bool))
    assert regressions(drawn, spared) == ()
