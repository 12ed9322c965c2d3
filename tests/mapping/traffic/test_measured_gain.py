"""Measured gain: only like runs are compared, and only a clear difference condemns a placement."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from mapping.traffic.measured_gain import is_worse, measured_gains, worse_orders
from registry.model.measured_run import StoredMeasuredRun
from tests.support.fat_tree import at


def run(wall: float, placement: str | None = None, **changed: Any) -> StoredMeasuredRun:
    fields: dict[str, Any] = {
        "id": "m",
        "recorded_at": at(0),
        "cluster": "toy",
        "application": "cg",
        "program": "x",
        "ranks": 2,
        "hosts": ("a", "b"),
        "slots": (1, 1),
        "launcher": "l",
        "started_at": at(0),
        "wall_seconds": wall,
        "placement": placement,
        "rank_order": "" if placement is None else f"order of {placement}",
    }
    return StoredMeasuredRun(**fields | changed)


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


@pytest.mark.parametrize("seed", range(60))
def test_the_rule_is_the_exact_test(seed: int) -> None:
    random = np.random.default_rng(seed)
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


def test_the_load_of_other_jobs_is_the_median_of_what_is_known() -> None:
    loads = (("p", 0.1), ("p", 0.5), ("p", 0.2), ("p", None), (None, None))
    (found,) = measured_gains([run(1.0, placement, other_load=load) for placement, load in loads])
    assert (found.placed_other_load, found.in_order_other_load) == (0.2, None)


def test_the_estimate_stands_beside_the_measured_gain() -> None:
    placed = run(2.0, "p", congestion_seconds=1.0, in_order_congestion_seconds=3.0)
    (found,) = measured_gains([placed])
    assert (found.gain, found.estimated) == (None, 3.0)


def test_worse_orders_are_found_by_their_order_of_ranks() -> None:
    runs = [run(time, name) for name in ("p", "q") for time in (1.1, 1.2, 1.3)]
    runs += [run(time) for time in (1.15, 1.0, 1.05)]
    assert worse_orders(runs) == {}
    runs += [run(time, "q") for time in (1.4, 1.5, 1.6)]
    assert set(worse_orders(runs)) == {"order of q"}
