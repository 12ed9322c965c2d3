"""Digits of rank numbers on digits of hosts; grids that traffic forms; and further orders of digits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.support.structured import fft, halving
from ingest.generate.direct import hypercube, mesh, torus
from ingest.generate.nas import lu
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.trees import extended_generalised_fat_tree
from mapping.deadline import Deadline
from mapping.placement.candidate import Candidate
from mapping.placement.catalog import Strategy
from mapping.placement.kernels.digit_permutation import DigitOrder, HostDigits, place_by_digits
from mapping.placement.methods import digits, pair_exchange, spectral
from mapping.placement.methods.digits import (
    CONGESTION,
    FIRST,
    HOP_BYTES,
    NEAR,
    SAMPLE,
    WAYS,
    host_digits,
    host_sides,
    rank_coordinates,
)
from mapping.placement.methods.greedy import place_by_layout
from mapping.placement.objective import score
from mapping.placement.problem import Problem
from registry.model import Allocation, Fabric, Ints, Longs, Profile
from tests.support.search_problems import on_all_hosts, problem_on, torus8
from tests.support.sure import sure


def butterfly(bits: int, growth: float = 1.0) -> Profile:
    """Every rank sends to each rank whose number differs in one bit; the highest bit sends most."""
    rank = np.arange(1 << bits)
    size = [np.full(len(rank), growth**bit) for bit in range(bits)]
    partner = [rank ^ (1 << bit) for bit in range(bits)]
    return Profile.from_edges(np.tile(rank, bits), np.concatenate(partner), np.concatenate(size))


def by_hand(digits: HostDigits, order: DigitOrder, rank: int) -> int:
    radices = digits.radix[order.host_digit]
    values = np.unravel_index(rank, tuple(radices.tolist()))
    position = 0
    for i, value in enumerate(values):
        for j in range(i):
            if order.mirror[i] >> j & 1 and values[j] % 2:
                value = radices[i] - 1 - value
        position += int(value) * int(digits.stride[order.host_digit[i]])
    return int(digits.host[position])


@given(st.integers(0, 2**32 - 1))
def test_every_order_of_digits_is_a_placement_computed_digit_by_digit(seed: int) -> None:
    generator = np.random.default_rng(seed)
    radix = generator.choice([2, 3, 5], size=generator.integers(1, 5)).astype(np.int64)
    count, ranks = len(radix), int(np.prod(radix))
    stride = np.r_[np.cumprod(radix[::-1])[-2::-1], 1][:count].astype(np.int64)
    digits = HostDigits(radix, stride, generator.permutation(ranks).astype(np.int32))
    mirror = np.array([int(generator.integers(1 << i)) for i in range(count)], np.int64)
    order = DigitOrder(generator.permutation(count).astype(np.int64), mirror)
    found = np.empty(ranks, np.int32)
    place_by_digits(digits, order, np.zeros((2, count + 1), np.int64), found)
    assert sorted(found.tolist()) == list(range(ranks))
    assert found.tolist() == [by_hand(digits, order, rank) for rank in range(ranks)]


def all_orders(problem: Problem) -> float:
    digits = host_digits(*host_sides(problem), 0, np.random.default_rng(0))
    count, lowest = len(digits.radix), np.inf
    found, counter = np.empty(problem.ranks, np.int32), np.zeros((2, count + 1), np.int64)
    for order in itertools.permutations(range(count)):
        for mirror in itertools.product(*(range(1 << i) for i in range(count))):
            place_by_digits(digits, DigitOrder(np.array(order), np.array(mirror)), counter, found)
            lowest = min(lowest, problem.hop_bytes(found))
    return lowest


@pytest.mark.parametrize(
    ("fabric", "ranks"),
    [(torus((4, 4)), 16), (mesh((2, 3, 2)), 12), (torus((6,), slots=2), 12), (hypercube(4), 16)],
)
def test_no_order_of_digits_has_fewer_hop_bytes(fabric: Fabric, ranks: int) -> None:
    generator = np.random.default_rng(ranks)
    grid = np.arange(ranks).reshape(-1, 4)
    ends = [(grid, np.roll(grid, 1, axis=axis)) for axis in range(2)]
    source, target = (np.concatenate([pair[k].ravel() for pair in ends]) for k in range(2))
    kept = source != target
    size = np.repeat(generator.uniform(1, 9, 2), ranks)
    problem = on_all_hosts(fabric, Profile.from_edges(source[kept], target[kept], size[kept], ranks=ranks))
    found = digits.place_ranks(problem, np.random.default_rng(0))
    assert problem.hop_bytes(found) <= all_orders(problem) * (1 + 1e-9)  # sides in other orders may do better


def test_a_number_without_several_digits_stays_in_order() -> None:
    rank = np.arange(7)
    near = np.r_[np.roll(rank, 1), np.roll(rank, 2)]  # no grid
    problem = on_all_hosts(torus((7,)), Profile.from_edges(np.r_[rank, rank], near, np.ones(14)))
    assert digits.place_ranks(problem, np.random.default_rng(0)).tolist() == rank.tolist()
    alone = on_all_hosts(torus((7,)), Profile.from_edges([], [], [], ranks=3))
    assert digits.place_ranks(alone, np.random.default_rng(0)).tolist() == [0, 1, 2]


def switched_torus() -> Fabric:
    """Return 16 switches on a 4 x 4 torus with two hosts each; hosts are the first vertices, mixed."""
    host, switch = np.arange(32), 32 + np.random.default_rng(3).permutation(np.repeat(np.arange(16), 2))
    cables = torus((4, 4)).links
    source, target = np.r_[host, switch, 32 + cables.source], np.r_[switch, host, 32 + cables.target]
    names, is_switch = [f"v{vertex:02}" for vertex in range(48)], np.arange(48) >= 32
    return Fabric.from_arcs(names, source, target, 1.0, slots=~is_switch, forwards=is_switch)


@pytest.mark.parametrize(
    ("strategy", "above"), [(digits.place_ranks, 1.0), (place_by_layout, 1.0), (spectral.place_ranks, 1.1)]
)
def test_hosts_of_a_torus_of_switches_have_their_coordinates(strategy: Strategy, above: float) -> None:
    grid = np.arange(32).reshape(4, 4, 2)  # 4 x 4 x 2 ranks around the first two axes, pairs on a switch
    ends = [(grid, np.roll(grid, 1, axis=0)), (grid, np.roll(grid, 1, axis=1)), (grid, grid[:, :, ::-1])]
    source, target = (np.concatenate([pair[k].ravel() for pair in ends]) for k in range(2))
    profile = Profile.from_edges(source, target, np.repeat([1.0, 1.0, 9.0], 32))
    problem = on_all_hosts(switched_torus(), profile)
    found = strategy(problem, np.random.default_rng(0))
    assert problem.hop_bytes(found) <= 32 * (3 + 3 + 9 * 2) * above  # in order: 1,344


def halo(sides: tuple[int, ...]) -> Profile:
    """Every rank of a grid sends to both neighbours along each axis, with other bytes for each."""
    rank, ends = np.arange(np.prod(sides)).reshape(sides), []
    for axis in range(len(sides)):
        here, there = np.delete(rank, -1, axis).ravel(), np.delete(rank, 0, axis).ravel()
        ends += [(here, there, np.full(len(here), 2.0 + axis)), (there, here, np.full(len(here), 2.0 + axis))]
    return Profile.from_edges(*(np.concatenate([part[k] for part in ends]) for k in range(3)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_grid_is_folded_along_every_axis_of_a_hypercube(seed: int) -> None:
    profile = halo((8, 8, 16))
    problem = on_all_hosts(hypercube(10), profile)
    found = digits.place_ranks(problem, np.random.default_rng(seed))
    assert problem.hop_bytes(found) == profile.bytes.sum()  # all neighbours are one hop apart


def test_some_pairs_of_many_show_which_orders_are_good() -> None:
    profile = fft((32, 32))
    assert len(profile.bytes) > 2 * SAMPLE
    problem = on_all_hosts(mesh((32, 32)), shuffled(profile, 5))
    in_order = on_all_hosts(mesh((32, 32)), profile)
    found = digits.place_ranks(problem, np.random.default_rng(0))
    best = in_order.hop_bytes(in_order.slot_host)  # proved by the bound `projection`
    assert problem.hop_bytes(found) == pytest.approx(best)
    assert problem.hop_bytes(problem.slot_host) > 1.9 * best


@pytest.mark.parametrize(
    ("fabric", "profile"),
    [
        (torus((8, 4, 4)), halo((4, 4, 8))),
        (torus((8, 8)), halo((8, 8))),
        (mesh((4, 4, 4, 3)), halo((4, 3, 4, 4))),
        (torus((4, 6), slots=4), halo((8, 12))),
        (extended_generalised_fat_tree((6, 4, 4), (1, 2, 2)), halo((8, 12))),
        (hypercube(6), butterfly(6)),
        (torus((4, 4, 4)), butterfly(6, 2.0)),
        (torus((8, 8)), stencil((8, 8), 9, bytes=(8, 1))),
        (mesh((8, 4)), fft((8, 4))),
    ],
)
def test_a_grid_numbered_at_random_is_placed_as_one_in_order(fabric: Fabric, profile: Profile) -> None:
    in_order, mixed = on_all_hosts(fabric, profile), on_all_hosts(fabric, shuffled(profile, 1))
    expected = in_order.hop_bytes(digits.place_ranks(in_order, np.random.default_rng(0)))
    found = mixed.hop_bytes(digits.place_ranks(mixed, np.random.default_rng(0)))
    assert found == pytest.approx(expected)
    assert found < 0.8 * mixed.hop_bytes(mixed.slot_host)


def position_digits(fabric: Fabric, ranks: int) -> tuple[list[int], list[int], Ints]:
    """Return radix and stride of each digit for a ring of ranks, and the host of each position."""
    ring = Profile.from_edges(np.arange(ranks), np.roll(np.arange(ranks), 1), np.ones(ranks))
    digits = host_digits(*host_sides(on_all_hosts(fabric, ring)), 0, np.random.default_rng(0))
    return digits.radix.tolist(), digits.stride.tolist(), digits.host


@pytest.mark.parametrize(
    ("ranks", "radices", "strides"),
    [(16, [2, 2, 2, 2], [8, 4, 2, 1]), (48, [3, 2, 2, 2, 2], [16, 8, 4, 2, 1])],
)
def test_digits_follow_axes_of_hosts_and_slots(ranks: int, radices: list[int], strides: list[int]) -> None:
    radix, stride, host = position_digits(torus((6, 4), slots=2), ranks)  # 16 of 48 fill no grid
    assert (radix, stride) == (radices, strides)
    assert host.tolist() == np.repeat(np.arange(ranks // 2), 2).tolist()


def test_digits_follow_the_hierarchy_of_a_tree() -> None:
    radix, stride, host = position_digits(extended_generalised_fat_tree((3, 5), (1, 2)), 15)
    assert (radix, stride) == ([5, 3], [3, 1])
    assert (host.reshape(5, 3) // 3 == host.reshape(5, 3)[:, :1] // 3).all()


def problem_of(profile: Profile) -> Problem:
    """Return the profile on a ring; coordinates of ranks do not depend on hosts."""
    fabric = torus((max(profile.ranks, 3),))
    allocation = Allocation.of(fabric, fabric.hosts[: profile.ranks].tolist())
    return problem_on(fabric, profile, allocation)


def check(places: Longs | None, sides: list[int], number: Longs, periodic: bool = False) -> None:
    """Ranks are neighbours in their coordinates if they are in the grid; a ring of four may be two axes."""
    places = sure(places)
    assert len(np.unique(places, axis=0)) == len(places)
    assert np.prod(places.max(axis=0) + 1) == len(places)
    grid = np.array(list(itertools.product(*map(range, sides))))
    steps = np.abs(grid[:, None] - grid)
    true = (np.minimum(steps, np.array(sides) - steps) if periodic else steps).sum(axis=2) == 1
    away = np.abs(places[number][:, None] - places[number])
    around = (away == places.max(axis=0)) & (places.max(axis=0) > 1) & periodic
    found = ((away > 0).sum(axis=2) == 1) & ((away == 1) | around).any(axis=2)
    assert (true == found).all()


@given(sides=st.lists(st.integers(2, 7), min_size=2, max_size=3), full=st.booleans(), seed=st.integers(0, 99))
def test_a_shuffled_stencil_is_recognised_exactly(sides: list[int], full: bool, seed: int) -> None:
    points = {2: (5, 9), 3: (7, 27)}[len(sides)][full]
    weights = {5: (9,), 9: (9, 2), 7: (9,), 27: (64, 8, 1)}[points]
    number = np.random.default_rng(seed).permutation(math.prod(sides))
    profile = stencil(sides, points, bytes=weights, seed=seed)
    check(rank_coordinates(problem_of(profile)), sides, number)


@given(sides=st.lists(st.integers(3, 6), min_size=2, max_size=3), seed=st.integers(0, 99))
def test_a_shuffled_stencil_around_a_torus_is_recognised_exactly(sides: list[int], seed: int) -> None:
    number = np.random.default_rng(seed).permutation(math.prod(sides))
    profile = stencil(sides, 2 * len(sides) + 1, periodic=True, seed=seed)
    check(rank_coordinates(problem_of(profile)), sides, number, periodic=True)


def noisy(seed: int) -> Profile:
    """Return 6 x 5 x 4 ranks, shuffled: each axis has its own bytes, one way more, and all send a little."""
    generator = np.random.default_rng(seed)
    rank = np.arange(120).reshape(6, 5, 4)
    parts = [
        (np.delete(rank, -1, axis).ravel(), np.delete(rank, 0, axis).ravel(), bytes)
        for axis, bytes in enumerate((90.0, 40.0, 70.0))
    ]
    parts.append((*generator.integers(0, 120, (2, 600)), 1.0))
    source, target, size = (np.concatenate([np.broadcast_to(part[k], part[0].shape) for part in parts])
                            for k in range(3))  # fmt: skip
    apart = source != target
    return shuffled(Profile.from_edges(source[apart], target[apart], size[apart], ranks=120), seed)


def test_axes_of_different_bytes_a_shuffled_wave_front_and_numbers_row_by_row_are_recognised() -> None:
    check(rank_coordinates(problem_of(noisy(5))), [6, 5, 4], np.random.default_rng(5).permutation(120))
    places = rank_coordinates(problem_of(shuffled(lu(64), 3)))
    check(places, [8, 8], np.random.default_rng(3).permutation(64))
    places = sure(rank_coordinates(problem_of(stencil((6, 3, 5), 27, bytes=(9, 3, 1)))))
    assert places.tolist() == [list(place) for place in itertools.product(range(6), range(3), range(5))]


@given(seed=st.integers(0, 2**32 - 1), ranks=st.integers(5, 40))
def test_random_traffic_is_no_grid(seed: int, ranks: int) -> None:
    generator = np.random.default_rng(seed)
    source, target = generator.integers(0, ranks, (2, 6 * ranks))
    apart = source != target
    size = generator.uniform(1, 2, np.count_nonzero(apart))
    found = rank_coordinates(problem_of(Profile.from_edges(source[apart], target[apart], size, ranks=ranks)))
    if found is not None:  # by chance a line or ring of few ranks
        assert found.shape[1] == 1


def test_irregular_traffic_and_silent_ranks_are_no_grid() -> None:
    fabric, profile, allocation = torus8()
    assert rank_coordinates(problem_on(fabric, profile, allocation)) is None
    assert rank_coordinates(problem_of(Profile.from_edges([], [], [], ranks=4))) is None
    line = Profile.from_edges([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0], ranks=5)  # rank 4 is silent
    assert rank_coordinates(problem_of(line)) is None


METRICS = st.sampled_from([*WAYS])


def mixed(problem: Problem, seed: int = 0) -> Ints:
    return np.random.default_rng(seed).permutation(problem.slot_host)[: problem.ranks].astype(np.int32)


def scattered_partners() -> Problem:
    """64 ranks with random partners: no order of digits is good."""
    generator = np.random.default_rng(1)
    source, target = (generator.integers(0, 64, 128) for _ in range(2))
    apart = source != target
    profile = Profile.from_edges(source[apart], target[apart], np.ones(apart.sum()), ranks=64)
    return on_all_hosts(torus((8, 8)), profile)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_transform_is_placed_as_well_as_possible_from_any_start(workers: int) -> None:
    problem = on_all_hosts(mesh((16, 16)), fft((16, 16)))
    best = problem.hop_bytes(problem.slot_host)  # in order, proved by the bound `projection`
    deadline = Deadline(steps=10**6, workers=workers)
    *_, found = digits.refine(problem, mixed(problem), deadline, np.random.default_rng(0))
    assert found.value == problem.hop_bytes(found.host_of_rank) == pytest.approx(best)
    assert sorted(found.host_of_rank.tolist()) == list(range(256))
    assert deadline.taken <= 3 * WAYS[HOP_BYTES].patience * WAYS[HOP_BYTES].tries  # ended by itself


def test_it_ends_at_once_where_no_order_is_near_the_start() -> None:
    problem = scattered_partners()
    generator, start = np.random.default_rng(0), mixed(problem)
    *_, good = pair_exchange.refine(problem, start, Deadline(steps=100_000), generator)
    deadline = Deadline(steps=10**6, workers=1)
    found = list(digits.refine(problem, good.host_of_rank, deadline, generator))
    assert (deadline.taken, len(found)) == (FIRST * WAYS[HOP_BYTES].tries, FIRST)
    assert found[-1].value == good.value
    assert np.array_equal(found[-1].host_of_rank, good.host_of_rank)
    assert NEAR * good.value < problem.hop_bytes(start)


def test_with_pinned_ranks_or_nothing_sent_nothing_is_tried() -> None:
    problem = on_all_hosts(mesh((4, 4)), fft((4, 4)))
    pins = np.full(16, -1, np.int32)
    pins[3] = 7
    silent = on_all_hosts(mesh((4,)), Profile.from_edges([], [], [], ranks=4))
    for case in (problem.with_pins(pins), silent):
        deadline = Deadline(steps=1000)
        assert not list(digits.refine(case, mixed(case), deadline, np.random.default_rng(0)))
        assert deadline.taken == 0


def measured(problem: Problem, hosts: Ints, on: str) -> tuple[float, ...]:
    return score(problem, hosts)[:2] if on == CONGESTION else (problem.hop_bytes(hosts),)


@given(steps=st.integers(0, 2000), workers=st.integers(1, 3), seed=st.integers(0, 9), on=METRICS)
def test_never_worse_than_its_start_and_repeatable(steps: int, workers: int, seed: int, on: str) -> None:
    problem = scattered_partners() if seed % 2 else on_all_hosts(mesh((4, 6)), fft((6, 4)))
    start, ends = mixed(problem, seed), []
    for _ in range(2):
        deadline, generator = Deadline(steps=steps, workers=workers), np.random.default_rng(seed)
        found = list(digits.refine(problem, start, deadline, generator, on=on))
        assert deadline.taken <= steps
        values = [measured(problem, start, on)[0]]
        for one in found:
            known = (one.value, one.network_congestion_seconds) if on == CONGESTION else (one.value,)
            assert known == measured(problem, one.host_of_rank, on)
            values.append(one.value)
        assert all(later <= one for one, later in itertools.pairwise(values))
        ends.append([one.host_of_rank.tobytes() for one in found])
    assert ends[0] == ends[1]


def test_the_best_order_by_congestion_is_another_one() -> None:
    """Recursive halving on a torus: with the fewest hop-bytes a link has more than one pair."""
    problem = on_all_hosts(torus((4, 8, 8)), halving(256))
    ends = {}
    for on in WAYS:
        deadline, generator = Deadline(steps=10**6), np.random.default_rng(0)
        *_, found = digits.refine(problem, mixed(problem), deadline, generator, on=on)
        assert deadline.taken < 10**6
        ends[on] = score(problem, found.host_of_rank)
        known = ends[on].hop_bytes if on == HOP_BYTES else ends[on].congestion_seconds
        assert found.value == known
    assert ends[CONGESTION].congestion_seconds == float(problem.bytes.max())
    assert ends[HOP_BYTES].congestion_seconds > 1.05 * ends[CONGESTION].congestion_seconds
    assert ends[HOP_BYTES].hop_bytes < ends[CONGESTION].hop_bytes


def test_a_tie_is_decided_by_the_links_of_the_network() -> None:
    none = np.zeros(1, np.int32)
    other = Candidate(none, "congestion_seconds", 2.0, 1.0)
    cases = ((2.0, 0.5, True), (2.0, 1.0, False), (2.1, 0.5, False), (1.9, 3.0, True), (2 - 1e-12, 1, False))
    for value, network, better in cases:
        one = Candidate(none, "congestion_seconds", value, network)
        assert digits._is_better(one, other) is better
