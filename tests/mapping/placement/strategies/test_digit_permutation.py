"""Digits of rank numbers on digits of hosts' coordinates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.support.structured import fft
from ingest.generate.fat_trees import extended_generalised_fat_tree
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.tori import hypercube, mesh, torus
from mapping.placement.kernels.digit_permutation import DigitOrder, HostDigits, place_by_digits
from mapping.placement.partition.digit_orders import SAMPLE, host_digits, host_sides
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import digit_permutation, layout, spectral
from registry.model import Fabric, Profile
from tests.support.search_problems import on_all_hosts


def butterfly(bits: int, growth: float = 1.0) -> Profile:
    """Every rank sends to each rank whose number differs in one bit; the highest bit sends most."""
    rank = np.arange(1 << bits)
    size = [np.full(len(rank), growth**bit) for bit in range(bits)]
    partner = [rank ^ (1 << bit) for bit in range(bits)]
    return Profile.from_edges(np.tile(rank, bits), np.concatenate(partner), np.concatenate(size))


def by_hand(digits: HostDigits, order: DigitOrder, rank: int) -> int:
    """Return the host of a rank, one digit after the other."""
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


def test_a_column_of_ranks_becomes_a_row_of_hosts() -> None:
    grid = np.arange(12).reshape(3, 4)  # traffic down the columns of 3 x 4 ranks, hosts on a line
    profile = Profile.from_edges(grid[:-1].ravel(), grid[1:].ravel(), np.ones(8), ranks=12)
    problem = on_all_hosts(mesh((12,)), profile)
    found = digit_permutation.place_ranks(problem, np.random.default_rng(0))
    assert problem.hop_bytes(problem.slot_host) == 8 * 4
    assert problem.hop_bytes(found) == 8 * 1


def test_the_long_axis_of_ranks_is_folded_into_two_of_hosts() -> None:
    rank = np.arange(15)
    problem = on_all_hosts(mesh((4, 4)), Profile.from_edges(rank, rank + 1, np.ones(15)))
    found = digit_permutation.place_ranks(problem, np.random.default_rng(0))
    assert problem.hop_bytes(found) == 15.0  # a snake: every rank beside the next
    assert problem.hop_bytes(problem.slot_host) == 12 + 3 * 4


def all_orders(problem: Problem) -> float:
    """Return the fewest hop-bytes of all permutations and mirrors of digits."""
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
    found = digit_permutation.place_ranks(problem, np.random.default_rng(0))
    assert problem.hop_bytes(found) <= all_orders(problem) * (1 + 1e-9)  # sides in other orders may do better


def test_a_number_without_several_digits_stays_in_order() -> None:
    rank = np.arange(7)
    near = np.r_[np.roll(rank, 1), np.roll(rank, 2)]  # no grid
    problem = on_all_hosts(torus((7,)), Profile.from_edges(np.r_[rank, rank], near, np.ones(14)))
    assert digit_permutation.place_ranks(problem, np.random.default_rng(0)).tolist() == rank.tolist()
    alone = on_all_hosts(torus((7,)), Profile.from_edges([], [], [], ranks=3))
    assert digit_permutation.place_ranks(alone, np.random.default_rng(0)).tolist() == [0, 1, 2]


def switched_torus() -> Fabric:
    """Return 16 switches on a 4 x 4 torus with two hosts each; hosts are the first vertices, mixed."""
    host, switch = np.arange(32), 32 + np.random.default_rng(3).permutation(np.repeat(np.arange(16), 2))
    cables = torus((4, 4)).links
    source, target = np.r_[host, switch, 32 + cables.source], np.r_[switch, host, 32 + cables.target]
    names, is_switch = [f"v{vertex:02}" for vertex in range(48)], np.arange(48) >= 32
    return Fabric.from_arcs(names, source, target, 1.0, slots=~is_switch, forwards=is_switch)


@pytest.mark.parametrize(("strategy", "above"), [(digit_permutation, 1.0), (layout, 1.0), (spectral, 1.1)])
def test_hosts_of_a_torus_of_switches_have_the_coordinates_of_their_switch(
    strategy: object, above: float
) -> None:
    grid = np.arange(32).reshape(4, 4, 2)  # 4 x 4 x 2 ranks around the first two axes, pairs on a switch
    ends = [(grid, np.roll(grid, 1, axis=0)), (grid, np.roll(grid, 1, axis=1)), (grid, grid[:, :, ::-1])]
    source, target = (np.concatenate([pair[k].ravel() for pair in ends]) for k in range(2))
    problem = on_all_hosts(
        switched_torus(), Profile.from_edges(source, target, np.repeat([1.0, 1.0, 9.0], 32))
    )
    found = strategy.place_ranks(problem, np.random.default_rng(0))  # type: ignore[attr-defined]
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
    found = digit_permutation.place_ranks(problem, np.random.default_rng(seed))
    assert problem.hop_bytes(found) == profile.bytes.sum()  # all neighbours are one hop apart


def test_some_pairs_of_many_show_which_orders_are_good() -> None:
    profile = fft((32, 32))
    assert len(profile.bytes) > 2 * SAMPLE
    problem = on_all_hosts(mesh((32, 32)), shuffled(profile, 5))
    in_order = on_all_hosts(mesh((32, 32)), profile)
    found = digit_permutation.place_ranks(problem, np.random.default_rng(0))
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
def test_ranks_of_a_grid_numbered_at_random_are_placed_as_those_in_order(
    fabric: Fabric, profile: Profile
) -> None:
    in_order, mixed = on_all_hosts(fabric, profile), on_all_hosts(fabric, shuffled(profile, 1))
    expected = in_order.hop_bytes(digit_permutation.place_ranks(in_order, np.random.default_rng(0)))
    found = mixed.hop_bytes(digit_permutation.place_ranks(mixed, np.random.default_rng(0)))
    assert found == pytest.approx(expected)
    assert found < 0.8 * mixed.hop_bytes(mixed.slot_host)
