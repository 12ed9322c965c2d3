"""The catalog's contract, over every entry, and what single strategies promise."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from mapping.deadline import Deadline
from mapping.placement.catalog import STRATEGIES, Chain, Method
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import greedy
from mapping.placement.strategies.baselines import in_order, place_at_random, random_placement
from registry.errors import InfeasibleAllocation, UnknownName
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support.search_problems import pinned, placed_problems, problem_on, problems, ring

SEATING = [entry for entry in STRATEGIES if not entry.refines]
REFINERS = [entry for entry in STRATEGIES if entry.refines]
NAME = operator.attrgetter("name")


def assert_fits(problem: Problem, host_of_rank: Ints) -> None:
    """Every rank once, on a host of the allocation, within its slots."""
    assert host_of_rank.shape == (problem.ranks,)
    taken = np.bincount(host_of_rank, minlength=problem.hosts)
    assert len(taken) == problem.hosts
    assert (taken <= problem.allocation.slots).all()


@pytest.mark.parametrize("entry", SEATING, ids=NAME)
@given(problem=problems())
def test_every_strategy_places_each_rank_once_and_keeps_capacity(entry: Method, problem: Problem) -> None:
    seat = entry.load()
    found = seat(problem, np.random.default_rng(3))
    assert_fits(problem, found)
    assert found.tobytes() == seat(problem, np.random.default_rng(3)).tobytes()


@pytest.mark.parametrize("entry", REFINERS, ids=NAME)
@given(case=placed_problems())
def test_every_refiner_keeps_capacity_and_is_never_worse_than_its_start(
    entry: Method, case: tuple[Problem, Ints]
) -> None:
    problem, start = case
    given_bytes = start.tobytes()
    rounds = list(entry.load()(problem, start, Deadline(steps=300), np.random.default_rng(3)))
    again = list(entry.load()(problem, start, Deadline(steps=300), np.random.default_rng(3)))
    assert start.tobytes() == given_bytes
    assert [f.host_of_rank.tobytes() for f in rounds] == [f.host_of_rank.tobytes() for f in again]
    before = score(problem, start)
    for found in rounds:
        assert_fits(problem, found.host_of_rank)
        after = score(problem, found.host_of_rank)
        np.testing.assert_allclose(getattr(after, found.metric), found.value, rtol=1e-6)
        assert found.value <= getattr(before, found.metric) * (1 + 1e-6)


@pytest.mark.parametrize("entry", SEATING, ids=NAME)
def test_every_strategy_knows_the_one_host_case(entry: Method) -> None:
    fabric = Fabric.from_arcs(["only", "other"], [0, 1], [1, 0], 1.0)
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0])
    problem = problem_on(fabric, profile, Allocation.of(fabric, ["only"], 3), "shortest-paths")
    assert entry.load()(problem, np.random.default_rng(0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("entry", REFINERS, ids=NAME)
def test_every_refiner_leaves_alone_what_cannot_be_better(entry: Method) -> None:
    fabric, _, allocation = ring(5, 5)
    silent = Profile.from_edges([], [], [], ranks=3)
    one = problem_on(fabric, silent, allocation, "shortest-paths")
    start = np.array([4, 0, 2], np.int32)
    for found in entry.load()(one, start, Deadline(steps=100), np.random.default_rng(0)):
        assert found.host_of_rank.tolist() == start.tolist()


def guests() -> dict[str, Profile]:
    """Guests that a strategy might trip over, of six ranks or fewer."""
    senders, receivers = np.nonzero(1 - np.eye(6))
    return {
        "without edges": Profile.from_edges([], [], [], ranks=6),
        "without bytes": Profile.from_edges([0, 3], [1, 2], [0.0, 0.0], ranks=6),
        "disconnected": Profile.from_edges([0, 1, 4], [1, 0, 3], [1.0, 2.0, 5.0], ranks=6),
        "one rank": Profile.from_edges([], [], [], ranks=1),
        "receivers only": Profile.from_edges([5, 5, 5], [0, 1, 2], [3.0, 3.0, 3.0], ranks=6),
        "everyone with everyone": Profile.from_edges(senders, receivers, np.ones(30)),
    }


def places() -> dict[str, Allocation]:
    """Hosts of a ring of seven, in a mixed order."""
    fabric, _, _ = ring(7, 7)
    mixed = [3, 0, 6, 2, 5, 1, 4]
    return {
        "one host": Allocation.of(fabric, [4], 6),
        "as many slots as ranks": Allocation.of(fabric, mixed[:6]),
        "free hosts": Allocation.of(fabric, mixed),
        "several slots": Allocation.of(fabric, mixed[:3], 2),
        "unequal slots": Allocation.of(fabric, mixed[:4], [1, 3, 1, 2]),
        "free slots": Allocation.of(fabric, mixed[:4], 4),
    }


@pytest.mark.parametrize("where", places())
@pytest.mark.parametrize("who", guests())
@pytest.mark.parametrize("entry", SEATING, ids=NAME)
def test_every_strategy_takes_every_guest_and_allocation(entry: Method, who: str, where: str) -> None:
    problem = problem_on(ring(7, 7)[0], guests()[who], places()[where], "shortest-paths")
    found, again = (entry.load()(problem, np.random.default_rng(1)) for _ in range(2))
    assert_fits(problem, found)
    assert found.dtype == np.int32
    assert found.tobytes() == again.tobytes()


@pytest.mark.parametrize("where", places())
@pytest.mark.parametrize("who", guests())
@pytest.mark.parametrize("entry", REFINERS, ids=NAME)
def test_every_refiner_takes_every_guest_and_allocation(entry: Method, who: str, where: str) -> None:
    problem = problem_on(ring(7, 7)[0], guests()[who], places()[where], "shortest-paths")
    start = place_at_random(problem, np.random.default_rng(1))
    for workers in (1, 2):
        deadline = Deadline(steps=64, workers=workers)
        for found in entry.load()(problem, start, deadline, np.random.default_rng(1)):
            assert_fits(problem, found.host_of_rank)
            assert found.value <= getattr(score(problem, start), found.metric) * (1 + 1e-9)


@pytest.mark.parametrize("entry", REFINERS, ids=NAME)
@given(case=pinned())
def test_every_refiner_leaves_pinned_ranks_where_they_are(entry: Method, case: tuple[Problem, Ints]) -> None:
    problem, start = case
    for found in entry.load()(problem, start, Deadline(steps=200), np.random.default_rng(2)):
        assert_fits(problem, found.host_of_rank)
        assert (found.host_of_rank == problem.pins)[problem.pinned].all()


@pytest.mark.parametrize("entry", REFINERS, ids=NAME)
def test_every_refiner_gives_the_same_bytes_with_two_workers_each_time(entry: Method) -> None:
    fabric, profile, allocation = ring(24, 24)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = place_at_random(problem, np.random.default_rng(1))
    results = [
        [
            found.host_of_rank.tobytes()
            for found in entry.load()(
                problem, start, Deadline(steps=5000, workers=2), np.random.default_rng(2)
            )
        ]
        for _ in range(3)
    ]
    assert results[0] == results[1] == results[2]


@given(case=pinned())
def test_pins_are_honoured_by_exchanges_that_keep_capacity(case: tuple[Problem, Ints]) -> None:
    problem, _ = case
    start = problem.slot_host[: problem.ranks]
    found = problem.apply_pins(start)
    assert_fits(problem, found)
    assert (found == problem.pins)[problem.pinned].all()
    assert found.tobytes() == problem.apply_pins(found).tobytes()
    if not problem.pinned.any():
        assert found.tobytes() == start.tobytes()


def test_a_pinned_rank_takes_a_free_slot_before_it_drives_out_another() -> None:
    fabric, profile, _ = ring(6, 3)
    allocation = Allocation.of(fabric, [0, 1, 2], [1, 2, 1])
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = np.array([0, 1, 2], np.int32)
    to_one = replace(problem, pins=np.array([1, -1, -1], np.int32))
    assert to_one.apply_pins(start).tolist() == [1, 1, 2]
    to_two = replace(problem, pins=np.array([2, -1, -1], np.int32))
    assert to_two.apply_pins(start).tolist() == [2, 1, 0]


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


def test_greedy_goes_along_the_heaviest_edge_to_the_closest_host() -> None:
    line = Fabric.from_arcs(list("abcd"), [0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2], 1.0)
    profile = Profile.from_edges([2, 2, 0], [0, 1, 3], [5.0, 9.0, 7.0])
    problem = problem_on(line, profile, Allocation.of(line, list("abcd")), "shortest-paths")
    assert greedy.place_ranks(problem, np.random.default_rng(0)).tolist() == [2, 1, 0, 3]


def test_chains_are_written_with_plus() -> None:
    chain = Chain.parse("greedy+pair-exchange+congestion-descent")
    assert chain.strategy is not None
    assert chain.strategy.name == "greedy"
    assert [entry.name for entry in chain.refiners] == ["pair-exchange", "congestion-descent"]
    assert str(chain) == "greedy+pair-exchange+congestion-descent"
    alone = Chain.parse("pair-exchange")
    assert alone.strategy is None
    assert str(alone) == "pair-exchange"


@pytest.mark.parametrize(
    ("text", "kind", "close"),
    [
        ("greddy", "strategy", "greedy"),
        ("greedy+pair-exchnge", "strategy", "pair-exchange"),
        ("", "strategy", None),
        ("pair-exchange+greedy", "refiner", None),
    ],
)
def test_an_unknown_name_is_an_error_with_the_closest(text: str, kind: str, close: str | None) -> None:
    with pytest.raises(UnknownName) as error:
        Chain.parse(text)
    assert error.value.kind == kind
    assert close is None or close in error.value.close
