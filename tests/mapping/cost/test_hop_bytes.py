"""Bounds by bytes between groups, by flows between all ranks and by eigenvalues, against all placements."""

from __future__ import annotations

import itertools
from itertools import combinations, permutations
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.sparse.linalg import ArpackError

from bench.support.structured import doubling, fft
from ingest.generate.collectives import all_to_all, ring
from ingest.generate.direct import mesh, torus
from ingest.generate.stencils import stencil
from mapping.cost.bounds import hop_bytes, partition
from mapping.cost.bounds import partition as small_groups
from mapping.cost.bounds import projection as module
from mapping.cost.bounds.catalog import every_bound
from mapping.cost.bounds.hop_bytes import all_to_all as all_to_all_bound
from mapping.cost.bounds.partition import (
    Crossings,
    SmallGroups,
    eigenvalues,
    flows,
    heaviest_partners,
    spectrum,
)
from mapping.cost.bounds.parts import Cables, Partners, guest_arrays
from mapping.cost.bounds.projection import SHARE, SHARES, projection
from mapping.distances.distances import LINKS, Distances, distances
from mapping.routing import forwarding_tables, shortest_paths, up_down
from mapping.routing.routes import Routes
from registry.model import Allocation, Bound, Fabric, Floats, Profile
from tests.support.small_fabrics import allocations, cabled, profiles, table_fabrics
from tests.support.sure import sure


def groupings(profile: Profile, slots: list[int]) -> list[np.ndarray]:
    """Every way to put ranks into groups of limited size: the group of each rank."""
    every = (np.array(one) for one in itertools.product(range(len(slots)), repeat=profile.ranks))
    return [one for one in every if (np.bincount(one, minlength=len(slots)) <= slots).all()]


@given(profile=profiles(min_ranks=2, max_ranks=6), data=st.data())
def test_no_grouping_sends_less_than_any_argument_proves(profile: Profile, data: st.DataObject) -> None:
    """Nor do the groups of single ranks send less than small groups prove."""
    slots = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    while sum(slots) < profile.ranks:
        slots[0] += 1
    every, guest = groupings(profile, slots), guest_arrays(profile)
    least = min(float(profile.bytes[one[profile.sender] != one[profile.partner]].sum()) for one in every)
    least = least * (1 + 1e-9) + 1e-9
    filled = np.diff(np.minimum(np.cumsum(np.sort(slots)[::-1]), profile.ranks), prepend=0)
    size = int(filled.max())
    assert heaviest_partners(Partners.of(profile, guest), size) <= least
    assert eigenvalues(spectrum(guest), filled[filled > 0]) <= least
    assert flows(guest, size) <= least
    found, argument = Crossings(profile).least(np.array(slots))
    assert found <= least, argument
    assert of(profile).crossing(np.array(slots)) <= least
    leaving = of(profile).leaving(np.array(slots), sent(profile))
    if leaving is not None:
        of_rank = np.min([sent_by_groups(profile, one) for one in every], axis=0)
        assert (leaving <= of_rank * (1 + 1e-9) + 1e-9).all()


def test_eigenvalues_are_exact_where_all_talk_to_all_and_flows_nearly() -> None:
    """Two groups of three: nine pairs cross, both ways."""
    guest = guest_arrays(all_to_all(6))
    assert eigenvalues(spectrum(guest), np.array([3, 3])) == pytest.approx(18.0)
    assert 15.0 < flows(guest, 3) <= 18.0
    assert Crossings(all_to_all(6)).least(np.array([3, 3]))[0] == pytest.approx(18.0)


def test_heaviest_partners_are_exact_for_pairs_on_a_path() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 2, 3], [5.0, 1.0, 5.0])
    assert heaviest_partners(Partners.of(profile, guest_arrays(profile)), 2) == pytest.approx(1.0)


def test_flows_prove_what_eigenvalues_cannot_on_a_long_ring() -> None:
    """A ring of 64 in four arcs of 16 is cut four times; eigenvalues see 0.9 of that four-fold less."""
    guest = guest_arrays(ring(64))
    hop_bytes, by_eigenvalues = flows(guest, 16), eigenvalues(spectrum(guest), np.full(4, 16))
    assert by_eigenvalues < 0.5 * hop_bytes
    assert 2.0 < hop_bytes <= 4.0


def test_one_group_for_all_and_a_silent_guest_cross_nothing_and_groups_of_one_send_everything() -> None:
    assert Crossings(all_to_all(4)).least(np.array([4, 4]))[0] == 0.0
    assert Crossings(Profile.from_edges([], [], [], ranks=4)).least(np.array([2, 2]))[0] == 0.0
    assert Crossings(all_to_all(4)).least(np.ones(5, np.int64)) == (12.0, "all bytes")


def test_flows_are_not_sought_where_a_good_grouping_rules_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise AssertionError

    monkeypatch.setattr(partition, "flows", fail)
    monkeypatch.setattr(partition, "MAX_EIGEN_RANKS", 0)
    monkeypatch.setattr(partition, "SMALL", 2)
    assert Crossings(ring(64)).least(np.full(4, 16), above=1000.0)[0] == 0.0


@given(
    capacity=st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=1, max_size=5),
    load=st.integers(0, 50),
    data=st.data(),
)
def test_no_spreading_beats_the_least_time(capacity: list[float], load: int, data: st.DataObject) -> None:
    n = len(capacity)
    there = np.array(data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n)), np.float64)
    share = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), np.float64)
    cables = Cables(usable=np.ones(n, bool), capacity=np.array(capacity), background=there)
    least = cables.least_seconds(np.ones(n, bool), load)
    if share.sum() > 0 and load > 0:
        ours = load * share / share.sum()
        assert least <= ((ours + there) / capacity)[ours > 0].max() * (1 + 1e-12)
    room = np.maximum(least * np.array(capacity) - there, 0.0).sum()
    assert room == pytest.approx(load, abs=1e-9)


@given(ranks=st.integers(3, 12), data=st.data())
def test_proved_eigenvalues_are_below_the_exact_ones(ranks: int, data: st.DataObject) -> None:
    """All eigenvalues, and the second alone by a Cholesky factorisation, against numpy's."""
    weight = st.one_of(st.just(0.0), st.floats(0.5, 9.0))
    upper = data.draw(st.lists(weight, min_size=ranks * ranks, max_size=ranks * ranks))
    matrix = np.triu(np.reshape(upper, (ranks, ranks)), 1)
    low, high = np.nonzero(matrix)
    guest = guest_arrays(Profile.from_edges(low, high, matrix[low, high], ranks=ranks))
    exact = np.linalg.eigvalsh(np.diag((matrix + matrix.T).sum(axis=0)) - matrix - matrix.T)
    if not matrix.any():
        assert len(spectrum(guest)) == 0
        return
    room = 1e-9 * exact[-1]
    assert (spectrum(guest) <= exact + room).all()
    second = partition._second_eigenvalue(guest)
    assert (second <= exact[: len(second)] + room).all()


def test_the_second_eigenvalue_alone_is_nearly_exact_for_many_ranks_that_all_talk() -> None:
    """All of n that all exchange w have the eigenvalue n * w but for one."""
    second = partition._second_eigenvalue(guest_arrays(all_to_all(40)))
    assert second[1] == pytest.approx(80.0, rel=0.003)
    assert eigenvalues(second, np.array([20, 20])) == pytest.approx(2 * 400.0, rel=0.003)


GRID = stencil((4, 4), 5)
"""Ranks on a square, each of which sends 1 byte to each of its neighbours."""


def sent_by_groups(profile: Profile, group: np.ndarray) -> Floats:
    """Bytes that the group of each rank sends to other groups."""
    apart = group[profile.sender] != group[profile.partner]
    leaving = np.bincount(group[profile.sender][apart], profile.bytes[apart], int(group.max()) + 1)
    return np.asarray(leaving[group], np.float64)


def of(profile: Profile) -> SmallGroups:
    return SmallGroups(guest_arrays(profile))


def sent(profile: Profile) -> Floats:
    return np.bincount(profile.sender, profile.bytes, profile.ranks).astype(np.float64)


@given(profile=profiles(min_ranks=2, max_ranks=7), size=st.integers(2, 4))
def test_the_best_group_of_each_rank_is_the_best_of_all_subsets(profile: Profile, size: int) -> None:
    """The least bytes out of any group with a rank, if the other ranks may be anywhere."""
    slots = np.full(profile.ranks, size)
    found = of(profile).leaving(slots, sent(profile))
    expected = np.full(profile.ranks, np.inf)
    for count in range(1, size + 1):
        for chosen in itertools.combinations(range(profile.ranks), count):
            inside = np.isin(np.arange(profile.ranks), chosen)
            out = profile.bytes[inside[profile.sender] & ~inside[profile.partner]].sum()
            expected[list(chosen)] = np.minimum(expected[list(chosen)], out)
    if found is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_four_in_a_square_keep_the_most_of_a_grid() -> None:
    """Of the 24 edges of a 4 x 4 grid four squares keep 16, both ways; three each of a rank's partners 24."""
    assert of(GRID).crossing(np.full(4, 4)) == pytest.approx(16.0)
    assert of(GRID).crossing(np.full(8, 2)) == pytest.approx(48.0 - 16.0)


def test_groups_without_free_slots_have_further_ranks() -> None:
    """A corner's square sends 4. With free slots a corner alone sends 2, each of the middle still 4."""
    full, free = (sure(of(GRID).leaving(np.full(groups, 4), sent(GRID))) for groups in (4, 16))
    assert full.min() == full[5] == 4.0
    assert (free[0], free[5]) == (2.0, 4.0)


def test_a_slot_more_is_used_by_the_ranks_that_gain_most() -> None:
    """A triangle and five ranks without partners: a group of three keeps all, groups of two one edge."""
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [9.0, 9.0, 9.0], ranks=8)
    assert of(profile).crossing(np.array([3, 2, 2, 1])) == pytest.approx(0.0)
    assert of(profile).crossing(np.array([2, 2, 2, 2])) >= 9.0
    assert of(profile).crossing(np.array([2, 1, 1, 1, 1, 1, 1])) == pytest.approx(18.0)


def test_nothing_is_proved_if_there_are_too_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(GRID).crossing(np.full(2, 9)) == 0.0
    monkeypatch.setattr(small_groups, "MAX_ENUMERATED", 50)
    few = of(GRID)
    assert few.crossing(np.full(4, 4)) == 0.0
    assert few.leaving(np.full(4, 4), np.zeros(16)) is None


def bound_on(fabric: Fabric, profile: Profile, slots: int = 1, *, above: float = 0.0) -> Bound:
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), slots)
    return bound_of(shortest_paths.build(fabric, allocation.hosts), profile, allocation, above=above)


def bound_of(routes: Routes, profile: Profile, allocation: Allocation, *, above: float = 0.0) -> Bound:
    near = distances(LINKS, routes)
    return all_to_all_bound(guest_arrays(profile), routes, near, allocation.slots, above=above)


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
    found = hop_bytes._flows(guest, count, np.ones(ranks), 0.0)
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


def table(between: Floats) -> Distances:
    return Distances(name=LINKS, group=np.arange(len(between), dtype=np.int32), between=between)


def random_case(seed: int, ranks: int, slots: list[int]) -> tuple[Profile, Distances, Floats]:
    """Bytes between some ranks, distances that differ by direction, and the table of distances of slots."""
    generator, hosts = np.random.default_rng(seed), len(slots)
    sent = generator.integers(0, 5, (ranks, ranks)) * (generator.random((ranks, ranks)) < 0.6)
    np.fill_diagonal(sent, 0)
    source, target = np.nonzero(sent)
    between = generator.integers(1, 9, (hosts, hosts)).astype(np.float64)
    np.fill_diagonal(between, 0.0)
    profile = Profile.from_edges(source, target, sent[source, target].astype(np.float64), ranks=ranks)
    host = np.repeat(np.arange(hosts), slots)
    return profile, table(between), np.minimum(between, between.T)[np.ix_(host, host)]


def matrix_of(profile: Profile, count: int) -> Floats:
    found = np.zeros((count, count))
    np.add.at(found, (profile.sender, profile.partner), profile.bytes)
    return found + found.T


def defined(traffic: Floats, far: Floats) -> float:
    """The bound with a basis of the space across the constant vector, written out."""
    count = len(far)
    basis = null_space(np.ones((1, count)))
    one, other = (np.sort(np.linalg.eigvalsh(basis.T @ m @ basis)) for m in (traffic, far))
    along = 2 / count * np.sort(traffic.sum(axis=1)) @ np.sort(far.sum(axis=1))[::-1]
    return float(one @ other[::-1] + along - traffic.sum() * far.sum() / count**2) / 2


@pytest.mark.parametrize(
    ("seed", "ranks", "slots"), [(0, 5, [1] * 5), (1, 4, [1] * 6), (2, 6, [2, 1, 3]), (3, 7, [2, 2, 2, 1])]
)
def test_it_is_the_best_of_its_definition_over_diagonals(seed: int, ranks: int, slots: list[int]) -> None:
    profile, near, far = random_case(seed, ranks, slots)
    traffic = matrix_of(profile, len(far))
    wanted = [defined(traffic - np.diag(share * traffic.sum(axis=1)), far) for share in SHARES]
    found = projection(guest_arrays(profile), near, np.array(slots, np.int32)).value
    assert found == pytest.approx(max(0.0, *wanted), rel=1e-9)
    assert found > 0.0


@settings(max_examples=120)
@given(largest=st.sampled_from([None, 1, 2]), seed=st.integers(0, 10**6), data=st.data())
def test_no_order_of_ranks_costs_less(largest: int | None, seed: int, data: st.DataObject) -> None:
    """Also if only one or two of the largest eigenvalues are known."""
    slots = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=4).filter(lambda one: sum(one) < 7))
    ranks = data.draw(st.integers(2, sum(slots)))
    profile, near, far = random_case(seed, ranks, slots)
    traffic = matrix_of(profile, len(far))
    least = min((traffic * far[np.ix_(order, order)]).sum() / 2 for order in permutations(range(len(far))))
    with pytest.MonkeyPatch.context() as patch:
        if largest is not None:
            few_eigenvalues(patch, largest)
        bound = projection(guest_arrays(profile), near, np.array(slots, np.int32))
    assert bound.value <= least * (1 + 1e-9)


def few_eigenvalues(patch: pytest.MonkeyPatch, largest: int) -> None:
    """Bound this number of eigenvalues of each matrix that has more, and all others together."""
    patch.setattr(module, "MAX_ALL", largest + 1)
    patch.setattr(module, "LARGEST", largest)


@pytest.mark.parametrize("slots", [1, 2])
def test_the_largest_eigenvalues_are_enough_on_a_torus(slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its distances few eigenvalues are below 0 and none above, except for the sum."""
    fabric = torus((6, 8))
    hosts = np.full(48, slots, np.int32)
    near = distances(LINKS, shortest_paths.build(fabric, np.arange(48)))
    guest = guest_arrays(fft((8, 6 * slots)))
    every = projection(guest, near, hosts).value
    few_eigenvalues(monkeypatch, 20)
    found = projection(guest, near, hosts).value
    assert found == pytest.approx(every, rel=1e-3)
    assert found < every


def test_an_eigenvalue_that_lanczos_missed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Cholesky factorisation exists then: the largest one holds for all, or the sum of a row."""
    matrix = np.zeros((8, 8))
    for pair, weight in enumerate((5.0, 5.0, 4.0, 1.0)):
        matrix[2 * pair, 2 * pair + 1] = matrix[2 * pair + 1, 2 * pair] = -weight
    across = module._Across(matrix=matrix, number=np.ones(8, np.int64))
    vectors = np.zeros((8, 4))
    for pair in range(4):
        vectors[2 * pair : 2 * pair + 2, pair] = np.sqrt(0.5) * np.array([1, -1])
    answers = {
        "all": (np.array([5.0, 5.0, 4.0]), vectors[:, [0, 1, 2]]),
        "one missing": (np.array([5.0, 4.0]), vectors[:, [0, 2]]),
        "largest missing": (np.array([4.0, 1.0]), vectors[:, [2, 3]]),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(module, "_near_largest", lambda _, answer=answer: answer)
        most = [5.0, 5.0] + [4.0] * 5 if name == "all" else [5.0] * 7
        np.testing.assert_allclose(across.at_most(), most, rtol=1e-3, err_msg=name)
    monkeypatch.undo()
    monkeypatch.setattr(module, "eigsh", MagicMock(side_effect=ArpackError(-1)))
    np.testing.assert_allclose(across.at_most(), [5.0] * 7)


@pytest.mark.parametrize("sides", [(2, 4), (16, 32)])
def test_a_transform_in_order_on_its_own_mesh_is_proved_best(sides: tuple[int, int]) -> None:
    profile, fabric = fft(sides), mesh(sides)
    hosts = np.arange(len(fabric))
    near = distances(LINKS, shortest_paths.build(fabric, hosts))
    cost = float(profile.bytes @ near.matrix()[profile.sender, profile.partner])
    bound = projection(guest_arrays(profile), near, np.ones(len(hosts), np.int32))
    assert bound.value <= cost
    assert bound.value == pytest.approx(cost, rel=1e-9)
    if sides == (2, 4):
        far, traffic = near.matrix(), matrix_of(profile, 8)
        orders = (np.array(order) for order in permutations(range(8)))
        assert min((traffic * far[np.ix_(one, one)]).sum() / 2 for one in orders) == pytest.approx(cost)


def test_what_is_too_large_is_named_and_dense_traffic_may_be_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SIZE", 30)
    monkeypatch.setattr(module, "DENSE", 13)
    near, slots, even = table(1.0 - np.eye(32)), np.ones(32, np.int32), np.arange(0, 32, 2)
    pairs = Profile.from_edges(even, even + 1, np.ones(16), ranks=32)
    found = projection(guest_arrays(pairs), near, slots)
    assert found.proof == "not tried: projection: 32 ranks, more than 30"
    full = fft((2, 16))
    dense = projection(guest_arrays(full), near, slots).value
    assert dense == pytest.approx(full.bytes.sum(), rel=1e-9)  # all slots are one step apart
    few = fft((2, 13))
    some, traffic = projection(guest_arrays(few), near, slots).value, matrix_of(few, 32)
    one_share = defined(traffic - SHARE * np.diag(traffic.sum(axis=1)), near.matrix())
    assert some == pytest.approx(one_share, rel=1e-9)
    assert 0.0 < some <= few.bytes.sum()
