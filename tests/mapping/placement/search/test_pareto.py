"""The Pareto set: nothing in it is dominated, its ends are what single objectives find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.placement.problem.objective import Score
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.pareto import not_dominated
from mapping.placement.search.workers import MemberResult
from mapping.placement.strategies.baselines import in_order
from registry.model import Placement
from tests.support.search_problems import ring, torus8


def axes(placement: Placement) -> tuple[float, float, float]:
    names = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
    congestion, network, hop_bytes = (float(placement.parameters[name]) for name in names)
    return congestion, network, hop_bytes


def test_the_set_goes_from_least_congestion_to_fewest_hop_bytes() -> None:
    fabric, profile, allocation = torus8()
    found = mapping.pareto(fabric, profile, allocation, SearchOptions(steps=200_000))
    assert len(found) > 2
    values = [axes(one) for one in found]
    assert values == sorted(values)
    assert [value[2] for value in values] == sorted((value[2] for value in values), reverse=True)
    straight = mapping.evaluate(fabric, profile, in_order(512, allocation))
    assert values[0][0] < straight.congestion_seconds
    assert values[-1][2] < straight.hop_bytes
    for one, value in zip(found, values, strict=True):
        known = mapping.evaluate(fabric, profile, one)
        assert (known.congestion_seconds, known.hop_bytes) == pytest.approx((value[0], value[2]))


def test_the_same_seed_and_steps_give_the_same_set() -> None:
    fabric, profile, allocation = ring(10, 10)
    one, two = (mapping.pareto(fabric, profile, allocation, SearchOptions(steps=3000)) for _ in "ab")
    assert [p.host_of_rank.tobytes() for p in one] == [p.host_of_rank.tobytes() for p in two]


def test_an_interrupt_leaves_a_set() -> None:
    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if done > 500:
            raise KeyboardInterrupt

    fabric, profile, allocation = ring(10, 10)
    found = mapping.pareto(fabric, profile, allocation, SearchOptions(steps=3000), progress=progress)
    assert found
    assert not any(one.complete for one in found)


@given(
    values=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=12
    )
)
def test_none_is_dominated_and_all_others_are(values: list[tuple[int, int, int]]) -> None:
    nobody = np.zeros(0, np.int32)
    tried = [
        MemberResult(at, nobody, "", Score(float(a), float(b), float(c)))
        for at, (a, b, c) in enumerate(values)
    ]
    kept = {values[one.number] for one in not_dominated(tried)}

    def beats(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
        return one[:2] <= other[:2] and one[2] <= other[2] and one != other

    assert kept == {one for one in values if not any(beats(other, one) for other in values)}
    assert len(not_dominated(tried)) == len(kept)
