"""The bound by flows between all ranks: by hand, beside the best flows, and below every placement."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from bench.support.structured import doubling
from ingest.generate.patterns import ring
from ingest.generate.tori import mesh, torus
from mapping.distances.distances import LINKS, distances
from mapping.evaluation.bounds import all_to_all as module
from mapping.evaluation.bounds.all_to_all import all_to_all
from mapping.evaluation.bounds.catalog import every_bound
from mapping.evaluation.bounds.guest_graph import guest_arrays
from mapping.routing import forwarding_tables, shortest_paths, up_down
from mapping.routing.routes import Routes
from registry.model import Allocation, Bound, Fabric, Floats, Profile
from tests.support.small_fabrics import allocations, cabled, profiles, table_fabrics


def bound_on(fabric: Fabric, profile: Profile, slots: int = 1, *, above: float = 0.0) -> Bound:
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), slots)
    return bound_of(shortest_paths.build(fabric, allocation.hosts), profile, allocation, above=above)


def bound_of(routes: Routes, profile: Profile, allocation: Allocation, *, above: float = 0.0) -> Bound:
    near = distances(LINKS, routes)
    return all_to_all(guest_arrays(profile), routes, near, allocation.slots, above=above)


def undirected(pairs: list[tuple[int, int]], bytes: ArrayLike) -> Profile:
    source, target = zip(*pairs, strict=True)
    return Profile.from_edges(source, target, bytes)


@pytest.mark.parametrize(
    ("fabric", "profile", "cost", "accuracy"),
    [
        # on a ring of 5 hosts 5 pairs are one link apart, 5 pairs two
        (torus((5,)), undirected(list(combinations(range(5), 2)), np.full(10, 3.0)), 3 * 15, 1e-6),
        # every edge of a ring of 7 carries 1 + 2 + 3 flows; the pairs of 7 hosts in a row are 56 links apart
        (mesh((7,)), ring(7), 56 / 6, 1e-6),
        # a pair with 100 bytes more than flows need: they are one link apart at best
        (torus((5,)), undirected([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], [101.0, 1, 1, 1, 1]), 105, 0.01),
    ],
    ids=["the same", "more than neighbours", "unequal"],
)
def test_all_pairs_cost_links_to_all(fabric: Fabric, profile: Profile, cost: float, accuracy: float) -> None:
    assert bound_on(fabric, profile).value == pytest.approx(cost, rel=accuracy)
    assert bound_on(fabric, profile, above=cost * 0.75).value == pytest.approx(cost, rel=accuracy)


def test_flows_that_prove_little_for_their_bytes_are_given_up() -> None:
    """In a star of ranks most flows take two steps, for which their bytes alone prove 9 links."""
    profile = undirected([(0, rank) for rank in range(1, 7)], np.ones(6))
    assert bound_on(torus((7,)), profile, above=9.0).value == 0.0 < bound_on(torus((7,)), profile).value


def test_ranks_that_do_not_reach_each_other_prove_nothing() -> None:
    """Ranks without partners are left out: three others see two hosts beside each in a row of six."""
    apart = Profile.from_edges([0, 2], [1, 3], [1.0, 1.0])
    assert bound_on(torus((5,)), apart).value == 0.0
    alone = Profile.from_edges([0, 1, 3], [1, 3, 0], [1.0, 1.0, 1.0], ranks=5)
    assert bound_on(mesh((6,)), alone).value == pytest.approx(3.0)


@given(seed=st.integers(0, 10**6), ranks=st.integers(2, 6))
def test_the_flows_are_possible_and_not_far_from_the_best(seed: int, ranks: int) -> None:
    generator = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(ranks), 2) if generator.random() < 0.7 or pair[0] == 0]
    profile = undirected(pairs, generator.integers(1, 9, len(pairs)).astype(np.float64))
    guest, count = guest_arrays(profile), np.arange(ranks, dtype=np.int32)
    found = module._flows(guest, count, np.ones(ranks), 0.0)
    assert bool((found.load <= guest.weight * (1 + 1e-12)).all())
    assert most_flows(pairs, found.load, found.sent) >= 1.0 - 1e-7
    best = most_flows(pairs, guest.weight, None)
    assert 0.5 * best <= found.sent.sum() <= best * (1 + 1e-7)


def most_flows(pairs: list[tuple[int, int]], weight: Floats, sent: Floats | None) -> float:
    """How many times `sent` fits (linear programme of all flows), or the largest sum of what ranks send."""
    ranks, edges = 1 + max(map(max, pairs)), len(pairs)
    arcs = [*pairs, *((other, one) for one, other in pairs)]
    sizes = ranks if sent is None else 1
    flows = ranks * len(arcs)  # by source, then arc; after them what ranks send, or how many times
    equal, limits = np.zeros((ranks * ranks, flows + sizes)), np.zeros((edges, flows + sizes))
    for source in range(ranks):
        for at, (one, other) in enumerate(arcs):
            equal[source * ranks + one, source * len(arcs) + at] -= 1.0
            equal[source * ranks + other, source * len(arcs) + at] += 1.0
            limits[at % edges, source * len(arcs) + at] = 1.0
        each = 1.0 if sent is None else sent[source]
        equal[source * ranks : (source + 1) * ranks, flows + (source if sent is None else 0)] = -each
        equal[source * ranks + source, :] = 0.0
    goal = np.r_[np.zeros(flows), -np.ones(sizes)]
    found = linprog(goal, limits, weight, equal, np.zeros(ranks * ranks), method="highs")
    return -float(found.fun)


@settings(max_examples=120)
@given(mesh_of=st.sampled_from([((6,), 1), ((2, 3), 1), ((3,), 2)]), seed=st.integers(0, 10**6))
def test_no_placement_on_a_mesh_costs_less(mesh_of: tuple[tuple[int, ...], int], seed: int) -> None:
    """In the middle of a mesh all others are nearer, and one rank may send more than others."""
    shape, slots = mesh_of
    generator = np.random.default_rng(seed)
    source, target = map(np.array, zip(*combinations(range(5), 2), strict=True))
    bytes = generator.choice([1.0, 1.0, 2.0, 30.0], len(source))
    fabric, profile = mesh(shape), Profile.from_edges(source, target, bytes)
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), slots)
    routes = shortest_paths.build(fabric, allocation.hosts)
    far = distances(LINKS, routes).between_slots(allocation.slots)
    placed = np.array(list(permutations(range(6), 5)))
    least = float((far[placed[:, source], placed[:, target]] @ bytes).min())
    assert bound_of(routes, profile, allocation).value <= least * (1 + 1e-9)


@given(fabric=table_fabrics(), profile=profiles(), data=st.data())
def test_paths_with_detours_prove_nothing(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    routes = forwarding_tables.build(fabric, allocation.hosts)
    assert bound_of(routes, profile, allocation).value == 0.0


def test_a_way_through_a_third_host_that_is_shorter_than_the_path_is_noticed() -> None:
    """Of three ranks in a row the middle one reaches both others in few links, which pays for no path."""
    row = undirected([(0, 1), (1, 2)], np.ones(2))
    around = torus((6,))
    by_tree = up_down.build(around, np.array([2, 3, 4]), root=around.names[0])  # 2 to 4: 4 links, by way of 0
    assert bound_of(by_tree, row, Allocation.of(around, [2, 3, 4])).value <= 2.0
    fabric = cabled("0-3 1-6 2-3 2-6 3-4 4-5 5-6", 3)  # host 2 has two switches
    assert bound_on(fabric, row).value <= 4.0


def test_distances_that_differ_by_direction_prove_nothing() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0, 1, 2], [1, 2, 0], [1.0, 1.0, 1.0])
    pairs = list(combinations(range(3), 2))
    assert bound_on(fabric, undirected(pairs, np.ones(3))).value == 0.0


def test_collectives_with_several_ranks_to_a_host_cost_more_than_other_arguments_show() -> None:
    """Recursive doubling among 144 ranks on 3 x 4 hosts."""
    allocation = Allocation.of(fabric := mesh((3, 4)), np.arange(12).tolist(), 12)
    routes, profile = shortest_paths.build(fabric, allocation.hosts), doubling((12, 12))
    *others, found = every_bound(routes, profile, allocation)["hop_bytes"]
    assert found.name == "all-to-all"
    assert found.value > 1.3 * max(bound.value for bound in others)
