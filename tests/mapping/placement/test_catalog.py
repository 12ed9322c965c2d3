"""The catalog's contract, over every entry, and what single strategies promise."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.deadline import Deadline
from mapping.placement.catalog import STRATEGIES, Chain, Method, Strategy
from mapping.placement.methods.baselines import in_order, place_at_random, random_placement
from mapping.placement.objective import score
from mapping.placement.problem import Problem
from registry.errors import InfeasibleAllocation, InvalidValue, UnknownName
from registry.model import Allocation
from tests.support import search_problems
from tests.support.search_problems import Placed, pinned, placed_problems, problem_on, ring
from tests.support.strategy_problems import assert_fits
from tests.support.sure import sure

SEATING = [entry for entry in STRATEGIES if not entry.refines]
REFINERS = [entry for entry in STRATEGIES if entry.refines]
NAME = operator.attrgetter("name")


def strategy_of(text: str) -> Strategy:
    return sure(Chain.parse(text).strategy).strategy()


def run_chain(text: str, problem: Problem) -> None:
    """Run a strategy, and the first step of the refiners that follow it."""
    chain, generator = Chain.parse(text), np.random.default_rng(0)
    start = strategy_of(text)(problem, generator)
    for link in chain.refiners:
        next(link.refiner()(problem, start, Deadline(steps=5), generator), None)


VARIANTS = [f"recursive-bisection:variant={variant}" for variant in ("paper", "whole")]


@pytest.mark.parametrize("text", [*map(NAME, SEATING), *VARIANTS])
@given(problem=search_problems.problems())
def test_every_strategy_places_each_rank_once_and_keeps_capacity(text: str, problem: Problem) -> None:
    seat = strategy_of(text)
    found = seat(problem, np.random.default_rng(3))
    assert_fits(problem, found)
    assert found.dtype == np.int32
    assert found.tobytes() == seat(problem, np.random.default_rng(3)).tobytes()


@pytest.mark.parametrize("entry", REFINERS, ids=NAME)
@given(case=placed_problems(), steps=st.integers(1, 400))
def test_every_refiner_keeps_capacity_and_is_never_worse(entry: Method, case: Placed, steps: int) -> None:
    problem, start = case
    given_bytes, run = start.tobytes(), entry.load()
    rounds, again = (list(run(problem, start, Deadline(steps=steps), np.random.default_rng(3))) for _ in "ab")
    assert start.tobytes() == given_bytes
    assert [f.host_of_rank.tobytes() for f in rounds] == [f.host_of_rank.tobytes() for f in again]
    before = score(problem, start)
    for found in rounds:
        assert_fits(problem, found.host_of_rank)
        after = score(problem, found.host_of_rank)
        np.testing.assert_allclose(getattr(after, found.metric), found.value, rtol=1e-6)
        assert found.value <= getattr(before, found.metric) * (1 + 1e-6)
        assert before.hop_bytes > 0 or found.host_of_rank.tobytes() == given_bytes


@pytest.mark.parametrize("entry", REFINERS, ids=NAME)
@given(case=pinned())
def test_every_refiner_leaves_pinned_ranks_where_they_are(entry: Method, case: Placed) -> None:
    problem, start = case
    for workers in (1, 2, 3):
        deadline = Deadline(steps=200, workers=workers)
        for found in entry.load()(problem, start, deadline, np.random.default_rng(2)):
            assert_fits(problem, found.host_of_rank)
            assert (found.host_of_rank == problem.pins)[problem.pinned].all()


@pytest.mark.parametrize("entry", REFINERS, ids=NAME)
def test_every_refiner_gives_the_same_bytes_with_two_workers_each_time(entry: Method) -> None:
    problem = search_problems.ring_problem(24, 24)
    start, results = place_at_random(problem, np.random.default_rng(1)), []
    for _ in range(3):
        deadline = Deadline(steps=5000, workers=2)
        rounds = entry.load()(problem, start, deadline, np.random.default_rng(2))
        results.append([found.host_of_rank.tobytes() for found in rounds])
    assert results[0] == results[1] == results[2]


@given(case=pinned())
def test_pins_are_honoured_by_exchanges_that_keep_capacity(case: Placed) -> None:
    problem, _ = case
    start = problem.slot_host[: problem.ranks]
    found = problem.apply_pins(start)
    assert_fits(problem, found)
    assert (found == problem.pins)[problem.pinned].all()
    assert found.tobytes() == problem.apply_pins(found).tobytes()
    assert problem.pinned.any() or found.tobytes() == start.tobytes()


def test_a_pinned_rank_takes_a_free_slot_before_it_drives_out_another() -> None:
    fabric, profile, _ = ring(6, 3)
    allocation = Allocation.of(fabric, [0, 1, 2], [1, 2, 1])
    problem, start = problem_on(fabric, profile, allocation), np.array([0, 1, 2], np.int32)
    for pin, expected in ((1, [1, 1, 2]), (2, [2, 1, 0])):
        held = replace(problem, pins=np.array([pin, -1, -1], np.int32))
        assert held.apply_pins(start).tolist() == expected


def test_in_order_fills_a_hosts_slots_before_the_next() -> None:
    fabric, _, _ = ring(6, 6)
    allocation = Allocation.of(fabric, [4, 1, 3], [2, 1, 2])
    assert in_order(4, allocation).host_of_rank.tolist() == [4, 4, 1, 3]
    with pytest.raises(InfeasibleAllocation):
        in_order(6, allocation)


def test_random_puts_a_rank_on_every_slot_equally_often() -> None:
    fabric, _, _ = ring(6, 6)
    allocation = Allocation.of(fabric, [4, 1, 3], [2, 1, 1])
    found = np.array([random_placement(2, allocation, seed).host_of_rank for seed in range(4000)])
    for rank in range(2):
        share = np.bincount(found[:, rank], minlength=5) / len(found)
        np.testing.assert_allclose(share[[4, 1, 3]], [0.5, 0.25, 0.25], atol=0.04)
    with pytest.raises(InfeasibleAllocation):
        random_placement(5, allocation, 0)


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("greedy+pair-exchange+congestion-descent", ["greedy", "pair-exchange", "congestion-descent"]),
        ("pair-exchange", [None, "pair-exchange"]),
        ("greedy:starts=4,near=sender,by=congestion", ["greedy"]),
        ("recursive-bisection:variant=whole,cuts=2,slack=0.1", ["recursive-bisection"]),
        ("in-order+threshold-accepting:first=0.001,inner=20", ["in-order", "threshold-accepting"]),
    ],
)
def test_chains_are_written_with_plus_and_options(text: str, links: list[str | None]) -> None:
    chain = Chain.parse(text)
    assert (chain.strategy and chain.strategy.entry.name) == links[0]
    assert [link.name for link in chain.refiners] == links[1:]
    assert str(chain) == text


@pytest.mark.parametrize(
    ("text", "kind", "close"),
    [
        ("greddy", "strategy", "greedy"),
        ("greedy+pair-exchnge", "strategy", "pair-exchange"),
        ("", "strategy", None),
        ("pair-exchange+greedy", "refiner", None),
        ("greedy:start_=3", "greedy option", "start"),
        ("greedy:begins=3", "greedy option", None),
    ],
)
def test_an_unknown_name_is_an_error_with_the_closest(text: str, kind: str, close: str | None) -> None:
    with pytest.raises(UnknownName) as error:
        Chain.parse(text)
    assert error.value.kind == kind
    assert close is None or close in error.value.close


OUT_OF_RANGE = {
    "greedy": ["start=9", "start=-1", "starts=0", "starts", "starts=few"],
    "recursive-bisection": ["cuts=0", "slack=-1.0"],
    "random-search": ["seeds=0", "failures=0", "packet_bytes=-1.0"],
    "in-order+ohtma-exchange": ["rounds=-1", "passes=0"],
    "in-order+threshold-accepting": ["first=-0.1", "first=nan", "inner=0"],
}
UNKNOWN = {
    "greedy": ["near=lats", "ties=x", "by=x"],
    "recursive-bisection": ["variant=hole"],
    "multicore": ["inner=multicore", "inner=pair-exchange", "inner=gredy", "partition=x"],
    "ohtma": ["gain=", "gain=exactly"],
    "in-order+digit-search": ["on=hops"],
}


@pytest.mark.parametrize(("wrong", "error"), [(OUT_OF_RANGE, InvalidValue), (UNKNOWN, UnknownName)])
def test_options_that_make_no_sense_are_refused(wrong: dict[str, list[str]], error: type[Exception]) -> None:
    problem = search_problems.ring_problem(9, 8)
    for text in [f"{name}:{option}" for name, options in wrong.items() for option in options]:
        with pytest.raises(error):
            run_chain(text, problem)
