"""The bound by eigenvalues of bytes and distances: beside its definition, and below every placement."""

from __future__ import annotations

from itertools import permutations
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.sparse.linalg import ArpackError

from bench.support.structured import fft
from ingest.generate.tori import mesh, torus
from mapping.distances.distances import LINKS, Distances, distances
from mapping.evaluation.bounds import projection as module
from mapping.evaluation.bounds.guest_graph import guest_arrays
from mapping.evaluation.bounds.projection import SHARE, SHARES, projection
from mapping.routing import shortest_paths
from registry.model import Floats, Profile


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
